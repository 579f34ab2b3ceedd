"""The command `go` of UCI and USI: its words, and the time they leave for a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from azero.players.clock import Clock, thinking_seconds

if TYPE_CHECKING:
    from azero.games.position import Position

START = "startpos"
"""The usual first position, in `position`."""

OWN_MOVES = 20
"""The main time is divided over this number of own moves (AZ, methods, "Evaluation": a twentieth of
the remaining time for each)."""
_LARGEST = 10**12
MATE_VISITS = 1000
"""Visits for each move of `go mate`: the search cannot prove a mate, so it needs an end; a
choice."""
_FLAGS = ("infinite", "ponder")
_CLOCKS = ("wtime", "btime", "winc", "binc", "movestogo", "byoyomi")
_NUMBERS = (*_CLOCKS, "movetime", "nodes", "depth", "mate")


@dataclass(frozen=True)
class GoRequest:
    """The arguments of one `go`. Times are in seconds."""

    clock: Clock = Clock()  # noqa: RUF009 (an immutable default)
    """The clock of the side to move."""
    seconds: float | None = None
    """movetime"""
    nodes: int | None = None
    depth: int | None = None
    mate: int | None = None
    """Number of moves within which a mate is sought."""
    is_infinite: bool = False
    ponders: bool = False
    """The search continues until ponderhit, and then within its limits."""
    names: tuple[str, ...] = ()
    """searchmoves"""
    unknown: tuple[str, ...] = ()
    """Words that were ignored."""

    @property
    def is_limited(self) -> bool:
        """Whether anything ends the search by itself."""
        limits = (self.seconds, self.nodes, self.depth, self.mate, self.clock.limit_seconds)
        return any(limit is not None for limit in limits)

    @property
    def most_visits(self) -> int | None:
        """Visits at which the search ends, None where nothing sets them; a mate search gets
        MATE_VISITS for each move."""
        mate = None if self.mate is None else max(1, self.mate) * MATE_VISITS
        return min((bound for bound in (self.nodes, mate) if bound is not None), default=None)

    def thinking_seconds(self, position: Position, lag_seconds: float) -> float | None:
        """Return how long to think about `position`; None is without limit."""
        rows, columns = position.game.board_shape
        budget = thinking_seconds(
            self.clock, len(position.actions), rows * columns, lag_seconds, OWN_MOVES
        )
        given = (seconds for seconds in (self.seconds, budget) if seconds is not None)
        return min(given, default=None)


def parse_go(words: Sequence[str], side: str) -> GoRequest:
    """Read the arguments of `go`; `side` is the letter (w or b) whose clock counts.

    Every `go` starts a search and needs a bestmove, so an unknown word, or one without a valid
    number, is ignored (as in Stockfish).
    """
    numbers: dict[str, int] = {}
    flags: set[str] = set()
    names: list[str] = []
    unknown: list[str] = []
    known = (*_FLAGS, *_NUMBERS, "searchmoves")
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _FLAGS:
            flags.add(word)
        elif word == "searchmoves":
            while rest and rest[0] not in known:
                names.append(rest.pop(0))
        elif word in _NUMBERS:
            number = _number(rest[0]) if rest else None
            if number is None:
                unknown.append(word)
            else:
                numbers[word] = number
                rest.pop(0)
        else:
            unknown.append(word)
    return GoRequest(
        clock=_clock(numbers, side),
        seconds=numbers["movetime"] / 1000 if "movetime" in numbers else None,
        nodes=numbers.get("nodes"),
        depth=numbers.get("depth"),
        mate=numbers.get("mate"),
        is_infinite="infinite" in flags,
        ponders="ponder" in flags,
        names=tuple(names),
        unknown=tuple(unknown),
    )


def _number(text: str) -> int | None:
    """Return `text` as an integer within range; None if it is not a number."""
    if re.fullmatch(r"[-+]?[0-9]{1,18}", text) is None:
        return None
    # A clock that has run out may be below zero.
    return min(max(int(text), 0), _LARGEST)


def _clock(numbers: dict[str, int], side: str) -> Clock:
    """Return the clock: moves to go as a Canadian period that runs, byoyomi as a Japanese one,
    increments as Fischer's."""
    main, period = numbers.get(f"{side}time"), numbers.get("byoyomi", 0) / 1000
    if main is None and not period:
        return Clock()
    left, increment = (main or 0) / 1000, numbers.get(f"{side}inc", 0) / 1000
    if moves := numbers.get("movestogo", 0):
        return Clock(
            main_seconds=0.0,
            increment_seconds=increment,
            period_moves=moves,
            period_left=left,
            moves_left=moves,
        )
    return Clock(
        main_seconds=left,
        increment_seconds=increment,
        period_seconds=period,
        periods=1 if period else 0,
    )
