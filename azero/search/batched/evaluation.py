"""Evaluation of batches of positions for a search: legal moves, priors, values and results."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
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
    moves, kept = _best_moves(priors, width, priors >= 0.0)
    is_move = kept > -jnp.inf
    # The sum is below one where moves were left out. Elsewhere it is one but for rounding, and the
    # division would only change the last bits of the leaf's priors.
    total = jnp.sum(jnp.where(is_move, kept, 0.0), axis=-1, keepdims=True)
    has_room = jnp.sum(priors >= 0.0, axis=-1, keepdims=True, dtype=jnp.int32) <= width
    return moves, jnp.where(
        is_move, jnp.where(has_room, kept, kept / jnp.maximum(total, 1e-30)), ILLEGAL
    )


def leaf_priors(logits: Array, legal_mask: Array, width: int) -> tuple[Array | None, Array]:
    """Return what `compact` returns of `masked_priors`, but for rounding, by a softmax over the
    moves that are kept alone."""
    if width == logits.shape[-1]:
        return None, masked_priors(logits, legal_mask)
    moves, kept = _best_moves(logits.astype(jnp.float32), width, legal_mask)
    return moves, masked_priors(kept, kept > -jnp.inf)


def _best_moves(scores: Array, width: int, legal_mask: Array) -> tuple[Array, Array]:
    """Return the `width` legal moves with the highest scores float32[P, A], in ascending order,
    padded with A, and their scores, -inf where there is no move."""
    scores = jnp.where(legal_mask, scores, -jnp.inf)
    kept, actions = jax.lax.top_k(scores, width)
    moves = jnp.where(kept > -jnp.inf, actions.astype(jnp.int32), scores.shape[-1])
    moves, kept = jax.lax.sort((moves, kept), dimension=-1, num_keys=1)
    return moves, kept


class Evaluated(NamedTuple):
    """P new positions and their evaluations."""

    states: PyTree
    players: Array
    terminal: Array
    moves: Array | None
    priors: Array
    values: Array
    """float32[P], for the side to move: the leaf's, or the exact result where the game is over."""


def play_and_evaluate(
    game: Game, leaf: LeafFn, width: int, params: PyTree, key: Array, before: PyTree, action: Array
) -> Evaluated:
    """Play moves int32[P] in states [P, ...] and evaluate the positions that result."""
    states = jax.vmap(game.step)(before, action)
    logits, values = leaf(params, key, states)
    terminal = jax.vmap(game.is_terminal)(states)
    moves, priors = leaf_priors(logits, jax.vmap(game.legal_action_mask)(states), width)
    return Evaluated(
        states,
        players=jax.vmap(game.to_play)(states),
        terminal=terminal,
        moves=moves,
        priors=priors,
        values=jnp.where(terminal, result_for_mover(game, states), values.astype(jnp.float32)),
    )


def num_chunks(size: int) -> int:
    """Return the number of equal chunks into which the CPU divides a batch of `size`: the fewest of
    at most CPU_CHUNK positions, or one if the chunks would be tiny (a prime size)."""
    chunks = next(
        count for count in range(1, size + 1) if size % count == 0 and size // count <= CPU_CHUNK
    )
    return chunks if size // chunks >= CPU_CHUNK // 8 or size <= CPU_CHUNK else 1


def evaluate_in_chunks(
    game: Game, leaf: LeafFn, width: int, params: PyTree, key: Array, before: PyTree, action: Array
) -> Evaluated:
    """Do the same as `play_and_evaluate`, chunk by chunk, for a batch that does not fit the
    cache."""
    size = action.shape[0]
    chunks = num_chunks(size)

    def cut(array: Array) -> Array:
        return array.reshape(chunks, size // chunks, *array.shape[1:])

    def evaluate(chunk: tuple[Array, PyTree, Array]) -> Evaluated:
        return play_and_evaluate(game, leaf, width, params, *chunk)

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
    values = jnp.where(
        jax.vmap(game.is_terminal)(states),
        result_for_mover(game, states),
        values.astype(jnp.float32),
    )
    return states, jnp.where(legal_mask, logits.astype(jnp.float32), -jnp.inf), legal_mask, values


def result_for_mover(game: Game, states: PyTree) -> Array:
    """Return float32[B]: the result of finished games for the side to move, zero for the others."""
    players = jax.vmap(game.to_play)(states)
    return jnp.take_along_axis(jax.vmap(game.rewards)(states), players[:, None], axis=-1)[:, 0]
