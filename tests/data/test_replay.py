"""The window of games: uniform, deterministic, right at the borders of games, and whole after a
restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from policy_words import split_words
from replay_games import GAME, Strip, assert_equal, fill, open_replay, random_games

from azero.data.replay import Replay
from azero.data.sample import unpack
from azero.data.settings import ReplayConfig
from azero.selfplay.targets import words_of


def test_uniform_over_positions(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    games = random_games(np.random.default_rng(0), [1, 40, 3, 56])
    replay.add(games)
    drawn = np.concatenate([replay.sample(7, step, 1000).frames[:, 0, 0] for step in range(20)])
    names, counts = np.unique(drawn, return_counts=True)
    assert set(names) == set(games.frame[:, 0])
    # Chi-square with 99 degrees of freedom: mean 99, standard deviation 14; a longer game must not
    # be drawn more often per position.
    assert ((counts - 200) ** 2 / 200).sum() < 99 + 5 * 14
    by_game = [counts[names // 1000 == number].sum() for number in (1, 2, 3, 4)]
    np.testing.assert_allclose(by_game, np.asarray([1, 40, 3, 56]) * 200, rtol=0.2)


def test_symmetries_are_uniform_or_off(tmp_path: Path) -> None:
    replay = open_replay(tmp_path / "on")
    fill(replay, 1)
    assert abs(replay.sample(0, 0, 4000).symmetry.mean() - 0.5) < 0.04
    plain = open_replay(tmp_path / "off", symmetries=False)
    fill(plain, 1)
    assert not plain.sample(0, 0, 100).symmetry.any()


@pytest.mark.parametrize("memory", [0, 1 << 26])
def test_history_targets_and_borders(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azero.data.window._FIRST_CAPACITY", 64)
    replay = open_replay(tmp_path, memory=memory)
    expected = {}
    for shard in range(5):
        games = random_games(
            np.random.default_rng(shard), [1, 30, 2, 9], first_number=replay.count_games()
        )
        replay.add(games)
        for game, start in enumerate(games.starts):
            for ply in range(games.length[game]):
                row = start + ply
                expected[int(games.frame[row, 0])] = (
                    ply,
                    games,
                    row,
                    games.result[game, games.to_play[row]],
                )
    samples = replay.sample(1, 1, 4000)
    assert len(np.unique(samples.frames[:, 0])) > 150
    for at in range(4000):
        ply, games, row, value = expected[int(samples.frames[at, 0, 0])]
        history = [games.frame[row - back, 0] if back <= ply else 0 for back in range(8)]
        assert samples.frames[at, :, 0].tolist() == history
        assert samples.value[at] == value
        end = int(games.policy_count[: row + 1].sum())
        words = games.policy[end - games.policy_count[row] : end]
        assert samples.policy[at].tolist() == words.tolist() + [0] * (6 - len(words))
        for name in ("to_play", "is_target"):
            np.testing.assert_array_equal(getattr(samples, name)[at], getattr(games, name)[row])


def test_memory_does_not_show_in_the_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azero.data.window._FIRST_CAPACITY", 64)
    monkeypatch.setattr("azero.data.window._MAX_MAPS", 3)
    replays = [
        open_replay(tmp_path / str(memory), window=75, memory=memory)
        for memory in (0, 6000, 1 << 20)
    ]
    for step in range(30):
        for replay in replays:
            fill(replay, 1)
        for replay in replays[1:]:
            assert_equal(replay.sample(3, step, 300), replays[0].sample(3, step, 300))
    rings = [replay._window for replay in replays]
    assert rings[0]._rows.capacity == 64 < rings[1]._rows.capacity < rings[2]._rows.capacity < 2048
    assert (
        rings[0]._words.capacity == 64 < rings[1]._words.capacity < rings[2]._words.capacity < 4096
    )


def test_window_is_counted_in_games(tmp_path: Path) -> None:
    replay = open_replay(tmp_path, window=25)
    fill(replay, 6)
    numbers = np.unique(replay.sample(0, 0, 5000).frames[:, 0, 0] // 1000 - 1)
    assert numbers.tolist() == list(range(35, 60))
    assert (replay.count_window_games(), replay.count_games()) == (25, 60)
    assert replay.state_dict()["first_shard"] == 3


def test_sample_depends_on_seed_step_and_window_alone(tmp_path: Path) -> None:
    one, other = open_replay(tmp_path / "a"), open_replay(tmp_path / "b")
    fill(one, 4)
    fill(other, 4)
    other.sample(0, 0, 10)
    assert_equal(one.sample(5, 9, 200), other.sample(5, 9, 200))
    for different in (one.sample(5, 10, 200), one.sample(6, 9, 200)):
        assert (different.frames != one.sample(5, 9, 200).frames).any()


def test_stream_is_ordered_and_keeps_its_window(tmp_path: Path) -> None:
    replay = open_replay(tmp_path, window=30, memory=0)
    fill(replay, 3)
    expected = [replay.sample(2, step, 50) for step in range(10, 25)]
    got = []
    with replay.stream(2, 10, 15, 50, place=lambda samples: samples) as stream:
        for batch in stream:
            got.append(batch)
            fill(replay, 1)
    for one, other in zip(got, expected, strict=True):
        assert_equal(one, other)
    assert stream.waited_s > 0


def test_stream_raises_what_its_threads_raise(tmp_path: Path) -> None:
    with (
        open_replay(tmp_path).stream(0, 0, 3, 8, place=lambda samples: samples) as stream,
        pytest.raises(ValueError, match="replay is empty"),
    ):
        next(stream)


def test_reopened_replay_is_the_same(tmp_path: Path) -> None:
    replay = open_replay(tmp_path, window=42)
    fill(replay, 7)
    state = replay.state_dict()
    assert all(type(value) is int for value in state.values())
    again = Replay(tmp_path, GAME, ReplayConfig(window_games=42, min_positions=1), 6, state)
    assert again.take_warnings() == []
    assert again.state_dict() == state
    fill(replay, 3)
    expected = replay.sample(1, 2, 100)
    reopened = open_replay(tmp_path, state, window=42)
    fill(reopened, 3)
    assert_equal(reopened.sample(1, 2, 100), expected)


def test_reopening_drops_what_is_newer_than_the_checkpoint(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 3)
    state, expected = replay.state_dict(), replay.sample(0, 0, 64)
    fill(replay, 2)
    (tmp_path / "games-p000-00000005.shard.tmp").write_bytes(b"half")
    (tmp_path / "games-p001-00000004.shard").write_bytes(b"of another process")
    again = open_replay(tmp_path, state)
    assert_equal(again.sample(0, 0, 64), expected)
    names = sorted(path.name for path in tmp_path.glob("games*"))
    assert names == [
        "games-p000-00000000.shard",
        "games-p000-00000001.shard",
        "games-p000-00000002.shard",
        "games-p001-00000004.shard",
    ]
    assert sorted(again._manifest.records) == [0, 1, 2]


def test_prune_keeps_the_window_and_what_a_checkpoint_needs(tmp_path: Path) -> None:
    replay = open_replay(tmp_path, window=30)
    fill(replay, 10)
    replay.prune(keep_from=4)
    assert min(replay._manifest.records) == 4
    assert len(list(tmp_path.glob("games*"))) == 6
    replay.prune(keep_from=99)
    assert sorted(replay._manifest.records) == [7, 8, 9]
    assert open_replay(tmp_path, replay.state_dict(), window=30).take_warnings() == []


def test_processes_share_a_directory(tmp_path: Path) -> None:
    replays = [
        Replay(tmp_path, GAME, ReplayConfig(min_positions=1), 6, process_index=process)
        for process in range(2)
    ]
    for replay in replays:
        fill(replay, 2, seed=replay._process)
    again = [
        Replay(
            tmp_path, GAME, ReplayConfig(min_positions=1), 6, replay.state_dict(), replay._process
        )
        for replay in replays
    ]
    for one, other in zip(again, replays, strict=True):
        assert_equal(one.sample(0, 0, 30), other.sample(0, 0, 30))
    assert (again[0].sample(0, 0, 30).frames != again[1].sample(0, 0, 30).frames).any()


def test_position_of_a_19x19_board_takes_112_bytes_and_4_for_each_move_visited(
    tmp_path: Path,
) -> None:
    game: Any = Strip(frame_words=24, num_actions=362)
    replay = Replay(tmp_path, game, ReplayConfig(), slots=362)
    games = random_games(np.random.default_rng(0), [200] * 10, 24, 362, 362)
    replay.add(games)
    on_disk = sum(path.stat().st_size for path in tmp_path.glob("games*")) / 2000
    assert replay.mean_bytes() == 112 + 4 * games.policy_count.mean()
    assert on_disk <= replay.mean_bytes() + 4


def test_other_layout_is_refused(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    with pytest.raises(ValueError, match="boards of 8 bytes do not fit a replay of 4-byte boards"):
        replay.add(random_games(np.random.default_rng(0), [3], frame_words=2))
    replay.add(random_games(np.random.default_rng(0), [40], actions=9, slots=9))
    with pytest.raises(
        ValueError, match="a policy target of 9 moves does not fit a replay of targets of up to 6"
    ):
        replay.state_dict()


def test_unpack_scatters_and_turns(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 2)
    samples = replay.sample(0, 0, 64)
    batch = unpack(GAME, samples)
    assert (batch.planes.shape, batch.weights.shape) == ((64, 1, 5, 9), (64, 6))
    for at in range(64):
        dense = np.zeros(6)
        action, weight = split_words(samples.policy[at])
        dense[action[action >= 0]] = weight[action >= 0] / max(1e-9, weight.sum())
        cells = (samples.frames[at, 0, 0] >> np.arange(5, dtype=np.uint32)) & 1
        if samples.symmetry[at]:
            dense, cells = np.concatenate([dense[4::-1], dense[5:]]), cells[::-1]
        np.testing.assert_allclose(batch.weights[at], dense * samples.is_target[at], atol=1e-6)
        np.testing.assert_array_equal(batch.planes[at, 0, :, 0], cells)
    np.testing.assert_array_equal(batch.value, samples.value)
    assert 10 < samples.is_target.sum() < 54


def test_unpack_leaves_out_empty_slots(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    games = random_games(np.random.default_rng(0), [1])
    words = words_of(np.asarray([4, 1]), np.asarray([0.6, 0.2], np.float16))
    replay.add(
        games._replace(
            policy=words, policy_count=np.asarray([2], np.int32), is_target=np.ones(1, bool)
        )
    )
    samples = replay.sample(0, 0, 1)._replace(symmetry=np.zeros(1, np.uint8))
    np.testing.assert_allclose(unpack(GAME, samples).weights, [[0, 0.25, 0, 0, 0.75, 0]], atol=1e-3)
    nothing = samples._replace(policy=np.zeros((1, 6), np.uint32))
    assert not jax.device_get(unpack(GAME, nothing).weights).any()
