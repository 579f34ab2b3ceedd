"""A game of Go as protocols describe it: any board the network plays, komi and rules, set-up
stones, moves of either side in any order."""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from azero.engines.session import MakeThinker, Session
from azero.games.game import Game
from azero.games.go import setup
from azero.games.go.rule_names import Rules
from azero.games.go.rules import Go
from azero.games.go.scoring import status as go_status
from azero.games.go.settings import LARGEST_SIDE, check_komi
from azero.games.position import Position

SMALLEST = 2
"""Smallest side of a board."""
MOVES_PER_POINT = 4
"""Moves per point after which a game is scored; the papers' limit of two is for self-play, not for
games against people."""


class GoGame:
    """One game of Go, and the session that searches it.

    Colours are 0 for Black and 1 for White. Every method that changes the game either succeeds or
    raises ValueError and leaves it as it was.
    """

    def __init__(
        self,
        make_thinker: MakeThinker,
        shape: tuple[int, int],
        *,
        komi: float = 7.5,
        rules: Rules = Rules(),  # noqa: B008 (an immutable default)
        any_shape: bool = False,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin a game on an empty board of `shape`; `any_shape` allows other boards, otherwise the
        thinker's network fits only this one."""
        self.komi = komi
        self.rules = rules
        self.only_shape = None if any_shape else shape
        self._first = (np.zeros(shape, np.int8), 0)
        self._colours: list[int] = []
        self._actions: list[int] = []
        position = set_up(self._board_rules(shape, rules), *self._first)
        self.session = Session(
            self._go(shape), make_thinker, position=position, is_interrupted=is_interrupted
        )

    @property
    def position(self) -> Position:
        """The current position."""
        return self.session.position

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._first[0].shape

    @property
    def board(self) -> np.ndarray:
        """The stones, int8[H, W]: 1 Black, -1 White."""
        return cast(Go, self.position.game).board(self.position.state)

    @property
    def first_stones(self) -> tuple[list[int], list[int]]:
        """Black's and White's points before the first move, in ascending order."""
        return points_of(self._first[0])

    @property
    def first_to_play(self) -> int:
        """Who was to move before the first move."""
        return self._first[1]

    @property
    def moves(self) -> list[tuple[int, int]]:
        """Colour and action of every move so far."""
        return list(zip(self._colours, self._actions, strict=True))

    @property
    def num_handicap(self) -> int:
        """Black's handicap stones; see `setup.count_handicap`."""
        return setup.count_handicap(*self.first_stones, self.moves, self._first[0].size)

    @property
    def effective_komi(self) -> float:
        """Komi with White's extra points for handicap stones, as the rules have it."""
        return self.komi + self.rules.bonus(self.num_handicap)

    def _go(self, shape: tuple[int, int]) -> Game:
        """Return the rules for the thinker, with the handicap's komi."""
        return cast(Game, self._board_rules(shape, self.rules, self.effective_komi))

    @staticmethod
    def _board_rules(shape: tuple[int, int], rules: Rules, komi: float = 0.5) -> Go:
        """Return the rules that decide legality, for which komi does not matter."""
        return Go(
            shape,
            komi=komi,
            superko=rules.superko,
            suicide=rules.suicide,
            max_moves=MOVES_PER_POINT * shape[0] * shape[1],
        )

    def check_shape(self, shape: tuple[int, int]) -> None:
        """Raise ValueError, with the sizes that are possible, if `shape` cannot be played."""
        if self.only_shape is not None and shape != self.only_shape:
            rows, columns = self.only_shape
            raise ValueError(f"unacceptable size: the network plays {columns}x{rows} only")
        if not all(SMALLEST <= side <= LARGEST_SIDE for side in shape):
            raise ValueError(f"unacceptable size: sides are {SMALLEST} to {LARGEST_SIDE}")

    def clear(self, shape: tuple[int, int] | None = None) -> None:
        """Start over on an empty board."""
        shape = shape or self.shape
        self.check_shape(shape)
        self._begin(np.zeros(shape, np.int8), 0)

    def set_up(self, black: Sequence[int], white: Sequence[int], to_play: int) -> None:
        """Start over with stones on the board (points row by row from the top left)."""
        self._begin(setup.board_of(black, white, self.shape), to_play)

    def _begin(self, board: np.ndarray, to_play: int) -> None:
        self._first = (board, to_play)
        self._colours = []
        self._actions = []
        self.session.start(set_up(self._board_rules(self.shape, self.rules), *self._first))
        self.session.game = self._go(self.shape)

    def set_komi(self, komi: float) -> None:
        """Change the komi (see `check_komi`); the position stays."""
        check_komi(komi)
        self.komi = komi
        self.session.game = self._go(self.shape)

    def set_rules(self, rules: Rules) -> None:
        """Change the rules; the position stays. A game that the new rules forbid is refused."""
        self._replay(self._board_rules(self.shape, rules))
        self.rules = rules
        self.session.game = self._go(self.shape)

    def _replay(self, game: Go) -> None:
        """Replay the game so far under other rules."""
        if game == cast(Go, self.position.game):
            return
        positions = [set_up(game, *self._first)]
        for number, (colour, action) in enumerate(self.moves, start=1):
            try:
                positions.append(with_side_to_move(positions[-1], colour).play(action))
            except ValueError as error:
                problem = f"move {number} of this game is illegal under these rules"
                raise ValueError(problem) from error
        self.session.restore(positions)

    def play(self, colour: int, action: int) -> None:
        """Play a move for `colour`, whose turn it need not be. Raises ValueError if it is
        illegal."""
        position = with_side_to_move(self.position, colour)
        if not position.legal[action]:
            raise ValueError("illegal move")
        self.session.play(action, position)
        self._colours.append(colour)
        self._actions.append(action)
        self.session.game = self._go(self.shape)

    def undo(self) -> None:
        """Take back the last move; handicap and set-up stones are not moves."""
        self.session.undo()
        self._colours.pop()
        self._actions.pop()
        self.session.game = self._go(self.shape)

    def snapshot(self) -> Any:
        """Return the state of the game, for `restore`."""
        own = {name: copy.copy(value) for name, value in vars(self).items() if name != "session"}
        return own, self.session.positions

    def restore(self, kept: Any) -> None:
        """Restore what `snapshot` returned."""
        own, positions = kept
        vars(self).update(own)
        self.session.restore(positions)
        self.session.game = self._go(self.shape)

    def begin_to_prepare(self) -> None:
        """Load the network and compile what a game needs in the background, last the playouts that
        judge dead stones."""
        self.session.begin_to_prepare(lambda: go_status.prepare(self.shape))

    def with_turn(self, colour: int) -> Position:
        """Return the current position with `colour` to move, unfinished so that it can be
        searched."""
        return with_side_to_move(self.position, colour)


def with_side_to_move(position: Position, colour: int) -> Position:
    """Return `position` with `colour` to move and the game not over; the same object if nothing
    changes.

    Changing the side to move is not a pass: the count of passes stays. Earlier boards still count
    as repetitions, for situational superko with the side that was to move. A game that ended by two
    passes continues, as on servers when the players disagree about dead stones. A game that ended
    by its length starts over from its final board.
    """
    if position.to_play == colour and not position.is_over:
        return position
    game = cast(Go, position.game)
    state = position.state
    # Who was to move in an earlier board follows from its age, so that each change counts there.
    num_moves = int(state.num_moves) + (position.to_play != colour)
    if num_moves >= game.max_moves:
        return set_up(game, game.board(state), colour)
    history = state.history
    if history is not None:
        history = np.array(history)
        history[:, num_moves] = history[:, state.num_moves]
    changed = dataclasses.replace(
        state,
        history=history,
        to_play=np.int32(colour),
        num_passes=np.int32(0 if state.num_passes >= 2 else state.num_passes),
        num_moves=np.int32(num_moves),
    )
    return Position.of_state(position.game, changed)


def set_up(game: Go, board: np.ndarray, to_play: int) -> Position:
    """Return the beginning of a game with the stones of `board` int8[H, W] on it."""
    return Position.of_state(cast(Game, game), game.host_setup(*points_of(board), to_play))


def points_of(board: np.ndarray) -> tuple[list[int], list[int]]:
    """Return Black's and White's points on `board` int8[H, W], in ascending order."""
    flat = board.reshape(-1)
    return np.flatnonzero(flat > 0).tolist(), np.flatnonzero(flat < 0).tolist()
