"""What the processes of a run keep for themselves is divided anew among another number of them:
nothing is lost, nothing is there twice."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from azero.data.manifest import deal_shards, forget_processes
from azero.data.replay import Replay
from azero.data.settings import ReplayConfig
from azero.selfplay.trajectory import Assembler, Games, Step

GAME: Any = SimpleNamespace(
    name="toy", frame_words=1, num_frames=2, num_actions=3, num_symmetries=1
)


def games(first: int, count: int) -> Games:
    """Make `count` games of two moves whose frames are their numbers."""
    rows = np.repeat(np.arange(first, first + count, dtype=np.uint32), 2)
    size = len(rows)
    return Games(
        frame=rows[:, None],
        to_play=np.tile(np.array([0, 1], np.uint8), count),
        action=np.zeros(size, np.int16),
        policy_count=np.ones(size, np.int32),
        is_target=np.ones(size, bool),
        root_value=np.zeros(size, np.float16),
        best_child_value=np.zeros(size, np.float16),
        surprise=np.zeros(size, np.float16),
        is_random=np.zeros(size, bool),
        length=np.full(count, 2, np.int32),
        result=np.tile(np.array([1, -1], np.float32), (count, 1)),
        resigned=np.zeros(count, bool),
        can_resign=np.zeros(count, bool),
        number=np.arange(first, first + count, dtype=np.int64),
        network=np.ones((count, 2), np.int32),
        policy=rows + 1,
    )


def open_replay(directory: Path, process: int, **options: Any) -> Replay:
    return Replay(
        directory,
        GAME,
        ReplayConfig(min_positions=1),
        3,
        process_index=process,
        memory=1 << 20,
        **options,
    )


def numbers(replay: Replay) -> list[int]:
    """Return the numbers of the games in a window, each once, as samples show them."""
    return sorted(set(replay.sample(0, 0, 2000).frames[:, 0, 0].tolist()))


@pytest.mark.parametrize(("before", "now"), [(2, 1), (1, 2), (2, 4), (4, 3)])
def test_every_shard_goes_to_one_process_and_old_ones_stay_until_they_are_forgotten(
    before: int, now: int, tmp_path: Path
) -> None:
    cursors = []
    for process in range(before):
        replay = open_replay(tmp_path, process)
        for shard in range(5 + process):
            replay.add(games(1000 * process + 10 * shard, 3))
        cursors.append(replay.state_dict())
    old = {path.name for path in tmp_path.glob("*.shard")}
    everything = [
        1000 * process + 10 * shard + game
        for process in range(before)
        for shard in range(5 + process)
        for game in range(3)
    ]

    found, total = [], 0
    for process in range(now):
        cursor, inherited = deal_shards(cursors, process, now)
        replay = open_replay(tmp_path, process, state=cursor, inherited=inherited)
        assert replay.take_warnings() == []
        found += numbers(replay)
        total += replay.count_games()
        again = open_replay(tmp_path, process, state=replay.state_dict())
        assert numbers(again) == numbers(replay), "its cursor alone brings everything back"
    assert sorted(found) == everything and total == len(everything)
    assert {path.name for path in tmp_path.glob("*.shard")} >= old, (
        "the checkpoints of before still need them"
    )

    forget_processes(tmp_path, now)
    assert {int(path.name[7:10]) for path in tmp_path.glob("*.shard")} == set(range(now))
    assert len(list(tmp_path.glob("manifest-*"))) == now


def test_a_second_try_after_a_crash_finds_the_same(tmp_path: Path) -> None:
    """The first process that went on alone was killed before it saved; the run goes on from the
    same checkpoint, as before and then alone."""
    replays = [open_replay(tmp_path, process) for process in range(2)]
    for shard in range(3):
        for process, replay in enumerate(replays):
            replay.add(games(1000 * process + 10 * shard, 2))
    cursors = [replay.state_dict() for replay in replays]
    cursor, inherited = deal_shards(cursors, 0, 1)
    first = numbers(open_replay(tmp_path, 0, state=cursor, inherited=inherited))
    restore_side = [
        numbers(open_replay(tmp_path, process, state=cursors[process])) for process in range(2)
    ]
    assert sorted(restore_side[0] + restore_side[1]) == first
    assert numbers(open_replay(tmp_path, 0, state=cursor, inherited=inherited)) == first


def test_a_damaged_shard_is_named_and_left_out(tmp_path: Path) -> None:
    replay = open_replay(tmp_path, 0)
    for shard in range(3):
        replay.add(games(10 * shard, 2))
    cursors = [replay.state_dict()]
    (tmp_path / "games-p000-00000001.shard").write_bytes(b"torn")
    cursor, inherited = deal_shards(cursors, 1, 2)
    assert inherited == [(0, 1)]
    heir = open_replay(tmp_path, 1, state=cursor, inherited=inherited)
    [warning] = heir.take_warnings()
    assert "left out shard 1 of process 0" in warning and heir.count_positions() == 0


def chunk(slots: range, moves: int, time: int, finished: bool) -> Step:
    """Make a chunk in which a frame says its slot and time; with `finished` all games end in the
    last move."""
    shape = (moves, len(slots))
    frame = np.asarray(
        [[[100 * slot + time + move] for slot in slots] for move in range(moves)], np.uint32
    )
    ends = np.zeros(shape, bool)
    ends[-1] = finished
    zeros = np.zeros(shape, np.float16)
    policy = np.concatenate([frame[..., :1] + 1] * 3, axis=-1) * (np.arange(3) < 1 + frame % 3)
    return Step(
        frame=frame,
        to_play=np.zeros(shape, np.uint8),
        action=np.zeros(shape, np.int16),
        policy=policy.astype(np.uint32),
        is_target=np.ones(shape, bool),
        root_value=zeros,
        best_child_value=zeros,
        surprise=zeros,
        is_random=np.zeros(shape, bool),
        finished=ends,
        resigned=np.zeros(shape, bool),
        rewards=np.zeros((*shape, 2), np.float32),
        can_resign=np.zeros(shape, bool),
    )


@pytest.mark.parametrize(("before", "now"), [(2, 1), (1, 2), (2, 4), (4, 2)])
def test_games_in_flight_end_as_they_would_have(before: int, now: int) -> None:
    slots = 8
    states = []
    for process in range(before):
        mine = range(process * slots // before, (process + 1) * slots // before)
        assembler = Assembler(len(mine))
        first = chunk(mine, 3, 0, False)
        first.finished[1, 0] = (
            True  # the first slot of each process is one move into its second game
        )
        assembler.add(first, 5 + process)
        states.append(assembler.state_dict())
    ended: list[list[int]] = []
    for process in range(now):
        mine = range(process * slots // now, (process + 1) * slots // now)
        assembler = Assembler(len(mine))
        assembler.load_state_dict(Assembler.redistribute(states, np.array(mine)))
        done = assembler.add(chunk(mine, 2, 3, True), 9)
        ended += [rows[:, 0].tolist() for rows in np.split(done.frame, done.starts[1:])]
        assert done.policy_count.tolist() == (1 + done.frame[:, 0] % 3).tolist()
        assert done.policy.tolist() == np.repeat(done.frame[:, 0] + 1, done.policy_count).tolist()
        began = [5 + slot * before // slots for slot in mine]
        assert sorted(done.network.tolist()) == sorted([network, 9] for network in began), (
            "who played the first move of each game is known"
        )
        assert done.number.min() == 1, "each process of before has finished one game, number 0"
    begun_again = {process * slots // before for process in range(before)}
    assert sorted(ended) == [
        [100 * slot + time for time in range(2 if slot in begun_again else 0, 5)]
        for slot in range(slots)
    ]
