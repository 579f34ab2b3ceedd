"""Batch sizes that fit the memory of a device: powers of two, guessed from what the compiler said of others, confirmed by the compiler."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from azero.chips import Topology
from azero.plan.compiled import DoesNotFit
from azero.plan.planning import Announce, PlannedPrograms, Program, program_finding
from azero.search.batched.tree import tree_bytes
from azero.settings import Config

USABLE = 31 / 32
"""Share of a device's memory that programs may take: the compiler keeps 0.25 of 16 GiB for itself on v5e, 0.75 of 32 GiB on v6e (its own messages)."""
MARGIN = 0.95
"""Share of that which `--fit` fills: the rest is for what fragments and for the copies of a checkpoint."""


def usable_bytes(topology: Topology) -> float:
    """Return the memory of a device that programs may take."""
    return USABLE * topology.chip.device_hbm


def fit(config: Config, topology: Topology, plays: bool, announce: Announce) -> Config:
    """Return `config` with the largest sizes that fit: the learner's batch up to its own, the games of a device that are searched at once up to all of them.

    Numbers that do not divide over the devices become powers of two times the devices first.

    Raises:
      ValueError: not even the smallest sizes fit.
    """
    devices = topology.num_devices
    batch_size, num_games = _dividing(config.learner.batch_size, devices), _dividing(config.selfplay.num_games, devices)
    config = dataclasses.replace(config, learner=dataclasses.replace(config.learner, batch_size=batch_size))
    config = dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, num_games=num_games, search_batch=None))

    def needs(with_size: Callable[[int], Config], program: Callable[[PlannedPrograms], Program], what: str) -> Callable[[int], int]:
        def needed(size: int) -> int:
            with announce(f"compiling {what} of {size} a device for {topology.name}"):
                try:
                    return program_finding(program(PlannedPrograms(with_size(size), topology, plays)), topology).hbm_bytes
                except DoesNotFit as error:
                    return error.needed

        return needed

    def with_batch(size: int) -> Config:
        return dataclasses.replace(config, learner=dataclasses.replace(config.learner, batch_size=size * devices))

    def with_search(size: int) -> Config:
        return dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, search_batch=size))

    limit = MARGIN * usable_bytes(topology)
    config = with_batch(largest_fitting(batch_size // devices, needs(with_batch, PlannedPrograms.train_step, "batches"), limit, "learner.batch-size"))
    if not plays:
        return config
    local = num_games // devices
    trees = tree_bytes(config.search.num_simulations, config.game.build(), config.search.edge_width)
    start = min(_power_below(limit / trees), local & -local)  # only powers of two that divide the games of a device
    return with_search(largest_fitting(start, needs(with_search, PlannedPrograms.play, "searches"), limit, "selfplay.search-batch"))


def largest_fitting(start: int, needed: Callable[[int], int], limit: float, setting: str) -> int:
    """Return the largest of `start`, its half, and smaller powers of two whose `needed` bytes are at most `limit`.

    After a size that is too large, the next one is where the memory would suffice if all of it grew in proportion.

    Raises:
      ValueError: one is too many; `setting` is named.
    """
    size, too_large = start, 2 * start
    fitting = None
    while size < too_large and size != fitting:
        taken = needed(size)
        if taken <= limit:
            fitting, size = size, min(2 * size, start)
            continue
        if size == 1:
            raise ValueError(
                f"{setting} of one a device needs {taken / 2**30:.1f} GiB, of {limit / 2**30:.1f} GiB there; take another chip or a smaller network"
            )
        too_large = size
        size = fitting or min(_power_below(size * limit / taken), _power_below(size - 1))
    assert fitting is not None
    return fitting


def _power_below(number: float) -> int:
    """Return the largest power of two that is at most `number`, or one."""
    return 1 << max(0, math.floor(math.log2(max(1.0, number))))


def _dividing(count: int, devices: int) -> int:
    """Return `count` if it divides over the devices, else the largest power of two times their number that is not larger (at least one each)."""
    return count if count % devices == 0 else devices * _power_below(count / devices)
