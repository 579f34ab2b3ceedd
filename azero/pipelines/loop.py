"""The one loop: self-play, learning, evaluation. AlphaGo Zero (gated) and AlphaZero (continuous) are settings of it, Gumbel is another search in it.

The loop is a generator of events and does no logging, saving or plotting. Every random draw is a function of (seed, iteration, dispatch or step), so a run
continued from a checkpoint repeats exactly what an unbroken run does.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.config import Config
from azero.data.replay import Replay
from azero.data.sample import Batch, Samples, unpack
from azero.evaluate.gate import passes_gate
from azero.evaluate.resign import NEVER, ResignCalibration, lowest_points
from azero.games import Game, make
from azero.games.positions import read_positions
from azero.learn.learner import Metrics, TrainState, make_learner, mean_metrics, place_samples
from azero.networks import make_network
from azero.networks.network import Network
from azero.pipelines.events import Evaluated, Event, IterationDone, Phase, Played, SampleGame, Trained
from azero.play.match import make_match
from azero.play.selfplay import Carry, make_selfplay, to_host
from azero.play.trajectory import Assembler, Games
from azero.search import LeafFn, make_search
from azero.search.leaf import averaged_network_leaf, network_leaf
from azero.types import PyTree

# What the iteration's key is folded with, so that the draws of different parts never coincide.
_PLAY, _LEARN, _MATCH, _START = range(4)
START_POSITIONS = "start_positions.txt"
"""In a run's directory: its own copy of the file of start positions, so that it is continued as it was begun."""
SAMPLE_GAMES = 2
"""Finished games per iteration that are handed on for people to look at."""


@dataclass
class RunState:
    """Everything a run is: what a checkpoint keeps."""

    train: TrainState
    best: PyTree
    """Variables of the player that self-play uses under the gate; None without a gate (self-play then uses the newest)."""
    rival: PyTree
    """Variables of the player of the previous evaluation; None where evaluations meet the best player."""
    carry: Carry
    assembler: Assembler
    replay: Replay
    resign: ResignCalibration
    iteration: int = 0
    games: int = 0
    positions: int = 0
    best_iteration: int = 0
    rival_iteration: int = 0

    def arrays(self) -> dict[str, PyTree]:
        """Return what is on the devices."""
        parts = {"train": self.train, "carry": self.carry, "best": self.best, "rival": self.rival}
        return {name: part for name, part in parts.items() if part is not None}


@dataclass
class _Tally:
    """What the games that end in one iteration add up to."""

    games: int = 0
    positions: int = 0
    first_wins: int = 0
    draws: int = 0
    plies: int = 0
    samples: list[SampleGame] = field(default_factory=list)

    def add(self, games: Games, positions: int) -> None:
        first = games.result[:, 0]
        self.games += len(first)
        self.positions += positions
        self.first_wins += int((first > 0).sum())
        self.draws += int((first == 0).sum())
        self.plies += len(games.action)
        self.samples.extend(_sample_games(games, SAMPLE_GAMES - len(self.samples)))


