"""Protocol lines in and out: a separate thread reads the input, so that a search can see that a
line waits."""

import contextlib
import io
import os
import queue
import sys
import threading
from typing import IO, NamedTuple

WAITING_BYTES = 64 << 20
"""Most bytes of waiting lines; beyond that the sender blocks, as with a full pipe. An analysis
query for a whole game has a few kilobytes."""


class InputLine(NamedTuple):
    """One line of input, without its end."""

    text: bytes
    is_too_long: bool = False
    """The line was longer than the reader allows; `text` is its beginning."""


class LineReader:
    """The lines of a byte stream in the order in which they arrive.

    A line beyond the limit is cut off there and marked; the rest of it is discarded as it is read,
    so that an endless line cannot fill the memory.
    """

    def __init__(self, stream: IO[bytes], longest: int = 65_536) -> None:
        """Start reading `stream`, which nothing else may read; `longest` is in bytes."""
        self._stream = stream
        self._longest = longest
        self._lines: queue.Queue[InputLine | None] = queue.Queue(maxsize=100_000)
        self._waiting_bytes = 0
        self._taken = threading.Condition()
        self._thread = threading.Thread(target=self._read, name="input", daemon=True)
        self._thread.start()

    def is_waiting(self) -> bool:
        """Whether a line, or the end of the input, waits to be taken."""
        return not self._lines.empty()

    def take(self) -> InputLine | None:
        """Wait for the next line and return it; None at the end of the input and ever after."""
        line = self._lines.get()
        if line is None:
            self._lines.put(None)
        else:
            with self._taken:
                self._waiting_bytes -= len(line.text)
                self._taken.notify()
        return line

    def _read(self) -> None:
        held, length = b"", 0
        with contextlib.suppress(OSError, ValueError):
            while piece := self._stream.read(65_536):
                *ended, rest = piece.split(b"\n")
                for part in ended:
                    self._put(held + part, length + len(part))
                    held, length = b"", 0
                length += len(rest)
                held = (held + rest)[: self._longest + 1]
        if length:
            self._put(held, length)
        self._lines.put(None)

    def _put(self, text: bytes, length: int) -> None:
        """Add a line of `length` bytes, of which `text` is the beginning, when there is room for
        it."""
        line = InputLine(
            text[: self._longest].removesuffix(b"\r"), is_too_long=length > self._longest
        )
        with self._taken:
            self._taken.wait_for(lambda: self._waiting_bytes < WAITING_BYTES)
            self._waiting_bytes += len(line.text)
        self._lines.put(line)


class LineWriter:
    """Lines out, from any thread, each one whole. A closed pipe is not an error: nothing more is
    written."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.is_closed = False

    def __call__(self, text: str) -> None:
        """Write `text`, which contains its line ends."""
        with self._lock:
            if self.is_closed:
                return
            try:
                left = memoryview(text.encode())
                while left:  # a stop of the process (Ctrl-Z) cuts a write to a full pipe short
                    left = left[self._stream.write(left) :]
                self._stream.flush()
            except (OSError, ValueError):
                self.is_closed = True


def standard_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return this process's input and output for a protocol; everything else that is printed from
    now on goes to standard error.

    The input is unbuffered: the reader's thread then holds no lock at the end of the program.
    """
    sys.stdout.flush()
    protocol = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return io.FileIO(sys.stdin.fileno(), "rb", closefd=False), io.FileIO(protocol, "wb")
