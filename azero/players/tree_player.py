"""A player with one tree for its game, kept from move to move: for engines, analysis and reviews."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from azero.games.game import Game, Scored
from azero.players.clock import LAG_SECONDS, Clock
from azero.players.player import RESIGN, Decision, Move, Position
from azero.players.thinking import Analysis, Limits, Restriction, analysis_of_finished, check_same_board
from azero.players.verdict import CHOICES, describe_moves, order_moves
from azero.search.leaf import TurnedLeafFn
from azero.search.single.evaluator import Evaluator
from azero.search.single.node import Node, merge, restrict
from azero.search.single.packed import PackedRules
from azero.search.single.parallel import ParallelTree, TreeSettings
from azero.search.single.selection import Gumbel
from azero.types import PyTree

_NODE_BYTES = 2_000
"""Memory of a node besides its state: measured were 1,340 (chess) and 1,430 (shogi) in trees of 1,500 nodes below the start; the rest is for more legal moves."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlayStyle:
    """How a tree becomes a move."""

    limits: Limits = field(default_factory=lambda: Limits(visits=800))  # AZ: 800
    """For every move; a clock adds its own time limit."""
    choice: Literal["lcb", "visits"] = "lcb"
    """The move with the best lower confidence bound among those with enough visits (as Leela Zero and KataGo), or the most visited one. The Gumbel search has a
    choice of its own, the winner of sequential halving."""
    temperature_moves: int = 0
    """Moves at the start of the game, of both sides, that are drawn in proportion to visits ** (1 / temperature), by the Gumbel search to its
    improved policy ** (1 / temperature)."""
    temperature: float = 1.0
    """See temperature_moves."""
    resign_threshold: float | None = None
    """Give up when the value and the best move's are below it, in [-1, 1]; None never does."""
    resign_moves: int = 3
    """So many own moves in a row the value must be below the threshold."""
    lag_seconds: float = LAG_SECONDS
    """Kept back from every time limit of a clock."""
    stop_early: bool = True
    """With a clock: stop when no other move can catch up with the most visited one."""

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            raise ValueError(f"the choice of the move is one of {', '.join(CHOICES)}, not {self.choice!r}")
        if self.temperature <= 0.0:
            raise ValueError(f"the temperature is above 0, not {self.temperature}")
        if self.resign_moves < 1:
            raise ValueError(f"resign-moves is at least 1, not {self.resign_moves}")


