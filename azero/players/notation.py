"""The notation of positions and moves of games with pieces: one table for engines, external
programs, matches and pages. Host side only."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax.numpy as jnp

from azero.games.animal_shogi import text as animal_text
from azero.games.chess import text as chess_text
from azero.games.minichess import text as minichess_text
from azero.games.position import Position
from azero.games.shogi import text as shogi_text
from azero.games.shogi.sfen import START
from azero.types import PyTree

MAX_BOARDS = 10_000
"""Boards kept to name the moves of one search."""


@dataclass(frozen=True)
class MoveNotation:
    """The notation of one game. A board is the game's own host-side view of a state."""

    protocol: str
    """Protocol of its programs: uci or usi; empty without one."""
    keyword: str
    """Keyword before a position in text: fen or sfen."""
    start: str
    """The usual first position in text."""
    parse_board: Callable[[str], Any]
    """Returns the board of a position in text."""
    board_of: Callable[[PyTree], Any]
    """Returns the board of a state; it has `after(action)`, and the legal actions by `names`."""
    format_move: Callable[[Any, int], str]
    format_position: Callable[[Any], str]

    def parse_move(self, position: Position, name: str) -> int:
        """Return the legal action called `name`.

        Raises:
          ValueError: no legal move has this name; the name and the position are quoted.
        """
        return self.parse_board_move(self.board_of(position.state), name)

    def parse_board_move(self, board: Any, name: str) -> int:
        """Return the legal action of a board called `name`; errors as of `parse_move`."""
        if name not in board.names:
            raise ValueError(f"{name[:20]!r} is not a legal move in {self.format_position(board)}")
        return board.names[name]

    def format_line(self, position: Position, actions: Sequence[int]) -> list[str]:
        """Return the names of moves that follow one another from `position` on."""
        return LineNames(self, position)(actions)


class LineNames:
    """Names the moves of lines from one position. Playing a move on the host takes milliseconds, so
    the boards of earlier lines are kept."""

    def __init__(self, notation: MoveNotation, position: Position) -> None:
        self._notation = notation
        self._first = notation.board_of(position.state)
        self._boards: dict[tuple[int, ...], Any] = {}

    def __call__(self, actions: Sequence[int]) -> list[str]:
        """Return the names of moves that follow one another."""
        return [
            self._notation.format_move(self._after(tuple(actions[:index])), action)
            for index, action in enumerate(actions)
        ]

    def _after(self, actions: tuple[int, ...]) -> Any:
        """Return the board after `actions`."""
        if not actions:
            return self._first
        if actions not in self._boards:
            board = self._after(actions[:-1]).after(actions[-1])
            if len(self._boards) >= MAX_BOARDS:
                self._boards.clear()
            self._boards[actions] = board
        return self._boards[actions]


def _of_chess(text: ModuleType) -> MoveNotation:
    """Return the notation of chess or minichess, of which `text` is the module."""
    return MoveNotation(
        protocol="uci",
        keyword="fen",
        start=text.START,
        parse_board=text.board_of_fen,
        board_of=text.board_of_state,
        format_move=text.format_uci,
        format_position=text.format_fen,
    )


NOTATIONS = {
    "chess": _of_chess(chess_text),
    "minichess": _of_chess(minichess_text),
    "shogi": MoveNotation(
        protocol="usi",
        keyword="sfen",
        start=START,
        parse_board=shogi_text.board_of_sfen,
        board_of=shogi_text.board_of_state,
        format_move=shogi_text.format_usi,
        format_position=shogi_text.format_sfen,
    ),
    "animal_shogi": MoveNotation(
        protocol="",
        keyword="sfen",
        start=animal_text.START,
        parse_board=animal_text.board_of_sfen,
        board_of=animal_text.board_of_state,
        format_move=animal_text.format_move,
        format_position=animal_text.format_sfen,
    ),
}
"""By the name of the game."""


def first_legal_move(protocol: str, words: Sequence[str], wanted: Sequence[str] = ()) -> str | None:
    """Return a legal move in the position that the words of `position` describe, the first of
    `wanted` that is legal if there is one; None if the game is over. Nothing is compiled.

    Raises:
      ValueError: there is no such position, or a move is not legal.
    """
    cut = words.index("moves") if "moves" in words else len(words)
    start, names = tuple(words[:cut]), tuple(words[cut + 1 :])
    for count in range(len(names)):
        _board_after(protocol, start, names[:count])
    _, board = _board_after(protocol, start, names)
    return next((name for name in (*wanted, *board.names) if name in board.names), None)


@functools.lru_cache(maxsize=1024)
def _board_after(
    protocol: str, start: tuple[str, ...], names: tuple[str, ...]
) -> tuple[MoveNotation, Any]:
    """Return the notation, and the board after the moves `names` from the words of a position. A
    game is sent again before every move, so its boards are kept. Ask for them in order:
    the recursion is as deep as boards are missing."""
    if names:
        notation, board = _board_after(protocol, start, names[:-1])
        return notation, board.after(notation.parse_board_move(board, names[-1]))
    notation = next(known for known in NOTATIONS.values() if known.protocol == protocol)
    text = " ".join(start[1:]) if start[:1] == (notation.keyword,) else ""
    return notation, notation.parse_board(text or notation.start)


def as_unfinished(position: Position) -> Position | None:
    """Return `position` as unfinished, for a game in which no draw or win was claimed; None where
    there is no legal move.

    Our rules end a game by themselves at a repetition, after fifty moves, at bare kings, or with an
    entering king; other programs may play on. History and counts stay as they are, so that the
    search sees what can be claimed again. Moves and results are those of the same rules.
    """
    if not position.is_over:
        return position
    state: Any = position.state
    names = [name for name in ("ending", "result") if hasattr(state, name)]
    fields = {name: jnp.zeros_like(getattr(state, name)) for name in names}
    opened = Position.of_state(
        position.game, dataclasses.replace(state, **fields), position.actions
    )
    return opened if opened.legal.any() else None


def may_declare_win(position: Position) -> bool:
    """Whether the game ended because the side to move could declare the win of an entering king
    (shogi)."""
    return position.game.name == "shogi" and position.ending == "entering king"
