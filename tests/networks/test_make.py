"""What "auto" becomes."""

import dataclasses

import pytest

from azero.networks import make
from azero.networks.make import chunk_size, resolve
from azero.networks.settings import ResNetConfig

SMALL = ResNetConfig(blocks=4, filters=8)


def test_cpu_without_bf16_units_takes_minimal_filtering_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(make, "has_bf16_units", lambda: False)
    resolved = resolve(SMALL)
    assert (resolved.convolution, resolved.train_dtype, resolved.inference_dtype) == (
        "winograd",
        "float32",
        "float32",
    )


def test_cpu_with_bf16_units_takes_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "has_bf16_units", lambda: True)
    assert (resolve(SMALL).convolution, resolve(SMALL).inference_dtype) == ("dots", "bfloat16")
    assert resolve(dataclasses.replace(SMALL, inference_dtype="float32")).convolution == "winograd"


def test_accelerators_take_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make.jax, "default_backend", lambda: "tpu")
    assert resolve(SMALL) == dataclasses.replace(SMALL, convolution="xla")


def test_settings_are_taken_as_given() -> None:
    given = dataclasses.replace(SMALL, convolution="dots")
    assert resolve(given) == given


def test_chunks_fit_the_cache() -> None:
    sizes = {
        (size, filters): chunk_size(dataclasses.replace(SMALL, filters=filters), (size, size))
        for size, filters in [(5, 32), (9, 96), (19, 96), (19, 256)]
    }
    assert sizes == {(5, 32): 128, (9, 96): 16, (19, 96): 4, (19, 256): 2}
