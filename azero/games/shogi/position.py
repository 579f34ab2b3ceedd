"""A shogi position: packed as the words of a frame, unpacked as seen by the side to move, and
changed by a move.

Everything works on uint32 arrays of any one shape, of numpy or of JAX (see `squares`).

A frame is 18 words: Black's pieces, then four bit planes of the kind of piece on each square, each
as three words seen from Black's side of the board; the pieces in hand of Black and of White (see
HAND_BITS); and one word of facts: how often the position has occurred in bits 0 to 2, in bit 3
whether White is to move, moves played by both sides from bit 4. A position has occurred at least
once, so that no frame of a game is all zero.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azero.games.bits import hash_words
from azero.games.compass import choose, compute_once, spread, union
from azero.games.shogi.squares import ShogiSquares, square_set, turn
from azero.types import Array

PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD, KING = range(1, 9)
"""Codes of the kinds; a promoted piece has PROMOTED added. The bits of a code are the bit planes of
a frame."""
PROMOTED = 8
KINDS = tuple(range(1, 15))
HAND_KINDS = (PAWN, LANCE, KNIGHT, SILVER, BISHOP, ROOK, GOLD)
SET_SIZES = {PAWN: 18, LANCE: 4, KNIGHT: 4, SILVER: 4, BISHOP: 2, ROOK: 2, GOLD: 4, KING: 2}
"""Pieces of each kind in a set."""
HAND_BITS = {
    PAWN: (0, 5),
    LANCE: (5, 3),
    KNIGHT: (8, 3),
    SILVER: (11, 3),
    BISHOP: (14, 2),
    ROOK: (16, 2),
    GOLD: (18, 3),
}
"""Where a hand's word has the count of each kind: first bit, number of bits."""

FRAME_WORDS = 18
WHITE_BIT, PLIES_BIT = 3, 4


class ShogiPosition(NamedTuple):
    """A position from the mover's side of the board: their first rank is rank 0, whichever colour
    they play."""

    own: ShogiSquares
    other: ShogiSquares
    kinds: tuple[ShogiSquares, ...]
    """four bit planes of the codes, of both sides"""
    own_hand: Array
    """uint32"""
    other_hand: Array

    @property
    def occupied(self) -> ShogiSquares:
        """The squares of all pieces."""
        return self.own | self.other

    def kind(self, code: int) -> ShogiSquares:
        """Return the squares of all pieces of a kind."""
        sets = [plane if code >> bit & 1 else ~plane for bit, plane in enumerate(self.kinds)]
        return sets[0] & sets[1] & sets[2] & sets[3]


class ShogiFacts(NamedTuple):
    """The last word of a frame, unpacked; uint32 arrays."""

    occurrences: Array
    white: Array
    """all ones where White is to move, else zero"""
    plies: Array
    """moves of the whole game by either side"""


class ShogiMove(NamedTuple):
    """A move from the mover's side: uint32 arrays."""

    start: Array
    """square 0..80; of a drop the same as `end`"""
    end: Array
    """square 0..80"""
    promotes: Array
    """1 or 0"""
    dropped: Array
    """code of the kind that is dropped, 0 for a move on the board"""


def facts(word: Array) -> ShogiFacts:
    """Unpack the word of facts."""
    return ShogiFacts(
        word & np.uint32(7), spread(((word >> WHITE_BIT) & np.uint32(1)) != 0), word >> PLIES_BIT
    )


def facts_word(unpacked: ShogiFacts) -> Array:
    """Pack the word of facts."""
    return (
        unpacked.occurrences
        | (unpacked.white & np.uint32(1 << WHITE_BIT))
        | (unpacked.plies << PLIES_BIT)
    )


def board_sets(frame: Sequence[Array]) -> list[ShogiSquares]:
    """Return Black's pieces and the four bit planes of a frame (18 arrays), from Black's side."""
    return [ShogiSquares(*frame[3 * index : 3 * index + 3]) for index in range(5)]


def unpack(frame: Sequence[Array], white: Array) -> ShogiPosition:
    """Return the position of a frame (18 arrays) as seen by White where `white` is all ones, by
    Black where it is zero."""
    black, *kinds = (choose(white, turn(squares), squares) for squares in board_sets(frame))
    others = union(kinds) & ~black
    own_hand = (frame[16] & white) | (frame[15] & ~white)
    other_hand = (frame[15] & white) | (frame[16] & ~white)
    return ShogiPosition(
        choose(white, others, black),
        choose(white, black, others),
        tuple(kinds),
        own_hand,
        other_hand,
    )


def pack(position: ShogiPosition, known: ShogiFacts) -> list[Array]:
    """Return the frame of a position seen by its mover."""
    sets = (choose(known.white, position.other, position.own), *position.kinds)
    turned = [choose(known.white, turn(squares), squares) for squares in sets]
    black_hand = (position.other_hand & known.white) | (position.own_hand & ~known.white)
    white_hand = (position.own_hand & known.white) | (position.other_hand & ~known.white)
    return [
        *(word for squares in turned for word in squares),
        black_hand,
        white_hand,
        facts_word(known),
    ]


def hand_count(hand: Array, code: int) -> Array:
    """Return how many pieces of a kind a hand holds."""
    first, bits = HAND_BITS[code]
    return (hand >> first) & np.uint32((1 << bits) - 1)


def play(frame: Sequence[Array], move: ShogiMove) -> list[Array]:
    """Return the frame after a legal move, with no occurrences filled in. The board is not rotated;
    a move of White's is."""
    known = facts(frame[17])
    start, end = (
        square_set((square & ~known.white) | ((np.uint32(80) - square) & known.white))
        for square in (move.start, move.end)
    )
    black, *kinds, start, end = compute_once(*board_sets(frame), start, end)
    is_drop = spread(move.dropped != 0)
    promoted = spread(move.promotes != 0)
    taken, placed = move.start & np.uint32(0), []
    for bit, plane in enumerate(kinds):
        moving = spread(~(plane & start).is_empty()) & ~is_drop
        placed.append(moving | spread(((move.dropped >> bit) & np.uint32(1)) != 0))
        if bit < 3:
            taken = taken | (spread(~(plane & end).is_empty()) & ~is_drop & np.uint32(1 << bit))
    placed[3] = placed[3] | promoted

    changed = start | end
    kinds = [(plane & ~changed) | end.when(bit) for plane, bit in zip(kinds, placed, strict=True)]
    black = (black & ~changed) | end.when(~known.white)
    change = _hand_unit(taken) - _hand_unit(move.dropped)
    hands = [frame[15] + (change & ~known.white), frame[16] + (change & known.white)]
    after = ShogiFacts(known.occurrences & np.uint32(0), ~known.white, known.plies + np.uint32(1))
    return [*(word for squares in (black, *kinds) for word in squares), *hands, facts_word(after)]


def _hand_unit(code: Array) -> Array:
    """Return a hand with one piece of the kind `code`, empty for code 0."""
    unit = code & np.uint32(0)
    for kind, (first, _) in HAND_BITS.items():
        unit = unit | (spread(code == kind) & np.uint32(1 << first))
    return unit


def repetition_code(frame: Sequence[Array]) -> Array:
    """Return the hash of the position for the repetition rule: pieces on the board and in hand, and
    the side to move."""
    side = frame[17] & np.uint32(1 << WHITE_BIT)
    start = side ^ np.uint32(0x243F6A88)
    return hash_words(start, (*frame[:17], side), 0xCC9E2D51, 0x1B873593)
