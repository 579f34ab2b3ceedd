"""A network from Python: its evaluations of positions, and searches with it."""

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

import numpy as np

from azero.compilation_cache import use_compilation_cache
from azero.config import as_integer
from azero.engines.serve import rules_of
from azero.games.game import Game
from azero.games.position import Position
from azero.players.notation import NOTATIONS
from azero.players.specs import (
    ThinkerSettings,
    ThinkerSpec,
    load_thinker,
    parse_player,
    resolve,
)
from azero.players.thinking import Analysis, Limits, ThinkOptions, describe_board
from azero.players.tree_player import TreePlayer
from azero.settings import Config

VISITS = 400
"""Visits of a search without another limit."""


@dataclass(frozen=True)
class Evaluation:
    """A network's evaluation of a position without search, as the mean over the symmetries of the
    board. Numbers are for the side to move."""

    policy: dict[str, float]
    """Probabilities of the legal moves by name, the largest first; they sum to one. Empty when the
    game is over."""
    value: float
    """Expected result in [-1, 1]."""
    lead: float | None = None
    """Go, networks with a score head: expected lead in points, komi included."""
    lead_stdev: float | None = None
    """Its standard deviation."""
    ownership: np.ndarray | None = field(default=None, repr=False)
    """Go, networks with an ownership head: float32[H, W] in [-1, 1], 1 belongs to the side to
    move."""


@dataclass(frozen=True)
class SearchedMove:
    """The search result of one move. Numbers are for the side to move."""

    move: str
    visits: int
    value: float
    """Mean value of the positions after it, in [-1, 1]."""
    prior: float
    """The network's probability of it among the legal moves."""
    lower_bound: float
    """Lower confidence bound of the value."""
    line: tuple[str, ...]
    """The principal variation: this move and the best replies."""


@dataclass(frozen=True)
class SearchResult:
    """The search result of a position. Numbers are for the side to move."""

    moves: tuple[SearchedMove, ...]
    """The moves that were visited, the best one first; none when the game is over."""
    value: float
    """In [-1, 1]."""
    visits: int
    """Visits of the position, including those kept from an earlier search."""
    seconds: float

    @property
    def best(self) -> str:
        """The name of the best move.

        Raises:
          ValueError: the game is over.
        """
        if not self.moves:
            raise ValueError("there is no best move: the game is over")
        return self.moves[0].move

    def __str__(self) -> str:
        rows = [
            f"{found.move:>6} {found.visits:>8} {found.value:>+8.3f} {found.prior:>7.1%}  "
            f"{' '.join(found.line[:8])}"
            for found in self.moves
        ]
        return "\n".join([f"{'move':>6} {'visits':>8} {'value':>8} {'prior':>7}  line", *rows])


