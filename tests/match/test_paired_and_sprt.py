"""Scores of games that belong together, and the test that stops a match."""

import numpy as np
import pytest

from azero.match.elo import expected_score
from azero.match.score import paired_score, student_quantile
from azero.match.sprt import BOUND, Sprt


def test_students_quantile() -> None:
    # Tables of the t distribution, two-sided 95%.
    for freedom, value in [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (5, 2.571),
        (10, 2.228),
        (30, 2.042),
        (1000, 1.962),
    ]:
        assert student_quantile(freedom) == pytest.approx(value, rel=4e-3)


def test_groups_and_not_games_count() -> None:
    once = paired_score([1, -1] * 20, [[index // 2] for index in range(40)])
    apart = paired_score([1, -1] * 20, [[index] for index in range(40)])
    assert once.groups == 20 and apart.groups == 40 and once.score == 0.5
    assert once.high - once.low < 0.6 * (apart.high - apart.low), (
        "every opening is split: the score is surer than the games alone"
    )
    same = paired_score([1] * 20 + [-1] * 20, [[index // 20] for index in range(40)])
    assert same.high - same.low > 0.6, "two openings played over and over say little"
    assert (
        paired_score([1, 1], [["a"], ["a"]]).high == 1.0
        and paired_score([1, 1], [["a"], ["a"]]).low == 0.0
    )
    lost = paired_score([-1] * 40, [[index // 2] for index in range(40)])
    assert lost.low == 0.0 and 0.08 < lost.high < 0.11, (
        "one loss or another in each pair says no more than 40 games can"
    )
    almost = paired_score([1] + [-1] * 39, [[index // 2] for index in range(40)])
    assert 0.11 < almost.high < 0.15
    chained = paired_score([1, 1, 1, -1], [[0, "x"], [1, "x"], [1], [2]])
    assert chained.groups == 2, "what shares a game with a group belongs to it"


@pytest.mark.parametrize(
    ("strength", "advantage", "openings", "pairs"),
    [(0.0, 0.0, 0.0, 50), (0.5, 1.0, 1.0, 40), (1.0, 0.0, 2.0, 30), (4.0, 0.0, 0.5, 20)],
)
def test_the_interval_holds_the_true_score(
    strength: float, advantage: float, openings: float, pairs: int
) -> None:
    generator = np.random.default_rng(2)
    grid = np.linspace(-4, 4, 201)
    density = np.exp(-(grid**2) / 2) / np.exp(-(grid**2) / 2).sum()
    truth = np.mean(
        [
            density @ (1 / (1 + np.exp(-(strength + side * (advantage + openings * grid)))))
            for side in (1, -1)
        ]
    )
    held = 0
    for _ in range(300):
        lead = strength + np.array([[1.0], [-1.0]]) * (
            advantage + openings * generator.standard_normal(pairs)
        )
        rewards = np.where(generator.random((2, pairs)) < 1 / (1 + np.exp(-lead)), 1.0, -1.0)
        score = paired_score(
            rewards.T.ravel().tolist(), [[index // 2] for index in range(2 * pairs)]
        )
        held += score.low <= truth <= score.high
    assert held >= 270


def test_the_ratio_is_walds_where_only_wins_and_losses_exist() -> None:
    # Pairs that are all won or lost: the constrained shares are the two means themselves.
    pairs = [1.0] * 60 + [0.0] * 40
    low, high = expected_score(0), expected_score(50)
    expected = 60 * np.log(high / low) + 40 * np.log((1 - high) / (1 - low))
    assert Sprt(0, 50).ratio(pairs) == pytest.approx(expected, abs=0.02)
    assert Sprt(0, 50).ratio([]) == 0.0 and pytest.approx(2.944, abs=1e-3) == BOUND


@pytest.mark.parametrize(("elo", "word"), [(0, "at most 0"), (60, "at least 60")])
def test_wrong_decisions_are_rare(elo: float, word: str) -> None:
    generator = np.random.default_rng(1)
    right = 0
    for _ in range(30):
        win = expected_score(elo) - 0.1
        games = generator.choice([1.0, 0.5, 0.0], p=[win, 0.2, 0.8 - win], size=(400, 2))
        decision = Sprt(0, 60).decide(games.mean(axis=1).tolist())
        right += decision is not None and word in decision[1]
    assert right >= 26


def test_a_test_needs_two_differences_in_order() -> None:
    with pytest.raises(ValueError, match="must be below the second, not 10 and 0"):
        Sprt(10, 0)
    for ends in ((-1e6, 0), (0, 1e5), (0, np.inf)):
        with pytest.raises(ValueError, match="of a test are from -2,000 to 2,000, not"):
            Sprt(*ends)
    with np.errstate(all="raise"):
        assert Sprt(-2000, 2000).decide([1.0, 1.0]) is not None
