"""Gaussian-process optimisation: a known optimum is found, and proposals are functions of the
seed and the results."""

import numpy as np
import pytest
from needs import require_module

from azero.match.elo import expected_score
from azero.match.score import Tally
from azero.match.tuning.optimiser import Observation, Posterior, elo_of, propose, spread_points
from azero.match.tuning.space import parse_parameter, point_of, values_of, with_values

SPACE = [parse_parameter("c=0.25..4:log"), parse_parameter("batch=1..16", ["batch"])]


def test_a_parameter_is_a_range():
    log, whole = SPACE
    assert (log.value(0.0), log.value(0.5), log.value(1.0)) == (0.25, 1.0, 4.0)
    assert whole.value(0.5) == 8.0 and whole.unit(1.0) == 0.0
    assert values_of(SPACE, point_of(SPACE, (0.5, 4.0))) == (0.5, 4.0)
    assert with_values("go9?visits=8", SPACE, (0.5, 4.0)) == "go9?visits=8&c=0.5&batch=4"
    assert with_values("go9", SPACE, (0.5, 4.0)) == "go9?c=0.5&batch=4"
    own = "go9?batch=2&visits=8&c=1"  # the opponent's, by default
    assert with_values(own, SPACE, (0.5, 4.0)) == "go9?visits=8&c=0.5&batch=4"
    large = [parse_parameter("pb-c-base=100..2000000")]
    assert with_values("go9", large, (1234567.0,)) == "go9?pb-c-base=1234567"
    for wrong in ("c", "c=1", "c=2..1", "c=0..1:log", "c=a..b", "c=1..1e400", "c=1..2:square"):
        with pytest.raises(ValueError, match="--parameter"):
            parse_parameter(wrong)
    # Rounded, 0.2 would be 0, which has no logarithm.
    with pytest.raises(ValueError, match="visits is a whole number, so both ends must be"):
        parse_parameter("visits=0.2..10:log", ["visits"])


def test_the_error_of_a_match_is_that_of_its_binomial():
    elo, deviation = elo_of(Tally(50, 0, 50))
    assert elo == 0.0 and deviation == pytest.approx(34.6, abs=0.5)  # 347 / sqrt(101)
    assert elo_of(Tally(40, 0, 0))[0] > 500 and np.isfinite(elo_of(Tally(40, 0, 0))[1])
    # In 2,000 matches between players 100 Elo apart the estimates scatter as much as it says.
    random = np.random.default_rng(0)
    wins = random.binomial(60, expected_score(100.0), 2000)
    found = np.array([elo_of(Tally(int(won), 0, 60 - int(won))) for won in wins])
    assert found[:, 0].mean() == pytest.approx(100.0, abs=5.0)
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.05)


def strength(point: np.ndarray) -> float:
    """A hill of 200 Elo with its top at (0.3, 0.7)."""
    return 100.0 - 1200.0 * float(((point - np.array([0.3, 0.7])) ** 2).sum())


def play(points: list[np.ndarray], seed: int, games: int = 60) -> list[Observation]:
    random = np.random.default_rng(seed)
    observations = []
    for point in points:
        won = int(random.binomial(games, expected_score(strength(point))))
        observations.append(Observation(point, *elo_of(Tally(won, 0, games - won))))
    return observations


def test_the_known_optimum_is_found_in_twenty_noisy_matches():
    require_module("sklearn")
    points: list[np.ndarray] = []
    for number in range(20):
        points.append(propose(play(points, 1), [], number, 8, 2, seed=1))
    best = Posterior(play(points, 1)).best(0)
    assert strength(best) > 70.0, f"{best}: {strength(best)} of 100 Elo"
    # It looks where it is good: random points would average -190 Elo.
    assert np.mean([strength(point) for point in points[8:]]) > 0.0
    mean, deviation = Posterior(play(points, 1)).at(np.array([[0.3, 0.7], [1.0, 0.0]]))
    assert mean[0] > mean[1] and 0.0 < deviation[0] < deviation[1]


def test_trials_at_once_differ_and_proposals_repeat():
    require_module("sklearn")
    first = [propose([], [], number, 8, 2, 3) for number in range(8)]
    assert (np.stack(first) == spread_points(8, 2, 3)).all()
    known = play(first, 2)
    one = propose(known, [], 8, 8, 2, 3)
    assert (propose(known, [], 8, 8, 2, 3) == one).all()
    other = propose(known, [one], 9, 8, 2, 3)
    assert np.abs(other - one).max() > 0.02


def test_the_interval_has_the_error_of_the_mean():
    require_module("sklearn")
    random = np.random.default_rng(0)
    held = 0
    for number in range(60):
        # Nearly equal settings, whose strength four short matches tell badly.
        elo = random.normal(0.0, 100.0)
        won = random.binomial(10, expected_score(elo), 4)
        points = spread_points(4, 1, number)
        known = [
            Observation(point, *elo_of(Tally(int(wins), 0, 10 - int(wins))))
            for point, wins in zip(points, won, strict=True)
        ]
        mean, error = Posterior(known).estimate(points[0])
        held += abs(mean - elo) < 1.96 * error
    assert held >= 51  # 57 expected; 39 without it
