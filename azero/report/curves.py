"""One image of a run: the main curves of the report."""

from pathlib import Path

from azero.data.run_files import load_run
from azero.report.page import chart_series, elo_series
from azero.report.plots import Chart, save_charts

SHOWN = ("Policy loss", "Value loss", "Moves per game")
"""Charts of the report that the image shows next to the checkpoints' Elo, if the run has data for
them."""


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
