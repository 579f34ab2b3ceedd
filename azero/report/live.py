"""A short summary of a run in progress, for a notebook, and its main curves as one image."""

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
from azero.report.plots import Chart, save_charts
from azero.report.templates import load_template

CHARTS = (
    "Policy loss",
    "Value loss",
    "Results of self-play",
    "Moves per game",
    "Positions per second",
)
"""Charts of `azero.report.page` that show first whether a run learns."""
SHOWN = ("Policy loss", "Value loss", "Moves per game")
"""Charts of the report that the image shows next to the checkpoints' Elo, if the run has data for
them."""


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


def save_curves(workdir: Path, path: Path) -> None:
    """Save the main curves of the run in `workdir` as an image; the suffix of `path` determines the
    format.

    Raises:
      ValueError: there is no such run, it has no numbers yet, a file of it is damaged, or the image
        cannot be written; the file is named.
    """
    data = load_run(workdir)
    charts = {**elo_series(data.events), **chart_series(data.metrics, SHOWN)}
    if not charts:
        raise ValueError(f"{workdir} has no metrics to plot yet")
    save_charts(path, [Chart(title, series) for title, series in charts.items()])
