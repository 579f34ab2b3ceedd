"""A visitor's game: its line of moves, the current ply, a resignation; one change or search at a
time."""

import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from azero.console.tables import count_of
from azero.engines.limits import Settings
from azero.engines.session import Session
from azero.engines.web.adapter import Outcome
from azero.engines.web.go_adapter import GoAdapter
from azero.engines.web.networks import FairLock, ServedNetwork, title
from azero.engines.web.squares_adapter import SquaresAdapter
from azero.games.position import Position
from azero.report.boards import CELL, MARGIN

Adapter = GoAdapter | SquaresAdapter
"""A game in progress as the browser needs it: moves and results as text, the board as a diagram."""


class LineMove(NamedTuple):
    """A move of the line."""

    colour: int
    action: int
    name: str
    """As `Adapter.parse` reads it."""
    label: str
    """As people write it."""
    comment: str = ""
    """In the record that was opened."""


class WebGame:
    """One game. The line of moves may continue after the current position: moves that were taken
    back can be replayed."""

    def __init__(
        self,
        network_key: str,
        network: ServedNetwork,
        adapter: Adapter,
        comments: Sequence[str] = (),
    ) -> None:
        """Begin with the moves that `adapter` has played so far, and their comments, if any."""
        self.key = secrets.token_urlsafe(12)
        self.network_key, self.network, self.adapter = network_key, network, adapter
        self.settings = Settings()
        """Used for resignation only."""
        self.players = ("", "")
        self.note = ""
        """A note for the visitor."""
        self.place = (1, 1)
        """Number of the game in the file that was opened, and the number of games there."""
        self.used = time.monotonic()
        self.stated_result = ""
        """The result in the record that was opened."""
        self._resigned: int | None = None
        self._lock = FairLock()
        self._stop: threading.Event | None = None
        """Ends the search that holds the lock."""
        self.line: list[LineMove] = []
        all_comments = itertools.chain(comments, itertools.repeat(""))
        moves = zip(self.session.positions, adapter.moves, all_comments, strict=False)
        for position, (colour, action), comment in moves:
            self.line.append(self._turn(position, colour, action)._replace(comment=comment))
        self._ending = self.outcome
        """How the line ended, whatever the current position is."""

    @property
    def session(self) -> Session:
        """The session that holds the positions."""
        return self.adapter.session

    @property
    def position(self) -> Position:
        """The current position."""
        return self.session.position

    @property
    def ply(self) -> int:
        """Moves up to the current position."""
        return self.session.num_moves

    def _turn(self, position: Position, colour: int, action: int) -> LineMove:
        (name,) = self.adapter.format_line(position, [action])
        return LineMove(colour, action, name, self.adapter.label(position, action))

    @contextlib.contextmanager
    def turn(self, stop: threading.Event | None = None) -> Iterator[None]:
        """Lock the game for a change, or for a search, which ends once `stop` is set: that happens
        when another thread waits for the lock. Threads get it in the order in which they ask."""
        self._lock.acquire(self._stop_search)
        try:
            self._stop, self.used = stop, time.monotonic()
            yield
        finally:
            self._stop = None
            self._lock.release()

    def _stop_search(self) -> bool:
        """Stop the search that holds the lock; return False, so that the caller keeps waiting."""
        if (stop := self._stop) is not None:
            stop.set()
        return False

    def play(self, action: int) -> None:
        """Play a move of the side to move; a move that differs from the line cuts the line off
        there.

        Raises:
          ValueError: the game is over, or the move is not legal.
        """
        if self.outcome is not None:
            raise ValueError("the game is over; take a move back to continue")
        position, ply = self.position, self.ply
        if ply >= self.network.limits.moves:
            raise ValueError(f"a game has at most {self.network.limits.moves:,} moves here")
        turn = self._turn(position, position.to_play, action)
        with self.network.rules_lock:
            self.adapter.play(position.to_play, action)
        if [kept[:2] for kept in self.line[ply : ply + 1]] != [turn[:2]]:
            self.line[ply:] = [turn]
            self.stated_result = ""
        if self.ply == len(self.line):  # the game goes on after a resignation, too
            self._resigned, self._ending = None, self.adapter.outcome()

    def go_to(self, ply: int) -> None:
        """Make the position after `ply` moves of the line the current one.

        Raises:
          ValueError: the line is shorter.
        """
        if not 0 <= ply <= len(self.line):
            raise ValueError(
                f"this game has {count_of(len(self.line), 'move')}; there is no move {ply}"
            )
        if self.ply > ply:
            self.settings.take_back()
        while self.ply > ply:
            self.adapter.undo()
        while self.ply < ply:
            turn = self.line[self.ply]
            self.adapter.play(turn.colour, turn.action)

    def resign(self, colour: int) -> None:
        """Resign for one side.

        Raises:
          ValueError: the game is over.
        """
        if self.outcome is not None:
            raise ValueError("the game is over")
        self._resigned = colour
        del self.line[self.ply :]
        self._ending, self.stated_result = self.outcome, ""

    def take_back_resignation(self) -> None:
        """Let the game go on where it was resigned; nothing changes elsewhere."""
        if self.ply == len(self.line):
            self._resigned = None
            self._ending = self.outcome
            self.settings.take_back()

    def text(self, players: tuple[str, str]) -> str:
        """Return the whole line as a record; `players` are the names of a game without any.

        Raises:
          ValueError: there is no format for this game.
        """
        moves = [(turn.colour, turn.action) for turn in self.line]
        names = self.players if any(self.players) else players
        comments = [turn.comment for turn in self.line]
        return self.adapter.text(moves, self._ending, names, self.stated_result, comments)

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended, if the current position is its end."""
        if self._resigned is None or self.ply < len(self.line):
            return self.adapter.outcome()
        winner = 1 - self._resigned
        sides = self.adapter.sides
        return Outcome(winner, f"{sides[winner]} wins: {sides[1 - winner]} resigns", "R")

    def describe(self, *, with_frame: bool = False) -> dict[str, Any]:
        """Return what the page shows of the game."""
        outcome, adapter, position = self.outcome, self.adapter, self.position
        frame = {"frame": adapter.frame(), "cell": CELL, "margin": MARGIN} if with_frame else {}
        rows, columns = position.game.board_shape
        return {
            "id": self.key,
            "network": self.network_key,
            "player": title(self.network.spec),
            "game": adapter.name,
            "board": [rows, columns],
            "sides": adapter.sides,
            "players": self.players,
            "to_play": position.to_play,
            "ply": self.ply,
            "line": [(turn.colour, turn.name, turn.label) for turn in self.line],
            "over": outcome is not None,
            "result": None if outcome is None else outcome.text,
            "winner": None if outcome is None else outcome.winner,
            "resigned": outcome is not None and outcome.reason == "R",
            "saves": adapter.suffix,
            "note": self.note,
            "place": self.place,
            **adapter.facts(),
            **adapter.diagram(),
            **frame,
        }
