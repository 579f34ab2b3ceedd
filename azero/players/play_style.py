"""Choosing a move from a search tree: limits, choice, sampled openings, resignation."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

from azero.config import check_range
from azero.players.clock import LAG_SECONDS
from azero.players.root_moves import CHOICES
from azero.players.thinking import Limits


@dataclass(frozen=True)
class PlayStyle:
    """How a move is chosen from a tree."""

    limits: Limits = field(default_factory=lambda: Limits(visits=800))  # AZ: 800
    """For every move; a clock adds its own time limit."""
    choice: Literal["lcb", "visits"] = "lcb"
    """The move with the best lower confidence bound among those with enough visits (as Leela Zero
    and KataGo), or the most visited one. The Gumbel search has its own choice, the winner of
    sequential halving."""
    temperature_moves: int = 0
    """Moves at the start of the game, of both sides, that are sampled in proportion to visits, by
    Gumbel to its improved policy (temperature 1)."""
    resign_threshold: float | None = None
    """Resign when the value and the best move's value are below this, in [-1, 1]; None never
    resigns."""
    resign_moves: int = 3
    """Number of own moves in a row for which the value must be below the threshold."""
    resigns_by_all: bool = False
    """Resign only when the value of every move is below the threshold (AG16)."""
    extension: float = 0.0
    """If the most visited move does not have the best value, search longer, at most by this share
    (AG16 gives no limit). A time limit is not extended."""
    lag_seconds: float = LAG_SECONDS
    """Subtracted from every time limit of a clock."""
    own_moves: float | None = None
    """Own moves over which a clock's main time is divided (AZ: 20); None is by the board, see
    `thinking_seconds`."""
    stop_early: bool = True
    """With a clock: stop when no other move can catch up with the most visited one."""

    def with_visits(self, visits: int, counts_new: bool = False) -> PlayStyle:
        """Return this style with another limit of visits; with `counts_new`, of new ones."""
        if counts_new:
            limits = dataclasses.replace(self.limits, visits=None, playouts=visits)
        else:
            limits = dataclasses.replace(self.limits, visits=visits)
        return dataclasses.replace(self, limits=limits)

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            allowed = ", ".join(CHOICES)
            raise ValueError(f"choice must be one of {allowed}, not {self.choice!r}")
        check_range(self, "", "resign_moves", 1)


ALPHAGO2016 = PlayStyle(
    limits=Limits(playouts=800),  # ours; AG16 plays by the clock, 5 s a move
    choice="visits",
    resign_threshold=-0.8,  # AG16: less than a win in ten
    resign_moves=1,
    resigns_by_all=True,  # AG16: max_a Q(s, a)
    extension=0.5,
    stop_early=False,
)
"""The style of AlphaGo (AG16 methods, "Search algorithm")."""
