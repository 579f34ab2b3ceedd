"""A game of chess or shogi as protocols send it: the start position and all moves before every
search."""

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from azero.engines.session import MakeThinker, Session
from azero.games.game import Game
from azero.games.position import Position, position_of
from azero.players.notation import NOTATIONS, as_unfinished
from azero.players.uci_go import START


class PiecesGame:
    """One game, and the session that searches it. Of a longer list of moves only the new ones are
    played."""

    def __init__(self, game: Game, make_thinker: MakeThinker) -> None:
        """Begin at the start of `game`, which has a notation; JAX is not used before the session is
        asked for."""
        self.game = game
        self.notation = NOTATIONS[game.name]
        self._make_thinker = make_thinker
        self._start = START
        self._names: list[str] = []

    @functools.cached_property
    def session(self) -> Session:
        """The session, made when it is first asked for."""
        return Session(self.game, self._make_thinker)

    @property
    def position(self) -> Position:
        """The current position."""
        return self.session.position

    def begin_to_prepare(self) -> None:
        """Compile what moves need; compile the rest in the background."""
        self.position.play(int(np.argmax(self.position.legal)))
        self.session.begin_to_prepare()

    def new_game(self) -> None:
        """Begin at the start position with an empty tree."""
        self._start, self._names = START, []
        self.session.start(Position.start(self.game))

    def set_up(self, start: str, names: Sequence[str]) -> None:
        """Make the position after the moves `names` from `start` the current one; `start` is START
        or a position in text.

        Raises:
          ValueError: the position or a move is not legal; the move's number is named, and the game
            is unchanged.
        """
        is_same = start == self._start
        pairs = zip(self._names, names, strict=False)
        known = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        kept = self.session.positions[: known + 1] if is_same else [self._first(start)]
        following = self._after(kept[-1], names, known if is_same else 0)
        if is_same and known == len(self._names):
            self.session.extend(following)
        else:
            self.session.restore([*kept, *following])
        self._start, self._names = start, list(names)

    def _first(self, start: str) -> Position:
        return Position.start(self.game) if start == START else position_of(start, self.game)

    def _after(self, position: Position, names: Sequence[str], known: int) -> list[Position]:
        """Return the positions after each of `names` but the first `known`, which lead to
        `position`."""
        positions = []
        for number, name in enumerate(names[known:], start=known + 1):
            opened = as_unfinished(position)
            if opened is None:
                raise ValueError(f"move {number}: the game is over before {name[:20]!r}")
            try:
                position = opened.play(self.notation.parse_move(opened, name))
            except ValueError as error:
                raise ValueError(f"move {number}: {error}") from error
            positions.append(position)
        return positions
