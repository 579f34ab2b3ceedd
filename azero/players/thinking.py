"""Input and output of a player that searches one position at a time: limits in, an analysis out,
for engines, matches and reviews."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from azero.players.clock import Clock, thinking_seconds

if TYPE_CHECKING:
    from azero.games.game import Game
    from azero.games.position import Position
    from azero.players.points import PointsEstimate
_LARGEST_CP = 30_000
"""Centipawns of a certain win in shogi (dlshogi, UctSearch.cpp)."""
_SHOGI_SCALE = 756.0864962951762
"""Centipawns over which the odds of winning grow by e (dlshogi, UctSearch.cpp)."""


@dataclass(frozen=True)
class Limits:
    """When to stop thinking: at the first limit that is reached. None for no limit; without any
    limit only `should_stop` ends it."""

    visits: int | None = None
    """Total visits of the root, including those kept from earlier moves."""
    playouts: int | None = None
    """New visits."""
    seconds: float | None = None

    def under(
        self, clock: Clock, position: Position, lag_seconds: float, own_moves: float | None = None
    ) -> Limits:
        """Return these limits with the time that `clock` allows for a move in `position` (see
        `thinking_seconds`); these themselves where it allows any."""
        num_points = position.game.board_shape[0] * position.game.board_shape[1]
        allowed = thinking_seconds(clock, len(position.actions), num_points, lag_seconds, own_moves)
        if allowed is None:
            return self
        seconds = allowed if self.seconds is None else min(allowed, self.seconds)
        return dataclasses.replace(self, seconds=seconds)


@dataclass(frozen=True, eq=False)
class Restriction:
    """Moves that a search does not consider, by player and depth: KataGo's `avoid` and `allow`."""

    until: np.ndarray
    """int64[2, A]: player p (0 moves first in the game) does not play action a in positions fewer
    than until[p, a] moves below the root."""

    @classmethod
    def none(cls, num_actions: int) -> Restriction:
        """Return a restriction that allows every move."""
        return cls(np.zeros((2, num_actions), np.int64))

    @classmethod
    def first_move(cls, actions: Collection[int], to_play: int, num_actions: int) -> Restriction:
        """Return a restriction to `actions` for the first move, which is `to_play`'s."""
        return cls.none(num_actions).allowing(to_play, actions, 1)

    def avoiding(self, player: int, actions: Collection[int], depth: int) -> Restriction:
        """Return this with `actions` left out for `player` until `depth`; of two depths of one move
        the larger one counts (KataGo leaves it open)."""
        until = self.until.copy()
        chosen = list(actions)
        until[player, chosen] = np.maximum(until[player, chosen], depth)
        return Restriction(until)

    def allowing(self, player: int, actions: Collection[int], depth: int) -> Restriction:
        """Return this with all moves but `actions` left out for `player` until `depth`."""
        return self.avoiding(player, set(range(self.until.shape[1])).difference(actions), depth)

    def mask(self, to_play: int, depth: int) -> np.ndarray:
        """Return bool[A]: the moves, legal or not, that `to_play` may make `depth` moves below the
        root."""
        return self.until[to_play] <= depth

    def first_moves(self, position: Position) -> np.ndarray:
        """Return bool[A]: the legal moves of `position` that remain when it is the root."""
        return position.legal & self.mask(position.to_play, 0)


@dataclass(frozen=True)
class MoveInfo:
    """The search's statistics of one move of the root. Values are in [-1, 1] for the side to move
    at the root."""

    action: int
    visits: int
    value: float
    prior: float
    """The network's probability among legal moves (before noise)."""
    lcb: float
    """Lower confidence bound of the value."""
    line: tuple[int, ...]
    """The principal variation, beginning with this move."""
    line_visits: tuple[int, ...]
    """Visits of each move of the variation."""
    network_value: float | None = None
    """The mean of the value network's values below the move, where rollouts are counted
    separately (AlphaGo of 2016) and there is any."""
    rollout_value: float | None = None
    """The mean result of the rollouts; the same."""


@dataclass(frozen=True)
class Analysis:
    """The result of a search. Values are in [-1, 1] for the side to move."""

    moves: tuple[MoveInfo, ...]
    """Visited moves, best first by the rule that chooses the move."""
    value: float
    visits: int
    """Of the root."""
    playouts: int
    """New visits of this search."""
    raw_value: float
    """The network's own value of the position."""
    raw_policy: np.ndarray = field(repr=False)
    """float32[A]: the network's own policy among legal moves."""
    seconds: float = 0.0
    depth: float = 0.0
    """Mean length of this search's descents; 0 without any."""
    deepest: int = 0
    """Length of the longest of them."""

    def ending_with(self, action: int, value: float) -> Analysis:
        """Return the analysis with a move that ends the game at `value` as the best move, tried or
        not, unless another move has a higher value or nothing was searched."""
        if not self.moves or value < self.moves[0].value:
            return self
        visits = next((move.visits for move in self.moves if move.action == action), 0)
        prior = float(self.raw_policy[action])
        sure = MoveInfo(action, visits, value, prior, value, (action,), (visits,))
        others = tuple(move for move in self.moves if move.action != action)
        return dataclasses.replace(self, moves=(sure, *others), value=value)


