"""Several board sizes in one run (`GoConfig.selfplay_sizes`): which is played and learned when, and
how their parts of a checkpoint are named."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeVar

import jax
import numpy as np

from azero.games.go.settings import GoConfig
from azero.settings import Config

V = TypeVar("V")

BOARD_DRAWS = 7
"""Mixed into the seed, so that draws of board sizes are independent of all others."""


def on_other_boards(config: Config) -> dict[int, Config]:
    """Return the settings of self-play on a run's other boards, by size; without evaluations."""
    if not isinstance(config.game, GoConfig):
        return {}
    evaluation = dataclasses.replace(config.evaluation, gate=False, every=0, records=None)
    return {
        size: dataclasses.replace(config, game=config.game.on_board(size), evaluation=evaluation)
        for size in config.game.size_shares(0)
    }


def draw_size(
    config: Config, iteration: int, number: int, allowed: Sequence[int | None]
) -> int | None:
    """Draw the board size of iteration or batch `number` by the shares after `iteration`
    iterations. None is the run's own size, and the result if no other is allowed.

    An iteration allows every size, the run's own included; a batch those with positions.
    """
    game = config.game
    if not isinstance(game, GoConfig) or not game.selfplay_sizes:
        return None
    of_others = game.size_shares(iteration)
    shares: dict[int | None, float] = {size: share for size, share in of_others.items()}
    shares[None] = max(0.0, 1.0 - sum(of_others.values()))
    sizes = [size for size in shares if size in allowed]
    weights = np.asarray([shares[size] for size in sizes])
    if not weights.sum():
        return sizes[-1] if sizes else None
    random = np.random.default_rng([config.run.seed, BOARD_DRAWS, number])
    return sizes[int(random.choice(len(sizes), p=weights / weights.sum()))]


def check_boards(config: Config) -> None:
    """Check the settings of a run with several boards.

    Raises:
      ValueError: the network fits only one board, or the run has several processes.
    """
    if not on_other_boards(config):
        return
    if not config.network.FITS_ANY_BOARD:
        raise ValueError(
            f"game.selfplay-sizes needs a network that fits any board (network.name pooled); "
            f"{config.network.name} fits one"
        )
    if jax.process_count() > 1:
        raise ValueError("game.selfplay-sizes: a run of several processes has one board size")


def carry_of(size: int) -> str:
    """Return the name of the games on another board in a checkpoint."""
    return f"{_board_prefix(size)}carry"


def _board_prefix(size: int) -> str:
    return f"board{size}."


def part_of_board(values: Mapping[str, V], size: int) -> dict[str, V]:
    """Return the values of a board by their own names; the inverse of `for_board`."""
    return part_of(values, _board_prefix(size))


def for_board(values: Mapping[str, V], size: int) -> dict[str, V]:
    """Return the values by names that include the board."""
    return with_prefix(values, _board_prefix(size))


def part_of(values: Mapping[str, V], prefix: str) -> dict[str, V]:
    """Return the values whose names begin with `prefix`, by names without it; the inverse of
    `with_prefix`."""
    names = [name for name in values if name.startswith(prefix)]
    return {name.removeprefix(prefix): values[name] for name in names}


def with_prefix(values: Mapping[str, V], prefix: str) -> dict[str, V]:
    """Return the values by names that begin with `prefix`."""
    return {prefix + name: value for name, value in values.items()}
