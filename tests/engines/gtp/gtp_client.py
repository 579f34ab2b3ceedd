"""A GTP client written from the protocol's pages alone (GTP 2 draft 2; KataGo's GTP_Extensions.md;
Leela Zero's lz-analyze): it shares no code with azero.

It is strict: whatever the engine prints that is not an answer of the form the pages prescribe is a
`ProtocolError`.
"""

import contextlib
import json
import queue
import re
import subprocess
import threading
import time
from typing import Any


class ProtocolError(Exception):
    """The engine does not keep to the protocol."""


class Refused(Exception):
    """The engine answered with a question mark."""


class Process:
    """A program with pipes; its lines come through a queue, and its complaints are kept with the
    time at which they came."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        )
        self.complaints: list[tuple[float, str]] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._threads = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=self._listen, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _listen(self) -> None:
        for line in self.process.stderr:
            self.complaints.append((time.monotonic() - self.started, line.decode().rstrip()))

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self, timeout: float) -> str:
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise ProtocolError(f"no line within {timeout} s") from None
        if line is None:
            raise ProtocolError(f"the program has ended; it said {self.complaints[-3:]}")
        if not line.endswith(b"\n") or b"\r" in line:
            raise ProtocolError(f"not a whole line: {line!r}")
        return line[:-1].decode("utf-8")

    def nothing_more(self) -> bool:
        """Whether the output is at its end, once the program has ended."""
        return self._lines.get(timeout=20.0) is None

    def close(self) -> int:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        status = self.process.wait(20.0)
        for thread in self._threads:
            thread.join(5.0)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


class GtpClient(Process):
    """Sends commands one at a time, each with an id."""

    _number = 0

    def ask(self, command: str, timeout: float = 60.0) -> str:
        self._number += 1
        self.write(f"{self._number} {command}\n".encode())
        return self.answer(self._number, timeout)

    def answer(self, number: int, timeout: float = 60.0) -> str:
        first = self.line(timeout)
        match = re.fullmatch(rf"([=?]){number}(?: (.*))?", first)
        if match is None:
            raise ProtocolError(f"answer {number} begins with {first!r}")
        lines = [match[2] or ""]
        while line := self.line(timeout):
            lines.append(line)
        text = "\n".join(lines).strip()
        if match[1] == "?":
            raise Refused(text)
        return text

    def analyze(self, command: str, reports: int, then: str) -> tuple[list[str], float]:
        """Start an analysis, wait for some reports, and end it by another command; return the
        reports and how long the end took."""
        self._number += 1
        self.write(f"{self._number} {command}\n".encode())
        if self.line(60.0) != f"={self._number}":
            raise ProtocolError("an analysis begins with its id alone")
        found = [self.line(60.0) for _ in range(reports)]
        began = time.monotonic()
        self._number += 1
        self.write(f"{self._number} {then}\n".encode())
        while line := self.line(10.0):
            found.append(line)
        took = time.monotonic() - began
        self.answer(self._number)
        return found, took


VERTEX = r"(?:[A-HJ-Z]\d{1,2}|pass)"
FLOAT = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
LZ_INFO = re.compile(
    rf"info move ({VERTEX}) visits (\d+) winrate (\d+) prior (\d+) lcb (-?\d+) order "
    rf"(\d+) pv((?: {VERTEX})+)"
)


def parse_lz(line: str) -> list[dict[str, Any]]:
    """Read a line of lz-analyze: everything in it must be of the one form."""
    moves = []
    for text in re.split(r" (?=info )", line):
        match = LZ_INFO.fullmatch(text)
        if match is None:
            raise ProtocolError(f"not of lz-analyze's form: {text!r}")
        vertex, *numbers, pv = match.groups()
        names = ("visits", "winrate", "prior", "lcb", "order")
        moves.append(
            {"move": vertex, "pv": pv.split(), **dict(zip(names, map(int, numbers), strict=True))}
        )
    return moves


def parse_kata(line: str) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Read a line of kata-analyze as keys and values; lists follow `pv`. Return the moves and the
    root's figures."""
    moves: list[dict[str, Any]] = []
    root: dict[str, float] = {}
    for part in re.split(r" (?=info |rootInfo )", line):
        kind, *words = part.split(" ")
        pv: list[str] = []
        if "pv" in words:
            words, pv = words[: words.index("pv")], words[words.index("pv") + 1 :]
        values = dict(zip(words[::2], words[1::2], strict=True))
        if kind == "rootInfo":
            root = {name: float(value) for name, value in values.items()}
            continue
        if kind != "info" or not all(
            name == "move" or re.fullmatch(FLOAT, value) for name, value in values.items()
        ):
            raise ProtocolError(f"not of kata-analyze's form: {part!r}")
        moves.append(
            {
                "pv": pv,
                **{
                    name: value if name == "move" else float(value)
                    for name, value in values.items()
                },
            }
        )
    return moves, root


class AnalysisClient(Process):
    """Sends queries as JSON lines."""

    def send(self, **query: Any) -> None:
        self.write((json.dumps(query) + "\n").encode())

    def receive(self, timeout: float = 60.0) -> dict[str, Any]:
        return json.loads(self.line(timeout))
