"""Rollouts a second from the empty board by the rollout policy of AlphaGo (2016), and positions a
second of its 48 planes: `azero bench rollouts`.

AlphaGo played about 1,000 rollouts a second on a CPU thread (AG16 methods, "Rollout policy"). The
weights do not matter for the speed of a move; the games of an untrained policy are longer than
those of a trained one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import tyro

from azero.bench import check_seconds
from azero.bench.games import draw
from azero.bench.timing import calls_per_second
from azero.console.tables import make_table
from azero.console.terminal import make_console
from azero.cores import num_cores
from azero.games.go.rollouts.playouts import make_play_out
from azero.games.go.rules import Go
from azero.games.go.state import GoState
from azero.networks.rollout import GROUPS, NUM_GROUPS, init_weights, sum_weights
from azero.types import Array, PyTree

PAPER = 1000.0
"""Rollouts a second and CPU thread (AG16)."""
SIZES = {9: (256, 1024), 19: (64, 128, 256)}
"""Batch sizes that are tried, by board size; the best of them counts."""
ACCELERATOR_BATCHES = (1024, 4096, 16384)
PLANES_BATCHES = (1024,)
MOVES_BEFORE = {9: 40, 19: 150}
"""Random moves before the planes are measured."""


def _stacked(tree: PyTree, batch: int) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[None], (batch, *leaf.shape)), tree)


def measure_rollouts(size: int, batch: int, seconds: float) -> float:
    """Return rollouts a second of `batch` games in parallel from the empty board."""
    game = Go(size=size)
    play_out = jax.jit(make_play_out(game, sum_weights))
    weights = init_weights(GROUPS[: NUM_GROUPS["rollout2016"]], 16)
    states = _stacked(game.init(), batch)
    return batch * calls_per_second(
        lambda call: play_out(weights, jax.random.key(call), states), seconds
    )


def measure_planes(size: int, batch: int, seconds: float) -> float:
    """Return positions a second of all 48 planes, for positions in the middle of random games."""
    game = Go(size=size, num_planes=48)

    def move(state: GoState, word: Array) -> GoState:
        return game.step(state, draw(game.legal_action_mask(state), word))

    words = jax.random.bits(jax.random.key(0), (MOVES_BEFORE[size], batch))
    states = jax.jit(
        lambda states: jax.lax.scan(
            lambda states, word: (jax.vmap(move)(states, word), None), states, words
        )[0]
    )(_stacked(game.init(), batch))
    observe = jax.jit(jax.vmap(game.observe))
    return batch * calls_per_second(lambda call: observe(states), seconds)


def run(seconds: float = 5.0) -> list[dict[str, Any]]:
    """Measure both board sizes, print a table, and return its rows."""
    on_cpu = jax.default_backend() == "cpu"
    threads = num_cores() if on_cpu else 1
    rows: list[dict[str, Any]] = []
    for size, batches in SIZES.items():
        for what, measure, tried in (
            ("rollouts", measure_rollouts, batches),
            ("positions, 48 planes", measure_planes, PLANES_BATCHES),
        ):
            rate, batch = max(
                (measure(size, batch, seconds), batch)
                for batch in (tried if on_cpu else ACCELERATOR_BATCHES)
            )
            rows.append({"size": size, "what": what, "batch": batch, "per_second": rate})
    columns = ("board", "what", "batch", "per second", "per thread", "of the paper's 1,000")
    lines = [
        (
            f"{row['size']}x{row['size']}",
            row["what"],
            row["batch"],
            f"{row['per_second']:,.0f}",
            f"{row['per_second'] / threads:,.0f}",
            f"{row['per_second'] / threads / PAPER:.2f}"
            if (row["what"], row["size"]) == ("rollouts", 19)
            else "",
        )
        for row in rows
    ]
    title = f"AlphaGo 2016 on {jax.devices()[0].device_kind}"
    title += f", {threads} threads" if on_cpu else ""
    make_console().print(make_table(title, columns, lines, num_left=2))
    return rows


@dataclass(frozen=True)
class RolloutArguments:
    """Time rollouts and planes of AlphaGo (2016) on 9x9 and 19x19."""

    seconds: float = 5.0
    """Seconds of measuring for each line."""


def main(arguments: list[str] | None = None) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    seconds = tyro.cli(RolloutArguments, args=arguments).seconds
    check_seconds(seconds)
    run(seconds)


if __name__ == "__main__":
    main()
