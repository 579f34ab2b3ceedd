"""Benchmarks: one module for each part of `azero bench`."""

import importlib
from collections.abc import Sequence
from typing import Literal, get_args

Part = Literal[
    "all",
    "games",
    "search",
    "network",
    "inference",
    "train",
    "loop",
    "scaling",
    "replay",
    "engine",
    "rollouts",
    "tpu",
]
"""What `azero bench` measures. Each is a module of this package with a `main`; "all" is
`everything`, which runs the others."""


def run_bench(what: str, arguments: Sequence[str]) -> None:
    """Run the benchmark `what` with its own `arguments`; it prints its table.

    Raises:
      ValueError: there is no such benchmark, or no such peer to compare with.
    """
    if what not in get_args(Part):
        raise ValueError(
            f"unknown benchmark {what!r}; the benchmarks are: {', '.join(get_args(Part))}"
        )
    module = "everything" if what == "all" else what
    importlib.import_module(f"azero.bench.{module}").main(list(arguments))
