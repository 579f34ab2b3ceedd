"""Lines to and from another program in a subprocess, which may be slow, silent, wrong or dead."""

import contextlib
import os
import queue
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Generic, NoReturn, Protocol, TypeVar

from azero.players.player import PlayerError

GAME_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian and Ubuntu install games; often not on PATH."""
LINE_BYTES = 65_536
"""Most output read at once, so that an endless line cannot fill the memory."""
WAITING_LINES = 100
"""Lines of output that may wait to be read; with more, the program blocks."""
SEND_SECONDS = 10.0
"""Time for a program to read a line. The system buffers 64 KiB, so only a program that has stopped
reading needs any."""
LATE_SECONDS = 1.0
"""How long after a deadline a waiting line still counts: this process may have been slow to read
it. A program with endless output always has one."""
ANSWER_CHARACTERS = 1 << 20
"""Longest answer to one command, in characters; KataGo's longest, a full analysis with ownership,
has about ten thousand."""
KEPT_LINES, KEPT_CHARACTERS = 1000, 4096
"""Most lines before a program's answer; the longest known list of options (Fairy-Stockfish's) has a
hundred."""
SHOWN_CHARACTERS = 300
"""Characters of a program's line that a message quotes."""
SHOWN_LINES = 3
"""Last lines of standard error, or of output that is not an answer, that a message quotes."""
_REPORT = re.compile(r"info (?!string)")
"""A line in which a UCI or USI program reports on its search."""
QUIT_SECONDS = 2.0
"""Time for a program to answer `quit` before it is killed."""


def find_program(name: str) -> str:
    """Return the path of the program `name`, on PATH or where distributions put games.

    Raises:
      ValueError: there is no such program, or it may not be executed; the message names it and the
        folders.
    """
    path = shutil.which(name, path=_search_path())
    if path is None:
        if Path(name).is_file() and os.sep in name:
            raise ValueError(f"{name} may not be executed; chmod +x {name} allows it")
        raise ValueError(
            f"no program {name!r} on PATH or in {' '.join(GAME_FOLDERS)}; install it, or "
            f"give its full path"
        )
    return path


def _search_path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *GAME_FOLDERS])


