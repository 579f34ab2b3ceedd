"""The targets of auxiliary heads: from the games through shards and window to the batch."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy_words import split_words
from replay_games import Strip, random_games

from azero.data.files import DamagedFileError
from azero.data.replay import Replay
from azero.data.sample import sample_shapes, unpack
from azero.data.settings import ReplayConfig
from azero.data.shard import HORIZONS, pack_games, pack_positions, read_shard, write_shard
from azero.games.table import make
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import Games


@dataclass(frozen=True)
class Board(Strip):
    """A strip that says how large its board is."""

    board_shape: tuple[int, int] = (1, 5)


def slow_later(games: Games, game: int, ply: int, num_points: int) -> list[float]:
    """Average the values to come of one position, term by term."""
    start, length = games.starts[game], games.length[game]
    mover = games.to_play[start + ply]
    random = next_random(games, game, ply)
    means = []
    for horizon in HORIZONS:
        now, kept, mean = 1 / (1 + num_points * horizon), 1.0, 0.0
        for later in range(ply, length if random is None else random):
            sign = 1 if games.to_play[start + later] == mover else -1
            mean += kept * now * sign * float(games.root_value[start + later])
            kept *= 1 - now
        means.append(mean + kept * value_target(games, game, ply))
    return means


def next_random(games: Games, game: int, ply: int) -> int | None:
    """Return the ply of the first random move of a game from one of its plies on."""
    start, length = games.starts[game], games.length[game]
    return next((at for at in range(ply, length) if games.is_random[start + at]), None)


def value_target(games: Games, game: int, ply: int) -> float:
    """Return the value of the next random move's position, or else the result."""
    random, start = next_random(games, game, ply), games.starts[game]
    mover = games.to_play[start + ply]
    if random is None:
        return float(games.result[game, mover])
    sign = 1 if games.to_play[start + random] == mover else -1
    return sign * float(games.root_value[start + random])


