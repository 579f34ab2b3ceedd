"""Rendezvous of the processes of a run: all connect to process 0, which counts them, before
anything else is started.

Errors (a wrong address or number, a missing, duplicate or foreign process) are found here and
reported in one line. The connections stay open; they show when a process ends
(`azero.distributed.links`).

The lead sends a random number; a process answers with who it is, a random number of its own and the
proof that it has the run's token (`azero.distributed.token`); when all have come, the lead sends
each its own proof.
"""

import contextlib
import errno
import secrets
import selectors
import socket
import time
from collections.abc import Callable

import jax

from azero.distributed.links import (
    Message,
    ProcessLinks,
    keep_alive,
    next_message,
    progress,
    receive,
    send,
)
from azero.distributed.token import VARIABLE, is_proof, proof

HELLO_SECONDS = 30.0
"""Time for a connected process to identify itself; it first needs the token, which another host may
see 15 s late."""
MOST_PENDING = 64
"""Most connections that have not identified themselves; one more closes the oldest."""
_RETRY_SECONDS = 0.5
_SHOWN_CHARACTERS = 500
"""Most characters of another process's reason."""

Address = tuple[str, int]


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on `port` (0: a free one) of this host's address `host`, and of
    no other.

    Raises:
      ValueError: the name is unknown, the address is not this host's, or the port is taken.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        advice = (
            "use another port in run.coordinator"
            if error.errno == errno.EADDRINUSE
            else "use an address of this host in run.coordinator-bind"
        )
        raise ValueError(
            f"process 0 cannot listen on port {port} of {host}: {error.strerror or error}; {advice}"
        ) from error


class _PendingClient:
    """A connected process that has not identified itself yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = bytearray()
        self.nonce = secrets.token_hex(16)
        self.until = time.monotonic() + HELLO_SECONDS


class _Arrivals:
    """The processes that connect to the lead: first pending, then, with a valid proof, joined."""

    def __init__(self, selector: selectors.BaseSelector, count: int, token: str) -> None:
        self._selector, self._count, self._token = selector, count, token
        self._pending: list[_PendingClient] = []
        self.connections: dict[int, socket.socket] = {}
        self.answers: dict[int, Message] = {}
        self.names = {0: socket.gethostname()}

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection and send it the random number for its proof."""
        connection, _ = listener.accept()
        client = _PendingClient(connection)
        connection.setblocking(False)
        send(connection, {"nonce": client.nonce})
        self._pending.append(client)
        self._selector.register(connection, selectors.EVENT_READ, client)

    def read(self, client: _PendingClient) -> None:
        """Read what a pending client sent; once its message is whole, let it join or refuse it."""
        if client not in self._pending:
            return
        hello = next_message(client.connection, client.buffer)
        if hello is None:
            return
        refusal = _refusal(hello, client.nonce, self._token, self._count, self.names)
        self._remove(client, refusal)
        if refusal is None:
            process = hello["process"]
            client.connection.settimeout(HELLO_SECONDS)
            keep_alive(client.connection)
            self.connections[process], self.names[process] = client.connection, str(hello["host"])
            self.answers[process] = {
                "go": True,
                "proof": proof(self._token, "go", process, hello["nonce"]),
            }

    def refuse_late(self) -> None:
        """Refuse pending clients that took too long, and the oldest where there are too many."""
        late = {client for client in self._pending if client.until < time.monotonic()}
        for client in late.union(self._pending[:-MOST_PENDING]):
            self._remove(client, "the connection did not identify itself in time")

    def refuse_all(self) -> None:
        """Refuse all pending clients, because every process has joined or the time is over."""
        for client in list(self._pending):
            self._remove(client, "all processes of the run have joined")

    def _remove(self, client: _PendingClient, refusal: str | None) -> None:
        self._selector.unregister(client.connection)
        self._pending.remove(client)
        if refusal is not None:
            with contextlib.suppress(OSError):
                send(client.connection, {"end": refusal})
            client.connection.close()


