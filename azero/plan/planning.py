"""The programs of an experiment, compiled for a slice of TPUs from shapes alone: nothing of real size is ever made."""

from __future__ import annotations

import contextlib
import math
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
from azero.data.sample import unpack
from azero.games.game import Game
from azero.plan.compiled import CompiledProgram, DoesNotFit, compile_program
from azero.plan.cost import Cost, Rates, module_cost
from azero.plan.hlo import COLLECTIVES
from azero.settings import Config
from azero.train.loop import Loop
from azero.types import PyTree

COUNTED = ("gather", "scatter", "while", *COLLECTIVES)
"""Instructions whose number is reported: what TPUs are slow at, loops, and exchanges between devices."""

Announce = Callable[[str], contextlib.AbstractContextManager[None]]
"""Says what is being done for as long as the block runs."""


@dataclass(frozen=True)
class Program:
    """A program of an experiment, before it is compiled."""

    name: str
    lower: Callable[[], Any]
    beside: PyTree
    """Shapes of what else lies on the devices while it runs."""


@dataclass(frozen=True)
class Finding:
    """What the compiler says of one program, for one device."""

    compiled: CompiledProgram
    cost: Cost
    beside_bytes: int
    """What else lies on the device while it runs."""

    @property
    def hbm_bytes(self) -> int:
        """Memory needed while it runs."""
        return self.compiled.memory.total + self.beside_bytes

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of the program text by name, those of `COUNTED` that occur; gather, scatter and while in any case."""
        found = self.compiled.module.counts()
        return {name: found[name] for name in COUNTED if found[name] or name not in COLLECTIVES}


def program_finding(program: Program, topology: Topology) -> Finding:
    """Compile `program` and add up what it does.

    Raises:
      DoesNotFit: it needs more memory than a device has, together with what lies beside it.
    """
    beside = sum(shard_bytes(leaf) for leaf in jax.tree.leaves(program.beside))
    try:
        compiled = compile_program(program.lower(), topology.name)
    except DoesNotFit as error:
        raise DoesNotFit(program.name, error.needed + beside) from error
    return Finding(compiled, module_cost(compiled.module, device_rates(topology)), beside)


def device_rates(topology: Topology) -> Rates:
    """Return what one device of the slice does at most."""
    chip = topology.chip
    return Rates(chip.device_flops, chip.bandwidth / chip.devices, chip.links / chip.devices, topology.num_devices)


def shard_bytes(leaf: Any) -> int:
    """Return the bytes of one device's part of an array that a shape with a sharding describes."""
    dtype = leaf.dtype
    itemsize = 8 if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key) else dtype.itemsize
    return math.prod(leaf.sharding.shard_shape(leaf.shape)) * itemsize


