"""Minichess in text: FEN of five ranks, moves in UCI, diagrams. Host side only, with numpy instead
of JAX."""

import functools
from types import ModuleType
from typing import ClassVar

from azero.games.chess import fen as chess_fen
from azero.games.chess import legal
from azero.games.chess import position as positions
from azero.games.chess.fen import ParsedFen
from azero.games.chess.text import ChessBoard, format_diagram, format_fen, format_uci
from azero.games.minichess import board as boards
from azero.games.minichess import moves
from azero.games.positions import word
from azero.games.quoting import quoting

__all__ = ["START", "board_of_fen", "board_of_state", "format_diagram", "format_fen", "format_uci"]

START = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
"""Gardner's opening position (Mhalla and Prost, 'Gardner's Minichess Variant is Solved', 2013,
Figure 1)."""


def parse_fen(fen: str) -> ParsedFen:
    """Read a FEN of five ranks; there is no castling or en passant, and the counts may be missing.

    Raises:
      ValueError: it is not a valid position; the FEN is quoted, with what is wrong.
    """
    with quoting(fen, "a minichess position in FEN"):
        fields = chess_fen.split_fen(fen)
        if (fields.castling, fields.en_passant) != ("-", "-"):
            raise ValueError(
                f"minichess has no castling and no en passant: these fields are '-', not "
                f"{fields.castling!r} and {fields.en_passant!r}"
            )
        wide = ["."] * 64
        for square, piece in enumerate(chess_fen.parse_pieces(fields.pieces, boards.SIZE)):
            wide[boards.wide_square(square)] = piece
        seen = chess_fen.position_of(wide, fields.side, 0, 0)
        seen = boards.shift_up(seen) if fields.side == "b" else seen
        chess_fen.check_opponent_king(
            boards.block_unused_squares(boards.shift_up(chess_fen.mirrored(seen)))
        )
    return ParsedFen(seen, word(fields.plies), word(min(fields.clock, positions.CLOCK_MAX)))


class MinichessBoard(ChessBoard):
    """One position; see `ChessBoard`."""

    NAME = "minichess"
    SIZE = boards.SIZE
    MOVES: ClassVar[ModuleType] = moves
    parse_fen = staticmethod(parse_fen)
    wide_square = staticmethod(boards.wide_square)
    BOARD: ClassVar[ModuleType] = boards

    @functools.cached_property
    def rules(self) -> legal.ChessLegal:
        """The legal moves of the position, and check."""
        return legal.legal(boards.block_unused_squares(self.position))


board_of_fen = MinichessBoard.of_fen
board_of_state = MinichessBoard.of_state
