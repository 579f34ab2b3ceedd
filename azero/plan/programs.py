"""The programs of an experiment, from shapes alone: no real arrays are made."""

import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.chips import Topology, topology_devices
from azero.data.sample import sample_shapes, unpack
from azero.games.game import Game
from azero.settings import Config
from azero.train.estimate import games_at_once
from azero.train.loop import Loop
from azero.types import PyTree


@dataclass(frozen=True)
class PlannedProgram:
    """A program of an experiment, before it is compiled."""

    name: str
    lower: Callable[[], Any]
    resident: PyTree
    """Shapes of the other arrays on the devices while it runs."""


def topology_mesh(topology: Topology) -> Mesh:
    """Return the mesh of a slice, which programs can be compiled for but not run on.

    Raises:
      ValueError: there is no TPU compiler for the slice.
    """
    return mesh_lib.make_mesh(topology_devices(topology))


class PlannedPrograms:
    """The programs of one configuration on the devices of one mesh, as the loop runs them."""

    def __init__(self, config: Config, mesh: Mesh, plays: bool = True) -> None:
        """Build them; nothing is compiled yet.

        `plays` is whether positions come from self-play, not from records.

        Raises:
          ValueError: settings do not fit each other or the devices.
        """
        self.config = config
        self.mesh = mesh
        with tempfile.TemporaryDirectory() as folder:
            self._loop = loop = Loop(config, mesh, Path(folder))
        self._plays = plays
        whole = functools.partial(mesh_lib.shapes, sharding=mesh_lib.replicated(mesh))
        split = functools.partial(mesh_lib.shapes, sharding=mesh_lib.batch_sharded(mesh))
        self._split = split
        self._key = whole(jax.eval_shape(lambda: jax.random.key(0)))
        self._threshold = whole(jax.ShapeDtypeStruct((), jnp.float32))
        self._train = whole(jax.eval_shape(loop.learner.init, self._key))
        self._params = whole(jax.eval_shape(loop.network.fold, self._train.variables))
        self._starts = None if loop.start_states is None else whole(loop.start_states)
        self._carry = None
        if plays:
            self._carry = split(
                jax.eval_shape(loop.programs.selfplay_at(0).init, self._key, self._starts)
            )
        samples = sample_shapes(
            loop.game, config.learner.batch_size, config.learner.needs_auxiliary_targets
        )
        self._samples = split(samples)
        self._batch = split(jax.eval_shape(lambda packed: unpack(loop.game, packed), samples))
        keeps_another = plays and (config.evaluation.gate or config.evaluation.games > 0)
        self._other = self._train.variables if keeps_another else None

    @property
    def game(self) -> Game:
        """The rules."""
        return self._loop.game

    @property
    def parameters(self) -> PyTree:
        """Shapes of what is learned."""
        return self._train.params

    def in_order(self) -> list[PlannedProgram]:
        """Return the programs in the order in which a run comes to them."""
        learning = [self.unpack(), self.train_step()]
        if not self._plays:
            return learning
        matches = [self.match()] if self._loop.programs.plays_matches else []
        return [self.fold(), self.play(), self.step(), *learning, *matches]

    def fold(self) -> PlannedProgram:
        """Return the program that makes the network of self-play."""
        resident = (self._train.opt_state, self._other, self._carry, self._starts)
        return PlannedProgram(
            "fold", _lowering(self._loop.programs.fold, self._train.variables), resident
        )

    def play(self) -> PlannedProgram:
        """Return one dispatch of self-play, with its search: of the last iteration, where their
        simulations differ."""
        selfplay = self._loop.programs.selfplay_at(self.config.run.iterations - 1)
        assert self._carry is not None
        carry = self._carry._replace(kept=self._split(jax.eval_shape(selfplay.new_trees)))
        arguments = (self._params, carry, self._key, self._threshold, self._starts)
        lower = _lowering(selfplay.play, *arguments)
        return PlannedProgram("self-play", lower, (self._train, self._other))

    def step(self) -> PlannedProgram:
        """Return the rules alone: a move in every game that a device searches, and what is legal.

        It is a part of self-play, compiled by itself.
        """
        count = self.mesh.size * games_at_once(self.config, self.mesh.size)
        return PlannedProgram("game step", lambda: lower_game_step(self.game, self.mesh, count), ())

    def unpack(self) -> PlannedProgram:
        """Return the program that turns the replay's packed samples into a batch."""
        waiting = [self._samples] * (self.config.replay.prefetch - 1)
        resident = (self._train, self._other, self._carry, self._starts, waiting)
        return PlannedProgram("unpack", _lowering(unpack, self.game, self._samples), resident)

    def train_step(self) -> PlannedProgram:
        """Return one step of the learner."""
        waiting = [self._samples] * self.config.replay.prefetch
        lower = _lowering(self._loop.learner.train_step, self._train, self._batch)
        return PlannedProgram(
            "train step", lower, (self._other, self._carry, self._starts, waiting)
        )

    def match(self) -> PlannedProgram:
        """Return a chunk of moves of the matches between two players of the run."""
        resident = (self._train, self._other, self._carry, self._starts)
        return PlannedProgram("match", lambda: self.trace_match().lower(), resident)

    def trace_match(self) -> Any:
        """Return the same program before it is lowered (jax.stages.Traced)."""
        return self._loop.programs.trace_match()


def _lowering(function: Any, *arguments: Any) -> Callable[[], Any]:
    """Return what lowers the compiled `function`; the loop's programs are plain functions."""
    return lambda: function.lower(*arguments)


def lower_game_step(game: Game, mesh: Mesh, num_games: int) -> Any:
    """Lower a move and the legal moves after it of `num_games` games, split over the devices."""

    def move(state: PyTree, action: jax.Array) -> tuple[PyTree, jax.Array]:
        state = game.step(state, action)
        return state, game.legal_action_mask(state)

    def batched(leaf: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((num_games, *leaf.shape), leaf.dtype)

    sharding = mesh_lib.batch_sharded(mesh)
    one = (jax.eval_shape(game.init), jax.ShapeDtypeStruct((), jnp.int32))
    states, actions = mesh_lib.shapes(jax.tree.map(batched, one), sharding)
    spec = sharding.spec
    split = jax.shard_map(jax.vmap(move), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return jax.jit(split).lower(states, actions)
