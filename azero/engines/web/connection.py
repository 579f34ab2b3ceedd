"""Connections to the web server, which are closed if no request comes."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

END_SECONDS = 0.3
"""Time for responses in progress when the server ends; our choice."""


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
