"""Game clocks: a player's time, the time left after a move, and how much to use for a move."""

import math
from dataclasses import dataclass
from typing import NamedTuple

LAG_SECONDS = 0.3
"""Reserved for the lag between the player and the clock (a pipe, a network)."""
SHORTEST_SECONDS = 0.02
"""Thinking time if the clock leaves less than the lag."""
_GAME_SHARE = 0.7
"""Moves of a whole game per point of the board: 253 at 19x19, 57 at 9x9; a choice."""
_HORIZON_SHARE = 1 / 6
"""Minimum number of own moves per point that the main time must last for: 60 at 19x19; a choice."""
_LEAST_HORIZON = 10
"""The minimum number of own moves on the smallest boards."""


class Clock(NamedTuple):
    """The time of one player before its move. Without arguments there is no limit.

    Main time is used first. Then come periods: Japanese ones are restored by every move that ends
    within one, and `periods` of them may be used up; a Canadian one is for `period_moves` moves
    together. Without periods the main time is all there is (absolute time).
    """

    seconds_per_move: float | None = None
    """A fixed time for every move, which cannot be saved; the other fields are then ignored."""
    main_seconds: float | None = None
    """Main time left; None without a clock."""
    increment_seconds: float = 0.0
    """Added to the main time after each own move (Fischer), or to a Canadian period that runs (UCI:
    movestogo with increments)."""
    period_seconds: float = 0.0
    """Length of a period."""
    periods: int = 0
    """Japanese: periods left. 0 without periods, or Canadian."""
    period_moves: int = 0
    """Canadian: moves of one period. 0 without periods, or Japanese."""
    period_left: float = 0.0
    """Canadian: seconds left in the current period; used while `moves_left` is positive."""
    moves_left: int = 0
    """Canadian: moves left in the current period; 0 during the main time."""
    opponent_seconds: float | None = None
    """Main time that the opponent has left; None where it is not known."""

    @property
    def limit_seconds(self) -> float | None:
        """The longest time that the next move may take; None for no limit."""
        if self.seconds_per_move is not None or self.main_seconds is None:
            return self.seconds_per_move
        if self.moves_left > 0:
            return self.period_left
        return self.main_seconds + self.period_seconds * (
            1 if self.period_moves > 0 else self.periods
        )

    def after(self, seconds: float) -> "Clock | None":
        """Return the clock after a move that took `seconds`, or None if the time ran out."""
        limit = self.limit_seconds
        if limit is None or self.main_seconds is None or self.seconds_per_move is not None:
            return self if limit is None or seconds <= limit else None
        if seconds > limit:
            return None
        over = seconds if self.moves_left > 0 else max(0.0, seconds - self.main_seconds)
        if self.moves_left == 0 and over == 0.0:
            return self._replace(main_seconds=self.main_seconds - seconds + self.increment_seconds)
        if self.period_moves > 0:
            return self._after_canadian(over)
        used = (
            min(int(over / self.period_seconds), self.periods - 1) if self.period_seconds > 0 else 0
        )
        return self._replace(main_seconds=self.increment_seconds, periods=self.periods - used)

    def _after_canadian(self, over: float) -> "Clock":
        running = self.moves_left > 0
        left = (self.period_left if running else self.period_seconds) - over
        left += self.increment_seconds
        moves = (self.moves_left if running else self.period_moves) - 1
        if moves == 0:
            left, moves = self.period_seconds, self.period_moves
        return self._replace(main_seconds=0.0, period_left=left, moves_left=moves)


@dataclass(frozen=True)
class TimeControl:
    """Each player's clock at the start of a game. Without any of these there is no clock, and
    players search their visits."""

    seconds_per_move: float | None = None
    """Seconds for every move (AG16: 5; the preprint of AlphaZero: 60)."""
    main_time: float | None = None
    """Seconds for the whole game (AGZ: 7200, then three periods; AZ: 10800 with increments)."""
    increment: float = 0.0
    """Seconds added after each of the player's moves (AZ: 15)."""
    periods: int = 0
    """Periods of byo-yomi after the main time (AGZ: 3)."""
    period_time: float = 0.0
    """Seconds of a period (AGZ: 60)."""

    @property
    def is_set(self) -> bool:
        """Whether games are timed."""
        return self.seconds_per_move is not None or self.main_time is not None

    def clock(self) -> Clock:
        """Return the clock before the first move."""
        return Clock(
            self.seconds_per_move, self.main_time, self.increment, self.period_time, self.periods
        )

    def check(self) -> None:
        """Check the combination of the values.

        Raises:
          ValueError: it is not a time control.
        """
        if self.seconds_per_move is not None and self != TimeControl(self.seconds_per_move):
            raise ValueError("seconds-per-move excludes main-time, increment and periods")
        if self.main_time is None and self != TimeControl(self.seconds_per_move):
            raise ValueError("increment and periods need main-time")
        if (self.periods > 0) != (self.period_time > 0):
            raise ValueError("periods and period-time need each other")
        if self.increment > 0 and self.periods > 0:
            raise ValueError("increment excludes periods")
        times = (self.seconds_per_move, self.main_time, self.increment, self.period_time)
        for value in (*times, self.periods):
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"times are finite and at least 0 seconds, not {value}")
        if self.seconds_per_move == 0 or (self.main_time == 0 and self.periods == 0):
            raise ValueError("a clock of 0 seconds leaves no time for a move")


NO_CLOCK = TimeControl()
"""Games without a clock."""


def thinking_seconds(
    clock: Clock,
    num_moves: int,
    num_points: int,
    lag_seconds: float = LAG_SECONDS,
    own_moves: float | None = None,
) -> float | None:
    """Return the seconds to think about the next move; None is without limit.

    The main time is divided over the moves that the player still has on such a board, and at
    least over a sixth as many as there are points. A Japanese period is used at every move, since
    what is left of it is lost; further ones are kept in reserve. A Canadian one is divided over its
    moves, with their increments. The lag is subtracted.

    Args:
      clock: before the move.
      num_moves: moves played in the game, of both sides.
      num_points: points (squares) of the board.
      lag_seconds: subtracted from every limit.
      own_moves: moves over which the main time is divided; None takes the number from the board, as
        above.
    """
    limit = clock.limit_seconds
    if limit is None:
        return None
    if clock.seconds_per_move is not None or clock.main_seconds is None:
        wanted = limit
    elif clock.moves_left > 0:
        added = clock.increment_seconds * (clock.moves_left - 1)
        wanted = (clock.period_left + added) / clock.moves_left
    else:
        if own_moves is None:
            own_moves = max(
                (_GAME_SHARE * num_points - num_moves) / 2,
                num_points * _HORIZON_SHARE,
                _LEAST_HORIZON,
            )
        wanted = clock.main_seconds / own_moves + clock.increment_seconds - lag_seconds
        if clock.periods > 0:
            wanted = _with_period(clock, wanted, lag_seconds)
        elif clock.period_moves > 0:
            wanted = min(
                max(wanted, clock.period_seconds / clock.period_moves),
                max(clock.main_seconds, clock.period_seconds / clock.period_moves),
            )
    return max(min(wanted, limit - lag_seconds), min(SHORTEST_SECONDS, limit / 2))


def _with_period(clock: Clock, share: float, lag_seconds: float) -> float:
    """Return the seconds for a move where a Japanese period follows the main time: at least the
    period where that costs nothing or little."""
    main = clock.main_seconds or 0.0
    if main < clock.period_seconds:
        # Here the period begins in this move: all of it, with what is left of the main time.
        return main + clock.period_seconds - lag_seconds
    return min(max(share, clock.period_seconds), main)
