"""The one loop: self-play, learning, evaluation. AlphaGo Zero (gated) and AlphaZero (continuous)
are settings of it, Gumbel is another search in it.

The loop is a generator of events and does no logging, saving or plotting. Every random draw is a
function of (seed, iteration, dispatch or step), so a run continued from a checkpoint repeats
exactly what an uninterrupted run does.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.data.replay import Replay
from azero.data.run_files import board_directory
from azero.data.sample import Samples, unpack
from azero.data.settings import ReplayConfig
from azero.data.shard import ShardName
from azero.data.stream import Stream
from azero.evaluate.accuracy import HeldOut, read_held_out, summarise
from azero.games.contract import check_games, check_length
from azero.games.go.rules import Go
from azero.games.positions import read_positions
from azero.learn.learner import TrainState, make_learner, place_samples
from azero.learn.metrics import StepMetrics
from azero.match.score import MatchResult, passes_gate
from azero.selfplay.carry import Carry
from azero.selfplay.resignation import (
    NEVER_RESIGN,
    ResignCalibration,
    check_resignation,
    lowest_points_of_games,
)
from azero.selfplay.selfplay import to_host
from azero.selfplay.targets import policy_room
from azero.selfplay.trajectory import Assembler, Games, Step
from azero.settings import Config
from azero.train.boards import carry_of, check_boards, draw_size, on_other_boards, part_of_board
from azero.train.estimate import positions_per_iteration
from azero.train.events import (
    Evaluated,
    Event,
    IterationDone,
    MatchSkipped,
    Phase,
    SelfplayTally,
)
from azero.train.programs import PLAY, START, Programs, iteration_key
from azero.types import Array, PyTree

START_POSITIONS = "start_positions.txt"
"""In a run's directory: its copy of the file of start positions, so that the run continues with the
same positions."""
REPLAY = "replay"
"""In a run's directory: the games of the window."""


@dataclass
class RunState:
    """The whole state of a run, as a checkpoint stores it."""

    train: TrainState
    best: PyTree
    """Variables of the player that self-play uses under the gate; None without a gate (self-play
    then uses the newest)."""
    rival: PyTree
    """Variables of the player of the previous evaluation; None where evaluations are against the
    best player."""
    carry: Carry
    assembler: Assembler
    replay: Replay
    resign: ResignCalibration
    iteration: int = 0
    games: int = 0
    positions: int = 0
    best_iteration: int = 0
    rival_iteration: int = 0
    others: dict[int, RunState] = field(default_factory=dict)
    """The games on other boards by size (`GoConfig.selfplay_sizes`); they share the learner and
    the players of this state."""

    def arrays(self) -> dict[str, PyTree]:
        """Return the parts that are on the devices."""
        carry = self.carry._replace(kept=None)  # see `Selfplay.new_trees`
        parts = {"train": self.train, "carry": carry, "best": self.best, "rival": self.rival}
        others = {carry_of(size): other.arrays()["carry"] for size, other in self.others.items()}
        return {name: part for name, part in parts.items() if part is not None} | others

    @property
    def every_board(self) -> list[RunState]:
        """The states of all boards."""
        return [self, *self.others.values()]

    @property
    def player(self) -> PyTree:
        """The variables that self-play uses: those of the best player under the gate, otherwise the
        newest."""
        return self.train.variables if self.best is None else self.best

    @property
    def player_iteration(self) -> int:
        """The iteration of `player`."""
        return self.iteration if self.best is None else self.best_iteration


