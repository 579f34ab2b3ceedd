"""A player with the search of AlphaGo (2016): the most visited move, more search where it is not the best one, and resignation."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np

from azero.games.game import Game
from azero.players.clock import LAG_SECONDS, Clock
from azero.players.player import RESIGN, Decision, Move, Position
from azero.players.thinking import Analysis, Limits, MoveInfo, Restriction, analysis_of_finished, check_same_board
from azero.search.leaf import TurnedLeafFn
from azero.search.single.apv import ApvNode, ApvSettings, ApvTree, AskFn, Judges, choose_edge
from azero.search.single.evaluator import Evaluator
from azero.search.single.packed import PackedPosition, PackedRules
from azero.types import PyTree

_EDGE_BYTES = 64
"""Of an edge: six numbers of 8 bytes, and the reference to what is behind it."""
_LEAF_BYTES = 5
"""Of a leaf for every move, besides its state: the tree policy's prior, and whether it is legal. A node has about as many leaves as rollouts made it."""


@dataclass(frozen=True)
class ApvStyle:
    """How the tree becomes a move."""

    limits: Limits = field(default_factory=lambda: Limits(playouts=800))  # ours; AG16 plays by the clock, 5 s a move
    """For every move; a clock adds its own time limit."""
    resign_threshold: float | None = -0.8
    """Give up when the best Q is below it (AG16: -0.8, less than a win in ten); None never does."""
    extension: float = 0.5
    """Where the most visited move is not the best one: search longer, at most by this share (AG16 gives no limit)."""
    lag_seconds: float = LAG_SECONDS
    """Kept back from every time limit of a clock."""


class Judge(NamedTuple):
    """A leaf and what it needs."""

    game: Game
    """whose planes the leaf reads"""
    leaf: TurnedLeafFn
    params: PyTree
    is_turned: bool = True
    """look at every position through a random symmetry (AG16 methods: the implicit symmetry ensemble); rollouts need none"""


def make_judges(policy: Judge, value: Judge, rollout: Judge | AskFn, settings: ApvSettings, seed: int) -> Judges:
    """Return the judges of a tree with these settings; `seed` is of the symmetries and the rollouts. A rollout judge that remembers is asked as it is."""
    asked_rollouts = _asker(rollout, settings.batch, seed + 2) if isinstance(rollout, Judge) else rollout
    return Judges(_asker(policy, settings.policy_batch, seed), _asker(value, settings.batch, seed + 1), asked_rollouts)


def _asker(judge: Judge, batch: int, seed: int) -> AskFn:
    evaluator = Evaluator(judge.game, judge.leaf, judge.params, batch=batch, symmetry="none", cache_size=0, seed=seed)
    random, num_symmetries = np.random.default_rng(seed), judge.game.num_symmetries if judge.is_turned else 1

    def ask(positions: Sequence[PackedPosition]) -> tuple[np.ndarray, np.ndarray]:
        return evaluator.ask(positions, random.integers(0, num_symmetries, len(positions)).tolist())

    return ask


