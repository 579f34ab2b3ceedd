"""What games of self-play begin with: an archive of earlier positions, and resigned games that are
played on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero import mesh as mesh_lib
from azero.games.batching import repeat_state
from azero.games.table import make
from azero.search.search import SearchOutput
from azero.selfplay.selfplay import make_selfplay, to_host
from azero.selfplay.settings import SelfplayConfig
from azero.selfplay.starts import Archive, Pool, check_archive, draw_states, update_archive
from azero.selfplay.trajectory import Assembler

GAME = make("tictactoe")
EMPTY = tuple(np.asarray(GAME.pack_frame(GAME.init())).tolist())


def lost_when_full(params, key, roots):
    """A search that plays at random, and thinks that a board of three marks or more is lost for the
    side to move."""
    legal = jax.vmap(GAME.legal_action_mask)(roots)
    scores = jnp.where(legal, jax.random.uniform(key, legal.shape), -1.0)
    weights = legal / legal.sum(-1, keepdims=True)
    value = jnp.where(legal.sum(-1) <= 6, jnp.float32(-0.95), jnp.float32(0.0))
    return SearchOutput(
        jnp.argmax(scores, -1), weights, legal.astype(jnp.int32), value, value, None
    )


def play(config, dispatches=3, devices=1, threshold=-0.9, search=lost_when_full):
    """Return the chunks of moves, and the games that they finish."""
    mesh = mesh_lib.make_mesh(jax.devices()[:devices])
    cheap = search if config.played_on_games else None
    selfplay = make_selfplay(config, GAME, search, None, mesh, cheap_search=cheap)
    carry, assembler = selfplay.init(jax.random.key(0)), Assembler(config.num_slots)
    chunks, records = [], []
    for i in range(dispatches):
        carry, chunk = selfplay.play({}, carry, jax.random.key(i), jnp.float32(threshold))
        chunks.append(to_host(chunk))
        records.append(assembler.add(chunks[-1], network=0))
    return chunks, records


def frames(chunk, moves):
    """The positions before the moves [K, B] that are chosen."""
    return [tuple(frame) for frame in chunk.frame[moves].tolist()]


def of_move(number):
    """All games at a move of the 27."""
    return np.repeat(np.arange(27)[:, None] == number, 64, axis=1)


@pytest.mark.parametrize("archive", ["games", "searches"])
def test_games_begin_with_positions_of_earlier_ones(archive):
    config = SelfplayConfig(
        num_games=64, moves_per_dispatch=9, resign=False, archive=archive, archive_share=0.4
    )
    chunks, records = play(config)
    chunk = type(chunks[0])(*(np.concatenate(column) for column in zip(*chunks, strict=True)))
    begins = np.zeros_like(chunk.finished)
    begins[1:] = chunk.finished[:-1]
    known, unknown, elsewhere = set(frames(chunk, of_move(0))), 0, []
    for move in range(1, 27):
        for frame in frames(chunk, of_move(move) & begins):
            elsewhere.append(frame != EMPTY)
            unknown += frame not in known
        known |= set(frames(chunk, of_move(move)))
    assert len(elsewhere) > 100 and 0.3 < np.mean(elsewhere) < 0.5
    assert unknown > 5 if archive == "searches" else unknown == 0
    for record in records[1:]:
        for start, length, result in zip(record.starts, record.length, record.result, strict=True):
            assert 1 <= length <= 9
            sides = record.to_play[start : start + length]
            np.testing.assert_array_equal(sides, (sides[0] + np.arange(length)) % 2)
            marks = [int(word).bit_count() for word in record.frame[start]]
            assert sum(marks) % 2 == sides[0], "the side to move is that of the position"
            assert abs(result[0]) <= 1 and result.sum() == 0


def test_a_branch_that_ends_the_game_leaves_no_candidate_of_an_earlier_game():
    """First moves of games from a board where square 2 wins; the search would play it."""
    config = SelfplayConfig(archive="searches")
    before = GAME.init()
    for action in (0, 3, 1, 4):
        before = GAME.step(before, jnp.int32(action))
    states, earlier = (repeat_state(state, 8) for state in (before, GAME.init()))
    played = jax.vmap(GAME.step)(states, jnp.full(8, 8, jnp.int32))
    wins, zeros = jnp.arange(9) == 2, jnp.zeros(8)
    weights = jnp.broadcast_to(wins.astype(jnp.float32), (8, 9))
    output = SearchOutput(jnp.full(8, 2), weights, weights.astype(jnp.int32), zeros, zeros, None)
    archive = update_archive(
        config,
        GAME,
        jax.random.key(0),
        Archive(Pool(earlier, jnp.zeros(8, bool)), earlier),
        states,
        jnp.zeros(8, jnp.int32),
        output,
        played,
        jnp.zeros(8, bool),
    )
    jax.tree.map(np.testing.assert_array_equal, archive.candidates, played)


def test_resigned_games_are_played_on_by_the_cheap_search():
    config = SelfplayConfig(
        num_games=16, played_on_games=4, moves_per_dispatch=12, resign=True, resign_disabled=0.5
    )
    chunks, _ = play(config, devices=2)
    chunk = type(chunks[0])(*(np.concatenate(column) for column in zip(*chunks, strict=True)))
    slots = np.arange(20) % 10
    main, others = slots < 8, slots >= 8
    assert chunk.finished.shape == (36, 20)
    assert chunk.resigned[:, main].any() and not chunk.resigned[:, others].any()
    assert chunk.is_target[:, main].all() and not chunk.is_target[:, others].any()
    assert not chunk.can_resign[:, main].all(), "some are played out, for the threshold"
    begun = np.zeros_like(chunk.finished)
    begun[1:] = chunk.finished[:-1]
    assert chunk.can_resign[:, others].all(), "what they are searched with is not the threshold's"
    given_up = set(frames(chunk, chunk.resigned))
    starts = frames(chunk, begun & others[None])
    assert len(starts) > 10 and set(starts) <= given_up
    ends = chunk.finished & others[None]
    assert {tuple(row) for row in chunk.rewards[ends].tolist()} >= {(1.0, -1.0), (-1.0, 1.0)}


@pytest.mark.parametrize(
    "exploration", [{"temperature_moves": 9}, {"random_moves": 9, "random_share": 1.0}], ids=str
)
def test_games_that_are_played_on_are_not_at_their_start(exploration):
    """They play the search's moves; a random one might turn the result of a decided position."""

    def first_square(params, key, roots):
        found = lost_when_full(params, key, roots)
        return found._replace(action=jnp.argmax(found.visits, -1).astype(jnp.int32))

    settings = {"temperature_moves": 0, "resign_disabled": 0.0, **exploration}
    config = SelfplayConfig(num_games=16, played_on_games=4, moves_per_dispatch=12, **settings)
    chunks, _ = play(config, search=first_square)
    legal = jax.vmap(jax.vmap(lambda frame: GAME.observe_frames(frame[None], 0)))
    for number, chunk in enumerate(chunks[1:]):
        empty = ~np.asarray(legal(jnp.asarray(chunk.frame)))[..., :2].any(-1).reshape(12, 20, 9)
        is_first = chunk.action == empty.argmax(-1)
        assert is_first[:, 16:].all(), number
        assert not is_first[:, :16][chunk.action[:, :16] >= 0].all()


