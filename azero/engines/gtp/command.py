"""The input of every GTP command: its words, the game, the settings, and a way to send partial
answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from azero.engines.limits import Settings
from azero.games.go.text import format_vertex, parse_vertex

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame


class CommandError(Exception):
    """A command cannot be carried out. The message is the answer after the question mark, in the
    protocol's words where it prescribes them."""


class Reply:
    """The answer to one command, whole or in pieces."""

    def __init__(self, write: Callable[[str], None], number: str = "") -> None:
        self._write = write
        self._number = number
        self._has_begun = False

    def begin(self) -> None:
        """Begin an answer that comes in pieces."""
        self._write(f"={self._number}\n")
        self._has_begun = True

    def send(self, line: str) -> None:
        """Send a line of an answer that has begun."""
        self._write(line + "\n")

    def finish(self, text: str) -> None:
        """End the answer, with `text` as all of it or as its last line."""
        body = text
        if "\n" in text:
            body = "\n".join(line for line in text.split("\n") if line.strip())
        if self._has_begun:
            self._write(f"{body}\n\n" if body else "\n")
        else:
            lead = "\n" if text.startswith("\n") else " " if body else ""
            self._write(f"={self._number}{lead}{body}\n\n")

    def fail(self, message: str) -> None:
        """Answer with an error. An answer that has begun can only be ended."""
        line = " ".join(message.split())
        self._write("\n" if self._has_begun else f"?{self._number} {line}\n\n")


@dataclass(frozen=True)
class Call:
    """One command with what it works on."""

    words: list[str]
    """Its arguments."""
    game: GoGame
    settings: Settings
    reply: Reply

    def need(self, count: int, what: str) -> None:
        """Raise CommandError unless there are at least `count` arguments."""
        if len(self.words) < count:
            raise CommandError(f"syntax error: {what} needed")

    def colour(self) -> int:
        """Return the colour that is the first argument: 0 for Black, 1 for White."""
        self.need(1, "a colour")
        return parse_colour(self.words[0])

    def vertex(self, index: int) -> int:
        """Return the action of a vertex of the current board, or pass."""
        self.need(index + 1, "a vertex")
        return self.parse_vertex(self.words[index])

    def parse_vertex(self, word: str) -> int:
        """Return the action of the vertex `word`."""
        try:
            return parse_vertex(word[:20], self.game.shape)
        except ValueError as error:
            raise CommandError(f"syntax error: {error}") from error

    def integer(self, index: int, least: int, most: int) -> int:
        """Return an integer argument within bounds."""
        self.need(index + 1, "a number")
        return parse_integer(self.words[index], least, most)

    def number(self, index: int) -> float:
        """Return a finite float argument."""
        self.need(index + 1, "a number")
        return parse_number(self.words[index])

    def format_vertex(self, action: int) -> str:
        """Return the action as text: D4, or pass."""
        return format_vertex(action, self.game.shape)


Command = Callable[[Call], str | None]
"""Carries a command out and returns its answer, None where it is empty."""


def parse_colour(word: str) -> int:
    """Return 0 for b or black, 1 for w or white, in upper or lower case."""
    colours = {"b": 0, "black": 0, "w": 1, "white": 1}
    if word.lower() not in colours:
        raise CommandError(f"syntax error: {word[:20]!r} is not a colour (black or white)")
    return colours[word.lower()]


def parse_integer(word: str, least: int, most: int) -> int:
    """Return an integer between two bounds."""
    is_integer = re.fullmatch(r"[-+]?[0-9]{1,18}", word) is not None
    if not is_integer or not least <= int(word) <= most:
        raise CommandError(f"syntax error: {word[:20]!r} is not an integer from {least} to {most}")
    return int(word)


def parse_number(word: str) -> float:
    """Return a finite number."""
    try:
        value = float(word) if word.isascii() and "_" not in word else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CommandError(f"syntax error: {word[:20]!r} is not a number")
    return value
