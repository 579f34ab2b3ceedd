"""The entering king (nyugyoku): the declaration that wins by the 27-point rule of the Computer
Shogi Association.

The side to move may declare, and wins, if its king stands in the promotion zone, ten or more of its
other pieces stand there, it is not in check, and its pieces in the zone and in hand are worth 28
points or more for Black, 27 or more for White: five for a rook or a bishop, promoted or not, one
for any other piece, none for the king. In a handicap game missing pieces are not counted.
"""

import numpy as np

from azero.games.shogi.position import BISHOP, HAND_KINDS, KING, ROOK, ShogiPosition, hand_count
from azero.types import Array

PIECES_IN_ZONE = 10
POINTS_BLACK, POINTS_WHITE = 28, 27


def has_entered(position: ShogiPosition, white: Array) -> Array:
    """Return bool: the mover may declare unless it is in check. `white` is all ones where White is
    to move."""
    own = position.own.far
    ones, twos, fours, _ = position.kinds
    king = position.kind(KING).far & own
    # The codes of major pieces, bishops and rooks, have bit 2 and one of the lower two bits.
    major = own & fours.far & (ones.far ^ twos.far)
    pieces = _count(own & ~king)
    points = pieces + _count(major) * np.uint32(4)
    for code in HAND_KINDS:
        points = points + hand_count(position.own_hand, code) * np.uint32(
            5 if code in (BISHOP, ROOK) else 1
        )
    needed = (np.uint32(POINTS_WHITE) & white) | (np.uint32(POINTS_BLACK) & ~white)
    return (king != 0) & (pieces >= PIECES_IN_ZONE) & (points >= needed)


def _count(word: Array) -> Array:
    """Return the number of bits of a word uint32."""
    word = word - ((word >> 1) & np.uint32(0x55555555))
    word = (word & np.uint32(0x33333333)) + ((word >> 2) & np.uint32(0x33333333))
    word = (word + (word >> 4)) & np.uint32(0x0F0F0F0F)
    return (word * np.uint32(0x01010101)) >> 24
