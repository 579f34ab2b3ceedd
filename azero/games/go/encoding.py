"""Packed positions of Go, and the input planes made from them: AlphaGo Zero's 17, and those of
White to move (18) and of the komi (19)."""

import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.types import Array

NUM_FRAMES = 8
"""Positions in the planes: the current one and seven before it (AGZ methods, 'Neural network
architecture')."""
NUM_PLANES = 2 * NUM_FRAMES + 1
NUM_TWO_COLOUR_PLANES = NUM_PLANES + 1
"""Leela Zero's: White to move has a plane of its own, so that a convolution sees the edge of the
board by it whoever moves."""
NUM_KOMI_PLANES = NUM_PLANES + 2
_KOMI_SCALE = 0.1
"""Scale of the plane of the komi in points: 7.5 points are near one (no source; KataGo: 1/20)."""


def boards_of(frames: np.ndarray, num_points: int) -> np.ndarray:
    """Host side: return the boards int8[..., N] (1 Black, -1 White) of frames uint32[..., F]
    (`Go.pack_frame`)."""
    halves = np.split(frames[..., : 2 * bits.num_words(num_points)], 2, axis=-1)
    black, white = (bits.unpack_host(half, num_points) for half in halves)
    return black.astype(np.int8) - white


def planes_from_frames(frames: Array, to_play: Array, shape: tuple[int, int]) -> Array:
    """Return the planes bool[H, W, 17] in the paper's order X_t, Y_t, X_t-1, Y_t-1, ..., Y_t-7, C.

    `frames` is uint32[8, 2K], newest first, Black's words before White's. X are the stones of the
    side to move, Y those of the other side; C is all ones when Black (`to_play` 0) is to move.
    """
    height, width = shape
    colours = frames.reshape(NUM_FRAMES, 2, -1)
    is_black = jnp.asarray(to_play) == 0
    sides = jnp.where(is_black, colours, colours[:, ::-1]).reshape(2 * NUM_FRAMES, -1)
    stones = bits.unpack(sides, height * width)
    planes = jnp.concatenate([stones, jnp.broadcast_to(is_black, (1, height * width))])
    return planes.T.reshape(height, width, NUM_PLANES)


def with_white_to_move(planes: Array, to_play: Array) -> Array:
    """Return the planes bool[H, W, 17] followed by one that is all ones when White is to move:
    bool[H, W, 18]."""
    is_white = jnp.broadcast_to(jnp.asarray(to_play) == 1, (*planes.shape[:2], 1))
    return jnp.concatenate([planes, is_white], axis=-1)


def with_komi(planes: Array, to_play: Array, twice_komi: Array) -> Array:
    """Return the planes bool[H, W, 17] followed by two of the komi: float32[H, W, 19].

    The first is the komi of the side to move (White's is `twice_komi` / 2, Black's its negative) in
    tens of points. The second is a sawtooth of the komi, from -0.5 to 0.5 with a period of 2
    points: 0 at a komi with which a board without neutral points can be drawn, rising on both sides
    of it (as in KataGo's input; Wu 2019, appendix A.1).
    """
    points = planes.shape[0] * planes.shape[1]
    own = jnp.where(jnp.asarray(to_play) == 0, -twice_komi, twice_komi)  # in half points
    above = (own - 2 * points) % 4  # half points above a draw: the area's parity is the board's
    parity = jnp.array([0.0, 0.5, 0.0, -0.5], jnp.float32)[above]
    komi = jnp.stack([own.astype(jnp.float32) * (_KOMI_SCALE / 2), parity])
    shown = jnp.broadcast_to(komi, (*planes.shape[:2], 2))
    return jnp.concatenate([planes.astype(jnp.float32), shown], axis=-1)
