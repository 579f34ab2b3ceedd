"""Readable numbers and tables: counts, times and sizes with units, and plain rich tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rich.table import Table

Cell = str | int | float | bool | None


def format_count(count: float) -> str:
    """Return a count with thousands separators, or in millions (M) or billions (G) where it is
    large: 9,018 or 4.9 M."""
    if abs(count) >= 1e9:
        return f"{count / 1e9:,.1f} G"
    if abs(count) >= 1e6:
        return f"{count / 1e6:.1f} M"
    return f"{count:,.0f}" if abs(count) >= 100 or float(count).is_integer() else f"{count:.3g}"


def count_of(count: int, noun: str) -> str:
    """Return a count of things in words: 1 game, 2 games, 0 losses."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units: 8.2 s, 3 min 20 s, 2 h 5 min, 40 days 3 h, 71
    years."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    if whole < 730 * 86_400:
        return f"{count_of(whole // 86_400, 'day')} {whole % 86_400 // 3600} h"
    return f"{whole / (365.25 * 86_400):,.0f} years"


def format_bytes(size: float) -> str:
    """Return a size in bytes with a binary unit: 760 B, 1.5 KiB, 23.0 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def format_cell(value: Cell) -> str:
    """Return a value as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else value


def make_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], num_left: int | None = None
) -> Table:
    """Return a table whose columns of numbers are right-aligned; with `num_left`, all but the first
    `num_left` columns are."""
    cells = [list(row) for row in rows]
    table = Table(title=title, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        numbers = bool(cells) and all(
            row[index] is None or isinstance(row[index], int | float) for row in cells
        )
        if num_left is not None:
            numbers = index >= num_left
        table.add_column(column, justify="right" if numbers else "left")
    for row in cells:
        table.add_row(*(format_cell(cell) for cell in row))
    return table


class Result(Protocol):
    """A row of a table."""

    def cells(self) -> Mapping[str, Cell]:
        """Return the cells by their columns."""


def results_table(results: Sequence[Result], title: str, num_left: int) -> Table:
    """Return a table of results; all but the first `num_left` columns are right-aligned."""
    rows = [result.cells() for result in results]
    columns = list(rows[0]) if rows else []
    return make_table(title, columns, [list(row.values()) for row in rows], num_left)


def facts_table(title: str, facts: Mapping[str, Cell]) -> Table:
    """Return a table of names and values without a header, as `azero doctor` prints it."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, format_cell(value))
    return table
