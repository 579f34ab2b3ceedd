"""Gaussian-process optimisation of noisy matches.

A player's strength as a function of its settings is a Gaussian process with a Matern kernel (nu
5/2) and a length scale per setting. A match is an observation in Elo, whose noise is the binomial
variance of its score. The next settings maximise the expected improvement over the best posterior
mean of those tried so far (Mockus 1975; with noise as in Snoek et al. 2012, "Practical Bayesian
Optimization"). AlphaGo, AlphaGo Zero and AlphaZero were tuned in this way (Chen et al. 2018,
"Bayesian Optimization in AlphaGo").

Every proposal is a function of the seed, its number and the results before it.
"""

import importlib.util
import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from azero.match.elo import ELO_SCALE, elo_difference
from azero.match.score import Tally

_UNIT = 100.0
"""Elo points per unit of the process."""
_AMPLITUDES = (0.1, 10.0)
"""Bounds of the prior variance, in units squared: settings are worth between 30 and 300 Elo."""
_LENGTHS = (0.1, 3.0)
"""Bounds of the length scales, as fractions of a setting's range."""
_ANY_MEAN = 1e4
"""Prior variance of an unknown mean, in units squared: far more than matches can tell."""
_RESTARTS = 1
"""Restarts of the maximisation of the likelihood."""
_CANDIDATES = 2048
"""Points over the cube at which the improvement is computed, and as many near the best."""
_NEAR = 0.05
"""Standard deviation of those near the best, as a fraction of a range."""


class Observation(NamedTuple):
    """The result of one trial."""

    point: np.ndarray
    """float[D] in the unit cube."""
    elo: float
    deviation: float
    """Its standard error."""


def elo_of(tally: Tally) -> tuple[float, float]:
    """Return a match's Elo difference and its standard error (delta method, binomial variance of
    the score). Half a win and half a loss are added, so that both are finite."""
    games = tally.games + 1
    score = (tally.wins + tally.draws / 2 + 0.5) / games
    return elo_difference(score), 1.0 / (ELO_SCALE * math.sqrt(games * score * (1.0 - score)))


class Posterior:
    """The process given observations."""

    def __init__(self, observations: Sequence[Observation]) -> None:
        """Fit the kernel by maximum likelihood."""
        elos = np.array([one.elo for one in observations])
        noise = np.array([one.deviation for one in observations]) / _UNIT
        self._points = np.stack([one.point for one in observations])
        self._mean = float(np.average(elos, weights=noise**-2.0))
        self._process = _make_process(self._points.shape[1], noise**2)
        with warnings.catch_warnings():
            # A length or variance at its bound is not a failure: few matches determine them poorly.
            warnings.simplefilter("ignore")
            self._process.fit(self._points, (elos - self._mean) / _UNIT)

    def at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation in Elo at points [N, D]: float[N] each."""
        mean, deviation = self._process.predict(points, return_std=True)
        return self._mean + _UNIT * mean, _UNIT * deviation

    def estimate(self, point: np.ndarray) -> tuple[float, float]:
        """Return the mean in Elo at a point [D] and its standard error, which, unlike the deviation
        of `at`, has the error of the process's own mean: of that nothing is known but the
        observations."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel

        process = GaussianProcessRegressor(
            self._process.kernel_ + ConstantKernel(_ANY_MEAN),
            alpha=self._process.alpha,
            optimizer=None,
        ).fit(self._points, self._process.y_train_)
        mean, deviation = process.predict(point[None], return_std=True)
        return float(self._mean + _UNIT * mean[0]), float(_UNIT * deviation[0])

    def improvement(self, points: np.ndarray) -> np.ndarray:
        """Return the expected improvement in Elo over the best mean of the observed points:
        float[N]."""
        from scipy.stats import norm

        mean, deviation = self.at(points)
        deviation = np.maximum(deviation, 1e-9)
        gain = mean - self.at(self._points)[0].max()
        return gain * norm.cdf(gain / deviation) + deviation * norm.pdf(gain / deviation)

    def best(self, seed: int) -> np.ndarray:
        """Return the point float[D] with the highest mean."""
        points = self._candidates(seed)
        return points[self.at(points)[0].argmax()]

    def propose(self, seed: int) -> np.ndarray:
        """Return the point float[D] with the highest expected improvement."""
        points = self._candidates(seed)
        return points[self.improvement(points).argmax()]

    def _candidates(self, seed: int) -> np.ndarray:
        """Return evenly spread points, points near the best observed one, and the observed ones."""
        spread = spread_points(_CANDIDATES, self._points.shape[1], seed)
        centre = self._points[self.at(self._points)[0].argmax()]
        random = np.random.default_rng(seed)
        near = np.clip(centre + _NEAR * random.standard_normal(spread.shape), 0.0, 1.0)
        return np.concatenate([spread, near, self._points])


def check_installed() -> None:
    """Raise ValueError if scikit-learn is not installed."""
    if importlib.util.find_spec("sklearn") is None:
        raise ValueError("azero tune needs scikit-learn: pip install 'azero[tune]'")


def _make_process(dimensions: int, noise: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    kernel = ConstantKernel(1.0, _AMPLITUDES) * Matern([0.5] * dimensions, _LENGTHS, nu=2.5)
    return GaussianProcessRegressor(
        kernel, alpha=noise, n_restarts_optimizer=_RESTARTS, random_state=0
    )


def spread_points(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Return the first points float[count, D] of a scrambled Sobol sequence."""
    from scipy.stats import qmc

    exponent = max(0, math.ceil(math.log2(count)))
    points = qmc.Sobol(dimensions, rng=np.random.default_rng(seed)).random_base2(exponent)
    return points[:count]


def propose(
    observations: Sequence[Observation],
    waiting: Sequence[np.ndarray],
    number: int,
    num_first: int,
    dimensions: int,
    seed: int,
) -> np.ndarray:
    """Return the point float[D] of trial `number`.

    Args:
      observations: the results that it may depend on.
      waiting: points of matches in progress. They count as observed, at the posterior mean and with
        the median noise, so that this trial goes elsewhere.
      number: of the trial, from 0.
      num_first: evenly spread trials before the process proposes any.
      dimensions: D.
      seed: of all draws.
    """
    if number < num_first or not observations:
        return spread_points(max(num_first, number + 1), dimensions, seed)[number]
    known = list(observations)
    if waiting:
        means, _ = Posterior(known).at(np.stack(waiting))
        noise = float(np.median([one.deviation for one in observations]))
        known += [
            Observation(point, float(mean), noise)
            for point, mean in zip(waiting, means, strict=True)
        ]
    return Posterior(known).propose(seed * 10_007 + number)
