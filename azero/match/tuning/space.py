"""What is tuned: numbers in ranges, as points of a unit cube and as settings in a player's name."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_FORM = re.compile(r"([a-z][\w-]*)=([\d.eE+-]+?)\.\.([\d.eE+-]+?)(:log)?")
_DIGITS = 4
"""Significant digits of a setting."""


@dataclass(frozen=True)
class Parameter:
    """A setting and its range."""

    name: str
    """As in the player's name."""
    low: float
    high: float
    is_log: bool = False
    """Whether it is searched on a logarithmic scale."""
    is_whole: bool = False
    """Whether it is an integer."""

    def value(self, unit: float) -> float:
        """Return the setting at `unit` in [0, 1], as it is written."""
        if self.is_log:
            value = math.exp(self._scale(self.low) + unit * self._length)
        else:
            value = self.low + unit * self._length
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.is_whole else float(f"{value:.{_DIGITS}g}")

    def unit(self, value: float) -> float:
        """Return the place of a setting in [0, 1]."""
        return (self._scale(value) - self._scale(self.low)) / self._length

    def has(self, value: float) -> bool:
        """Return whether a setting is in the range, but for rounding."""
        return (value > 0 or not self.is_log) and abs(self.unit(value) - 0.5) < 0.51

    @property
    def _length(self) -> float:
        return self._scale(self.high) - self._scale(self.low)

    def _scale(self, value: float) -> float:
        return math.log(value) if self.is_log else value


def parse_parameter(text: str, whole: Sequence[str] = ()) -> Parameter:
    """Return the parameter of "NAME=LOW..HIGH" or "NAME=LOW..HIGH:log"; those in `whole` are
    integers.

    Raises:
      ValueError: it is not of this form, the range is empty, or an end is not a possible value.
    """
    found = _FORM.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        name, low, high, log = found.groups()
        parameter = Parameter(
            name, float(low), float(high), log is not None, name.replace("-", "_") in whole
        )
    except ValueError:
        raise ValueError(
            f"--parameter {text}: a parameter is NAME=LOW..HIGH, or NAME=LOW..HIGH:log"
        ) from None
    lowest = 0.0 if parameter.is_log else -math.inf
    if not lowest < parameter.low < parameter.high < math.inf:
        raise ValueError(
            f"--parameter {text}: the range goes from a lower to a higher finite number"
            f"{', above 0 for :log' if parameter.is_log else ''}"
        )
    if parameter.is_whole and not (parameter.low.is_integer() and parameter.high.is_integer()):
        raise ValueError(f"--parameter {text}: {name} is a whole number, so both ends must be")
    return parameter


def values_of(space: Sequence[Parameter], point: np.ndarray) -> tuple[float, ...]:
    """Return the settings at a point float[D] of the unit cube."""
    return tuple(parameter.value(float(unit)) for parameter, unit in zip(space, point, strict=True))


def point_of(space: Sequence[Parameter], values: Sequence[float]) -> np.ndarray:
    """Return the point float[D] of settings."""
    pairs = zip(space, values, strict=True)
    return np.array([parameter.unit(value) for parameter, value in pairs])


def with_values(player: str, space: Sequence[Parameter], values: Sequence[float]) -> str:
    """Return the player's name with these settings, in place of its own values of them."""
    place, _, query = player.partition("?")
    tuned = {parameter.name.replace("-", "_") for parameter in space}
    words = [
        word
        for word in query.split("&")
        if word and word.partition("=")[0].replace("-", "_") not in tuned
    ]
    words += [
        f"{parameter.name}={value:.0f}" if value == round(value) else f"{parameter.name}={value:g}"
        for parameter, value in zip(space, values, strict=True)
    ]
    return f"{place}?{'&'.join(words)}"
