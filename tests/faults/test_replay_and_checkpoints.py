"""A state machine over replay, checkpoints, crashes and numbers of processes: no game that a
checkpoint needs is lost, none is there twice, in the right order."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from disk import Crash, Disk
from flax import struct
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from azero import mesh as mesh_lib
from azero.checkpoint import checkpointer
from azero.checkpoint.store import count_processes, host_path, list_iterations, root_directory
from azero.data import replay as replay_module
from azero.data.replay import Replay
from azero.data.settings import ReplayConfig
from azero.selfplay.resignation import ResignCalibration
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import Assembler, Games
from azero.settings import Config
from azero.train import saving
from azero.train.saving import check_complete, restore_selfplay, save_selfplay
from azero.train.settings import CheckpointConfig

GAME: Any = SimpleNamespace(
    name="toy", frame_words=1, num_frames=2, num_actions=3, num_symmetries=1
)
SLOTS = 12
"""Games at a time, which 1, 2 and 3 processes divide."""
DISK = Disk()
LARGE = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


class Inline:
    """A pool whose work is done when it is handed in, so that a run of the machine can be
    repeated."""

    def __init__(self, *arguments: Any, **names: Any) -> None:
        pass

    def submit(self, work: Any, *arguments: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(work(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, **names: Any) -> None:
        pass

    def __enter__(self) -> Inline:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


@struct.dataclass(frozen=False)
class Train:
    """A learner's state without a network."""

    step: int


class World(SimpleNamespace):
    """`jax` as one of several processes sees it."""

    process = 0
    count = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)

    def process_index(self) -> int:
        return self.process

    def process_count(self) -> int:
        return self.count


WORLD = World()


@pytest.fixture(autouse=True)
def several_processes(monkeypatch):
    """Let this process stand for several, one after the other; their collectives are left out."""
    for module in (checkpointer, saving):
        monkeypatch.setattr(module, "jax", WORLD)
    for module in (checkpointer, replay_module):
        monkeypatch.setattr(module, "ThreadPoolExecutor", Inline)
    monkeypatch.setattr(mesh_lib, "is_lead", lambda: WORLD.process == 0)
    monkeypatch.setattr(
        mesh_lib,
        "process_slice",
        lambda count: slice(
            WORLD.process * count // WORLD.count, (WORLD.process + 1) * count // WORLD.count
        ),
    )
    yield
    DISK.release()


def make_games(first: int, count: int) -> Games:
    """Make `count` games of two moves; a frame says which game it is of, and which move."""
    number = np.repeat(np.arange(first, first + count), 2)
    ply = np.tile(np.array([0, 1], np.uint8), count)
    return Games(
        frame=(10 * number + ply).astype(np.uint32)[:, None],
        to_play=ply,
        action=np.zeros(2 * count, np.int16),
        policy_count=1 + ply.astype(np.int32),
        is_target=np.ones(2 * count, bool),
        root_value=np.zeros(2 * count, np.float16),
        best_child_value=np.zeros(2 * count, np.float16),
        surprise=np.zeros(2 * count, np.float16),
        is_random=np.zeros(2 * count, bool),
        length=np.full(count, 2, np.int32),
        result=np.tile(np.array([1, -1], np.float32), (count, 1)),
        resigned=np.zeros(count, bool),
        can_resign=np.zeros(count, bool),
        number=np.arange(first, first + count, dtype=np.int64),
        network=np.ones((count, 2), np.int32),
        policy=words_of(np.tile([0, 1, 2], count), np.ones(3 * count, np.uint16)),
    )


