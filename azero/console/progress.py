"""Progress output: a live bar on a terminal, plain lines elsewhere, and never ten silent
seconds."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from azero.console.tables import format_count, format_duration
from azero.console.terminal import make_console
from azero.heartbeat import repeating

HEARTBEAT_SECONDS = 8.0
"""Longest time without output; people start to wonder after ten seconds."""
LINE_SECONDS = 2.0
"""Shortest time between two plain lines, so that short iterations do not flood a log."""
SHOWN = (
    ("games", "games", format_count),
    ("positions", "positions", format_count),
    ("positions_per_second", "positions/s", format_count),
    ("simulations_per_second", "simulations/s", format_count),
    ("loss", "loss", "{:.4f}".format),
    ("policy_loss", "policy", "{:.4f}".format),
    ("value_loss", "value", "{:.4f}".format),
    ("entropy", "entropy", "{:.3f}".format),
)
"""Keys of a metrics row that are shown, with their names and formats."""


class Progress:
    """Shows the progress of a run. Use it as a context manager; all methods may be called from any
    thread."""

    def __init__(
        self,
        iterations: int,
        start: int = 0,
        console: Console | None = None,
        heartbeat: float = HEARTBEAT_SECONDS,
        unit: str = "iteration",
    ) -> None:
        """Begin at iteration `start` of `iterations`; `heartbeat` is the longest silence in
        seconds, `unit` what an iteration is called."""
        self._unit = unit
        self._console = console or make_console()
        self._iterations = iterations
        self._done = start
        self._durations: deque[float] = deque(maxlen=50)
        self._row: dict[str, Any] = {}
        self._activity = "starting"
        self._heartbeat = heartbeat
        self._activity_since = self._last_iteration = time.monotonic()
        self._last_line = time.monotonic()
        self._spinner = Spinner("dots")
        self._lock = threading.RLock()
        self._output: contextlib.AbstractContextManager[object] = (
            Live(console=self._console, get_renderable=self._render)
            if self._console.is_terminal
            else repeating(self._beat, min(0.25, heartbeat / 4))
        )

    def __enter__(self) -> Self:
        self._last_line = time.monotonic()
        self._output.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._output.__exit__(None, None, None)

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show the current activity, e.g. "compiling self-play", for as long as the block runs;
        elapsed seconds are shown."""
        with self._lock:
            before, since = self._activity, self._activity_since
            self._activity, self._activity_since = what, time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._activity, self._activity_since = before, since

    def update(self, row: Mapping[str, Any]) -> None:
        """Show the metrics row of a finished iteration; `row["iteration"]` counts the iterations
        done."""
        with self._lock:
            now = time.monotonic()
            steps = max(1, int(row["iteration"]) - self._done)
            if self._row:  # the first iteration also compiles
                self._durations.extend([(now - self._last_iteration) / steps] * steps)
            self._done, self._last_iteration, self._row = int(row["iteration"]), now, dict(row)
            if not self._console.is_terminal and (
                now - self._last_line >= LINE_SECONDS or self._done >= self._iterations
            ):
                self._print(self._line())

    def note(self, text: str) -> None:
        """Print a line of its own, above the bar."""
        with self._lock:
            self._print(text)

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds to the end, from the last iterations without the first; None before."""
        if not self._durations:
            return None
        return max(0, self._iterations - self._done) * sum(self._durations) / len(self._durations)

    def _print(self, text: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(Text(text), soft_wrap=True)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            (name, write(self._row[key]))
            for key, name, write in SHOWN
            if self._row.get(key) is not None
        ]
        left = self.seconds_left
        return facts if left is None else [*facts, ("ETA", format_duration(left))]

    def _line(self) -> str:
        width = len(str(self._iterations))
        return f"[{self._done:>{width}}/{self._iterations}] " + "  ".join(
            f"{name} {value}" for name, value in self._facts()
        )

    def _render(self) -> Group:
        """The live display: a bar, the numbers, and what is being done."""
        with self._lock:
            bar = Table.grid(padding=(0, 1))
            bar.add_row(
                Text(self._unit),
                ProgressBar(self._iterations, self._done, width=40),
                Text(f"{self._done} of {self._iterations}"),
            )
            numbers = Text("   ").join(
                Text.assemble((f"{name} ", "dim"), (value, "bold")) for name, value in self._facts()
            )
            elapsed = time.monotonic() - self._activity_since
            self._spinner.update(
                text=Text(f"{self._activity} ({format_duration(elapsed)})", style="dim")
            )
            return Group(bar, numbers, self._spinner)

    def _beat(self) -> None:
        with self._lock:
            if time.monotonic() - self._last_line >= self._heartbeat:
                self._print(
                    f"    {self._activity}: "
                    f"{format_duration(time.monotonic() - self._activity_since)} so far"
                )


@contextlib.contextmanager
def working(
    what: str, console: Console | None = None, heartbeat: float = HEARTBEAT_SECONDS
) -> Iterator[None]:
    """Print that `what` has begun, every few seconds that it continues, and how long it took.

    For work outside of a run's Progress. On a terminal a spinner with the elapsed time replaces the
    lines in between.
    """
    console = console or make_console()
    began = time.monotonic()
    if console.is_terminal:
        spinner = Spinner("dots")

        def render() -> Spinner:
            spinner.update(text=Text(f"{what} ({format_duration(time.monotonic() - began)})"))
            return spinner

        with Live(console=console, get_renderable=render, transient=True):
            yield
    else:
        console.print(Text(f"{what} ..."), soft_wrap=True)

        def beat() -> None:
            console.print(
                Text(f"    {what}: {format_duration(time.monotonic() - began)} so far"),
                soft_wrap=True,
            )

        with repeating(beat, heartbeat):
            yield
    console.print(Text(f"{what}: {format_duration(time.monotonic() - began)}"), soft_wrap=True)
