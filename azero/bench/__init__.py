"""Benchmarks: every number in the README comes from here."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Literal, get_args

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
      ValueError: there is no such benchmark, or it knows no such peer.
    """
    if what not in get_args(Part):
        raise ValueError(
            f"unknown benchmark {what!r}; the benchmarks are: {', '.join(get_args(Part))}"
        )
    module = "everything" if what == "all" else what
    importlib.import_module(f"azero.bench.{module}").main(list(arguments))


def check_counts(arguments: Any, names: str) -> None:
    """Check that the flags `names`, which are counts or tuples of counts, are at least 1; None is a
    flag that was not given.

    Raises:
      ValueError: one is not; the flag is named.
    """
    for name in names.split():
        given = getattr(arguments, name)
        for value in given if isinstance(given, tuple) else (given,):
            if value is not None and value < 1:
                raise ValueError(f"--{name.replace('_', '-')} is at least 1, not {value}")


def check_seconds(seconds: float) -> None:
    """Check the time of a measurement.

    Raises:
      ValueError: it is not a positive, finite number.
    """
    if not 0.0 < seconds < float("inf"):
        raise ValueError(f"--seconds is a number above 0, not {seconds:g}")
