"""The page of a multi-stage experiment: results of each stage, compared with the paper's
figures."""

import os
import time
from pathlib import Path
from typing import Any

from markupsafe import Markup

from azero.console.tables import format_duration
from azero.data.rows import replace_text
from azero.data.run_files import RUN, read_json
from azero.report.page import REPORT, report_path
from azero.report.plots import Chart, Series, line_chart, save_charts
from azero.report.templates import load_template

STAGES_FILE = "stages.json"
"""File in the directory of a multi-stage experiment: settings and results of each finished
stage."""


def read_stages(workdir: Path) -> dict[str, dict[str, Any]]:
    """Return the stages that are done or were interrupted, which have no settings, in the order in
    which they first were; none if the directory has none.

    Raises:
      ValueError: the file is damaged.
    """
    return read_json(workdir / STAGES_FILE, advice="")


def write_stages_report(workdir: Path, out: Path | None = None) -> Path:
    """Write the page of the stages in `workdir` to the file `out`, by default into that directory,
    and return its path.

    Raises:
      ValueError: a file in it is damaged.
    """
    path = report_path(workdir, out)
    template = load_template("stages.html.j2")
    page = template.render(
        title=read_json(workdir / RUN).get("experiment", workdir.name),
        stages=[
            _section(workdir, name, stage, path.parent)
            for name, stage in read_stages(workdir).items()
        ],
        written=time.strftime("%Y-%m-%d %H:%M:%S"),
    )
    replace_text(path, page)
    return path


def save_stage_charts(workdir: Path, path: Path) -> None:
    """Write an image of the charts of the stages in `workdir`; the suffix of `path` says which
    format.

    Raises:
      ValueError: no stage has a chart, a file is damaged, or the image cannot be written.
    """
    charts = [chart for stage in read_stages(workdir).values() for chart in _charts(stage)]
    if not charts:
        raise ValueError(
            f"{workdir} has no charts; the stages value-by-move and strength make some"
        )
    save_charts(path, charts)


def _charts(stage: dict[str, Any]) -> list[Chart]:
    """Return the charts of a stage; former versions stored none."""
    return [
        Chart(one["title"], [Series(**line) for line in one["series"]], one["x_label"])
        for one in stage.get("charts", ())
    ]


def _section(workdir: Path, name: str, stage: dict[str, Any], place: Path) -> dict[str, Any]:
    facts = [
        time.strftime("%Y-%m-%d %H:%M", time.localtime(stage["finished"])),
        format_duration(stage["seconds"]),
        stage["devices"],
        stage["processor"],
    ]
    report = workdir / name / REPORT
    charts = [{"title": one.title, "svg": Markup(line_chart(one))} for one in _charts(stage)]
    return {
        "name": name,
        "title": stage["title"],
        "facts": ", ".join([*facts, f"commit {stage['commit']}"] if stage["commit"] else facts),
        "rows": stage["rows"],
        "notes": stage["notes"],
        "charts": charts,
        "report": os.path.relpath(report, place) if report.exists() else None,
    }
