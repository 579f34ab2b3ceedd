"""Sets of squares along the eight compass directions: what chess and shogi share, however many
words hold a set.

Words are uint32 arrays of any one shape, of numpy or of JAX: only operators are used, so that the
same rules serve a compiled batch and a single position on the host.
"""

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from azero.types import Array

Direction = tuple[int, int]
"""(files to the right, ranks forward)"""

COMPASS: tuple[Direction, ...] = (
    (0, 1),
    (1, 1),
    (1, 0),
    (1, -1),
    (0, -1),
    (-1, -1),
    (-1, 0),
    (-1, 1),
)
"""N, NE, E, SE, S, SW, W, NW (AZ, supplement, 'Representation'); number d + 4 is opposite to d, odd
numbers are diagonals."""
N, NE, E, SE, S, SW, W, NW = range(8)


class SquareSet(Protocol):
    """A set of squares, a bitboard of one or more words."""

    def __iter__(self) -> Iterator[Array]: ...
    def __and__(self, other: Self, /) -> Self: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __invert__(self) -> Self: ...

    def when(self, words: Array) -> Self:
        """Return the set where `words` is all ones, the empty set where it is zero (see
        `spread`)."""

    def is_empty(self) -> Array:
        """Return bool: there is no square in the set."""

    def has_several(self) -> Array:
        """Return bool: there are two or more squares in the set."""


AnySet = TypeVar("AnySet", bound=SquareSet)
Word = TypeVar("Word")


def opposite(direction: int) -> int:
    """Return the number of the opposite direction."""
    return (direction + 4) % 8


def spread(condition: Array) -> Array:
    """Return uint32 words of ones where `condition` (bool) holds, of zeros elsewhere."""
    # Negated as a signed number: numpy warns of an overflow for an unsigned scalar.
    return (-condition.astype(np.int32)).astype(np.uint32)


def choose(words: Array, first: AnySet, second: AnySet) -> AnySet:
    """Return `first` where `words` is all ones, `second` where it is zero."""
    return first.when(words) | second.when(~words)


def union(sets: Iterable[Word]) -> Word:
    """Return the union of one or more sets."""
    return functools.reduce(operator.or_, sets)


@dataclass(frozen=True)
class Movement(Generic[AnySet]):
    """How sets of squares move on the board of a game."""

    shifted: Callable[[AnySet, Direction, int], AnySet]
    """returns a set moved by a direction times a distance; it may wrap round the edges"""
    entered: Callable[[int], AnySet]
    """returns the squares that a move by so many files can reach without wrapping round an edge"""

    def step(self, squares: AnySet, direction: Direction) -> AnySet:
        """Return the set moved one step in `direction`, of a king or a knight; squares that leave
        the board are dropped."""
        moved = self.shifted(squares, direction, 1)
        return moved & self.entered(direction[0]) if direction[0] else moved

    def steps(self, squares: AnySet, directions: Sequence[Direction]) -> AnySet:
        """Return the union of the set moved once in each direction."""
        return union(self.step(squares, direction) for direction in directions)

    def fill(self, seeds: AnySet, free: AnySet, direction: Direction) -> AnySet:
        """Return the seeds and every square of `free` that a seed reaches in `direction` over
        squares of `free` (parallel prefix, three doublings: 7 squares)."""
        free = free & self.entered(direction[0]) if direction[0] else free
        for distance in (1, 2, 4):
            seeds = seeds | (free & self.shifted(seeds, direction, distance))
            if distance < 4:
                free = free & self.shifted(free, direction, distance)
        return seeds


def compute_once(*sets: AnySet) -> list[AnySet]:
    """Return the same sets, which XLA then computes once; otherwise every later use would compute
    them again.

    XLA on a CPU duplicates computations into each of their uses, even across an optimization
    barrier, but not across a concatenation of more than eight arrays (a shorter one it fuses, and
    does not vectorise): so sets of more than eight words must be passed together.
    """
    words: Sequence[Array] = [word for squares in sets for word in squares]
    if not any(isinstance(word, jax.Array) for word in words):
        return list(sets)
    assert len(words) > 8, "too few sets to be kept apart"
    words = jnp.unstack(jax.lax.optimization_barrier(jnp.stack(words)))
    kind, width = cast(Any, type(sets[0])), len(words) // len(sets)
    return [kind(*words[first : first + width]) for first in range(0, len(words), width)]


class ChecksAndPins(NamedTuple, Generic[AnySet]):
    """Checks and pins against the side to move (chessprogramming.org, 'Checks and Pinned
    Pieces')."""

    attacked: AnySet
    """squares where the king would stand in check"""
    pinned: list[AnySet]
    """pieces that shield the king, by line: N-S, NE-SW, E-W, SE-NW"""
    check_mask: AnySet
    """squares where a piece other than the king may go: all, or those that end a check"""
    checkers: AnySet
    unpinned: AnySet
    """squares without a pinned piece"""


class KingLines(NamedTuple, Generic[AnySet]):
    """The eight lines through the mover's king, one entry per direction."""

    king_rays: list[AnySet]
    """squares from the king up to and with the first piece"""
    slider_rays: list[AnySet]
    """the other side's sliders of that direction and the empty squares they pass; the king does not
    block them"""
    slider_attacks: list[AnySet]
    """the squares that they attack"""


def find_checks_and_pins(
    own: AnySet,
    lines: KingLines[AnySet],
    sliders: Sequence[AnySet],
    near_attacks: AnySet,
    near_checkers: AnySet,
    board: AnySet,
) -> ChecksAndPins[AnySet]:
    """Return the checks and pins against the side to move.

    Args:
      own: the mover's pieces.
      lines: through its king.
      sliders: the other side's sliding pieces, by their direction as seen from the king.
      near_attacks: squares that the other side's pieces attack by a step or a jump.
      near_checkers: its pieces that attack the king by a step or a jump.
      board: all squares.
    """
    attacked = union([*lines.slider_attacks, near_attacks])
    pinned = [
        union(
            lines.king_rays[d] & lines.slider_attacks[opposite(d)] & own for d in (line, line + 4)
        )
        for line in range(4)
    ]
    checkers = union([near_checkers, *(lines.king_rays[d] & sliders[d] for d in range(8))])
    between = union(lines.king_rays[d] & lines.slider_rays[opposite(d)] for d in range(8))
    free, one = spread(checkers.is_empty()), spread(~checkers.has_several())
    check_mask = (between | near_checkers).when(one) | board.when(free)
    attacked, check_mask, checkers, *pinned = compute_once(attacked, check_mask, checkers, *pinned)
    return ChecksAndPins(attacked, pinned, check_mask, checkers, ~union(pinned))
