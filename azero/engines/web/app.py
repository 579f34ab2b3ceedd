"""The web application: pages, games as JSON, searches as server-sent events.

Nothing here loads JAX, so that the page is served at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from azero.engines.background import Background, StartError, importing
from azero.engines.kata.fields import (
    QueryError,
    flag_of,
    integer_of,
    optional_integer,
    optional_number,
    text_of,
)
from azero.engines.web.answers import HANDLERS, Events
from azero.engines.web.guard import Refusal
from azero.engines.web.limits import WebLimits

if TYPE_CHECKING:
    from azero.engines.web.games import WebGame
    from azero.engines.web.service import NewGame, Service

_log = logging.getLogger(__name__)
_READ_ON = 16
"""A body that is too large is read up to this many times the limit, so that its sender still reads
the answer that refuses it; a choice."""
_FIELDS = ("network", "iteration", "columns", "rows", "komi", "handicap", "start")
"""Fields of the request for a new game."""
STATIC = str(files("azero.engines.web").joinpath("static"))
Work = Callable[["WebGame", Callable[[str, dict[str, Any]], None], threading.Event], None]
"""A search: (game, function that sends an event, stop) -> None; it runs in a thread."""


class Application:
    """The routes and the state that they share."""

    def __init__(self, names: tuple[str, ...], limits: WebLimits) -> None:
        self.limits = limits
        self.service: Background[Service] = Background(lambda give: give(_load(names, limits)))
        self._searches = ThreadPoolExecutor(limits.searches, "search")
        self._room = threading.Semaphore(limits.searches)
        self.starlette = Starlette(
            routes=[
                Route("/", self._index),
                Mount("/static", StaticFiles(directory=STATIC)),
                Route("/api/server", self._server),
                Route("/api/games", self._new_game, methods=["POST"]),
                Route("/api/records", self._open, methods=["POST"]),
                Route("/api/games/{game}", self._describe),
                Route("/api/games/{game}/play", self._play, methods=["POST"]),
                Route("/api/games/{game}/goto", self._go_to, methods=["POST"]),
                Route("/api/games/{game}/resign", self._resign, methods=["POST"]),
                Route("/api/games/{game}/unresign", self._unresign, methods=["POST"]),
                Route("/api/games/{game}/think", self._think, methods=["POST"]),
                Route("/api/games/{game}/review", self._review, methods=["POST"]),
                Route("/api/games/{game}/record", self._record),
                Route("/api/runs/{network}", self._run),
                Route("/api/runs/{network}/games", self._open_sample, methods=["POST"]),
            ],
            exception_handlers=HANDLERS,
        )

    async def _index(self, request: Request) -> Response:
        return FileResponse(f"{STATIC}/index.html")

    async def _server(self, request: Request) -> Response:
        """Return whether the server is ready, and what it offers."""
        if not self.service.is_ready():
            return JSONResponse({"state": "starting"})
        service = self.service.result()
        return JSONResponse({"state": "ready"} | await run_in_threadpool(service.describe))

    def _ready(self) -> Service:
        """Return the service.

        Raises:
          Refusal: it is not ready.
        """
        if not self.service.is_ready():
            raise Refusal(503, "azero is still starting; try again in a moment")
        return self.service.result()

    async def _new_game(self, request: Request) -> Response:
        service, wanted = self._ready(), _wanted(await self._fields(request), self.limits)
        return await _respond_with_new(lambda: service.new_game(wanted))

    async def _open(self, request: Request) -> Response:
        """Open a game of the file in the body; in the query the suffix of `name` is its format, and
        `game` the game's number there."""
        from azero.engines.web.records import read_record

        service, query = self._ready(), request.query_params
        content = await self._body(request, self.limits.upload_bytes)
        wanted = _wanted({"network": query.get("network", "0")}, self.limits)
        name, number = query.get("name", ""), query.get("game", "1")
        if not number.isdecimal():
            raise QueryError("game", "Must be a number")
        read = partial(read_record, name, content, int(number))
        return await _respond_with_new(lambda: service.open(wanted, read()))

    async def _describe(self, request: Request) -> Response:
        """Describe the game to a page that loads it, which ends a search of an earlier page."""
        return await _respond_after(self._game(request), lambda: None, with_frame=True)

    async def _play(self, request: Request) -> Response:
        """Play a move; the request names the ply, so that a second click does nothing."""
        fields, game = await self._fields(request), self._game(request)
        name, ply = text_of(fields, "move", 20), integer_of(fields, "ply", 0, self.limits.moves)

        def change() -> None:
            if ply != game.ply:
                raise Refusal(409, "the position has changed meanwhile")
            game.play(game.adapter.parse(name))

        return await _respond_after(game, change)

    async def _go_to(self, request: Request) -> Response:
        fields, game = await self._fields(request), self._game(request)
        ply = integer_of(fields, "ply", 0, self.limits.moves)
        return await _respond_after(game, lambda: game.go_to(ply))

    async def _resign(self, request: Request) -> Response:
        fields, game = await self._fields(request), self._game(request)
        colour = integer_of(fields, "colour", 0, 1)
        return await _respond_after(game, lambda: game.resign(colour))

    async def _unresign(self, request: Request) -> Response:
        game = self._game(request)
        return await _respond_after(game, game.take_back_resignation)

    async def _think(self, request: Request) -> Response:
        """Search the current position, and play if `plays` is true."""
        from azero.engines.web.searches import think
        from azero.players.thinking import Limits

        fields, game, most = await self._fields(request), self._game(request), self.limits
        limits = Limits(
            visits=optional_integer(fields, "visits", 1, most.visits) or most.visits,
            seconds=optional_number(fields, "seconds", 0.01, most.seconds) or most.seconds,
        )
        plays, wants_owners = flag_of(fields, "plays"), flag_of(fields, "ownership")
        return self._stream(
            game, partial(think, limits=limits, plays=plays, wants_owners=wants_owners)
        )

    async def _review(self, request: Request) -> Response:
        from azero.engines.web.searches import review

        fields, game = await self._fields(request), self._game(request)
        visits = integer_of(fields, "visits", 1, self.limits.review_visits)
        return self._stream(game, lambda game, push, stop: review(game, visits, push, stop))

    async def _record(self, request: Request) -> Response:
        """Return the game as a file."""
        game, query = self._game(request), request.query_params
        players = (query.get("first", "")[:60], query.get("second", "")[:60])

        text = await run_in_threadpool(game.text, players)
        disposition = f'attachment; filename="azero-{game.adapter.name}{game.adapter.suffix}"'
        return Response(text, media_type="text/plain", headers={"content-disposition": disposition})

    async def _run(self, request: Request) -> Response:
        """Return the progress of the run of a network."""
        from azero.engines.web.runs import describe_run

        offer = self._ready().offer(request.path_params["network"])
        return JSONResponse(await run_in_threadpool(describe_run, offer.needed_workdir()))

    async def _open_sample(self, request: Request) -> Response:
        """Open one of the newest games of a run."""
        from azero.engines.web.runs import sample_record

        fields, service = await self._fields(request), self._ready()
        wanted = _wanted({"network": request.path_params["network"]}, self.limits)
        iteration, number = (integer_of(fields, name, 0, 10**9) for name in ("iteration", "number"))

        def make() -> WebGame:
            workdir = service.offer(wanted.network).needed_workdir()
            return service.open(wanted, sample_record(workdir, iteration, number))

        return await _respond_with_new(make)

    def _game(self, request: Request) -> WebGame:
        return self._ready().game(request.path_params["game"])

    async def _fields(self, request: Request) -> dict[str, Any]:
        """Return the JSON object of a request."""
        content = await self._body(request, self.limits.request_bytes)
        try:
            fields = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, "the request is not JSON") from error
        if not isinstance(fields, dict):
            raise Refusal(400, "the request is not a JSON object")
        return fields

    async def _body(self, request: Request, most: int) -> bytes:
        chunks, length = [], 0
        try:
            async with asyncio.timeout(self.limits.request_seconds):
                async for chunk in request.stream():
                    length += len(chunk)
                    if length <= most:
                        chunks.append(chunk)
                    elif length > _READ_ON * most:
                        break
        except TimeoutError as error:
            raise Refusal(408, "the request took too long to arrive") from error
        except ClientDisconnect as error:
            raise Refusal(400, "the client disconnected before the request arrived") from error
        if length > most:
            raise Refusal(413, f"the request is too large; {most:,} bytes are allowed")
        return b"".join(chunks)

    def _stream(self, game: WebGame, work: Work) -> Response:
        """Respond with the events of a search, which stops when the page disconnects."""
        service = self._ready()
        service.use(game.network)
        if not self._room.acquire(blocking=False):
            raise Refusal(503, "too many searches at once; try again in a moment")
        events: asyncio.Queue[tuple[str, dict[str, Any]] | None] = asyncio.Queue()
        loop, stop = asyncio.get_running_loop(), threading.Event()

        def send(event: tuple[str, dict[str, Any]] | None) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended with the server
                loop.call_soon_threadsafe(events.put_nowait, event)

        def run() -> None:
            try:
                work(game, lambda kind, data: send((kind, data)), stop)
            except (ValueError, OSError, StartError) as error:
                send(("error", {"error": str(error)}))
            except Exception:
                _log.exception("a search failed")
                send(("error", {"error": "the search failed; the server's log says why"}))
            finally:
                service.use(game.network)  # it may have been unloaded and loaded again meanwhile
                self._room.release()
                send(None)

        async def body() -> AsyncIterator[str]:
            while (event := await events.get()) is not None:
                yield f"event: {event[0]}\ndata: {json.dumps(event[1])}\n\n"
            yield "event: end\ndata: {}\n\n"

        self._searches.submit(run)
        return Events(body(), stop)


