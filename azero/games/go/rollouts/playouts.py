"""Games played to the end by a fast policy, many at once: the rollouts of AlphaGo (2016). Natively
batched: sets of points are rows uint32[H, B].

A game ends with two passes, or after `max_moves` further moves, and is scored by area. A move is
not suicide, does not fill an own eye and does not recapture a ko at once; longer repetitions are
not checked (the paper does not mention them). A side without such a move passes.

The sets of stones whose chains have one and two liberties are updated exactly with every move, so
that a move needs flood fills only of the chains that it touches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games import bits
from azero.games.go.alphago2016.features import eyes
from azero.games.go.alphago2016.patterns import Situation, situation, sparse_features, unpack_rows
from azero.games.go.groups import neighbours_by_side
from azero.games.go.rules import Go
from azero.games.go.state import GoState
from azero.games.go.stones import non_suicide_points
from azero.types import Array, PyTree

EvaluateFn = Callable[[list[Array | None]], Array]
"""The numbers uint32[...] of the groups of `patterns.rollout_features`, None for groups left out ->
logits float32[...]."""
MOVES_PER_POINT = 2
"""A rollout is scored after this number of moves per point, like games of AlphaGo Zero (722 moves);
AG16 gives no limit."""


class Playout(NamedTuple):
    """Unfinished rollouts."""

    now: Situation
    ko: Array
    """rows uint32[H, B]: where the side to move may not play"""
    is_white: Array
    """bool[B]: the side to move"""
    num_passes: Array
    """int32[B]: in a row"""
    num_moves: Array
    """int32[]"""


def start_from(states: GoState, shape: tuple[int, int]) -> Playout:
    """Return the rollouts that start from states[B]: with their last move, its captures, and the
    forbidden ko."""
    now, _ = situation(states.frames, states.to_play, shape)
    return Playout(now, ko_point(now), states.to_play == 1, states.num_passes, jnp.int32(0))


def ko_point(now: Situation) -> Array:
    """Return rows uint32[H, B]: the ko point, where the last move captured a single stone and could
    itself be recaptured as a single stone."""
    is_ko = (
        bits.counts_one(now.captured)
        & (bits.union(bits.neighbours(now.last) & now.other) == 0)
        & (bits.union(now.last & now.one) != 0)
    )
    return bits.where(is_ko[None], now.captured)


def play_out(evaluate: EvaluateFn, key: Array, playout: Playout, shape: tuple[int, int]) -> Array:
    """Play all games to the end and return Black's area minus White's, int32[B]."""
    words = random_words(key, playout, shape)

    def move(playout: Playout) -> Playout:
        return play_move(playout, choose(evaluate, words[playout.num_moves], playout, shape), shape)

    return final_lead(
        jax.lax.while_loop(lambda playout: is_unfinished(playout, len(words)), move, playout), shape
    )


def random_words(key: Array, playout: Playout, shape: tuple[int, int]) -> Array:
    """Return random bits uint32[T, B] for the longest game."""
    return jax.random.bits(key, (MOVES_PER_POINT * shape[0] * shape[1], playout.is_white.shape[0]))


def is_unfinished(playout: Playout, most: int) -> Array:
    """Return bool[]: whether a game is not over and the limit `most` is not reached."""
    return (playout.num_moves < most) & (playout.num_passes < 2).any()


def final_lead(end: Playout, shape: tuple[int, int]) -> Array:
    """Return Black's area minus White's, int32[B], of finished games."""
    swapped = end.is_white[None]
    black, white = (
        jnp.where(swapped, end.now.other, end.now.own),
        jnp.where(swapped, end.now.own, end.now.other),
    )
    return area(black, white, shape)


def allowed_points(playout: Playout, shape: tuple[int, int]) -> Array:
    """Return rows uint32[H, B] of the points where the side to move may play; none once a game is
    over."""
    now, board = playout.now, bits.board_rows(shape)
    allowed = (
        non_suicide_points(now.own, now.other, now.one, board)
        & ~playout.ko
        & ~eyes(now.own, now.other, board)
    )
    return bits.where((playout.num_passes < 2)[None], allowed)


def choose(evaluate: EvaluateFn, words: Array, playout: Playout, shape: tuple[int, int]) -> Array:
    """Draw a move in every game from the softmax of the policy; `words` uint32[B] are random bits.
    Return rows uint32[H, B], empty for a pass."""
    allowed = allowed_points(playout, shape)
    score = jnp.where(
        unpack_rows(allowed, shape[1]) != 0,
        policy_logits(evaluate, playout.now, shape) + _gumbel(words, shape),
        -jnp.inf,
    )
    is_best = (score == score.max(axis=(0, 1))) & (score > -jnp.inf)
    columns = jnp.arange(shape[1], dtype=jnp.uint32)[None, :, None]
    return bits.lowest((is_best.astype(jnp.uint32) << columns).sum(axis=1, dtype=jnp.uint32))


def policy_logits(evaluate: EvaluateFn, now: Situation, shape: tuple[int, int]) -> Array:
    """Return the logits float32[H, W, B] of the policy, legal or not."""
    save, nakade, pattern, near = sparse_features(now, shape)
    logits = evaluate([None, save, None, nakade, None, pattern])
    answers = evaluate([near.response, None, near.neighbour, None, near.response_pattern, None])
    lane = jnp.arange(logits.shape[-1], dtype=jnp.int32)[None]
    return (
        logits.reshape(-1, logits.shape[-1])
        .at[near.point, lane]
        .add(answers, mode="drop")
        .reshape(logits.shape)
    )


def _gumbel(words: Array, shape: tuple[int, int]) -> Array:
    """Return Gumbel noise float32[H, W, B] from words uint32[B], by hashing them with the point."""
    points = jnp.arange(shape[0] * shape[1], dtype=jnp.uint32).reshape(*shape, 1)
    code = (points * jnp.uint32(0x9E3779B1)) ^ words
    code = (code ^ (code >> 15)) * jnp.uint32(0x85EBCA6B)
    code = (code ^ (code >> 13)) * jnp.uint32(0xC2B2AE35)
    uniform = ((code >> 8).astype(jnp.float32) + 0.5) * jnp.float32(2.0**-24)
    return -jnp.log(-jnp.log(uniform))


def play_move(playout: Playout, stone: Array, shape: tuple[int, int]) -> Playout:
    """Play a stone, rows uint32[H, B] of at most one point, in every game that is not over; an
    empty set is a pass."""
    now, board = playout.now, bits.board_rows(shape)
    own, other = now.own | stone, now.other
    seeds = jnp.stack([stone, *(seed & other for seed in neighbours_by_side(stone))], axis=1)
    chains = bits.flood(seeds, jnp.stack([own, other, other, other, other], axis=1))
    is_captured = bits.union(seeds[:, 1:] & now.one[:, None]) != 0
    captured = bits.any_of(bits.where(is_captured[None], chains[:, 1:]))
    other = other & ~captured
    empty = board & ~(own | other)

    number = bits.count_points(bits.neighbours(chains) & empty[:, None])
    touched = bits.any_of(chains)
    one = (now.one & ~touched) | bits.any_of(
        bits.where((number == 1)[None], chains) & ~captured[:, None]
    )
    two = (now.two & ~touched) | bits.any_of(
        bits.where((number == 2)[None], chains) & ~captured[:, None]
    )
    one, two = _freed(own, empty, one, two, own & bits.neighbours(captured) & ~chains[:, 0])
    is_pass = bits.union(stone) == 0
    now = Situation(other, own, one, two, stone, captured)
    return Playout(
        now=now,
        ko=ko_point(now),
        is_white=~playout.is_white,
        num_passes=jnp.where(is_pass, playout.num_passes + 1, 0),
        num_moves=playout.num_moves + 1,
    )


def _freed(
    own: Array, empty: Array, one: Array, two: Array, remaining: Array
) -> tuple[Array, Array]:
    """Recount the liberties of the own chains of the `remaining` stones, one chain of each game at
    a time."""

    def count(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        remaining, one, two = carry
        chain = bits.flood(bits.lowest(remaining), own)
        number = bits.count_points(bits.neighbours(chain) & empty)
        one, two = one & ~chain, two & ~chain
        return (
            remaining & ~chain,
            one | bits.where((number == 1)[None], chain),
            two | bits.where((number == 2)[None], chain),
        )

    return jax.lax.while_loop(lambda carry: (carry[0] != 0).any(), count, (remaining, one, two))[1:]


def area(black: Array, white: Array, shape: tuple[int, int]) -> Array:
    """Return Black's area minus White's, int32[B]: stones, and empty points that reach only
    them."""
    empty = bits.board_rows(shape) & ~(black | white)
    masks = jnp.stack([empty, empty], axis=1)
    reached = bits.flood(bits.neighbours(jnp.stack([black, white], axis=1)) & masks, masks)
    number = bits.count_points(jnp.stack([black, white], axis=1) | (reached & ~reached[:, ::-1]))
    return number[0] - number[1]


def make_play_out(
    game: Go, sum_weights: Callable[[PyTree, list[Array | None]], Array]
) -> Callable[[PyTree, Array, GoState], Array]:
    """Make the function (params, key, states[B]) -> points float32[B]: Black's area minus White's,
    without komi, of one game played to the end from each state.

    `sum_weights` (params, numbers as in `EvaluateFn`) -> logits is the policy.
    """
    shape = game.board_shape

    def points(params: PyTree, key: Array, states: GoState) -> Array:
        return play_out(
            functools.partial(sum_weights, params), key, start_from(states, shape), shape
        ).astype(jnp.float32)

    return points
