"""Checks of the flags of `azero bench`."""

from __future__ import annotations

from typing import Any


def check_counts(arguments: Any, names: str) -> None:
    """Check that the flags `names`, which are counts or tuples of counts, are at least 1; None is a
    flag that was not given.

    Raises:
      ValueError: one is not; the flag is named.
    """
    for name in names.split():
        given = getattr(arguments, name)
        for value in given if isinstance(given, tuple) else (given,):
            if value is not None and value < 1:
                raise ValueError(f"--{name.replace('_', '-')} is at least 1, not {value}")


def check_seconds(seconds: float) -> None:
    """Check the time of a measurement.

    Raises:
      ValueError: it is not a positive, finite number.
    """
    if not 0.0 < seconds < float("inf"):
        raise ValueError(f"--seconds is a number above 0, not {seconds:g}")
