"""The connections between process 0 and every other process: one TCP connection each, which the
system closes at once when a process dies.

JAX's own runtime notices a death after a minute or more, or kills the process with a page of its
own messages.
"""

import contextlib
import json
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax

from azero.console.interrupts import exit_at_once
from azero.console.standard_output import say
from azero.heartbeat import repeating

EXIT_INTERRUPTED = 75
"""Exit status if the same command can continue the run: after SIGTERM or SIGINT, or when another
process is lost (EX_TEMPFAIL of sysexits.h)."""
NOTICE_SECONDS = 3.0
"""Time a failing process waits for the notice that another one failed first: the system closes a
connection within milliseconds."""
BEAT_SECONDS = 5.0
"""Interval of each process's heartbeats, sent from a separate thread that compiling and computing
do not block."""
HUNG_SECONDS = 120.0
"""A process without a heartbeat for this long counts as stopped: the others would wait for it
forever."""
_SEND_SECONDS = 5.0
"""A small message that the system does not accept within this time is dropped: the other end has
stopped reading."""
_KEEPALIVE = {
    "TCP_KEEPIDLE": 15,
    "TCP_KEEPINTVL": 15,
    "TCP_KEEPCNT": 4,
    "TCP_USER_TIMEOUT": 75_000,
}
"""A machine that disappears silently is detected after 15 + 4 x 15 seconds: by probes, or, as these
are not sent while a heartbeat waits for its acknowledgement, by its timeout (ms; tcp(7))."""
_SAY_SECONDS = 8.0
"""Interval of the lines that say what a process is waiting for."""
_CHUNK = 1 << 16
_CONTINUES = "The same command continues the run from its last checkpoint"

Message = dict[str, Any]


class ProcessLinks:
    """This process's connections: the lead's to every other process, another process's only to the
    lead. Without connections it does nothing."""

    def __init__(
        self, process: int, connections: dict[int, socket.socket], names: dict[int, str]
    ) -> None:
        """Take over open connections, by the index of the process at the other end; `names` are the
        hosts of the known processes, for messages."""
        self._process = process
        self._connections = dict(connections)
        self._names = names
        self._lock = threading.Lock()
        self._is_over = threading.Event()

    def watch(self) -> None:
        """Start watching the connections: when another process fails or dies, this one reports it
        and ends."""
        if self._connections:
            threading.Thread(target=self._watch, name="links", daemon=True).start()

    def broadcast_failure(self, reason: str, status: int) -> None:
        """Tell the other processes that this one ends, and why; they end with `status`. Their ends
        are not reported from here on."""
        self._is_over.set()
        self._send({"end": reason, "process": self._process, "status": status})

    def leave(self) -> None:
        """Tell the others that this process is done, and stop watching them."""
        self._send({"bye": True})

    def wait_for_failure_notice(self) -> None:
        """Wait a moment for the notice that another process has failed, which ends this one, too:
        its failure may be the cause of the error here."""
        if self._connections:
            time.sleep(NOTICE_SECONDS)

    def _send(self, message: Message, leave_out: int | None = None) -> None:
        with self._lock:
            for process, connection in self._connections.items():
                if process != leave_out:
                    with contextlib.suppress(OSError):
                        send(connection, message)

    def _watch(self) -> None:
        heard: dict[int, float] = {}
        """Time of each process's last heartbeat; none before its first, as it may still be
        starting."""
        with (
            selectors.DefaultSelector() as selector,
            repeating(lambda: self._send({"beat": True}), BEAT_SECONDS),
        ):
            for process, connection in self._connections.items():
                connection.settimeout(_SEND_SECONDS)
                selector.register(connection, selectors.EVENT_READ, (process, bytearray()))
            while selector.get_map():
                for key, _ in selector.select(BEAT_SECONDS):
                    process, buffer = key.data
                    message = next_message(key.fileobj, buffer)
                    while message is not None and "beat" in message:
                        heard[process] = time.monotonic()
                        message = _take_message(buffer)
                    if message is None:
                        continue
                    selector.unregister(key.fileobj)
                    heard.pop(process, None)
                    if self._is_over.is_set() or "bye" in message:
                        continue
                    if "end" in message:
                        ended, status = int(message["process"]), int(message["status"])
                        self._end(ended, process, str(message["end"]), status)
                    else:
                        self._end(process, process, f"it is gone. {_CONTINUES}", EXIT_INTERRUPTED)
                for process, when in list(heard.items()):
                    if time.monotonic() - when > HUNG_SECONDS and not self._is_over.is_set():
                        del heard[process]
                        seems = f"no heartbeat for {HUNG_SECONDS:g} s, so it seems to be stopped"
                        self._end(process, process, f"{seems}. {_CONTINUES}", EXIT_INTERRUPTED)

    def _end(self, ended: int, heard_from: int, reason: str, status: int) -> None:
        """Report and forward that process `ended` has ended the run, and end this one."""
        host = f" ({self._names[ended]})" if ended in self._names else ""
        say(f"azero: process {ended}{host} ended the run: {reason}")
        self._send({"end": reason, "process": ended, "status": status}, leave_out=heard_from)
        end_process(status)


def end_process(status: int) -> None:
    """End a process of several at once: JAX would first wait for the others to end, for minutes.
    Does nothing in a run of one process."""
    if jax.distributed.is_initialized():
        exit_at_once(status)


def keep_alive(connection: socket.socket) -> None:
    """Make the system detect when the machine at the other end is gone (TCP keep-alive)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # macOS lacks some of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def send(connection: socket.socket, message: Message) -> None:
    """Send one message, a line of JSON.

    Raises:
      OSError: the connection is gone.
    """
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive(connection: socket.socket, seconds: float) -> Message | None:
    """Return the next message, or None if there is none in time; {} if the connection ends or the
    data is not a message."""
    buffer = bytearray()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.settimeout(max(0.05, end - time.monotonic()))
        with contextlib.suppress(TimeoutError):
            message = next_message(connection, buffer, at_once=1)
            if message is not None:
                return message
    return None


def next_message(connection: Any, buffer: bytearray, at_once: int = _CHUNK) -> Message | None:
    """Read what has arrived into `buffer`; return its first message, None while that is incomplete,
    {} at the end of the connection or if the data is not a message.

    Raises:
      TimeoutError: nothing arrived within the connection's timeout.
    """
    try:
        content = connection.recv(at_once)
    except TimeoutError:
        raise
    except OSError:
        return {}
    buffer += content
    if not content or len(buffer) > _CHUNK:
        return {}
    return _take_message(buffer)


def _take_message(buffer: bytearray) -> Message | None:
    """Return the first message in `buffer` and remove it; None if it is incomplete, {} if it is not
    one."""
    line, newline, rest = bytes(buffer).partition(b"\n")
    if not newline:
        return None
    buffer[:] = rest
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        return message if isinstance(message, dict) else {}
    return {}


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Print every few seconds, while the block runs, what this process is waiting for."""
    began = time.monotonic()
    with repeating(lambda: say(f"{text}: {time.monotonic() - began:.0f} s so far"), _SAY_SECONDS):
        yield
