"""The result of a match in numbers: wins, draws and losses by colour, the score's confidence
interval, also where games depend on each other, and AlphaGo Zero's gate."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from azero.console.tables import count_of

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
    def of(cls, rewards: Sequence[float] | np.ndarray) -> "Tally":
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

    def __str__(self) -> str:
        counts = [(self.wins, "win"), (self.draws, "draw"), (self.losses, "loss")]
        return ", ".join(count_of(count, noun) for count, noun in counts)

    def __add__(self, other: "Tally") -> "Tally":
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
            f"{total}: {100 * total.score:.1f}% (95%: {100 * low:.1f} to {100 * high:.1f}); "
            f"moving first {first.wins}-{first.draws}-{first.losses}, second "
            f"{second.wins}-{second.draws}-{second.losses}"
        )


def passes_gate(result: MatchResult, win_rate: float = 0.55) -> bool:
    """Return whether the new player (player A of the match) replaces the best one.

    AlphaGo Zero (methods, 'Evaluator') asks for more than 55% of 400 games. Draws, which its komi
    excludes, count as half; exactly `win_rate` is not enough, and neither is a match without
    games.

    Raises:
      ValueError: `win_rate` does not lie in [0, 1).
    """
    if not 0.0 <= win_rate < 1.0:
        raise ValueError(f"the gate's win rate must be in [0, 1), not {win_rate}")
    total = result.total
    # In whole numbers, so that 220 of 400 games is exactly 55%, whatever the rounding: 2 wins +
    # draws > 2 games x rate.
    return (
        total.games > 0
        and (2 * total.wins + total.draws) - 2 * total.games * win_rate > 1e-9 * total.games
    )


@dataclass(frozen=True)
class PairedScore:
    """The score of one player with its confidence interval."""

    score: float
    """Share of the points, draws as half."""
    low: float
    """95% interval with `high`."""
    high: float
    games: int
    groups: int
    """Number of independent groups of games."""


def paired_score(rewards: Sequence[float], keys: Sequence[Sequence[Hashable]]) -> PairedScore:
    """Return the score with an interval that counts groups of games, not games.

    Games of a pair are not independent: where moving first wins, one colour each makes the score
    more certain than the number of games suggests; where one opening is played over and over, less
    certain. The variance of the score is that between the groups (cluster-robust), with one more
    group that has the variance of independent games, so that a few equal groups do not look
    certain. The interval is Wilson's for as many independent games as would have this variance,
    with Student's quantile for the number of groups.

    Args:
      rewards: +1, 0 or -1 of each game, at least one.
      keys: of each game, what it shares with others (its opening, its moves): games with the same
        key are in one group.
    """
    points = [(reward + 1) / 2 for reward in rewards]
    games = len(points)
    score = sum(points) / games
    groups = group_games(keys)
    count = len(groups)
    if count < 2:
        return PairedScore(score, 0.0, 1.0, games, count)
    together = sum(sum(points[index] - score for index in group) ** 2 for group in groups)
    apart = sum((point - score) ** 2 for point in points)
    softened = (sum(points) + 1) / (games + 2)
    another = softened * (1 - softened) * games / count
    effective = max(1.0, games * (apart + another) / (together + another))
    low, high = wilson_interval(score, round(effective), student_quantile(count - 1))
    return PairedScore(score, low, high, games, count)


def group_games(keys: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """Return the indices of the games by group, from the keys of `paired_score`."""
    parent = list(range(len(keys)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = index = parent[parent[index]]
        return index

    first: dict[Hashable, int] = {}
    for index, shared in enumerate(keys):
        for key in shared:
            parent[root(index)] = root(first.setdefault(key, index))
    groups: dict[int, list[int]] = {}
    for index in range(len(keys)):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def student_quantile(freedom: float) -> float:
    """Return the two-sided 95% quantile of Student's t with `freedom` degrees of freedom."""
    from scipy.special import stdtrit  # 0.1 s

    return float(stdtrit(freedom, 0.975))
