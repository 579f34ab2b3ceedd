"""Batch sizes that fit the memory of a device: powers of two, confirmed by the compiler."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from azero.chips import GIB, Topology
from azero.plan.compiled import Announce, DoesNotFit, program_cost, usable_bytes
from azero.plan.programs import PlannedProgram, PlannedPrograms, topology_mesh
from azero.search.batched.tree import tree_bytes
from azero.settings import Config

MARGIN = 0.95
"""Share of the usable memory that `--fit` fills: the rest is for fragmentation and for the copies
of a checkpoint."""


def fit(config: Config, topology: Topology, plays: bool, announce: Announce) -> Config:
    """Return `config` with the largest sizes that fit.

    The sizes are the learner's batch and the games searched at once on a device, each at most what
    `config` asks for. Numbers that the devices do not divide first become powers of two times the
    number of devices.

    Raises:
      ValueError: not even the smallest sizes fit.
    """
    devices, mesh = topology.num_devices, topology_mesh(topology)
    batch_size = _dividing(config.learner.batch_size, devices)
    num_games = _dividing(config.selfplay.num_games, devices)
    config = _with_learner(config, batch_size=batch_size)
    config = _with_selfplay(config, num_games=num_games, search_batch=None)
    limit = MARGIN * usable_bytes(topology)

    def hbm_bytes(
        config: Config, program: Callable[[PlannedPrograms], PlannedProgram], what: str
    ) -> int:
        with announce(f"compiling {what} a device for {topology.name}"):
            try:
                planned = PlannedPrograms(config, mesh, plays)
                return program_cost(program(planned), topology).hbm_bytes
            except DoesNotFit as error:
                return error.needed

    def of_batch(size: int) -> int:
        changed = _with_learner(config, batch_size=size * devices)
        return hbm_bytes(changed, PlannedPrograms.train_step, f"batches of {size}")

    local = largest_fitting(batch_size // devices, of_batch, limit, "learner.batch-size")
    config = _with_learner(config, batch_size=local * devices)
    if not plays:
        return config

    if config.search.kept_room:
        return _fit_games(config, devices, limit, hbm_bytes)

    def of_search(size: int) -> int:
        changed = _with_selfplay(config, search_batch=size)
        return hbm_bytes(changed, PlannedPrograms.play, f"searches of {size}")

    games = num_games // devices
    game = config.game.build()
    trees = tree_bytes(config.search.num_simulations, game, config.search.edge_width)
    # Only powers of two that divide the games of a device.
    start = min(_power_below(limit / trees), games & -games)
    search_batch = largest_fitting(start, of_search, limit, "selfplay.search-batch")
    return _with_selfplay(config, search_batch=search_batch)


def _fit_games(
    config: Config,
    devices: int,
    limit: float,
    hbm_bytes: Callable[[Config, Callable[[PlannedPrograms], PlannedProgram], str], int],
) -> Config:
    """Return `config` with the most games of self-play that fit with their trees, which are kept
    from move to move, and with the dispatches that give as many positions an iteration."""

    def of_games(size: int) -> int:
        changed = _with_selfplay(config, num_games=size * devices)
        return hbm_bytes(changed, PlannedPrograms.play, f"{size} games with their trees")

    search = config.search
    game = config.game.build()
    trees = tree_bytes(search.num_simulations, game, search.edge_width, search.kept_room)
    start = min(_power_below(limit / trees), config.selfplay.num_games // devices)
    games = devices * largest_fitting(start, of_games, limit, "selfplay.num-games")
    selfplay = config.selfplay
    dispatches = -(-selfplay.num_games * selfplay.dispatches_per_iteration // games)
    return _with_selfplay(config, num_games=games, dispatches_per_iteration=dispatches)


def _with_learner(config: Config, **changes: Any) -> Config:
    return dataclasses.replace(config, learner=dataclasses.replace(config.learner, **changes))


def _with_selfplay(config: Config, **changes: Any) -> Config:
    return dataclasses.replace(config, selfplay=dataclasses.replace(config.selfplay, **changes))


def largest_fitting(start: int, needed: Callable[[int], int], limit: float, setting: str) -> int:
    """Return the largest of `start`, its half, and smaller powers of two that fits.

    A size fits if its `needed` bytes are at most `limit`. After a size that is too large, the next
    one is that at which memory would suffice if it grew in proportion to the size.

    Raises:
      ValueError: not even one fits; the message names `setting`.
    """
    size, too_large = start, 2 * start
    fitting = None
    while size < too_large and size != fitting:
        taken = needed(size)
        if taken <= limit:
            fitting, size = size, min(2 * size, start)
            continue
        if size == 1:
            sizes = f"{taken / GIB:.1f} GiB, but only {limit / GIB:.1f} GiB are available"
            advice = "use another chip or a smaller network"
            raise ValueError(f"{setting} of one a device needs {sizes}; {advice}")
        too_large = size
        size = fitting or min(_power_below(size * limit / taken), _power_below(size - 1))
    assert fitting is not None
    return fitting


def _power_below(number: float) -> int:
    """Return the largest power of two that is at most `number`, or one."""
    return 1 << max(0, math.floor(math.log2(max(1.0, number))))


def _dividing(count: int, devices: int) -> int:
    """Return `count` if the devices divide it, otherwise the largest power of two times their
    number that is not larger (at least one each)."""
    return count if count % devices == 0 else devices * _power_below(count / devices)
