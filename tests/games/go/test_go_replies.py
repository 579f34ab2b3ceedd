"""Last good replies in rollouts, against a plain Python version."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.go.rollouts.playouts import start_from
from azero.games.go.rollouts.replies import (
    PlayedOut,
    learn_replies,
    make_replying_play_out,
    no_replies,
    play_out_with_replies,
)
from azero.games.go.rules import Go

GAME = Go(size=3, komi=0.5)
BATCH = 6


def even(params, numbers):
    return jnp.zeros(next(number.shape for number in numbers if number is not None), jnp.float32)


@pytest.fixture(scope="module")
def play():
    states = jax.tree.map(
        lambda leaf: jnp.stack([leaf] * BATCH), jax.jit(GAME.step)(GAME.init(), 4)
    )
    return jax.jit(
        lambda key, table: play_out_with_replies(
            functools.partial(even, None), key, start_from(states, (3, 3)), table, (3, 3)
        )
    )


def learn_slowly(table, points, first_is_white, before, result):
    """Go through the games move by move, side by side."""
    table = table.copy()
    none = table.shape[1] - 1
    for ply in range(len(points)):
        moves = []
        for game in range(points.shape[1]):
            previous, move = (
                (before[game] if ply == 0 else points[ply - 1, game]),
                points[ply, game],
            )
            is_white = bool(first_is_white[game]) ^ (ply % 2 == 1)
            gain = -result[game] if is_white else result[game]
            if previous != none and move != none:
                moves.append((int(is_white), previous, move + 1, gain))
        as_it_was = table.copy()
        for colour, previous, reply, gain in moves:
            if gain < 0 and as_it_was[colour, previous] == reply:
                table[colour, previous] = 0
        for colour, previous, reply, gain in moves:
            if gain > 0:
                table[colour, previous] = reply
    return table


def test_the_table_is_that_of_a_plain_version():
    random, learn = np.random.default_rng(0), jax.jit(learn_replies)
    table = np.asarray(no_replies(9))
    seen_forgetting = False
    for _ in range(40):
        points, before = (
            random.integers(0, 10, (12, BATCH)).astype(np.int32),
            random.integers(0, 10, BATCH).astype(np.int32),
        )
        first, result = random.random(BATCH) < 0.5, random.integers(-1, 2, BATCH).astype(np.int32)
        expected = learn_slowly(table, points, first, before, result)
        found = np.asarray(learn(table, PlayedOut(points, first, before), result))
        np.testing.assert_array_equal(found, expected)
        seen_forgetting |= bool(((table > 0) & (expected == 0)).any())
        table = expected
    assert seen_forgetting


def test_a_known_reply_is_played_where_it_is_allowed_and_nothing_else(play):
    lead, games = play(jax.random.key(0), no_replies(9))
    assert (
        games.points.shape == (18, BATCH)
        and len(set(games.points[0].tolist())) > 1
        and games.before.tolist() == [4] * BATCH
    )
    known = no_replies(9).at[1, 4].set(1 + 7)
    assert play(jax.random.key(0), known)[1].points[0].tolist() == [7] * BATCH, "White answers B1"
    occupied = no_replies(9).at[1, 4].set(1 + 4)
    for answer, same in zip(play(jax.random.key(0), occupied), (lead, games), strict=True):
        jax.tree.map(np.testing.assert_array_equal, answer, same)


def test_the_table_goes_from_call_to_call(play):
    states = jax.tree.map(
        lambda leaf: jnp.stack([leaf] * BATCH), jax.jit(GAME.step)(GAME.init(), 4)
    )
    points, table = jax.jit(make_replying_play_out(GAME, even))(
        None, jax.random.key(1), states, no_replies(9)
    )
    lead, games = play(jax.random.key(1), no_replies(9))
    np.testing.assert_array_equal(points, lead)
    result = np.sign(np.asarray(lead) - 0.5).astype(int)
    expected = learn_slowly(np.zeros((2, 10), int), *map(np.asarray, games), result)
    np.testing.assert_array_equal(table, expected)
    assert table.any()
