"""The contract suite: every game of the table, in several forms, keeps what azero/games/game.py promises. A new game gets these tests by joining the table."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games import make
from azero.games.table import GAMES

FORMS = {
    "go": [{"size": 5, "komi": 0.5}, {"size": (2, 3), "komi": 1.0, "suicide": True}, {"size": 9, "komi": 7.0, "superko": "situational"}],
    "tictactoe": [{}],
}
CASES = [(name, options) for name in GAMES for options in FORMS.get(name, [{}])]
BATCH, PLIES = 16, 24

each_game = pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{name}{list(options.values())}" for name, options in CASES])


@functools.cache
def played(name, items):
    """States of random games, a list over plies of batches, with the actions between them."""
    game = make(name, **dict(items))

    def move(states, key):
        mask = jax.vmap(game.legal_action_mask)(states)
        action = jnp.argmax(jnp.where(mask, jax.random.uniform(key, mask.shape), -1.0), axis=-1).astype(jnp.int32)
        return jax.vmap(game.step)(states, action), (states, mask, action)

    start = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (BATCH, *leaf.shape)), game.init())
    end, (states, masks, actions) = jax.jit(lambda: jax.lax.scan(move, start, jax.random.split(jax.random.key(0), PLIES)))()
    return game, states, masks, actions, end


def case(name, options):
    return played(name, tuple(options.items()))


@each_game
def test_shapes_and_types(name, options):
    game = make(name, **options)
    state = game.init()
    assert game.legal_action_mask(state).shape == (game.num_actions,) and game.legal_action_mask(state).dtype == jnp.bool_
    assert game.observe(state).shape == (*game.board_shape, game.num_planes)
    assert game.to_play(state).dtype == jnp.int32 and int(game.to_play(state)) == 0
    assert game.rewards(state).dtype == jnp.float32 and game.rewards(state).tolist() == [0.0, 0.0]
    assert not game.is_terminal(state)
    assert game.pack_frame(state).shape == (game.frame_words,) and game.pack_frame(state).dtype == jnp.uint32
    assert hash(game) == hash(make(name, **options)) and game == make(name, **options)


@each_game
def test_one_position_plain_equals_compiled_and_batched(name, options):
    game, states, masks, actions, _ = case(name, options)
    ply, index = PLIES // 2, 11
    batch = jax.tree.map(lambda leaf: leaf[ply], states)
    state = jax.tree.map(lambda leaf: leaf[index], batch)
    np.testing.assert_array_equal(game.legal_action_mask(state), masks[ply, index])
    after = game.step(state, actions[ply, index])
    jitted = jax.jit(game.step)(state, actions[ply, index])
    batched = jax.tree.map(lambda leaf: leaf[index], jax.vmap(game.step)(batch, actions[ply]))
    for other in (jitted, batched):
        jax.tree.map(np.testing.assert_array_equal, after, other)


@each_game
def test_the_end_is_absorbing_and_its_rewards_add_up_to_zero(name, options):
    game, *_, end = case(name, options)
    state = jax.tree.map(lambda leaf: leaf[0], end)
    step, mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    for _ in range(game.max_moves):
        if game.is_terminal(state):
            break
        state = step(state, jnp.flatnonzero(mask(state))[-1].astype(jnp.int32))
    assert game.is_terminal(state)
    rewards = np.asarray(game.rewards(state))
    assert rewards.sum() == 0 and set(np.abs(rewards)) <= {0.0, 1.0}
    assert mask(state).all()
    jax.tree.map(np.testing.assert_array_equal, state, step(state, jnp.int32(0)))


@each_game
def test_planes_are_rebuilt_from_packed_frames(name, options):
    game, states, *_ = case(name, options)
    frames = np.asarray(jax.jit(jax.vmap(jax.vmap(game.pack_frame)))(states))
    planes = np.asarray(jax.jit(jax.vmap(jax.vmap(game.observe)))(states))
    to_play = np.asarray(jax.vmap(jax.vmap(game.to_play))(states))
    ended = np.asarray(jax.vmap(jax.vmap(game.is_terminal))(states))
    rebuild = jax.jit(jax.vmap(game.observe_frames))
    padded = np.concatenate([np.zeros((game.num_frames - 1, *frames.shape[1:]), np.uint32), frames])
    for ply in range(PLIES):
        window = np.stack([padded[ply + game.num_frames - 1 - age] for age in range(game.num_frames)], axis=1)
        running = ~ended[ply]
        np.testing.assert_array_equal(np.asarray(rebuild(window, to_play[ply]))[running], planes[ply][running])


@each_game
def test_the_slim_state_plays_the_same_game(name, options):
    game, states, masks, actions, _ = case(name, options)
    slim = jax.vmap(game.search_state)(jax.tree.map(lambda leaf: leaf[2], states))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(slim))
    assert size <= sum(leaf.nbytes for leaf in jax.tree.leaves(jax.tree.map(lambda leaf: leaf[2], states)))
    assert (np.asarray(jax.vmap(game.legal_action_mask)(slim)) >= np.asarray(masks[2])).all(), "a cheaper rule may allow more, never less"
    after = jax.vmap(game.step)(slim, actions[2])
    real = jax.tree.map(lambda leaf: leaf[3], states)
    for verb in (game.observe, game.rewards, game.to_play, game.is_terminal, game.pack_frame):
        np.testing.assert_array_equal(jax.vmap(verb)(after), jax.vmap(verb)(real))


@each_game
def test_symmetries_are_a_group_and_move_policies_with_boards(name, options):
    game, states, *_ = case(name, options)
    state = jax.tree.map(lambda leaf: leaf[5, 3], states)
    planes = game.observe(state)
    policy = jnp.arange(game.num_actions, dtype=jnp.float32)
    seen = set()
    for k in range(game.num_symmetries):
        moved = game.transform_policy(policy, jnp.int32(k))
        seen.add(tuple(np.asarray(moved).tolist()))
        np.testing.assert_array_equal(game.inverse_transform_policy(moved, jnp.int32(k)), policy)
        points = game.board_shape[0] * game.board_shape[1]
        board = game.transform_planes(policy[:points].reshape(*game.board_shape, 1), jnp.int32(k))
        np.testing.assert_array_equal(board.reshape(-1), moved[:points])
        assert game.transform_planes(planes, jnp.int32(k)).sum() == planes.sum()
    assert len(seen) == game.num_symmetries
    np.testing.assert_array_equal(game.transform_planes(planes, jnp.int32(0)), planes)


def test_an_unknown_game_lists_the_games():
    with pytest.raises(ValueError, match=r"unknown game 'gomoku'; the games are: go, tictactoe"):
        make("gomoku")
