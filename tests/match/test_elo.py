"""Ratings: the papers' numbers, synthetic players, anchors, and results that cannot be rated."""

import itertools

import numpy as np
import pytest

from azero.match.elo import (
    ELO_SCALE,
    EloFit,
    PairResult,
    Rating,
    elo_difference,
    expected_score,
    fit_elo,
    format_elo_difference,
)


def test_the_logistic_has_base_ten() -> None:
    assert expected_score(200) == pytest.approx(0.760, abs=5e-4)
    assert expected_score(230) == pytest.approx(0.790, abs=5e-4)
    assert elo_difference(expected_score(137.0)) == pytest.approx(137.0)


def alternating(
    first: str, second: str, wins: float, draws: float, losses: float
) -> list[PairResult]:
    """Return games in which each player moved first in half."""
    return [
        PairResult(first, second, wins / 2, draws / 2, losses / 2),
        PairResult(second, first, losses / 2, draws / 2, wins / 2),
    ]


def test_a_single_pair_has_the_closed_form() -> None:
    fit = fit_elo(alternating("a", "b", 30, 20, 50), prior=0)
    low, high = fit.ratings
    assert low.elo == 0 and low.low == low.high == 0 and fit.advantage == pytest.approx(0)
    # Davidson with two players fits the three shares exactly: the odds of the decided games, and nu
    # = draws / sqrt(wins x losses).
    assert high.elo == pytest.approx(400 * np.log10(50 / 30), rel=1e-3)
    nu = 20 / np.sqrt(30 * 50)
    assert fit.draw_share == pytest.approx(nu / (2 + nu), rel=3e-3)
    # The odds' standard error by the delta method, which the exact fit makes exact: sqrt(1/wins +
    # 1/losses).
    assert high.deviation == pytest.approx(np.sqrt(1 / 30 + 1 / 50) / ELO_SCALE, rel=1e-3)
    assert high.high - high.elo == pytest.approx(1.959964 * high.deviation)
    assert (low.games, low.score) == (100, 0.4)


def test_draws_as_halves_have_the_closed_form() -> None:
    fit = fit_elo(alternating("a", "b", 30, 20, 50), draws="half", prior=0)
    # As in Ordo: the logistic gives the expected score. Fisher information of 100 games at 60%: 100
    # x 0.24 x (ln 10 / 400)^2.
    assert fit.ratings[1].elo == pytest.approx(elo_difference(0.6)) and fit.draw_share == 0
    assert fit.ratings[1].deviation == pytest.approx(1 / np.sqrt(24) / ELO_SCALE)


def test_the_first_movers_advantage_has_the_closed_form() -> None:
    fit = fit_elo([PairResult("a", "b", 60, 0, 40), PairResult("b", "a", 80, 0, 20)], prior=0)
    first, second = np.log10(60 / 40) * 400, np.log10(80 / 20) * 400
    assert fit.advantage == pytest.approx((first + second) / 2, rel=1e-2)
    assert fit.ratings[1].elo == pytest.approx((second - first) / 2, abs=1.5)


def _tournament(seed: int, nu: float, advantage: float, games: int) -> tuple[np.ndarray, EloFit]:
    """Return the true ratings of six players and those found from `games` games of each pair with
    each colour."""
    generator = np.random.default_rng(seed)
    truth = np.concatenate([[0.0], generator.normal(100, 250, 5)])
    results = []
    for i, j in itertools.permutations(range(6), 2):
        x = (truth[i] - truth[j] + advantage) * ELO_SCALE
        weights = np.array([np.exp(x / 2), nu, np.exp(-x / 2)])
        wins, draws, losses = map(int, generator.multinomial(games, weights / weights.sum()))
        results.append(PairResult(str(i), str(j), wins, draws, losses))
    return truth, fit_elo(results, {"0": 0.0})


@pytest.mark.parametrize(
    ("nu", "advantage", "games"), [(0.0, 0.0, 40), (0.0, 60.0, 8), (0.6, 60.0, 30)]
)
def test_all_ratings_of_a_tournament_lie_in_their_intervals_together(
    nu: float, advantage: float, games: int
) -> None:
    tournaments = [_tournament(seed, nu, advantage, games) for seed in range(100)]
    together = sum(
        all(r.low <= t <= r.high for r, t in zip(_in_order(fit), truth, strict=True))
        for truth, fit in tournaments
    )
    assert together >= 90, "95 expected"
    alone = np.mean(
        [
            abs(r.elo - t) <= 1.96 * r.deviation
            for truth, fit in tournaments
            for r, t in zip(_in_order(fit), truth, strict=True)
            if r.deviation
        ]
    )
    assert 0.91 < alone < 0.98, "the standard errors are honest by themselves"
    deviates = [(fit.advantage - advantage) / fit.advantage_deviation for _, fit in tournaments]
    assert np.mean(np.abs(deviates) < 1.96) > 0.89
    assert np.mean([fit.draw_share for _, fit in tournaments]) == pytest.approx(
        nu / (2 + nu), abs=0.01
    )


