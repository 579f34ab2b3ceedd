"""The rules of chess (FIDE), as AlphaZero plays it: threefold repetition, fifty moves and the limit
of 512 moves end the game without a claim."""

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import numpy as np

from azero.games.chess import encoding, legal, moves, position, text
from azero.games.chess.position import ChessFacts, ChessPosition
from azero.games.chess.squares import ChessSquares
from azero.games.chess.state import ENDINGS, ChessGame, ChessState, verdict_of
from azero.games.history import NUM_FRAMES, Encoding
from azero.types import Array

__all__ = ["ENDINGS", "MAX_MOVES", "Chess", "ChessState"]

MAX_MOVES = 512
"""Longest game (AZ pseudocode: max_moves), counted in moves of either side."""


@dataclass(frozen=True)
class Chess(ChessGame):
    """Chess. The 4,672 actions are those of `moves`, the 119 planes those of `encoding`; player 0
    is White.

    Repetition. A position that occurs for the third time, with the same side to move, castling
    rights and legal en-passant captures, ends the game as a draw. Positions are compared by 62-bit
    hashes over the whole game; in the slim state of a search tree by 31 of these bits, just as far
    back. Positions before that of `fen` do not count.

    Fifty moves without progress end the game unless the last of them mates; the rules of five
    occurrences and of seventy-five moves are therefore never needed. Insufficient material is king
    against king, with one knight or with bishops that are all on squares of one colour; play
    continues in other dead positions.
    """

    max_moves: int = MAX_MOVES
    """the game is drawn after this number of moves"""
    fen: str = text.START
    """start position of games, in Forsyth-Edwards notation"""
    history: int = NUM_FRAMES
    """positions in the planes"""

    name: ClassVar[str] = "chess"
    num_actions: ClassVar[int] = moves.NUM_ACTIONS
    max_legal_actions: ClassVar[int] = moves.MAX_LEGAL_MOVES
    board_shape: ClassVar[tuple[int, int]] = (8, 8)
    ENCODING: ClassVar[Encoding] = encoding
    TEXT: ClassVar[ModuleType] = text
    BOARD: ClassVar[ModuleType] = position
    MOVES: ClassVar[ModuleType] = moves

    def parse_action(self, state: ChessState, san: str) -> int:
        """Host side: return the legal action of a move in SAN; errors as of `text.parse_san`."""
        return text.parse_san(text.board_of_state(state), san)

    @staticmethod
    def survey(
        seen: ChessPosition, plies: Array, clock: Array
    ) -> tuple[list[Array], Array, list[ChessSquares], list[Array], Array]:
        known = legal.legal(seen)
        seen = seen._replace(en_passant=known.en_passant)
        black = position.is_black(plies)
        board = position.pack_board(seen, black)
        rights = position.seen_rights(seen.castling, black)
        word = position.facts_word(ChessFacts(rights, plies & np.uint32(0), clock, plies))
        return (
            [*board, word],
            known.en_passant,
            known.targets,
            position.codes(seen, black, board),
            verdict_of(known, seen),
        )
