"""Where the processes of a run meet: all of them connect with the lead, which counts them, before anything else is started.

What can be wrong (an address, a number, a process that never comes or comes twice) is found out here and said in one line. The connections stay open: they are
the line over which the end of a process is noticed (`azero.hosts.line`).
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Sequence

import jax

from azero.hosts.line import Line, Message, keep_alive, progress, receive, send

_HELLO_SECONDS = 5.0
"""A process says who it is as soon as it is connected; whoever does not is none of ours."""
_RETRY_SECONDS = 0.5

Address = tuple[str, int]


def listen(port: int) -> socket.socket:
    """Return a socket that listens on `port` (0: a free one) of all of this host's addresses.

    Raises:
      ValueError: the port cannot be had.
    """
    both = socket.has_dualstack_ipv6()
    try:
        return socket.create_server(("", port), family=socket.AF_INET6 if both else socket.AF_INET, dualstack_ipv6=both, backlog=128)
    except OSError as error:
        raise ValueError(f"process 0 cannot listen on port {port}: {error.strerror or error}; take another port in run.coordinator") from error


def gather(listener: socket.socket, count: int, seconds: float) -> Line:
    """Wait, as the lead, for the other `count` - 1 processes to connect; the listener is closed.

    Raises:
      ValueError: some did not come within so many seconds; they are named.
    """
    connections: dict[int, socket.socket] = {}
    names = {0: socket.gethostname()}
    end = time.monotonic() + seconds
    with listener, progress(f"process 0 of {count} waits for the others on port {listener.getsockname()[1]}"):
        while len(connections) < count - 1 and time.monotonic() < end:
            listener.settimeout(max(0.05, end - time.monotonic()))
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                hello = receive(connection, _HELLO_SECONDS) or {}
                refusal = _refusal(hello, count, names)
                if refusal is not None:
                    with contextlib.suppress(OSError):
                        send(connection, {"end": refusal})
                    connection.close()
                    continue
                keep_alive(connection)
                connections[hello["process"]], names[hello["process"]] = connection, str(hello["host"])
    line = Line(0, connections, names)
    missing = [str(process) for process in range(1, count) if process not in connections]
    if missing:
        what = "process" if len(missing) == 1 else "processes"
        reason = f"{what} {', '.join(missing)} of {count} did not come within {seconds:.0f} s (run.join-seconds)"
        line.tell(reason, 2)
        raise ValueError(f"{reason}; start every process with the same run.coordinator and run.num-processes, and an id of its own")
    for connection in connections.values():
        with contextlib.suppress(OSError):
            send(connection, {"go": True})
    return line


def _refusal(hello: Message, count: int, names: dict[int, str]) -> str | None:
    """Return why a process that says `hello` cannot take part, or None."""
    process = hello.get("process")
    if not isinstance(process, int) or "host" not in hello:
        return "this is process 0 of a run of azero; what has connected is not a process of one"
    if hello.get("count") != count:
        return f"process {process} was told of {hello.get('count')} processes, process 0 of {count} (run.num-processes)"
    if process in names:
        return f"there are two processes with the id {process} (run.process-id); the other one is on {names[process]}"
    if hello.get("jax") != jax.__version__:
        return f"process {process} has jax {hello.get('jax')}, process 0 has jax {jax.__version__}; install the same on all hosts"
    return None


def meet(addresses: Sequence[Address], process: int, count: int, seconds: float) -> Line:
    """Connect, as process `process` of `count`, with the lead at the first of the addresses that answers, and wait until all have come.

    Raises:
      ValueError: nothing answers within so many seconds, or not the lead, or the lead says what is wrong.
    """
    shown = " or ".join(f"{host}:{port}" for host, port in addresses)
    end = time.monotonic() + seconds
    with progress(f"process {process} of {count} waits for process 0 at {shown}"):
        connection = _connect(addresses, end)
        if isinstance(connection, str):
            raise ValueError(
                f"process {process} cannot reach process 0 at {shown} within {seconds:.0f} s: {connection}; is the address right, and does it run?"
            )
        keep_alive(connection)
        answer: Message | None = {}
        with contextlib.suppress(OSError):
            send(connection, {"process": process, "count": count, "host": socket.gethostname(), "jax": jax.__version__})
            # The lead's own patience ends first, and it says whom it missed.
            answer = receive(connection, end - time.monotonic() + seconds)
    if not answer:
        raise ValueError(f"what answers at {shown} is not process 0 of this run, or it has ended; is the address right?")
    if "end" in answer:
        raise ValueError(str(answer["end"]))
    return Line(process, {0: connection}, {0: shown})


def _connect(addresses: Sequence[Address], end: float) -> socket.socket | str:
    """Return a connection to the first of the addresses that answers before `end`, or why there is none."""
    reason = "no time was left"
    while time.monotonic() < end:
        for address in addresses:
            try:
                return socket.create_connection(address, timeout=min(5.0, max(0.1, end - time.monotonic())))
            except OSError as error:
                reason = error.strerror or str(error)
        time.sleep(_RETRY_SECONDS)
    return reason


def own_addresses(port: int) -> list[Address]:
    """Return under which addresses other hosts may reach `port` of this one, the likeliest first."""
    hosts: list[str] = []
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing (RFC 5737 names nobody there); the system only chooses the interface that leads out
        hosts.append(probe.getsockname()[0])
    hosts.append(socket.gethostname())
    return [(host, port) for host in dict.fromkeys(hosts)]
