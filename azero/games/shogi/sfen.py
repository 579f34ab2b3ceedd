"""Reading SFEN, the notation for positions of the Universal Shogi Interface. Host side only."""

import re
from typing import NamedTuple

import numpy as np

from azero.console.tables import count_of
from azero.games.positions import join, word
from azero.games.quoting import quoting
from azero.games.shogi import legal
from azero.games.shogi.legal import FREE_RANKS
from azero.games.shogi.position import (
    HAND_BITS,
    HAND_KINDS,
    KING,
    PAWN,
    PROMOTED,
    SET_SIZES,
    ShogiFacts,
    ShogiPosition,
    unpack,
)
from azero.games.shogi.position import pack as pack_frame
from azero.games.shogi.squares import NUM_SQUARES, SIZE, ShogiSquares
from azero.types import Array

START = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
LETTERS = ("", *"PLNSBRGK", *(f"+{letter}" for letter in "PLNSBR"))
"""Kinds by their codes; Black's in upper case, promoted ones with a plus in front."""
NAMES = ("", "pawn", "lance", "knight", "silver", "bishop", "rook", "gold", "king")
MAX_MOVE_NUMBER = 100_000
"""Largest move number of a start position."""
_MEANT = "a shogi position in SFEN"
_HAND_ORDER = "RBGSNLP"
"""Pieces in hand as USI lists them."""


class ParsedSfen(NamedTuple):
    """The contents of P SFENs; uint32[P] numpy arrays."""

    frame: list[Array]
    """18 words, with no occurrences"""
    white: Array
    """all ones where White is to move"""


_Pieces = dict[int, tuple[int, bool]]
"""By square from Black's side: code of the kind, and whether it is White's."""


def parse_sfen(*sfens: str) -> ParsedSfen:
    """Read SFENs of three or four fields (board, side, hands, move number); "startpos" and a
    leading "sfen" are accepted.

    Raises:
      ValueError: one is not a valid position; the SFEN is quoted, with what is wrong.
    """
    parsed: ParsedSfen = join([_parse(sfen) for sfen in sfens])
    # Seen by the side that has just moved, whose king must not be in check.
    in_check = legal.legal(unpack(parsed.frame, ~parsed.white)).in_check
    if in_check.any():
        with quoting(sfens[int(in_check.argmax())], _MEANT):
            raise ValueError("the side that is not to move is in check")
    return parsed


def _parse(sfen: str) -> ParsedSfen:
    """Read one SFEN; whether its position can be reached by a legal move is not checked."""
    with quoting(sfen, _MEANT):
        return _parse_fields((START if sfen.strip() == "startpos" else sfen).split())


def _parse_fields(fields: list[str]) -> ParsedSfen:
    fields = fields[1:] if fields[:1] == ["sfen"] else fields
    if not 3 <= len(fields) <= 4:
        raise ValueError(
            f"it has {count_of(len(fields), 'field')}; 3 are needed (board, side, pieces "
            f"in hand), and a move number may follow"
        )
    board, side, hands_text, number_text = (*fields, "1")[:4]
    pieces = _parse_board(board)
    if side not in ("b", "w"):
        raise ValueError(f"the side to move is b or w, not {side!r}")
    hands = _parse_hands(hands_text)
    _check_pieces(pieces, hands)
    if not (
        number_text.isascii() and number_text.isdecimal() and int(number_text) <= MAX_MOVE_NUMBER
    ):
        raise ValueError(f"the move number is from 0 to {MAX_MOVE_NUMBER}, not {number_text!r}")
    white = word(0xFFFFFFFF if side == "w" else 0)
    frame = pack_frame(
        _black_view(pieces, hands), ShogiFacts(word(0), word(0), word(max(1, int(number_text)) - 1))
    )
    frame[-1] = frame[-1] | (white & np.uint32(8))
    return ParsedSfen(frame, white)


def _parse_board(board: str) -> _Pieces:
    rows = board.split("/")
    if len(rows) != SIZE:
        raise ValueError(f"there are {len(rows)} ranks, not 9")
    pieces: _Pieces = {}
    for rank, row in zip("abcdefghi", rows, strict=True):
        cells: list[str] = []
        for token in re.findall(r"\+?.", row):
            if token in tuple("123456789"):
                cells += [""] * int(token)
            elif re.fullmatch(r"\+?[PLNSBRplnsbr]|[GKgk]", token):
                cells.append(token)
            else:
                raise ValueError(
                    f"rank {rank} has {token!r}; pieces are PLNSBRGK and plnsbrgk, a plus "
                    f"before PLNSBR for a promoted one, numbers 1 to 9"
                )
        if len(cells) != SIZE:
            raise ValueError(f"rank {rank} has {len(cells)} squares, not 9")
        for file, cell in enumerate(cells):
            if cell:
                square = SIZE * "ihgfedcba".index(rank) + file
                pieces[square] = (LETTERS.index(cell.upper()), cell.islower())
    return pieces


