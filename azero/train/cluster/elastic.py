"""The loop with self-play and matches in workers: AlphaGo Zero's three parts in parallel (AGZ
methods, 'Self-play training pipeline').

Workers play and send whole games; the learner adds them to the run's replay, learns, and sends its
player to the workers; a worker plays the matches while the learner learns. A
`azero.train.cluster.workers.WorkerPool` carries games, players and results between them.

An iteration has the same number of new positions, and then of steps, as in a single process. So how
often a position is learned from does not depend on the number and speed of the workers; only the
age of the networks that played does, and it is recorded with every game.
"""

import dataclasses
import os
import socket
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from azero import mesh as mesh_lib
from azero.compilation_cache import use_compilation_cache
from azero.games.contract import check_length
from azero.match.score import MatchResult
from azero.networks.make import resolve
from azero.networks.settings import ConvolutionalConfig
from azero.selfplay.resignation import NEVER_RESIGN
from azero.selfplay.selfplay import to_host
from azero.selfplay.trajectory import Assembler, Games
from azero.settings import Config
from azero.train.estimate import positions_per_iteration
from azero.train.events import Event, MatchSkipped, Phase, SelfplayTally
from azero.train.loop import Challenge, Loop, RunState
from azero.train.programs import WORKER, Programs
from azero.types import PyTree

if TYPE_CHECKING:
    from azero.train.cluster.workers import WorkerPool

PATIENCE_SECONDS = 1.0
"""Time the learner waits for games before it checks whether to stop and reports the number of
workers."""


class Worker:
    """Self-play games and matches on the devices of one process, which is an actor of Ray. Its
    unfinished games exist nowhere else."""

    def __init__(self, config: Config, starts: PyTree, platform: str, iteration: int, number: int):
        """Begin `selfplay.num_games` games from `starts`, states[P] or None. `platform` is JAX's
        name for the learner's kind of device, for which the network's settings were chosen; the
        run's iterations so far and the worker's number make its random draws its own.

        Raises:
          ValueError: settings do not fit the devices of this process.
        """
        use_compilation_cache()
        mesh = mesh_lib.make_mesh()
        self._programs = Programs(_fit_to_devices(config, platform), mesh)
        self._starts = None if starts is None else jax.device_put(starts, mesh_lib.replicated(mesh))
        root = jax.random.fold_in(jax.random.key(config.run.seed), WORKER)
        games_key, self._key = jax.random.split(
            jax.random.fold_in(jax.random.fold_in(root, iteration), number)
        )
        self._carry = self._programs.selfplay_at(0).init(games_key, self._starts)
        self._assembler = Assembler(config.selfplay.num_slots)
        self._dispatches = 0
        self._iteration = -1
        self._params: PyTree = None

    def describe(self) -> str:
        """Return host and devices; the answer shows that the worker is ready."""
        here = f"{socket.gethostname()}, process {os.getpid()}"
        return f"{here}, {jax.device_count()} x {jax.devices()[0].device_kind}"

    def play(self, iteration: int, variables: PyTree, threshold: float, done: int) -> Games:
        """Play one dispatch of all games with the player of `iteration`, which under a gate is
        below the run's `done` iterations; return the games that ended in it."""
        selfplay = self._programs.selfplay_at(done)
        if iteration != self._iteration:
            self._params, self._iteration = self._programs.fold(variables), iteration
            self._carry = self._carry._replace(kept=None)  # frees them before new ones are made
            self._carry = self._carry._replace(kept=selfplay.new_trees())
        key = jax.random.fold_in(self._key, self._dispatches)
        self._dispatches += 1
        self._carry, chunk = selfplay.play(
            self._params, self._carry, key, jnp.float32(threshold), self._starts
        )
        games = self._assembler.add(to_host(chunk), iteration)
        check_length(self._programs.game, self._assembler.longest)
        return games

    def match(self, iteration: int, current: PyTree, opponent: PyTree) -> MatchResult:
        """Play the match that is due after `iteration` iterations; return the result of the current
        player."""
        return self._programs.match(current, opponent, iteration)


