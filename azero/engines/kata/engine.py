"""KataGo's analysis protocol: JSON queries in, JSON results out, one a line, many positions at
once. Source: KataGo's docs/Analysis_Engine.md.

Queries wait in order of priority for one worker thread; everything else is answered at once. Values
are Black's by default, as in KataGo's example configuration (`reportAnalysisWinratesAs`). For a
network without score and ownership heads scoreLead is estimated from the value, ownership by random
games, and scoreStdev is left out.
"""

from __future__ import annotations

import heapq
import json
import threading
import traceback
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from azero import __version__
from azero.console.standard_output import say
from azero.engines.background import Background, ProtocolEngine, StartError, raising_causes
from azero.engines.kata.fields import QueryError
from azero.engines.kata.query import Query, Turn, parse_query
from azero.engines.kata.result import format_result
from azero.engines.lines import LineReader, LineWriter
from azero.players.thinking import Analysis, Limits, ThinkOptions

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame

LONGEST_LINE = 16_777_216
"""Bytes of a query."""


class AnalysisEngine(ProtocolEngine["GoGame"]):
    """Answers queries: `handle` takes a line of input, `run` searches until `close`. They may be
    called from different threads."""

    def __init__(
        self, game: GoGame | Background[GoGame], write: Callable[[str], None], *, visits: int = 400
    ) -> None:
        """Make an engine that answers through `write`, which two threads call. `game` sets up the
        positions; while it is loading, commands about the engine itself are answered. `visits` is
        for queries without maxVisits."""
        super().__init__(game)
        self._write = write
        self._defaults = {"maxVisits": visits, "reportAnalysisWinratesAs": "BLACK"}
        self._name = "azero"
        self._waiting: list[tuple[int, int, Turn]] = []
        self._current: Turn | None = None
        self._count = 0
        self._is_closing = False
        self._changed = threading.Condition()

    def handle(self, text: str) -> None:
        """Handle one line: a query, or an action that is answered at once."""
        if not text.strip():
            return
        try:
            fields = json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            self._send({"error": f"Could not parse input line as json request: {error}"})
            return
        if not isinstance(fields, dict):
            self._send({"error": "Request was not a json object"})
            return
        name = fields.get("id")
        if not isinstance(name, str):
            self._send({"error": "Request must have a string field id", "field": "id"})
            return
        try:
            self._act(fields) if "action" in fields else self._enqueue(fields)
        except Exception as error:  # whatever is wrong with one query, the next one is read
            self._send_error(name, error)

    def _enqueue(self, fields: dict[str, Any]) -> None:
        query = parse_query(fields, self.game, self._defaults)
        for field, message in query.warnings:
            self._send({"warning": message, "field": field, "id": query.name})
        with self._changed:
            for turn in query.turns:
                heapq.heappush(self._waiting, (-turn.priority, self._count, turn))
                self._count += 1
            self._changed.notify()

    def _act(self, fields: dict[str, Any]) -> None:
        action = fields["action"]
        extra: dict[str, Any] = {}
        if action == "query_version":
            extra = {"version": __version__, "git_hash": "<omitted>"}
        elif action == "query_models":
            model = {"name": self._name, "internalName": self._name, "maxBatchSize": 1}
            extra = {"models": [{**model, "usesHumanSLProfile": False, "version": 0}]}
        elif action == "clear_cache":
            pass  # no tree is kept from one position to the next
        elif action in ("terminate", "terminate_all"):
            name = fields.get("terminateId") if action == "terminate" else None
            if action == "terminate" and not isinstance(name, str):
                message = "Requests with action terminate must have a string field terminateId"
                raise QueryError("terminateId", message)
            self._terminate(name, _turn_numbers(fields))
        else:
            known = "query_version, query_models, clear_cache, terminate, terminate_all"
            raise QueryError("action", f"'action' field must be one of {known}")
        self._send({**fields, **extra})

    def _terminate(self, name: str | None, numbers: set[int] | None) -> None:
        """Stop the turns `numbers` of the query `name`; None is all turns, or all queries."""

        def matches(turn: Turn) -> bool:
            return (name is None or turn.query.name == name) and (
                numbers is None or turn.number in numbers
            )

        with self._changed:
            ended = sorted(entry for entry in self._waiting if matches(entry[2]))
            self._waiting = [entry for entry in self._waiting if not matches(entry[2])]
            heapq.heapify(self._waiting)
            if self._current is not None and matches(self._current):
                self._current.is_terminated = True
        for _, _, turn in ended:
            self._send(_no_results(turn))

    def describe(self, name: str, visits: int) -> None:
        """Set the name of the network, once it is known, and the visits of queries without
        maxVisits."""
        self._name, self._defaults["maxVisits"] = name, visits

    def close(self, finish: bool = True) -> None:
        """Let `run` return: when all queries are done, or at once."""
        with self._changed:
            self._is_closing = True
            if not finish:
                self._waiting = []
                if self._current is not None:
                    self._current.is_terminated = True
            self._changed.notify()

    def run(self) -> None:
        """Answer queries, the highest priority first, until `close`."""
        while True:
            with self._changed:
                self._current = None
                while not self._waiting:
                    if self._is_closing:
                        return
                    self._changed.wait()
                turn = self._current = heapq.heappop(self._waiting)[2]
            try:
                self._analyze(turn)
            except Exception as error:  # one query must not end the engine
                if isinstance(error, QueryError):
                    self._forget(turn.query)
                self._send_error(turn.query.name, error)
                if isinstance(error, StartError):
                    self.failure = error.__cause__
                    return

    def _forget(self, query: Query) -> None:
        """Drop the waiting turns of a query that has been refused: it gets one answer."""
        with self._changed:
            self._waiting = [entry for entry in self._waiting if entry[2].query is not query]
            heapq.heapify(self._waiting)

    def _analyze(self, turn: Turn) -> None:
        query, game = turn.query, self.game
        if not query.is_checked:
            # An illegal move anywhere refuses the whole query, so that it has one answer.
            query.set_up(game, len(query.moves))
            query.is_checked = True
        query.set_up(game, turn.number)
        # Every position gets the visits it asks for, whatever was analysed before it.
        game.session.clear_tree()
        position = game.with_turn(query.colour_to_move(turn.number))

        reported = 0.0

        def during(analysis: Analysis) -> None:
            # The last report of the thinker, at its end, is the final result and sent as such.
            nonlocal reported
            if (
                query.report_seconds is not None
                and analysis.seconds >= reported + 0.9 * query.report_seconds
                and not turn.is_terminated
            ):
                reported = analysis.seconds
                self._send(format_result(turn, game, position, analysis, is_during_search=True))

        analysis = game.session.think(
            position,
            Limits(visits=query.visits, playouts=query.playouts, seconds=query.seconds),
            ThinkOptions(
                should_stop=lambda: turn.is_terminated,
                on_progress=None if query.report_seconds is None else during,
                progress_seconds=query.report_seconds or 1.0,
                restriction=query.restriction_of(position),
            ),
        )
        if turn.is_terminated and not analysis.moves:
            self._send(_no_results(turn))
        else:
            self._send(format_result(turn, game, position, analysis, is_during_search=False))

    def _send_error(self, name: str, error: Exception) -> None:
        """Report what is wrong with the query `name`; for an unexpected error the traceback goes to
        standard error."""
        if isinstance(error, QueryError):
            self._send({"error": str(error), "field": error.field, "id": name})
        elif isinstance(error, StartError):
            self._send({"error": str(error), "id": name})
        else:
            say("".join(traceback.format_exception(error)))
            self._send({"error": f"{type(error).__name__}: {error}", "id": name})

    def _send(self, fields: dict[str, Any]) -> None:
        self._write(json.dumps(fields, separators=(",", ":"), sort_keys=True) + "\n")


