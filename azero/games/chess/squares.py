"""Sets of squares of a chess board as two 32-bit words, moved and filled without a table.

Square 8 * rank + file is a1 = 0, b1 = 1, ..., h8 = 63: bit s of a 64-bit word whose halves are `low` (ranks 1 to 4) and `high` (ranks 5 to 8). Words are
uint32 arrays of numpy or of JAX: only operators are used, so that the same rules serve a compiled batch and a single position on the host. The batch is the
last axis. Sets for all eight directions at once are words [2, 4, B]: entry [h, l] is direction 4 * h + l, so that opposite directions share a line l.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.types import Array

Direction = tuple[int, int]
"""(files to the right, ranks forward)"""

COMPASS: tuple[Direction, ...] = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
"""N, NE, E, SE, S, SW, W, NW (AZ, supplement, 'Representation'); number d + 4 is opposite to d, odd numbers are diagonals."""
KNIGHT_JUMPS: tuple[Direction, ...] = ((1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2))
"""Clockwise from north-north-east."""
N, NE, E, SE, S, SW, W, NW = range(8)


class Squares(NamedTuple):
    """A set of squares, or an array of sets."""

    low: Array
    high: Array

    def __and__(self, other: Squares) -> Squares:
        return Squares(self.low & other.low, self.high & other.high)

    def __or__(self, other: Squares) -> Squares:
        return Squares(self.low | other.low, self.high | other.high)

    def __xor__(self, other: Squares) -> Squares:
        return Squares(self.low ^ other.low, self.high ^ other.high)

    def __invert__(self) -> Squares:
        return Squares(~self.low, ~self.high)

    def when(self, words: Array) -> Squares:
        """Return the set where `words` is all ones, the empty set where it is zero (see `spread`)."""
        return Squares(self.low & words, self.high & words)

    def is_empty(self) -> Array:
        """Return bool: there is no square in the set."""
        return (self.low | self.high) == 0

    def has_several(self) -> Array:
        """Return bool: there are two or more squares in the set."""
        low_rest, high_rest = self.low & (self.low - np.uint32(1)), self.high & (self.high - np.uint32(1))
        return ((low_rest | high_rest) != 0) | ((self.low != 0) & (self.high != 0))


def constant(bits: int) -> Squares:
    """Return the set of the 64-bit number `bits`."""
    return Squares(np.uint32(bits & 0xFFFFFFFF), np.uint32(bits >> 32))  # type: ignore[arg-type]


def spread(condition: Array) -> Array:
    """Return uint32 words of ones where `condition` (bool) holds, of zeros elsewhere."""
    return np.uint32(0) - condition.astype(np.uint32)


def choose(words: Array, first: Squares, second: Squares) -> Squares:
    """Return `first` where `words` is all ones, `second` where it is zero."""
    return first.when(words) | second.when(~words)


def square_set(square: Array) -> Squares:
    """Return the set of one square uint32 in 0..63."""
    bit = np.uint32(1) << (square & np.uint32(31))
    in_high = spread(square >= 32)
    return Squares(bit & ~in_high, bit & in_high)


def mirror(squares: Squares) -> Squares:
    """Return the set seen from the other side of the board: rank 1 becomes rank 8, files stay."""
    return Squares(_reverse_bytes(squares.high), _reverse_bytes(squares.low))


def _reverse_bytes(word: Array) -> Array:
    word = ((word >> 8) & np.uint32(0x00FF00FF)) | ((word & np.uint32(0x00FF00FF)) << 8)
    return (word >> 16) | (word << 16)


def pick(squares: Squares, direction: int) -> Squares:
    """Return the set of one direction out of the sets [2, 4, B] of all."""
    half, line = divmod(direction, 4)
    return Squares(squares.low[half, line], squares.high[half, line])


def union_of_directions(squares: Squares) -> Squares:
    """Return the union [B] of the sets [2, 4, B] of all directions."""
    return functools.reduce(operator.or_, [pick(squares, direction) for direction in range(8)])


def opposite(directions: Sequence[Direction]) -> tuple[Direction, ...]:
    """Return the directions turned round."""
    return tuple((-files, -ranks) for files, ranks in directions)


@functools.cache
def _amounts(directions: tuple[Direction, ...], distance: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for eight directions how a 64-bit word turns left: whether its halves change places (words of ones), and by how many bits more, uint32[2, 4, 1]."""
    turns = np.array([(8 * ranks + files) * distance % 64 for files, ranks in directions], np.uint32).reshape(2, 4, 1)
    return np.where(turns >= 32, np.uint32(0xFFFFFFFF), np.uint32(0)), turns % np.uint32(32)


@functools.cache
def _entered(directions: tuple[Direction, ...]) -> Squares:
    """Return for eight directions the squares that a step from another square of the board can end on, words [2, 4, 1]."""
    sets = []
    for files, ranks in directions:
        ends = [(square % 8 - files, square // 8 - ranks) for square in range(64)]
        sets.append(sum(1 << square for square, (file, rank) in enumerate(ends) if 0 <= file < 8 and 0 <= rank < 8))
    low, high = (np.array([bits >> shift & 0xFFFFFFFF for bits in sets], np.uint32).reshape(2, 4, 1) for shift in (0, 32))
    return Squares(low, high)  # type: ignore[arg-type]


def _turn(squares: Squares, directions: tuple[Direction, ...], distance: int) -> Squares:
    """Return the sets turned as 64-bit words, each by its direction. What leaves the board comes in again on the other side."""
    swapped, amount = _amounts(directions, distance)
    low, high = choose(swapped, Squares(squares.high, squares.low), squares)  # type: ignore[arg-type]
    rest = np.uint32(31) - amount
    return Squares((low << amount) | ((high >> 1) >> rest), (high << amount) | ((low >> 1) >> rest))


def step(squares: Squares, directions: tuple[Direction, ...]) -> Squares:
    """Return the sets [2, 4, B], or one set [B], moved once in each of eight directions; what leaves the board is gone."""
    return _turn(squares, directions, 1) & _entered(directions)


def fill(seeds: Squares, free: Squares, directions: tuple[Direction, ...]) -> Squares:
    """Return, for each of eight directions, the seeds and the squares of `free` that a seed reaches over squares of `free` (parallel prefix, three doublings)."""
    free = free & _entered(directions)
    for distance in (1, 2, 4):
        seeds = seeds | (free & _turn(seeds, directions, distance))
        if distance < 4:
            free = free & _turn(free, directions, distance)
    return seeds


def settle(*sets: Squares) -> list[Squares]:
    """Return the same sets, all of one shape, which XLA then computes once; without this every later use repeats the work that leads up to it.

    (XLA on a CPU copies the work into each use across an optimization barrier alone, but never across a concatenation.)
    """
    words = settle_words(*[word for squares in sets for word in squares])
    return [Squares(low, high) for low, high in zip(words[::2], words[1::2], strict=True)]


def settle_words(*words: Array) -> list[Array]:
    """Return the same words, all of one shape, which XLA then computes once (see `settle`)."""
    if not isinstance(words[0], jax.Array):
        return list(words)
    return list(jax.lax.optimization_barrier(jnp.stack(words)))
