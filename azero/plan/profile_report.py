"""A program's profile as tables, plain values and an image."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from azero.console.tables import format_duration, make_table
from azero.plan.profile import Profile, Time

SHOWN_LINES = 12
"""Source lines of each program in the tables; `--json` has all of them."""


def profile_tables(profiles: Mapping[str, Profile]) -> list[Table]:
    """Return for each program its parts, and the source lines that take the most time."""
    return [
        table
        for name, found in profiles.items()
        if found.lines
        for table in (_parts_table(name, found), _lines_table(found))
    ]


def _parts_table(name: str, found: Profile) -> Table:
    total = found.total
    title = (
        f"{name}: {format_time(total.seconds)} by the compiler's estimates, "
        f"{format_percent(found.outside_convolutions)} of it outside convolutions"
    )
    rows = [
        (part, *_times(time, total), _unestimated(time))
        for part, time in (*found.parts.items(), ("in all", total))
    ]
    columns = ("part", "estimate", "share", "roofline", "not estimated")
    return make_table(title, columns, rows)


def _lines_table(found: Profile) -> Table:
    total = found.total
    rows = [
        (
            line.source or "(none named)",
            line.operation,
            f"{time.runs:,.0f}",
            *_times(time, total)[:2],
        )
        for line, time in list(found.lines.items())[:SHOWN_LINES]
    ]
    table = make_table("", ("source line", "operation", "runs", "estimate", "share"), rows)
    table.columns[0].no_wrap = True
    return table


def _unestimated(time: Time) -> str:
    runs, roofline = f"{time.unestimated_runs:,.0f}", format_time(time.unestimated)
    return f"{runs} runs, roofline {roofline}" if time.unestimated_runs else ""


def _times(time: Time, total: Time) -> tuple[str, str, str]:
    share = time.seconds / total.seconds if total.seconds else 0.0
    return format_time(time.seconds), format_percent(share), format_time(time.roofline)


def format_time(seconds: float) -> str:
    """Return a time with its unit, also where it is short: 12.6 ms."""
    return format_duration(seconds) if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def format_percent(share: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * share:.1f}%"


def profile_json(found: Profile) -> dict[str, Any]:
    """Return a profile as plain values; times are in seconds."""
    return {
        **dataclasses.asdict(found.total),
        "outside_convolutions": found.outside_convolutions,
        "parts": {part: dataclasses.asdict(time) for part, time in found.parts.items()},
        "lines": [
            {**line._asdict(), **dataclasses.asdict(time)} for line, time in found.lines.items()
        ],
    }


def save_picture(path: Path, title: str, profiles: Mapping[str, Profile]) -> None:
    """Write an image with a bar for each program, divided into its parts; the suffix determines the
    format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    from azero.report.plots import Bar, save_bars

    bars = [
        Bar(
            f"{name}, {format_time(found.total.seconds)}",
            {part: time.seconds for part, time in found.parts.items()},
        )
        for name, found in profiles.items()
        if found.lines
    ]
    save_bars(path, title, bars)
