"""Packed samples of the replay, and how they become a training batch on the device."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.types import Array


class Samples(NamedTuple):
    """Packed positions as the host sends them: about 1 KB each at 19x19."""

    frames: Any
    """uint32[B, num_frames, F]: the position and those before it, newest first, zeros before the start of the game."""
    to_play: Any
    """uint8[B]: the side to move, 0 or 1."""
    policy_index: Any
    """int16[B, S]: actions of the policy target, -1 in empty slots."""
    policy_weight: Any
    """float16[B, S]: their weights."""
    is_target: Any
    """bool[B]: whether there is a policy target."""
    value: Any
    """float32[B]: the result of the game for the side to move."""
    symmetry: Any
    """uint8[B]: the symmetry in which the position is shown."""


class Batch(NamedTuple):
    """What the learner's loss takes."""

    planes: Array
    """bool/float32[B, H, W, C]: what the network sees."""
    weights: Array
    """float32[B, A]: the policy target; it sums to one, or is all zero where there is none."""
    value: Array
    """float32[B]: the value target in [-1, 1] for the side to move; for REINFORCE, how much better than expected the game ended for it."""
    allowed: Array | None = None
    """bool[B, A]: the moves that the policy chose from; None where nothing asks for them."""


def dense_policy(index: Array, weight: Array, num_actions: int) -> Array:
    """Return float32[A], the weights of a sparse policy (int16[S], -1 in empty slots; float16[S]) over all actions, summing to one, or zero if it is empty."""
    slots = index.shape[0]
    # Empty slots go to places of their own beyond the end, so that every place is written once and the order of writing cannot matter.
    place = jnp.where(index >= 0, index.astype(jnp.int32), num_actions + jnp.arange(slots, dtype=jnp.int32))
    weight = jnp.where(index >= 0, weight.astype(jnp.float32), 0.0)
    total = jnp.sum(weight)
    share = weight / jnp.where(total > 0, total, 1.0)
    return jnp.zeros(num_actions, jnp.float32).at[place].set(share, mode="drop", unique_indices=True)


@functools.partial(jax.jit, static_argnames=("game",))
def unpack(game: Game, samples: Samples) -> Batch:
    """Turn packed samples into planes, dense policy targets and values, each position in its own symmetry."""

    def one(sample: Samples) -> Batch:
        symmetry = sample.symmetry.astype(jnp.int32)
        planes = game.observe_frames(sample.frames, sample.to_play.astype(jnp.int32))
        weights = dense_policy(sample.policy_index, sample.policy_weight, game.num_actions) * sample.is_target
        return Batch(game.transform_planes(planes, symmetry), game.transform_policy(weights, symmetry), sample.value.astype(jnp.float32))

    return jax.vmap(one)(samples)
