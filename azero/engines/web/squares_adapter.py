"""A game on squares for the browser: chess, shogi, their small relatives, tic-tac-toe."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from azero.engines.session import Session
from azero.engines.web.adapter import Outcome, empty_board, outcome_by_rules, rewards_of
from azero.engines.web.networks import GamePlayer, ServedNetwork
from azero.games.chess.pgn import RESULTS, format_pgn
from azero.games.notes import Note
from azero.games.position import Position, position_of
from azero.games.shogi.csa import format_csa
from azero.games.shogi.names import PIECES
from azero.games.shogi.records import Ratings
from azero.games.table import side_names
from azero.match.games import MatchGame
from azero.match.records import csa_ending
from azero.match.referee import PLAYED_OUT
from azero.players.notation import as_unfinished
from azero.report.boards import draw_board
from azero.report.pieces import DIAGRAMS, Diagram, Squares, draw_pieces, square_of, squares_of

FILES, RANKS = "abc", "123"
"""Files and ranks of tic-tac-toe."""
GAMES = ("tictactoe", *DIAGRAMS)
"""The games that are shown on squares."""


class SquaresAdapter:
    """A game with pieces or marks on squares."""

    def __init__(
        self,
        network: ServedNetwork,
        start: str = "",
        tags: Mapping[str, str] | None = None,
        ratings: Ratings = (None, None),
    ) -> None:
        """Begin a game from `start`, in FEN or SFEN, or from the usual position; `tags` and
        `ratings` are those of the record from which it was opened.

        Raises:
          ValueError: there is no such position of this game, or the game is over there.
        """
        game = network.game
        self.name = game.name
        self.start = start
        self._tags = tags
        """None of a game that began here."""
        self._ratings = ratings
        first, second = (side.removeprefix("the ").capitalize() for side in side_names(game.name))
        self.sides = (first, second)
        self.suffix = {"chess": ".pgn", "shogi": ".csa"}.get(game.name, "")
        self._diagram: Diagram | None = DIAGRAMS.get(game.name)
        position = position_of(start, game) if start else None
        if position is not None and position.is_over:
            raise ValueError("the game is already over in this position")
        self.session = Session(game, lambda game: GamePlayer(network), position=position)

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Colour and action of every move so far."""
        movers = [position.to_play for position in self.session.positions[:-1]]
        return list(zip(movers, self.session.position.actions, strict=True))

    def play(self, colour: int, action: int) -> None:
        """Play a move of the side to move, in a record also after a draw that nobody claimed."""
        self.session.play(action, as_unfinished(self.session.position))

    def undo(self) -> None:
        """Take the last move back."""
        self.session.undo()

    def parse(self, text: str) -> int:
        """Return the legal action called `text`.

        Raises:
          ValueError: there is none.
        """
        for action, name in self._legal():
            if name == text:
                return action
        raise ValueError(f"{text[:20]!r} is not a legal move here")

    def _legal(self) -> list[tuple[int, str]]:
        """Return the legal actions with their names."""
        position = self.session.position
        actions = [] if position.is_over else np.flatnonzero(position.legal).tolist()
        how = self._diagram
        if how is None:
            return [(action, position.action_name(action)) for action in actions]
        board = how.notation.board_of(position.state)
        return [(action, how.notation.format_move(board, action)) for action in actions]

    def format_line(self, position: Position, actions: Sequence[int]) -> list[str]:
        """Return the moves of a line by their squares."""
        how = self._diagram
        if how is None:
            return [position.action_name(action) for action in actions]
        return how.notation.format_line(position, actions)

    def label(self, position: Position, action: int) -> str:
        """Return the move in the game's notation."""
        how = self._diagram
        if how is None:
            return position.action_name(action)
        return how.name(how.notation.board_of(position.state), action)

    def squares(self, name: str) -> "Squares":
        """Return a move by its squares, from its name."""
        if self._diagram is None:
            return Squares(name, None, square_of(FILES, RANKS, name), "", "")
        return squares_of(self._diagram, name)

    def diagram(self) -> dict[str, Any]:
        """Return the pieces by square, row by row from the top left, those in hand, and the legal
        moves; the marks alone where there are no pieces."""
        how, legal = self._diagram, [self.squares(name) for _, name in self._legal()]
        last = [place for move in self._last() for place in move[1:3] if place is not None]
        if how is None:
            marks = self.session.game.format_board(self.session.position.state).split()
            free = {move.end for move in legal}
            return {
                "stones": "".join(marks),
                "legal": "".join("01"[int(place in free)] for place in range(len(marks))),
                "names": {"columns": ",".join(FILES), "rows": ",".join(reversed(RANKS))},
                "last": last,
            }
        board, columns = how.notation.board_of(self.session.position.state), len(how.files)
        hands: tuple[dict[str, int], ...] = getattr(board, "hands", ({}, {}))
        letters = ["" if piece == "." else piece for piece in board.pieces]
        rows_up = [letters[start : start + columns] for start in range(0, len(letters), columns)]
        return {
            "pieces": [piece for row in reversed(rows_up) for piece in row],
            "hands": [{letter: count for letter, count in hand.items() if count} for hand in hands],
            "moves_by_squares": legal,
            "names": {"columns": ",".join(how.files), "rows": ",".join(reversed(how.ranks))},
            "last": last,
            "check": bool(getattr(board, "is_check", False)),
            "glyphs": PIECES if self.name == "shogi" else {},
        }

    def _last(self) -> "list[Squares]":
        """Return the last move, if there is one."""
        positions = self.session.positions[-2:]
        if len(positions) < 2:
            return []
        before, after = positions
        return [self.squares(self.format_line(before, after.actions[-1:])[0])]

    def frame(self) -> str:
        """Return the empty board."""
        rows, columns = self.session.game.board_shape
        draw = draw_board if self._diagram is None else draw_pieces
        return draw(empty_board(self.name, (rows, columns)), ["." * (rows * columns)])

    def outcome(self) -> Outcome | None:
        """Return the result by the rules."""
        position = self.session.position
        return outcome_by_rules(position, self.sides) if position.is_over else None

    def facts(self) -> dict[str, Any]:
        """Return the start position where it is not the usual one."""
        return {"start": self.start}

    def text(
        self,
        moves: Sequence[tuple[int, int]],
        outcome: Outcome | None,
        players: tuple[str, str],
        stated: str = "",
        comments: Sequence[str] = (),
    ) -> str:
        """Return a game from the first position of this one as PGN or CSA; see `GoAdapter.text`.

        Raises:
          ValueError: there is no format for this game.
        """
        if not self.suffix:
            raise ValueError(f"there is no file format for games of {self.name}")
        assert self._diagram is not None
        actions = [action for _, action in moves]
        start = self.start or self._diagram.notation.start
        if self.name == "shogi":
            played = None if outcome is None else self._played(actions, outcome)
            ending = "%CHUDAN" if played is None else csa_ending(played, self.session.game)
            facts = [*(self._tags or {}).items()]
            ending = stated or ending
            return format_csa(actions, start, *players, ending, comments, facts, self._ratings)
        result = "*" if outcome is None else RESULTS[cast(Any, rewards_of(outcome))]
        today = {"Event": "azero web", "Date": time.strftime("%Y.%m.%d")}
        known = today if self._tags is None else self._tags
        tags = {**known, "White": players[0] or "?", "Black": players[1] or "?"}
        notes = [Note(comment) for comment in comments]
        return format_pgn(actions, tags, stated or result, start, notes)

    def _played(self, actions: Sequence[int], outcome: Outcome) -> MatchGame:
        """Return the game as one of a match, for its ending."""
        ending = f"{self.sides[outcome.winner == 0]} resigns" if outcome.reason else PLAYED_OUT
        reward = rewards_of(outcome)[0]
        return MatchGame(
            1, None, True, reward, tuple(actions), len(actions), ending, start=self.start
        )