def _wanted(fields: dict[str, Any], limits: WebLimits) -> NewGame:
    """Return the game that a request describes.

    Raises:
      QueryError: a field is wrong or unknown.
    """
    from azero.engines.go_game import SMALLEST
    from azero.engines.web.service import NewGame
    from azero.games.go.settings import LARGEST_SIDE

    for name in fields:
        if name not in _FIELDS:
            raise QueryError(name, f"Unknown; a new game has {', '.join(_FIELDS)}")
    columns = optional_integer(fields, "columns", SMALLEST, LARGEST_SIDE)
    rows = optional_integer(fields, "rows", SMALLEST, LARGEST_SIDE) or columns
    return NewGame(
        network=text_of(fields, "network", 20),
        iteration=optional_integer(fields, "iteration", 0, 10**9),
        shape=None if columns is None or rows is None else (rows, columns),
        komi=optional_number(fields, "komi", -400, 400),
        handicap=optional_integer(fields, "handicap", 0, 9) or 0,
        start=text_of(fields, "start", 200) if fields.get("start") else "",
    )


def _load(names: tuple[str, ...], limits: WebLimits) -> Service:
    with importing:
        from azero.engines.web.service import Service
    return Service(names, limits)


async def _respond_with_new(make: Callable[[], WebGame]) -> Response:
    """Make a game, and respond with what the page shows of it."""
    return JSONResponse(await run_in_threadpool(lambda: make().describe(with_frame=True)), 201)


async def _respond_after(
    game: WebGame, change: Callable[[], None], *, with_frame: bool = False
) -> Response:
    """Change a game, and respond with what the page shows of it."""

    def work() -> dict[str, Any]:
        with game.turn():
            change()
            return game.describe(with_frame=with_frame)

    return JSONResponse(await run_in_threadpool(work))
