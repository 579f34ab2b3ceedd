"""The common part of UCI and USI engines: lines in, answers out, and commands during a search; see
`dialects` for the differences."""

from __future__ import annotations

import math
import re
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from azero import __version__
from azero.console.standard_output import say
from azero.engines.background import (
    WAIT_SECONDS,
    Background,
    ProtocolEngine,
    StartError,
    importing,
)
from azero.engines.lines import InputLine, LineReader, LineWriter
from azero.engines.moves import best_action
from azero.engines.uci.dialects import MULTI_PV, RESIGN_VALUE, SHOW_WDL, Dialect, UciOptions
from azero.engines.uci.info import format_info, win_draw_loss
from azero.engines.uci.search import SearchControl
from azero.players.thinking import Analysis, Limits, MoveInfo, Restriction, ThinkOptions
from azero.players.uci_go import START, GoRequest, parse_go

if TYPE_CHECKING:
    from azero.engines.pieces_game import PiecesGame
    from azero.games.position import Position

LONGEST_LINE = 1 << 20
"""Bytes of a line; a game of 10,000 moves takes 50,000."""
READY_SECONDS = 8.0
"""The longest that the first `isready` waits for the network; some programs wait ten seconds."""
LOADING_RESERVE = 2.0
"""Seconds of main time that are kept while the network is not ready: each answer costs some time,
which increments may not give back."""
PROGRESS_SECONDS = 0.5
"""Time between two reports of a search."""
DEPTH_VISITS = 1000
"""Visits for each move of `go depth` after which the search also ends if its best line ends the
game; a choice."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class UciEngine(ProtocolEngine["PiecesGame"]):
    """An engine for one game in one dialect. Any line gets the protocol's answer, an `info string`
    or silence, never a crash."""

    def __init__(
        self,
        dialect: Dialect,
        game: PiecesGame | Background[PiecesGame],
        lines: LineReader,
        write: LineWriter,
        *,
        visits: int | None = None,
        has_draws: bool = False,
    ) -> None:
        """Serve `game`, which may still be loading: only a search waits for it. `visits`
        bounds every search that is not infinite; `has_draws` says that the network has outputs for
        loss, draw and win."""
        super().__init__(game)
        self.dialect = dialect
        self.options = UciOptions(
            [option for option in dialect.options if has_draws or option != SHOW_WDL]
        )
        self._visits = visits
        self._lines = lines
        self._write = write
        self._megabytes: int | None = None
        self._pending_position: list[str] | None = None
        """The words of a `position` that arrived before the network was ready."""
        self._last_position: list[str] = [START]
        """The words of the last `position`."""
        self._go_words: list[str] = []
        """The words of the last `go` and of its `ponderhit`."""
        self._search: SearchControl | None = None
        self._ready_end: float | None = None
        """Time at which `isready` is answered whether the network is ready or not."""
        self._is_refused = False
        """The last position was refused: there is nothing to search until the next one."""
        self._commands: dict[str, Callable[[list[str]], None]] = {
            dialect.name: self._identify,
            "isready": self._is_ready,
            f"{dialect.name}newgame": self._new_game,
            "position": self._position,
            "go": self._go,
            "stop": self._stop,
            "ponderhit": self._ponderhit,
            "setoption": self.options.set,
            "quit": self._quit,
            **dict.fromkeys(("debug", "register"), lambda words: None),
            **dict.fromkeys(dialect.last_words, self._stop),
        }
        self._during_search = {"isready", "stop", "ponderhit", "quit", "debug", *dialect.last_words}

    def run(self) -> None:
        """Answer lines until `quit` or the end of the input.

        Raises:
          Exception: what kept the engine from being started or its network from being loaded.
        """
        self.answer_lines(self.handle, self._lines, self._write)

    def handle(self, line: InputLine) -> None:
        """Carry out one line."""
        if line.is_too_long:
            self._send_info(f"line too long: more than {LONGEST_LINE} bytes")
            return
        words = _CONTROL.sub(" ", line.text.decode("utf-8", errors="replace")).split()
        if not words:
            return
        command = self._commands.get(words[0])
        if command is None:
            self._send_info(
                f"unknown command {words[0][:40]!r}; the commands are {' '.join(self._commands)}"
            )
        elif self._search is not None and words[0] not in self._during_search:
            self._send_info(f"{words[0]} is ignored during a search: send stop first")
        else:
            self._carry_out(command, words)

    def _carry_out(self, command: Callable[[list[str]], None], words: list[str]) -> None:
        try:
            command(words[1:])
        except ValueError as error:
            self._send_info(f"{words[0]}: {error}")
        except StartError as error:
            self.failure = error.__cause__
            self._send_info(f"cannot play: {error}")
        # an error in one command must not end the engine
        except Exception as error:
            self._report_failure(error)

    def _report_failure(self, error: Exception) -> None:
        """Send an `info string` about the error that is handled; its traceback goes to standard
        error."""
        say(traceback.format_exc())
        self._send_info(f"internal error: {type(error).__name__}: {error}")

    def _send(self, line: str) -> None:
        self._write(line + "\n")

    def _send_info(self, text: str) -> None:
        """Send an `info string`."""
        printable = "".join(
            letter if letter.isprintable() else "?" for letter in " ".join(text.split())
        )
        self._send(f"info string {printable}")

    def _identify(self, words: list[str]) -> None:
        self._send(f"id name azero {__version__}\nid author the azero authors")
        for line in self.options.describe():
            self._send(line)
        self._send(f"{self.dialect.name}ok")

    def _is_ready(self, words: list[str]) -> None:
        """Answer when the network is ready, READY_SECONDS after the first `isready` or at further
        input at the latest.

        No clock runs at the first one, as in a later one it may; a search that comes before the
        network is ready waits for it itself.
        """
        if self._ready_end is None:
            self._ready_end = time.monotonic() + READY_SECONDS
        end = self._ready_end
        while self._search is None and not self._can_search() and time.monotonic() < end:
            if self._lines.is_waiting():
                break
            time.sleep(WAIT_SECONDS)
        self._send("readyok")

    def _can_search(self) -> bool:
        """Whether the network is ready, or cannot be loaded."""
        return not self.is_starting and (self._loading.has_failed or self.game.session.can_think())

    def _new_game(self, words: list[str]) -> None:
        self._pending_position, self._last_position = None, [START]
        if self._can_search():
            self.game.new_game()
        self._is_refused = False

    def _position(self, words: list[str]) -> None:
        # Until the network is ready the rules may still be compiling, which `go` must not wait for.
        if self._can_search():
            self._set_up(words)
        else:
            self._pending_position, self._is_refused = words, False

    def _set_up(self, words: list[str]) -> None:
        self._pending_position, self._last_position = None, words
        self._is_refused = True
        keyword = self.game.notation.keyword
        cut = words.index("moves") if "moves" in words else len(words)
        if words[:1] == [START] and cut == 1:
            start = START
        elif words[:1] == [keyword] and cut > 1:
            start = " ".join(words[1:cut])
        else:
            raise ValueError(
                f"it takes {START} or {keyword} and a position, then moves and the moves, "
                f"not {' '.join(words)[:60]!r}"
            )
        self.game.set_up(start, words[cut + 1 :])
        self._is_refused = False

    def _stop(self, words: list[str]) -> None:
        if self._search is not None:
            self._search.stop()

    def _ponderhit(self, words: list[str]) -> None:
        if self._search is None:
            raise ValueError("nothing is being pondered")
        # Early pondering of shogi programs: the clocks come with `ponderhit`, not with `go ponder`.
        self._go_words = [*self._go_words, *words]
        if words and self._can_search():
            self._limit(self._search)
        self._search.ponderhit()

    def _quit(self, words: list[str]) -> None:
        self.has_quit = True
        self._stop(words)

    def _go(self, words: list[str]) -> None:
        for kind, answer in self.dialect.refused_go:
            if words[:1] == [kind]:
                self._send(answer)
                return
        self._go_words = words
        # Whose clock counts is known when the position is; the time runs from here.
        request = parse_go(words, self.dialect.sides[0])
        search = SearchControl(
            self._lines,
            self.handle,
            waits=request.is_infinite or request.ponders,
            depth=request.depth,
            is_closed=lambda: self._write.is_closed,
        )
        self._search = search
        try:
            line = self._search_and_answer(request.names, search)
        except StartError:
            raise
        # without an answer the program that asked would wait for ever
        except Exception as error:
            self._report_failure(error)
            search.wait()
            line = self._any_move(request.names, "the search failed")
        finally:
            self._search = None
        if line is not None:
            self._send(line)

    def _search_and_answer(self, wanted: Sequence[str], search: SearchControl) -> str | None:
        """Search, and return the bestmove line once it may be sent; None if none is expected any
        more."""
        if not self._wait_for_network(search):
            if self.has_quit or self._write.is_closed:
                return None
            return self._any_move(wanted, "the network is still loading and compiling")
        _ = self.game  # raises the reason if the engine could not start
        if self._pending_position is not None:
            self._carry_out(self._set_up, ["position", *self._pending_position])
        if self._is_refused:
            # A move of an older position would be illegal.
            self._send_info("go: the last position was refused; send another one")
            search.wait()
            return f"bestmove {self.dialect.no_move}"
        position, request = self._limit(search)
        if self._megabytes != self.options[self.dialect.memory]:
            self._megabytes = self.options[self.dialect.memory]
            self.game.session.load_thinker().limit_memory(self._megabytes)
        answer = self._answer(position, request, search)
        search.wait()
        return answer

    def _limit(self, search: SearchControl) -> tuple[Position | None, GoRequest]:
        """Set how long the search takes by the words of `go`; return the position, None where the
        game is over, and the request."""
        from azero.players.notation import as_unfinished

        request = parse_go(self._go_words, self.dialect.sides[self.game.position.to_play])
        if request.unknown:
            self._send_info(f"go: {' '.join(request.unknown)[:60]!r} is not understood and ignored")
        position = as_unfinished(self.game.position)
        seconds, lag = None, self.options[self.dialect.overhead] / 1000
        if position is not None:
            seconds = request.thinking_seconds(position, lag)
        is_unlimited = not request.is_limited and self._visits is None
        search.limit(seconds, is_endless=request.is_infinite or is_unlimited)
        return position, request

    def _wait_for_network(self, search: SearchControl) -> bool:
        """Handle input lines until the network is ready, or cannot be loaded; return False if the
        search must be answered before, or not at all."""
        while not self._can_search():
            search.should_stop()
            requests = [parse_go(self._go_words, side) for side in self.dialect.sides]
            waits = [seconds for seconds in map(_loading_seconds, requests) if seconds is not None]
            is_late = bool(waits) and search.is_over_after(min(waits))
            if self.has_quit or self._write.is_closed or search.is_stopped or is_late:
                return False
            time.sleep(WAIT_SECONDS)
        return True

    def _any_move(self, wanted: Sequence[str], reason: str) -> str:
        """Return any legal move as the answer, one of `wanted` if possible, since silence would
        lose the game; `reason` is sent as information."""
        with importing:  # the game may still be loading
            from azero.players.notation import first_legal_move

        words = self._pending_position or self._last_position
        try:
            name = first_legal_move(self.dialect.name, words, wanted)
        except ValueError as error:
            self._send_info(f"position: {error}")
            name = None
        if name is None:
            return f"bestmove {self.dialect.no_move}"
        self._send_info(f"{reason}: this is an arbitrary legal move")
        return f"bestmove {name}"

    def _answer(self, position: Position | None, request: GoRequest, search: SearchControl) -> str:
        """Search and return the line that ends it."""
        from azero.players.notation import may_declare_win

        if self.dialect.win is not None and may_declare_win(self.game.position):
            return f"bestmove {self.dialect.win}"
        if position is None:
            lost = self.game.position.rewards[self.game.position.to_play] < 0
            self._send(f"info depth 0 score {'mate 0' if lost else 'cp 0'}")
            return f"bestmove {self.dialect.no_move}"
        restriction = self._restriction(position, request.names)
        analysis = self._think(position, request, search, restriction)
        line: tuple[int, ...] = (best_action(position, analysis, restriction),)
        if analysis.moves:
            best = analysis.moves[0]
            if self.dialect.centipawns(best.value) <= -self.options[RESIGN_VALUE]:
                return f"bestmove {self.dialect.no_move}"
            line = best.line[:2]
        names = self.game.notation.format_line(position, line)
        return f"bestmove {names[0]}" + (f" ponder {names[1]}" if len(names) > 1 else "")

    def _think(
        self,
        position: Position,
        request: GoRequest,
        search: SearchControl,
        restriction: Restriction | None,
    ) -> Analysis:
        from azero.players.notation import LineNames

        bounds = (request.most_visits, None if request.is_infinite else self._visits)
        names = LineNames(self.game.notation, position)

        def report(analysis: Analysis) -> None:
            # Descents that end with the game get no longer, however many there are.
            is_deepest = (
                request.depth is not None
                and analysis.visits >= DEPTH_VISITS * request.depth
                and _ends_game(position, analysis)
            )
            search.depth = math.inf if is_deepest else analysis.depth
            shown = analysis.moves[: self.options[MULTI_PV]]
            scores = self._scores(position, shown)
            for order, score in enumerate(scores, start=1):
                self._send(format_info(names, analysis, order, score))

        return self.game.session.think(
            position,
            Limits(visits=min((b for b in bounds if b is not None), default=None)),
            ThinkOptions(search.should_stop, report, PROGRESS_SECONDS, restriction),
        )

    def _restriction(self, position: Position, names: Sequence[str]) -> Restriction | None:
        """Return the restriction to the moves of searchmoves, None without any; illegal ones are
        reported and ignored."""
        chosen = []
        for name in names:
            try:
                chosen.append(self.game.notation.parse_move(position, name))
            except ValueError as error:
                self._send_info(f"searchmoves: {error}")
        if not chosen:
            return None
        return Restriction.first_move(chosen, position.to_play, position.legal.size)

    def _scores(self, position: Position, moves: Sequence[MoveInfo]) -> list[str]:
        """Return the scores of moves as the protocol writes them."""
        scores = [f"cp {self.dialect.centipawns(move.value)}" for move in moves]
        if not self.options[SHOW_WDL]:
            return scores
        actions = [move.action for move in moves]
        draws = self.game.session.estimate_draws(position, actions)
        if draws is None:
            return scores
        return [
            "{} wdl {} {} {}".format(score, *win_draw_loss(move.value, draw))
            for score, move, draw in zip(scores, moves, draws, strict=True)
        ]


def _ends_game(position: Position, analysis: Analysis) -> bool:
    """Return whether the best line of an analysis of `position` ends the game."""
    for action in analysis.moves[0].line if analysis.moves else ():
        if not position.is_over:
            position = position.play(action)
    return position.is_over


def _loading_seconds(request: GoRequest) -> float | None:
    """Return how many seconds a search waits for its network to load: its move time, or half of
    what is left on the clock, of main time without LOADING_RESERVE; None is without limit."""
    left = request.clock.limit_seconds
    if left is None:
        return request.seconds
    reserve = 0.0 if request.clock.period_seconds else LOADING_RESERVE
    return max(0.0, left - reserve) / 2
