"""What an import has to know of a game's records: their files, which games are the same, and how
they are replayed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from azero.config import find
from azero.data.records.filters import GAMES
from azero.games.archives import RecordError
from azero.selfplay.trajectory import HostArray

GROUP = 128
"""Games replayed in one batch (`azero.games.batching.CHUNK`)."""
MOVES_PER_CALL = 64
"""Moves that a compiled program replays."""


class Record(Protocol):
    """The main line of one game as its file has it."""

    @property
    def name(self) -> str:
        """Where it comes from: the file and the number of the game in it."""

    @property
    def moves(self) -> Sequence[Any]:
        """The moves, in the words of the format."""

    @property
    def rewards(self) -> tuple[float, float] | None:
        """Results of the first and the second mover: +1, -1 or 0; None if unknown."""

    @property
    def is_resigned(self) -> bool:
        """The record says that a player resigned."""


@dataclass(frozen=True)
class Replayed:
    """A replayed game up to the move that ends it by our rules."""

    frames: HostArray
    """uint32[T, F]: the positions before the moves."""
    to_play: HostArray
    """uint8[T]: who moves, 0 the first mover of the game, 1 the second."""
    actions: HostArray
    """int16[T]: the moves."""
    problem: str
    """What is wrong with it; "" if it is valid."""


@dataclass(frozen=True)
class RecordFormat:
    """The records of one game."""

    suffixes: tuple[str, ...]
    """Of their files, compressed ones and archives included."""
    read: Callable[[Path, list[RecordError]], Iterator[Any]]
    """(file, list for the errors of games that cannot be read) -> the records; raises ValueError if
    the file cannot be read."""
    estimate: Callable[[Path], int]
    """File -> about how many games it has; 0 if it cannot be read."""
    key: Callable[[Any], bytes]
    """Record -> 16 bytes that are the same for the same game, whatever else differs; if the format
    has several ways to write a move, only where they are written in the same way."""
    replay: Callable[[Any, Sequence[Any]], list[Replayed]]
    """(rules, up to GROUP records) -> the games, replayed in one batch."""
    describe: Callable[[Any, HostArray, int], tuple[str, str]]
    """(rules, rows [T] of whole games, place) -> that position and its move (D4) as text, which is
    empty where none was played."""
    sides: tuple[str, str] = ("Black", "White")
    """The first and the second mover."""
    played_key: Callable[[Any, Replayed], bytes] | None = None
    """(record, the game) -> 16 bytes that are the same however the moves are written; None where
    those of `key` are."""


_FORMATS = {
    "go": "azero.data.records.go_records:FORMAT",
    "chess": "azero.data.records.chess_records:FORMAT",
    "shogi": "azero.data.records.shogi_records:FORMAT",
}


def format_of(game: str) -> RecordFormat:
    """Return the format of a game's records; `game` is that of `azero.data.records.filters`."""
    return find(_FORMATS[game])


def all_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the records of all games."""
    return tuple(dict.fromkeys(suffix for game in GAMES for suffix in format_of(game).suffixes))
