"""A chess position: packed as the words of a frame, unpacked as seen by the side to move, and
changed by a move.

Everything works on uint32 arrays of any one shape, of numpy or of JAX (see `squares`).

A frame is nine words: White's pieces, then three bit planes of the kind of piece on each square,
each as (low, high), seen from White's side of the board; and one word of facts: castling rights in
bits 0 to 3 (White's O-O, O-O-O, Black's), how often the position has occurred in bits 4 and 5, the
no-progress count in bits 6 to 12, moves played by both sides from bit 13. A position has occurred
at least once, so that no frame of a game is all zero.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azero.games.bits import hash_words
from azero.games.chess.squares import ChessSquares, constant, mirror, square_set
from azero.games.compass import choose, compute_once, spread
from azero.types import Array

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
"""Codes of the kinds; their bits are the bit planes of a frame."""
KINDS = (PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING)
FRAME_WORDS = 9
OCCURRENCES_BIT, CLOCK_BIT, PLIES_BIT = 4, 6, 13
CLOCK_MAX = 127

_LIGHT_SQUARES = constant(0x55AA55AA55AA55AA)
_LAST_RANK = constant(0xFF << 56)


class ChessPosition(NamedTuple):
    """A position from the mover's side of the board: their first rank is rank 1, whichever colour
    they play."""

    own: ChessSquares
    other: ChessSquares
    kinds: tuple[ChessSquares, ChessSquares, ChessSquares]
    """bit planes of the codes, of both sides"""
    castling: Array
    """uint32: bits 0 and 1 the mover's O-O and O-O-O, bits 2 and 3 the other side's"""
    en_passant: Array
    """uint32: one bit in 0..7 for the file of a pawn that has just made a double step and can
    legally be captured en passant, else zero"""

    @property
    def occupied(self) -> ChessSquares:
        """The squares of all pieces."""
        return self.own | self.other

    def kind(self, code: int) -> ChessSquares:
        """Return the squares of all pieces of a kind."""
        ones, twos, fours = self.kinds
        if code in (BISHOP, QUEEN, KING):
            return {BISHOP: ones & twos, QUEEN: ones & fours, KING: twos & fours}[code]
        return {
            PAWN: ones & ~(twos | fours),
            KNIGHT: twos & ~(ones | fours),
            ROOK: fours & ~(ones | twos),
        }[code]

    @property
    def diagonal_sliders(self) -> ChessSquares:
        """Bishops and queens of both sides."""
        ones, twos, fours = self.kinds
        return ones & (twos | fours)

    @property
    def straight_sliders(self) -> ChessSquares:
        """Rooks and queens of both sides."""
        _, twos, fours = self.kinds
        return fours & ~twos


class ChessFacts(NamedTuple):
    """The last word of a frame, unpacked; uint32 arrays."""

    castling: Array
    occurrences: Array
    clock: Array
    """half-moves since the last capture or pawn move (FEN's clock), at most CLOCK_MAX"""
    plies: Array
    """half-moves of the whole game; odd when Black is to move"""


def facts(word: Array) -> ChessFacts:
    """Unpack the word of facts."""
    return ChessFacts(
        castling=word & np.uint32(15),
        occurrences=(word >> OCCURRENCES_BIT) & np.uint32(3),
        clock=(word >> CLOCK_BIT) & np.uint32(CLOCK_MAX),
        plies=word >> PLIES_BIT,
    )


def facts_word(unpacked: ChessFacts) -> Array:
    """Pack the word of facts."""
    return (
        unpacked.castling
        | (unpacked.occurrences << OCCURRENCES_BIT)
        | (unpacked.clock << CLOCK_BIT)
        | (unpacked.plies << PLIES_BIT)
    )


def unpack(frame: Sequence[Array], en_passant: Array, black: Array | None = None) -> ChessPosition:
    """Return the position of a frame (nine arrays) as its mover sees it, or where `black` is given
    from Black's side where it is all ones, else from White's."""
    pairs = [ChessSquares(frame[2 * index], frame[2 * index + 1]) for index in range(4)]
    known = facts(frame[8])
    black = is_black(known.plies) if black is None else black
    white, *kinds = (choose(black, mirror(pair), pair) for pair in pairs)
    others = (kinds[0] | kinds[1] | kinds[2]) & ~white
    return ChessPosition(
        choose(black, others, white),
        choose(black, white, others),
        (kinds[0], kinds[1], kinds[2]),
        seen_rights(known.castling, black),
        en_passant,
    )


def is_black(plies: Array) -> Array:
    """Return words of ones where Black is to move after `plies`, of zeros where White is."""
    return spread((plies & np.uint32(1)) != 0)


def pack_board(position: ChessPosition, black: Array) -> list[Array]:
    """Return the first eight words of a frame; `black` is all ones where Black is to move."""
    white = choose(black, position.other, position.own)
    return [
        word
        for squares in (white, *position.kinds)
        for word in choose(black, mirror(squares), squares)
    ]


def seen_rights(rights: Array, black: Array) -> Array:
    """Return castling rights, White's first, as the mover sees them, its own first, where `black`
    is all ones if Black is to move; and the reverse."""
    return (rights & ~black) | (_exchange(rights) & black)


def _exchange(rights: Array) -> Array:
    """Return castling rights with the two sides exchanged."""
    return (rights >> 2) | ((rights & np.uint32(3)) << 2)


class ChessMove(NamedTuple):
    """A move from the mover's side: uint32 arrays."""

    start: Array
    """square 0..63"""
    end: Array
    """square 0..63"""
    promotion: Array
    """KNIGHT, BISHOP or ROOK for an underpromotion, else 0; a pawn that reaches the last rank with
    0 becomes a queen"""


def play(position: ChessPosition, move: ChessMove) -> tuple[ChessPosition, Array]:
    """Play a legal move.

    Returns:
      The position from the other side, whose en-passant file is set after every double step; bool,
        whether a piece was taken or a pawn moved.
    """
    start, end = square_set(move.start), square_set(move.end)
    own, other, *kinds, start, end = compute_once(
        position.own, position.other, *position.kinds, start, end
    )
    position = position._replace(own=own, other=other, kinds=(kinds[0], kinds[1], kinds[2]))
    code = [spread(~(plane & start).is_empty()) for plane in position.kinds]
    is_pawn = code[0] & ~code[1] & ~code[2]
    is_king = code[1] & code[2]
    distance = move.end - move.start
    captured = (position.other & end) | _captured_en_passant(position, is_pawn, end)
    promoted = is_pawn & spread(~(end & _LAST_RANK).is_empty())
    new_code = move.promotion | (np.uint32(QUEEN) & spread(move.promotion == 0))
    code = [
        (bit & ~promoted) | (spread((new_code >> index) & np.uint32(1) != 0) & promoted)
        for index, bit in enumerate(code)
    ]

    changed = start | end | captured
    own, kinds = (
        (position.own & ~start) | end,
        [
            (plane & ~changed) | end.when(bit)
            for plane, bit in zip(position.kinds, code, strict=True)
        ],
    )
    # A king's move by two squares is castling; squares 0 and 7 are the corners of its own rank.
    short = is_king & spread(distance == 2)
    long = is_king & spread(distance == np.uint32(0xFFFFFFFE))
    rook = ChessSquares(
        (np.uint32(0b10100000) & short) | (np.uint32(0b00001001) & long),
        np.uint32(0),  # type: ignore[arg-type]
    )
    own, kinds[2] = own ^ rook, kinds[2] ^ rook

    other, own, *kinds = compute_once(
        mirror(position.other & ~captured), mirror(own), *map(mirror, kinds)
    )
    moved = ChessPosition(
        own=other,
        other=own,
        kinds=(kinds[0], kinds[1], kinds[2]),
        castling=_exchange(_rights_after(position.castling, is_king, changed)),
        en_passant=(np.uint32(1) << (move.end & np.uint32(7))) & is_pawn & spread(distance == 16),
    )
    return moved, (is_pawn != 0) | ~captured.is_empty()


def _captured_en_passant(
    position: ChessPosition, is_pawn: Array, end: ChessSquares
) -> ChessSquares:
    """Return the pawn on rank 5 that a pawn moving to `end` on rank 6 captures en passant."""
    file = (end.high >> 8) & position.en_passant & is_pawn
    return ChessSquares(np.uint32(0), file)  # type: ignore[arg-type]


def _rights_after(rights: Array, is_king: Array, changed: ChessSquares) -> Array:
    """Return the castling rights after a move from and to the squares `changed`: a king's move ends
    both of its side, a move from or to a corner that of the rook there."""
    low, high = changed
    lost = np.uint32(3) & is_king
    lost = lost | ((low >> 7) & np.uint32(1)) | ((low & np.uint32(1)) << 1)
    lost = lost | ((high >> 29) & np.uint32(4)) | ((high >> 21) & np.uint32(8))
    return rights & ~lost


def has_insufficient_material(position: ChessPosition) -> Array:
    """Return bool: neither side has enough material to mate.

    That is king against king, with one knight or with bishops that all stand on squares of one
    colour (FIDE 5.2.2 for these simple cases, as python-chess).
    """
    sufficient = position.kind(PAWN) | position.kind(ROOK) | position.kind(QUEEN)
    knights, bishops = position.kind(KNIGHT), position.kind(BISHOP)
    one_colour = (bishops & _LIGHT_SQUARES).is_empty() | (bishops & ~_LIGHT_SQUARES).is_empty()
    return sufficient.is_empty() & (
        ~(knights | bishops).has_several() | (knights.is_empty() & one_colour)
    )


def codes(position: ChessPosition, black: Array, board: Sequence[Array]) -> list[Array]:
    """Return two hash words of the position for the repetition rule: pieces, side to move, castling
    rights and a legal en-passant capture.

    Each is odd, so that zero can mean "unknown"; together they have 62 bits.
    """
    rest = position.castling | (position.en_passant << 4) | (black & np.uint32(1 << 12))
    results = []
    for seed, first, second in (
        (0x243F6A88, 0xCC9E2D51, 0x1B873593),
        (0x85A308D3, 0x9E3779B1, 0x85EBCA6B),
    ):
        start = np.uint32(seed) ^ (rest * np.uint32(first))
        results.append(hash_words(start, (*board, rest), first, second) | np.uint32(1))
    return results
