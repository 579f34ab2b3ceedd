"""What a player that thinks about one position at a time takes and gives: limits in, an analysis out. Engines, matches and reviews speak in these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from azero.play.player import Position


@dataclass(frozen=True)
class Limits:
    """When to stop thinking: at the first limit that is met. None is no limit; without any limit only `should_stop` ends it."""

    visits: int | None = None
    """Visits of the root in all, those kept from earlier moves included."""
    playouts: int | None = None
    """New visits."""
    seconds: float | None = None


@dataclass(frozen=True)
class MoveInfo:
    """What the search says of one move of the root. Values are in [-1, 1] for the side to move at the root."""

    action: int
    visits: int
    value: float
    prior: float
    """The network's probability among legal moves (before noise)."""
    lcb: float
    """Lower confidence bound of the value."""
    line: tuple[int, ...]
    """The principal variation, beginning with this move."""


@dataclass(frozen=True)
class Analysis:
    """What the search says of a position. Values are in [-1, 1] for the side to move."""

    moves: tuple[MoveInfo, ...]
    """Visited moves, best first by the rule that chooses the move."""
    value: float
    visits: int
    """Of the root."""
    playouts: int
    """New visits of this search."""
    raw_value: float
    """The network's own value of the position."""
    raw_policy: np.ndarray = field(repr=False)
    """float32[A]: the network's own policy among legal moves."""
    seconds: float = 0.0
    depth: float = 0.0
    """Mean length of the descents of this search; 0 without any."""
    deepest: int = 0
    """Length of the longest of them."""


class Thinker(Protocol):
    """A Player that can also be asked what it thinks; its tree is kept from one position to the next."""

    name: str

    def think(
        self,
        position: Position,
        limits: Limits,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[Analysis], None] | None = None,
        progress_seconds: float = 1.0,
        allowed: Sequence[int] | None = None,
    ) -> Analysis:
        """Search `position` until a limit is met or `should_stop()` is true, which is asked after every batch of leaves.

        Args:
          position: the position; if it follows from the last one thought about, the tree is kept.
          limits: see `Limits`. A position that is over gives an analysis without moves.
          should_stop: asked after every batch; must be cheap.
          on_progress: called about every `progress_seconds`, and at the end.
          progress_seconds: time between calls of `on_progress`.
          allowed: the only root moves to consider; None is all legal ones.
        """
        ...

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the network's policy float32[A] over legal moves and its value for the side to move; `symmetry` None averages over all."""
        ...
