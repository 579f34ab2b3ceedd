"""Timing of calls, and the devices that they ran on."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax


def best_seconds(call: Callable[[int], Any], repeats: int, calls: int = 1) -> float:
    """Return the seconds of one of `calls` calls in a row, the best of `repeats` measurements after
    one call that compiles; `call` gets the number of the measurement."""
    jax.block_until_ready(call(0))
    best = float("inf")
    for number in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready([call(number) for _ in range(calls)])
        best = min(best, (time.perf_counter() - began) / calls)
    return best


class Rates(NamedTuple):
    """How many calls fit into a second."""

    per_second: float
    per_core_second: float
    """a second of processor time, which a busy machine hardly changes"""


def measure_rates(call: Callable[[int], Any], seconds: float) -> Rates:
    """Return how many calls fit into a second, measured for `seconds` after one that compiles;
    `call` gets the number of the call."""
    jax.block_until_ready(call(0))
    calls, began, worked = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        calls += 1
        jax.block_until_ready(call(calls))
    return Rates(calls / (time.perf_counter() - began), calls / (time.process_time() - worked))


def device_name() -> str:
    """Return number and kind of the devices, such as "1 x NVIDIA H200"."""
    return f"{jax.device_count()} x {jax.devices()[0].device_kind}"
