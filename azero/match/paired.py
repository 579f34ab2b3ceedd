"""The confidence interval of a match's score when games are dependent: the two colours of an
opening, or games that repeat each other."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from azero.match.score import wilson_interval


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
