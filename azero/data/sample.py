"""Packed samples of the replay, and how they become a training batch on the device."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.selfplay.targets import dense_policy
from azero.types import Array


class Samples(NamedTuple):
    """Packed positions as the host sends them: 2.2 KB each at 19x19, so that there is room for
    every move."""

    frames: Any
    """uint32[B, num_frames, F]: the position and those before it, newest first, zeros before the
    start of the game."""
    to_play: Any
    """uint8[B]: the side to move, 0 or 1."""
    policy: Any
    """uint32[B, S]: the words of the policy target (`azero.selfplay.targets`), 0 in places left
    over."""
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
    """float32[B]: the value target in [-1, 1] for the side to move; for REINFORCE, how much better
    than expected the game ended for it."""
    allowed: Array | None = None
    """bool[B, A]: the moves that the policy chose from; None where nothing asks for them."""


@functools.partial(jax.jit, static_argnames=("game",))
def unpack(game: Game, samples: Samples) -> Batch:
    """Turn packed samples into planes, dense policy targets and values, each position in its own
    symmetry."""

    def one(sample: Samples) -> Batch:
        symmetry = sample.symmetry.astype(jnp.int32)
        planes = game.observe_frames(sample.frames, sample.to_play.astype(jnp.int32))
        weights = dense_policy(sample.policy, game.num_actions) * sample.is_target
        return Batch(
            game.transform_planes(planes, symmetry),
            game.transform_policy(weights, symmetry),
            sample.value.astype(jnp.float32),
        )

    return jax.vmap(one)(samples)
