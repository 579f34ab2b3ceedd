"""A player with one tree for its game, kept from move to move: for engines and reviews."""

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import jax
import numpy as np

from azero.console.standard_output import say
from azero.games.game import Game, VariablePlanes
from azero.games.go.rules import Go
from azero.games.position import Position
from azero.players.clock import Clock
from azero.players.head_estimates import Heads, draws_estimator
from azero.players.play_style import PlayStyle, describe_moves, is_most_visited_best, order_moves
from azero.players.player import RESIGN, Decision, Move
from azero.players.points import PointsEstimate, points_estimator
from azero.players.thinking import (
    Analysis,
    Limits,
    Restriction,
    ThinkOptions,
    check_same_board,
    empty_analysis,
)
from azero.search.single.leaves import LeafEvaluator
from azero.search.single.node import Node, merge, restrict
from azero.search.single.packed import PackedPosition, PackedRules
from azero.search.single.parallel import ParallelTree, TreeSettings
from azero.search.single.selection import Gumbel


class TreePlayer:
    """A Player and a Thinker around one tree, for one thread at a time."""

    def __init__(
        self,
        game: Game,
        evaluator: LeafEvaluator,
        *,
        settings: TreeSettings = TreeSettings(),  # noqa: B008
        style: PlayStyle = PlayStyle(),  # noqa: B008
        name: str = "azero",
        seed: int = 0,
        heads: Heads | None = None,
    ) -> None:
        """Make a player of `game`; the rules may change from position to position (the komi).

        Args:
          game: the game that `evaluator` knows; its board stays.
          evaluator: evaluates up to `settings.batch` positions together.
          settings: of the search.
          style: how moves are chosen.
          name: the name of this player in reports.
          seed: of sampled moves; the random numbers continue from game to game.
          heads: those of the network, which estimate scores, owners and draws; None without any.
        """
        self.name = name
        self._points = None if heads is None else points_estimator(game, heads)
        self._draws = None if heads is None else draws_estimator(game, heads)
        self.evaluator = evaluator
        self.style = style
        self._settings = settings
        self._width = settings.batch
        """Leaves evaluated together; fewer while the program for the full batch is being
        compiled."""
        self._random = np.random.default_rng(seed)
        self._use(game)
        self._bad_moves = 0

    def another(self) -> "TreePlayer":
        """Return a player with a tree of its own that shares the compiled programs; only one of the
        two may think at a time."""
        other = copy.copy(self)
        other._use(self.game)
        other._random = np.random.default_rng(self._random.integers(1 << 32))
        other._bad_moves = 0
        return other

    def reset(self) -> None:
        """Begin a new game."""
        self._tree.clear()
        self._actions: tuple[int, ...] = ()
        self._bad_moves = 0

    def observe(self, move: Move) -> None:
        """Note a move of the opponent; the next position contains it anyway."""

    def limit_memory(self, megabytes: int) -> None:
        """Limit the tree to about this many MiB from now on; the present one is discarded."""
        state = jax.eval_shape(lambda: self.game.search_state(self.game.init()))
        state_bytes = 4 * sum(leaf.size for leaf in jax.tree.leaves(state))
        node_bytes = self.evaluator.node_bytes(state_bytes, self.game.num_actions)
        max_nodes = max(1, (megabytes << 20) // node_bytes)
        self._settings = dataclasses.replace(self._settings, max_nodes=max_nodes)
        self._use(self.game)

    def warm_up(self, position: Position) -> None:
        """Compile everything that thinking about positions like this one needs."""
        for _ in self.warm_up_in_steps(position):
            pass

    def warm_up_in_steps(self, position: Position) -> Iterator[None]:
        """Do the same in steps: after the first one the player can think, with fewer leaves at a
        time, while another thread takes the other steps."""
        self._adopt(position.game)
        rules, action = self._rules, int(np.argmax(position.legal))
        packed, self._width = rules.pack(position.state), 1
        # No search waits for the programs of the draws: a clock may be running.
        draws, self._draws = self._draws, None
        self._tree.warm_up()
        for width in self.evaluator.warm_up_in_steps(packed):
            for size in sorted({1, width}):
                rules.step([packed] * size, [action] * size)
            self._width = width
            yield
        if self._points is not None:
            self._points.warm_up(packed)
            yield
        if draws is not None:
            draws.warm_up(packed)
            self._draws = draws
            yield

    def choose(self, position: Position, clock: Clock) -> Decision:
        """Think within the style's limits and the clock's, and choose a move or resign."""
        self._adopt(position.game)
        style = self.style
        limits = style.limits.under(clock, position, style.lag_seconds, style.own_moves)
        stops_early = style.stop_early and limits is not style.limits  # the clock's time
        began = time.perf_counter()

        def is_decided() -> bool:
            return stops_early and self._is_decided(began, limits, position)

        analysis = self.think(position, limits, ThinkOptions(should_stop=is_decided))
        if self._wants_to_resign(analysis):
            return Decision(RESIGN, analysis.value)
        action = self._pick(analysis, len(position.actions))
        line = next((move.line for move in analysis.moves if move.action == action), (action,))
        return Decision(action, analysis.value, analysis.visits, line)

    def think(
        self,
        position: Position,
        limits: Limits,
        options: ThinkOptions = ThinkOptions(),  # noqa: B008
    ) -> Analysis:
        """Search `position` as `Thinker` says.

        A search that reaches `max_nodes` stops there, and a warning says so. One batch is the
        smallest step, so `seconds` is kept to within one batch.

        Raises:
          ValueError: the position is of another game or board than the player's, or no move is
            left.
        """
        self._adopt(position.game)
        began = shown = time.perf_counter()
        if position.is_over:
            return empty_analysis(position, position.rewards[position.to_play])
        tree, whole, root = self._place(position, options.restriction)
        self._searched, first_visits = root, root.total_visits
        ending = self._ending_pass(position, options.restriction)

        def analyse() -> Analysis:
            tree.finish()
            analysis = self._analyse(tree, whole, root, first_visits, began)
            return analysis if ending is None else analysis.ending_with(*ending)

        def on_batch() -> None:
            nonlocal shown
            if options.on_progress is None:
                return
            if time.perf_counter() - shown >= options.progress_seconds:
                shown = time.perf_counter()
                options.on_progress(analyse())

        self._search(tree, root, limits, began, options.should_stop, on_batch)
        tree.finish()
        if root is not whole:
            tree.root = merge(whole, root)
        analysis = analyse()
        if options.on_progress is not None:
            options.on_progress(analysis)
        return analysis

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        """Return the policy float32[A] over legal moves and the value for the side to move.

        They are the networks' own, as `Thinker` says.

        Raises:
          ValueError: there is no such symmetry, or the position is of another board.
        """
        self._adopt(position.game)
        game, count = position.game, self.evaluator.num_symmetries
        if symmetry is not None and not count:
            raise ValueError(
                f"{self.name} draws its symmetries itself: {symmetry} cannot be requested"
            )
        if symmetry is not None and not 0 <= symmetry < count:
            raise ValueError(f"no symmetry {symmetry}; {game.name} has 0 to {count - 1}")
        if position.is_over:
            return np.zeros(game.num_actions, np.float32), position.rewards[position.to_play]
        evaluation = self.evaluator.view(self._rules.pack(position.state), symmetry)
        return evaluation.among(position.legal).policy(game.num_actions), evaluation.value

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        """Return what the network expects of the end of the game, as `Thinker` says."""
        if self._points is None:
            return None
        here, *others = self._points(self._with_following(position, actions))
        rules = cast(Go, self.game)  # other games have no estimator of points
        komi = rules.komi if position.to_play else -rules.komi
        estimates = [here, *(estimate.for_opponent() for estimate in others)]
        return [estimate._replace(lead=estimate.lead + komi) for estimate in estimates]

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        """Return the network's probability of a draw after each move, as `Thinker` says."""
        if self._draws is None:
            return None
        _, *after = self._with_following(position, actions)
        estimates = self._draws(after)
        return [
            1.0 - abs(end.result) if end.is_terminal else estimate
            for end, estimate in zip(after, estimates, strict=True)
        ]

    def _with_following(self, position: Position, actions: Sequence[int]) -> list[PackedPosition]:
        """Return `position` and the positions after each of `actions`, played in batches."""
        self._adopt(position.game)
        before = self._rules.pack(position.state)
        positions = [before]
        for start in range(0, len(actions), self._settings.batch):
            tried = actions[start : start + self._settings.batch]
            positions += self._rules.step([before] * len(tried), tried)
        return positions

    def _adopt(self, game: Game) -> None:
        """Think about `game` from now on, with the planes and rewards that the network knows."""
        check_same_board(self.name, self.game, game)
        if isinstance(game, VariablePlanes):
            game = game.seen_as(self.game)
        if game != self.game:
            self._use(game)

    def _use(self, game: Game) -> None:
        """Begin with an empty tree under the rules of `game`."""
        self.game = game
        """The rules of the last position searched."""
        self._rules = PackedRules(game, self._settings.batch)
        self._tree = self._make_tree(self._settings)
        self._actions = ()

    def _make_tree(
        self, settings: TreeSettings, left: Callable[[int, int], np.ndarray] | None = None
    ) -> ParallelTree:
        leaves = self.evaluator.leaves(self._rules, settings.edge_width)
        return ParallelTree(self._rules, leaves, settings, left)

    def _place(
        self, position: Position, restriction: Restriction | None
    ) -> tuple[ParallelTree, Node, Node]:
        """Make `position` the root of a tree.

        Returns:
          The tree, the root with all its moves, and the root with those alone that are left.
        """
        left = position.legal if restriction is None else restriction.first_moves(position)
        if not left.any():
            raise ValueError(f"no legal move is left to search after {len(position.actions)} moves")
        if not self._settings.keeps_tree:
            self._tree.clear()
        if restriction is not None:
            return self._place_apart(position, left, restriction)
        known = len(self._actions)
        follows = self._settings.keeps_tree and position.actions[:known] == self._actions
        since = position.actions[known:] if follows else None
        self._tree.move_to(position.state, position.legal, since)
        self._actions = position.actions
        whole = self._tree.root
        assert whole is not None
        return self._tree, whole, self._restricted(whole, left)

    def _place_apart(
        self, position: Position, left: np.ndarray, restriction: Restriction
    ) -> tuple[ParallelTree, Node, Node]:
        """Do the same in a tree for this search alone: the visits of moves with few competitors, or
        none, would decide later searches.

        Where the root's policy gives nothing to any move that is left, it begins with those alone.
        """
        tree = self._tree_apart(restriction)
        tree.move_to(position.state, position.legal, None)
        assert tree.root is not None
        if not left[tree.root.actions].any():
            tree.move_to(position.state, left, None)
        return tree, tree.root, self._restricted(tree.root, left)

    def _restricted(self, whole: Node, left: np.ndarray) -> Node:
        """Return the root with the moves of `left` bool[A] alone, as many as the width allows."""
        actions, width = whole.evaluation.actions, self._settings.edge_width
        if width is not None and left.sum() > width:
            most_probable = actions[left[actions]][:width]
            left = np.zeros_like(left)
            left[most_probable] = True
        return whole if left[actions].all() else restrict(whole, left)

    def _tree_apart(self, restriction: Restriction) -> ParallelTree:
        """Return a tree for one search under a restriction.

        It and the kept tree together keep within `max_nodes`; a kept tree that would leave it less
        than half of them is dropped.
        """
        if 2 * self._tree.num_nodes > self._settings.max_nodes:
            self._tree.clear()
        max_nodes = self._settings.max_nodes - self._tree.num_nodes
        settings = dataclasses.replace(self._settings, max_nodes=max_nodes)
        return self._make_tree(settings, restriction.mask)

    def _search(
        self,
        tree: ParallelTree,
        root: Node,
        limits: Limits,
        began: float,
        should_stop: Callable[[], bool],
        on_batch: Callable[[], None],
    ) -> None:
        """Search from `root` until a limit is reached, or to the end of the rule's plan.

        `limits.seconds` run since `began`.
        """
        plan, is_all = self._plan(root, limits)
        first_visits = root.total_visits
        while (most := self._remaining(root, limits, first_visits)) > 0:
            batch_began = time.perf_counter()
            edges = next(plan, None)
            if edges is None and is_all:
                return
            width = min(self._width, self._settings.batch_after(root.total_visits))
            most = min(most, width if edges is None else len(edges))
            if tree.search(most, root, edges) == 0:
                say(
                    f"the tree is full with {tree.num_nodes} positions, so the search stops "
                    "(max-nodes sets its size)"
                )
                return
            on_batch()
            now = time.perf_counter()
            next_end = now + (now - batch_began)
            if should_stop() or (limits.seconds is not None and next_end - began > limits.seconds):
                return

    def _plan(self, root: Node, limits: Limits) -> tuple[Iterator[list[int]], bool]:
        """Return the root's edges to visit, batch by batch, and whether the search ends with them.

        Only the Gumbel search plans ahead; without a number of visits it continues by its rule.
        """
        rule = self._settings.rule
        if not isinstance(rule, Gumbel):
            return iter(()), False
        count = limits.visits if limits.visits is not None else limits.playouts
        return rule.rounds(root, count, lambda: self._width), count is not None

    def _remaining(self, root: Node, limits: Limits, first_visits: int) -> int:
        """Return how many playouts `limits` still allow; a large number where they set none.

        They allow more where the most visited move is not the best one (`PlayStyle.extension`).
        """
        if limits.seconds is not None and limits.seconds <= 0:
            return 0
        most = None if limits.playouts is None else first_visits + limits.playouts
        ends = [end for end in (limits.visits, most) if end is not None]
        if not ends:
            return 1 << 30
        end = min(ends)
        rest, extension = end - root.total_visits, int(self.style.extension * (end - first_visits))
        if rest <= 0 < extension and not is_most_visited_best(root, self._settings.rule):
            rest += extension
        return rest

    def _analyse(
        self, tree: ParallelTree, whole: Node, root: Node, first_visits: int, began: float
    ) -> Analysis:
        """Return the analysis of `root`; `whole` has all of its moves."""
        rule = self._settings.rule
        order = order_moves(root, rule, self.style.choice)
        value, raw_value = rule.value(root), whole.own_value
        return Analysis(
            describe_moves(root, whole.evaluation, rule, order),
            value,
            visits=root.total_visits,
            playouts=root.total_visits - first_visits,
            raw_value=value if math.isnan(raw_value) else raw_value,
            raw_policy=self.evaluator.own_policy(whole.evaluation.policy(self.game.num_actions)),
            seconds=time.perf_counter() - began,
            depth=tree.sum_depths / max(1, tree.num_descents),
            deepest=tree.deepest,
        )

    def _wants_to_resign(self, analysis: Analysis) -> bool:
        """Count own moves in a row below the threshold, and return whether they are enough."""
        threshold = self.style.resign_threshold
        if threshold is None:
            return False
        moves = analysis.moves if self.style.resigns_by_all else analysis.moves[:1]
        best = max([analysis.value, *(move.value for move in moves)])
        self._bad_moves = self._bad_moves + 1 if best < threshold else 0
        return self._bad_moves >= self.style.resign_moves

    def _ending_pass(
        self, position: Position, restriction: Restriction | None
    ) -> tuple[int, float] | None:
        """Return the pass and the value of the game for the side to move if the pass ends it: in Go
        after the opponent's.

        An opponent that passes early gives free moves, and is not beaten by a pass.
        """
        game = self.game
        if not isinstance(game, Go):
            return None
        if 3 * len(position.actions) < math.prod(game.board_shape):
            return None
        action = game.num_actions - 1
        if restriction is not None and not restriction.first_moves(position)[action]:
            return None
        (end,) = self._rules.step([self._rules.pack(position.state)], [action])
        sign = 1.0 - 2.0 * position.to_play
        return (action, sign * end.result) if end.is_terminal else None

    def _pick(self, analysis: Analysis, num_moves: int) -> int:
        """Return the move to play; without a search the network's most probable one."""
        if num_moves >= self.style.temperature_moves:
            return analysis.moves[0].action if analysis.moves else int(analysis.raw_policy.argmax())
        root, rule = self._tree.root, self._settings.rule
        if isinstance(rule, Gumbel) and analysis.moves and root is not None:
            moves, shares = root.actions.tolist(), rule.improved_policy(root)
        elif analysis.moves:
            moves = [move.action for move in analysis.moves]
            shares = np.array([move.visits for move in analysis.moves], np.float64)
        else:
            moves = np.flatnonzero(analysis.raw_policy).tolist()
            shares = analysis.raw_policy[moves].astype(np.float64)
        return int(self._random.choice(moves, p=shares / shares.sum()))

    def _is_decided(self, began: float, limits: Limits, position: Position) -> bool:
        """Return whether, at this speed, no other move can catch up with the most visited one in
        the time that is left."""
        root, elapsed = self._searched, time.perf_counter() - began
        seconds = limits.seconds or 0.0
        is_sampled = len(position.actions) < self.style.temperature_moves
        if is_sampled or elapsed < 0.1 * seconds:
            return False
        if position.legal.sum() == 1:
            return True
        visits = np.sort(root.visits)
        lead = visits[-1] - (visits[-2] if len(visits) > 1 else 0.0)
        return bool(lead > root.total_visits / elapsed * (seconds - elapsed))
