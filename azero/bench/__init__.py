"""Benchmarks: every number in the README comes from here."""

from __future__ import annotations

import importlib


def run_bench(what: str, against: str | None) -> None:
    """Run the benchmark `what`, a module of this package, beside the peer `against` where one is named; it prints its table.

    Raises:
      ValueError: the benchmark knows no such peer.
    """
    importlib.import_module(f"azero.bench.{what}").main([] if against is None else ["--against", against])
