"""Evaluation of batches of positions for a search: legal moves, priors, values and results."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.mesh import platform_dependent
from azero.search.batched.reductions import edge_softmax
from azero.search.search import LeafFn
from azero.types import Array, PyTree

ILLEGAL = -1.0
"""Prior of an illegal move, so that no separate mask is stored; legal moves have priors in [0,
1]."""
CPU_CHUNK = 256
"""Positions that a CPU plays and evaluates at once; more do not fit its cache (measured: with 4,096
positions of 9x9 Go each took twice as long)."""


def masked_priors(logits: Array, legal_mask: Array) -> Array:
    """Return the softmax of `logits` over the legal moves, ILLEGAL elsewhere: float32[..., A]."""
    probabilities = edge_softmax(jnp.where(legal_mask, logits.astype(jnp.float32), -jnp.inf))
    return jnp.where(legal_mask, probabilities, ILLEGAL)


def compact(priors: Array, width: int) -> tuple[Array | None, Array]:
    """Keep the `width` legal moves with the highest priors.

    Args:
      priors: float32[P, A] with ILLEGAL marks.
      width: E, at most A.

    Returns:
      Their actions int32[P, E] in ascending order, padded with A, and their priors float32[P, E],
      which sum to one; (None, priors) if E is A.
    """
    if width == priors.shape[-1]:
        return None, priors
    moves, kept = _best_moves(priors, priors >= 0.0, width)
    is_move = kept > -jnp.inf
    # The sum is below one where moves were left out. Elsewhere it is one up to rounding, and the
    # division would only change the last bits of the leaf's priors.
    total = jnp.sum(jnp.where(is_move, kept, 0.0), axis=-1, keepdims=True)
    has_room = jnp.sum(priors >= 0.0, axis=-1, keepdims=True, dtype=jnp.int32) <= width
    return moves, jnp.where(
        is_move, jnp.where(has_room, kept, kept / jnp.maximum(total, 1e-30)), ILLEGAL
    )


def leaf_priors(
    logits: Array, legal_mask: Array, width: int, most_legal: int
) -> tuple[Array | None, Array]:
    """Return what `compact` returns of `masked_priors`, up to rounding, by a softmax over the
    moves that are kept alone; no position has more than `most_legal` legal moves."""
    if width == logits.shape[-1]:
        return None, masked_priors(logits, legal_mask)
    best = functools.partial(_best_moves, width=width)
    on_cpu = functools.partial(_best_of_few, width=width, most_legal=most_legal)
    moves, kept = platform_dependent(
        logits.astype(jnp.float32),
        legal_mask,
        cpu=on_cpu if most_legal < logits.shape[-1] else best,
        default=best,
    )
    return moves, masked_priors(kept, kept > -jnp.inf)


def _best_moves(scores: Array, legal_mask: Array, width: int) -> tuple[Array, Array]:
    """Return the `width` legal moves with the highest scores float32[P, A], in ascending order,
    padded with A, and their scores, -inf where there is no move."""
    scores = jnp.where(legal_mask, scores, -jnp.inf)
    kept, actions = jax.lax.top_k(scores, width)
    moves = jnp.where(kept > -jnp.inf, actions.astype(jnp.int32), scores.shape[-1])
    moves, kept = jax.lax.sort((moves, kept), dimension=-1, num_keys=1)
    return moves, kept


def _best_of_few(
    scores: Array, legal_mask: Array, width: int, most_legal: int
) -> tuple[Array, Array]:
    """Return the same as `_best_moves`, but find the legal moves, of which there are at most
    `most_legal`, before they are sorted; where no position has more than `width`, nothing is. A CPU
    needs a fifth of the time for chess. (Where a game is over every move may count as legal; what
    is found is not used.)
    """

    no_move = legal_mask.shape[-1]

    def among(scores: Array, words: Array, most: int) -> tuple[Array, Array]:
        moves = _set_bits(words, most, no_move)
        return moves, jnp.take_along_axis(scores, moves, axis=-1, mode="fill", fill_value=-jnp.inf)

    words = _words(legal_mask)
    if width >= most_legal:
        return among(scores, words, most_legal)

    def best_among(scores: Array, words: Array) -> tuple[Array, Array]:
        moves, scores = among(scores, words, most_legal)
        places, kept = _best_moves(scores, scores > -jnp.inf, width)
        return jnp.take_along_axis(moves, places, axis=-1, mode="fill", fill_value=no_move), kept

    counts = jnp.sum(jax.lax.population_count(words), axis=-1)
    return jax.lax.cond(
        jnp.any((counts > width) & (counts <= most_legal)),
        best_among,
        functools.partial(among, most=width),
        scores,
        words,
    )


def _words(mask: Array) -> Array:
    """Return the bits of bool[P, A], 32 a word, the first one lowest: uint32[P, ceil(A / 32)]."""
    bits = jnp.pad(mask, ((0, 0), (0, -mask.shape[-1] % 32))).reshape(len(mask), -1, 32)
    powers = jnp.uint32(1) << jnp.arange(32, dtype=jnp.uint32)
    return jnp.sum(jnp.where(bits, powers, 0), axis=-1, dtype=jnp.uint32)


def _set_bits(words: Array, width: int, size: int) -> Array:
    """Return the places of the bits of `_words` in ascending order, padded with `size`: int32[P,
    E], of which no row has more than E = `width`."""
    counts = jax.lax.population_count(words).astype(jnp.int32)
    ends = jnp.cumsum(counts, axis=-1, dtype=jnp.int32)

    def take(array: Array, index: Array) -> Array:
        return jnp.take_along_axis(array, index, axis=-1, mode="promise_in_bounds")

    # Each word is marked at its first bit's place among all bits; from there on up to the next mark
    # the bits are its own.
    row = jnp.arange(len(words), dtype=jnp.int32)[:, None]
    first = jnp.where(counts > 0, ends - counts, width)
    number = jnp.broadcast_to(jnp.arange(words.shape[1], dtype=jnp.int32), words.shape)
    marks = jnp.zeros((len(words), width), jnp.int32).at[row, first].set(number, mode="drop")
    index = jax.lax.cummax(marks, axis=1)

    # Which bit of its word: the half that holds it, five times.
    word, place = take(words, index), jnp.arange(width, dtype=jnp.int32)
    rank, bit = place - take(ends - counts, index), jnp.zeros_like(index)
    for half in (16, 8, 4, 2, 1):
        low = word & jnp.uint32((1 << half) - 1)
        count = jax.lax.population_count(low).astype(jnp.int32)
        is_high = rank >= count
        word = jnp.where(is_high, word >> half, low)
        rank, bit = jnp.where(is_high, rank - count, rank), jnp.where(is_high, bit + half, bit)
    return jnp.where(place < ends[:, -1:], 32 * index + bit, size)


class Evaluated(NamedTuple):
    """P new positions and their evaluations."""

    states: PyTree
    """[P, ...]: slim states."""
    players: Array
    """int32[P]: the side to move."""
    terminal: Array
    """bool[P]: the game is over."""
    moves: Array | None
    """int32[P, E]: the actions of the edges, or None; see `compact`."""
    priors: Array
    """float32[P, E]: their priors, ILLEGAL where there is no legal move."""
    values: Array
    """float32[P], for the side to move: the leaf's, or the exact result where the game is over."""


