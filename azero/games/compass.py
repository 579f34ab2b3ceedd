"""Sets of squares along the eight directions of the compass: what chess and shogi share, in
whatever words each of them holds a set.

Words are uint32 arrays of any one shape, of numpy or of JAX: only operators are used, so that the
same rules serve a compiled batch and a single position on the host.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

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
    """A set of squares in some words."""

    def __and__(self, other: Self, /) -> Self: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __invert__(self) -> Self: ...

    def when(self, words: Array) -> Self:
        """Return the set where `words` is all ones, the empty set where it is zero (see
        `spread`)."""
        ...

    def is_empty(self) -> Array:
        """Return bool: there is no square in the set."""
        ...

    def has_several(self) -> Array:
        """Return bool: there are two or more squares in the set."""
        ...


AnySet = TypeVar("AnySet", bound=SquareSet)
Word = TypeVar("Word")


def opposite(direction: int) -> int:
    """Return the number of the opposite direction."""
    return (direction + 4) % 8


def spread(condition: Array) -> Array:
    """Return uint32 words of ones where `condition` (bool) holds, of zeros elsewhere."""
    # Negated as a signed number: numpy warns of an overflow where an unsigned scalar is.
    return (-condition.astype(np.int32)).astype(np.uint32)


def choose(words: Array, first: AnySet, second: AnySet) -> AnySet:
    """Return `first` where `words` is all ones, `second` where it is zero."""
    return first.when(words) | second.when(~words)


def union(sets: Iterable[Word]) -> Word:
    """Return the union of one or more sets."""
    return functools.reduce(operator.or_, sets)


def fill_lines(
    seeds: AnySet,
    free: AnySet,
    direction: Direction,
    moved: Callable[[AnySet, Direction, int], AnySet],
) -> AnySet:
    """Return the seeds and every square of `free` that a seed reaches in `direction` over squares
    of `free` (parallel prefix, three doublings: 7 squares).

    Args:
      seeds: where lines begin.
      free: squares that a line may pass; none that a move in `direction` reaches only by wrapping
        round a side of the board.
      direction: where to.
      moved: returns a set moved by a direction times a distance; it may wrap round the sides.
    """
    for distance in (1, 2, 4):
        seeds = seeds | (free & moved(seeds, direction, distance))
        if distance < 4:
            free = free & moved(free, direction, distance)
    return seeds


class Guard(NamedTuple, Generic[AnySet]):
    """What restricts the mover's pieces."""

    attacked: AnySet
    """squares where the king would stand in check"""
    pinned: list[AnySet]
    """pieces that shield the king, by line: N-S, NE-SW, E-W, SE-NW"""
    answers: AnySet
    """where a piece other than the king may go: everywhere, or where it ends a check"""
    checkers: AnySet
    unpinned: AnySet
    """squares without a pinned piece"""


class Sight(Protocol[AnySet]):
    """What is seen along the eight lines through the mover's king, one entry per direction."""

    @property
    def sight(self) -> list[AnySet]:
        """What the king sees, up to and with the first piece."""
        ...

    @property
    def fire(self) -> list[AnySet]:
        """The other side's runners of that direction and the empty squares they pass, the king not
        in the way."""
        ...

    @property
    def hits(self) -> list[AnySet]:
        """The squares that they attack."""
        ...


def guard_of(
    own: AnySet,
    lines: Sight[AnySet],
    runners: Sequence[AnySet],
    near_attacks: AnySet,
    near_checkers: AnySet,
    board: AnySet,
    compute_once: Callable[..., list[AnySet]],
) -> Guard[AnySet]:
    """Return what restricts the mover's pieces.

    Args:
      own: the mover's pieces.
      lines: through its king.
      runners: the other side's pieces that run, by the direction in which the king would see them.
      near_attacks: squares that the other side's pieces attack by a step or a jump.
      near_checkers: its pieces that attack the king by a step or a jump.
      board: all squares.
      compute_once: returns the same sets, which XLA then computes once.
    """
    attacked = union([*lines.hits, near_attacks])
    pinned = [
        union(lines.sight[d] & lines.hits[opposite(d)] & own for d in (line, line + 4))
        for line in range(4)
    ]
    checkers = union([near_checkers, *(lines.sight[d] & runners[d] for d in range(8))])
    between = union(lines.sight[d] & lines.fire[opposite(d)] for d in range(8))
    free, one = spread(checkers.is_empty()), spread(~checkers.has_several())
    answers = (between | near_checkers).when(one) | board.when(free)
    attacked, answers, checkers, *pinned = compute_once(attacked, answers, checkers, *pinned)
    return Guard(attacked, pinned, answers, checkers, ~union(pinned))
