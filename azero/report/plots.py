"""Charts, drawn by matplotlib: as inline SVG whose colours follow the page, and as images."""

import html
import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from azero.console.tables import format_count
from azero.match.elo import Rating

INK, GRID = "#010203", "#010204"
"""Placeholders for the page's colours of text and grid lines; matplotlib has no CSS variables."""
SERIES_COLOURS = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04", "#0a0b05")
"""Placeholders for the page's colours of the first, second ... line."""
IMAGE_COLOURS = ("#0b6e69", "#c2571a", "#5b4bb5", "#8a8f94", "#a8842c")
"""The same in images, on white."""
STYLE: Any = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    # Points of a line that lie within a pixel of it are left out: 7,000 iterations take 20 kB.
    "path.simplify_threshold": 1.0,
}
PANELS = 2
"""Charts in a row of an image."""
TITLE_WIDTH = 52
"""Characters in a line of a title in an image; longer ones are wrapped."""
OUTLIERS, FAR = 0.05, 2.0
"""Share of a line's points that may be left outside a clipped chart, and how many times higher than
all others the highest one then is."""


@dataclass(frozen=True)
class Series:
    """One line of a chart."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    """Lower end of an interval around each point, with `high`."""
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Chart:
    """Lines over one axis, with their title."""

    title: str
    series: Sequence[Series]
    x_label: str = "iteration"


def line_chart(chart: Chart, clip: bool = False) -> str:
    """Return a chart as an <svg> element; non-finite values leave gaps.

    The page writes the title above it: text in SVG does not wrap. With `clip` a few values far
    above all others, such as the seconds of the iteration that compiles, are named below the chart
    and do not set its scale.

    Raises:
      ValueError: there are more lines than colours.
    """
    if len(chart.series) > len(SERIES_COLOURS):
        message = f"at most {len(SERIES_COLOURS)} lines fit one chart, not {len(chart.series)}"
        raise ValueError(message)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(4.4, 2.4), layout="constrained")
        axes = figure.add_subplot()
        _draw_chart(axes, chart, SERIES_COLOURS, INK, GRID)
        if clip:
            _clip_top(axes, chart.series)
    return svg_element(figure, chart.title)


def _clip_top(axes: Axes, series: Sequence[Series]) -> None:
    """Leave values far above all others out of the scale, and say what they are."""
    lines = [np.asarray(line.y, float) for line in series]
    usual = [np.sort(line[np.isfinite(line)]) for line in lines]
    most = [line[: len(line) - math.ceil(OUTLIERS * len(line))] for line in usual]
    top = max((line[-1] for line in most if line.size), default=math.inf)
    outside = [
        (y, x) for line in series for x, y in zip(line.x, line.y, strict=True) if y > FAR * top
    ]
    if not outside or top <= 0:
        return
    axes.set_ylim(0, FAR * top)
    highest, iteration = max(outside)
    axes.set_xlabel(
        f"iteration (outside: up to {format_count(highest)}, iteration {iteration:,})",
        color=axes.xaxis.label.get_color(),
    )


def svg_element(figure: Figure, title: str) -> str:
    """Return a figure as an <svg> element that needs nothing else, with the page's colours.

    `title` is its label for screen readers, and keeps the ids of its parts unique on the page.
    """
    file = io.StringIO()
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": title}):
        figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    svg = file.getvalue()
    named = f'<svg class="chart" role="img" aria-label="{html.escape(title)}"'
    svg = svg[svg.index("<svg") :].replace("<svg", named, 1)
    variables = {INK: "ink-soft", GRID: "rule"}
    variables |= {colour: f"series-{index}" for index, colour in enumerate(SERIES_COLOURS)}
    for colour, name in variables.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def save_ratings(path: Path, ratings: Sequence[Rating]) -> None:
    """Write an image of players with their ratings and intervals, the strongest on top.

    The suffix determines the format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    figure = Figure(figsize=(7.0, 1.2 + 0.32 * len(ratings)), layout="constrained")
    axes = figure.add_subplot()
    places = range(len(ratings))
    elo = [rating.elo for rating in ratings]
    below = [rating.elo - rating.low for rating in ratings]
    above = [rating.high - rating.elo for rating in ratings]
    axes.errorbar(elo, places, xerr=[below, above], fmt="o", capsize=3, color=IMAGE_COLOURS[0])
    axes.set_yticks(places, [rating.name for rating in ratings])
    axes.invert_yaxis()
    axes.set_xlabel("Elo; the 95% intervals hold for all players at once")
    axes.grid(axis="x", linewidth=0.6, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def save_charts(path: Path, charts: Sequence[Chart]) -> None:
    """Write an image of charts, two in a row.

    The suffix determines the format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    rows = -(-len(charts) // PANELS)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(3.6 * PANELS, 2.3 * rows), layout="constrained")
        for place, chart in enumerate(charts, 1):
            axes = figure.add_subplot(rows, PANELS, place)
            lines = textwrap.fill(chart.title, TITLE_WIDTH)
            axes.set_title(lines, loc="left", color="#333333", fontsize=10, fontweight="bold")
            _draw_chart(axes, chart, IMAGE_COLOURS, "#333333", "#dddddd")
        _save(figure, path)


def save_bars(path: Path, title: str, bars: Mapping[str, Mapping[str, float]]) -> None:
    """Write an image of horizontal bars of equal length, each divided into the shares of its parts,
    the first on top: by their labels, lengths by the names of the parts. A part has the same colour
    in every bar. The suffix determines the format.

    Raises:
      ValueError: the format is unknown, or the file cannot be written.
    """
    names = list(dict.fromkeys(name for parts in bars.values() for name in parts))
    totals = [sum(parts.values()) or 1.0 for parts in bars.values()]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 1.6 + 0.5 * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        left = [0.0] * len(bars)
        colours = matplotlib.colormaps["tab20"]
        for index, name in enumerate(names):
            shares = [
                100 * parts.get(name, 0.0) / total
                for parts, total in zip(bars.values(), totals, strict=True)
            ]
            drawn = axes.barh(range(len(bars)), shares, left=left, color=colours(index), label=name)
            labels = [f"{share:.0f}%" if share >= 4 else "" for share in shares]
            axes.bar_label(drawn, labels, label_type="center", fontsize=8)
            left = [start + share for start, share in zip(left, shares, strict=True)]
        axes.set_yticks(range(len(bars)), list(bars))
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.set_xlabel("% of the time")
        axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
        axes.spines[:].set_visible(False)
        figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
        _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    if not path.suffix:  # matplotlib would write a file of another name
        raise ValueError(f"cannot write {path}: the name of an image ends in .png, .svg or .pdf")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot write {path}: {error}") from error


def _draw_chart(axes: Axes, chart: Chart, colours: Sequence[str], ink: str, grid: str) -> None:
    for line, colour in zip(chart.series, colours, strict=False):
        marker = "o" if len(line.x) <= 40 else None
        style: Any = {"label": line.label, "linewidth": 1.6, "marker": marker, "markersize": 3}
        axes.plot(line.x, line.y, color=colour, **style)
        if line.low is not None and line.high is not None:
            axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    axes.set_xlabel(chart.x_label, color=ink)
    style_axes(axes, ink, grid)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_count(value)))
    if len(chart.series) > 1:
        axes.margins(y=0.25)  # room for the legend between the lines
        axes.legend(frameon=False, labelcolor=ink, fontsize=8, loc="best")


def style_axes(axes: Axes, ink: str = INK, grid: str = GRID) -> None:
    """Give axes the grid and the colours of all charts."""
    axes.grid(color=grid, linewidth=0.6)
    axes.tick_params(colors=ink, length=0)
    axes.spines[:].set_visible(False)
