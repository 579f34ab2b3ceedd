"""The stage of reinforcement learning of AlphaGo (2016): games against a pool of earlier policies.

The pool is stored next to the checkpoints; each member can be used as a player.
"""

import contextlib
import dataclasses
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer, load_variables
from azero.checkpoint.exported import write_exported
from azero.console.tables import count_of
from azero.data.sample import Samples
from azero.settings import Config
from azero.train.alphago2016.reinforce import Baseline, Reinforce, ReinforceState
from azero.train.saving import restore_learner, save_learner
from azero.train.stage import Stage
from azero.types import Array, PyTree

POOL = "pool"
"""Subdirectory with the earlier policies, a directory for each, named by its iteration."""


def make_reinforce_stage(
    policy: Path, pool_every: int, value: Path | None, config: Config, workdir: Path
) -> Stage[ReinforceState]:
    """Return the stage that starts from the policy network in the directory `policy`; its programs
    are not compiled yet. The policy joins the pool every `pool_every` iterations. The baseline is
    the value network in the directory `value`, or 0 (AG16: the first pass). `config` is as
    `Reinforce` reads it; the network is the one in `policy`.

    Raises:
      ValueError: settings do not fit each other or the devices.
      CheckpointError: a network cannot be read.
    """
    start, found = load_variables(policy)
    game = config.game.seen_as(found.game)
    config = dataclasses.replace(config, network=found.network, game=game)
    baseline = None if value is None else _load_baseline(value)
    loop = Reinforce(config, mesh_lib.make_mesh(), start, pool_every, baseline)

    def restore(checkpointer: Checkpointer) -> tuple[ReinforceState, list[str]]:
        state = restore_learner(checkpointer, loop.fresh_state())
        if state.iteration:
            members = [
                _member(workdir, number) for number in range(0, state.iteration + 1, pool_every)
            ]
            other = f"reinforce.pool-every = {pool_every} is not what the run began with"
            if missing := [member for member in members if not member.is_dir()]:
                raise ValueError(
                    f"{missing[0]} is not there: a policy of the pool was deleted, or {other}"
                )
            between = [
                member
                for number in range(state.iteration + 1)
                if (member := _member(workdir, number)).is_dir() and member not in members
            ]
            if between:
                raise ValueError(f"{between[0]} is in the pool: {other}")
            state.pool = [load_variables(member)[0] for member in members]
            state.num_kept = len(state.pool)
        return state, []

    def save(checkpointer: Checkpointer, state: ReinforceState) -> None:
        for number in range(state.num_kept, len(state.pool)):
            iteration = number * pool_every
            write_exported(_member(workdir, iteration), state.pool[number], iteration, config)
        state.num_kept = len(state.pool)
        save_learner(checkpointer, state, state.iteration * config.selfplay.num_games)

    return Stage(
        config=config,
        restore=restore,
        save=save,
        open=lambda state, stop: contextlib.nullcontext(loop.iterate),
        count=lambda state: count_of(int(state.train.step), "step"),
        exports_network=True,
    )


def _member(workdir: Path, iteration: int) -> Path:
    return workdir / POOL / f"{iteration:06d}"


def _load_baseline(directory: Path) -> Baseline:
    """Load a value network.

    Raises:
      ValueError: the directory holds another network.
      CheckpointError: it cannot be read.
    """
    variables, config = load_variables(directory)
    if config.network.name != "value2016":
        raise ValueError(
            f"{directory} holds a network {config.network.name}; a baseline is value2016"
        )
    game = config.game.build()
    network = config.network.build(game)
    fold = jax.jit(network.fold, out_shardings=mesh_lib.replicated(mesh_lib.make_mesh()))
    params = fold(variables)

    @jax.jit
    def expect(params: PyTree, samples: Samples) -> Array:
        to_play = jnp.asarray(samples.to_play, jnp.int32)
        return network.infer(params, jax.vmap(game.observe_frames)(samples.frames, to_play))[1]

    return partial(expect, params)