class Loop:
    """The compiled programs of one configuration, and the loop over them."""

    def __init__(self, config: Config, mesh: Mesh, workdir: Path):
        """Build the programs; nothing is compiled yet.

        Raises:
          ValueError: settings do not fit each other or the devices.
        """
        self.config = config
        self.mesh = mesh
        self.workdir = workdir
        mesh_lib.check_divides(config.learner.batch_size, mesh, "learner.batch-size")
        self.game = make(config.game.name, **config.game.options())
        self.starts = None if config.game.start_positions is None else self._read_starts(Path(config.game.start_positions))
        self.network = make_network(config.network, self.game.board_shape, self.game.num_planes, self.game.num_actions)
        leaf = network_leaf(self.game, self.network.infer, config.search.random_symmetry)
        search = make_search(config.search, self.game, leaf)
        fast = config.selfplay.fast_simulations
        fast_search = None if fast is None else make_search(dataclasses.replace(config.search, num_simulations=fast, dirichlet_fraction=0.0), self.game, leaf)
        self.selfplay = make_selfplay(config.selfplay, self.game, search, fast_search, mesh)
        self.learner = make_learner(config.learner, self.network, self.game, mesh)
        self.fold = jax.jit(self.network.fold, out_shardings=mesh_lib.replicated(mesh))
        self.match_search = make_search(match_settings(config), self.game, match_leaf(config, self.game, self.network))

    def _read_starts(self, path: Path) -> PyTree:
        """Return the states[P] that self-play begins with, on every device.

        Raises:
          ValueError: the file cannot be read, or a line is wrong.
        """
        kept = self.workdir / START_POSITIONS
        states = read_positions(self.game, kept if kept.exists() else path)
        return jax.device_put(states, mesh_lib.replicated(self.mesh))

    def fresh_arrays(self) -> dict[str, PyTree]:
        """Return the arrays of a run before its first iteration, as `RunState.arrays` names them."""
        evaluation = self.config.evaluation
        learner_key, games_key = jax.random.split(jax.random.fold_in(jax.random.key(self.config.run.seed), _START))
        train = self.learner.init(learner_key)
        arrays: dict[str, PyTree] = {"train": train, "carry": self.selfplay.init(games_key, self.starts)}
        if evaluation.gate:
            arrays["best"] = self.copy_variables(train)
        elif evaluation.games > 0:
            arrays["rival"] = self.copy_variables(train)
        return arrays

    def state(self, arrays: dict[str, PyTree], cursor: dict[str, int] | None = None) -> RunState:
        """Return the state of a run with `arrays`; the games of the window are those of the replay's `cursor`, or none.

        Raises:
          StorageError: the working directory cannot be written to.
        """
        config = self.config
        slots, process = config.selfplay.policy_slots, jax.process_index()
        return RunState(
            train=arrays["train"],
            best=arrays.get("best"),
            rival=arrays.get("rival"),
            carry=arrays["carry"],
            assembler=Assembler(config.selfplay.num_games // jax.process_count()),
            replay=Replay.open(self.workdir / "replay", self.game, config.replay, slots, state=cursor, process_index=process),
            resign=ResignCalibration(config.selfplay.resign_false_positives, config.selfplay.resign_min_games),
        )

    def batch_shapes(self) -> Batch:
        """Return the shapes of one batch of the learner."""
        count, game = self.config.learner.batch_size, self.game
        slots = min(self.config.selfplay.policy_slots, game.num_actions)
        shape = jax.ShapeDtypeStruct
        samples = Samples(
            frames=shape((count, game.num_frames, game.frame_words), np.uint32),
            to_play=shape((count,), np.uint8),
            policy_index=shape((count, slots), np.int16),
            policy_weight=shape((count, slots), np.float16),
            is_target=shape((count,), np.bool_),
            value=shape((count,), np.float32),
            symmetry=shape((count,), np.uint8),
        )
        return jax.eval_shape(lambda packed: unpack(game, packed), samples)

    def copy_variables(self, train: TrainState) -> PyTree:
        """Return the variables of the current player as arrays of their own (the learner donates its state)."""
        return jax.tree.map(lambda leaf: leaf.copy(), train.variables)

    def iterate(self, state: RunState) -> Iterator[Event]:
        """Run one iteration on `state`, in place. The state is whole, and may be saved, when `IterationDone` has come."""
        key = jax.random.fold_in(jax.random.key(self.config.run.seed), 16 + state.iteration)
        tally = _Tally()
        started = time.monotonic()
        yield from self._play(state, jax.random.fold_in(key, _PLAY), tally)
        played = time.monotonic()
        wait = yield from self._learn(state, tally)
        learned = time.monotonic()
        yield from self._evaluate(state, jax.random.fold_in(key, _MATCH))
        yield self._finish(state, tally, played - started, learned - played, wait)

    def _play(self, state: RunState, key: jax.Array, tally: _Tally) -> Iterator[Event]:
        config = self.config.selfplay
        params = self.fold(state.train.variables if state.best is None else state.best)
        positions = config.num_games * config.moves_per_dispatch
        yield Phase("self-play")
        for dispatch in range(config.dispatches_per_iteration):
            threshold = jnp.float32(state.resign.threshold if config.resign else NEVER)
            state.carry, chunk = self.selfplay.play(params, state.carry, jax.random.fold_in(key, dispatch), threshold, self.starts)
            games = state.assembler.add(to_host(chunk))
            state.replay.add(games)
            state.resign.add(_lowest_points(games))
            tally.add(games, positions)
            yield Played(positions=positions, games=len(games.length))
        state.games += tally.games
        state.positions += tally.positions

    def _learn(self, state: RunState, tally: _Tally) -> Generator[Event, None, float]:
        """Take the iteration's learning steps; returns the seconds spent waiting for data."""
        config = self.config.learner
        steps = self._learning_steps(state, tally)
        if steps == 0:
            return 0.0
        yield Phase("learning")
        collected: list[Metrics] = []
        size = config.batch_size // jax.process_count()
        with state.replay.stream(self.config.run.seed, int(state.train.step), steps, size, functools.partial(place_samples, self.mesh)) as batches:
            for samples in batches:
                state.train, metrics = self.learner.train_step(state.train, unpack(self.game, samples))
                collected.append(metrics)
            wait = batches.waited_s
        yield Trained(steps=steps, metrics=mean_metrics(collected))
        return wait

    def _learning_steps(self, state: RunState, tally: _Tally) -> int:
        """Return how many steps this iteration takes: none before the window is filled, fewer where positions would be seen too often."""
        config = self.config.learner
        if mesh_lib.smallest(int(state.replay.is_ready)) == 0:
            return 0
        if config.max_samples_per_position is None:
            return config.steps_per_iteration
        allowed = config.max_samples_per_position * tally.positions / config.batch_size
        return min(config.steps_per_iteration, int(allowed))

    def _evaluate(self, state: RunState, key: jax.Array) -> Iterator[Event]:
        """Play the match that is due: against the best player (AGZ's gate) or against the player of the previous evaluation."""
        config = self.config.evaluation
        number = state.iteration + 1
        count = config.gate_games if config.gate else config.games
        if config.every == 0 or count == 0 or number % config.every:
            return
        yield Phase(f"match of {count} games")
        opponent = state.best if config.gate else state.rival
        current = self.copy_variables(state.train)
        match = make_match(self.game, self.match_search, self.match_search, count, temperature_moves=config.temperature_moves, mesh=self.mesh)
        games = match(self.fold(current), self.fold(opponent), key)
        opponent_iteration = state.best_iteration if config.gate else state.rival_iteration
        promoted = None
        if config.gate:
            promoted = passes_gate(games.result, config.gate_win_rate)
            if promoted:
                state.best, state.best_iteration = current, number
        else:
            state.rival, state.rival_iteration = current, number
        yield Evaluated(number, opponent_iteration, games.result, promoted)

    def _finish(self, state: RunState, tally: _Tally, selfplay_seconds: float, learner_seconds: float, wait: float) -> IterationDone:
        state.iteration += 1
        return IterationDone(
            iteration=state.iteration,
            games=state.games,
            positions=state.positions,
            steps=int(state.train.step),
            new_games=tally.games,
            new_positions=tally.positions,
            first_wins=tally.first_wins,
            draws=tally.draws,
            mean_length=tally.plies / max(tally.games, 1),
            window_games=state.replay.num_window_games,
            window_positions=state.replay.num_positions,
            resign_threshold=float(state.resign.threshold),
            resign_false_positives=state.resign.false_positives(),
            selfplay_seconds=selfplay_seconds,
            learner_seconds=learner_seconds,
            learner_wait_seconds=wait,
            samples=tally.samples,
            warnings=state.replay.take_warnings(),
        )


def match_settings(config: Config) -> Any:
    """Return the search settings of matches: no noise, no exploration (AGZ methods, 'Evaluator')."""
    simulations = config.evaluation.num_simulations or config.search.num_simulations
    return dataclasses.replace(config.search, num_simulations=simulations, dirichlet_fraction=0.0, gumbel_scale=0.0)


def match_leaf(config: Config, game: Game, network: Network) -> LeafFn:
    """Return how positions are evaluated in matches."""
    if config.evaluation.average_symmetries:
        return averaged_network_leaf(game, network.infer)
    return network_leaf(game, network.infer, config.search.random_symmetry)


def _lowest_points(games: Games) -> np.ndarray:
    """Return the lowest points of the games that were played to the end, for the calibration of the resign threshold."""
    played_out = np.flatnonzero(~games.can_resign)
    lengths, starts = games.length[played_out], games.starts[played_out]
    plies = np.arange(int(lengths.max(initial=0)))
    rows = starts[:, None] + np.minimum(plies[None, :], lengths[:, None] - 1)
    values, best, to_play = (column[rows] for column in (games.root_value, games.best_child_value, games.to_play))
    return lowest_points(games.result[played_out], values.astype(np.float32), best.astype(np.float32), to_play.astype(np.int64), lengths)


def _sample_games(games: Games, count: int) -> list[SampleGame]:
    samples = []
    for start, length, result, resigned in list(zip(games.starts, games.length, games.result, games.resigned, strict=True))[:count]:
        actions = games.action[start : start + length - int(resigned)]
        values = games.root_value[start : start + length]
        samples.append(
            SampleGame(games.frame[start].tolist(), actions.tolist(), [round(float(value), 3) for value in values], float(result[0]), bool(resigned))
        )
    return samples
