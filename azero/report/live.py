"""A short summary of a run in progress, for a notebook."""

from pathlib import Path

from azero.data.run_files import load_run
from azero.report.page import (
    chart_series,
    draw_charts,
    elo_series,
    sample_view,
    status,
    summary_numbers,
)
from azero.report.templates import load_template

CHARTS = (
    "Policy loss",
    "Value loss",
    "Results of self-play",
    "Moves per game",
    "Positions per second",
)
"""Charts of `azero.report.page` that show first whether a run learns."""


def live_view(workdir: Path) -> str:
    """Return the run's numbers, Elo, first charts and newest sample game as a piece of HTML.

    It needs nothing else.

    Raises:
      ValueError: there is no such directory, or a file in it is damaged; the file is named.
    """
    data = load_run(workdir)
    iteration, games = data.samples[-1] if data.samples else (0, [])
    return load_template("live.html.j2").render(
        title=data.run.get("experiment", workdir.name),
        status=status(data),
        summary_numbers=summary_numbers(data),
        charts=draw_charts({**elo_series(data.events), **chart_series(data.metrics, CHARTS)}),
        sample=sample_view(0, iteration, games[0]) if games else None,
    )
