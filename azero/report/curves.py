"""How a run went, as one picture: the most telling of the report's curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from azero.data.rows import Row
from azero.data.run_files import load_run
from azero.match.arena import rate_checkpoints
from azero.report.page import CHARTS
from azero.report.plots import Series, save_charts

SHOWN = ("Policy loss", "Value loss", "Moves per game")
"""Charts of the report that the picture has beside the Elo of the checkpoints, where the run has numbers for them."""


def save_curves(workdir: Path, path: Path) -> None:
    """Write an image of how the run in `workdir` went; the suffix of `path` says which format.

    Raises:
      ValueError: there is no such run, it has no numbers yet, a file of it is damaged, or the image cannot be written; the file is named.
    """
    data = load_run(workdir)
    charts: dict[str, list[Series]] = {}
    ratings = rate_checkpoints(data.events)
    if len(ratings) > 1:
        elo, low, high = ([getattr(rating, name) for _, rating in ratings] for name in ("elo", "low", "high"))
        charts["Elo of the checkpoints"] = [Series("Elo", [iteration for iteration, _ in ratings], elo, low, high)]
    for title, keys in CHARTS:
        lines = [_line(data.metrics, key, label) for key, label in keys if any(row.get(key) is not None for row in data.metrics)]
        if title in SHOWN and lines:
            charts[title] = lines
    if not charts:
        raise ValueError(f"{workdir} has no numbers to draw yet")
    save_charts(path, charts)


def _line(metrics: Sequence[Row], key: str, label: str) -> Series:
    values = [row.get(key) for row in metrics]
    return Series(label, [row["iteration"] for row in metrics], [float("nan") if value is None else value for value in values])