class PlannedPrograms:
    """The programs of one configuration on one slice, as the loop runs them."""

    def __init__(self, config: Config, topology: Topology, plays: bool = True) -> None:
        """Build them; nothing is compiled yet. `plays` is whether positions come from self-play, not from records.

        Raises:
          ValueError: settings do not fit each other or the devices; there is no TPU compiler for the slice.
        """
        self.config = config
        self.mesh = mesh_lib.make_mesh(topology_devices(topology))
        with tempfile.TemporaryDirectory() as folder:
            self._loop = Loop(config, self.mesh, Path(folder))
        self._plays = plays
        everywhere, split = mesh_lib.replicated(self.mesh), mesh_lib.batch_sharded(self.mesh)
        loop = self._loop
        self._key = mesh_lib.shapes(jax.eval_shape(lambda: jax.random.key(0)), everywhere)
        self._train = mesh_lib.shapes(jax.eval_shape(loop.learner.init, self._key), everywhere)
        self._params = mesh_lib.shapes(jax.eval_shape(loop.network.fold, self._train.variables), everywhere)
        self._starts = None if loop.start_states is None else mesh_lib.shapes(loop.start_states, everywhere)
        self._carry = mesh_lib.shapes(jax.eval_shape(loop.selfplay.init, self._key, self._starts), split) if plays else None
        self._samples, self._batch = mesh_lib.shapes(loop.sample_shapes(), split), mesh_lib.shapes(loop.batch_shapes(), split)
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

    def in_order(self) -> list[Program]:
        """Return the programs in the order in which a run comes to them."""
        learning = [self.unpack(), self.train_step()]
        if not self._plays:
            return learning
        return [self.fold(), self.play(), self.step(), *learning, *([self.match()] if self._loop.programs.plays_matches else [])]

    def fold(self) -> Program:
        """Return the program that makes the network of self-play."""
        variables = self._train.variables
        rest = (self._train.opt_state, self._other, self._carry, self._starts)
        return Program("fold", _lowering(self._loop.programs.fold, variables), rest)

    def play(self) -> Program:
        """Return one dispatch of self-play, with its search."""
        threshold = mesh_lib.shapes(jax.ShapeDtypeStruct((), jnp.float32), mesh_lib.replicated(self.mesh))
        lower = _lowering(self._loop.selfplay.play, self._params, self._carry, self._key, threshold, self._starts)
        return Program("self-play", lower, (self._train, self._other))

    def step(self) -> Program:
        """Return the rules alone: a move in every game and its legal moves (a part of self-play, compiled by itself)."""
        count = self.mesh.size * self.local_search_batch
        return Program("game step", lambda: game_step(self.game, self.mesh, count), ())

    def unpack(self) -> Program:
        """Return the program that turns the replay's packed samples into a batch."""
        beside = (self._train, self._other, self._carry, self._starts, [self._samples] * (self.config.replay.prefetch - 1))
        return Program("unpack", _lowering(unpack, self.game, self._samples), beside)

    def train_step(self) -> Program:
        """Return one step of the learner."""
        beside = (self._other, self._carry, self._starts, [self._samples] * self.config.replay.prefetch)
        return Program("train step", _lowering(self._loop.learner.train_step, self._train, self._batch), beside)

    def match(self) -> Program:
        """Return a chunk of moves of the matches between two players of the run."""
        return Program("match", lambda: self.trace_match().lower(), (self._train, self._other, self._carry, self._starts))

    def trace_match(self) -> Any:
        """Return the same program before it is lowered (jax.stages.Traced)."""
        return self._loop.programs.trace_match()

    @property
    def local_search_batch(self) -> int:
        """Games of one device that are searched at once."""
        local = self.config.selfplay.num_games // self.mesh.size
        return min(local, self.config.selfplay.search_batch or local)


def _lowering(function: Any, *arguments: Any) -> Callable[[], Any]:
    """Return what lowers the compiled `function`; the loop knows its programs as plain functions."""
    return lambda: function.lower(*arguments)


def game_step(game: Game, mesh: Mesh, num_games: int) -> Any:
    """Lower a move and the legal moves after it of `num_games` real games, split over the devices of `mesh`."""

    def move(state: PyTree, action: jax.Array) -> tuple[PyTree, jax.Array]:
        state = game.step(state, action)
        return state, game.legal_action_mask(state)

    sharding = mesh_lib.batch_sharded(mesh)
    one = (jax.eval_shape(game.init), jax.ShapeDtypeStruct((), jnp.int32))
    states, actions = mesh_lib.shapes(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_games, *leaf.shape), leaf.dtype), one), sharding)
    per_device = jax.shard_map(jax.vmap(move), mesh=mesh, in_specs=sharding.spec, out_specs=sharding.spec, check_vma=False)
    return jax.jit(per_device).lower(states, actions)


def findings(programs: PlannedPrograms, topology: Topology, announce: Announce) -> dict[str, Finding]:
    """Compile all programs, one after the other, and return what was found, by their names.

    Raises:
      DoesNotFit: a program needs more memory than a device has.
    """
    found = {}
    for program in programs.in_order():
        with announce(f"compiling {program.name} for {topology.name}"):
            found[program.name] = program_finding(program, topology)
    return found
