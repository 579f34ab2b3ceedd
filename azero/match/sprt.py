"""The sequential probability ratio test of a match, which stops it as soon as it is decided (as
fishtest and Leela Zero use it)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from azero.match.elo import expected_score

ERROR = 0.05
"""Probability of either wrong decision (fishtest)."""
BOUND = math.log((1 - ERROR) / ERROR)
"""The log-likelihood ratio that decides: 2.94 (Wald 1945)."""
EMPTY = 1e-3
"""Replaces a zero count of an outcome (fishtest)."""
LARGEST = 2000.0
"""Largest Elo difference of a test: beyond it the expected score is 0 or 1 in floating point."""


@dataclass(frozen=True)
class Sprt:
    """The test of "the first player is stronger by elo1" against "by elo0", in logistic Elo, where
    the expected score with draws is the base-10 logistic.

    The unit is a pair of games, one opening with both colours; nothing is assumed of the
    probabilities of its five results but their mean. The likelihood ratio is the generalised one:
    for either hypothesis, the most likely probabilities with its mean (as in fishtest, without the
    correction for overshoot).
    """

    elo0: float
    elo1: float

    def __post_init__(self) -> None:
        if not self.elo0 < self.elo1:
            raise ValueError(
                f"the first Elo difference of a test must be below the second, not {self.elo0:g} "
                f"and {self.elo1:g}"
            )
        if max(-self.elo0, self.elo1) > LARGEST:
            raise ValueError(
                f"the Elo differences of a test are from -{LARGEST:,.0f} to {LARGEST:,.0f}, not "
                f"{self.elo0:g} and {self.elo1:g}"
            )

    def ratio(self, pairs: Sequence[float]) -> float:
        """Return the log-likelihood ratio of pairs with the given shares of the points (0, 0.25 ...
        1); 0 without pairs."""
        if not pairs:
            return 0.0
        values = np.arange(5) / 4
        counts = np.maximum(
            np.bincount(np.rint(4 * np.asarray(pairs)).astype(int), minlength=5), EMPTY
        )
        shares = counts / counts.sum()
        likely = [_with_mean(values, shares, expected_score(elo)) for elo in (self.elo0, self.elo1)]
        return float(counts.sum() * (shares * np.log(likely[1] / likely[0])).sum())

    def decide(self, pairs: Sequence[float], known: int = 0) -> tuple[int, str] | None:
        """Return after how many pairs, in order, the test was decided and how; None if it is not.
        After `known` pairs it is known not to have been."""
        for count in range(known + 1, len(pairs) + 1):
            ratio = self.ratio(pairs[:count])
            if abs(ratio) >= BOUND:
                elo, word = (self.elo1, "at least") if ratio > 0 else (self.elo0, "at most")
                return (
                    count,
                    f"stronger by {word} {elo:g} Elo (log-likelihood ratio {ratio:+.2f} "
                    f"after {2 * count} games)",
                )
        return None

    def undecided(self, pairs: Sequence[float]) -> str:
        """Describe a test that these pairs do not decide."""
        return (
            f"undecided: log-likelihood ratio {self.ratio(pairs):+.2f} after "
            f"{2 * len(pairs)} games, where {-BOUND:.2f} means at most {self.elo0:g} Elo and "
            f"{BOUND:+.2f} at least {self.elo1:g}"
        )


def _with_mean(values: np.ndarray, shares: np.ndarray, mean: float) -> np.ndarray:
    """Return the probabilities [K] with the given mean under which the shares [K] are most likely:
    shares / (1 + t (values - mean))."""
    distance = values - mean
    low, high = -1 / distance.max(), -1 / distance.min()
    for _ in range(50):
        middle = (low + high) / 2
        if (shares * distance / (1 + middle * distance)).sum() > 0:
            low = middle
        else:
            high = middle
    return shares / (1 + middle * distance)
