"""The metrics of a run: every number as a JSON line, in TensorBoard's format, and on request in
Weights & Biases."""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.record_writer import RecordWriter
from tensorboardX.summary import scalar

from azero.data.files import StorageError, describe_error
from azero.data.rows import Row, RowFile
from azero.data.run_files import EVENTS, METRICS, StoredGame, forget_after, write_samples
from azero.mesh import is_lead
from azero.report.weights_and_biases import WandbRun

TENSORBOARD = "tensorboard"
"""Folder of the TensorBoard files inside the working directory."""


class MetricsWriter(contextlib.AbstractContextManager["MetricsWriter"]):
    """Writes `metrics.jsonl`, `events.jsonl`, sample games and TensorBoard files, and sends numbers
    to Weights & Biases; every row has been passed to the operating system when its method returns.

    Rows that cannot be written (a full disk) are dropped, with one warning; they do not end the
    run. With several hosts only the lead host writes; on the others the methods do nothing, because
    they would write the same rows into the same files.
    """

    def __init__(
        self,
        workdir: Path,
        resume_iteration: int = 0,
        open_wandb: Callable[[], WandbRun] | None = None,
    ) -> None:
        """Open the files of `workdir` to continue after `resume_iteration`; rows and samples of
        later iterations, which will be played again, are dropped.

        `open_wandb` begins or resumes the run at Weights & Biases; None sends nothing there.
        """
        self._workdir = workdir
        self._warnings: list[str] = []
        self._has_failed = False
        self._files: tuple[RowFile, RowFile, _Board] | None = None
        self._wandb: WandbRun | None = None
        if is_lead():
            self._attempt(lambda: self._open(resume_iteration))
            if open_wandb is not None:
                self._attempt(lambda: setattr(self, "_wandb", open_wandb()))

    def _open(self, resume_iteration: int) -> None:
        self._warnings += forget_after(self._workdir, resume_iteration)
        purge_step = resume_iteration + 1 if resume_iteration else None
        self._files = (
            RowFile(self._workdir / METRICS),
            RowFile(self._workdir / EVENTS),
            _Board(self._workdir / TENSORBOARD, purge_step),
        )

    def _attempt(self, write: Callable[[], None]) -> None:
        """Call `write`; if the system refuses, the row is dropped, the first time with a
        warning."""
        try:
            write()
        except (OSError, StorageError) as error:
            if not self._has_failed:
                self._warnings.append(
                    f"the metrics in {self._workdir} cannot be written: {describe_error(error)}. "
                    "The run continues without the rows that cannot be written"
                )
            self._has_failed = True

    def take_warnings(self) -> list[str]:
        """Return notes since the last call, one line each."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def write(self, row: Row) -> None:
        """Write the row of one iteration. `row["iteration"]` is the number of iterations finished;
        numbers become TensorBoard scalars at this step.

        Keys that the report knows how to draw are listed in `azero.report.page.CHARTS`; it draws
        any other number, too.
        """
        if self._files is None:
            return
        metrics, _, board = self._files
        step = int(row["iteration"])
        numbers = {
            key: float(value)
            for key, value in row.items()
            if key != "iteration" and not isinstance(value, bool) and hasattr(value, "__float__")
        }
        self._attempt(lambda: metrics.append({"time": time.time(), **row}))
        self._attempt(lambda: board.write(numbers, step))
        if (wandb := self._wandb) is not None:
            self._attempt(lambda: wandb.write(numbers, step))

    def event(self, kind: str, iteration: int, **facts: Any) -> None:
        """Write an event of the given kind: "evaluation" (see `azero.match.arena.evaluation_row`),
        "match skipped", "checkpoint", "resume", "best" ..."""
        if self._files is None:
            return
        events = self._files[1]
        self._attempt(
            lambda: events.append(
                {"time": time.time(), **facts, "kind": kind, "iteration": iteration}
            )
        )

    def samples(self, iteration: int, games: Sequence[StoredGame]) -> None:
        """Write the sample games of an iteration."""
        if self._files is not None:
            self._attempt(lambda: write_samples(self._workdir, iteration, games))

    def close(self) -> None:
        """Close all files."""
        for file in (*(self._files or ()), self._wandb):
            if file is not None:
                self._attempt(file.close)
        self._files = self._wandb = None

    def __exit__(self, *error: object) -> None:
        self.close()


class _Board:
    """A TensorBoard file, written in the calling thread.

    tensorboardX's `SummaryWriter` hands events to its own thread, which ends at the first disk
    error; from the eleventh event on, adding one then blocks forever. Its `EventsWriter` leaves the
    file open if closing fails, and Python 3.13 prints a traceback for such a file (tensorboardX
    2.6.4).
    """

    def __init__(self, directory: Path, purge_step: int | None) -> None:
        """Begin a file in `directory`; TensorBoard ignores what earlier files have from
        `purge_step` on."""
        directory.mkdir(parents=True, exist_ok=True)
        # Their names sort by time; several starts may be in one second.
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}"
        self._file = RecordWriter(str(directory / name))
        self._add(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if purge_step is not None:
            self._add(Event(step=purge_step, file_version="brain.Event:2"))
            self._add(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def _add(self, event: Event) -> None:
        self._file.write(event.SerializeToString())

    def write(self, numbers: dict[str, float], step: int) -> None:
        """Write scalars.

        Raises:
          OSError: the system refuses.
        """
        for name, number in numbers.items():
            self._add(Event(wall_time=time.time(), step=step, summary=scalar(name, number)))
        self._file.flush()

    def close(self) -> None:
        """Close the file.

        Raises:
          OSError: the system refuses.
        """
        self._file.close()