def play_and_evaluate(
    game: Game, leaf: LeafFn, width: int, params: PyTree, key: Array, before: PyTree, action: Array
) -> Evaluated:
    """Play moves int32[P] in states [P, ...] and evaluate the positions that result; a CPU does so
    chunk by chunk where they do not fit its cache."""
    at_once = functools.partial(_evaluate, game, leaf, width)
    if num_chunks(len(action)) == 1:
        return at_once(params, key, before, action)
    in_chunks = functools.partial(_evaluate_in_chunks, game, leaf, width)
    return platform_dependent(params, key, before, action, cpu=in_chunks, default=at_once)


def _evaluate(
    game: Game, leaf: LeafFn, width: int, params: PyTree, key: Array, before: PyTree, action: Array
) -> Evaluated:
    states = jax.vmap(game.step)(before, action)
    logits, values = leaf(params, key, states)
    legal_mask = jax.vmap(game.legal_action_mask)(states)
    moves, priors = leaf_priors(logits, legal_mask, width, game.max_legal_actions)
    return Evaluated(
        states,
        players=jax.vmap(game.to_play)(states),
        terminal=jax.vmap(game.is_terminal)(states),
        moves=moves,
        priors=priors,
        values=exact_values(game, states, values),
    )


def num_chunks(size: int) -> int:
    """Return the number of equal chunks into which the CPU divides a batch of `size`: the fewest of
    at most CPU_CHUNK positions, or one if the chunks would be tiny (a prime size)."""
    chunks = next(
        count for count in range(1, size + 1) if size % count == 0 and size // count <= CPU_CHUNK
    )
    return chunks if size // chunks >= CPU_CHUNK // 8 or size <= CPU_CHUNK else 1


def _evaluate_in_chunks(
    game: Game, leaf: LeafFn, width: int, params: PyTree, key: Array, before: PyTree, action: Array
) -> Evaluated:
    size = action.shape[0]
    chunks = num_chunks(size)

    def cut(array: Array) -> Array:
        return array.reshape(chunks, size // chunks, *array.shape[1:])

    def evaluate(chunk: tuple[Array, PyTree, Array]) -> Evaluated:
        return _evaluate(game, leaf, width, params, *chunk)

    evaluated = jax.lax.map(
        evaluate, (jax.random.split(key, chunks), jax.tree.map(cut, before), cut(action))
    )
    return jax.tree.map(lambda array: array.reshape(size, *array.shape[2:]), evaluated)


def evaluate_roots(
    game: Game, leaf: LeafFn, params: PyTree, key: Array, roots: PyTree
) -> tuple[PyTree, Array, Array, Array]:
    """Evaluate B states of real games, whose legal moves are exact.

    Returns:
      Slim states [B, ...]; logits float32[B, A], -inf on illegal moves; bool[B, A], the legal
        moves; values float32[B] for the side to move.
    """
    states = jax.vmap(game.search_state)(roots)
    legal_mask = jax.vmap(game.legal_action_mask)(roots)
    logits, values = leaf(params, key, states)
    logits = jnp.where(legal_mask, logits.astype(jnp.float32), -jnp.inf)
    return states, logits, legal_mask, exact_values(game, states, values)


def exact_values(game: Game, states: PyTree, values: Array) -> Array:
    """Return float32[B] for the side to move: the results of finished games, the leaf's `values` of
    the others."""
    players, rewards = jax.vmap(game.to_play)(states), jax.vmap(game.rewards)(states)
    results = jnp.take_along_axis(rewards, players[:, None], axis=-1)[:, 0]
    return jnp.where(jax.vmap(game.is_terminal)(states), results, values.astype(jnp.float32))
