"""Sets of squares of the 3x4 board as words of twelve bits.

Square 3 * rank + file is one bit of a uint32 of any shape, of numpy or of JAX. The board is seen by
the side to move: rank 0 is its own first rank, file 0 at its left hand. The other side sees it
rotated by 180 degrees.
"""

import numpy as np

from azero.games.compass import Direction
from azero.types import Array

FILES, RANKS = 3, 4
NUM_SQUARES = FILES * RANKS
BOARD = np.uint32((1 << NUM_SQUARES) - 1)
FAR_RANK = np.uint32(0o7000)
_FILE = 0o1111
"""The first file (one octal digit is a rank)."""


def step(squares: Array, direction: Direction) -> Array:
    """Return the set moved one step in `direction`; squares that leave the board are dropped."""
    files, forward = direction
    amount = FILES * forward + files
    moved = squares << np.uint32(amount) if amount >= 0 else squares >> np.uint32(-amount)
    entered = sum(_FILE << file for file in range(FILES) if 0 <= file - files < FILES)
    return moved & np.uint32(entered)


def turn(squares: Array) -> Array:
    """Return the set seen from the other side of the board: the twelve bits in the opposite
    order."""
    word = (
        ((squares >> 9) & np.uint32(0o7))
        | ((squares >> 3) & np.uint32(0o70))
        | ((squares & np.uint32(0o70)) << 3)
        | ((squares & np.uint32(0o7)) << 9)
    )
    return (
        ((word >> 2) & np.uint32(0o1111))
        | (word & np.uint32(0o2222))
        | ((word & np.uint32(0o1111)) << 2)
    )


def has_several(squares: Array) -> Array:
    """Return bool: there are two or more squares in the set."""
    return (squares & (squares - np.uint32(1))) != 0
