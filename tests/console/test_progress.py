"""Progress: plain lines, heartbeats, a live display, and words for numbers."""

import io
import threading
import time

import pytest
from rich.console import Console

from azero.console.progress import HEARTBEAT_SECONDS, Progress, working
from azero.console.tables import (
    facts_table,
    format_bytes,
    format_count,
    format_duration,
    make_table,
)
from azero.console.terminal import make_console
from azero.match.elo import PairResult, fit_elo
from azero.match.score import Tally
from azero.report.ratings import matches_table, ratings_table


def _console(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def _output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_lines_carry_the_numbers_and_the_time_left() -> None:
    """The first iteration, in which programs are compiled, says nothing about the others."""
    console = _console()
    with Progress(4, start=1, console=console) as progress:
        assert progress.seconds_left is None
        progress.update({"iteration": 2, "games": 1_000, "loss": 2.0})
        assert progress.seconds_left is None
        time.sleep(0.05)
        progress.update({"iteration": 3, "games": 12_345, "loss": 1.23456})
        left = progress.seconds_left
        assert left is not None and 0.04 < left < 5
        progress.update(
            {
                "iteration": 4,
                "games": 20_000,
                "positions_per_second": 940.4,
                "loss": 1.0,
                "entropy": None,
            }
        )
        progress.note("checkpoint 4 saved")
    lines = _output(console).splitlines()
    assert lines[-2:] == [
        "[4/4] games 20,000  positions/s 940  loss 1.0000  ETA 0.0 s",
        "checkpoint 4 saved",
    ]


def test_a_heartbeat_that_nobody_reads_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """`azero train ... | head` printed one."""
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with Progress(4, console=make_console(Closed()), heartbeat=0.02):
        time.sleep(0.2)
    assert not raised


def test_nothing_is_silent_while_it_works() -> None:
    console = _console()
    with (
        Progress(4, console=console, heartbeat=0.1) as progress,
        progress.working("compiling self-play"),
    ):
        time.sleep(0.5)
    beats = [
        line
        for line in _output(console).splitlines()
        if line.startswith("    compiling self-play: 0.")
    ]
    assert 2 <= len(beats) <= 5
    console = _console()
    with working("loading", console, heartbeat=0.1):
        time.sleep(0.35)
    lines = _output(console).splitlines()
    assert (
        lines[0] == "loading ..."
        and lines[1].endswith("so far")
        and lines[-1].startswith("loading: 0.")
    )


def test_a_beat_never_waits_for_ten_seconds() -> None:
    assert HEARTBEAT_SECONDS + 0.25 < 10


def test_a_terminal_gets_a_live_display() -> None:
    console = _console(terminal=True)
    with Progress(10, console=console) as progress, progress.working("self-play"):
        progress.update({"iteration": 3, "games": 512})
        time.sleep(0.4)
    assert (
        "3 of 10" in _output(console)
        and "self-play" in _output(console)
        and "512" in _output(console)
    )
    console = _console(terminal=True)
    with working("compiling", console):
        time.sleep(0.1)
    assert "compiling (0." in _output(console)


def test_an_error_leaves_no_thread_behind() -> None:
    console = _console()
    with (
        pytest.raises(KeyError),
        Progress(3, console=console, heartbeat=0.05) as progress,
        progress.working("failing"),
    ):
        raise KeyError("x")
    before = _output(console)
    time.sleep(0.2)
    assert _output(console) == before


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9018, "9,018"),
        (4.9e6, "4.9 M"),
        (0.0571, "0.0571"),
        (2.1e9, "2.1 G"),
        (940.4, "940"),
        (-0.5, "-0.5"),
    ],
)
def test_counts_in_words(value: float, text: str) -> None:
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8.24, "8.2 s"),
        (59, "59 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (97_200, "1 day 3 h"),
        (3_466_800, "40 days 3 h"),
        (2.24e9, "71 years"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(760, "760 B"), (1536, "1.5 KiB"), (23 * 2**30, "23.0 GiB"), (3 * 2**40, "3.0 TiB")],
)
def test_sizes_in_words(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_tables_show_every_cell() -> None:
    console = _console()
    console.print(make_table("speeds", ("engine", "steps/s"), [("azero", 68_500), ("pgx", None)]))
    console.print(facts_table("machine", {"cores": 2, "gpu": False}))
    console.print(matches_table([("new", "old", Tally(15, 0, 5), (0.48, 0.91))]))
    both = [PairResult("old", "new", 12.5, 0, 37.5), PairResult("new", "old", 37.5, 0, 12.5)]
    console.print(ratings_table(fit_elo(both).ratings))
    text = _output(console)
    for piece in ("68,500", "pgx", "-", "cores", "no", "75.0%", "48 to 91%", "189", "old"):
        assert piece in text, piece