class ApvPlayer:
    """A Player and a Thinker around one tree. It is not safe to call it from two threads at once."""

    def __init__(self, game: Game, judges: Judges, *, settings: ApvSettings, style: ApvStyle, name: str = "alphago2016") -> None:
        """Make a player of `game`; the komi may change from position to position, the board may not."""
        self.name = name
        self.style = style
        self._judges, self._settings = judges, settings
        self._use(game)

    def reset(self) -> None:
        """Begin a new game."""
        self._tree.clear()
        self._actions: tuple[int, ...] = ()

    def observe(self, move: Move) -> None:
        """Take note of a move of the opponent: the next position says all that is needed."""

    def limit_memory(self, megabytes: int) -> None:
        """Keep the tree within about so many MiB from now on; what it holds is forgotten."""
        state_bytes = 4 * sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(lambda: self.game.search_state(self.game.init()))))
        leaf_bytes = state_bytes + _LEAF_BYTES * self.game.num_actions
        node_bytes = _EDGE_BYTES * self.game.num_actions + (self._settings.threshold + 1) * leaf_bytes
        self._settings = dataclasses.replace(self._settings, max_nodes=max(1, (megabytes << 20) // node_bytes))
        self._use(self.game)

    def warm_up(self, position: Position) -> None:
        """Compile everything that thinking about positions like this one needs, so that no clock waits for it."""
        self._adopt(position.game)
        packed = self._rules.pack(position.state)
        for size in {1, self._settings.policy_batch}:
            self._judges.policy([packed] * size)
        for size in {1, self._settings.batch}:
            self._rules.step([packed] * size, [int(np.argmax(position.legal))] * size)
            self._judges.rollout([packed] * size)
            if self._settings.mixing < 1.0:
                self._judges.value([packed] * size)

    def warm_up_in_steps(self, position: Position) -> Iterator[None]:
        """Do the same, all of it in one step."""
        self.warm_up(position)
        yield

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Think within the style's limits and the clock's, and choose a move or give up; a move that ends the game with a win is played without a thought."""
        self._adopt(position.game)
        if (winning := self._win_at_once(position)) is not None:
            return Decision(winning, 1.0)
        analysis = self.think(position, self.style.limits.under(clock, position, self.style.lag_seconds))
        threshold = self.style.resign_threshold
        if threshold is not None and max(move.value for move in analysis.moves) < threshold:
            return Decision(RESIGN, analysis.value)
        return Decision(analysis.moves[0].action, analysis.value, analysis.visits, analysis.moves[0].line)

    def think(
        self,
        position: Position,
        limits: Limits,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[Analysis], None] | None = None,
        progress_seconds: float = 1.0,
        restriction: Restriction | None = None,
    ) -> Analysis:
        """Search `position` as `Thinker` says; under a restriction in a tree of its own, for which the kept one is forgotten.

        A time limit is kept to within one batch, and not extended.

        Raises:
          ValueError: the position is of another game or board than the player's, or no move is left.
        """
        began = shown = time.perf_counter()
        self._adopt(position.game)
        if position.is_over:
            return analysis_of_finished(position)
        tree, root = self._place(position, restriction)
        first = done = int(root.rollouts.sum())
        while (most := self._remaining(root, limits, first, began)) > 0:
            batch = tree.search(most)
            done += batch
            if batch == 0 or should_stop():
                break
            if on_progress is not None and time.perf_counter() - shown >= progress_seconds:
                shown = time.perf_counter()
                on_progress(self._analyse(root, done - first, began))
        analysis = self._analyse(root, done - first, began)
        if on_progress is not None:
            on_progress(analysis)
        return analysis

    def _win_at_once(self, position: Position) -> int | None:
        """Return a move that ends the game as won: in Go the pass after the opponent's, which the networks of 2016 do not have."""
        packed, moves = self._rules.pack(position.state), np.flatnonzero(position.legal).tolist()
        for start in range(0, len(moves), self._settings.batch):
            piece = moves[start : start + self._settings.batch]
            for move, after in zip(piece, self._rules.step([packed] * len(piece), piece), strict=True):
                if after.is_terminal and after.result == 1.0 - 2.0 * position.to_play:
                    return int(move)
        return None

    def _remaining(self, root: ApvNode, limits: Limits, first: int, began: float) -> int:
        """Return how many descents may still be made, at least one in all; the largest number where nothing limits them."""
        visits = int(root.rollouts.sum())
        if visits == 0:
            return 1
        if limits.seconds is not None and time.perf_counter() - began >= limits.seconds:
            return 0
        ends = [end for end in (limits.visits, None if limits.playouts is None else first + limits.playouts) if end is not None]
        if not ends:
            return 1 << 30
        end = min(ends)
        if visits >= end and not choose_edge(root, self._settings.mixing)[1]:
            end += int(self.style.extension * (end - first))
        return end - visits

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the policy network's policy float32[A] over legal moves and the value network's value for the side to move; each through one random symmetry.

        Raises:
          ValueError: a symmetry is asked for, or the position is of another board.
        """
        self._adopt(position.game)
        if symmetry is not None:
            raise ValueError(f"{self.name} draws its symmetries itself: {symmetry} cannot be asked for")
        if position.is_over:
            return np.zeros(position.game.num_actions, np.float32), position.rewards[position.to_play]
        packed = self._rules.pack(position.state)
        return self._judges.policy([packed])[0][0], float(self._judges.value([packed])[1][0])

    def _adopt(self, game: Game) -> None:
        if game == self.game:
            return
        check_same_board(self.name, self.game, game)
        self._use(game)

    def _use(self, game: Game) -> None:
        """Begin with an empty tree under the rules of `game`."""
        self.game = game
        """The rules of the last position thought about."""
        self._rules = PackedRules(game, self._settings.batch)
        self._tree = ApvTree(self._rules, self._judges, self._settings)
        self._actions = ()

    def _place(self, position: Position, restriction: Restriction | None) -> tuple[ApvTree, ApvNode]:
        """Make `position` the root of a tree, with the moves alone that a restriction leaves; return both."""
        tree, left, known = self._tree, position.legal, len(self._actions)
        follows = position.actions[:known] == self._actions
        if restriction is not None:
            left = restriction.first_moves(position)
            if not left.any():
                raise ValueError(f"no legal move is left to search after {len(position.actions)} moves")
            self.reset()
            tree, follows = ApvTree(self._rules, self._judges, self._settings, restriction.mask), False
        tree.move_to(position.state, left, position.actions[known:] if follows else None)
        if tree is self._tree:
            self._actions = position.actions
        assert tree.root is not None
        return tree, tree.root

    def _analyse(self, root: ApvNode, playouts: int, began: float) -> Analysis:
        values = root.action_values(self._settings.mixing)
        order = np.lexsort((values, root.rollouts))[::-1]
        moves = tuple(_move_info(root, int(edge), float(values[edge])) for edge in order if root.rollouts[edge] > 0)
        visits = root.rollouts.sum()
        value = float((values * root.rollouts).sum() / max(1.0, visits))
        policy = np.zeros(len(root.position.legal), np.float32)
        policy[root.actions] = root.priors
        return Analysis(moves, value, int(visits), playouts, value, policy, time.perf_counter() - began)


def _move_info(root: ApvNode, edge: int, value: float) -> MoveInfo:
    """Return what the tree says of one move, with the line of most visited moves that begins with it."""
    action, visits, prior = int(root.actions[edge]), int(root.rollouts[edge]), float(root.priors[edge])
    line, line_visits = [action], [visits]
    child = root.children[edge]
    while isinstance(child, ApvNode) and child.rollouts.any():
        edge = int(child.rollouts.argmax())
        line.append(int(child.actions[edge]))
        line_visits.append(int(child.rollouts[edge]))
        child = child.children[edge]
    return MoveInfo(action, visits, value, prior, value, tuple(line), tuple(line_visits))
