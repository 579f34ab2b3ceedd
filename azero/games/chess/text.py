"""Chess in text: FEN, moves in UCI and in standard algebraic notation, diagrams. Host side only,
with numpy instead of JAX."""

import functools
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from azero.games.chess import legal, moves
from azero.games.chess import position as positions
from azero.games.chess.fen import LETTERS, START, parse_fen, parse_square, square_name
from azero.games.chess.position import ChessPosition
from azero.games.chess.san import SAN, plain_san
from azero.games.chess.squares import ChessSquares
from azero.games.diagrams import diagram_rows, format_ranks, letters_of
from azero.games.quoting import shorten

__all__ = ["START", "ChessBoard", "board_of_fen", "board_of_state", "parse_fen"]


@dataclass(frozen=True)
class ChessBoard:
    """One position, for display and notation: made from a state (`of_state`) or a FEN
    (`of_fen`); its moves are actions of `MOVES`.

    Subclasses are boards of other sizes inside the 8x8 one.
    """

    position: ChessPosition
    """from the mover's side; numpy words uint32[1]; the en-passant file may be that of any double
    step"""
    plies: int
    clock: int
    known_targets: tuple[ChessSquares, ...] | None = None
    """of its legal moves, if the board was made from a state"""

    NAME: ClassVar[str] = "chess"
    SIZE: ClassVar[int] = 8
    MOVES: ClassVar[ModuleType] = moves
    BOARD: ClassVar[ModuleType] = positions
    parse_fen = staticmethod(parse_fen)

    @classmethod
    def of_fen(cls, fen: str) -> Self:
        """Return the board that a FEN describes.

        Raises:
          ValueError: it is not a position of the game; what is wrong is named.
        """
        parsed = cls.parse_fen(fen)
        return cls(parsed.position, int(parsed.plies[0]), int(parsed.clock[0]))

    @classmethod
    def of_state(cls, state: Any) -> Self:
        """Return the board of one `ChessState`."""
        frame = np.asarray(state.frames)[0].reshape(-1, 1)
        known = positions.facts(frame[-1])
        targets = tuple(
            ChessSquares(low, high) for low, high in np.asarray(state.targets).reshape(-1, 2, 1)
        )
        seen = cls.BOARD.unpack(list(frame), np.asarray(state.en_passant).reshape(1))
        return cls(seen, int(known.plies[0]), int(known.clock[0]), targets)

    @property
    def is_black(self) -> bool:
        """Black is to move."""
        return self.plies % 2 == 1

    @functools.cached_property
    def pieces(self) -> str:
        """The letters of the squares from a1, seen from White's side; a dot for an empty one."""
        seen = self.position
        own, other, *kinds = (
            int(held.low[0]) | int(held.high[0]) << 32
            for held in (seen.own, seen.other, *seen.kinds)
        )
        white = other if self.is_black else own
        squares = map(self.wide_square, map(self.view, range(self.SIZE**2)))
        return "".join(letters_of(white, kinds, squares, LETTERS))

    def view(self, square: int) -> int:
        """Convert a square's number between counting from a1 and counting from the mover's side."""
        rank, file = divmod(square, self.SIZE)
        return self.SIZE * (self.SIZE - 1 - rank) + file if self.is_black else square

    @staticmethod
    def wide_square(square: int) -> int:
        """Return the square of the 8x8 board that is `square` of this one, from the mover's
        side."""
        return square

    @functools.cached_property
    def rules(self) -> legal.ChessLegal:
        """The legal moves of the position, and check."""
        return legal.legal(self.position)

    @property
    def is_check(self) -> bool:
        """The side to move is in check."""
        return bool(self.rules.in_check[0])

    @functools.cached_property
    def actions(self) -> tuple[int, ...]:
        """The legal actions in ascending order."""
        targets = self.known_targets or self.rules.targets
        return tuple(self.MOVES.host_actions(self.MOVES.start_squares(self.position, targets)))

    @functools.cached_property
    def names(self) -> dict[str, int]:
        """The legal actions by their names in UCI."""
        return {format_uci(self, action): action for action in self.actions}

    def after(self, action: int) -> Self:
        """Return the board after a legal action."""
        move = self.MOVES.decode(np.array([action], np.uint32))
        moved, is_progress = self.BOARD.play(self.position, move)
        clock = 0 if is_progress[0] else min(self.clock + 1, positions.CLOCK_MAX)
        return type(self)(moved, self.plies + 1, clock)


def board_of_frame(frame: np.ndarray) -> ChessBoard:
    """Return the board of frame uint32[9], in which no pawn can be captured en passant."""
    words = frame.reshape(-1, 1)
    known = positions.facts(words[-1])
    seen = positions.unpack(list(words), np.zeros(1, np.uint32))  # type: ignore[arg-type]
    return ChessBoard(seen, int(known.plies[0]), int(known.clock[0]))


board_of_fen = ChessBoard.of_fen
board_of_state = ChessBoard.of_state


def format_fen(board: ChessBoard) -> str:
    """Return the FEN, with the en-passant square only where the capture is legal."""
    rights = int(board.position.castling[0])
    rights = (rights >> 2 | rights << 2) & 15 if board.is_black else rights
    castling = "".join(letter for bit, letter in enumerate("KQkq") if rights >> bit & 1) or "-"
    file = int(board.position.en_passant[0]) and int(board.rules.en_passant[0])
    en_passant = f"{'abcdefgh'[file.bit_length() - 1]}{3 if board.is_black else 6}" if file else "-"
    ranks, side = format_ranks(board.pieces, board.SIZE), "b" if board.is_black else "w"
    return f"{ranks} {side} {castling} {en_passant} {board.clock} {board.plies // 2 + 1}"


