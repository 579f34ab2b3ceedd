"""Experiments in a notebook: a run in a separate process with live curves, and a game against its
network."""

import contextlib
import fcntl
import hashlib
import importlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from html import escape
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import jax

from azero.console.terminal import make_console
from azero.distributed import EXIT_INTERRUPTED
from azero.engines.serve import Source, load_human_game
from azero.engines.terminal.clickable_board import CLICKABLE, ClickableBoard
from azero.engines.terminal.terminal import Terminal
from azero.experiment import load
from azero.report.live import live_view

LOG = "notebook.log"
"""File with the run's output, in its working directory."""
SHOWN_SECONDS = 5.0
"""Time between two updates of the display."""
ERROR_LINES = 12
"""Lines of the log shown when a run fails."""


class Training:
    """An experiment in a process of its own: it has the accelerator for itself, and saves and stops
    as in a terminal."""

    def __init__(self, experiment: str, workdir: Path | str, *flags: str | float) -> None:
        """Start `experiment` in `workdir`, or continue its run, with the flags of its command line;
        numbers may be given as such: `"--run.iterations", 20`.

        Raises:
          ValueError: there is no such experiment, or a run in `workdir` is already in progress.
        """
        load(experiment)
        self.workdir = Path(workdir)
        self.workdir.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-u",
            "-m",
            f"azero.experiments.{experiment}",
            "--workdir",
            str(self.workdir),
            *map(str, flags),
        ]
        # Jupyter sets FORCE_COLOR, which would fill the log with a terminal's control codes.
        environment = {name: os.environ[name] for name in os.environ if name != "FORCE_COLOR"}
        with (
            _only_run(self.workdir) as lock,
            (self.workdir / LOG).open("w", encoding="utf-8") as log,
        ):
            # A session of its own: interrupting a cell reaches the notebook's process alone. The
            # run inherits the lock and holds it as long as it lives.
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                pass_fds=(lock.fileno(),),
            )
            lock.write(f"{self._process.pid}")

    @property
    def is_running(self) -> bool:
        """Whether the run is in progress."""
        return self._process.poll() is None

    @property
    def log(self) -> list[str]:
        """What this start of the run has printed."""
        return (self.workdir / LOG).read_text(encoding="utf-8", errors="replace").splitlines()

    def follow(self, seconds: float | None = None) -> int:
        """Show the run until it ends; after `seconds`, or when the cell is interrupted, save and
        stop it. Return its exit status."""
        display = _display()
        end = math.inf if seconds is None else time.monotonic() + seconds
        picture = display.DisplayHandle()
        picture.display(self._render(display))
        try:
            while self.is_running and time.monotonic() < end:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(SHOWN_SECONDS)
                picture.update(self._render(display))
        except KeyboardInterrupt:
            pass
        if self.is_running:
            print("stopping at the end of this iteration, and saving ...")
            self.stop()
        picture.update(self._render(display))
        return self._conclude()

    def stop(self) -> None:
        """Ask the run to save and stop, and wait for it: half a minute at most, because it drops an
        iteration that takes longer."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def _render(self, display: ModuleType) -> Any:
        """Return the run's curves and the last line that it printed."""
        last = next((line for line in reversed(self.log) if line.strip()), "starting ...")
        return display.HTML(f"{live_view(self.workdir)}<pre>{escape(last)}</pre>")

    def _conclude(self) -> int:
        """Print how the run ended and return its status."""
        status = self._process.wait()
        if status == 0:
            print(f"finished; the report is {self.workdir / 'report.html'}")
        elif status in (-signal.SIGTERM, EXIT_INTERRUPTED):
            print("stopped; run this cell again to continue from the last checkpoint")
        else:
            print(f"the run failed (status {status}); its last lines were:")
            print("\n".join(self.log[-ERROR_LINES:]))
        return status


def play(workdir: Path | str, visits: int = 64, colour: str = "first") -> ClickableBoard | None:
    """Show a board to click on, against the newest network of a run; without ipywidgets, or for
    other games, moves are typed.

    The network plays on the CPU, so that a run may have the accelerator for itself.

    Raises:
      ValueError: there is no such run, or nothing is saved in it yet.
    """
    jax.config.update("jax_platforms", "cpu")
    print("loading the network and compiling the search ...")
    game = load_human_game(Source(checkpoint=str(workdir)), visits, colour)
    widgets = _widgets()
    if widgets is None or game.session.game.name not in CLICKABLE:
        Terminal(game.session, game.limits, make_console(), human=game.human).run(input)
        return None
    board = ClickableBoard(widgets, game.session, game.limits, human=game.human)
    _display().display(board.widget)
    return board


def _only_run(workdir: Path) -> IO[str]:
    """Return a locked file that represents the run in `workdir` on this machine; Google Drive
    itself has no locks.

    Raises:
      ValueError: another process holds it.
    """
    name = hashlib.sha256(str(workdir.resolve()).encode()).hexdigest()[:16]
    file = (Path(tempfile.gettempdir()) / f"azero-{name}.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        process = file.read()
        file.close()
        raise ValueError(
            f"a run in {workdir} is already in progress; to save and stop it: !kill {process}"
        ) from None
    file.truncate(0)
    return file


def _widgets() -> ModuleType | None:
    """Return ipywidgets, if it is installed."""
    try:
        return importlib.import_module("ipywidgets")
    except ModuleNotFoundError:
        return None


def _display() -> ModuleType:
    """Return IPython's display functions.

    Raises:
      ValueError: this is not a notebook.
    """
    try:
        return importlib.import_module("IPython.display")
    except ModuleNotFoundError:
        raise ValueError(
            "notebooks need IPython and ipywidgets: pip install 'azero[notebook]'"
        ) from None