def test_no_difference_is_never_minus_zero() -> None:
    assert format_elo_difference(0.4999, 0.4998, 0.5001) == "+0 (+0 to +0)"


def _in_order(fit: EloFit) -> list[Rating]:
    return sorted(fit.ratings, key=lambda rating: int(rating.name))


@pytest.mark.parametrize("per_opening", [1, 8])
def test_dependent_games_have_the_intervals_of_their_openings(per_opening: int) -> None:
    """Openings that favour one side: the colours of a pair cancel in the ratings, and add up in
    the advantage."""
    generator = np.random.default_rng(1)
    elo, advantage, fits = [], [], []
    for _ in range(150):
        results = []
        for opening, lead in enumerate(generator.normal(0, 500, 40)):
            for first, second in (("a", "b"), ("b", "a")):
                wins = generator.binomial(per_opening, expected_score(lead))
                results.append(PairResult(first, second, wins, 0, per_opening - wins, opening))
        fits.append(fit_elo(results, {"a": 0.0}))
        elo.append(fits[-1].ratings[1].elo)
        advantage.append(fits[-1].advantage)
    deviation = np.mean([fit.ratings[1].deviation for fit in fits])
    assert deviation == pytest.approx(np.std(elo), rel=0.15)
    apart = np.mean([fit.advantage_deviation for fit in fits])
    assert apart == pytest.approx(np.std(advantage), rel=0.15)


def test_a_group_of_games_counts_as_one_and_a_clean_sweep_is_not_certain() -> None:
    pairs = [result for n in range(50) for result in _pair(n, 1)]
    single, many = [fit_elo(games).ratings[1] for games in (_pair(0, 50), pairs)]
    alone = fit_elo(_pair(None, 50)).ratings[1]
    assert single.elo == pytest.approx(many.elo) == pytest.approx(alone.elo)
    assert many.deviation == pytest.approx(alone.deviation, rel=0.25)
    assert single.deviation > 5 * alone.deviation


def _pair(group: int | None, games: int) -> list[PairResult]:
    return [PairResult("a", "b", 0, 0, games, group), PairResult("b", "a", games, 0, 0, group)]


def test_two_anchors_hold_and_order_does_not_matter() -> None:
    results = [*alternating("low", "mid", 20, 0, 80), *alternating("mid", "high", 25, 0, 75)]
    turned = [*alternating("high", "mid", 75, 0, 25), *alternating("low", "mid", 20, 0, 80)]
    ratings = {
        rating.name: rating for rating in fit_elo(results, {"low": 1000.0, "high": 1500.0}).ratings
    }
    other = {
        rating.name: rating for rating in fit_elo(turned, {"low": 1000.0, "high": 1500.0}).ratings
    }
    assert ratings["low"].elo == 1000 and ratings["high"].elo == 1500
    assert 1230 < ratings["mid"].elo < 1330 and ratings["mid"].elo == pytest.approx(
        other["mid"].elo
    )


def test_the_order_of_the_results_does_not_move_the_intervals() -> None:
    wins = {"ab": 6, "ac": 9, "ad": 10, "bc": 7, "bd": 8, "cd": 7}
    results = [PairResult(*pair, won, 0, 10 - won) for pair, won in wins.items()]
    widths = [
        {rating.name: rating.high - rating.low for rating in fit_elo(games, {"a": 0.0}).ratings}
        for games in (results, results[::-1])
    ]
    assert widths[0] == pytest.approx(widths[1], rel=1e-6)


def test_a_clean_sweep_stays_finite() -> None:
    _, best = fit_elo(
        [PairResult("old", "new", 0, 0, 200), PairResult("new", "old", 200, 0, 0)]
    ).ratings
    # One virtual game, half won and half lost.
    assert best.elo == pytest.approx(elo_difference(400.5 / 401), abs=1)
    assert 300 < best.low < best.elo < best.high < 2000


def test_colours_that_say_nothing_leave_the_difference_open() -> None:
    _, one_sided = fit_elo([PairResult("a", "b", 300, 0, 100)]).ratings
    assert one_sided.deviation > 250, (
        "a always moved first: strength and advantage cannot be told apart"
    )


@pytest.mark.parametrize(
    ("results", "anchors", "message"),
    [
        ([], None, "no games"),
        ([PairResult("a", "a", 1, 0, 0)], None, "'a' cannot be rated from games against itself"),
        (
            [PairResult("a", "b", 1, 0, 0)],
            {"c": 0.0},
            "anchors without games: 'c'; the players are: 'a', 'b'",
        ),
        (
            [PairResult("a", "b", 1, 0, 0), PairResult("c", "d", 1, 0, 0)],
            None,
            "no games connect 'c', 'd' with 'a'",
        ),
    ],
)
def test_what_cannot_be_rated_is_said(
    results: list[PairResult], anchors: dict[str, float] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit_elo(results, anchors)
