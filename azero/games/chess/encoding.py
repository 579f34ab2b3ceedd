"""The 119 input planes of AlphaZero's chess (AZ, supplement, Table S1).

Planes [rank, file, C] from the side to move (P1): rank 0 is its own first rank, files are a to h
for both colours. For each of the eight newest positions, newest first, 14 planes; zeros before the
start of the game (fewer with a shorter `history`, and what follows comes earlier):
    0-5    P1's pawns, knights, bishops, rooks, queens, king
    6-11   P2's
    12-13  how often the position has occurred so far: once, twice (one-hot; a third time ends the
           game)
then, of the newest position:
    112      colour: ones when White is to move
    113      total move count, of both sides
    114-115  P1 may castle short, long
    116-117  P2 the same
    118      no-progress count: moves of both sides since the last capture or pawn move
The paper has counts as one real number a plane and gives no scale. Here the total is divided by
512, the longest game, and no-progress by 100, its largest value.
"""

import jax.numpy as jnp

from azero.games.chess.position import FRAME_WORDS, KINDS, facts, unpack
from azero.games.compass import spread
from azero.types import Array

PLANES_PER_FRAME = 14
ENDS = 7
"""Planes of the newest position alone."""
TOTAL, CASTLING, NO_PROGRESS = 1, 2, 6
"""Places among them."""
TOTAL_SCALE, NO_PROGRESS_SCALE = 512.0, 100.0


def planes_from_frames(frames: Array, to_play: Array) -> Array:
    """Return the planes float32[8, 8, 14 H + 7] of frames uint32[H, 9], newest first, as seen by
    the side to move int32[]."""
    black = spread(jnp.asarray(to_play) != 0)
    columns = [frames[:, index] for index in range(FRAME_WORDS)]
    position = unpack(columns, jnp.uint32(0), black)
    known = facts(columns[-1])
    pieces = [
        position.kind(code) & side for side in (position.own, position.other) for code in KINDS
    ]
    occurrences = [spread(known.occurrences == 1), spread(known.occurrences >= 2)]
    rights = [spread((position.castling[0] >> bit) & 1 != 0) for bit in range(4)]
    ends = jnp.stack([~black, jnp.uint32(0), *rights, jnp.uint32(0)])
    halves = [
        jnp.stack([getattr(squares, half) for squares in pieces] + occurrences, axis=1)
        for half in ("low", "high")
    ]
    words = jnp.stack([jnp.concatenate([half.reshape(-1), ends]) for half in halves])
    bits = (words[:, None, :] >> jnp.arange(32, dtype=jnp.uint32)[None, :, None]) & 1
    planes = bits.astype(jnp.float32).reshape(8, 8, -1)
    place = jnp.arange(planes.shape[-1], dtype=jnp.int32) - (planes.shape[-1] - ENDS)
    planes = jnp.where(place == TOTAL, known.plies[0].astype(jnp.float32) / TOTAL_SCALE, planes)
    return jnp.where(
        place == NO_PROGRESS, known.clock[0].astype(jnp.float32) / NO_PROGRESS_SCALE, planes
    )
