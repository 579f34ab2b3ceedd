"""Sets of squares of a chess board as two 32-bit words, moved and filled without a table.

Square 8 * rank + file is a1 = 0, b1 = 1, ..., h8 = 63: bit s of a 64-bit word whose halves are
`low` (ranks 1 to 4) and `high` (ranks 5 to 8). Words are uint32 arrays of any one shape, of numpy
or of JAX: only operators are used, so that the same rules serve a compiled batch and a single
position on the host.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from azero.games.compass import Direction, Movement, spread
from azero.types import Array

KNIGHT_JUMPS: tuple[Direction, ...] = (
    (1, 2),
    (2, 1),
    (2, -1),
    (1, -2),
    (-1, -2),
    (-2, -1),
    (-2, 1),
    (-1, 2),
)
"""Clockwise from north-north-east."""


class ChessSquares(NamedTuple):
    """A set of squares."""

    low: Array
    high: Array

    def __and__(self, other: ChessSquares) -> ChessSquares:
        return ChessSquares(self.low & other.low, self.high & other.high)

    def __or__(self, other: ChessSquares) -> ChessSquares:
        return ChessSquares(self.low | other.low, self.high | other.high)

    def __xor__(self, other: ChessSquares) -> ChessSquares:
        return ChessSquares(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> ChessSquares:
        return ChessSquares(~self.low, ~self.high)

    def when(self, words: Array) -> ChessSquares:
        """Return the set where `words` is all ones, the empty set where it is zero (see
        `spread`)."""
        return ChessSquares(self.low & words, self.high & words)

    def is_empty(self) -> Array:
        """Return bool: there is no square in the set."""
        return (self.low | self.high) == 0

    def has_several(self) -> Array:
        """Return bool: there are two or more squares in the set."""
        low_rest, high_rest = (
            self.low & (self.low - np.uint32(1)),
            self.high & (self.high - np.uint32(1)),
        )
        return ((low_rest | high_rest) != 0) | ((self.low != 0) & (self.high != 0))


def constant(bits: int) -> ChessSquares:
    """Return the set of the 64-bit number `bits`."""
    return ChessSquares(np.uint32(bits & 0xFFFFFFFF), np.uint32(bits >> 32))  # type: ignore[arg-type]


def square_set(square: Array) -> ChessSquares:
    """Return the set of one square uint32 in 0..63."""
    bit = np.uint32(1) << (square & np.uint32(31))
    in_high = spread(square >= 32)
    return ChessSquares(bit & ~in_high, bit & in_high)


def mirror(squares: ChessSquares) -> ChessSquares:
    """Return the set seen from the other side of the board: rank 1 becomes rank 8, files stay."""
    return ChessSquares(_reverse_bytes(squares.high), _reverse_bytes(squares.low))


def _reverse_bytes(word: Array) -> Array:
    word = ((word >> 8) & np.uint32(0x00FF00FF)) | ((word & np.uint32(0x00FF00FF)) << 8)
    return (word >> 16) | (word << 16)


def shift(squares: ChessSquares, amount: int) -> ChessSquares:
    """Return the 64-bit word shifted by `amount` bits, upwards if it is positive."""
    low, high = squares
    nothing: Any = np.uint32(0)
    if amount == 0:
        return squares
    if amount >= 32:
        return ChessSquares(nothing, low << (amount - 32) if amount > 32 else low)
    if amount <= -32:
        return ChessSquares(high >> (-amount - 32) if amount < -32 else high, nothing)
    if amount > 0:
        return ChessSquares(low << amount, (high << amount) | (low >> (32 - amount)))
    return ChessSquares((low >> -amount) | (high << (32 + amount)), high >> -amount)


def _along_rank(squares: ChessSquares, files: int) -> ChessSquares:
    """Return the set shifted within its words: a square that leaves its rank moves to the edge file
    of another rank, or off the board."""
    if files >= 0:
        return ChessSquares(squares.low << files, squares.high << files)
    return ChessSquares(squares.low >> -files, squares.high >> -files)


def _entered(files: int) -> ChessSquares:
    """Return the squares that a move by `files` files can reach without wrapping round an edge."""
    row = (0xFF << files) & 0xFF if files >= 0 else 0xFF >> -files
    return constant(row * 0x0101010101010101)


def _raw(squares: ChessSquares, direction: Direction, distance: int) -> ChessSquares:
    files, ranks = direction
    return (
        _along_rank(squares, files * distance)
        if ranks == 0
        else shift(squares, (8 * ranks + files) * distance)
    )


_movement = Movement(_raw, _entered)
step, steps, fill = _movement.step, _movement.steps, _movement.fill
