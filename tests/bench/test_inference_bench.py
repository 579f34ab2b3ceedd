"""The benchmark of inference on tiny networks."""

from __future__ import annotations

import importlib.util

import pytest
from needs import require_module
from rich.console import Console

from azero.bench import inference
from azero.bench.inference import InferenceArguments
from azero.console.tables import results_table


def test_each_library_is_measured_on_its_fastest_batch() -> None:
    require_module("onnxruntime")
    chosen = InferenceArguments(("onnxruntime",), ("5x2x8",), batches=(8, 12), seconds=0.02)
    ours, other = inference.run(chosen, Console(stderr=True))
    assert (ours.library, ours.ratio) == ("azero", None)
    assert (other.library, other.how) == ("onnxruntime", "float32")
    assert other.ratio == pytest.approx(ours.positions_per_second / other.positions_per_second)
    assert {ours.batch, other.batch} <= {8, 16}
    assert results_table([ours, other], "title", 3).row_count == 2


def test_what_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "openvino" else found(name)
    )
    chosen = InferenceArguments(("openvino",), ("5x1x8",), batches=(2,), seconds=0.01)
    (ours,) = inference.run(chosen, Console(stderr=True, width=200))
    assert ours.positions_per_second > 0
    assert "openvino is not installed: measured without it" in capsys.readouterr().err


def test_networks_are_sizes() -> None:
    assert inference.read_shape("19x6x96") == (19, 6, 96)
    for text in ("19x6", "9x0x8", "9x4x8b"):
        with pytest.raises(ValueError, match="SIZExBLOCKSxFILTERS"):
            inference.read_shape(text)
