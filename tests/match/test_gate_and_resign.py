"""The gate's boundary and the resignation threshold's promise."""

import numpy as np
import pytest

from azero.match.score import MatchResult, Tally, passes_gate
from azero.selfplay.resignation import HIGHEST, NEVER_RESIGN, ResignCalibration, lowest_points


def _result(wins: int, draws: int, losses: int) -> MatchResult:
    return MatchResult(first=Tally(wins, 0, losses), second=Tally(0, draws, 0))


def test_the_gate_opens_above_55_percent_and_not_at_it() -> None:
    assert not passes_gate(_result(220, 0, 180))
    assert passes_gate(_result(221, 0, 179))
    assert passes_gate(_result(220, 1, 179)) and not passes_gate(_result(219, 2, 179))
    assert not passes_gate(_result(0, 0, 0))
    with pytest.raises(ValueError, match="not 55"):
        passes_gate(_result(1, 0, 0), 55)


def test_lowest_points_by_hand() -> None:
    roots = np.array(
        [[0.1, -0.9, -0.6, 0.9, 0.0], [0.2, -0.3, -0.4, 0.5, -1.0], [0.1, 0.2, 0.3, 0.4, 0.5]],
        np.float32,
    )
    children = np.array(
        [[0.1, -0.8, -0.5, 0.9, -9.0], [0.1, -0.2, -0.7, 0.5, -1.0], [0.1, 0.2, 0.3, 0.4, 0.5]],
        np.float32,
    )
    to_play = np.array([[0, 1, 0, 1, 0]] * 3)
    rewards = np.array([[1, -1], [0, 0], [-1, 1]], np.float32)
    points = lowest_points(rewards, roots, children, to_play, np.array([4, 4, 1]))
    # Won by the first mover: its worst move is the third. Drawn: both sides count. One move by the
    # loser: nothing to give up.
    np.testing.assert_allclose(points, [-0.5, -0.4, 1.0])


def test_the_threshold_is_the_largest_that_keeps_its_promise() -> None:
    generator = np.random.default_rng(0)
    for games in (200, 201, 219, 220, 999):
        calibration = ResignCalibration(0.05, 200)
        points = generator.uniform(-1, 0, games).astype(np.float32)
        calibration.add(points)
        above = np.nextafter(np.float32(calibration.threshold), np.float32(0))
        assert calibration.false_positives() < 0.05 <= (points < above).mean()


def test_the_promise_holds_on_new_games() -> None:
    generator = np.random.default_rng(4)
    calibration = ResignCalibration(0.05, 200)
    calibration.add(generator.uniform(-1, 1, 2000))
    assert (generator.uniform(-1, 1, 100_000) < calibration.threshold).mean() < 0.06


def test_nobody_resigns_on_few_games_or_in_an_even_position() -> None:
    calibration = ResignCalibration(0.05, 200)
    calibration.add(np.full(199, 0.3))
    assert calibration.threshold == NEVER_RESIGN and calibration.false_positives() == 0
    calibration.add(np.full(1, 0.3))
    assert calibration.threshold == HIGHEST


def test_only_recent_games_count_and_the_state_survives() -> None:
    calibration = ResignCalibration(0.05, 100, window=100)
    calibration.add(np.full(100, -0.9))
    assert calibration.threshold == pytest.approx(-0.9)
    calibration.add(np.full(60, -0.6))
    calibration.add(np.full(36, -0.6))
    # 4 of 100 old games are left, fewer than 5.
    assert calibration.threshold == pytest.approx(-0.6) and calibration.false_positives() == 0.04
    copy = ResignCalibration(0.05, 100, window=100)
    copy.load_state_dict(calibration.state_dict())
    assert copy.threshold == calibration.threshold and copy.games == 100
    assert copy.false_positives() == 0.04
    half = ResignCalibration(0.05, 100, window=100)
    half.add(np.full(30, -0.1))
    copy.load_state_dict(half.state_dict())
    assert copy.games == 30


@pytest.mark.parametrize(
    "arguments", [(0.0, 200, 2000), (1.0, 200, 2000), (0.05, 0, 2000), (0.05, 300, 200)]
)
def test_impossible_calibrations_are_refused(arguments: tuple[float, int, int]) -> None:
    with pytest.raises(ValueError, match="not"):
        ResignCalibration(*arguments)


def test_values_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        ResignCalibration().add(np.array([0.0, np.nan]))
