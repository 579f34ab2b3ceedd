"""Shared by the adapters of all games for the browser: results, and an empty board."""

from typing import NamedTuple

from azero.data.run_files import StoredGame
from azero.games.position import Position


class Outcome(NamedTuple):
    """The end of a game."""

    winner: int | None
    """0 the first mover, 1 the second, None neither."""
    text: str
    reason: str = ""
    """R for a resignation or a margin, as in SGF."""


def rewards_of(outcome: Outcome) -> tuple[float, float]:
    """Return the results of the first and the second mover."""
    first = {0: 1.0, 1: -1.0, None: 0.0}[outcome.winner]
    return first, -first


def outcome_by_rules(position: Position, sides: tuple[str, str]) -> Outcome:
    """Return how a game that is over has ended by its rewards."""
    first, second = position.rewards
    why = f" ({position.ending})" if position.ending else ""
    if first == second:
        return Outcome(None, f"The game is a draw{why}")
    winner = int(second > first)
    return Outcome(winner, f"{sides[winner]} wins{why}")


def empty_board(name: str, shape: tuple[int, int]) -> StoredGame:
    """Return a game without moves, to be drawn."""
    return StoredGame(name, shape, (), (0.0, 0.0))
