"""Elo ratings by maximum likelihood from a table of results, with the first mover's advantage,
draws, and intervals that hold for all players at once.

The model is Bradley and Terry's with draws after Davidson (1970, J. Am. Stat. Assoc. 65): win, draw
and loss of the first mover have the weights 10^(x / 800), nu and 10^(-x / 800), where x is the
difference of the ratings plus the advantage. So the odds of the decided games are the base-10
logistic's, 10^(x / 400), and 200 points are 76% of these, however many draws there are; Rao and
Kupper's draws (BayesElo) would make the same results another difference. AlphaGo's paper prints the
formula with base e, but the numbers in its text (230 Elo is 79%, and in AlphaGo Zero 200 Elo is
75%) only fit base 10.

Uncertainty is the inverse of the Fisher information of ratings, advantage and draws together. Where
games depend on each other, such as those of one opening, it is multiplied by how much more, or
less, the groups of games vary than independent games would (a cluster-robust estimate). The prior
is the weakest that keeps the rating of a clean sweep finite: virtual games, one for each
rating to be found (Jeffreys' prior, for two players), half won and half lost, spread over the pairs
that played.
"""

import dataclasses
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from azero.match.score import NORMAL_95, student_quantile

Draws = Literal["davidson", "half"]
ELO_SCALE = math.log(10) / 400
"""Natural logits per Elo point."""
MAX_STEP = 400.0
"""Elo points by which one Newton step may move a rating, to avoid overshooting on one-sided
results."""
ADVANTAGE_PRIOR = 400.0
"""Standard deviation of the advantage before the games, in Elo: it matters only if the colours do
not determine it."""
DRAWS_PRIOR = 5.0
"""Standard deviation of log nu before the games."""


@dataclass(frozen=True)
class PairResult:
    """Games between two players, counted from the side of the first one, who moved first."""

    first: str
    second: str
    wins: float
    draws: float
    losses: float
    group: Hashable = None
    """Games of the same group depend on each other; None if they are independent."""

    @property
    def games(self) -> float:
        """All games."""
        return self.wins + self.draws + self.losses

    @property
    def without_draws(self) -> "PairResult":
        """These games with every draw counted as half a win and half a loss."""
        return dataclasses.replace(
            self, wins=self.wins + self.draws / 2, draws=0.0, losses=self.losses + self.draws / 2
        )


@dataclass(frozen=True)
class Rating:
    """A player's rating in Elo points, relative to the anchors, whose own intervals are points."""

    name: str
    elo: float
    low: float
    """With `high`: with 95% probability the ratings of all players of the table lie in their
    intervals."""
    high: float
    deviation: float
    """Standard error of this rating alone; 0 for an anchor."""
    games: int
    score: float
    """Share of the points in all games, draws as half."""


@dataclass(frozen=True)
class EloFit:
    """Ratings and the other fitted parameters."""

    ratings: list[Rating]
    """In the order in which the players first appear."""
    advantage: float
    """Advantage of moving first in Elo."""
    advantage_deviation: float
    draw_share: float
    """Share of draws between equal players without the first-move advantage."""


def expected_score(difference: float) -> float:
    """Return the expected score without draws of a player who is `difference` Elo points stronger:
    0.76 for 200."""
    return 1 / (1 + math.exp(-ELO_SCALE * difference))


def elo_difference(score: float) -> float:
    """Return the Elo difference that makes `score` (in (0, 1)) the expected one."""
    return math.log(score / (1 - score)) / ELO_SCALE


def format_elo_difference(score: float, low: float, high: float) -> str:
    """Return the Elo difference of a score and its interval, "+117 (+85 to +149)"; "open" where a
    score is 0 or 1."""
    middle, *ends = (
        f"{elo_difference(value):+z.0f}" if 0 < value < 1 else "open"
        for value in (score, low, high)
    )
    return f"{middle} ({ends[0]} to {ends[1]})"