def wait_for_processes(
    listener: socket.socket, count: int, seconds: float, token: str
) -> ProcessLinks:
    """Wait, as the lead, for the other `count` - 1 processes to connect and to show that they have
    `token`; the listener is closed.

    Raises:
      ValueError: some did not join in time; they are named.
    """
    end = time.monotonic() + seconds
    with (
        listener,
        selectors.DefaultSelector() as selector,
        progress(f"process 0 of {count} waits for the others on port {listener.getsockname()[1]}"),
    ):
        listener.setblocking(False)
        selector.register(listener, selectors.EVENT_READ)
        arrivals = _Arrivals(selector, count, token)
        while len(arrivals.connections) < count - 1 and time.monotonic() < end:
            for key, _ in selector.select(max(0.0, min(1.0, end - time.monotonic()))):
                if key.data is not None:
                    arrivals.read(key.data)
                    continue
                with contextlib.suppress(OSError):
                    arrivals.accept(listener)
            arrivals.refuse_late()
        arrivals.refuse_all()
    links = ProcessLinks(0, arrivals.connections, arrivals.names)
    missing = [str(process) for process in range(1, count) if process not in arrivals.connections]
    if missing:
        what = "process" if len(missing) == 1 else "processes"
        reason = (
            f"{what} {', '.join(missing)} of {count} did not join within {seconds:.0f} s "
            "(run.join-seconds)"
        )
        links.broadcast_failure(reason, 2)
        raise ValueError(
            f"{reason}; start every process with the same run.coordinator and run.num-processes, "
            "and its own id"
        )
    for process, connection in arrivals.connections.items():
        with contextlib.suppress(OSError):
            send(connection, arrivals.answers[process])
    return links


def _refusal(
    hello: Message, nonce: str, token: str, count: int, names: dict[int, str]
) -> str | None:
    """Return why a process that says `hello` cannot take part, or None."""
    process = hello.get("process")
    if not isinstance(process, int) or "host" not in hello or "nonce" not in hello:
        return "this is process 0 of an azero run; the connection is not from one of its processes"
    if not is_proof(hello.get("proof"), token, "hello", process, nonce, hello["nonce"]):
        return (
            f"process {process} has no token, or not that of process 0: use one working directory "
            f"for all, or the same {VARIABLE}"
        )
    if hello.get("count") != count:
        return (
            f"process {process} was started for {hello.get('count')} processes, process 0 for "
            f"{count} (run.num-processes)"
        )
    if process in names:
        return (
            f"there are two processes with the id {process} (run.process-id); the other one is on "
            f"{names[process]}"
        )
    if hello.get("jax") != jax.__version__:
        return (
            f"process {process} has jax {hello.get('jax')}, process 0 has jax {jax.__version__}; "
            "install the same version on all hosts"
        )
    return None


def connect(
    address: Address, process: int, count: int, seconds: float, find_token: Callable[[], str]
) -> ProcessLinks:
    """Connect, as process `process` of `count`, to the lead at `address`, and wait until all
    processes have joined.

    `find_token` returns the run's token; it is called once the lead, which creates it, answers.

    Raises:
      ValueError: no answer in time, or not from process 0, or there is no token, or the lead says
        what is wrong.
    """
    shown = f"{address[0]}:{address[1]}"
    end = time.monotonic() + seconds
    with progress(f"process {process} of {count} waits for process 0 at {shown}"):
        connection = _open_connection(address, end)
        if isinstance(connection, str):
            raise ValueError(
                f"process {process} cannot reach process 0 at {shown} within {seconds:.0f} s: "
                f"{connection}; is the address right, and is process 0 running?"
            )
        keep_alive(connection)
        answer: Message | None = {}
        token, own = "", secrets.token_hex(16)
        with contextlib.suppress(OSError):
            challenge = receive(connection, HELLO_SECONDS) or {}
            if "nonce" in challenge:
                token = find_token()
                hello = {
                    "process": process,
                    "count": count,
                    "host": socket.gethostname(),
                    "jax": jax.__version__,
                    "nonce": own,
                    "proof": proof(token, "hello", process, challenge["nonce"], own),
                }
                send(connection, hello)
                # The lead stops waiting first, and names the processes that are missing.
                answer = receive(connection, end - time.monotonic() + seconds)
    if answer and "end" in answer:
        raise ValueError(str(answer["end"])[:_SHOWN_CHARACTERS])
    if not answer or not is_proof(answer.get("proof"), token, "go", process, own):
        raise ValueError(
            f"what answers at {shown} is not process 0 of this run, or it has ended; is "
            "the address right?"
        )
    return ProcessLinks(process, {0: connection}, {0: shown})


def _open_connection(address: Address, end: float) -> socket.socket | str:
    """Return a connection to an address that answers before `end`, or why there is none."""
    reason = "no time was left"
    while time.monotonic() < end:
        try:
            return socket.create_connection(
                address, timeout=min(5.0, max(0.1, end - time.monotonic()))
            )
        except OSError as error:
            reason = error.strerror or str(error)
        time.sleep(_RETRY_SECONDS)
    return reason


def own_address() -> str:
    """Return the address at which other hosts most likely reach this one: that of the interface
    with the default route, otherwise its host name."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Sends nothing (a documentation address of RFC 5737): the system only chooses the
        # interface.
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])
    return socket.gethostname()
