"""Running the reinforcement learning of AlphaGo (2016): its pool of earlier selves lives beside the checkpoints, each of them a player by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import load_variables
from azero.checkpoint.exported import write_exported
from azero.console.progress import Progress, working
from azero.data.rows import Row
from azero.settings import Config
from azero.train.alphago2016.reinforce import Baseline, Reinforce, ReinforceState
from azero.train.driver import learn
from azero.train.events import PolicyImproved

POOL = "pool"
"""Directory of the earlier selves inside the working directory, one directory for each, named by its iteration."""


def reinforce(name: str, config: Config, workdir: Path, policy: Path, pool_every: int, value: Path | None, console: Console) -> int:
    """Start or continue the reinforcement learning in `workdir`; return its exit status.

    Args:
      name: of the experiment.
      config: settings as `Reinforce` reads them; the network is the one in `policy`.
      workdir: the run's directory.
      policy: directory of the policy network that the run begins with.
      pool_every: iterations after which the policy joins the pool.
      value: directory of the value network whose output is the baseline; None is a baseline of 0 (AG16: the first pass).
      console: where progress is shown.

    Raises:
      ValueError: settings do not fit each other or the devices.
      CheckpointError: a network or a checkpoint cannot be read, or one cannot be written.
      FloatingPointError: the loss is no longer finite.
    """
    with working("preparing the run", console):
        start, found = load_variables(policy)
        mesh = mesh_lib.make_mesh()
        config = dataclasses.replace(config, network=found.network, game=config.game.seen_as(found.game))
        workdir.mkdir(parents=True, exist_ok=True)
        loop = Reinforce(config, mesh, start, pool_every, None if value is None else _baseline(value))

    kept: set[int] = set()

    def keep(state: ReinforceState) -> None:
        members = {number * pool_every: variables for number, variables in enumerate(state.pool)}
        for iteration in members.keys() - kept:
            write_exported(_member(workdir, iteration), members[iteration], iteration, config)
            kept.add(iteration)

    def resume(state: ReinforceState) -> None:
        kept.update(range(0, state.iteration + 1, pool_every))
        state.pool = [load_variables(_member(workdir, iteration))[0] for iteration in sorted(kept)]

    def meta(state: ReinforceState) -> dict[str, Any]:
        return {"games": state.iteration * config.selfplay.num_games}

    return learn(loop, name, workdir, console, _show(config), resume=resume, keep=keep, meta=meta)


def _member(workdir: Path, iteration: int) -> Path:
    return workdir / POOL / f"{iteration:06d}"


def _show(config: Config) -> Callable[[Any, Progress], Row]:
    def show(event: Any, progress: Progress) -> Row:
        if not isinstance(event, PolicyImproved):
            raise TypeError(f"unknown event {event}")
        total = event.result.total
        return {
            "games": event.iteration * config.selfplay.num_games,
            "score": total.score,
            "score_against_the_first": total.score if event.opponent_iteration == 0 else None,
            "opponent": event.opponent_iteration,
            "pool": event.pool,
            "game_length": event.mean_length,
            "selfplay_seconds": event.play_seconds,
            "learn_seconds": event.learn_seconds,
            "positions_per_second": event.moves / (event.play_seconds + event.learn_seconds),
        }

    return show


def _baseline(directory: Path) -> Baseline:
    """Load a value network.

    Raises:
      ValueError: the directory holds another network.
      CheckpointError: it cannot be read.
    """
    variables, config = load_variables(directory)
    if config.network.name != "value2016":
        raise ValueError(f"{directory} holds a network {config.network.name}; a baseline is value2016")
    game = config.game.build()
    network = config.network.build(game)
    mesh = mesh_lib.make_mesh()
    return Baseline(game, network.infer, jax.jit(network.fold, out_shardings=mesh_lib.replicated(mesh))(variables))