class TreePlayer:
    """A Player and a Thinker around one tree. It is not safe to call it from two threads at once."""

    def __init__(
        self,
        game: Game,
        leaf: TurnedLeafFn,
        params: PyTree,
        *,
        settings: TreeSettings = TreeSettings(),  # noqa: B008 (an immutable default)
        style: PlayStyle = PlayStyle(),
        name: str = "azero",
        seed: int = 0,
        mesh: Mesh | None = None,
    ) -> None:
        """Make a player of `game`; the rules may change from position to position (the komi), the board may not.

        Args:
          game: the game that `leaf` knows.
          leaf: evaluates positions, with `params`.
          settings: of the search.
          style: how moves are chosen.
          name: what reports call this player.
          seed: of all random draws; they run on from game to game.
          mesh: devices for the leaf; None is all of this host.
        """
        self.name = name
        self.evaluator = Evaluator(game, leaf, params, batch=settings.batch, symmetry=settings.symmetry, cache_size=settings.cache_size, seed=seed, mesh=mesh)
        self.style = style
        self._settings = settings
        self._width = settings.batch
        """Leaves that go to the network together; fewer while the program for more is still being compiled."""
        self._random = np.random.default_rng(seed)
        self._use(game)
        self._bad_moves = 0

    def reset(self) -> None:
        """Begin a new game."""
        self._tree.clear()
        self._actions: tuple[int, ...] = ()
        self._bad_moves = 0

    def observe(self, move: Move) -> None:
        """Take note of a move of the opponent: the next position says all that is needed."""

    def limit_memory(self, megabytes: int) -> None:
        """Keep the tree within about so many MiB from now on; what it holds is forgotten."""
        state_bytes = 4 * sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(lambda: self.game.search_state(self.game.init()))))
        self._settings = dataclasses.replace(self._settings, max_nodes=max(1, (megabytes << 20) // (state_bytes + _NODE_BYTES)))
        self._use(self.game)

    def warm_up(self, position: Position) -> None:
        """Compile everything that thinking about positions like this one needs, so that no clock waits for it."""
        for _ in self.warm_up_in_steps(position):
            pass

    def warm_up_in_steps(self, position: Position) -> Iterator[None]:
        """Do the same in two steps: after the first one it can think, one leaf at a time, while another thread takes the second one."""
        self._adopt(position.game)
        rules, action = self._rules, int(np.argmax(position.legal))
        packed, self._width = rules.pack(position.state), 1
        for _, size in zip(self.evaluator.warm_up_in_steps(packed), sorted({1, self._settings.batch}), strict=True):
            rules.step([packed] * size, [action] * size)
            self._width = size
            yield

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Think within the style's limits and the clock's, and choose a move or give up."""
        limits = self.style.limits.under(clock, position, self.style.lag_seconds)
        is_timed, began = limits is not self.style.limits, time.perf_counter()

        def is_decided() -> bool:
            return is_timed and limits.seconds is not None and self.style.stop_early and self._is_decided(began, limits.seconds, position)

        analysis = self.think(position, limits, should_stop=is_decided)
        best = analysis.moves[0] if analysis.moves else None
        hope = analysis.value if best is None else max(analysis.value, best.value)
        if self._gives_up(hope):
            return Decision(RESIGN, analysis.value)
        action = self._pick(analysis, len(position.actions))
        line = next((move.line for move in analysis.moves if move.action == action), (action,))
        return Decision(action, analysis.value, analysis.visits, line)

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
        """Search `position` as `Thinker` says.

        A search that meets `max_nodes` stops there, and a warning says so. One batch is the smallest step, so `seconds` is kept to within one batch.

        Raises:
          ValueError: the position is of another game or board than the player's, or no move is left.
        """
        self._adopt(position.game)
        began = shown = time.perf_counter()
        if position.is_over:
            return analysis_of_finished(position)
        tree, whole, root = self._place(position, restriction)
        first_visits = root.total_visits

        def analyse() -> Analysis:
            moves = describe_moves(root, whole.evaluation, self._order(root))
            policy = whole.evaluation.policy(position.game.num_actions)
            spent = time.perf_counter() - began
            playouts, depth = root.total_visits - first_visits, tree.sum_depths / max(1, tree.num_descents)
            return Analysis(moves, root.value, root.total_visits, playouts, whole.evaluation.value, policy, spent, depth, tree.deepest)

        def tell() -> None:
            nonlocal shown
            if on_progress is not None and time.perf_counter() - shown >= progress_seconds:
                shown = time.perf_counter()
                on_progress(analyse())

        _search(tree, root, self._rounds(root, limits), limits, began, should_stop, tell, lambda: self._width)
        if root is not whole:
            tree.root = merge(whole, root)
        analysis = analyse()
        if on_progress is not None:
            on_progress(analysis)
        return analysis

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the network's policy float32[A] over legal moves and its value for the side to move, as `Thinker` says.

        Raises:
          ValueError: there is no such symmetry, or the position is of another board.
        """
        self._adopt(position.game)
        game = position.game
        if symmetry is not None and not 0 <= symmetry < game.num_symmetries:
            raise ValueError(f"there is no symmetry {symmetry}; {game.name} has 0 to {game.num_symmetries - 1}")
        if position.is_over:
            return np.zeros(game.num_actions, np.float32), position.rewards[position.to_play]
        evaluation = self.evaluator.view(self._rules.pack(position.state), symmetry).among(position.legal)
        return evaluation.policy(game.num_actions), evaluation.value

    def _adopt(self, game: Game) -> None:
        """Think about `game` from now on; the network does not see what may differ. Rewards stay as the network's values have them."""
        if isinstance(game, Scored) and isinstance(self.game, Scored):
            game = game.with_margin_weight(self.game.margin_weight)
        if game == self.game:
            return
        check_same_board(self.name, self.game, game)
        self._use(game)

    def _use(self, game: Game) -> None:
        """Begin with an empty tree under the rules of `game`."""
        self.game = game
        """The rules of the last position thought about."""
        self._rules = PackedRules(game, self._settings.batch)
        self._tree = ParallelTree(self._rules, self.evaluator, self._settings)
        self._actions = ()

    def _order(self, root: Node) -> list[int]:
        """Return the tried moves of `root`, the one to play first."""
        rule = self._settings.rule
        return rule.order(root) if isinstance(rule, Gumbel) else order_moves(root, self.style.choice)

    def _rounds(self, root: Node, limits: Limits) -> _Rounds | None:
        """Return what is to be visited from `root`, where the rule plans that ahead."""
        rule = self._settings.rule
        if not isinstance(rule, Gumbel):
            return None
        count = limits.visits if limits.visits is not None else limits.playouts
        return _Rounds(rule.rounds(root, count, lambda: self._width), is_all=count is not None)

    def _place(self, position: Position, restriction: Restriction | None) -> tuple[ParallelTree, Node, Node]:
        """Make `position` the root of a tree; return the tree, the root with all its moves, and the root with those alone that are left."""
        left = position.legal if restriction is None else restriction.first_moves(position)
        if not left.any():
            raise ValueError(f"no legal move is left to search after {len(position.actions)} moves")
        if not self._settings.keeps_tree:
            self._tree.clear()
        if restriction is not None and restriction.is_deep:
            tree, follows = self._tree_apart(restriction), False
        else:
            tree, follows = self._tree, self._settings.keeps_tree and position.actions[: len(self._actions)] == self._actions
        tree.move_to(position.state, position.legal, position.actions[len(self._actions) :] if follows else None)
        if tree is self._tree:
            self._actions = position.actions
        whole = tree.root
        assert whole is not None
        actions, width = whole.evaluation.actions, self._settings.edge_width
        if width is not None and left.sum() > width:
            most_probable = actions[left[actions]][:width]
            left = np.zeros_like(left)
            left[most_probable] = True
        return tree, whole, whole if np.array_equal(left, position.legal) else restrict(whole, left)

    def _tree_apart(self, restriction: Restriction) -> ParallelTree:
        """Return a tree for one search under a deep restriction, whose statistics are of another game than the kept tree's.

        Both together keep within `max_nodes`; a kept tree that would leave it less than half of them is forgotten.
        """
        if 2 * self._tree.num_nodes > self._settings.max_nodes:
            self._tree.clear()
        settings = dataclasses.replace(self._settings, max_nodes=self._settings.max_nodes - self._tree.num_nodes)
        return ParallelTree(self._rules, self.evaluator, settings, restriction.mask)

    def _gives_up(self, value: float) -> bool:
        """Count own moves in a row below the threshold, and say whether they are enough."""
        threshold = self.style.resign_threshold
        self._bad_moves = self._bad_moves + 1 if threshold is not None and value < threshold else 0
        return threshold is not None and self._bad_moves >= self.style.resign_moves

    def _pick(self, analysis: Analysis, num_moves: int) -> int:
        """Return the move to play; where nothing has been searched, the network's most probable one."""
        if num_moves < self.style.temperature_moves:
            root, rule = self._tree.root, self._settings.rule
            if isinstance(rule, Gumbel) and analysis.moves and root is not None:
                moves, shares = root.evaluation.actions.tolist(), rule.improved_policy(root)
            else:
                moves = [move.action for move in analysis.moves] or np.flatnonzero(analysis.raw_policy).tolist()
                shares = np.array([move.visits for move in analysis.moves] or analysis.raw_policy[moves], np.float64)
            weights = (shares / shares.max()) ** (1.0 / self.style.temperature)
            return int(self._random.choice(moves, p=weights / weights.sum()))
        return analysis.moves[0].action if analysis.moves else int(analysis.raw_policy.argmax())

    def _is_decided(self, began: float, seconds: float, position: Position) -> bool:
        """Whether the most visited move stays so, at this search's speed, until the time is over."""
        root, elapsed = self._tree.root, time.perf_counter() - began
        if root is None or len(position.actions) < self.style.temperature_moves or elapsed < 0.1 * seconds:
            return False
        if position.legal.sum() == 1:
            return True
        visits = np.sort(root.visits[: root.tried])
        lead = visits[-1] - (visits[-2] if len(visits) > 1 else 0.0)
        return bool(lead > root.total_visits / elapsed * (seconds - elapsed))


class _Rounds(NamedTuple):
    """A search that is planned ahead."""

    edges: Iterator[list[int]]
    """Of the root, batch by batch."""
    is_all: bool
    """Whether the search ends with them; else it goes on by the rule."""


def _search(
    tree: ParallelTree,
    root: Node,
    rounds: _Rounds | None,
    limits: Limits,
    began: float,
    should_stop: Callable[[], bool],
    tell: Callable[[], None],
    width: Callable[[], int],
) -> None:
    """Search from `root` until a limit is met or nothing of `rounds` is left, at most `width()` leaves at a time, `tell` being called after every batch.

    `seconds` run since `began`.
    """
    first_visits = root.total_visits
    while (most := _remaining(limits, root.total_visits, first_visits)) > 0:
        batch_began = time.perf_counter()
        edges = None if rounds is None else next(rounds.edges, None)
        if edges is None and rounds is not None and rounds.is_all:
            return
        if tree.search(min(most, width() if edges is None else len(edges)), root, edges) == 0:
            _log.warning("the tree is full with %d positions: the search stops (max-nodes sets its size)", tree.num_nodes)
            return
        tell()
        now = time.perf_counter()
        next_end = now + (now - batch_began)
        if should_stop() or (limits.seconds is not None and next_end - began > limits.seconds):
            return


def _remaining(limits: Limits, visits: int, first_visits: int) -> int:
    """Return how many playouts `limits` still allow; the largest batch where they set no number."""
    rest = [limits.visits - visits] if limits.visits is not None else []
    rest += [limits.playouts - (visits - first_visits)] if limits.playouts is not None else []
    if limits.seconds is not None and limits.seconds <= 0:
        return 0
    return min(rest, default=1 << 30)
