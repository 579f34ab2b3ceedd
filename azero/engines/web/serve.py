"""Starting the server: address, token, browser; and its connections."""

import asyncio
import contextlib
import errno
import functools
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from azero.console.interrupts import exit_at_once
from azero.engines.background import raising_causes
from azero.engines.web.app import Application
from azero.engines.web.guard import LOOPBACK, Guard
from azero.engines.web.limits import WebLimits
from azero.models.naming import describe_unknown, parse_network_name

PORT = 8361
"""Default port: not registered (IANA); a choice."""
MIN_TOKEN_LENGTH = 16
END_SECONDS = 0.3
"""Time for responses in progress when the server ends; our choice."""


def serve(
    names: Sequence[str],
    *,
    host: str = LOOPBACK[0],
    port: int | None = None,
    token: str | None = None,
    opens_browser: bool = True,
    limits: WebLimits | None = None,
) -> None:
    """Serve the page until Ctrl-C.

    Args:
      names: players, as `azero.players.specs.parse_thinker` reads them; none are all networks
        that ship.
      host: address to bind to; one that others can reach gets a token.
      port: None is PORT, or a free one if that is taken; 0 is a free one.
      token: what visitors have to know; None makes one up where it is needed.
      opens_browser: show the page in the user's browser.
      limits: of visitors; None is WebLimits().

    Raises:
      ValueError, CheckpointError, OSError: there is no such player, or the port is taken.
    """
    if token is not None and len(token) < MIN_TOKEN_LENGTH:
        raise ValueError(f"--token must have at least {MIN_TOKEN_LENGTH} characters")
    if token is None and host not in LOOPBACK:
        token = secrets.token_urlsafe(24)
    for name in names:
        if ":" not in name and parse_network_name(name) is None:  # reported before JAX is loaded
            raise ValueError(describe_unknown(name))
    limits = limits or WebLimits()
    bound = _bind(host, port)
    application = Application(tuple(names), limits)
    server = make_server(application, token)
    address = _address(host, bound.getsockname()[1], token)
    before = signal.signal(signal.SIGINT, lambda *_: setattr(server, "should_exit", True))
    try:  # an interrupt while the event loop starts would be lost
        print(f"azero web: {address}\n(Ctrl-C ends it)", flush=True)
        threading.Thread(target=_watch, args=(application, server), daemon=True).start()
        if opens_browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.run(sockets=[bound])
    finally:
        signal.signal(signal.SIGINT, before)
    if application.service.has_failed:
        with raising_causes():
            application.service.result()
    exit_at_once(0)


def _bind(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens on `port`; None is PORT, or a free one if that is taken."""
    if port is None:
        with contextlib.suppress(ValueError):
            return _bind(host, PORT)
        return _bind(host, 0)
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()  # whoever reads the address may connect before the event loop runs
    except OSError as error:
        bound.close()
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)  # else no port would do
        place, flag = (f"{host}, port {port}", "--port") if is_port else (host, "--host")
        raise ValueError(
            f"cannot listen on {place}: {error.strerror}; choose another with {flag}"
        ) from error
    return bound


def _address(host: str, port: int, token: str | None) -> str:
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    name = f"[{name}]" if ":" in name else name
    return f"http://{name}:{port}/" + ("" if token is None else f"?token={quote(token, safe='')}")


def make_server(application: Application, token: str | None = None) -> uvicorn.Server:
    """Return the server of the application, within the application's limits."""
    limits = application.limits
    # A function is as good as the class that it makes instances of.
    connection: Any = functools.partial(Connection, seconds=limits.request_seconds)
    return uvicorn.Server(
        uvicorn.Config(
            Guard(application.starlette, token),
            http=connection,
            log_level="warning",
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=1,
            server_header=False,
            proxy_headers=False,
        )
    )


def _watch(application: Application, server: uvicorn.Server) -> None:
    """End the server if there are no such players, and print on standard error when all is
    ready."""
    while not application.service.is_ready(1.0):
        pass
    if application.service.has_failed:
        server.should_exit = True
        return
    offers = application.service.result().offers.values()
    print(f"azero web: plays {', '.join(offer.title for offer in offers)}", file=sys.stderr)


class Connection(H11Protocol):
    """A connection that is closed if the head of a request does not arrive in time, so that clients
    that send nothing do not use up all connections, and when the server ends. uvicorn itself limits
    only the time between a response and the next request, and at its end waits for responses."""

    def __init__(self, *arguments: Any, seconds: float, **settings: Any) -> None:
        """Handle a connection that may take `seconds` to send the head of a request."""
        super().__init__(*arguments, **settings)
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head of which only a part has arrived."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection soon, whatever is in progress, as if the visitor had gone: searches
        go on for long, and some clients never read what they asked for."""
        super().shutdown()
        self.loop.call_later(END_SECONDS, self.transport.abort)

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(self._seconds, self.transport.close)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
