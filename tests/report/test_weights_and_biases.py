"""Metrics in Weights & Biases, without a network: what is written offline is read back."""

import json
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needs import require_module

from azero.report.metrics import MetricsWriter
from azero.report.weights_and_biases import ID, WandbRun

wandb = require_module("wandb")


BLOCK = 32768
FULL, LAST = 1, 4


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of W&B's file: a header of 7 bytes, then LevelDB's log format."""
    assert data[:4] == b":W&B"
    place, parts = 7, b""
    while place + 7 <= len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (FULL, LAST):
            yield parts
            parts = b""


def written(workdir: Path) -> tuple[list[dict[str, float]], dict[str, object]]:
    """Return the rows and the settings in the offline files of a run."""
    proto = require_module("wandb.proto.wandb_internal_pb2")
    rows: list[dict[str, float]] = []
    settings: dict[str, object] = {}
    for path in sorted(workdir.glob("wandb/offline-run-*/run-*.wandb")):
        for data in records(path.read_bytes()):
            record = proto.Record()
            record.ParseFromString(data)
            settings |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
            items = {
                item.key or ".".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            if items:
                rows.append({key: items[key] for key in items if not key.startswith("_")})
    return rows, settings


def test_metrics_are_written_offline_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")

    def open_wandb() -> WandbRun:
        return WandbRun(tmp_path, "azero-tests", {"run": {"seed": 3}})

    with MetricsWriter(tmp_path, open_wandb=open_wandb) as writer:
        writer.write({"iteration": 1, "policy_loss": 2.5, "note": "text", "gate": True})
        writer.write({"iteration": 2, "policy_loss": 2.25})
    name = (tmp_path / ID).read_text()
    time.sleep(1.1)  # W&B names its directories by the second
    with MetricsWriter(tmp_path, 1, open_wandb) as writer:
        writer.write({"iteration": 2, "policy_loss": 2.0})
    assert not writer.take_warnings() and (tmp_path / ID).read_text() == name
    deadline = time.monotonic() + 30
    while len(written(tmp_path)[0]) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # W&B's service writes the file shortly after the run has finished
    rows, settings = written(tmp_path)
    assert rows == [
        {"iteration": 1, "policy_loss": 2.5},
        {"iteration": 2, "policy_loss": 2.25},
        {"iteration": 2, "policy_loss": 2.0},
    ]
    assert settings["run"] == {"seed": 3}


def test_a_service_that_fails_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> None:
        raise wandb.Error("no\naccount")

    monkeypatch.setattr(wandb, "init", refuse)
    with MetricsWriter(tmp_path, open_wandb=lambda: WandbRun(tmp_path, "x", {})) as writer:
        writer.write({"iteration": 1})
        (warning,) = writer.take_warnings()
    assert "Weights & Biases: no account" in warning and "The run continues" in warning
    assert (tmp_path / "metrics.jsonl").read_text().count("\n") == 1


def test_without_the_package_the_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match=r"pip install 'azero\[wandb\]'"):
        WandbRun(tmp_path, "x", {})