def fit_elo(
    results: Sequence[PairResult],
    anchors: Mapping[str, float] | None = None,
    *,
    draws: Draws = "davidson",
    prior: float = 1.0,
) -> EloFit:
    """Return the ratings under which the results are most likely.

    Args:
      results: games between pairs; a pair may appear several times and in either order.
      anchors: players whose ratings are given. None puts the first player at 0.
      draws: "davidson", or "half": a draw is half a win and half a loss, so that the logistic gives
        the expected score with draws (as in Ordo).
      prior: weight of the virtual games; 0 is plain maximum likelihood, which a clean sweep makes
        infinite.

    Raises:
      ValueError: there are no games, a player plays itself, an anchor has no games, or a player is
        not connected to an anchor by games.
    """
    results = [result for result in results if result.games]
    if draws == "half":
        results = [result.without_draws for result in results]
    names = list(dict.fromkeys(name for pair in results for name in (pair.first, pair.second)))
    if not names:
        raise ValueError("no games to rate")
    anchors = {names[0]: 0.0} if anchors is None else dict(anchors)
    games, points = _tables(results, names)
    _check_connected(games, names, anchors)
    free = [name for name in names if name not in anchors]
    start = float(np.mean(list(anchors.values())))

    def posed(results: Sequence[PairResult]) -> "tuple[_Rows, _Design]":
        rows = _rows(results, names, games, prior if free else 0.0)
        return rows, _Design.make(rows, names, free, anchors, start)

    theta, information = _newton(*posed(_merged(results)))
    covariance = np.linalg.inv(information)
    if any(result.group is not None for result in results):
        widths = _widths(*posed(results), theta, covariance, [names.index(name) for name in free])
        covariance = covariance * np.outer(widths, widths)
    deviations = dict(zip(free, np.sqrt(np.diag(covariance))[: len(free)], strict=True))
    elo = anchors | dict(zip(free, theta[: len(free)] + start, strict=True))
    order = np.argsort(free)  # the quantile's random draws do not depend on the order of results
    quantile = _joint_quantile(covariance[np.ix_(order, order)])
    totals = games.sum(axis=1)
    ratings = []
    for name, played, scored in zip(names, totals, points.sum(axis=1), strict=True):
        deviation, rating = float(deviations.get(name, 0.0)), float(elo[name])
        low, high = rating - quantile * deviation, rating + quantile * deviation
        share = float(scored / played)
        ratings.append(Rating(name, rating, low, high, deviation, int(played), share))
    place = len(free)
    return EloFit(
        ratings,
        float(theta[place]),
        float(np.sqrt(covariance[place, place])),
        float(np.exp(theta[-1]) / (2 + np.exp(theta[-1]))) if len(theta) > place + 1 else 0.0,
    )


def _merged(results: Iterable[PairResult]) -> list[PairResult]:
    """Return the results without groups, those of the same players in the same order as one."""
    counts: dict[tuple[str, str], np.ndarray] = {}
    for r in results:
        added = counts.setdefault((r.first, r.second), np.zeros(3))
        added += (r.wins, r.draws, r.losses)
    return [PairResult(*players, *map(float, found)) for players, found in counts.items()]


class _Rows:
    """The results as arrays [R]: who, whether the first one moved first, the counts, virtual games
    included, and the number of the group, -1 for independent games."""

    def __init__(
        self,
        entries: Sequence[tuple[int, int, bool, float, float, float]],
        groups: Sequence[Hashable],
    ) -> None:
        number = {group: index for index, group in enumerate(dict.fromkeys(groups))}
        found = [-1 if group is None else number[group] for group in groups]
        self.group = np.array([*found, *[-1] * (len(entries) - len(found))], int)
        table = np.array(entries, float).reshape(-1, 6)
        self.first, self.second = table[:, 0].astype(int), table[:, 1].astype(int)
        self.in_order = table[:, 2]
        self.counts = table[:, 3:].T
        self.games = self.counts.sum(axis=0)


