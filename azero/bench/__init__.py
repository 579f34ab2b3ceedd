"""Benchmarks: every number in the README comes from here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Rows = Sequence[dict[str, Any]]


def run_bench(what: str, against: str | None) -> None:
    """Run the benchmark `what`, beside the peer `against` where one is named, and print its table.

    Raises:
      ValueError: the benchmark knows no such peer.
    """
    from azero.bench import games, loop, network, replay, search, tpu

    modules: dict[str, Callable[..., Any]] = {
        "games": games.main,
        "search": search.main,
        "network": network.main,
        "loop": loop.main,
        "replay": replay.main,
        "tpu": tpu.main,
    }
    arguments = [] if against is None else ["--against", against]
    modules[what](arguments)