def _no_results(turn: Turn) -> dict[str, Any]:
    return {
        "id": turn.query.name,
        "isDuringSearch": False,
        "noResults": True,
        "turnNumber": turn.number,
    }


def _turn_numbers(fields: dict[str, Any]) -> set[int] | None:
    numbers = fields.get("turnNumbers")
    if numbers is None:
        return None
    if not isinstance(numbers, list) or not all(
        isinstance(number, int) and not isinstance(number, bool) for number in numbers
    ):
        raise QueryError("turnNumbers", "turnNumbers must be an array of integers")
    return set(numbers)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def serve(
    make_engine: Callable[[Callable[[str], None]], AnalysisEngine],
    source: IO[bytes],
    sink: IO[bytes],
    *,
    quits_at_once: bool = False,
) -> None:
    """Answer every line of `source` on `sink`; at its end finish the open queries, or drop them if
    `quits_at_once`, or once nobody reads `sink`.

    Raises:
      Exception: what kept the engine from being started or its network from being loaded.
    """
    reader = LineReader(source, LONGEST_LINE)
    write = LineWriter(sink)

    def answer(text: str) -> None:
        write(text)
        if write.is_closed:
            engine.close(finish=False)

    engine = make_engine(answer)

    def listen() -> None:
        while (line := reader.take()) is not None:
            if line.is_too_long:
                error = f"line too long: more than {LONGEST_LINE} bytes"
                answer(json.dumps({"error": error}) + "\n")
            else:
                engine.handle(line.text.decode("utf-8", errors="replace"))
        engine.close(finish=not quits_at_once)

    threading.Thread(target=listen, name="queries", daemon=True).start()
    with raising_causes():
        _ = engine.game
    engine.run()
    if engine.failure is not None:
        raise engine.failure
