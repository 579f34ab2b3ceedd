"""Rollouts a second from the empty board by the rollout policy of AlphaGo (2016), and positions a
second of its 48 planes: `azero bench rollouts`.

AlphaGo played about 1,000 rollouts a second on a CPU thread (AG16 methods, "Rollout policy"). The
games of an almost untrained policy, which are measured, are longer than those of a trained one.
"""

import functools
from dataclasses import dataclass
from typing import Any, cast

import jax
import numpy as np
import tyro

from azero.bench.games import random_positions
from azero.bench.timing import Rates, measure_rates
from azero.config import check_range
from azero.console.tables import make_table
from azero.console.terminal import make_console
from azero.cores import num_cores
from azero.games.batching import repeat_state
from azero.games.game import Game
from azero.games.go.rollouts.rollouts import Rollouts, Starts
from azero.games.go.rules import Go
from azero.networks.rollout import GROUPS, NUM_GROUPS, init_weights

PAPER = 1000.0
"""Rollouts a second and CPU thread (AG16)."""
SPREAD = 0.1
"""Standard deviation of the random weights, so small that games are as long as with an untrained
policy."""
SIZES = (9, 19)
ROLLOUT_BATCHES = (16, 256)
"""The player's batch, and one so large that the call itself costs nothing; the better counts."""
PLANES_BATCHES = (1024,)
ACCELERATOR_BATCHES = (1024, 4096, 16384)
"""Batches of planes; rollouts are played on the host."""
MOVES_BEFORE = {9: 40, 19: 150}
"""Random moves before the planes are measured."""


def measure_rollouts(size: int, batch: int, seconds: float) -> Rates:
    """Return the rates of calls with `batch` games at a time from the empty board."""
    game = Go(size=size)
    random = np.random.default_rng(0)
    weights = {
        name: random.normal(scale=SPREAD, size=group.shape)
        for name, group in init_weights(GROUPS[: NUM_GROUPS["rollout2016"]], 16).items()
    }
    rollouts = Rollouts(game.board_shape, weights)
    starts = Starts.of(jax.device_get(repeat_state(game.init(), batch)), game.num_points)
    return measure_rates(lambda call: rollouts.begin(starts)().leads, seconds)


def measure_planes(size: int, batch: int, seconds: float) -> Rates:
    """Return the rates of calls with all 48 planes of `batch` positions in the middle of random
    games."""
    game = Go(size=size, num_planes=48)
    draw = functools.partial(random_positions, cast(Game, game), batch, MOVES_BEFORE[size])
    states = jax.jit(draw)(jax.random.key(0))
    observe = jax.jit(jax.vmap(game.observe))
    return measure_rates(lambda call: observe(states), seconds)


def run(seconds: float = 5.0) -> list[dict[str, Any]]:
    """Measure both board sizes, print a table, and return its rows."""
    on_cpu = jax.default_backend() == "cpu"
    measured = (
        ("rollouts", measure_rollouts, ROLLOUT_BATCHES),
        ("positions, 48 planes", measure_planes, PLANES_BATCHES if on_cpu else ACCELERATOR_BATCHES),
    )
    rows: list[dict[str, Any]] = []
    for size in SIZES:
        for what, measure, batches in measured:
            batch, rates = max(
                ((batch, measure(size, batch, seconds)) for batch in batches),
                key=lambda found: found[0] * found[1].per_second,
            )
            row = {"size": size, "what": what, "batch": batch}
            row["per_second"] = batch * rates.per_second
            row["per_core_second"] = batch * rates.per_core_second
            rows.append(row)
    columns = ("board", "what", "batch", "per second", "processor time", "of the paper's 1,000")
    lines = [
        (
            f"{row['size']}x{row['size']}",
            row["what"],
            row["batch"],
            f"{row['per_second']:,.0f}",
            f"{row['per_core_second']:,.0f}/s" if on_cpu or row["what"] == "rollouts" else "",
            f"{row['per_core_second'] / PAPER:.2f}"
            if (row["what"], row["size"]) == ("rollouts", 19)
            else "",
        )
        for row in rows
    ]
    title = (
        f"AlphaGo 2016: rollouts on {num_cores()} threads, planes on {jax.devices()[0].device_kind}"
    )
    make_console().print(make_table(title, columns, lines, num_left=2))
    return rows


@dataclass(frozen=True)
class RolloutArguments:
    """Time rollouts and planes of AlphaGo (2016) on 9x9 and 19x19."""

    seconds: float = 5.0
    """Seconds of measuring for each line."""


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(RolloutArguments, args=arguments)
    check_range(chosen, "--", "seconds", 0, above=True)
    run(chosen.seconds)
