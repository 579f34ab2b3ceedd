"""Clocks by table: how long a move may take, what is left after it, how long to think."""

from __future__ import annotations

import pytest

from azero.players.clock import LAG_SECONDS, Clock, thinking_seconds

FREE = Clock()
FIXED = Clock(seconds_per_move=5.0)
ABSOLUTE = Clock(main_seconds=600.0)
FISCHER = Clock(main_seconds=60.0, increment_seconds=2.0)
JAPANESE = Clock(main_seconds=100.0, period_seconds=30.0, periods=3)
CANADIAN = Clock(main_seconds=100.0, period_seconds=300.0, period_moves=25)
CANADIAN_RUNNING = Clock(
    main_seconds=0.0, period_seconds=300.0, period_moves=25, period_left=100.0, moves_left=10
)


@pytest.mark.parametrize(
    ("clock", "limit"),
    [
        (FREE, None),
        (FIXED, 5.0),
        (ABSOLUTE, 600.0),
        (FISCHER, 60.0),
        (JAPANESE, 190.0),  # the last period too may be used in one move
        (CANADIAN, 400.0),
        (CANADIAN_RUNNING, 100.0),
    ],
)
def test_the_longest_move(clock: Clock, limit: float | None) -> None:
    assert clock.limit_seconds == limit


@pytest.mark.parametrize(
    ("clock", "seconds", "after"),
    [
        (FREE, 1e9, FREE),
        (FIXED, 4.9, FIXED),
        (FIXED, 5.1, None),
        (ABSOLUTE, 10.0, Clock(main_seconds=590.0)),
        (ABSOLUTE, 600.1, None),
        (FISCHER, 10.0, FISCHER._replace(main_seconds=52.0)),
        (JAPANESE, 40.0, JAPANESE._replace(main_seconds=60.0)),
        # 20 s of the first period, which starts over
        (JAPANESE, 120.0, JAPANESE._replace(main_seconds=0.0)),
        (JAPANESE, 135.0, JAPANESE._replace(main_seconds=0.0, periods=2)),  # one period is used up
        (JAPANESE._replace(main_seconds=0.0), 65.0, JAPANESE._replace(main_seconds=0.0, periods=1)),
        # to the last moment
        (JAPANESE._replace(main_seconds=0.0), 90.0, JAPANESE._replace(main_seconds=0.0, periods=1)),
        (JAPANESE._replace(main_seconds=0.0), 90.1, None),
        (CANADIAN, 60.0, CANADIAN._replace(main_seconds=40.0)),
        (CANADIAN, 120.0, CANADIAN._replace(main_seconds=0.0, period_left=280.0, moves_left=24)),
        (CANADIAN_RUNNING, 30.0, CANADIAN_RUNNING._replace(period_left=70.0, moves_left=9)),
        (
            CANADIAN_RUNNING._replace(moves_left=1),
            30.0,
            CANADIAN_RUNNING._replace(period_left=300.0, moves_left=25),
        ),
        (CANADIAN_RUNNING, 100.1, None),
        (
            CANADIAN_RUNNING._replace(increment_seconds=2.0),
            30.0,
            CANADIAN_RUNNING._replace(increment_seconds=2.0, period_left=72.0, moves_left=9),
        ),
    ],
)
def test_what_is_left_after_a_move(clock: Clock, seconds: float, after: Clock | None) -> None:
    assert clock.after(seconds) == after


@pytest.mark.parametrize(
    ("clock", "num_moves", "num_points", "seconds"),
    [
        (FREE, 0, 361, None),
        (FIXED, 100, 361, 5.0 - LAG_SECONDS),
        (ABSOLUTE, 0, 361, 600 / (0.7 * 361 / 2) - LAG_SECONDS),  # 126 own moves
        (ABSOLUTE, 200, 361, 600 / (361 / 6) - LAG_SECONDS),  # never fewer than 60
        (ABSOLUTE, 0, 81, 600 / (0.7 * 81 / 2) - LAG_SECONDS),
        (ABSOLUTE, 40, 25, 600 / 10 - LAG_SECONDS),  # nor than 10
        # less than the lag: as short as can be
        (ABSOLUTE._replace(main_seconds=0.2), 300, 361, 0.02),
        (ABSOLUTE._replace(main_seconds=0.01), 300, 361, 0.005),
        (FISCHER, 0, 81, 60 / (0.7 * 81 / 2) + 2 - LAG_SECONDS),
        (JAPANESE, 0, 361, 30.0),  # as much as a period allows anyway
        (JAPANESE._replace(main_seconds=10.0), 0, 361, 40.0 - LAG_SECONDS),
        (JAPANESE._replace(main_seconds=0.0), 0, 361, 30.0 - LAG_SECONDS),
        (JAPANESE._replace(main_seconds=36000.0), 0, 361, 36000 / (0.7 * 361 / 2) - LAG_SECONDS),
        (CANADIAN, 0, 361, 12.0),  # 300 s for 25 moves come after the main time
        (CANADIAN_RUNNING, 0, 361, 10.0),
        (CANADIAN_RUNNING._replace(moves_left=1), 0, 361, 100.0 - LAG_SECONDS),
        # nine increments come before the last move
        (CANADIAN_RUNNING._replace(increment_seconds=2.0), 0, 361, (100 + 9 * 2) / 10),
        (CANADIAN_RUNNING._replace(increment_seconds=200.0), 0, 361, 100.0 - LAG_SECONDS),
    ],
)
def test_how_long_to_think(
    clock: Clock, num_moves: int, num_points: int, seconds: float | None
) -> None:
    assert thinking_seconds(clock, num_moves, num_points) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "clock",
    [ABSOLUTE, FISCHER, JAPANESE, CANADIAN, CANADIAN._replace(increment_seconds=2.0), FIXED],
)
@pytest.mark.parametrize("num_points", [25, 81, 361])
def test_no_game_is_lost_on_time(clock: Clock, num_points: int) -> None:
    """A player who takes what is advised, and a few milliseconds more, ends a game of two moves a
    point within its time."""
    for own_move in range(num_points):
        seconds = thinking_seconds(clock, 2 * own_move, num_points)
        assert seconds is not None and seconds > 0
        left = clock.after(seconds + 0.005)
        assert left is not None, (own_move, clock)
        clock = left
