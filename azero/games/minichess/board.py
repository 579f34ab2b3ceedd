"""The 5x5 board inside the 8x8 one, so that the code of chess can be used.

A minichess position is a chess position on the files a to e and the ranks 4 to 8 of the mover's
side; while legal moves are computed, the 39 other squares (UNUSED_SQUARES) hold pieces of the mover
that cannot move. So the last rank is that of chess, and there are no double steps, which start on
rank 2. Seen from the other side the board is on ranks 1 to 5 and is shifted up by three.

    8 . . . . . # # #
    7 . . . . . # # #
    6 . . . . . # # #
    5 . . . . . # # #
    4 . . . . . # # #
    3 # # # # # # # #
    2 # # # # # # # #
    1 # # # # # # # #
      a b c d e f g h
"""

from collections.abc import Sequence

import numpy as np

from azero.games.chess import position as chess_position
from azero.games.chess.position import ChessMove, ChessPosition
from azero.games.chess.squares import ChessSquares, constant, shift
from azero.games.compass import choose
from azero.types import Array

SIZE = 5
NUM_SQUARES = SIZE * SIZE
FIRST_RANK = 8 - SIZE
"""Rank of the 8x8 board, from 0, that is the mover's first rank."""
UNUSED_SQUARES = ~constant(sum(0b11111 << 8 * rank for rank in range(FIRST_RANK, 8)))


def wide_square(square: int) -> int:
    """Return the square 0..63 of the 8x8 board that is the square 0..24 of the 5x5 board."""
    return 8 * (square // SIZE + FIRST_RANK) + square % SIZE


def _shift_up(squares: ChessSquares) -> ChessSquares:
    return shift(squares, 8 * FIRST_RANK)


def shift_up(position: ChessPosition) -> ChessPosition:
    """Return a position on the ranks 1 to 5 moved to the ranks 4 to 8."""
    own, other, *kinds = (
        _shift_up(squares) for squares in (position.own, position.other, *position.kinds)
    )
    return position._replace(own=own, other=other, kinds=(kinds[0], kinds[1], kinds[2]))


def block_unused_squares(position: ChessPosition) -> ChessPosition:
    """Return the position with UNUSED_SQUARES among the mover's pieces."""
    return position._replace(own=position.own | UNUSED_SQUARES)


def unpack(frame: Sequence[Array], en_passant: Array) -> ChessPosition:
    """Return the position of a frame (nine arrays, see `azero.games.chess.position`) as seen by the
    side to move; nothing can be captured en passant."""
    del en_passant
    black = chess_position.is_black(chess_position.facts(frame[8]).plies)
    seen = chess_position.unpack(frame, frame[8] & np.uint32(0))
    up = shift_up(seen)
    own, other, *kinds = (
        choose(black, high, low)
        for high, low in zip(
            (up.own, up.other, *up.kinds), (seen.own, seen.other, *seen.kinds), strict=True
        )
    )
    return seen._replace(own=own, other=other, kinds=(kinds[0], kinds[1], kinds[2]))


def pack_board(position: ChessPosition, black: Array) -> list[Array]:
    """Return the first eight words of a frame, with White's board on the ranks 4 to 8; `black` is
    all ones where Black is to move."""
    words = chess_position.pack_board(position, black)
    pairs = [ChessSquares(words[2 * index], words[2 * index + 1]) for index in range(4)]
    return [word for pair in pairs for word in choose(black, _shift_up(pair), pair)]


def play(position: ChessPosition, move: ChessMove) -> tuple[ChessPosition, Array]:
    """Play a legal move: the position from the other side, and bool, whether a piece was taken or a
    pawn moved."""
    moved, is_progress = chess_position.play(position, move)
    return shift_up(moved), is_progress