@pytest.mark.parametrize("random_share", [0.0, 0.2])
def test_samples_have_what_followed_their_position(tmp_path: Path, random_share: float) -> None:
    random = np.random.default_rng(3)
    board = Board()
    config = ReplayConfig(window_games=30, min_positions=1)
    replay = Replay(tmp_path, board, config, slots=6, memory=1, has_auxiliary=True)  # type: ignore[arg-type]
    everything = []
    for number in range(4):  # a ring of 16,384 positions holds them all
        lengths = random.integers(1, 9, 10).tolist()
        games = random_games(random, lengths, first_number=10 * number, random_share=random_share)
        everything.append(games)
        replay.add(games)
    samples = replay.sample(0, 0, 300)
    aux = samples.auxiliary
    assert aux is not None
    for row in range(300):
        number, ply = divmod(int(samples.frames[row, 0, 0]), 1000)
        games, game = everything[(number - 1) // 10], (number - 1) % 10
        place = int(games.starts[game]) + ply
        last = int(games.starts[game] + games.length[game]) - 1
        assert aux.moves_left[row] == last - place + 1
        assert aux.root_value[row] == games.root_value[place]
        np.testing.assert_allclose(aux.later[row], slow_later(games, game, ply, 5), atol=2e-3)
        assert aux.end[row, 0] == 1000 * number + games.length[game] - 1
        is_its_end = next_random(games, game, ply) is None
        assert aux.last_action[row] == (games.action[last] if is_its_end else -1)
        assert samples.value[row] == value_target(games, game, ply)
        follows = place < last and bool(games.is_target[place + 1])
        assert bool(aux.has_reply[row]) == follows
        if follows:
            first = int(games.policy_count[: place + 1].sum())
            words = games.policy[first : first + games.policy_count[place + 1]]
            np.testing.assert_array_equal(aux.reply[row, : len(words)], words)
        targets = games.is_target[games.starts[game] : last + 1]
        surprise = games.surprise[games.starts[game] : last + 1].astype(np.float32)
        # a fast move has no surprise: it counts as the mean, which leaves the value's weight one
        expected = surprise[ply] / surprise[targets].mean() if games.is_target[place] else 1.0
        np.testing.assert_allclose(aux.surprise[row], expected, rtol=2e-3)
    replay.close()


def test_samples_are_the_same_from_memory_and_from_disk(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    config = ReplayConfig(window_games=40_000, min_positions=1)
    replay = Replay(tmp_path, Board(), config, slots=6, memory=1, has_auxiliary=True)  # type: ignore[arg-type]
    for number in range(5):  # more than the smallest rings hold
        replay.add(random_games(random, [8] * 800, first_number=800 * number))
    state = replay.state_dict()
    small = replay.sample(1, 2, 500)
    replay.close()
    again = Replay(
        tmp_path,
        Board(),  # type: ignore[arg-type]
        config,
        slots=6,
        state=state,
        memory=1 << 30,
        has_auxiliary=True,
    )
    jax.tree.map(np.testing.assert_array_equal, small, again.sample(1, 2, 500))


def test_shards_with_and_without_are_not_mixed_up(tmp_path: Path) -> None:
    games = random_games(np.random.default_rng(5), [3, 4])
    path = tmp_path / "games-p000-00000000.shard"
    write_shard(path, pack_positions(games, 6), pack_games(games), {"game": "strip"})
    with pytest.raises(DamagedFileError, match="without targets of auxiliary heads"):
        read_shard(path, None, "strip", 1, 6, has_auxiliary=True)
    write_shard(path, pack_positions(games, 6, 5), pack_games(games), {"game": "strip"})
    with pytest.raises(DamagedFileError, match="with targets of auxiliary heads"):
        read_shard(path, None, "strip", 1, 6)


@pytest.mark.parametrize("symmetry", range(8))
def test_targets_of_a_go_game_are_those_of_its_last_board(tmp_path: Path, symmetry: int) -> None:
    go = make("go", size=5, komi=0.5, num_planes=19)
    random = np.random.default_rng(symmetry)
    state, states, actions = go.init(), [], []
    step, legal = jax.jit(go.step), jax.jit(go.legal_action_mask)
    for _ in range(21):
        move = int(random.choice(np.flatnonzero(np.asarray(legal(state))[:-1])))
        states, actions = [*states, state], [*actions, move]
        state = step(state, jnp.int32(move))
    for _ in range(2):
        states, actions = [*states, state], [*actions, 25]
        state = step(state, jnp.int32(25))
    assert bool(go.is_terminal(state))
    length = len(states)
    words = np.asarray([1 << 16 | 7, 2 << 16 | 3], np.uint32)
    games = Games(
        frame=np.stack([np.asarray(go.pack_frame(at)) for at in states]),
        to_play=np.asarray([int(at.to_play) for at in states], np.uint8),
        action=np.asarray(actions, np.int16),
        policy_count=np.full(length, 2, np.int32),
        is_target=np.ones(length, bool),
        root_value=np.zeros(length, np.float16),
        best_child_value=np.zeros(length, np.float16),
        surprise=np.ones(length, np.float16),
        is_random=np.zeros(length, bool),
        length=np.asarray([length], np.int32),
        result=np.asarray(go.rewards(state))[None],
        resigned=np.zeros(1, bool),
        can_resign=np.ones(1, bool),
        number=np.zeros(1, np.int64),
        network=np.zeros((1, 2), np.int32),
        policy=np.tile(words, length),
    )
    config = ReplayConfig(window_games=9, min_positions=1, symmetries=False)
    replay = Replay(tmp_path, go, config, slots=26, has_auxiliary=True)
    replay.add(games)
    samples = replay.sample(0, 0, 64)
    samples = samples._replace(symmetry=np.full(64, symmetry, np.uint8))
    batch = unpack(go, samples)
    targets = batch.auxiliary
    assert targets is not None and targets.ownership is not None and targets.margin is not None
    owners = np.asarray(go.owners(state.frames[0])).astype(np.float32)
    for row in range(64):
        sign = 1 if samples.to_play[row] == 0 else -1
        planes = go.transform_planes(jnp.asarray(sign * owners)[..., None], jnp.int32(symmetry))
        np.testing.assert_array_equal(targets.ownership[row], planes[..., 0])
        assert float(targets.margin[row]) == sign * owners.sum()
        komi = -sign * 0.5
        np.testing.assert_allclose(batch.planes[row, ..., 17], komi / 10)
        won = np.sign(owners.sum() - 0.5) * sign
        assert float(batch.value[row]) == won == np.sign(float(targets.margin[row]) + komi)
    assert bool(jnp.all(jnp.asarray(targets.is_scored)))
    has_next = np.asarray(samples.auxiliary.moves_left) > 1  # type: ignore[union-attr]
    np.testing.assert_allclose(np.asarray(targets.reply).sum(axis=1), has_next)
    assert split_words(words)[0].tolist() == [1, 2]
    moved = go.transform_policy(jnp.zeros(26).at[1].set(0.7).at[2].set(0.3), jnp.int32(symmetry))
    np.testing.assert_allclose(targets.reply[int(np.argmax(has_next))], moved, rtol=1e-5)
    replay.close()


@pytest.mark.parametrize(
    ("name", "theirs", "drops"),
    [
        ("chess", slice(6, 12), 73),
        ("minichess", slice(6, 12), 49),
        ("shogi", slice(14, 28), 132),
        ("animal_shogi", slice(5, 10), 8),
    ],
)
def test_replies_are_on_the_squares_of_the_planes(name: str, theirs: slice, drops: int) -> None:
    """All moves of the opponent after a move start where the planes before it show its pieces.
    Both sides see the board from their own end."""
    game, random, count = make(name), np.random.default_rng(3), 16
    state, frames, sides, replies = game.init(), [], [], np.zeros((count, 64), np.uint32)
    step, legal = jax.jit(game.step), jax.jit(game.legal_action_mask)
    num_planes = game.num_actions // np.prod(game.board_shape)
    for row in range(count):
        frames.append(np.asarray(state.frames))
        sides.append(int(game.to_play(state)))
        state = step(state, jnp.int32(random.choice(np.flatnonzero(np.asarray(legal(state))))))
        if bool(game.is_terminal(state)):
            break
        moves = np.flatnonzero(np.asarray(legal(state)))
        moves = moves[moves % num_planes < drops][:64]
        replies[row, : len(moves)] = words_of(moves, np.ones(len(moves), np.uint16))
    shapes = sample_shapes(game, len(frames), has_auxiliary=True)
    samples = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
    auxiliary = samples.auxiliary._replace(
        reply=replies[: len(frames)], has_reply=np.ones(len(frames), bool)
    )
    samples = samples._replace(
        frames=np.stack(frames), to_play=np.asarray(sides, np.uint8), auxiliary=auxiliary
    )
    batch = unpack(game, samples)
    assert batch.auxiliary is not None
    pieces = np.asarray(batch.planes)[..., theirs].any(axis=-1)
    moved = np.asarray(batch.auxiliary.reply).reshape(*pieces.shape, -1).any(axis=-1)
    assert moved.any() and not (moved & ~pieces).any()


def test_games_that_were_resigned_have_no_owners() -> None:
    go = make("go", size=5)
    assert [bool(go.is_scored_after(jnp.int32(action))) for action in (25, 24, -1)] == [
        True,
        False,
        False,
    ]
