"""The record of a run: every number as a JSON line and in TensorBoard's format."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tensorboardX import SummaryWriter

from azero.evaluate.rows import Row, RowFile
from azero.mesh import is_lead
from azero.report.files import EVENTS, METRICS, forget_after

TENSORBOARD = "tensorboard"
"""Folder of the TensorBoard files inside the working directory."""


class MetricsWriter:
    """Writes `metrics.jsonl`, `events.jsonl` and TensorBoard files; every row is on its way to the disk when its method returns.

    Of several hosts only the lead writes; on the others the methods do nothing, for they would write the same rows into the same files.
    """

    def __init__(self, workdir: Path, resume_iteration: int = 0) -> None:
        """Open the files of `workdir` to go on after `resume_iteration`; rows and samples of later iterations, which will be played again, are dropped."""
        self._writes = is_lead()
        if not self._writes:
            return
        forget_after(workdir, resume_iteration)
        self._metrics = RowFile(workdir / METRICS)
        self._events = RowFile(workdir / EVENTS)
        self._board = SummaryWriter(str(workdir / TENSORBOARD), purge_step=resume_iteration + 1 if resume_iteration else None)

    def write(self, row: Row) -> None:
        """Write the row of one iteration. `row["iteration"]` is the number of iterations finished; numbers become TensorBoard scalars at this step.

        Keys that the report knows how to draw are listed in `azero.report.page.CHARTS`; it draws any other number, too.
        """
        if not self._writes:
            return
        step = int(row["iteration"])
        self._metrics.append({"time": time.time(), **row})
        for key, value in row.items():
            if key != "iteration" and not isinstance(value, bool) and hasattr(value, "__float__"):
                self._board.add_scalar(key, float(value), step)
        self._board.flush()

    def event(self, kind: str, iteration: int, **facts: Any) -> None:
        """Write an event of the given kind: "evaluation" (see `azero.evaluate.arena.evaluation_row`), "checkpoint", "resume", "best" ..."""
        if self._writes:
            self._events.append({"time": time.time(), **facts, "kind": kind, "iteration": iteration})

    def event_row(self, row: Row) -> None:
        """Write an event that is already a row with its kind and iteration."""
        self.event(**row)

    def close(self) -> None:
        """Close all files."""
        if not self._writes:
            return
        self._metrics.close()
        self._events.close()
        self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
