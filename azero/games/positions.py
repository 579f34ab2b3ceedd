"""Start positions from a file with one position per line. Host side only."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np

from azero.games.game import Game
from azero.games.quoting import reason
from azero.types import Array, PyTree

_EPD = re.compile(r"(\S+(?: +\S+){3})((?: +\d+){2})?((?: +[A-Za-z]\w*(?: [^;]*)?;)+)")
"""The four fields of a position in EPD, a FEN's two counts, which some files have there, and
operations (PGN standard, section 16.2)."""


@runtime_checkable
class ReadsPositions(Protocol):
    """A game that can begin with any position given as a line of text."""

    def from_positions(self, lines: Sequence[str]) -> PyTree:
        """Return the states of games that start from these positions, as numpy arrays [P, ...].

        Raises:
          ValueError: a line is not a position of the game; what is wrong is named.
        """

    def is_terminal(self, state: PyTree) -> Any:
        """Return whether the game is over."""


def word(value: int) -> Array:
    """Return a number as uint32[1]."""
    return np.array([value], np.uint32)  # type: ignore[return-value]


def join(parts: Sequence[Any]) -> Any:
    """Return one or more trees of numpy words [1], such as positions of one game, as one tree of
    words [P]."""
    return jax.tree.map(lambda *words: np.concatenate(words), *parts)


def read_positions(game: Game, path: Path) -> tuple[list[str], PyTree]:
    """Return the lines of a file with one position per line, and the start states of games from
    them, as numpy arrays [P, ...].

    The positions are in the notation of the game: FEN or EPD, which becomes FEN, for chess and
    minichess, SFEN for shogi and animal shogi. Empty lines and lines that begin with # are skipped.

    Raises:
      ValueError: the game has no such notation, the file cannot be read or holds no position, or a
        line is wrong or of a finished game; the file and the line's number are named.
    """
    if not isinstance(game, ReadsPositions):
        raise ValueError(
            f"start positions can be given for chess, minichess, shogi and animal_shogi, not for "
            f"{game.name}"
        )
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the start positions in {path}: {reason(error)}") from error
    rows = [
        (number, _without_operations(line.strip()))
        for number, line in enumerate(content.splitlines(), 1)
        if line.strip() and not line.startswith("#")
    ]
    if not rows:
        raise ValueError(f"{path} holds no start position; write one on each line")
    lines = [line for _, line in rows]
    different = {line: index for index, line in enumerate(dict.fromkeys(lines))}
    try:
        states = game.from_positions(list(different))
    except ValueError:
        for number, line in rows:  # which one is it?
            try:
                game.from_positions([line])
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
        raise
    index = np.asarray([different[line] for line in lines])
    states = jax.tree.map(lambda leaf: leaf[index], states)
    over = np.flatnonzero(np.asarray(jax.vmap(game.is_terminal)(states)))
    if over.size:
        number, line = rows[int(over[0])]
        raise ValueError(f"{path}, line {number}: in {line!r} the game is already over")
    return lines, states


def _without_operations(line: str) -> str:
    """Return a position in EPD as FEN, with the counts of the operations hmvc and fmvn; any other
    line as it is."""
    found = _EPD.fullmatch(line)
    if found is None:
        return line
    position, counts, operations = found.groups()
    clock, number = (re.search(rf" {name} +(\d+);", operations) for name in ("hmvc", "fmvn"))
    return position + (counts or f" {clock[1] if clock else 0} {number[1] if number else 1}")
