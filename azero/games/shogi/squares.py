"""Sets of squares of a shogi board as three words of 27 bits, moved and filled without a table.

Squares are numbered from one side of the board: square 9 * rank + file, rank 0 nearest to that
side, file 0 at its left hand. Seen by Black (sente) square 0 is 9i, square 8 is 1i and square 80 is
1a; seen by White the board is rotated by 180 degrees: square s becomes 80 - s. A word holds three
ranks, so that the last one is the promotion zone; its upper five bits are zero. Words are uint32
arrays of any one shape, of numpy or of JAX: only operators are used, so that the same rules serve a
compiled batch and a single position on the host.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.compass import Direction, Movement, spread
from azero.types import Array

SIZE = 9
NUM_SQUARES = 81
KNIGHT_JUMPS: tuple[Direction, ...] = ((1, 2), (-1, 2))
"""To the right, to the left."""

_WORD_BITS = 27
_WORD = np.uint32((1 << _WORD_BITS) - 1)
_FILES = 0o001001001
"""The first file of the three ranks of a word (one octal digit is three bits)."""


class ShogiSquares(NamedTuple):
    """A set of squares: ranks 0 to 2, 3 to 5, 6 to 8."""

    near: Array
    middle: Array
    far: Array

    def __and__(self, other: ShogiSquares) -> ShogiSquares:
        return ShogiSquares(
            self.near & other.near, self.middle & other.middle, self.far & other.far
        )

    def __or__(self, other: ShogiSquares) -> ShogiSquares:
        return ShogiSquares(
            self.near | other.near, self.middle | other.middle, self.far | other.far
        )

    def __invert__(self) -> ShogiSquares:
        return ShogiSquares(self.near ^ _WORD, self.middle ^ _WORD, self.far ^ _WORD)

    def when(self, words: Array) -> ShogiSquares:
        """Return the set where `words` is all ones, the empty set where it is zero (see
        `spread`)."""
        return ShogiSquares(self.near & words, self.middle & words, self.far & words)

    def is_empty(self) -> Array:
        """Return bool: there is no square in the set."""
        return (self.near | self.middle | self.far) == 0

    def has_several(self) -> Array:
        """Return bool: there are two or more squares in the set."""
        near, middle, far = self
        twice = (
            (near & (near - np.uint32(1)))
            | (middle & (middle - np.uint32(1)))
            | (far & (far - np.uint32(1)))
        )
        both = (
            ((near != 0) & (middle != 0))
            | ((near != 0) & (far != 0))
            | ((middle != 0) & (far != 0))
        )
        return (twice != 0) | both


def constant(bits: int) -> ShogiSquares:
    """Return the set of the 81-bit number `bits`."""
    return ShogiSquares(
        *(np.uint32(bits >> (_WORD_BITS * index) & int(_WORD)) for index in range(3))  # type: ignore[arg-type]
    )


def ranks(first: int, last: int = SIZE - 1) -> ShogiSquares:
    """Return all squares of the ranks `first` to `last`."""
    return constant(sum(0x1FF << (SIZE * rank) for rank in range(max(first, 0), last + 1)))


def square_set(square: Array) -> ShogiSquares:
    """Return the set of one square uint32 in 0..80."""
    word, bit = square // np.uint32(_WORD_BITS), np.uint32(1) << (square % np.uint32(_WORD_BITS))
    return ShogiSquares(*(bit & spread(word == index) for index in range(3)))


def turn(squares: ShogiSquares) -> ShogiSquares:
    """Return the set seen from the other side of the board: rotated by 180 degrees."""
    return ShogiSquares(_reverse(squares.far), _reverse(squares.middle), _reverse(squares.near))


def _reverse(word: Array) -> Array:
    """Return the 27 bits of a word in reverse order: first the three ranks, then three groups of
    files in each rank, then the files in each group."""
    word = (
        ((word >> 18) & np.uint32(0o777))
        | (word & np.uint32(0o777000))
        | ((word & np.uint32(0o777)) << 18)
    )
    word = (
        ((word >> 6) & np.uint32(0o007007007))
        | (word & np.uint32(0o070070070))
        | ((word & np.uint32(0o007007007)) << 6)
    )
    return (
        ((word >> 2) & np.uint32(0o111111111))
        | (word & np.uint32(0o222222222))
        | ((word & np.uint32(0o111111111)) << 2)
    )


def _renumbered(squares: ShogiSquares, amount: int) -> ShogiSquares:
    """Return the set with every square's number raised by `amount`, -80 to 80."""
    nothing: Any = np.uint32(0)
    skipped, rest = divmod(amount, _WORD_BITS)
    first = 3 - skipped  # of four words, of which each of the new ones spans two
    words = [*[nothing] * 4, *squares, *[nothing] * 4][first : first + 4]
    if rest == 0:
        return ShogiSquares(*words[1:])
    return ShogiSquares(
        *(
            ((high << rest) & _WORD) | (low >> (_WORD_BITS - rest))
            for low, high in itertools.pairwise(words)
        )
    )


def _entered(files: int) -> ShogiSquares:
    """Return the squares that a move by `files` files can reach without wrapping round an edge."""
    row = (0x1FF << files) & 0x1FF if files >= 0 else 0x1FF >> -files
    return constant(sum(row << (SIZE * rank) for rank in range(SIZE)))


def _raw(squares: ShogiSquares, direction: Direction, distance: int) -> ShogiSquares:
    """Return the set moved, wrapping round the edges."""
    files, forward = direction
    amount = (SIZE * forward + files) * distance
    if forward == 0:
        # Within a rank no square moves to the next word unless it leaves the board.
        moved = (word << amount if amount > 0 else word >> -amount for word in squares)
        return ShogiSquares(*moved)
    return _renumbered(squares, amount)


_movement = Movement(_raw, _entered)
step, steps, fill = _movement.step, _movement.steps, _movement.fill


def whole_files(squares: ShogiSquares) -> ShogiSquares:
    """Return all squares of the files that hold a square of the set."""
    word = squares.near | squares.middle | squares.far
    row = (word | (word >> SIZE) | (word >> (2 * SIZE))) & np.uint32(0x1FF)
    word = row * np.uint32(_FILES)
    return ShogiSquares(word, word, word)


def layer(sets: Sequence[ShogiSquares], count: int) -> list[ShogiSquares]:
    """Return K * `count` sets, words uint32[...], as `count` sets with words uint32[K, ...], the
    first K sets first; each is computed once."""
    words = [word for squares in sets for word in squares]
    is_traced = any(isinstance(word, jax.Array) for word in words)
    shape = np.broadcast_shapes(*(np.shape(word) for word in words))
    joined: Any = (
        jnp.stack([jnp.broadcast_to(word, shape) for word in words])
        if is_traced
        else np.stack([np.broadcast_to(word, shape) for word in words])
    )
    joined = (jax.lax.optimization_barrier(joined) if is_traced else joined).reshape(
        count, len(sets) // count, 3, *shape
    )
    return [ShogiSquares(*(joined[index, :, word] for word in range(3))) for index in range(count)]
