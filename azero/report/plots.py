"""Line charts as inline SVG whose colours follow the page, light or dark."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from azero.console.tables import format_count
from azero.match.elo import Rating

MAX_POINTS = 600
"""Points per line; longer ones are averaged over equal stretches, which no screen can tell apart."""
INK = "#010203"
"""Stands for the colour of the text until the page gives it."""
GRID = "#010204"
"""Stands for the colour of the grid lines."""
SERIES_COLOURS = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04")
"""Stand for the page's colours of the first, second ... line."""
IMAGE_COLOURS = ("#0b6e69", "#c2571a", "#5b4bb5", "#8a8f94")
"""The same in images, on white."""
PANELS = 2
"""Charts in a row of an image."""


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    """Lower end of an interval around each point, with `high`."""
    high: Sequence[float] | None = None


def line_chart(title: str, series: Sequence[Series], x_label: str = "iteration") -> str:
    """Return a chart as an <svg> element without outside references; values that are not finite leave gaps.

    Raises:
      ValueError: there are more lines than colours.
    """
    if len(series) > len(SERIES_COLOURS):
        raise ValueError(f"at most {len(SERIES_COLOURS)} lines fit one chart, not {len(series)}")
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif", "font.size": 9, "path.simplify": True}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(4.4, 2.4), layout="constrained")
        axes = figure.add_subplot()
        for line, colour in zip(series, SERIES_COLOURS, strict=False):
            _draw(axes, line, colour)
        _dress(axes, title, x_label, len(series) > 1)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    return _themed(file.getvalue())


def save_ratings(path: Path, ratings: Sequence[Rating]) -> None:
    """Write an image of players with their ratings and intervals, the strongest on top; the suffix says which format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    figure = Figure(figsize=(7.0, 1.2 + 0.32 * len(ratings)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(ratings))
    elo = [rating.elo for rating in ratings]
    errors = [[rating.elo - rating.low for rating in ratings], [rating.high - rating.elo for rating in ratings]]
    axes.errorbar(elo, places, xerr=errors, fmt="o", capsize=3, color="#0b6e69")
    axes.set_yticks(places, [rating.name for rating in ratings])
    axes.invert_yaxis()
    axes.set_xlabel("Elo; the 95% intervals hold for all players at once")
    axes.grid(axis="x", linewidth=0.6, alpha=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _save(figure, path)


def save_charts(path: Path, charts: Mapping[str, Sequence[Series]]) -> None:
    """Write an image of one or more charts of the iterations, by their titles, two in a row; the suffix says which format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    rows = -(-len(charts) // PANELS)
    settings: Any = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(3.6 * PANELS, 2.3 * rows), layout="constrained")
        for place, (title, series) in enumerate(charts.items()):
            axes = figure.add_subplot(rows, PANELS, place + 1)
            for line, colour in zip(series, IMAGE_COLOURS, strict=False):
                _draw(axes, line, colour)
            _dress(axes, title, "iteration", len(series) > 1, ink="#333333", grid="#dddddd")
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot write {path}: {error}") from error


def _draw(axes: matplotlib.axes.Axes, line: Series, colour: str) -> None:
    x, y = _thinned(line.x), _thinned(line.y)
    points = len(x) <= 40
    axes.plot(x, y, color=colour, linewidth=1.6, label=line.label, marker="o" if points else None, markersize=3)
    if line.low is not None and line.high is not None:
        axes.fill_between(x, _thinned(line.low), _thinned(line.high), color=colour, alpha=0.18, linewidth=0)


def _dress(axes: matplotlib.axes.Axes, title: str, x_label: str, legend: bool, ink: str = INK, grid: str = GRID) -> None:
    axes.set_title(title, loc="left", color=ink, fontsize=10, fontweight="bold")
    axes.set_xlabel(x_label, color=ink)
    axes.grid(color=grid, linewidth=0.6)
    axes.tick_params(colors=ink, length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    for side in axes.spines.values():
        side.set_visible(False)
    if legend:
        axes.margins(y=0.25)  # room for the legend between the lines
        axes.legend(frameon=False, labelcolor=ink, fontsize=8, loc="best")


def _thinned(values: Sequence[float]) -> np.ndarray:
    array = np.asarray([np.nan if value is None else value for value in values], float)
    if len(array) <= MAX_POINTS:
        return array
    edges = np.linspace(0, len(array), MAX_POINTS + 1).astype(int)
    sums = np.add.reduceat(np.nan_to_num(array), edges[:-1])
    counts = np.add.reduceat(np.isfinite(array).astype(float), edges[:-1])
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _themed(svg: str) -> str:
    """Return the <svg> element alone, with the page's colours in place of their stand-ins and sized by the page."""
    svg = svg[svg.index("<svg") :]
    svg = svg.replace(INK, "var(--ink-soft)").replace(GRID, "var(--rule)")
    for index, colour in enumerate(SERIES_COLOURS):
        svg = svg.replace(colour, f"var(--series-{index})")
    head, _, body = svg.partition(">")
    width, height = (head.split(f' {name}="')[1].split('"')[0] for name in ("width", "height"))
    return head.replace(f' width="{width}"', "").replace(f' height="{height}"', "") + ' class="chart">' + body