def test_no_game_starts_from_a_resigned_one_that_was_played_on():
    """Every side resigns with three marks on the board; only games that are played on have more."""
    config = SelfplayConfig(
        num_games=16,
        played_on_games=16,
        moves_per_dispatch=12,
        resign_disabled=0.0,
        archive="games",
        archive_share=1.0,
    )
    chunks, _ = play(config, dispatches=4)
    show = jax.vmap(jax.vmap(lambda frame: GAME.observe_frames(frame[None], 0)))
    for chunk in chunks:
        marks = np.asarray(show(jnp.asarray(chunk.frame)))[..., :2].sum((-3, -2, -1))
        assert marks[:, :16].max() <= 3 < marks[:, 16:].max()


def test_the_replay_knows_nothing_before_an_archived_position():
    """The network is shown the position alone, but what it repeats stays illegal."""
    game = make("go", size=3, superko="positional")
    state = game.init()
    for action in (4, 1, 3, 5):
        state = game.step(state, jnp.int32(action))
    states = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), state)
    pool = Pool(states, jnp.array([False, True, False, False]))
    fresh = jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), game.init())
    wanted = jnp.array([True, True, False, False])
    drawn = draw_states(jax.random.key(0), game, pool, wanted, fresh)
    np.testing.assert_array_equal(drawn.frames[:2, 0], states.frames[:2, 0])
    assert not np.asarray(drawn.frames[:2, 1:]).any()
    np.testing.assert_array_equal(drawn.history[:2], states.history[:2])
    np.testing.assert_array_equal(drawn.frames[2:], fresh.frames[2:])
    empty = Pool(states, jnp.zeros(4, bool))
    drawn = draw_states(jax.random.key(0), game, empty, wanted, fresh)
    np.testing.assert_array_equal(drawn.frames, fresh.frames)


def test_what_does_not_fit_is_one_line():
    with pytest.raises(ValueError, match=r"played-on-games plays resigned games on, and .* is off"):
        SelfplayConfig(played_on_games=8, resign=False)

    class Hidden:
        name, num_frames = "hidden", 8

        def init(self):
            return jnp.zeros(3)

    with pytest.raises(ValueError, match=r"newest positions in `frames`; those of hidden"):
        check_archive(SelfplayConfig(archive="games"), Hidden())