class Challenge(NamedTuple):
    """A match that is due: the current player against the best one (AGZ's gate), or against the
    player of the previous evaluation."""

    iteration: int
    current: PyTree
    """Variables of the current player, arrays of their own."""
    opponent_iteration: int
    opponent: PyTree


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
        check_boards(config)
        check_resignation(config.selfplay, config.game)
        if config.evaluation.gate and config.evaluation.every == 0:
            raise ValueError(
                "evaluation.every 0 with evaluation.gate: no match would ever replace the first "
                "player, and all games would be its own; switch the gate off, too "
                "(--evaluation.no-gate)"
            )
        self.programs = Programs(config, mesh)
        self.game, self.network = self.programs.game, self.programs.network
        self.start_states = self._start_states()
        self.learner = make_learner(config.learner, self.network, self.game, mesh)
        self._held_out: HeldOut | None = None
        self.others = {
            size: Loop(other, mesh, board_directory(workdir, size))
            for size, other in on_other_boards(config).items()
        }
        """The loops of other boards by size; only their self-play and the learner's programs are
        used."""

    def _start_states(self) -> PyTree:
        """Return the states[P] that self-play starts from; None is the start of the game.

        Raises:
          ValueError: a file of positions cannot be read, or a line is wrong; a komi is not allowed.
        """
        game = self.config.game
        if game.start_positions is not None:
            kept = self.workdir / START_POSITIONS
            path = kept if kept.exists() else Path(game.start_positions)
            return read_positions(self.game, path)[1]
        if game.selfplay_komis:
            assert isinstance(self.game, Go)
            return self.game.empty_boards(game.selfplay_komis)
        return None

    def read_records(self) -> None:
        """Read the recorded games that evaluations predict, if there are any.

        Raises:
          ValueError: the file cannot be read, or has no game on the run's board.
        """
        self._held_out = read_held_out(self.config, self.game, self.network, self.mesh)

    @functools.cached_property
    def starts(self) -> PyTree:
        """The states[P] that self-play starts from, on every device; None is the start of the
        game."""
        if self.start_states is None:
            return None
        return mesh_lib.put(self.start_states, mesh_lib.replicated(self.mesh))

    def fresh_arrays(self) -> dict[str, PyTree]:
        """Return the arrays of a run before its first iteration, as `RunState.arrays` names
        them."""
        evaluation = self.config.evaluation
        learner_key, games_key = jax.random.split(
            jax.random.fold_in(jax.random.key(self.config.run.seed), START)
        )
        train = self.learner.init(learner_key)
        arrays: dict[str, PyTree] = {
            "train": train,
            "carry": self.programs.selfplay_at(0).init(games_key, self.starts),
        }
        if evaluation.gate:
            arrays["best"] = self.copy_variables(train)
        elif self.programs.plays_matches:
            arrays["rival"] = self.copy_variables(train)
        for size, loop in self.others.items():
            key = jax.random.fold_in(games_key, size)
            arrays[carry_of(size)] = loop.programs.selfplay_at(0).init(key, loop.starts)
        return arrays

    def make_state(
        self,
        arrays: dict[str, PyTree],
        cursor: dict[str, int] | None = None,
        inherited: Sequence[ShardName] = (),
    ) -> RunState:
        """Return the state of a run with `arrays`; the games of the window are those of the
        replay's `cursor` and, where the number of processes has changed, of the shards that this
        one has inherited.

        Raises:
          StorageError: the working directory cannot be written to.
        """
        config = self.config
        replay = Replay(
            self.workdir / REPLAY,
            self.game,
            _share_of(config.replay, jax.process_count()),
            policy_room(self.game),
            state=cursor,
            process_index=jax.process_index(),
            inherited=inherited,
            has_auxiliary=self.config.learner.needs_auxiliary_targets,
        )
        return RunState(
            train=arrays["train"],
            best=arrays.get("best"),
            rival=arrays.get("rival"),
            carry=arrays["carry"],
            assembler=Assembler(config.selfplay.num_slots // jax.process_count()),
            replay=replay,
            resign=ResignCalibration(
                config.selfplay.resign_false_positives, config.selfplay.resign_min_games
            ),
            others={
                size: loop.make_state(
                    {"train": arrays["train"], "carry": arrays[carry_of(size)]},
                    None if cursor is None else part_of_board(cursor, size),
                )
                for size, loop in self.others.items()
            },
        )

    def copy_variables(self, train: TrainState) -> PyTree:
        """Return a copy of the variables of the current player (the learner donates its state)."""
        return jax.tree.map(lambda leaf: leaf.copy(), train.variables)

    def iterate(self, state: RunState) -> Iterator[Event]:
        """Run one iteration on `state`, in place. The state is complete, and may be saved, once
        `IterationDone` is yielded."""
        tally = SelfplayTally()
        started = time.monotonic()
        size = draw_size(self.config, state.iteration, state.iteration, [None, *self.others])
        loop, board = (self, state) if size is None else (self.others[size], state.others[size])
        board.train, board.best = state.train, state.best
        board.iteration, board.best_iteration = state.iteration, state.best_iteration
        yield from loop._play(board, tally)
        state.games += tally.games
        state.positions += tally.positions
        played = time.monotonic()
        wait = yield from self.learn(state, self.learning_steps(state, tally.positions))
        learned = time.monotonic()
        yield from self._evaluate(state)
        yield from self.validate(state)
        yield self.finish(state, tally, played - started, learned - played, wait, size)

    def _play(self, state: RunState, tally: SelfplayTally) -> Iterator[Event]:
        config = self.config.selfplay
        key = jax.random.fold_in(iteration_key(self.config, state.iteration), PLAY)
        params = self.programs.fold(state.player)
        selfplay = self.programs.selfplay_at(state.iteration)
        positions = config.num_slots * config.moves_per_dispatch
        yield Phase("self-play")
        state.carry = state.carry._replace(kept=selfplay.new_trees())

        def start(dispatch: int) -> Step[Array]:
            threshold = jnp.float32(state.resign.threshold if config.resign else NEVER_RESIGN)
            state.carry, chunk = selfplay.play(
                params, state.carry, jax.random.fold_in(key, dispatch), threshold, self.starts
            )
            return chunk

        following = start(0)
        for dispatch in range(1, config.dispatches_per_iteration + 1):
            chunk = following
            if dispatch < config.dispatches_per_iteration:
                # The devices play on while the host stores the games of `chunk`.
                following = start(dispatch)
            games = state.assembler.add(to_host(chunk), state.player_iteration)
            check_length(self.game, state.assembler.longest)
            self.add_games(state, tally, games, positions)
        state.carry = state.carry._replace(kept=None)
        tally.add_other_hosts()

    def add_games(
        self, state: RunState, tally: SelfplayTally, games: Games, positions: int
    ) -> None:
        """Add finished games to the replay, the calibration and the tally; `positions` were played
        for them.

        Raises:
          ValueError: the games are not as `Game` says.
        """
        check_games(self.game, games.to_play, games.length, games.result)
        state.replay.add(games)
        state.resign.add(mesh_lib.gather_rows(lowest_points_of_games(games)))
        tally.add(games, positions, state.iteration)
        if isinstance(self.game, Go):
            tally.add_openings(games, self.game)

    def learn(self, state: RunState, steps: int) -> Generator[Event, None, float]:
        """Take `steps` learning steps; return the seconds spent waiting for data."""
        if steps == 0:
            return 0.0
        yield Phase("learning")
        collected = StepMetrics(int(state.train.step), self.game.num_actions)
        with self._batches(state, steps) as batches:
            for loop, samples in batches:
                state.train, metrics = loop.learner.train_step(
                    state.train, unpack(loop.game, samples)
                )
                collected.add(metrics)
            wait = batches.waited_s
        yield collected.means()
        return wait

    def _batches(self, state: RunState, steps: int) -> Stream[tuple[Loop, Samples]]:
        """Return the batches of the next steps, each of one board, with the loop of that board."""
        seed, first = self.config.run.seed, int(state.train.step)
        size = self.config.learner.batch_size // jax.process_count()
        loops: dict[int | None, Loop] = {None: self}
        loops |= {board: loop for board, loop in self.others.items()}
        replays: dict[int | None, Replay] = {None: state.replay}
        replays |= {board: other.replay for board, other in state.others.items()}
        samplers = {
            board: replay.sampler(seed, size)
            for board, replay in replays.items()
            if not self.others or replay.count_positions()
        }

        def make(step: int) -> tuple[Loop, Samples]:
            board = draw_size(self.config, state.iteration, step, list(samplers))
            return loops[board], place_samples(self.mesh, samplers[board](step))

        return Stream(make, first, steps, self.config.replay.prefetch)

    def learning_steps(self, state: RunState, new_positions: int) -> int:
        """Return the number of steps for `new_positions`: in proportion to an iteration's, none
        before the window has enough positions, and fewer if positions would be sampled too
        often."""
        config = self.config.learner
        there = sum(board.replay.count_positions() for board in state.every_board)
        enough = there >= max(1, _share_of(self.config.replay, jax.process_count()).min_positions)
        if mesh_lib.min_of_processes(int(enough)) == 0:
            return 0
        steps = config.steps_per_iteration * new_positions // positions_per_iteration(self.config)
        if config.max_samples_per_position is None:
            return steps
        return min(steps, int(config.max_samples_per_position * new_positions / config.batch_size))

    def _evaluate(self, state: RunState) -> Iterator[Event]:
        """Play the match that is due."""
        if not self.match_is_due(state):
            return
        challenge = self.challenge(state)
        if isinstance(challenge, MatchSkipped):
            yield challenge
            return
        yield Phase(f"match of {self.programs.match_games} games")
        current, opponent = challenge.current, challenge.opponent
        yield self.judge(
            state, challenge, self.programs.match(current, opponent, challenge.iteration)
        )

    def validate(self, state: RunState) -> Iterator[Event]:
        """Predict the recorded games with the newest network, if that is due."""
        config, number = self.config, state.iteration + 1
        if self._held_out is not None and config.evaluation.is_due(number, config.run.iterations):
            yield Phase("predicting recorded games")
            params = self.programs.fold(state.train.variables)
            yield summarise(self._held_out.predict(params))

    def match_is_due(self, state: RunState) -> bool:
        """Return whether this iteration ends with a match; the first never does, because nothing
        has been saved before it."""
        number = state.iteration + 1
        return (
            self.programs.plays_matches
            and number > 1
            and number % self.config.evaluation.every == 0
        )

    def challenge(self, state: RunState) -> Challenge | MatchSkipped:
        """Return the match between the player of this iteration and its opponent, or why it is
        skipped: a match of a network against itself is uninformative."""
        opponent = state.rival_iteration, state.rival
        if self.config.evaluation.gate:
            opponent = state.best_iteration, state.best
        challenge = Challenge(state.iteration + 1, self.copy_variables(state.train), *opponent)
        reason = ""
        if int(state.train.step) == 0:
            reason = "nothing has been learned yet"
        elif self.programs.are_equal(challenge.current, challenge.opponent):
            reason = "both are the same network"
        skipped = MatchSkipped(challenge.iteration, challenge.opponent_iteration, reason)
        return skipped if reason else challenge

    def judge(self, state: RunState, challenge: Challenge, result: MatchResult) -> Evaluated:
        """Update the best player or the rival after a match."""
        config, promoted = self.config.evaluation, None
        if not config.gate:
            state.rival, state.rival_iteration = challenge.current, challenge.iteration
        else:
            promoted = passes_gate(result, config.gate_win_rate)
            if promoted:
                state.best, state.best_iteration = challenge.current, challenge.iteration
        return Evaluated(challenge.iteration, challenge.opponent_iteration, result, promoted)

    def finish(
        self,
        state: RunState,
        tally: SelfplayTally,
        selfplay_seconds: float,
        learner_seconds: float,
        wait: float,
        size: int | None = None,
    ) -> IterationDone:
        """Count the iteration and return its summary; `size` is the board that was played, None the
        main one."""
        state.iteration += 1
        resign = (state if size is None else state.others[size]).resign
        boards = [board.replay for board in state.every_board]
        counts = np.asarray(
            [[board.count_window_games(), board.count_positions()] for board in boards]
        )
        window = mesh_lib.gather(counts.sum(axis=0).astype(np.int32)).sum(axis=0, dtype=np.int64)
        warnings = [line for board in state.every_board for line in board.replay.take_warnings()]
        return IterationDone(
            iteration=state.iteration,
            games=state.games,
            positions=state.positions,
            steps=int(state.train.step),
            tally=tally,
            window_games=int(window[0]),
            window_positions=int(window[1]),
            board_size=size,
            resign_threshold=float(resign.threshold),
            resign_false_positives=resign.false_positives(),
            selfplay_seconds=selfplay_seconds,
            learner_seconds=learner_seconds,
            learner_wait_seconds=wait,
            warnings=warnings + why_nothing_is_learned(self.config, *window.tolist()),
        )


def why_nothing_is_learned(config: Config, window_games: int, window_positions: int) -> list[str]:
    """Return why a run with so much in its window will never take a learning step, a line each;
    nothing if it may take some."""
    reasons, learner, replay = [], config.learner, config.replay
    full = replay.window_games * (1 + len(on_other_boards(config)))
    if window_games >= full and window_positions < replay.min_positions:
        reasons.append(
            f"the window is full with {window_positions:,} positions of {window_games:,} games, "
            f"fewer than replay.min-positions {replay.min_positions:,}: lower it, or raise "
            "replay.window-games"
        )
    most, positions = learner.max_samples_per_position, positions_per_iteration(config)
    if most is not None and most * positions < learner.batch_size:
        reasons.append(
            f"learner.max-samples-per-position {most:g} of the {positions:,} positions of an "
            f"iteration is less than a batch: raise it, or lower learner.batch-size "
            f"{learner.batch_size:,}"
        )
    return [f"nothing is learned: {reason}" for reason in reasons]


def _share_of(config: ReplayConfig, hosts: int) -> ReplayConfig:
    """Return the settings of one host's window: all hosts together have the window of `config`."""
    return dataclasses.replace(
        config,
        window_games=-(-config.window_games // hosts),
        min_positions=-(-config.min_positions // hosts),
    )
