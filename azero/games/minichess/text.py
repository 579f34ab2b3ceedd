"""Minichess in text: FEN of five ranks, moves in UCI, diagrams. Host side only, with numpy instead
of JAX."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from azero.games.chess import fen as chess_fen
from azero.games.chess import legal
from azero.games.chess import moves as chess_moves
from azero.games.chess import position as positions
from azero.games.chess.fen import LETTERS, ParsedFen, letters_of, square_name
from azero.games.chess.position import ChessPosition
from azero.games.diagrams import diagram_rows, format_ranks
from azero.games.minichess import board as boards
from azero.games.minichess import moves
from azero.games.minichess.board import NUM_SQUARES, SIZE

START = "rnbqk/ppppp/5/PPPPP/RNBQK w - - 0 1"
"""Gardner's opening position (Mhalla and Prost, 'Gardner's Minichess Variant is Solved', 2013,
Figure 1)."""


def parse_fen(fen: str) -> ParsedFen:
    """Read a FEN of five ranks; there is no castling or en passant, and the counts may be missing.

    Raises:
      ValueError: it is not a valid position; the FEN is quoted, with what is wrong.
    """
    try:
        return _parse(fen)
    except ValueError as error:
        raise ValueError(f"{fen!r} is not a minichess position in FEN: {error}") from None


def _parse(fen: str) -> ParsedFen:
    fields = chess_fen.split_fen(fen)
    if (fields.castling, fields.en_passant) != ("-", "-"):
        raise ValueError(
            f"minichess has no castling and no en passant: these fields are '-', not "
            f"{fields.castling!r} and {fields.en_passant!r}"
        )
    pieces = chess_fen.parse_pieces(fields.pieces, SIZE)
    wide = ["."] * 64
    for square, piece in enumerate(pieces):
        wide[boards.wide_square(square)] = piece
    seen = chess_fen.position_of(wide, fields.side, 0, 0)
    seen = boards.shift_up(seen) if fields.side == "b" else seen
    chess_fen.check_opponent_king(
        boards.block_unused_squares(boards.shift_up(chess_fen.mirrored(seen)))
    )
    return ParsedFen(
        seen, chess_fen.word(fields.plies), chess_fen.word(min(fields.clock, positions.CLOCK_MAX))
    )


@dataclass(frozen=True)
class MinichessBoard:
    """One position, for display and notation: made from a state (`board_of_state`) or a FEN
    (`board_of_fen`); its moves are actions of `moves`."""

    position: ChessPosition
    """from the mover's side; numpy words uint32[1]"""
    plies: int
    clock: int

    @property
    def is_black(self) -> bool:
        """Black is to move."""
        return self.plies % 2 == 1

    @functools.cached_property
    def rules(self) -> legal.ChessLegal:
        """The legal moves of the position, and check."""
        return legal.legal(boards.block_unused_squares(self.position))

    @property
    def is_check(self) -> bool:
        """The side to move is in check."""
        return bool(self.rules.in_check[0])

    @functools.cached_property
    def pieces(self) -> str:
        """The letters of the 25 squares from a1, seen from White's side; a dot for an empty one."""
        return letters_of(
            self.position,
            self.is_black,
            [boards.wide_square(self.view(square)) for square in range(NUM_SQUARES)],
        )

    def view(self, square: int) -> int:
        """Convert a square's number between counting from a1 and counting from the mover's side."""
        return NUM_SQUARES - SIZE - square + 2 * (square % SIZE) if self.is_black else square

    @functools.cached_property
    def actions(self) -> tuple[int, ...]:
        """The legal actions in ascending order."""
        return tuple(moves.host_actions(moves.start_squares(self.position, self.rules.targets)))

    @functools.cached_property
    def uci(self) -> dict[str, int]:
        """The legal actions by their names in UCI."""
        return {format_uci(self, action): action for action in self.actions}

    def after(self, action: int) -> MinichessBoard:
        """Return the board after a legal action."""
        moved, is_progress = boards.play(self.position, moves.decode(np.array([action], np.uint32)))  # type: ignore[arg-type]
        return MinichessBoard(
            moved, self.plies + 1, 0 if is_progress[0] else min(self.clock + 1, positions.CLOCK_MAX)
        )


def board_of_fen(fen: str) -> MinichessBoard:
    """Return the board that a FEN describes.

    Raises:
      ValueError: it is not a position of minichess; what is wrong is named.
    """
    parsed = parse_fen(fen)
    return MinichessBoard(parsed.position, int(parsed.plies[0]), int(parsed.clock[0]))


def board_of_state(state: Any) -> MinichessBoard:
    """Return the board of one state."""
    frame = np.asarray(state.frames)[0].reshape(-1, 1)
    known = positions.facts(frame[-1])
    return MinichessBoard(boards.unpack(list(frame)), int(known.plies[0]), int(known.clock[0]))


def format_fen(board: MinichessBoard) -> str:
    """Return the FEN."""
    return (
        f"{format_ranks(board.pieces, SIZE)} {'b' if board.is_black else 'w'} - - {board.clock} "
        f"{board.plies // 2 + 1}"
    )


def format_uci(board: MinichessBoard, action: int) -> str:
    """Return a move as in UCI: b1c3, a4a5q. An action that would leave the board is "a1 by -1+2"
    (files, ranks)."""
    if not 0 <= action < moves.NUM_ACTIONS:
        raise ValueError(f"action {action} is not one of minichess: 0 to {moves.NUM_ACTIONS - 1}")
    square, plane = divmod(action, moves.NUM_PLANES)
    files, ranks, promotion = chess_moves.plane_moves()[moves.wide_planes()[plane]]
    start = board.view(square)
    if not (0 <= square % SIZE + files < SIZE and 0 <= square // SIZE + ranks < SIZE):
        return f"{_name(start)} by {files:+d}{ranks:+d}{LETTERS[promotion].lower().strip('.')}"
    is_queening = (
        board.pieces[start].upper() == "P" and square // SIZE + ranks == SIZE - 1 and not promotion
    )
    return (
        _name(start)
        + _name(board.view(square + SIZE * ranks + files))
        + LETTERS[positions.QUEEN if is_queening else promotion].lower().strip(".")
    )


def _name(square: int) -> str:
    return square_name(8 * (square // SIZE) + square % SIZE)


def format_diagram(board: MinichessBoard) -> str:
    """Return the board from White's side with coordinates, and the FEN below it."""
    return "\n".join([*diagram_rows(board.pieces, SIZE), format_fen(board)])
