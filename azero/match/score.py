"""The result of a match in numbers: wins, draws and losses by colour, and the score's confidence
interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NORMAL_95 = 1.959963984540054
"""Two-sided 95% quantile of the normal distribution."""


def wilson_interval(score: float, games: float, quantile: float = NORMAL_95) -> tuple[float, float]:
    """Return the Wilson interval of a score in [0, 1] over `games` games (Wilson 1927, J. Am. Stat.
    Assoc. 22).

    Draws count as half a win; the interval is then conservative, because a draw varies less than a
    win or a loss. No games give (0, 1).

    Raises:
      ValueError: the score lies outside [0, 1], or `games` is negative.
    """
    if not 0.0 <= score <= 1.0 or games < 0:
        raise ValueError(f"a score in [0, 1] over at least 0 games, not {score} over {games}")
    if games == 0:
        return 0.0, 1.0
    spread = quantile * quantile / games
    centre = (score + spread / 2) / (1 + spread)
    half = math.sqrt(spread * (score * (1 - score) + spread / 4)) / (1 + spread)
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True)
class Tally:
    """Wins, draws and losses of one player."""

    wins: int = 0
    draws: int = 0
    losses: int = 0

    @classmethod
    def of(cls, rewards: Sequence[float] | np.ndarray) -> Tally:
        """Count the rewards +1, 0 and -1 of games."""
        signs = np.sign(rewards)
        return cls(*(int(np.sum(signs == sign)) for sign in (1, 0, -1)))

    @property
    def games(self) -> int:
        """All games."""
        return self.wins + self.draws + self.losses

    @property
    def score(self) -> float:
        """Share of the points, draws as half; 0.5 where there are no games."""
        return (self.wins + self.draws / 2) / self.games if self.games else 0.5

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the score."""
        return wilson_interval(self.score, self.games)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.wins + other.wins, self.draws + other.draws, self.losses + other.losses)


@dataclass(frozen=True)
class MatchResult:
    """The result of a match, from player A's side."""

    first: Tally
    """Games in which A made the first move (Black in Go)."""
    second: Tally
    """Games in which A moved second."""

    @property
    def total(self) -> Tally:
        """Both colours together."""
        return self.first + self.second

    def __str__(self) -> str:
        low, high = self.total.interval
        total, first, second = self.total, self.first, self.second
        return (
            f"{total.wins} wins, {total.draws} draws, {total.losses} losses: "
            f"{100 * total.score:.1f}% (95%: {100 * low:.1f} to {100 * high:.1f}); "
            f"moving first {first.wins}-{first.draws}-{first.losses}, second "
            f"{second.wins}-{second.draws}-{second.losses}"
        )