def _parse_hands(text: str) -> dict[tuple[int, bool], int]:
    """Return how many pieces of each kind Black (False) and White (True) have in hand."""
    hands: dict[tuple[int, bool], int] = {}
    if text == "-":
        return hands
    if not re.fullmatch(r"([1-9][0-9]?)?[RBGSNLPrbgsnlp](([1-9][0-9]?)?[RBGSNLPrbgsnlp])*", text):
        raise ValueError(
            f"pieces in hand are '-' or some of RBGSNLP and rbgsnlp, each after its "
            f"number if there are several, not {text!r}"
        )
    for number, letter in re.findall(r"(\d*)(\D)", text):
        key = (LETTERS.index(letter.upper()), letter.islower())
        hands[key] = hands.get(key, 0) + int(number or 1)
    return hands


def _check_pieces(pieces: _Pieces, hands: dict[tuple[int, bool], int]) -> None:
    """Raise a ValueError for too many pieces of a kind, two pawns on a file, a piece that can never
    move, or kings that are missing or adjacent."""
    for colour, is_white in (("Black", False), ("White", True)):
        kings = sum(piece == (KING, is_white) for piece in pieces.values())
        if kings != 1:
            raise ValueError(f"{colour} has {kings} kings, not one")
        files = [square % SIZE for square, piece in pieces.items() if piece == (PAWN, is_white)]
        if twice := {file for file in files if files.count(file) > 1}:
            raise ValueError(f"{colour} has two pawns on file {SIZE - min(twice)}")
        for square, (code, owner) in pieces.items():
            rank = (NUM_SQUARES - 1 - square if is_white else square) // SIZE
            if owner == is_white and rank >= FREE_RANKS.get(code, SIZE):
                raise ValueError(
                    f"{colour}'s {NAMES[code]} on {square_name(square)} can never move"
                )
    black, white = (
        square
        for is_white in (False, True)
        for square, piece in pieces.items()
        if piece == (KING, is_white)
    )
    if abs(black % SIZE - white % SIZE) <= 1 and abs(black // SIZE - white // SIZE) <= 1:
        raise ValueError("the kings stand next to each other")
    for code in HAND_KINDS:
        count = (
            sum(kind in (code, code + PROMOTED) and kind != KING for kind, _ in pieces.values())
            + hands.get((code, False), 0)
            + hands.get((code, True), 0)
        )
        if count > SET_SIZES[code]:
            raise ValueError(
                f"there are {count} pieces of the kind {NAMES[code]}, and "
                f"{SET_SIZES[code]} in a set"
            )


def _black_view(pieces: _Pieces, hands: dict[tuple[int, bool], int]) -> ShogiPosition:
    def squares(wanted: list[int]) -> ShogiSquares:
        bits = sum(1 << square for square in wanted)
        return ShogiSquares(*(word(bits >> (27 * index) & 0x7FFFFFF) for index in range(3)))

    sides = [
        squares([square for square, piece in pieces.items() if piece[1] == is_white])
        for is_white in (False, True)
    ]
    kinds = tuple(
        squares([square for square, piece in pieces.items() if piece[0] >> bit & 1])
        for bit in range(4)
    )
    words = [
        sum(hands.get((code, is_white), 0) << first for code, (first, _) in HAND_BITS.items())
        for is_white in (False, True)
    ]
    return ShogiPosition(sides[0], sides[1], kinds, word(words[0]), word(words[1]))


def format_hands(own: dict[str, int], other: dict[str, int]) -> str:
    """Return the pieces in hand in SFEN, by letter: Black's, then White's; "-" if there are
    none."""
    text = ""
    for hand, is_white in ((own, False), (other, True)):
        for letter in _HAND_ORDER:
            if count := hand.get(letter, 0):
                text += (str(count) if count > 1 else "") + (letter.lower() if is_white else letter)
    return text or "-"


def square_name(square: int) -> str:
    """Return the name in USI of a square 0..80 as Black numbers them: 9i first."""
    return f"{SIZE - square % SIZE}{'ihgfedcba'[square // SIZE]}"


def parse_square(name: str) -> int:
    """Return the number of a square by its name."""
    return SIZE * "ihgfedcba".index(name[1]) + SIZE - int(name[0])


def square_of_digits(digits: str) -> str:
    """Return the name in USI of a square given by two digits as in records: 77 is 7g.

    Raises:
      ValueError: they do not name a square.
    """
    if not re.fullmatch(r"[1-9][1-9]", digits):
        raise ValueError(f"{digits} is not a square; they are 11 to 99")
    return f"{digits[0]}{'abcdefghi'[int(digits[1]) - 1]}"


def digits_of(name: str) -> str:
    """Return the two digits of a square as in records, for its name in USI."""
    return f"{name[0]}{'abcdefghi'.index(name[1]) + 1}"
