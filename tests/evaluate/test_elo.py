"""Ratings: the papers' numbers, synthetic players, anchors, and results that cannot be rated."""

import numpy as np
import pytest

from azero.evaluate.elo import PairResult, elo_difference, expected_score, fit_elo


def test_the_logistic_has_base_ten() -> None:
    assert expected_score(200) == pytest.approx(0.760, abs=5e-4)
    assert expected_score(230) == pytest.approx(0.790, abs=5e-4)
    assert elo_difference(expected_score(137.0)) == pytest.approx(137.0)


def test_a_single_pair_has_the_closed_form() -> None:
    low, high = fit_elo([PairResult("a", "b", 30, 20, 50)], prior_draws=0)
    assert low.elo == 0 and low.low == low.high == 0
    assert high.elo == pytest.approx(elo_difference(0.6))
    # Fisher information of 100 games at 60%: 100 x 0.24 x (ln 10 / 400)^2.
    assert high.high - high.elo == pytest.approx(1.959964 / np.sqrt(24) * 400 / np.log(10))
    assert (low.games, low.score) == (100, 0.4)


def test_synthetic_ratings_are_recovered_within_their_intervals() -> None:
    generator = np.random.default_rng(1)
    inside = total = 0
    for _ in range(20):
        truth = np.concatenate([[0.0], generator.normal(300, 250, 7)])
        results = []
        for i in range(8):
            for j in range(i):
                wins = int(generator.binomial(200, expected_score(truth[i] - truth[j])))
                results.append(PairResult(str(i), str(j), wins, 0, 200 - wins))
        for rating in fit_elo(results, {"0": 0.0}, prior_draws=0):
            if rating.name != "0":
                total += 1
                inside += rating.low <= truth[int(rating.name)] <= rating.high
    # 140 intervals at 95%: 133 expected; within one set they are correlated through the anchor.
    assert inside / total > 0.88


def test_two_anchors_hold_and_order_does_not_matter() -> None:
    results = [PairResult("low", "mid", 20, 0, 80), PairResult("mid", "high", 25, 0, 75)]
    turned = [PairResult("high", "mid", 75, 0, 25), PairResult("low", "mid", 20, 0, 80)]
    ratings = {rating.name: rating for rating in fit_elo(results, {"low": 1000.0, "high": 1500.0})}
    other = {rating.name: rating for rating in fit_elo(turned, {"low": 1000.0, "high": 1500.0})}
    assert ratings["low"].elo == 1000 and ratings["high"].elo == 1500
    assert 1230 < ratings["mid"].elo < 1330 and ratings["mid"].elo == pytest.approx(other["mid"].elo)


def test_a_clean_sweep_stays_finite() -> None:
    _, best = fit_elo([PairResult("old", "new", 0, 0, 400)])
    assert best.elo == pytest.approx(elo_difference(401 / 402), rel=1e-6)
    assert best.low < best.elo < best.high < 2500


@pytest.mark.parametrize(
    ("results", "anchors", "message"),
    [
        ([], None, "no games"),
        ([PairResult("a", "a", 1, 0, 0)], None, "'a' cannot be rated by games against itself"),
        ([PairResult("a", "b", 1, 0, 0)], {"c": 0.0}, "anchors without games: c; the players are: a, b"),
        ([PairResult("a", "b", 1, 0, 0), PairResult("c", "d", 1, 0, 0)], None, "no games connect c, d with a"),
    ],
)
def test_what_cannot_be_rated_is_said(results: list[PairResult], anchors: dict[str, float] | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_elo(results, anchors)
