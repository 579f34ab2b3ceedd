"""The options of a UCI or USI engine, and what else differs between the protocols: names, units."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from azero.players.thinking import chess_centipawns, shogi_centipawns


@dataclass(frozen=True)
class Option:
    """One option: an integer within bounds or, without bounds, a switch."""

    name: str
    default: int
    bounds: tuple[int, int] | None = None

    def describe(self) -> str:
        """Return the line that declares it."""
        if self.bounds is None:
            kind, values = "check", f"default {'true' if self.default else 'false'}"
        else:
            kind, (low, high) = "spin", self.bounds
            values = f"default {self.default} min {low} max {high}"
        return f"option name {self.name} type {kind} {values}"

    def parse(self, text: str) -> int:
        """Return the value that `text` means.

        Raises:
          ValueError: it is not allowed; the allowed values are named.
        """
        if self.bounds is None:
            if text.lower() not in ("true", "false"):
                raise ValueError(f"{self.name} is true or false, not {text[:20]!r}")
            return int(text.lower() == "true")
        low, high = self.bounds
        if re.fullmatch(r"-?[0-9]{1,9}", text) is None or not low <= int(text) <= high:
            raise ValueError(
                f"{self.name} is a whole number from {low} to {high}, not {text[:20]!r}"
            )
        return int(text)


MULTI_PV = Option("MultiPV", 1, (1, 500))
THREADS = Option("Threads", 1, (1, 1024))
"""Accepted because some GUIs always set it; the network uses the cores that XLA gives it."""
SHOW_WDL = Option("UCI_ShowWDL", 0)
"""Offered with a network that has outputs for loss, draw and win."""
RESIGN_VALUE = Option("ResignValue", 99_999, (0, 99_999))
"""Deficit in centipawns at which the engine resigns (the name and the default, never, are
YaneuraOu's)."""


class UciOptions:
    """The options of one engine and their values."""

    def __init__(self, options: Sequence[Option]) -> None:
        self._options = {option.name.lower(): option for option in options}
        self._values = {name: option.default for name, option in self._options.items()}

    def __getitem__(self, option: Option) -> int:
        """Return the value of an option; its default where the engine does not offer it."""
        return self._values.get(option.name.lower(), option.default)

    def describe(self) -> list[str]:
        """Return the lines that declare the options."""
        return [option.describe() for option in self._options.values()]

    def set(self, words: Sequence[str]) -> None:
        """Carry out the arguments of setoption, "name NAME value VALUE"; names may contain spaces
        and are not case-sensitive.

        Raises:
          ValueError: there is no such option, or the value is not one of its own.
        """
        rest = list(words)
        if rest[:1] != ["name"] or "value" not in rest:
            raise ValueError("setoption takes: name NAME value VALUE")
        cut = rest.index("value")
        name, value = " ".join(rest[1:cut]), " ".join(rest[cut + 1 :])
        option = self._options.get(name.lower())
        if option is None:
            raise ValueError(
                f"there is no option {name[:40]!r}; the options are "
                f"{', '.join(known.name for known in self._options.values())}"
            )
        self._values[name.lower()] = option.parse(value)


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
