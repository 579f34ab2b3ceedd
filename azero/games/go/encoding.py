"""Packed positions of Go and the 17 input planes of AlphaGo Zero."""

from __future__ import annotations

import jax.numpy as jnp

from azero.games import bits
from azero.types import Array

NUM_FRAMES = 8
"""Positions in the planes: the current one and seven before it (AGZ methods, 'Neural network
architecture')."""
NUM_PLANES = 2 * NUM_FRAMES + 1


def planes_from_frames(frames: Array, to_play: Array, shape: tuple[int, int]) -> Array:
    """Return the planes bool[H, W, 17] in the paper's order X_t, Y_t, X_t-1, Y_t-1, ..., Y_t-7, C.

    `frames` is uint32[8, 2K], newest first, Black's words before White's; X are the stones of the
    side to move, Y the other's; C is all ones when Black (`to_play` 0) is to move.
    """
    height, width = shape
    colours = frames.reshape(NUM_FRAMES, 2, -1)
    is_black = jnp.asarray(to_play) == 0
    sides = jnp.where(is_black, colours, colours[:, ::-1]).reshape(2 * NUM_FRAMES, -1)
    stones = bits.unpack(sides, height * width)
    planes = jnp.concatenate([stones, jnp.broadcast_to(is_black, (1, height * width))])
    return planes.T.reshape(height, width, NUM_PLANES)