def games_in(replay: Replay, whole_shards: bool = False) -> list[int]:
    """Return the games of a window, or of the shards that it lies in, oldest first; every row is
    looked at."""
    replay.count_positions()  # what is being written is in the window from here on
    window = replay._window.snapshot()
    if window.first == window.last:
        return []
    first = int(window.shard_first[0]) if whole_shards else window.first
    rows, _, policy = replay._window.gather(window, np.arange(first, window.last), 1)
    assert ((policy != 0).sum(axis=1) == rows["policy_count"]).all() and (
        rows["policy_count"] == 1 + rows["ply"]
    ).all()
    frames = rows["frame"][:, 0].tolist()
    assert [frame % 10 for frame in frames] == [0, 1] * (len(frames) // 2)
    return [frame // 10 for frame in frames[::2]]


class Machine(RuleBasedStateMachine):
    """A run of up to three processes that plays, saves, crashes and goes on."""

    @initialize(window=st.sampled_from([6, 1000]), keep=st.integers(1, 3), count=st.integers(1, 3))
    def begin(self, window: int, keep: int, count: int) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="machine-"))
        self.workdir = self.top / "run"
        self.workdir.mkdir()
        DISK.watch(self.workdir.parent)
        os.fsync(fd := os.open(self.top, os.O_RDONLY))
        os.close(fd)
        self.window = window
        self.config = Config(
            checkpoint=CheckpointConfig(every=1, keep=keep),
            selfplay=SelfplayConfig(num_games=SLOTS),
        )
        self.saved: dict[
            int, tuple[int, list[list[int]], int, set[int]]
        ] = {}  # by iteration: processes, window of each, games so far
        self.certain = self.in_flight = 0
        self.states: list[Any] = []
        self.checkpointers: list[checkpointer.Checkpointer] = []
        self.next_game = 0
        self.start(count)

    def start(self, count: int) -> None:
        """Open everything as `count` processes do."""
        WORLD.count = count
        self.states, self.checkpointers = [], []
        for process in range(count):
            WORLD.process = process
            check_complete(self.workdir)
            own = checkpointer.Checkpointer(self.workdir, self.config)
            if process:  # Orbax's own part is the lead's
                own._manager.close()
                own._manager = SimpleNamespace(
                    save=lambda *a, **k: None, close=lambda: None, reload=lambda: None
                )
            self.checkpointers.append(own)
            loop: Any = SimpleNamespace(
                config=self.config,
                workdir=self.workdir,
                game=GAME,
                mesh=None,
                fresh_arrays=lambda: self.arrays(0),
                make_state=self.open,
            )
            self.states.append(restore_selfplay(own, loop)[0])
        WORLD.process = 0
        self.check_restored()

    def arrays(self, iteration: int) -> dict[str, Any]:
        return {"train": {"w": np.full(3, iteration, np.float32)}}

    def open(self, arrays: Any, cursor: Any = None, inherited: Any = ()) -> Any:
        """Stand in for `Loop.make_state`."""
        config = ReplayConfig(window_games=-(-self.window // WORLD.count), min_positions=1)
        replay = Replay(
            self.workdir / "replay", GAME, config, 3, cursor, WORLD.process, inherited, 1 << 20
        )
        state = SimpleNamespace(
            assembler=Assembler(SLOTS // WORLD.count),
            resign=ResignCalibration(),
            replay=replay,
            given=arrays,
            train=Train(0),
            others={},
        )
        state.iteration = state.games = state.positions = state.best_iteration = (
            state.rival_iteration
        ) = 0
        state.arrays = lambda: self.arrays(state.iteration)
        return state

    def check_restored(self) -> None:
        """Compare what came back with what was saved."""
        iterations = {state.iteration for state in self.states}
        assert len(iterations) == 1
        iteration = iterations.pop()
        assert iteration in (self.certain, self.in_flight), (
            f"checkpoint {self.certain} was safely on disk, and {iteration} came back"
        )
        windows = [games_in(state.replay) for state in self.states]
        everything = [game for window in windows for game in window]
        assert len(everything) == len(set(everything)), "a game is there twice"
        nothing: tuple[int, list[list[int]], int, set[int]] = (
            len(windows),
            [[] for _ in windows],
            0,
            set(),
        )
        count, before, games, held = self.saved.get(iteration, nothing)
        for state in self.states:
            np.testing.assert_array_equal(
                state.given["train"]["w"], self.arrays(iteration)["train"]["w"]
            )
            assert state.games == games
        if count == len(windows):
            assert windows == before
        elif self.window >= 1000:
            assert sorted(everything) == sorted(game for window in before for game in window)
        else:
            # One window over all shards begins elsewhere in them than several did.
            assert set(everything) <= held
        for window in windows:
            for old in before:
                assert [game for game in window if game in old] == [
                    game for game in old if game in window
                ], "games have changed places"
        self.certain, self.in_flight = iteration, iteration
        self.saved = {number: entry for number, entry in self.saved.items() if number <= iteration}
        self.next_game = max([0, *(entry[2] for entry in self.saved.values())])

    @contextlib.contextmanager
    def dying(self):
        """Run what may be cut off; what is in memory is gone then."""
        try:
            yield
        except Crash:
            assert DISK.is_dead
        if DISK.is_dead:
            self.drop()

    def drop(self) -> None:
        # The threads of a process end with it; here they would write into the next one's files.
        for thread in threading.enumerate():
            if type(thread).__name__ == "_SignalingThread":  # Orbax's
                with contextlib.suppress(Exception, Crash):
                    thread.join()
        self.states, self.checkpointers = [], []

    @rule(operations=st.integers(0, 60))
    def die_later(self, operations: int) -> None:
        if self.states:
            DISK.kill_after(operations)

    @rule(counts=st.lists(st.integers(0, 4), min_size=3, max_size=3))
    def play(self, counts: list[int]) -> None:
        """An iteration: games of every process, maybe none."""
        with self.dying():
            for process, state in enumerate(self.states):
                WORLD.process = process
                state.replay.add(make_games(self.next_game, counts[process]))
                self.next_game += counts[process]
                state.iteration += 1
                state.train.step += 1
            for state in self.states:
                state.games = self.next_game

    @rule()
    def save(self) -> None:
        """A checkpoint, after which the run goes on."""
        if not self.states or self.states[0].iteration <= max(self.certain, self.in_flight):
            return
        with self.dying():
            self.checkpointers[0].wait()
            self.certain = self.in_flight
            iteration = self.states[0].iteration
            windows = [games_in(state.replay) for state in self.states]
            held = {game for state in self.states for game in games_in(state.replay, True)}
            self.saved[iteration] = (len(self.states), windows, self.states[0].games, held)
            for process in [*range(1, len(self.states)), 0]:
                WORLD.process = process
                if process == 0:
                    self.in_flight = iteration
                save_selfplay(self.checkpointers[process], self.states[process])
                if process:
                    self.checkpointers[process].wait()

    @rule()
    def wait(self) -> None:
        if not self.states:
            return
        with self.dying():
            self.checkpointers[0].wait()
            self.certain = self.in_flight

    @rule(power_cut=st.booleans(), count=st.integers(1, 3))
    def kill(self, power_cut: bool, count: int) -> None:
        """The run is killed between two operations, and goes on with another number of
        processes."""
        if not self.states:
            return
        DISK.kill_after(0)
        DISK.is_dead = True
        self.drop()
        self.restart(power_cut, count)

    @rule(
        power_cut=st.booleans(), count=st.integers(1, 3), operations=st.none() | st.integers(0, 40)
    )
    def restart(self, power_cut: bool, count: int, operations: int | None = None) -> None:
        """The next start; it may be cut off, too."""
        if self.states:
            return
        DISK.start(power_cut)
        if operations is not None:
            DISK.kill_after(operations)
        with self.dying():
            self.start(count)

    @rule(count=st.integers(1, 3))
    def damage(self, count: int) -> None:
        """The newest checkpoint is damaged: the one before it, if it is to be had, must be whole
        with all its games."""
        if not self.states or not 0 < self.certain == self.in_flight:
            return
        with self.dying():
            for own in self.checkpointers:
                own.close()
            root = root_directory(self.workdir)
            present = list_iterations(root)
            keep = self.config.checkpoint.keep
            if len(present[-keep:]) < 2:
                self.start(len(self.states))
                return
            # Of all processes: what one of them alone finds damaged, the others learn by a
            # collective, which is left out here.
            for process in range(count_processes(root, present[-1])):
                path = host_path(root, present[-1], process)
                content = bytearray(path.read_bytes())
                content[-1] ^= 1
                path.write_bytes(content)
            self.certain = self.in_flight = present[-2]
            self.drop()
            self.start(count)

    def teardown(self) -> None:
        DISK.release()
        self.drop()
        shutil.rmtree(self.top, ignore_errors=True)


def test_no_game_that_a_checkpoint_needs_is_lost_and_none_is_there_twice():
    examples, steps = (400, 40) if LARGE else (20, 16)
    phases = [Phase.explicit, Phase.reuse, Phase.generate, *([Phase.shrink] if LARGE else [])]
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=not LARGE,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Machine, settings=profile)
