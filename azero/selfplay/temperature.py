"""Choosing a move from the result of the search: in proportion to the visits at the start of a
game, the best move afterwards."""

import chex
import jax.numpy as jnp

from azero.search.batched.reductions import categorical
from azero.types import Array


def choose(
    key: Array, weights: Array, greedy_action: Array, ply: Array, temperature_moves: int | Array
) -> Array:
    """Choose a move for each game: temperature 1 for the first moves, then 0 (AlphaGo Zero,
    methods, 'Self-play').

    Temperature 1 draws in proportion to `weights`; temperature 0 takes `greedy_action`, so ties are
    broken where the search breaks them.

    Args:
      key: a PRNG key.
      weights: float32[B, A], non-negative, zero on illegal actions; visit counts and distributions
        both work.
      greedy_action: int32[B], the move the search would play.
      ply: int32[B], moves played so far in each game.
      temperature_moves: moves at temperature 1 from the start of the game, one number or int32[B].

    Returns:
      int32[B]. An action of weight zero is never drawn; a game whose weights are all zero gets its
        greedy action.
    """
    chex.assert_rank([weights, greedy_action, ply], [2, 1, 1])
    chex.assert_equal_shape([greedy_action, ply, weights[:, 0]])
    if isinstance(temperature_moves, int) and temperature_moves == 0:
        return greedy_action.astype(jnp.int32)
    possible = weights > 0
    logits = jnp.where(possible, jnp.log(jnp.where(possible, weights, 1)), -jnp.inf)
    drawn = categorical(key, logits)
    explores = (ply < temperature_moves) & possible.any(axis=-1)
    return jnp.where(explores, drawn, greedy_action.astype(jnp.int32))
