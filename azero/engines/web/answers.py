"""Responses of the web application: the events of a search, and errors as one sentence of JSON."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from azero.engines.background import StartError
from azero.engines.kata.fields import QueryError
from azero.engines.web.guard import Refusal
from azero.games.quoting import shorten


class Events(StreamingResponse):
    """The events of a search; `stop` is set when the page disconnects."""

    def __init__(self, body: AsyncIterator[str], stop: threading.Event) -> None:
        super().__init__(body, media_type="text/event-stream")
        self._stop = stop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stop.set()


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail.lower()}, error.status_code)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"error": str(error)}, error.status)


async def _bad_request(request: Request, error: Exception) -> Response:
    if isinstance(error, QueryError):
        return JSONResponse({"error": f"{error.field}: {error}"}, 400)
    return JSONResponse({"error": shorten(error)}, 400)


async def _failure(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "internal error; the server's log has the details"}, 500)


HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    HTTPException: _http_error,
    Refusal: _refusal,
    ValueError: _bad_request,
    OSError: _bad_request,
    StartError: _bad_request,
    QueryError: _bad_request,
    Exception: _failure,
}
"""By what is raised."""
