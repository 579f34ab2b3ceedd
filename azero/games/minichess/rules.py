"""The rules of Gardner's 5x5 minichess (Gardner, Scientific American, 1969; Mhalla and Prost,
'Gardner's Minichess Variant is Solved', 2013)."""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from azero.games.chess import legal, position
from azero.games.chess.position import ChessFacts, ChessPosition
from azero.games.chess.squares import ChessSquares
from azero.games.chess.state import ENDINGS, ChessGame, ChessState, verdict_of
from azero.games.history import NUM_FRAMES, Encoding
from azero.games.minichess import board, encoding, moves, text
from azero.types import Array

__all__ = ["ENDINGS", "ChessState", "Minichess"]

MAX_MOVES = 256
"""Longest game, counted in moves of either side (Pgx, gardner_chess: MAX_TERMINATION_STEPS)."""


@dataclass(frozen=True)
class Minichess(ChessGame):
    """Chess on five ranks and files without castling, double steps and en passant; player 0 is
    White.

    The 1,225 actions are those of `moves`, the 115 planes those of `encoding`. Everything else is
    as in `azero.games.chess.rules`: promotion to queen, rook, bishop or knight, mate, stalemate,
    threefold repetition, fifty moves of each side without progress, and insufficient material. The
    state is that of chess, with the board as in `board`.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    fen: str = text.START
    """start position of games, in Forsyth-Edwards notation with five ranks"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "minichess"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (board.SIZE, board.SIZE)
    ENCODING: ClassVar[Encoding] = encoding
    TEXT: ClassVar[ModuleType] = text
    BOARD: ClassVar[ModuleType] = board
    MOVES: ClassVar[ModuleType] = moves

    @staticmethod
    def survey(
        seen: ChessPosition, plies: Array, clock: Array
    ) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
        known = legal.legal(board.block_unused_squares(seen))
        black = position.is_black(plies)
        nothing = plies & np.uint32(0)
        words = board.pack_board(seen, black)
        frame = [*words, position.facts_word(ChessFacts(nothing, nothing, clock, plies))]
        return (
            frame,
            nothing,
            known.targets,
            position.codes(seen, black, words),
            verdict_of(known, seen),
        )
