"""A position of animal shogi: packed as the words of a frame, unpacked as seen by the side to move,
and changed by a move.

A frame is three words, seen from the first player's side. Word 0: the first player's pieces in bits
0 to 11, the lowest bit of the kind of piece on each square in bits 12 to 23. Word 1: the other two
bits of the kind. Word 2: the hands, two bits for each of chick, elephant and giraffe, of the first
player in bits 0 to 5 and of the second in bits 6 to 11; how often the position has occurred in bits
12 and 13; moves played by both sides from bit 14. A position has occurred at least once, so that no
frame of a game is all zero.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azero.games.animal_shogi.squares import BOARD, FAR_RANK, NUM_SQUARES, turn
from azero.games.compass import spread
from azero.types import Array

CHICK, ELEPHANT, GIRAFFE, LION, HEN = range(1, 6)
"""Codes of the kinds; their bits are the bit planes of a frame. A hen is a promoted chick."""
KINDS = (CHICK, ELEPHANT, GIRAFFE, LION, HEN)
HAND_KINDS = (CHICK, ELEPHANT, GIRAFFE)
SET_SIZE = 2
"""Pieces of each kind in a set."""
FRAME_WORDS = 3
OCCURRENCES_BIT, PLIES_BIT = 12, 14
_HAND = np.uint32(0o77)


class AnimalShogiPosition(NamedTuple):
    """A position from the mover's side of the board; uint32 words."""

    own: Array
    other: Array
    kinds: tuple[Array, Array, Array]
    """bit planes of the codes, of both sides"""
    own_hand: Array
    """six bits"""
    other_hand: Array

    def kind(self, code: int) -> Array:
        """Return the squares of all pieces of a kind."""
        ones, twos, fours = (
            plane if code >> bit & 1 else ~plane & BOARD for bit, plane in enumerate(self.kinds)
        )
        return ones & twos & fours


class AnimalShogiMove(NamedTuple):
    """A move from the mover's side: uint32 arrays."""

    start: Array
    """set of one square; of a drop the same as `end`"""
    end: Array
    """set of one square"""
    dropped: Array
    """code of the kind that is dropped, 0 for a move on the board"""


def plies(word: Array) -> Array:
    """Return the number of moves in the whole game, from the last word of a frame; odd when the
    second player is to move."""
    return word >> PLIES_BIT


def occurrences(word: Array) -> Array:
    """Return how often the position has occurred, from the last word of a frame."""
    return (word >> OCCURRENCES_BIT) & np.uint32(3)


def is_second(word: Array) -> Array:
    """Return words of ones where the second player is to move, of zeros where the first is, from
    the last word of a frame."""
    return spread((plies(word) & np.uint32(1)) != 0)


def unpack(frame: Sequence[Array], second: Array) -> AnimalShogiPosition:
    """Return the position of a frame (three arrays) as the second player sees it where `second` is
    all ones, as the first does where it is zero."""
    sets = [
        frame[0] & BOARD,
        (frame[0] >> NUM_SQUARES) & BOARD,
        frame[1] & BOARD,
        (frame[1] >> NUM_SQUARES) & BOARD,
    ]
    first, ones, twos, fours = ((turn(squares) & second) | (squares & ~second) for squares in sets)
    others = (ones | twos | fours) & ~first
    hands = frame[2] & _HAND, (frame[2] >> 6) & _HAND
    return AnimalShogiPosition(
        own=(others & second) | (first & ~second),
        other=(first & second) | (others & ~second),
        kinds=(ones, twos, fours),
        own_hand=(hands[1] & second) | (hands[0] & ~second),
        other_hand=(hands[0] & second) | (hands[1] & ~second),
    )


def pack(position: AnimalShogiPosition, moves_played: Array) -> list[Array]:
    """Return the frame of a position seen by its mover, with no occurrences filled in."""
    second = spread((moves_played & np.uint32(1)) != 0)
    sets = ((position.other & second) | (position.own & ~second), *position.kinds)
    first, ones, twos, fours = ((turn(squares) & second) | (squares & ~second) for squares in sets)
    hands = ((position.other_hand | position.own_hand << 6) & second) | (
        (position.own_hand | position.other_hand << 6) & ~second
    )
    return [
        first | ones << NUM_SQUARES,
        twos | fours << NUM_SQUARES,
        hands | moves_played << PLIES_BIT,
    ]


def hand_count(hand: Array, code: int) -> Array:
    """Return how many pieces of a kind a hand holds."""
    return (hand >> (2 * (code - 1))) & np.uint32(3)


def play(position: AnimalShogiPosition, move: AnimalShogiMove) -> AnimalShogiPosition:
    """Return the position after a legal move, from the other side. A chick that moves to the far
    rank becomes a hen; a captured hen becomes a chick in hand."""
    is_drop = spread(move.dropped != 0)
    code, taken = move.dropped, move.dropped & np.uint32(0)
    for bit, plane in enumerate(position.kinds):
        code = code | (spread((plane & move.start) != 0) & ~is_drop & np.uint32(1 << bit))
        if bit < 2:  # without its third bit a hen is a chick
            taken = taken | (spread((plane & move.end) != 0) & ~is_drop & np.uint32(1 << bit))
    code = code | (
        spread((code == CHICK) & ((move.end & FAR_RANK) != 0)) & ~is_drop & np.uint32(HEN)
    )
    changed = move.start | move.end
    kinds = [
        (plane & ~changed) | (move.end & spread(((code >> bit) & np.uint32(1)) != 0))
        for bit, plane in enumerate(position.kinds)
    ]
    return AnimalShogiPosition(
        own=turn(position.other & ~move.end),
        other=turn((position.own & ~move.start) | move.end),
        kinds=(turn(kinds[0]), turn(kinds[1]), turn(kinds[2])),
        own_hand=position.other_hand,
        other_hand=position.own_hand + _hand_unit(taken) - _hand_unit(move.dropped),
    )


def _hand_unit(code: Array) -> Array:
    """Return a hand with one piece of the kind `code`, empty for code 0."""
    return spread(code != 0) & (
        np.uint32(1) << ((np.uint32(2) * code - np.uint32(2)) & np.uint32(31))
    )


def key(frame: Sequence[Array]) -> list[Array]:
    """Return the two words that identify a position for the repetition rule: pieces on the board
    and in hand, and the side to move."""
    hands, side = frame[2] & np.uint32(0o7777), plies(frame[2]) & np.uint32(1)
    return [frame[0] | hands << 24, frame[1] | (hands >> 8) << 24 | side << 28]
