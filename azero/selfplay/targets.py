"""Policy targets as words of 32 bits, one for each move with a positive weight. The same words
leave the device, are stored in the shard, and come back in a batch.

The low half of a word is the move's weight, up to a factor that all moves of a target share: a
number of visits, which is kept exactly, or the bits of a float16, in which case the highest bit is
set. The 15 bits between are the action. The word 0 is no move.
"""

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.types import Array

MAX_VISITS = (1 << 16) - 1
"""Visits of one move that a policy word can hold."""
MAX_ACTIONS = 1 << 15
"""Actions that a policy word, and the int16 of a stored move, can tell apart."""
_IS_HALF = 1 << 31


def policy_words(weights: Array, slots: int) -> Array:
    """Return uint32[..., S]: a policy target as words, in any order, padded with 0.

    Args:
      weights: int32[..., A] visits of at most `MAX_VISITS`, or float32[..., A] with a sum of one,
        of which shares below 3e-8, half the smallest float16, are left out; of either at most
        `slots` are above zero.
      slots: room for moves; S is `slots`, or A if that is smaller.
    """
    num_actions = weights.shape[-1]
    if slots < num_actions:
        weights, action = jax.lax.top_k(weights, slots)
    else:
        action = jnp.broadcast_to(jnp.arange(num_actions, dtype=jnp.int32), weights.shape)
    if jnp.issubdtype(weights.dtype, jnp.floating):
        half = jax.lax.bitcast_convert_type(weights.astype(jnp.float16), jnp.uint16)
        low, mark = half.astype(jnp.uint32), jnp.uint32(_IS_HALF)
    else:
        low, mark = weights.astype(jnp.uint32), jnp.uint32(0)
    return jnp.where(low > 0, mark | (action.astype(jnp.uint32) << 16) | low, jnp.uint32(0))


def countable(visits: Array) -> Array:
    """Return int32[..., A]: the visits, or, where one of them is above `MAX_VISITS`, numbers in the
    same proportions, rounded down."""
    most = jnp.max(visits, axis=-1, keepdims=True).astype(jnp.float32)
    scaled = jnp.floor(visits.astype(jnp.float32) * (MAX_VISITS / jnp.maximum(most, 1.0)))
    return jnp.where(most > MAX_VISITS, scaled.astype(jnp.int32), visits)


def dense_policy(words: Array, num_actions: int) -> Array:
    """Return float32[A], the policy target uint32[S] of `policy_words` over all actions, with a sum
    of one, or zero if it is empty."""
    low = words & jnp.uint32(0xFFFF)
    half = jax.lax.bitcast_convert_type(low.astype(jnp.uint16), jnp.float16).astype(jnp.float32)
    weight = jnp.where(words >= jnp.uint32(_IS_HALF), half, low.astype(jnp.float32))
    # Empty slots are written to indices of their own beyond the end, so that every index is written
    # once and the order cannot matter.
    action = ((words >> 16) & jnp.uint32(0x7FFF)).astype(jnp.int32)
    place = jnp.where(words > 0, action, num_actions + jnp.arange(words.shape[0], dtype=jnp.int32))
    total = jnp.sum(weight)
    share = weight / jnp.where(total > 0, total, 1.0)
    return (
        jnp.zeros(num_actions, jnp.float32).at[place].set(share, mode="drop", unique_indices=True)
    )


def words_of(action: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Host side: return the words uint32[...] of actions int[...] with weights of the same shape,
    uint16 visits or float16; 0 where the action is below 0."""
    mark = np.uint32(_IS_HALF if weight.dtype == np.float16 else 0)
    low = weight.view(np.uint16).astype(np.uint32)
    return np.where(
        (action >= 0) & (low > 0), mark | (action.astype(np.uint32) << 16) | low, np.uint32(0)
    )


def policy_room(game: Game) -> int:
    """Return how many moves a policy target of `game` can have: at most as many as are legal.

    Raises:
      ValueError: the game has more actions than can be stored.
    """
    if game.num_actions > MAX_ACTIONS:
        raise ValueError(
            f"{game.name} has {game.num_actions:,} actions; stored games have at most "
            f"{MAX_ACTIONS:,}"
        )
    return min(game.num_actions, game.max_legal_actions)


def spans(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return int64[sum of count]: the indices of runs of `count` items from `start` on, one run
    after the other."""
    begin = np.cumsum(count, dtype=np.int64) - count
    return np.arange(int(count.sum()), dtype=np.int64) + np.repeat(start - begin, count)
