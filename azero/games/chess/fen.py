"""Reading Forsyth-Edwards notation (PGN standard, section 16.1). Host side only."""

from typing import NamedTuple

from azero.console.tables import count_of
from azero.games.chess import legal
from azero.games.chess.position import CLOCK_MAX, ChessPosition
from azero.games.chess.squares import ChessSquares, mirror
from azero.games.compass import choose, spread
from azero.games.diagrams import parse_ranks, sets_of
from azero.games.positions import word
from azero.games.quoting import quoting
from azero.types import Array

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
LETTERS = ".PNBRQK"
"""Kinds by their codes; White's in upper case."""
MAX_FULL_MOVES = 100_000
"""Largest move number of a start position."""
_CASTLING = {
    "K": ("K", 4, "R", 7),
    "Q": ("K", 4, "R", 0),
    "k": ("k", 60, "r", 63),
    "q": ("k", 60, "r", 56),
}
"""Rights by their letters, in the order of their bits: king and rook, and their squares."""


class ParsedFen(NamedTuple):
    """The contents of a FEN; uint32[1] numpy arrays."""

    position: ChessPosition
    """from the mover's side; the en-passant file is that of any double step, even if no capture is
    possible"""
    plies: Array
    clock: Array


def parse_fen(fen: str) -> ParsedFen:
    """Read a FEN of four to six fields; the two counts may be missing.

    Raises:
      ValueError: it is not a valid position; the FEN is quoted, with what is wrong.
    """
    with quoting(fen, "a chess position in FEN"):
        fields = split_fen(fen)
        pieces = parse_pieces(fields.pieces, 8)
        rights = _parse_castling(fields.castling, pieces)
        file = _parse_en_passant(fields.en_passant, fields.side, pieces)
        position = position_of(pieces, fields.side, rights, file)
        check_opponent_king(mirrored(position))
    return ParsedFen(position, word(fields.plies), word(min(fields.clock, CLOCK_MAX)))


class Fields(NamedTuple):
    """The fields of a FEN."""

    pieces: str
    side: str
    """w or b"""
    castling: str
    en_passant: str
    clock: int
    plies: int
    """half-moves of the whole game"""


def complete_fen(fen: str) -> list[str]:
    """Return the six fields of a FEN, in which the two counts may be missing.

    Raises:
      ValueError: it has fewer than four fields or more than six.
    """
    fields = fen.split()
    if not 4 <= len(fields) <= 6:
        raise ValueError(
            f"it has {count_of(len(fields), 'field')}; 4 are needed (pieces, side, castling, "
            f"en passant), and the half-move clock and the move number may follow"
        )
    return [*fields, *("0", "1")[len(fields) - 4 :]]


def split_fen(fen: str) -> Fields:
    """Return the fields of a FEN of four to six fields, with its counts as numbers.

    Raises:
      ValueError: their number, the side or a count is wrong.
    """
    board, side, castling, en_passant, clock_text, number_text = complete_fen(fen)
    if side not in ("w", "b"):
        raise ValueError(f"the side to move is w or b, not {side!r}")
    clock, number = (
        _count(clock_text, "half-move clock"),
        max(1, _count(number_text, "move number")),
    )
    if number > MAX_FULL_MOVES:
        raise ValueError(f"the move number {number} is above {MAX_FULL_MOVES}")
    return Fields(board, side, castling, en_passant, clock, 2 * (number - 1) + (side == "b"))


def parse_pieces(board: str, size: int) -> list[str]:
    """Return the letter of each square from a1 of a board of `size` ranks and files, a dot for an
    empty square.

    Raises:
      ValueError: it is not such a board with a king on each side, not next to each other, and no
        pawn on the first or the last rank.
    """
    pieces = parse_ranks(board, size, size, "PNBRQK")
    for colour, king in (("White", "K"), ("Black", "k")):
        if pieces.count(king) != 1:
            raise ValueError(f"{colour} has {pieces.count(king)} kings, not one")
    white, black = (divmod(pieces.index(king), size) for king in "Kk")
    if max(abs(white[0] - black[0]), abs(white[1] - black[1])) == 1:
        raise ValueError("the kings stand next to each other")
    if set("Pp") & {*pieces[:size], *pieces[-size:]}:
        raise ValueError("a pawn stands on the first or the last rank")
    return pieces


def _parse_castling(castling: str, pieces: list[str]) -> int:
    """Return the castling rights as bits, White's O-O first. Rights without king and rook on their
    squares, which sloppy records have, are dropped, as python-chess does."""
    if castling == "-":
        return 0
    if not set(castling) <= set(_CASTLING) or len(set(castling)) != len(castling):
        raise ValueError(f"castling rights are '-' or some of KQkq, not {castling!r}")
    return sum(
        1 << bit
        for bit, (letter, (king, home, rook, corner)) in enumerate(_CASTLING.items())
        if letter in castling and (pieces[home], pieces[corner]) == (king, rook)
    )


def _parse_en_passant(en_passant: str, side: str, pieces: list[str]) -> int:
    """Return one bit for the file of the double step, or 0."""
    if en_passant == "-":
        return 0
    rank, step, pawn = ("6", -8, "p") if side == "w" else ("3", 8, "P")
    if len(en_passant) != 2 or en_passant[0] not in "abcdefgh" or en_passant[1] != rank:
        raise ValueError(
            f"the en-passant square is '-' or on rank {rank} with {side} to move, not "
            f"{en_passant!r}"
        )
    square = parse_square(en_passant)
    if pieces[square + step] != pawn or pieces[square] != "." or pieces[square - step] != ".":
        raise ValueError(f"no pawn can have just stepped over the en-passant square {en_passant}")
    return 1 << (square % 8)


def _count(text: str, name: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"the {name} is a number from 0, not {text!r}")
    return int(text)


def position_of(pieces: list[str], side: str, rights: int, file: int) -> ChessPosition:
    """Return the position of 64 letters from a1, as seen by the side to move."""
    black = spread(word(side == "b") != 0)
    sets = (
        ChessSquares(word(bits & 0xFFFFFFFF), word(bits >> 32)) for bits in sets_of(pieces, LETTERS)
    )
    white_pieces, black_pieces, *kinds = (
        choose(black, mirror(squares), squares) for squares in sets
    )
    own_rights = rights if side == "w" else (rights >> 2 | rights << 2) & 15
    return ChessPosition(
        choose(black, black_pieces, white_pieces),
        choose(black, white_pieces, black_pieces),
        (kinds[0], kinds[1], kinds[2]),
        word(own_rights),
        word(file),
    )


def mirrored(position: ChessPosition) -> ChessPosition:
    """Return the position as seen by the side that is not to move, without castling and en-passant
    rights."""
    nothing = word(0)
    return ChessPosition(
        mirror(position.other),
        mirror(position.own),
        tuple(map(mirror, position.kinds)),  # type: ignore[arg-type]
        nothing,
        nothing,
    )


def check_opponent_king(opponent: ChessPosition) -> None:
    """Check that the king of the side that is not to move cannot be captured; `opponent` is the
    position as that side sees it.

    Raises:
      ValueError: it can be captured.
    """
    if legal.in_check(opponent)[0]:
        raise ValueError("the side that is not to move is in check")


def square_name(square: int, files: int = 8) -> str:
    """Return the name of a square, counted from a1, of a board with `files` files."""
    return "abcdefgh"[square % files] + str(square // files + 1)


def parse_square(name: str) -> int:
    """Return the number of a square by its name."""
    return "abcdefgh".index(name[0]) + 8 * (int(name[1]) - 1)