def _rows(
    results: Sequence[PairResult], names: Sequence[str], games: np.ndarray, prior: float
) -> _Rows:
    index = {name: i for i, name in enumerate(names)}
    entries: list[tuple[int, int, bool, float, float, float]] = [
        (index[r.first], index[r.second], True, r.wins, r.draws, r.losses) for r in results
    ]
    totals, count = games.sum(axis=1), len(names)
    for i, j in zip(*np.nonzero(np.triu(games)), strict=True):
        # Over all pairs these sum to the number of players, one of whom is the reference.
        virtual = prior * games[i, j] * (1 / totals[i] + 1 / totals[j]) * (count - 1) / count
        if virtual:
            entries.append((int(i), int(j), False, virtual / 2, 0.0, virtual / 2))
    return _Rows(entries, [result.group for result in results])


@dataclass(frozen=True)
class _Design:
    """How the parameters (free ratings, advantage, log nu) make the differences: x = matrix @ theta
    + offset, in logits."""

    matrix: np.ndarray
    """float64[R, F + 1]"""
    offset: np.ndarray
    """float64[R]"""
    has_draws: bool

    @classmethod
    def make(
        cls,
        rows: _Rows,
        names: Sequence[str],
        free: Sequence[str],
        anchors: Mapping[str, float],
        start: float,
    ) -> "_Design":
        known = np.array([anchors.get(name, start) for name in names])
        sides = np.zeros((len(rows.games), len(names)))
        sides[np.arange(len(sides)), rows.first] += 1
        sides[np.arange(len(sides)), rows.second] -= 1
        columns = sides[:, [names.index(name) for name in free]]
        matrix = np.column_stack([columns, rows.in_order])
        return cls(ELO_SCALE * matrix, ELO_SCALE * (sides @ known), bool(rows.counts[1].any()))

    @property
    def precision(self) -> np.ndarray:
        """The prior precision (one over the variance) of each parameter."""
        players, draws = self.matrix.shape[1] - 1, [DRAWS_PRIOR**-2] if self.has_draws else []
        return np.array([0.0] * players + [ADVANTAGE_PRIOR**-2] + draws)


def _newton(rows: _Rows, design: _Design) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the (concave) log-likelihood; return the parameters float64[F] and their Fisher
    information float64[F, F]."""
    theta = np.zeros(len(design.precision))
    information = np.diag(design.precision)
    for _ in range(200):
        probabilities, gradients = _outcomes(design, theta)
        information = np.diag(design.precision)
        information += _squares(probabilities * rows.games, gradients)
        gradient = np.einsum("kr,krf->f", rows.counts, gradients) - design.precision * theta
        step = np.linalg.solve(information, gradient)
        theta = theta + step * min(1.0, MAX_STEP / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-8:
            break
    return theta, information


def _outcomes(design: _Design, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of a win, a draw and a loss, float64[3, R], and the gradients of
    their logarithms, float64[3, R, F]."""
    x = design.matrix @ theta[: design.matrix.shape[1]] + design.offset
    draw = np.full_like(x, theta[-1] if design.has_draws else -np.inf)
    logits = np.stack([x / 2, draw, -x / 2])
    win, drawn, loss = np.exp(logits - np.logaddexp.reduce(logits, axis=0))
    gradients = [
        np.column_stack([(half - (win - loss) / 2)[:, None] * design.matrix, is_draw - drawn])
        for half, is_draw in ((0.5, 0), (0.0, 1), (-0.5, 0))
    ]
    return np.stack([win, drawn, loss]), np.stack(gradients)[:, :, : len(theta)]


