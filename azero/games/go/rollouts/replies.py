"""Rollouts with a table of last good replies: a side answers a move as in the last game that it
won, if that is legal, and otherwise draws from the policy.

Source: Drake 2009 (ICGA Journal 32); a reply of a lost game is removed (Baier and Drake 2010, IEEE
Transactions on Computational Intelligence and AI in Games 2). AG16 methods, 'Rollout policy', has a
cache of this kind, filled by the tree and keyed on the 3x3 points around both moves. Natively
batched: the games of a batch share one table, which is updated from all of them when they are over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games import bits
from azero.games.go.rollouts.playouts import (
    EvaluateFn,
    Playout,
    allowed_points,
    choose,
    final_lead,
    is_unfinished,
    play_move,
    random_words,
    start_from,
)
from azero.games.go.rules import Go
from azero.games.go.state import GoState
from azero.types import Array, PyTree


class PlayedOut(NamedTuple):
    """The moves of finished rollouts."""

    points: Array
    """int32[T, B]: N for a pass, and after the end"""
    first_is_white: Array
    """bool[B]: whether White made the first of them"""
    before: Array
    """int32[B]: the move before them; N where there is none"""


def no_replies(num_points: int) -> Array:
    """Return the empty table int32[2, N + 1]: by colour of the side that replies and point of the
    previous move, 1 + the point of the reply, or 0 for none."""
    return jnp.zeros((2, num_points + 1), jnp.int32)


def play_out_with_replies(
    evaluate: EvaluateFn, key: Array, playout: Playout, table: Array, shape: tuple[int, int]
) -> tuple[Array, PlayedOut]:
    """Play all games to the end with a fixed table; return Black's area minus White's, int32[B],
    and the games."""
    words, num_points = random_words(key, playout, shape), shape[0] * shape[1]

    def point_of(rows: Array) -> Array:
        return jnp.where(bits.union(rows) != 0, bits.first_point(rows, shape), num_points)

    def move(carry: tuple[Playout, Array]) -> tuple[Playout, Array]:
        playout, points = carry
        wanted = table[playout.is_white.astype(jnp.int32), point_of(playout.now.last)] - 1
        reply = bits.point_rows(wanted, shape) & allowed_points(playout, shape)
        stone = jnp.where(
            (bits.union(reply) != 0)[None],
            reply,
            choose(evaluate, words[playout.num_moves], playout, shape),
        )
        return play_move(playout, stone, shape), points.at[playout.num_moves].set(point_of(stone))

    points = jnp.full(words.shape, num_points, jnp.int32)
    end, points = jax.lax.while_loop(
        lambda carry: is_unfinished(carry[0], len(words)), move, (playout, points)
    )
    return final_lead(end, shape), PlayedOut(points, playout.is_white, point_of(playout.now.last))


def learn_replies(table: Array, games: PlayedOut, result: Array) -> Array:
    """Return the table updated from games with results int32[B]: 1 where Black won, -1 where White
    did, 0 for a draw, which changes nothing.

    All games are processed move by move together: the replies of losing sides are deleted from the
    table, then those of winning sides are stored; of several games the last one counts.
    """
    num_points = table.shape[1] - 1
    length, count = games.points.shape
    game_number = jnp.arange(count, dtype=jnp.int32)

    def learn(table: Array, move: tuple[Array, Array, Array]) -> tuple[Array, None]:
        before, point, number = move
        is_white = games.first_is_white ^ (number % 2 == 1)
        gain = jnp.where(is_white, -result, result)
        place = is_white.astype(jnp.int32), before
        is_reply = (before < num_points) & (point < num_points)
        is_bad = is_reply & (gain < 0) & (table[place] == point + 1)
        forgotten = jnp.zeros_like(table).at[place].max(is_bad.astype(table.dtype)) > 0
        code = jnp.where(is_reply & (gain > 0), game_number * (num_points + 1) + point + 1, 0)
        latest = jnp.zeros_like(table).at[place].max(code)
        return jnp.where(
            latest > 0, latest % (num_points + 1), jnp.where(forgotten, 0, table)
        ), None

    before = jnp.concatenate([games.before[None], games.points[:-1]])
    return jax.lax.scan(learn, table, (before, games.points, jnp.arange(length, dtype=jnp.int32)))[
        0
    ]


def make_replying_play_out(
    game: Go, sum_weights: Callable[[PyTree, list[Array | None]], Array]
) -> Callable[[PyTree, Array, GoState, Array], tuple[Array, Array]]:
    """Make the function (params, key, states[B], table) -> (points float32[B], table):
    `make_play_out` with replies, which are learned under the game's komi."""
    shape = game.board_shape

    def play(params: PyTree, key: Array, states: GoState, table: Array) -> tuple[Array, Array]:
        lead, games = play_out_with_replies(
            functools.partial(sum_weights, params), key, start_from(states, shape), table, shape
        )
        points = lead.astype(jnp.float32)
        return points, learn_replies(table, games, jnp.sign(points - game.komi).astype(jnp.int32))

    return play
