"""The whole loop in positions per second, beside a plain Pgx and mctx loop: same board, same net, same simulations, one run."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.table import Table

from azero import mesh as mesh_lib
from azero.bench.peers import load_pgx_go, make_peer_loop
from azero.config import Config, NetworkConfig
from azero.experiments import go5
from azero.networks import make_network
from azero.pipelines.events import IterationDone
from azero.pipelines.loop import Loop

COMMAND = "azero bench loop --against pgx"


def bench_config() -> Config:
    """Return the measured setting: 5x5, 4 blocks of 32 filters, Gumbel with 16 simulations, 256 games; one pass over each iteration's positions."""
    config = go5.EXPERIMENT.config
    positions = config.selfplay.num_games * config.selfplay.moves_per_dispatch * config.selfplay.dispatches_per_iteration
    return dataclasses.replace(
        config,
        replay=dataclasses.replace(config.replay, min_positions=1),
        learner=dataclasses.replace(config.learner, steps_per_iteration=positions // config.learner.batch_size),
        evaluation=dataclasses.replace(config.evaluation, every=0),
    )


def measure_ours(config: Config, iterations: int) -> dict[str, Any]:
    """Return positions/s of self-play and of the whole loop, without the iterations that compile."""
    done: list[IterationDone] = []
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(config, mesh_lib.make_mesh(), Path(folder))
        state = loop.state(loop.fresh_arrays())
        for _ in range(iterations + 2):
            done.extend(event for event in loop.iterate(state) if isinstance(event, IterationDone))
    timed = done[2:]
    positions = sum(event.new_positions for event in timed)
    play = sum(event.selfplay_seconds for event in timed)
    learn = sum(event.learner_seconds for event in timed)
    return {"program": "azero", "selfplay": positions / play, "loop": positions / (play + learn)}


def measure_pgx(config: Config, iterations: int) -> dict[str, Any]:
    """Return the same of the plain loop, in one pass over each iteration's positions with the same batch size."""
    size = config.game.size[0]
    env = load_pgx_go(size, config.game.komi)
    network = make_network(_plain(config.network), (size, size), 17, size**2 + 1)
    moves = config.selfplay.moves_per_dispatch * config.selfplay.dispatches_per_iteration
    peer = make_peer_loop(env, network, config.selfplay.num_games, moves, config.search.num_simulations, config.learner.batch_size)
    variables = network.init(jax.random.key(0))
    optimiser_state = peer.optimiser.init(variables["params"])
    states = peer.init(jax.random.key(1))
    play_seconds = learn_seconds = 0.0
    for iteration in range(iterations + 1):
        started = time.perf_counter()
        states, samples = jax.block_until_ready(peer.play(variables, states, jax.random.key(iteration)))
        played = time.perf_counter()
        variables, optimiser_state = jax.block_until_ready(peer.train(variables, optimiser_state, samples, jax.random.key(iteration)))
        if iteration > 0:  # the first one compiles
            play_seconds += played - started
            learn_seconds += time.perf_counter() - played
    positions = iterations * moves * config.selfplay.num_games
    return {"program": "Pgx + mctx", "selfplay": positions / play_seconds, "loop": positions / (play_seconds + learn_seconds)}


def _plain(network: NetworkConfig) -> NetworkConfig:
    return dataclasses.replace(network, convolution="xla")


def run(against: str | None = None, iterations: int = 4) -> list[dict[str, Any]]:
    """Measure the loop, and the plain one of Pgx and mctx where `against` is "pgx".

    Raises:
      ValueError: `against` is another name.
    """
    if against not in (None, "pgx"):
        raise ValueError(f"azero bench loop compares with pgx, not {against!r}")
    config = bench_config()
    rows = [measure_ours(config, iterations)]
    if against:
        rows.append(measure_pgx(config, iterations))
        for name in ("selfplay", "loop"):
            rows[0][f"{name} ratio"] = rows[0][name] / rows[1][name]
    return rows


@dataclass(frozen=True)
class Arguments:
    """Time self-play and the whole loop at 5x5: 4 blocks of 32 filters, 16 simulations, 256 games."""

    against: str | None = None
    """pgx: the plain loop of Pgx and mctx, in the same run."""
    iterations: int = 4
    """Timed iterations, after the ones that compile."""


def main(arguments: list[str] | None = None) -> None:
    """Print the table of `run`."""
    chosen = tyro.cli(Arguments, args=arguments)
    rows = run(chosen.against, chosen.iterations)
    table = Table(title=f"Positions/s at 5x5, {jax.devices()[0].device_kind} ({COMMAND})")
    for column in ("program", "self-play", "whole loop"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for row in rows:
        table.add_row(
            row["program"], *(f"{row[name]:,.0f}" + (f" ({row[name + ' ratio']:.1f} x)" if name + " ratio" in row else "") for name in ("selfplay", "loop"))
        )
    Console().print(table)


if __name__ == "__main__":
    main()
