"""A game of Go for the browser."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from azero.engines import go_record
from azero.engines.go_game import GoGame
from azero.engines.session import Session
from azero.engines.web.adapter import Outcome, empty_board, outcome_by_rules, rewards_of
from azero.engines.web.networks import GamePlayer, ServedNetwork
from azero.games.go import setup
from azero.games.go.rule_names import Rules
from azero.games.go.rules import Go
from azero.games.go.scoring.status import Status, judge
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import format_result
from azero.games.go.text import column_name, format_points, format_vertex, parse_vertex
from azero.games.position import Position, rules_of_record
from azero.report.boards import draw_board


class GoAdapter:
    """A game of Go."""

    name = "go"
    suffix = ".sgf"
    """Suffix of saved games."""
    sides = ("Black", "White")

    def __init__(
        self, network: ServedNetwork, komi: float | None = None, handicap: int = 0
    ) -> None:
        """Begin a game on the network's board.

        Raises:
          ValueError: the komi or the handicap is not possible.
        """
        rules = network.game
        assert isinstance(rules, Go)
        self.game = GoGame(
            lambda game: GamePlayer(network),
            rules.board_shape,
            komi=rules.komi,
            rules=Rules(rules.superko, rules.suicide),
        )
        self._opened: GameRecord | None = None
        """The record from which it was opened."""
        if komi is not None:
            self.game.set_komi(komi)
        if handicap:
            points = setup.handicap_points(handicap, self.game.shape)
            self.game.set_up(points, (), 1)

    def replay(self, record: GameRecord) -> None:
        """Replace the game by that of a record, under the rules that it states.

        Raises:
          ValueError: a move is illegal.
        """
        rules, _ = rules_of_record(record, self.game.rules)
        self.game.set_rules(rules)
        self._opened = record
        go_record.replay(self.game, record)

    @property
    def session(self) -> Session:
        """The session of the game."""
        return self.game.session

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Colour and action of every move so far."""
        return self.game.moves

    def play(self, colour: int, action: int) -> None:
        """Play a move of either side."""
        self.game.play(colour, action)

    def undo(self) -> None:
        """Take the last move back."""
        self.game.undo()

    def parse(self, text: str) -> int:
        """Return the action of a vertex."""
        return parse_vertex(text, self.game.shape)

    def format_line(self, position: Position, actions: Sequence[int]) -> list[str]:
        """Return the vertices of a line."""
        return [format_vertex(action, self.game.shape) for action in actions]

    def label(self, position: Position, action: int) -> str:
        """Return the vertex."""
        return format_vertex(action, self.game.shape)

    def diagram(self) -> dict[str, Any]:
        """Return the stones (X and O, dots) and the legal points (1 and 0), row by row."""
        position, moves, status = self.game.position, self.game.moves, self._status()
        legal = position.legal[:-1] & (not position.is_over)
        return {
            "stones": "".join(".XO"[value] for value in self.game.board.reshape(-1).tolist()),
            "legal": "".join("01"[int(may)] for may in legal),
            "names": _vertices(self.game.shape),
            "last": [action for _, action in moves[-1:] if action < self.game.board.size],
            "dead": [] if status is None else np.flatnonzero(status.dead).tolist(),
        }

    def frame(self) -> str:
        """Return the empty board."""
        return draw_board(empty_board("go", self.game.shape), ["." * self.game.board.size])

    def _status(self) -> Status | None:
        """Return the judgement of a board after two passes."""
        position = self.game.position
        if not position.is_over or position.actions[-1:] != (self.game.board.size,):
            return None
        return _judged(self.game.board.tobytes(), self.game.shape)

    def outcome(self) -> Outcome | None:
        """Return the result, dead stones removed after two passes."""
        position, status = self.game.position, self._status()
        if not position.is_over:
            return None
        if status is None:  # of the game's positions only legality counts, not their komi
            counted = Position.of_state(self.session.game, position.state)
            return outcome_by_rules(counted, self.sides)
        margin = status.margin - self.game.effective_komi
        if margin == 0:
            return Outcome(None, "The game is a draw (equal points)")
        winner = int(margin < 0)
        dead = int(status.dead.sum())
        removed = "" if not dead else f" ({dead} dead stone{'s' if dead > 1 else ''} removed)"
        text = f"{self.sides[winner]} wins by {format_points(abs(margin))}{removed}"
        return Outcome(winner, text, f"{abs(margin):g}")

    def facts(self) -> dict[str, Any]:
        """Return komi and handicap."""
        return {"komi": self.game.effective_komi, "handicap": self.game.num_handicap}

    def text(
        self,
        moves: Sequence[tuple[int, int]],
        outcome: Outcome | None,
        players: tuple[str, str],
        stated: str = "",
        comments: Sequence[str] = (),
    ) -> str:
        """Return a game from the first position of this one as SGF: colour and action of each move,
        how it ended, if it did here, the names of the first and the second mover, and comments of
        the moves, empty for none. `stated`, the result in the record that was opened, goes before
        `outcome`."""
        counted = "" if outcome is None else format_result(rewards_of(outcome), outcome.reason)
        opened = self._opened and dataclasses.replace(self._opened, comments=tuple(comments))
        if opened and counted and not stated:  # counted by the rules here, not by the record's
            opened = dataclasses.replace(opened, rules="")
        return go_record.format_game(self.game, stated or counted, players, moves, opened) + "\n"


@functools.lru_cache(maxsize=32)
def _judged(board: bytes, shape: tuple[int, int]) -> Status:
    return judge(np.frombuffer(board, np.int8).reshape(shape))


@functools.lru_cache(maxsize=16)
def _vertices(shape: tuple[int, int]) -> dict[str, str]:
    """Return the letters of the columns and the numbers of the rows, from the top left."""
    rows, columns = shape
    return {
        "columns": ",".join(column_name(column) for column in range(columns)),
        "rows": ",".join(str(rows - row) for row in range(rows)),
    }
