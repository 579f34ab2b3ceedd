"""Programs that stop reading, never stop talking, or are stopped: each ends with one line, in
bounded time and memory."""

import io
import os
import signal
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing

import pytest

from azero.engines.lines import LineReader, LineWriter
from azero.games.table import make
from azero.players import program
from azero.players.gtp_player import GtpProgram
from azero.players.player import PlayerError
from azero.players.program import ExternalProgram
from azero.players.uci_player import UciPlayer


@pytest.fixture(autouse=True)
def bounds() -> Iterator[None]:
    """10 s and 40 MiB at most."""
    tracemalloc.start()
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10 and tracemalloc.get_traced_memory()[1] < 40 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["yes"], "no answer in time to 'name'"),
        (
            ["bash", "-c", "read line; echo '=1 a'; yes"],
            "no answer in time to 'name'|does not end its answer to 'name'",
        ),
        (
            ["bash", "-c", "read line; echo '=1 a'; yes $(printf %060000d 0)"],
            "does not end its answer to 'name': 1,[0-9,]* characters so far",
        ),
        (["bash", "-c", "read line; tr '\\0' x < /dev/zero"], "no answer in time to 'name'"),
        (["bash", "-c", "tr '\\0' x < /dev/zero 1>&2"], "no answer in time to 'name'"),
    ],
)
def test_a_program_that_never_stops_talking(command: list[str], says: str) -> None:
    with closing(GtpProgram(command)) as gtp, pytest.raises(PlayerError, match=says) as error:
        gtp.ask("name", timeout=0.7)
    assert len(str(error.value)) < 1000


def test_an_engine_that_never_stops_talking() -> None:
    player = UciPlayer(
        "yes", ["bash", "-c", "yes $(printf %010000d 0)"], make("chess"), go="nodes 1", timeout=0.7
    )
    with pytest.raises(PlayerError, match="no answer in time to 'uci'"):
        player.reset()


def test_a_program_that_is_stopped_and_does_not_read() -> None:
    cat = ExternalProgram(["cat"])
    cat.send("hello", "hello")
    assert cat.next_line("hello", time.monotonic() + 5) == "hello"
    os.kill(cat._process.pid, signal.SIGSTOP)
    with pytest.raises(PlayerError, match=r"did not read 'a long line' within 0\.3 s"):
        cat.send("x" * 1_000_000, "a long line", seconds=0.3)
    assert cat._process.returncode == -9


def test_a_stopped_program_is_silent_and_killed() -> None:
    with closing(GtpProgram(["cat"])) as gtp:
        os.kill(gtp._program._process.pid, signal.SIGSTOP)
        with pytest.raises(PlayerError, match="no answer in time to 'name'"):
            gtp.ask("name", timeout=0.3)
    assert gtp._program._process.returncode == -9


def test_a_program_that_reads_slowly_gets_its_whole_line(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = ExternalProgram(["bash", "-c", "sleep 0.3; head -c 500001 | wc -c"])
    slow.send("x" * 500_000, "a long line")
    assert slow.next_line("a long line", time.monotonic() + 5) == "500001"
    monkeypatch.setattr(program, "QUIT_SECONDS", 0.2)
    slow.close(lambda: None)


def test_a_flood_of_input_waits_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends more than is read is made to wait; all of it arrives in order."""
    read, write = os.pipe()
    monkeypatch.setattr("azero.engines.lines.WAITING_BYTES", 1 << 20)
    with os.fdopen(read, "rb", buffering=0) as stream:
        lines = LineReader(stream, 65_536)
        os.set_blocking(write, False)
        sent, line = 0, b"x" * 999 + b"\n"
        for _ in range(3000):  # 3 MB
            try:
                sent += os.write(write, line)
            except BlockingIOError:
                time.sleep(0.001)
        assert sent < 2 << 20, "the pipe's 64 KiB and what may wait"
        os.close(write)
        received = 0
        while (taken := lines.take()) is not None:
            received += len(taken.text) + 1
        assert received >= sent - 1000


def test_a_write_that_is_cut_short_goes_on() -> None:
    """As on a full pipe, when Ctrl-Z stops the process and `fg` continues it."""

    class Pipe(io.BytesIO):
        def write(self, data) -> int:
            return super().write(data[:1000])

    pipe = Pipe()
    LineWriter(pipe)("x" * 4500 + "\n")
    assert pipe.getvalue() == b"x" * 4500 + b"\n"