class Model:
    """A network that evaluates, searches and plays: made by `load`.

    Several threads may call it; their calls run one at a time.
    """

    def __init__(self, spec: ThinkerSpec, seed: int = 0) -> None:
        """Make a model of a player, whose random draws are seeded with `seed`; networks are read
        when they are first needed."""
        self._spec, config = resolve(spec)
        self._seed = seed
        self.name = spec.name
        self.config: Config = config
        """The settings of the run that trained it."""
        self.game: Game = self.config.game.for_matches().build()
        """The rules that it was trained on; positions may have another komi and, where the network
        plays any board, another board."""
        self._thinkers: dict[str, TreePlayer] = {}
        """By game and board (`describe_board`)."""
        self._lock = threading.RLock()
        self._is_searching = False

    def __repr__(self) -> str:
        rows, columns = self.game.board_shape
        return f"<azero.Model {self.name}: {self.game.name} {rows}x{columns}>"

    def __reduce__(self) -> "tuple[type[Model], tuple[ThinkerSpec, int], dict[str, str]]":
        """Return what pickle makes a copy of, here or in another process; the copy reads the
        networks again, from the same checkpoint."""
        return Model, (self._spec, self._seed), {"name": self.name}

    @overload
    def evaluate(self, positions: Position) -> Evaluation: ...

    @overload
    def evaluate(self, positions: Iterable[Position]) -> list[Evaluation]: ...

    def evaluate(self, positions: Position | Iterable[Position]) -> Evaluation | list[Evaluation]:
        """Evaluate a position, or each of several, with the network alone.

        Raises:
          ValueError: a position is of a game or board that the network does not know.
          TypeError: it is not a position.
        """
        if isinstance(positions, Position):
            return self._evaluate(positions)
        return [self._evaluate(position) for position in positions]

    def _evaluate(self, position: Position) -> Evaluation:
        with self.held(_game_of(position)) as thinker:
            return _evaluation(thinker, position)

    def search(
        self,
        position: Position,
        visits: int | None = None,
        seconds: float | None = None,
        on_progress: Callable[[SearchResult], None] | None = None,
    ) -> SearchResult:
        """Search a position; the tree is kept if the position follows from the last one searched.

        Args:
          position: the position.
          visits: visits of the position at which to stop; None is the number in the model's name,
            else 400, or no limit where `seconds` is given.
          seconds: seconds after which to stop; None for no limit.
          on_progress: called about once a second with the result so far; it may call `evaluate`.

        Raises:
          ValueError: the position is of a game or board that the network does not know, `visits` is
            not a positive integer, `seconds` not a positive number, or `on_progress` calls this.
          TypeError: it is not a position.
        """
        limits = self.limits(visits, seconds)
        if limits.visits == 0:  # the raw policy: the first visit is the network's choice
            limits = Limits(visits=1)

        def report(analysis: Analysis) -> None:
            if on_progress is not None:
                on_progress(_result(position, analysis))

        with self.held_to_search(_game_of(position)) as thinker:
            return _result(
                position, thinker.think(position, limits, ThinkOptions(on_progress=report))
            )

    def limits(self, visits: int | None, seconds: float | None) -> Limits:
        """Internal: return the limits of a search; see `search`."""
        if visits is None and seconds is None:
            return Limits(visits=VISITS if self._spec.visits is None else self._spec.visits)
        most = as_integer(visits)
        if visits is not None and (most is None or most <= 0):
            raise ValueError(f"visits must be an integer above 0, not {visits!r}")
        if seconds is not None and not 0 < seconds < math.inf:
            raise ValueError(f"seconds must be above 0 and finite, not {seconds}")
        return Limits(visits=most, seconds=seconds)

    @contextlib.contextmanager
    def held(self, game: Game) -> Iterator[TreePlayer]:
        """Internal: lend the player of `game` to one thread."""
        with self._lock:
            yield self._thinker(game)

    @contextlib.contextmanager
    def held_to_search(self, game: Game) -> Iterator[TreePlayer]:
        """Internal: lend the player of `game` to one thread for a search.

        Raises:
          ValueError: it is searching already: `on_progress` calls this.
        """
        with self.held(game) as thinker:
            if self._is_searching:
                raise ValueError(f"{self.name} is searching; on_progress cannot search with it")
            self._is_searching = True
            try:
                yield thinker
            finally:
                self._is_searching = False

    def _thinker(self, game: Game) -> TreePlayer:
        key = describe_board(game)
        if key not in self._thinkers:
            use_compilation_cache()
            self._thinkers[key] = load_thinker(
                self._spec, rules_of(game), ThinkerSettings(seed=self._seed)
            )
        return self._thinkers[key]


def load(name: str | Path) -> Model:
    """Load a network.

    Args:
      name: a network that ships ("go9"; `list_models` has the names), the directory of a run or of
        an exported network, or a player of azero as `azero match` takes it:
        "model:go9?visits=100&search=gumbel".

    Raises:
      ValueError: there is no such player, or it is an external program.
      CheckpointError: it is damaged.
    """
    spec = parse_player(str(name))
    if not isinstance(spec, ThinkerSpec):
        raise ValueError(f"{str(name)!r} is a program, not a network; play takes programs")
    return Model(spec)


def _game_of(position: Position) -> Game:
    if not isinstance(position, Position):
        raise TypeError(f"{position!r:.80} is not an azero.Position")
    return position.game


def _evaluation(thinker: TreePlayer, position: Position) -> Evaluation:
    policy, value = thinker.evaluate(position)
    legal = [] if position.is_over else np.flatnonzero(position.legal).tolist()
    legal.sort(key=lambda action: -policy[action])
    named = {position.action_name(action): float(policy[action]) for action in legal}
    estimates = None if position.is_over else thinker.estimate_points(position)
    if estimates is None:
        return Evaluation(named, float(value))
    points = estimates[0]
    ownership = np.asarray(points.ownership, np.float32).reshape(position.game.board_shape)
    return Evaluation(named, float(value), float(points.lead), float(points.stdev), ownership)


def _result(position: Position, analysis: Analysis) -> SearchResult:
    moves = tuple(
        SearchedMove(
            position.action_name(info.action),
            info.visits,
            info.value,
            info.prior,
            info.lcb,
            tuple(line_names(position, info.line)),
        )
        for info in analysis.moves
    )
    return SearchResult(moves, analysis.value, analysis.visits, analysis.seconds)


def line_names(position: Position, actions: Iterable[int]) -> list[str]:
    """Internal: return the names of moves that follow one another from `position` on."""
    notation = NOTATIONS.get(position.game.name)
    if notation is not None:
        return notation.format_line(position, list(actions))
    names = []
    for action in actions:
        names.append(position.action_name(action))
        position = position.play(action)
    return names
