"""Elo ratings by maximum likelihood from a table of results, with 95% intervals (after Coulom's BayesElo).

The expected score is the base-10 logistic, 1 / (1 + 10^(-difference / 400)). AlphaGo's paper prints the formula with base e, but the numbers in its text (230
Elo is 79%, and in AlphaGo Zero 200 Elo is 75%) only fit base 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from azero.play.score import NORMAL_95

ELO_SCALE = math.log(10) / 400
"""Natural logits per Elo point."""
PRIOR_DRAWS = 2.0
"""Virtual draws added to every pair that met, so that a pair without a single loss still has a finite difference (BayesElo's prior is two draws)."""
MAX_STEP = 400.0
"""Elo points by which one Newton step may move a rating, so that one-sided results do not overshoot."""


@dataclass(frozen=True)
class PairResult:
    """Games between two players, counted from the first one's side."""

    first: str
    second: str
    wins: int
    draws: int
    losses: int


@dataclass(frozen=True)
class Rating:
    """A player's rating in Elo points; the interval is relative to the anchors, whose own is a point."""

    name: str
    elo: float
    low: float
    high: float
    games: int
    score: float
    """Share of the points in all games, draws as half."""


def expected_score(difference: float) -> float:
    """Return the expected score of a player who is `difference` Elo points stronger: 0.76 for 200."""
    return 1 / (1 + math.exp(-ELO_SCALE * difference))


def elo_difference(score: float) -> float:
    """Return the Elo difference that makes `score` (in (0, 1)) the expected one."""
    return math.log(score / (1 - score)) / ELO_SCALE


def fit_elo(results: Sequence[PairResult], anchors: Mapping[str, float] | None = None, prior_draws: float = PRIOR_DRAWS) -> list[Rating]:
    """Return the ratings under which the results are most likely, in the order in which the players first appear.

    Args:
      results: games between pairs; a pair may appear several times and in either order. Draws count as half a win.
      anchors: players whose ratings are given. None puts the first player at 0.
      prior_draws: virtual draws per pair that met.

    Raises:
      ValueError: there are no games, someone plays himself, an anchor has no games, or a player is not connected to an anchor by games.
    """
    names = list(dict.fromkeys(name for result in results for name in (result.first, result.second)))
    if not names:
        raise ValueError("no games to rate")
    anchors = {names[0]: 0.0} if anchors is None else dict(anchors)
    games, points = _tables(results, names)
    _check_connected(games, names, anchors)
    met = games > 0
    weights = games + prior_draws * met
    scores = points + prior_draws / 2 * met
    fixed = np.array([name in anchors for name in names])
    ratings = np.array([anchors.get(name, float(np.mean(list(anchors.values())))) for name in names])
    ratings, deviations = _newton(ratings, ~fixed, weights, scores)
    totals = games.sum(axis=1)
    return [
        Rating(
            name,
            float(ratings[i]),
            float(ratings[i] - NORMAL_95 * deviations[i]),
            float(ratings[i] + NORMAL_95 * deviations[i]),
            int(totals[i]),
            float(points[i].sum() / totals[i]),
        )
        for i, name in enumerate(names)
    ]


def _tables(results: Sequence[PairResult], names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return games and points, float64[P, P] over P players: row against column."""
    index = {name: i for i, name in enumerate(names)}
    games, points = np.zeros((2, len(names), len(names)))
    for result in results:
        if result.first == result.second:
            raise ValueError(f"player {result.first!r} cannot be rated by games against itself")
        i, j = index[result.first], index[result.second]
        count = result.wins + result.draws + result.losses
        games[i, j] += count
        games[j, i] += count
        points[i, j] += result.wins + result.draws / 2
        points[j, i] += result.losses + result.draws / 2
    return games, points


def _check_connected(games: np.ndarray, names: list[str], anchors: Mapping[str, float]) -> None:
    if missing := [name for name in anchors if name not in names]:
        raise ValueError(f"anchors without games: {', '.join(missing)}; the players are: {', '.join(names)}")
    reached = np.array([name in anchors for name in names])
    for _ in names:
        reached = reached | (games[reached] > 0).any(axis=0)
    if not reached.all():
        lost = [name for name, is_reached in zip(names, reached, strict=True) if not is_reached]
        raise ValueError(f"no games connect {', '.join(lost)} with {', '.join(anchors)}")


def _newton(ratings: np.ndarray, free: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Maximise the (concave) log-likelihood over the free ratings; return all ratings and their standard deviations, float64[P] each."""
    ratings = ratings.astype(float)
    deviations = np.zeros(len(ratings))
    if not free.any():
        return ratings, deviations
    for _ in range(200):
        expected = 1 / (1 + np.exp(-ELO_SCALE * (ratings[:, None] - ratings[None, :])))
        gradient = ELO_SCALE * (scores - weights * expected).sum(axis=1)[free]
        information = ELO_SCALE**2 * weights * expected * (1 - expected)
        laplacian = np.diag(information.sum(axis=1)) - information
        curvature = laplacian[np.ix_(free, free)]
        step = np.linalg.solve(curvature, gradient)
        ratings[free] += step * min(1.0, MAX_STEP / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-6:
            break
    deviations[free] = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return ratings, deviations