@dataclass(frozen=True, eq=False)
class ThinkOptions:
    """What a search reports, what stops it besides its limits, and which moves it leaves out."""

    should_stop: Callable[[], bool] = lambda: False
    """Asked after every batch of leaves; must be cheap."""
    on_progress: Callable[[Analysis], None] | None = None
    """Called about every `progress_seconds`, and at the end."""
    progress_seconds: float = 1.0
    restriction: Restriction | None = None
    """The moves that are left out; None leaves out none. A position below the root that has no
    legal move left is not searched further and has the network's value, as in KataGo. The search
    has a tree of its own, which is not kept."""


def empty_analysis(position: Position, value: float = 0.0, seconds: float = 0.0) -> Analysis:
    """Return an analysis without moves: of a search that was stopped before it began, or of a game
    that is over, whose `value` is its result."""
    policy = np.zeros(position.game.num_actions, np.float32)
    return Analysis((), value, 0, 0, value, policy, seconds)


def check_same_board(name: str, known: Game, game: Game, on_any_board: bool = False) -> None:
    """Check that the player `name` of `known` can play `game` (see `can_play`).

    Raises:
      ValueError: it is another game or board.
    """
    if not can_play(known, game, on_any_board):
        raise ValueError(f"{name} plays {describe_board(known)}, not {describe_board(game)}")


def can_play(known: Game, game: Game, on_any_board: bool = False) -> bool:
    """Return whether a network of `known`, or one `on_any_board`, can play `game`, whose rules may
    differ."""
    has_board = on_any_board or game.board_shape == known.board_shape
    return _kind(game) == _kind(known) and has_board


def _kind(game: Game) -> str:
    """Return the name of a game, with the environment's where Pgx has it."""
    return f"{game.name} {getattr(game, 'id', '')}".strip()


def describe_board(game: Game) -> str:
    """Return the game and its board, as in "go on 9x9"."""
    return f"{_kind(game)} on {game.board_shape[0]}x{game.board_shape[1]}"


class Thinker(Protocol):
    """A Player that also analyses positions; its tree is kept from one position to the next."""

    name: str

    def think(
        self, position: Position, limits: Limits, options: ThinkOptions = ThinkOptions()
    ) -> Analysis:
        """Search `position` until a limit is reached or `options.should_stop()` is true.

        Args:
          position: the position; if it follows from the last one searched, the tree is kept.
          limits: see `Limits`. A position that is over gives an analysis without moves.
          options: see `ThinkOptions`.

        Raises:
          ValueError: the restriction leaves no legal move in `position`.
        """

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the network's policy float32[A] over legal moves and its value for the side to
        move; `symmetry` None averages over all."""

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        """Return what the network expects of the end of the game, in points, for the side to move
        in `position`: as it is, and after each of the legal `actions`. None if it has no heads for
        that."""

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        """Return the network's probability of a draw, in [0, 1], after each of the legal `actions`
        in `position`. None if it has but one value, the game is one of points, or the program for
        it is still being compiled (`warm_up_in_steps`)."""


def win_rate(value: float) -> float:
    """Return a value in [-1, 1] as a share of games won."""
    return (float(value) + 1) / 2


def chess_centipawns(value: float) -> int:
    """Return a value in [-1, 1] as centipawns: 90 tan(1.5637541897 value), Leela Chess Zero's score
    type "centipawn" (search.cc); 12,780 for a certain win."""
    return round(90.0 * math.tan(1.5637541897 * min(1.0, max(-1.0, value))))


def shogi_centipawns(value: float) -> int:
    """Return a value in [-1, 1] as centipawns of shogi: 756.09 ln(p / (1 - p)) for the win rate p =
    (1 + value) / 2, as dlshogi does; at most 30,000."""
    rate = (1.0 + value) / 2.0
    if not 0.0 < rate < 1.0:
        return _LARGEST_CP if value > 0 else -_LARGEST_CP
    return max(-_LARGEST_CP, min(_LARGEST_CP, round(_SHOGI_SCALE * math.log(rate / (1.0 - rate)))))
