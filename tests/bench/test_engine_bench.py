"""The engine's benchmark on the smallest nets: its numbers are of the right kind."""

from __future__ import annotations

import dataclasses

from needs import require_module

from azero.bench import engine
from azero.console.tables import results_table

SMALL = engine.EngineArguments(size=7, blocks=1, filters=8, visits=24)


def test_speed() -> None:
    results = engine.run(dataclasses.replace(SMALL, batches=(1,)))
    assert [result.batch for result in results] == [1]
    assert results[0].visits_per_second > 0 and results[0].positions_per_second > 0
    assert 0.0 < results[0].network_share < 1.0 and results[0].mean_batch == 1.0
    assert results_table(results, "title", 0).row_count == 1


def test_speed_through_onnx_runtime() -> None:
    require_module("onnxruntime")
    (result,) = engine.run(dataclasses.replace(SMALL, batches=(4,), against="onnx"))
    assert result.visits_per_second > 0 and 1.0 <= result.mean_batch <= 4.0
