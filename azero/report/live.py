"""A run in a glance, for a notebook that looks at it while it goes on."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import jinja2

from azero.data.run_files import load_run
from azero.report.page import elo_chart, known_charts, sample_view, status, tiles

CHARTS = ("Policy loss", "Value loss", "Results of self-play", "Moves per game", "Positions per second")
"""Charts of `azero.report.page` that tell first whether a run learns."""


def live_view(workdir: Path) -> str:
    """Return the run's numbers, Elo, first charts and newest sample game as a piece of HTML that needs nothing else.

    Raises:
      ValueError: there is no such directory, or a file in it is damaged; the file is named.
    """
    data = load_run(workdir)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(files("azero.report").joinpath("live.html.j2").read_text(encoding="utf-8"))
    iteration, games = data.samples[-1] if data.samples else (0, [])
    return template.render(
        title=data.run.get("experiment", workdir.name),
        status=status(data),
        tiles=tiles(data),
        elo=elo_chart(data.events),
        charts=known_charts(data.metrics, CHARTS),
        sample=sample_view(0, iteration, games[0]) if games else None,
    )
