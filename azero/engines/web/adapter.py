"""What the browser needs of a game in progress, of whatever kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from azero.data.run_files import StoredGame
from azero.engines.session import Session
from azero.games.position import Position


class Outcome(NamedTuple):
    """How a game ended."""

    winner: int | None
    """0 the first mover, 1 the second, None neither."""
    text: str
    reason: str = ""
    """R for a resignation or a margin, as in SGF."""


class Adapter(Protocol):
    """What the browser needs of a game."""

    name: str
    """Of the game."""
    sides: tuple[str, str]
    suffix: str
    """Of the files it can be saved as; empty if there is no such format."""

    @property
    def session(self) -> Session:
        """The session of the game."""
        ...

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Colour and action of every move so far."""
        ...

    def play(self, colour: int, action: int) -> None:
        """Play a legal move. Raises ValueError if it is not."""
        ...

    def undo(self) -> None:
        """Take the last move back."""
        ...

    def parse(self, text: str) -> int:
        """Return the action called `text`. Raises ValueError if there is none."""
        ...

    def format_line(self, position: Position, actions: Sequence[int]) -> list[str]:
        """Return the moves of a line from `position` on, each as `parse` reads it."""
        ...

    def label(self, position: Position, action: int) -> str:
        """Return a legal move as people write it."""
        ...

    def diagram(self) -> dict[str, Any]:
        """Return what stands on the board, and what may be played."""
        ...

    def frame(self) -> str:
        """Return the empty board as an SVG."""
        ...

    def outcome(self) -> Outcome | None:
        """Return how the rules ended the game; None while it goes on."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what else there is to know: komi, handicap."""
        ...

    def text(
        self,
        moves: Sequence[tuple[int, int]],
        outcome: Outcome | None,
        players: tuple[str, str],
        stated: str = "",
    ) -> str:
        """Return a game from this one's beginning as a record.

        Args:
          moves: colour and action of each.
          outcome: how it ended, if it did here.
          players: names of the first and the second mover.
          stated: else the result that the record had from which it was opened.

        Raises:
          ValueError: there is no format for this game.
        """
        ...


def rewards_of(outcome: Outcome) -> tuple[float, float]:
    """Return the results of the first and the second mover."""
    first = {0: 1.0, 1: -1.0, None: 0.0}[outcome.winner]
    return first, -first


def outcome_by_rules(position: Position, sides: tuple[str, str]) -> Outcome:
    """Return how a game that is over has ended by its rewards."""
    first, second = position.rewards
    if first == second:
        return Outcome(None, "The game is a draw")
    winner = int(second > first)
    return Outcome(winner, f"{sides[winner]} wins")


def empty_board(name: str, shape: tuple[int, int]) -> StoredGame:
    """Return a game without moves, to be drawn."""
    return StoredGame(name, shape, (), (0.0, 0.0))