def _squares(counts: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Return the sum of the squares of the gradients of float64[3, R] outcomes, float64[F, F];
    expected outcomes give the Fisher information."""
    flat = gradients.reshape(-1, gradients.shape[-1])
    squares: np.ndarray = flat.T @ (counts.reshape(-1, 1) * flat)
    return squares


def _widths(
    rows: _Rows, design: _Design, theta: np.ndarray, covariance: np.ndarray, free: Sequence[int]
) -> np.ndarray:
    """Return by how much dependent games widen the intervals of the parameters, float64[F], the
    first of which are the ratings of the players `free`.

    As in `azero.match.score`: the variance between groups over that of independent games, both
    with one more group of independent games, and Student's quantile for the number of a player's
    groups. The games of a player with a single group count as one game.
    """
    is_grouped = rows.group >= 0

    def number(own: np.ndarray) -> float:
        alone = own & ~is_grouped & (rows.in_order > 0)
        return len(np.unique(rows.group[own & is_grouped])) + float(rows.games[alone].sum())

    players = np.arange(max(rows.first.max(), rows.second.max()) + 1)
    numbers = np.array([number((rows.first == p) | (rows.second == p)) for p in players])
    fewest = np.minimum(numbers[rows.first], numbers[rows.second])
    compared, single = is_grouped & (fewest > 1), is_grouped & (fewest <= 1)
    sizes = np.bincount(rows.group[is_grouped], rows.games[is_grouped])[rows.group]
    probabilities, gradients = _outcomes(design, theta)
    expected = probabilities * rows.games
    another = _squares(expected / np.where(compared, fewest, 1), gradients)
    another += np.diag(design.precision)
    sums = np.zeros((len(rows.group), len(theta)))
    slopes = np.einsum("kr,krf->rf", rows.counts, gradients)
    np.add.at(sums, rows.group[compared], slopes[compared])
    together = another + sums.T @ sums + _squares(expected * (sizes - 1) * single, gradients)
    apart = another + _squares(rows.counts * compared, gradients)
    ratio = np.diag(covariance @ together @ covariance) / np.diag(covariance @ apart @ covariance)
    all_groups = number(np.full(len(rows.group), True))
    groups = [*numbers[free], *[all_groups] * (len(theta) - len(free))]
    students = [student_quantile(max(1, n - 1)) if n > 1 else NORMAL_95 for n in groups]
    return np.sqrt(ratio) * np.array(students) / NORMAL_95


def _joint_quantile(covariance: np.ndarray) -> float:
    """Return how many standard errors make intervals that hold for all parameters at once with 95%
    probability: 1.96 for a single one."""
    if len(covariance) < 2:
        return NORMAL_95
    deviations = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviations, deviations))
    draws = np.random.default_rng(0).standard_normal((20_000, len(covariance)))
    deviates = draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return max(NORMAL_95, float(np.quantile(np.abs(deviates).max(axis=1), 0.95)))


def _tables(results: Sequence[PairResult], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return games and points, float64[P, P] over P players: row against column."""
    index = {name: i for i, name in enumerate(names)}
    games, points = np.zeros((2, len(names), len(names)))
    for result in results:
        if result.first == result.second:
            raise ValueError(f"player {result.first!r} cannot be rated from games against itself")
        i, j = index[result.first], index[result.second]
        games[i, j] += result.games
        games[j, i] += result.games
        points[i, j] += result.wins + result.draws / 2
        points[j, i] += result.losses + result.draws / 2
    return games, points


def _check_connected(games: np.ndarray, names: list[str], anchors: Mapping[str, float]) -> None:
    if missing := [name for name in anchors if name not in names]:
        raise ValueError(
            f"anchors without games: {_quoted(missing)}; the players are: {_quoted(names)}"
        )
    reached = np.array([name in anchors for name in names])
    for _ in names:
        reached = reached | (games[reached] > 0).any(axis=0)
    if not reached.all():
        lost = [name for name, is_reached in zip(names, reached, strict=True) if not is_reached]
        raise ValueError(f"no games connect {_quoted(lost)} with {_quoted(anchors)}")


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
