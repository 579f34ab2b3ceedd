"""Other programs as players: a GTP program in a process of its own, which may be slow, silent, wrong or dead."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import IO, NoReturn, Self

from azero.play.player import RESIGN, Clock, Decision, Move, PlayerError, Position

GAME_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian and Ubuntu put games; often not on PATH."""
LINE_BYTES = 65_536
"""Longest piece of output that is read at once, so that an endless line cannot fill the memory."""
QUIT_SECONDS = 2.0
"""Time a program gets to answer `quit` before it is killed."""


def find_program(name: str) -> str:
    """Return the path of the program `name`, on PATH or where distributions put games.

    Raises:
      ValueError: there is no such program; the message names it and the folders.
    """
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), *GAME_FOLDERS])
    path = shutil.which(name, path=folders)
    if path is None:
        raise ValueError(f"no program {name!r} on PATH or in {' '.join(GAME_FOLDERS)}; install it, or give its full path")
    return path


class GtpProgram:
    """A program that speaks the Go Text Protocol, version 2, over its standard input and output.

    Every command carries a number, and only the answer with this number counts: anything else the program prints is passed over. A program that failed is
    killed, with its children, for what it would say next can no longer be trusted.
    """

    def __init__(self, command: Sequence[str], timeout: float = 60.0) -> None:
        """Start `command` (a list of words); `timeout` is the number of seconds it may take over an answer.

        Raises:
          ValueError: the program does not exist or cannot be started.
        """
        words = [find_program(command[0]), *command[1:]]
        self._timeout = timeout
        self._number = 0
        try:
            # A session of its own, so that a wrapper script dies together with what it started.
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise ValueError(f"cannot start {words[0]}: {error.strerror}") from error
        self._lines: queue.Queue[bytes | None] = queue.Queue(maxsize=1000)
        self._complaints: deque[str] = deque(maxlen=20)
        assert self._process.stdout is not None and self._process.stderr is not None
        self._readers = [
            threading.Thread(target=self._read_answers, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_complaints, args=(self._process.stderr,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def stderr(self) -> str:
        """The last lines that the program wrote to its standard error."""
        return "\n".join(self._complaints)

    def ask(self, command: str, timeout: float | None = None) -> str:
        """Send one command and return the text of its answer, without the leading `=` and number.

        Raises:
          PlayerError: the program refused the command, did not answer in time, or ended; the message names which. It is killed unless it only refused.
        """
        self._number += 1
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{self._number} {command}\n".encode())
            self._process.stdin.flush()
        except (OSError, ValueError):
            self._fail(f"crashed before {command!r}")
        lines = [self._await_answer(command, deadline)]
        while True:
            line = self._next_line(command, deadline).strip()
            if not line:
                break
            lines.append(line)
        text = "\n".join(lines)[1 + len(str(self._number)) :].strip()
        if lines[0].startswith("?"):
            raise PlayerError(f"refused {command!r}: {text}")
        return text

    def close(self) -> None:
        """End the program: ask it to quit, and kill it if it does not."""
        if self._process.poll() is None:
            with contextlib.suppress(PlayerError):
                self.ask("quit", QUIT_SECONDS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(QUIT_SECONDS)
        self._kill()

    def _await_answer(self, command: str, deadline: float) -> str:
        """Return the first line of the answer to the last command, passing over everything before it."""
        starts = (f"={self._number}", f"?{self._number}")
        while True:
            line = self._next_line(command, deadline).strip()
            if line.startswith(starts) and not line[len(starts[0]) :][:1].isdigit():
                return line

    def _next_line(self, command: str, deadline: float) -> str:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            self._fail(f"no answer in time to {command!r}")
        if line is None:
            self._fail(f"crashed at {command!r}")
        return line.decode("utf-8", errors="replace")

    def _fail(self, what: str) -> NoReturn:
        """Kill the program and raise PlayerError with its exit status and last complaint."""
        ended = self._process.poll()
        if ended is None and what.startswith("crashed"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                ended = self._process.wait(QUIT_SECONDS)
        self._kill()
        status = "" if ended is None else f" (exit status {ended})"
        complaint = f"; it said: {self._complaints[-1]}" if self._complaints else ""
        raise PlayerError(what + status + complaint)

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + QUIT_SECONDS
        while self._readers[0].is_alive() and time.monotonic() < deadline:
            with contextlib.suppress(queue.Empty):
                self._lines.get(timeout=0.01)
        self._readers[1].join(QUIT_SECONDS)
        # A child in a session of its own may have outlived the program and still hold the pipes; closing them under a reader would block.
        if not any(reader.is_alive() for reader in self._readers):
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def _read_answers(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(LINE_BYTES):
                self._lines.put(line)
        self._lines.put(None)

    def _read_complaints(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while line := stream.readline(LINE_BYTES):
                if text := line.decode("utf-8", errors="replace").strip():
                    self._complaints.append(text)


class GtpPlayer:
    """A GTP program as a Player: a new process for every game."""

    def __init__(self, name: str, command: Sequence[str], *, size: int, komi: float, timeout: float = 60.0) -> None:
        """Make a player; nothing is started before `reset`.

        Args:
          name: what reports call this player.
          command: the words of the command line.
          size: points per side of the board.
          komi: points added to White's area.
          timeout: seconds that the program may take over an answer.
        """
        self.name = name
        self._command = list(command)
        self._settings = (f"boardsize {size}", f"komi {komi:g}", "clear_board")
        self._timeout = timeout
        self._program: GtpProgram | None = None

    def reset(self) -> None:
        """Start the program anew and set up the board.

        Raises:
          ValueError: the program cannot be started.
          PlayerError: it refused the size or the komi, or failed.
        """
        self.close()
        self._program = GtpProgram(self._command, self._timeout)
        for setting in self._settings:
            self._program.ask(setting)

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Ask for a move.

        Raises:
          PlayerError: the program failed, or its move is not legal under our rules.
        """
        answer = self._running().ask(f"genmove {_colour(position.to_play)}", clock.seconds_per_move)
        if answer.lower() == "resign":
            return Decision(RESIGN)
        try:
            return Decision(position.parse_action(answer))
        except ValueError as error:
            raise PlayerError(f"illegal move: {error}") from error

    def observe(self, move: Move) -> None:
        """Tell the program the opponent's move.

        Raises:
          PlayerError: the program failed or refused a move that our rules allow.
        """
        self._running().ask(f"play {_colour(move.position.to_play)} {move.name}")

    def final_score(self) -> str | None:
        """Ask for the program's own score of the finished game, as "B+3.5"; None if it gives none, or counts territory, which our rules do not.

        Territory count the programs that say so (KataGo's kata-get-rules) and GNU Go without --chinese-rules.
        """
        try:
            program = self._running()
            if program.ask("known_command final_score").lower() != "true" or self._counts_territory(program):
                return None
            return program.ask("final_score") or None
        except PlayerError:
            return None

    def _counts_territory(self, program: GtpProgram) -> bool:
        if program.ask("known_command kata-get-rules").lower() == "true":
            return "TERRITORY" in program.ask("kata-get-rules").upper()
        return program.ask("name") == "GNU Go" and "--chinese-rules" not in self._command

    def close(self) -> None:
        """End the program, if it runs. Another thread may do so; the game then ends with a failure of the program."""
        if self._program is not None:
            self._program.close()
            self._program = None

    def _running(self) -> GtpProgram:
        if self._program is None:
            raise PlayerError("has not been started")
        return self._program


def _colour(to_play: int) -> str:
    return "white" if to_play else "black"
