"""The differences between UCI and USI: names, options, units."""

from collections.abc import Callable
from dataclasses import dataclass

from azero.engines.uci.options import MULTI_PV, RESIGN_VALUE, SHOW_WDL, THREADS, Option
from azero.players.thinking import chess_centipawns, shogi_centipawns


@dataclass(frozen=True)
class Dialect:
    """The words and units of one protocol."""

    name: str
    """uci or usi: the first command; the answer ends with it and "ok"."""
    sides: tuple[str, str]
    """Letters of the first and the second player in clocks: White moves first in chess, Black in
    shogi."""
    options: tuple[Option, ...]
    memory: Option
    """Name of the option for the tree's memory in MiB."""
    overhead: Option
    """Name of the option for the milliseconds subtracted from every clock for lag."""
    centipawns: Callable[[float], int]
    no_move: str
    """The answer without a legal move."""
    win: str | None = None
    """The answer that declares an entering king's win, if the game has one."""
    refused_go: tuple[tuple[str, str], ...] = ()
    """Forms of `go` that are answered at once: the first word and the answer."""
    last_words: tuple[str, ...] = ()
    """Commands that end a game: they stop a search and are otherwise ignored."""


def hash_option(name: str) -> Option:
    """Return the option for the memory of the tree in MiB."""
    return Option(name, 1024, (1, 1 << 20))


def overhead_option(name: str) -> Option:
    """Return the option for the milliseconds subtracted from every clock: Move Overhead in
    Stockfish, NetworkDelay in YaneuraOu."""
    return Option(name, 100, (0, 10_000))


_UCI_HASH, _UCI_OVERHEAD = hash_option("Hash"), overhead_option("Move Overhead")
UCI = Dialect(
    name="uci",
    sides=("w", "b"),
    options=(MULTI_PV, _UCI_HASH, THREADS, _UCI_OVERHEAD, Option("Ponder", 0), SHOW_WDL),
    memory=_UCI_HASH,
    overhead=_UCI_OVERHEAD,
    centipawns=chess_centipawns,
    no_move="(none)",
)
"""The Universal Chess Interface (Meyer-Kahlen's description of April 2006)."""

_USI_HASH, _USI_OVERHEAD = hash_option("USI_Hash"), overhead_option("NetworkDelay")
_USI_PONDER = Option("USI_Ponder", 0)
USI = Dialect(
    name="usi",
    sides=("b", "w"),
    options=(_USI_HASH, _USI_PONDER, MULTI_PV, THREADS, _USI_OVERHEAD, RESIGN_VALUE),
    memory=_USI_HASH,
    overhead=_USI_OVERHEAD,
    centipawns=shogi_centipawns,
    no_move="resign",
    win="win",
    refused_go=(("mate", "checkmate notimplemented"),),
    last_words=("gameover",),
)
"""The Universal Shogi Interface (Tord Romstad's description, with the additions of ShogiDokoro's
page)."""
