"""Policy targets: every visit comes back from the replay, however many moves were visited, from
shards of before too."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from policy_words import split_words
from replay_games import GAME, Strip, assert_equal, fill, open_replay, random_games

from azero import mesh as mesh_lib
from azero.data.files import write_arrays
from azero.data.manifest import Manifest, ShardRecord, manifest_path
from azero.data.replay import Replay
from azero.data.sample import unpack
from azero.data.settings import ReplayConfig
from azero.data.shard import pack_games, pack_positions, shard_path
from azero.games.table import make
from azero.search.search import SearchOutput
from azero.selfplay.selfplay import make_selfplay, to_host
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.targets import MAX_VISITS, dense_policy, policy_room, policy_words, words_of
from azero.selfplay.trajectory import Assembler, Games, select_games


def spread_visits(rows: int) -> np.ndarray:
    """Return int32[rows, 50]: visits of nearly all moves of 7x7, 1,600 in all."""
    return np.stack(
        [
            1
            + np.random.default_rng(row).multinomial(
                1550, np.random.default_rng(row).dirichlet(np.full(50, 0.5))
            )
            for row in range(rows)
        ]
    ).astype(np.int32)


def test_the_target_from_the_replay_is_what_the_search_visited(tmp_path: Path) -> None:
    """Games of one move on 7x7, by a search that visits all 50."""
    game, visits = make("go", size=7, max_moves=1), spread_visits(8)
    zero = jnp.zeros(8, jnp.float32)

    def search(params: Any, key: Any, roots: Any) -> SearchOutput:
        counts = jnp.asarray(visits)
        return SearchOutput(
            jnp.argmax(counts, axis=-1).astype(jnp.int32), counts / 1600, counts, zero, zero, None
        )

    config = SelfplayConfig(num_games=8, moves_per_dispatch=1, resign=False)
    selfplay = make_selfplay(
        config, game, search, None, mesh_lib.make_mesh(jax.devices()[:1]), most_visits=1600
    )
    _, chunk = selfplay.play(
        {}, selfplay.init(jax.random.key(0)), jax.random.key(0), jnp.float32(-2.0)
    )
    replay = Replay(
        tmp_path, game, ReplayConfig(min_positions=1, symmetries=False), policy_room(game)
    )
    replay.add(Assembler(8).add(to_host(chunk), 0))
    weights = np.asarray(unpack(game, replay.sample(0, 0, 64)).weights)
    assert {row.tobytes() for row in np.rint(1600 * weights).astype(np.int32)} == {
        row.tobytes() for row in visits
    }
    np.testing.assert_allclose(1600 * weights, np.rint(1600 * weights), rtol=1e-6)


@st.composite
def targets(draw: st.DrawFn) -> tuple[int, list[np.ndarray]]:
    """Return a number of actions, and targets over them: visits, or shares of one."""
    num_actions = draw(st.integers(2, 40))
    visits = st.lists(
        st.integers(0, MAX_VISITS) | st.just(0), min_size=num_actions, max_size=num_actions
    )
    return num_actions, [
        np.asarray(row, np.int32) for row in draw(st.lists(visits, min_size=1, max_size=12))
    ]


@settings(max_examples=40, deadline=None)
@given(targets(), st.booleans(), st.sampled_from([0, 400, 1 << 20]), st.integers(0, 2**32 - 1))
def test_ragged_targets_come_back(
    drawn: tuple[int, list[np.ndarray]], are_shares: bool, memory: int, seed: int
) -> None:
    num_actions, rows = drawn
    random = np.random.default_rng(seed)
    weights = np.stack(rows)
    if are_shares:
        weights = (weights / np.maximum(1, weights.sum(axis=1, keepdims=True))).astype(np.float32)
    stored = weights.astype(np.float16 if are_shares else np.uint16)
    words = words_of(np.broadcast_to(np.arange(num_actions), stored.shape), stored)
    game: Any = Strip(num_actions=num_actions)
    games = random_games(random, [1] * len(rows))
    games = games._replace(
        is_target=np.ones(len(rows), bool),
        policy_count=(words != 0).sum(axis=1).astype(np.int32),
        policy=words[words != 0],
    )
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr("azero.data.window._FIRST_CAPACITY", 4)
        replay = Replay(
            Path(folder), game, ReplayConfig(min_positions=1), num_actions, memory=memory
        )
        for first in range(0, len(rows), 5):
            chosen = np.arange(len(rows)) // 5 == first // 5
            replay.add(select_games(games, chosen))
        again = Replay(
            Path(folder),
            game,
            ReplayConfig(min_positions=1),
            num_actions,
            replay.state_dict(),
            memory=0,
        )
        samples = replay.sample(0, 0, 200)
        assert_equal(samples, again.sample(0, 0, 200))
    for at in range(200):
        position = int(np.flatnonzero(games.frame[:, 0] == samples.frames[at, 0, 0])[0])
        action, weight = split_words(samples.policy[at])
        dense = np.zeros(num_actions, np.float32)
        dense[action[action >= 0]] = weight[action >= 0]
        assert dense.tolist() == stored[position].astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("name", "num_moves", "simulations"),
    [("chess", 218, 800), ("shogi", 593, 800), ("go", 362, 1600)],
)
def test_targets_of_all_legal_moves_are_exact(name: str, num_moves: int, simulations: int) -> None:
    game = make(name)
    assert policy_room(game) == num_moves <= simulations
    random = np.random.default_rng(1)
    visits = np.zeros((6, game.num_actions), np.int32)
    for row, count in enumerate((num_moves, num_moves, 49, 100, 1, num_moves)):
        chosen = random.choice(game.num_actions, count, replace=False)
        visits[row, chosen] = 1 + random.multinomial(
            simulations - count, random.dirichlet(np.full(count, 0.3))
        )
    words = policy_words(jnp.asarray(visits), num_moves)
    assert (words.dtype, words.shape) == (jnp.uint32, (6, num_moves))
    dense = np.asarray(jax.vmap(lambda row: dense_policy(row, game.num_actions))(words))
    np.testing.assert_array_equal(np.rint(simulations * dense), visits)
    np.testing.assert_allclose(simulations * dense, visits, rtol=1e-6)


def test_shares_are_kept_down_to_the_smallest_float16() -> None:
    weights = np.zeros((2, 600), np.float32)
    weights[0, :500] = np.geomspace(1e-9, 1.0, 500)
    weights[0] /= weights[0].sum()
    words = policy_words(jnp.asarray(weights), 593)
    dense = np.asarray(jax.vmap(lambda row: dense_policy(row, 600))(words))
    assert dense[0].sum() == pytest.approx(1.0, abs=1e-6) and not dense[1].any()
    np.testing.assert_allclose(dense[0], weights[0], rtol=2e-3, atol=4e-8)
    assert ((dense[0] > 0) == (weights[0].astype(np.float16) > 0)).all()


def test_a_search_that_visits_more_than_can_be_counted_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"search.num-simulations = 70000: .* at most 65,535 visits"
    ):
        make_selfplay(
            SelfplayConfig(num_games=8),
            make("tictactoe"),
            lambda *inputs: None,
            None,
            mesh_lib.make_mesh(),
            70_000,
        )  # type: ignore[arg-type,return-value]


def write_older(directory: Path, number: int, games: Games) -> tuple[np.ndarray, np.ndarray]:
    """Write a shard as it was before, 48 moves in every row; return the actions and weights."""
    positions, slots = pack_positions(games, 6), 48
    count = positions.rows["policy_count"]
    fields = [
        ("frame", "<u4", (1,)),
        ("policy_index", "<i2", (slots,)),
        ("policy_weight", "<f2", (slots,)),
        ("value", "<f2"),
    ]
    rows = np.zeros(
        len(count), [*fields, ("action", "<i2"), ("ply", "<u2"), ("to_play", "u1"), ("flags", "u1")]
    )
    for name in ("frame", "value", "action", "ply", "to_play", "flags"):
        rows[name] = positions.rows[name]
    rows["policy_index"] = -1
    place = np.repeat(np.arange(len(count)), count), np.concatenate([np.arange(n) for n in count])
    action = split_words(games.policy)[0]
    rows["policy_index"][place] = action
    rows["policy_weight"][place] = np.linspace(0.01, 0.9, len(action))
    path = shard_path(directory, 0, number)
    digest = write_arrays(
        path,
        {"rows": rows, "games": pack_games(games)},
        {"game": "strip", "shard": number, "process": 0, "schema": 1},
    )
    Manifest(manifest_path(directory, 0)).append(
        ShardRecord(number, path.name, len(games.length), len(rows), digest)
    )
    return words_of(rows["policy_index"], rows["policy_weight"]), rows["frame"][:, 0]


@pytest.mark.parametrize("memory", [0, 1 << 20])
def test_shards_of_before_are_read_as_they_are(
    tmp_path: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azero.data.window._FIRST_CAPACITY", 16)
    expected: dict[int, list[int]] = {}
    numbers = positions = 0
    for number in range(3):
        games = random_games(np.random.default_rng(number), [5, 17, 1], first_number=numbers)
        for words, frame in zip(*write_older(tmp_path, number, games), strict=True):
            expected[int(frame)] = sorted(words[words != 0].tolist())
        numbers, positions = numbers + 3, positions + 23
    state = {"first_shard": 0, "next_shard": 3, "num_games": numbers, "num_positions": positions}
    replay = open_replay(tmp_path, state, memory=memory)
    fill(replay, 1)
    assert replay.take_warnings() == []
    samples = replay.sample(0, 0, 2000)
    seen = {
        int(frames[0, 0]): policy
        for frames, policy in zip(samples.frames, samples.policy, strict=True)
    }
    assert expected.keys() < seen.keys()
    for frame, words in expected.items():
        assert sorted(seen[frame][seen[frame] != 0].tolist()) == words
    heir = Replay(
        tmp_path,
        GAME,
        ReplayConfig(min_positions=1),
        6,
        state | {"first_shard": 3},
        1,
        inherited=[(0, 0), (0, 2)],
        memory=memory,
    )
    assert heir.take_warnings() == [] and heir.count_positions() == 46
    np.testing.assert_array_equal(
        open_replay(tmp_path, replay.state_dict(), memory=memory).sample(0, 0, 50).policy,
        replay.sample(0, 0, 50).policy,
    )
