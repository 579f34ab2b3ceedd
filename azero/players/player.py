"""Host-side players: the Player contract, moves and decisions."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from azero.games.position import Position
from azero.players.clock import Clock

RESIGN = -1
"""The action of a player who resigns."""
ILLEGAL = "illegal move"
"""Begins the reason given where a player loses by a move that our rules forbid."""


class PlayerError(Exception):
    """A player failed: it crashed, did not answer in time, or gave an illegal move. The message
    says which."""


class Move(NamedTuple):
    """A move and the position in which it was played."""

    position: Position
    action: int

    @property
    def name(self) -> str:
        """The move as people write it."""
        return self.position.action_name(self.action)


class Decision(NamedTuple):
    """A player's move."""

    action: int
    """An action, or RESIGN."""
    value: float | None = None
    """The player's value of the position, in [-1, 1] from its own side; None if it gives none."""
    visits: int | None = None
    """Visits of the root, if there is a search."""
    line: tuple[int, ...] = ()
    """Principal variation, starting with the player's own move."""


class Player(Protocol):
    """A player of one game at a time."""

    name: str

    def reset(self) -> None:
        """Begin a new game."""

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Choose a move in `position`, in which this player is to move; the move counts as
        played."""

    def observe(self, move: Move) -> None:
        """Note a move of the opponent."""


MakePlayer = Callable[[int], Player]
"""Makes the player of the game with a number; a program is started for every game."""
