"""The engine's benchmark on the smallest nets: its numbers are of the right kind."""

from __future__ import annotations

from needs import require_module

from azero.bench import engine
from azero.console.tables import results_table
from azero.networks.settings import ResNetConfig


def test_speed() -> None:
    results = engine.run(ResNetConfig(blocks=1, filters=8), size=7, batches=(1,), visits=24)
    assert [result.batch for result in results] == [1]
    assert results[0].visits_per_second > 0 and results[0].positions_per_second > 0
    assert 0.0 < results[0].network_share < 1.0 and results[0].mean_batch == 1.0
    assert results_table(results, "title", 0).row_count == 1


def test_speed_through_onnx_runtime() -> None:
    require_module("onnxruntime")
    network = ResNetConfig(blocks=1, filters=8)
    (result,) = engine.run(network, size=7, batches=(4,), visits=24, against="onnx")
    assert result.visits_per_second > 0 and 1.0 <= result.mean_batch <= 4.0
