"""The 115 input planes of minichess: those of AlphaZero's chess (see `azero.games.chess.encoding`)
without the four for castling.

Planes [rank, file, C] from the side to move. For each of the eight newest positions, newest first,
the 14 planes of chess; then, of the newest:
    112  colour: ones when White is to move
    113  total move count, of both sides, divided by 512
    114  no-progress count, divided by 100
"""

import jax.numpy as jnp

from azero.games.chess import encoding as chess_encoding
from azero.games.minichess.board import FIRST_RANK, SIZE
from azero.types import Array

PLANES_PER_FRAME = chess_encoding.PLANES_PER_FRAME
ENDS = chess_encoding.ENDS - 4
"""Planes of the newest position alone."""


def planes_from_frames(frames: Array, to_play: Array) -> Array:
    """Return the planes float32[5, 5, 14 H + 3] of frames uint32[H, 9], newest first, as seen by
    the side to move int32[]."""
    planes = chess_encoding.planes_from_frames(frames, to_play)
    # From Black's side the board is on the other ranks of the 8x8 board (see `board`).
    board = jnp.where(jnp.asarray(to_play) != 0, planes[:SIZE, :SIZE], planes[FIRST_RANK:, :SIZE])
    castling = board.shape[-1] - chess_encoding.ENDS + chess_encoding.CASTLING
    return jnp.concatenate([board[..., :castling], board[..., castling + 4 :]], axis=-1)
