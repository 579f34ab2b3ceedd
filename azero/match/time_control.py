"""The time of a match's games. No heavy imports here."""

from __future__ import annotations

import math
from dataclasses import dataclass

from azero.players.clock import Clock


@dataclass(frozen=True)
class TimeControl:
    """The clock of each player at the start of a game; without any of these there is none, and
    players think for their visits."""

    seconds_per_move: float | None = None
    """Seconds for every move (AG16: 5; the preprint of AlphaZero: 60)."""
    main_time: float | None = None
    """Seconds for the whole game (AGZ: 7200, then three periods; AZ: 10800 with increments)."""
    increment: float = 0.0
    """Seconds added after each own move (AZ: 15)."""
    periods: int = 0
    """Periods of byo-yomi after the main time (AGZ: 3)."""
    period_time: float = 0.0
    """Seconds of each of them (AGZ: 60)."""

    @property
    def is_set(self) -> bool:
        """Whether games are played by the clock."""
        return self.seconds_per_move is not None or self.main_time is not None

    def clock(self) -> Clock:
        """Return the clock before the first move."""
        return Clock(
            self.seconds_per_move,
            self.main_time,
            self.increment,
            self.period_time,
            self.periods,
        )

    def check(self) -> None:
        """Check that the values fit each other.

        Raises:
          ValueError: they do not.
        """
        if self.seconds_per_move is not None and self != TimeControl(self.seconds_per_move):
            raise ValueError("seconds-per-move excludes main-time, increment and periods")
        if self.main_time is None and self != TimeControl(self.seconds_per_move):
            raise ValueError("increment and periods need main-time")
        if (self.periods > 0) != (self.period_time > 0):
            raise ValueError("periods and period-time come together")
        if self.increment > 0 and self.periods > 0:
            raise ValueError("increment excludes periods")
        times = (self.seconds_per_move, self.main_time, self.increment, self.period_time)
        for value in (*times, self.periods):
            if value is not None and not 0 <= value < math.inf:
                raise ValueError(f"times are numbers of seconds from 0 upwards, not {value}")
        if self.seconds_per_move == 0 or (self.main_time == 0 and self.increment == self.periods):
            raise ValueError("a clock of 0 seconds leaves no time for a move")


NO_CLOCK = TimeControl()
"""Games without a clock."""
