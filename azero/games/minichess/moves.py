"""The 5 x 5 x 49 encoding of moves: AlphaZero's 8 x 8 x 73 encoding of chess (see
`azero.games.chess.moves`) without the distances that do not fit a 5x5 board.

action = 49 * square + plane. The square is where the piece stands, from the mover's side:
5 * rank + file, so that 0 is White's a1 and Black's a5. Planes:
    0-31   queen's moves: 4 * direction + distance - 1, the directions N NE E SE S SW W NW, the
           distances 1 to 4
    32-39  knight's moves, clockwise from north-north-east
    40-48  underpromotions: 40 + 3 * direction + kind, the directions NW N NE, the kinds knight,
           bishop, rook
"""

from collections.abc import Sequence

import numpy as np

from azero.games.chess import moves as chess_moves
from azero.games.chess.position import ChessMove, ChessPosition
from azero.games.chess.squares import ChessSquares
from azero.games.compass import spread
from azero.games.minichess.board import (
    FIRST_RANK,
    NUM_SQUARES,
    SIZE,
    block_unused_squares,
    wide_square,
)
from azero.types import Array

DISTANCES = SIZE - 1
KNIGHT_PLANES = 8 * DISTANCES
NUM_PLANES = KNIGHT_PLANES + 8 + 9
NUM_ACTIONS = NUM_SQUARES * NUM_PLANES
MAX_LEGAL_MOVES = 128
"""No position has more: six queens of at most 16 moves, rook, bishop, knight and king of at most 8
each."""
_LEFT_OUT = chess_moves.KNIGHT_PLANES - KNIGHT_PLANES
"""Planes of chess for longer moves."""


def wide_planes() -> list[int]:
    """Return for each plane the corresponding plane of chess."""
    queens = [7 * direction + distance for direction in range(8) for distance in range(DISTANCES)]
    return queens + list(range(chess_moves.KNIGHT_PLANES, chess_moves.NUM_PLANES))


def plane_moves() -> list[tuple[int, int, int]]:
    """Return for each plane how many files and ranks a piece moves, and the code of the kind for an
    underpromotion, else 0."""
    planes = chess_moves.plane_moves()
    return [planes[index] for index in wide_planes()]


def decode(action: Array) -> ChessMove:
    """Return the move of actions uint32, with squares of the 8x8 board. The end of a move that
    would leave the board is arbitrary."""
    square, plane = action // np.uint32(NUM_PLANES), action % np.uint32(NUM_PLANES)
    wide = np.uint32(8) * (square // np.uint32(SIZE) + np.uint32(FIRST_RANK)) + square % np.uint32(
        SIZE
    )
    is_queens = spread(plane < KNIGHT_PLANES)
    queens = np.uint32(7) * (plane // np.uint32(DISTANCES)) + plane % np.uint32(DISTANCES)
    chess_plane = (queens & is_queens) | ((plane + np.uint32(_LEFT_OUT)) & ~is_queens)
    return chess_moves.decode(wide * np.uint32(chess_moves.NUM_PLANES) + chess_plane)


def start_squares(position: ChessPosition, targets: Sequence[ChessSquares]) -> list[ChessSquares]:
    """Return for each of the 49 planes the squares from which a legal move of that plane starts
    (`targets` of `azero.games.chess.legal.legal`)."""
    planes = chess_moves.start_squares(block_unused_squares(position), targets)
    return [planes[index] for index in wide_planes()]


def action_mask(planes: Sequence[ChessSquares]) -> Array:
    """Return bool[B, 1225] of the 49 sets of `start_squares`, words uint32[B]."""
    return chess_moves.action_mask(planes, range(8 * FIRST_RANK, 64, 8), SIZE)


def host_actions(planes: Sequence[ChessSquares]) -> list[int]:
    """Return the legal actions, in ascending order, of the 49 sets of one position, words numpy
    uint32[1]."""
    return chess_moves.host_actions(planes, [wide_square(square) for square in range(NUM_SQUARES)])
