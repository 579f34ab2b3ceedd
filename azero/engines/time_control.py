"""Provisional."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ClockState:
    seconds: float
    stones: int = 0


@dataclass(frozen=True)
class TimeControl:
    main: float
    period: float = 0.0
    stones: int = 0
    is_canadian: bool = False
    increment: float = 0.0
    most: float | None = None

    @classmethod
    def absolute(cls, main):
        return cls(main)

    @classmethod
    def canadian(cls, main, period, stones):
        return cls(main, period, stones, True)

    @classmethod
    def byo_yomi(cls, main, period, periods):
        return cls(main, period, periods)

    @classmethod
    def fischer(cls, main, increment, most=None):
        return cls(main, increment=increment, most=most)

    def start(self):
        return ClockState(self.main)

    def budget(self, clock, num_moves, points, lag):
        return max(0.01, clock.seconds / max(10, points / 3) - lag)

    def spend(self, clock, seconds):
        return ClockState(max(0.0, clock.seconds - seconds), clock.stones)