class ExternalProgram:
    """A program controlled by lines over its standard input and output.

    A program that failed is killed together with its children, because its further output cannot be
    trusted.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Start `command`, a list of words.

        Raises:
          ValueError: the program does not exist or cannot be started.
        """
        words = [find_program(command[0]), *command[1:]]
        try:
            # A session of its own, so that a wrapper script dies together with what it started,
            # which may be in the same folder.
            self._process = subprocess.Popen(
                words,
                env={**os.environ, "PATH": _search_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ValueError(f"cannot start {words[0]}: {error.strerror}") from error
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=WAITING_LINES)
        self._stderr_lines: deque[str] = deque(maxlen=20)
        self._said: deque[str] = deque(maxlen=SHOWN_LINES)
        """Output that waited to be read when the last line was sent, and since."""
        assert (
            self._process.stdin is not None
            and self._process.stdout is not None
            and self._process.stderr is not None
        )
        os.set_blocking(self._process.stdin.fileno(), False)
        self._readers = [
            threading.Thread(target=self._read_stdout, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def send(self, line: str, what: str, seconds: float = SEND_SECONDS) -> None:
        """Send one line; `what` names it in messages. Output that waits to be read does not answer
        it, and is dropped.

        Raises:
          PlayerError: the program has ended, or does not read the line in time and is killed; the
            message says which.
        """
        self._said.clear()
        self._drop_waiting()
        left = memoryview(f"{line}\n".encode())
        deadline = time.monotonic() + seconds
        try:
            assert self._process.stdin is not None
            pipe = self._process.stdin.fileno()
            room = select.poll()
            room.register(pipe, select.POLLOUT)
            while left:
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(pipe, left) :]
                    continue
                if not room.poll(1000 * max(0.0, deadline - time.monotonic())):
                    self.fail(f"did not read {what!r} within {seconds:g} s")
        except (OSError, ValueError):
            self.fail(f"crashed before {what!r}")

    def next_line(self, what: str, deadline: float) -> str:
        """Return the next line of its output without surrounding whitespace; `deadline` is a time
        of `time.monotonic`.

        Raises:
          PlayerError: there was none in time, or the program ended; it is killed.
        """
        left = deadline - time.monotonic()
        try:
            if left < -LATE_SECONDS:
                raise queue.Empty
            line = self._take(max(0.0, left))
        except queue.Empty:
            self.fail(f"no answer in time to {what!r}")
        if line is None:
            self.fail(f"crashed at {what!r}")
        return line

    def _drop_waiting(self) -> None:
        """Drop the output that waits to be read, such as a second answer to an earlier line."""
        with contextlib.suppress(queue.Empty):
            for _ in range(WAITING_LINES):
                if self._take(0.0) is None:
                    self._lines.put(None)  # the end is still to be noticed
                    return

    def _take(self, seconds: float) -> str | None:
        """Return the next line of its output, None at the end; `queue.Empty` is raised if there is
        none within `seconds`."""
        line = self._lines.get(timeout=seconds)
        if line is None:
            return None
        text = line.decode("utf-8", errors="replace").strip()
        if text and not _REPORT.match(text):
            self._said.append(text)
        return text

    def ask(self, question: str, is_answer: Callable[[str], bool], timeout: float) -> list[str]:
        """Send a line and return the last lines that come back, up to the first that is an answer.

        Raises:
          PlayerError: none came within `timeout` seconds, or the program ended; it is killed.
        """
        deadline = time.monotonic() + timeout
        self.send(question, question)
        lines: deque[str] = deque(maxlen=KEPT_LINES)
        while not lines or not is_answer(lines[-1]):
            lines.append(self.next_line(question, deadline)[:KEPT_CHARACTERS])
        return list(lines)

    def fail(self, what: str) -> NoReturn:
        """Kill the program and raise PlayerError with its exit status and last lines: of standard
        error or, without any, of output that is not an answer."""
        ended = self._process.poll()
        if ended is None and what.startswith("crashed"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                ended = self._process.wait(QUIT_SECONDS)
        self._kill()
        status = "" if ended is None else f" (exit status {ended})"
        lines = list(self._stderr_lines)[-SHOWN_LINES:] or self._said
        last = " / ".join(line[:SHOWN_CHARACTERS] for line in lines)
        raise PlayerError(what + status + (f"; it said: {last}" if last else ""))

    def close(self, ask_to_quit: Callable[[], object] | None = None) -> None:
        """End the program: ask it to quit, by default by the line "quit", and kill it if it does
        not."""
        if self._process.poll() is None:
            with contextlib.suppress(PlayerError):
                self.send("quit", "quit") if ask_to_quit is None else ask_to_quit()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(QUIT_SECONDS)
        self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # the system may be unable to end it yet, as where a disk does not answer
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(QUIT_SECONDS)
        deadline = time.monotonic() + QUIT_SECONDS
        reader = self._readers[0]
        while (reader.is_alive() or not self._lines.empty()) and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                self._take(0.01)
        self._readers[1].join(QUIT_SECONDS)
        # A child in a session of its own may have outlived the program and still hold the pipes;
        # closing them under a reader would block.
        if not any(reader.is_alive() for reader in self._readers):
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _read_stdout(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(LINE_BYTES):
                self._lines.put(line)
        self._lines.put(None)

    def _read_stderr(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(LINE_BYTES):
                if text := line.decode("utf-8", errors="replace").strip():
                    self._stderr_lines.append(text)


class Program(Protocol):
    """A program that runs."""

    def close(self) -> None:
        """End the program."""


P = TypeVar("P", bound=Program)


class ProgramPlayer(Generic[P]):
    """Base of the players that are external programs: a new process for every game."""

    def __init__(
        self, name: str, command: Sequence[str], start: Callable[[Sequence[str]], P], timeout: float
    ) -> None:
        """Make the player called `name`; nothing is started before `restart`, which calls `start`
        with the words of `command`. The program may take `timeout` seconds over an answer."""
        self.name = name
        self.command = list(command)
        self._start = start
        self._timeout = timeout
        self._running: P | None = None

    @property
    def program(self) -> P:
        """The program of this game.

        Raises:
          PlayerError: it has not been started, or has been ended.
        """
        if self._running is None:
            raise PlayerError("has not been started")
        return self._running

    def restart(self) -> P:
        """End the program of the last game and start a new one.

        Raises:
          ValueError: the program cannot be started.
        """
        self.close()
        self._running = self._start(self.command)
        return self._running

    def close(self) -> None:
        """End the program, if it runs. Another thread may do so; the game then ends with a failure
        of the program."""
        if self._running is not None:
            program, self._running = self._running, None
            program.close()