class Elastic:
    """The learner's loop, with a pool for self-play and matches."""

    def __init__(self, loop: Loop, pool: "WorkerPool", should_stop: Callable[[], bool]):
        """Take the programs of `loop`, of a run of one process.

        Once `should_stop()`, an iteration ends with the games received so far, or the first ones.
        """
        self._loop = loop
        self._pool = pool
        self._should_stop = should_stop
        self._quota = positions_per_iteration(loop.config)
        self._surplus = 0
        self._challenge: Challenge | None = None
        self._collected = time.monotonic()

    def iterate(self, state: RunState) -> Iterator[Event]:
        """Run one iteration on `state`, in place. The state is complete, and may be saved, once
        `IterationDone` is yielded."""
        tally = SelfplayTally()
        before, started = self._collected, time.monotonic()
        new_positions = yield from self._collect(state, tally)
        self._collected = collected = time.monotonic()
        wait = yield from self._loop.learn(state, self._loop.learning_steps(state, new_positions))
        learned = time.monotonic()
        yield from self._evaluate(state)
        yield from self._loop.validate(state)
        # Workers play all the time, so the games were played since the last ones arrived. The
        # learner also waits for games.
        done = self._loop.finish(
            state, tally, collected - before, learned - collected, wait + collected - started
        )
        yield dataclasses.replace(done, warnings=done.warnings + self._pool.take_messages())

    def _collect(self, state: RunState, tally: SelfplayTally) -> Generator[Event, None, int]:
        """Receive games until they have an iteration's positions; return the number of positions of
        this iteration.

        Surplus positions count for the next iteration. Positions count when their game is complete,
        so those of games lost with a worker never do.
        """
        threshold = state.resign.threshold if self._loop.config.selfplay.resign else NEVER_RESIGN
        self._pool.publish(state.player_iteration, state.player, threshold, state.iteration)
        shown = ""
        while self._surplus < self._quota and not (self._surplus and self._should_stop()):
            if shown != (shown := self._pool.describe()):
                yield Phase(f"self-play by {shown}")
            games = self._pool.receive(PATIENCE_SECONDS)
            if games is not None:
                games = games._replace(number=state.assembler.take_numbers(len(games.length)))
                self._surplus += len(games.action)
                self._loop.add_games(state, tally, games, len(games.action))
        state.games += tally.games
        state.positions += tally.positions
        new_positions = min(self._surplus, self._quota)
        self._surplus -= new_positions
        return new_positions

    def _evaluate(self, state: RunState) -> Iterator[Event]:
        """Start the match that is due, and process the result of the previous one; wait for that
        result if the next match is due or the run ends."""
        is_due = self._loop.match_is_due(state)
        is_last = state.iteration + 1 == self._loop.config.run.iterations
        yield from self._settle(state, wait=is_last or is_due)
        if is_due and not self._should_stop():
            challenge = self._loop.challenge(state)
            if isinstance(challenge, MatchSkipped):
                yield challenge
                return
            self._challenge = challenge
            self._pool.start_match(challenge)
            yield from self._settle(state, wait=is_last)

    def _settle(self, state: RunState, wait: bool) -> Iterator[Event]:
        """Process the result of the current match, if it has arrived."""
        if self._challenge is None:
            return
        if wait:
            yield Phase(
                f"match of iteration {self._challenge.iteration}, by {self._pool.describe()}"
            )
        result = self._pool.receive_result(0.0)
        while result is None and wait and not self._should_stop():
            result = self._pool.receive_result(PATIENCE_SECONDS)
        if result is not None:
            challenge, self._challenge = self._challenge, None
            yield self._loop.judge(state, challenge, result)


def _fit_to_devices(config: Config, platform: str) -> Config:
    """Return `config` with the network's convolution chosen for the devices here, if they are of
    another kind than the learner's."""
    if jax.default_backend() == platform or not isinstance(config.network, ConvolutionalConfig):
        return config
    return dataclasses.replace(
        config, network=resolve(dataclasses.replace(config.network, convolution="auto"))
    )