def _squares_of(board: ChessBoard, action: int) -> tuple[int, int | None, int]:
    """Return start and end of an action as squares from a1, the end None where it would leave the
    board, and the code of an underpromotion or 0."""
    moves, size = board.MOVES, board.SIZE
    if not 0 <= action < moves.NUM_ACTIONS:
        raise ValueError(
            f"action {action} is not one of {board.NAME}: 0 to {moves.NUM_ACTIONS - 1}"
        )
    square, plane = divmod(action, moves.NUM_PLANES)
    files, ranks, promotion = moves.plane_moves()[plane]
    is_on_board = 0 <= square % size + files < size and 0 <= square // size + ranks < size
    return (
        board.view(square),
        board.view(square + size * ranks + files) if is_on_board else None,
        promotion,
    )


def _becomes(board: ChessBoard, start: int, end: int, promotion: int) -> int:
    """Return the code of the kind to which a pawn promotes by moving from start to end, 0 if it
    stays a pawn."""
    last_rank = 0 if board.is_black else board.SIZE - 1
    if promotion or board.pieces[start].upper() != "P" or end // board.SIZE != last_rank:
        return promotion
    return positions.QUEEN


def format_uci(board: ChessBoard, action: int) -> str:
    """Return a move in UCI notation: e2e4, e7e8q, e1g1 for castling. An action that would leave the
    board is "a1 by -1+2" (files, ranks).

    Raises:
      ValueError: there is no such action.
    """
    start, end, promotion = _squares_of(board, action)
    name = square_name(start, board.SIZE)
    if end is None:
        files, ranks, _ = board.MOVES.plane_moves()[action % board.MOVES.NUM_PLANES]
        return f"{name} by {files:+d}{ranks:+d}{LETTERS[promotion].lower().strip('.')}"
    becomes = _becomes(board, start, end, promotion)
    return name + square_name(end, board.SIZE) + LETTERS[becomes].lower().strip(".")


def format_san(board: ChessBoard, action: int) -> str:
    """Return a legal move in standard algebraic notation: Nf3, exd6, O-O, e8=Q+, Qh4# (PGN
    standard, section 8.2.3)."""
    after = board.after(action)
    return _san_without_check(board, action) + (
        ("+" if after.actions else "#") if after.is_check else ""
    )


def _san_without_check(board: ChessBoard, action: int) -> str:
    start, end, promotion = _squares_of(board, action)
    assert end is not None
    piece = board.pieces[start].upper()
    if piece == "K" and abs(start - end) == 2:
        return "O-O" if end > start else "O-O-O"
    is_capture = board.pieces[end] != "." or (piece == "P" and (start - end) % 8 != 0)
    if piece == "P":
        becomes = _becomes(board, start, end, promotion)
        return (
            (f"{square_name(start)[0]}x" if is_capture else "")
            + square_name(end)
            + (f"={LETTERS[becomes]}" if becomes else "")
        )
    return piece + _distinction(board, start, end) + ("x" if is_capture else "") + square_name(end)


def _distinction(board: ChessBoard, start: int, end: int) -> str:
    """Return file, rank or both of the start square where another piece of the kind can move to the
    same square; the file is preferred."""
    others = [_squares_of(board, action) for action in board.actions]
    rivals = [
        other
        for other, goal, _ in others
        if goal == end and other != start and board.pieces[other] == board.pieces[start]
    ]
    if not rivals:
        return ""
    if all(rival % 8 != start % 8 for rival in rivals):
        return square_name(start)[0]
    return (
        square_name(start)[1]
        if all(rival // 8 != start // 8 for rival in rivals)
        else square_name(start)
    )


def parse_san(board: ChessBoard, san: str) -> int:
    """Return the legal action that a move in standard or long algebraic notation or in UCI names;
    check signs, annotations and the sign of promotion may be missing, "e.p." may follow, and pieces
    may be figurines.

    Raises:
      ValueError: no legal move or more than one fits; the text and the position are quoted.
    """
    found = _san_candidates(board, plain_san(san))
    if len(found) != 1:
        reason = "is not a legal move" if not found else "is ambiguous"
        raise ValueError(f"{shorten(repr(san))} {reason} in {format_fen(board)}")
    return found[0]


def _san_candidates(board: ChessBoard, san: str) -> list[int]:
    if san in ("O-O", "O-O-O"):
        king = board.pieces.index("k" if board.is_black else "K")
        name = square_name(king) + square_name(king + (2 if len(san) == 3 else -2))
        return [board.names[name]] if name in board.names else []
    if san in board.names:
        return [board.names[san]]
    match = SAN.fullmatch(san)
    if match is None:
        return []
    piece, file, rank, goal, promotion = match.groups()
    found = []
    for action in board.actions:
        start, end, under = _squares_of(board, action)
        assert end is not None
        becomes = LETTERS[_becomes(board, start, end, under)].strip(".")
        name = square_name(start)
        fits = (
            end == parse_square(goal)
            and board.pieces[start].upper() == (piece or "P")
            and becomes == (promotion or "").upper()
        )
        if (
            fits
            and file in (None, name[0])
            and rank in (None, name[1])
            and not (piece == "K" and abs(start - end) == 2)
        ):
            found.append(action)
    return found


def format_diagram(board: ChessBoard) -> str:
    """Return the board from White's side with coordinates, and the FEN below it."""
    return "\n".join([*diagram_rows(board.pieces, board.SIZE), format_fen(board)])
