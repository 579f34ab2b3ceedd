"""The leaf of AlphaGo (2016): a rollout at every visit, a value once, and priors in two steps.

Source: AG16 methods, "Search algorithm"; constants from its Extended Data Table 5. The position
behind an edge is valued once and rolled out at every visit; it becomes a node when its edge has
more than n_thr visits. A node begins with the tree policy's priors; those of the policy network,
softened by beta, replace them when its turn in the queue comes. A move with probability zero is not
searched while there is another: the networks of 2016 have no pass, and in play they never fill an
eye of their own (sensible moves).

The paper's threads are batches here: the leaves of a batch are evaluated together, and after each
batch the policy network evaluates `policy_batch` nodes of its queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from azero.config import check_range
from azero.games.game import Game
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.evaluator import Evaluator
from azero.search.single.leaves import Visits, keep_most_probable
from azero.search.single.node import Evaluation, Node, sign_of
from azero.search.single.packed import PackedPosition, PackedPositions, PackedRules, states_of
from azero.search.single.store import Store
from azero.types import PyTree


@dataclass(frozen=True)
class MixSettings:
    """How leaves are evaluated."""

    uses_values: bool = True
    """Whether the value network is evaluated; where lambda is 1 its values do not count."""
    threshold: int = 40
    """n_thr: an edge with more rollouts gets a node (AG16: 40)."""
    is_adaptive: bool = False
    """Raise the threshold while the policy network's queue is longer than one batch of it, and
    lower it while it is empty (AG16: yes)."""
    policy_batch: int = 16
    """Positions of the queue that the policy network evaluates after each batch of descents (AG16:
    one at a time, on processors of its own)."""
    beta: float = 0.67
    """The policy network's priors are proportional to p ** beta (AG16: 0.67)."""

    def __post_init__(self) -> None:
        check_range(self, "", "threshold beta", 0)
        check_range(self, "", "policy_batch", 1)


class EvaluateFn(Protocol):
    """Evaluates positions with one network or policy."""

    def __call__(
        self, positions: Sequence[PackedPosition]
    ) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """Begin; the function that is returned waits for policies float32[P, A] over legal moves
        and values float32[P] for the side to move."""
        ...


RolloutFn = Callable[[Sequence[PackedPosition]], Callable[[], np.ndarray]]
"""Begins to play a rollout from each position; the function that it returns waits for the outcomes
float[P] for the first mover: points without komi where the game is scored."""


def make_evaluate_fn(
    game: Game,
    leaf: SymmetryLeafFn,
    params: PyTree,
    *,
    batch: int,
    seed: int,
    smallest: int = 1,
    random_symmetry: bool = True,
) -> EvaluateFn:
    """Make the function that evaluates positions with one leaf, in calls of up to `batch`; calls of
    fewer than `smallest` positions are padded. `seed` is for all random numbers.

    With `random_symmetry` every position is evaluated under a random symmetry (AG16 methods: the
    implicit symmetry ensemble); the tree policy needs none.
    """
    evaluator = Evaluator(
        game, leaf, params, batch=batch, symmetry="none", cache_size=0, seed=seed, smallest=smallest
    )
    random = np.random.default_rng(seed)
    num_symmetries = game.num_symmetries if random_symmetry else 1

    def begin(positions: Sequence[PackedPosition]) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        symmetries = random.integers(0, num_symmetries, len(positions))
        legal = np.stack([position.legal for position in positions])
        return evaluator.begin_uncached(states_of(positions), legal, symmetries)

    return begin


class MixedEvaluator(NamedTuple):
    """`LeafEvaluator` of a policy network, a value network, a tree policy and rollouts."""

    policy: EvaluateFn
    """The policy network; its values are not used."""
    value: EvaluateFn
    """The value network; its policies are not used."""
    tree: EvaluateFn
    """The tree policy; it has no values."""
    rollout: RolloutFn
    settings: MixSettings = MixSettings()
    batch: int = 16
    """Leaves that are evaluated together."""
    num_symmetries: int = 0
    """None can be chosen: the networks draw them at random."""

    def leaves(self, rules: PackedRules, edge_width: int | None = None) -> MixedLeaves:
        """Return what evaluates the leaves of one tree."""
        return MixedLeaves(self, rules, edge_width)

    def view(self, position: PackedPosition, symmetry: int | None = None) -> Evaluation:
        """Return the policy network's policy and the value network's value."""
        assert symmetry is None
        legal = np.flatnonzero(position.legal)
        policies, _ = self.policy([position])()
        _, values = self.value([position])()
        policy = policies[0]
        return Evaluation.ordered(legal, policy[legal], float(values[0]), policy.size)

    def own_policy(self, priors: np.ndarray) -> np.ndarray:
        """Return the policy network's policy, which beta has not softened; the priors themselves
        with a beta of 0."""
        beta = self.settings.beta
        return _soften(priors, 1.0 / beta).astype(np.float32) if beta else priors

    def warm_up_in_steps(self, position: PackedPosition) -> Iterator[int]:
        """Compile everything, all in one step."""
        self.rollout([position])()
        for evaluate, batch in (
            (self.policy, self.settings.policy_batch),
            (self.tree, self.batch),
            *([(self.value, self.batch)] if self.settings.uses_values else []),
        ):
            for size in sorted({1, max(1, batch // 2), batch}):  # the sizes of `Evaluator`
                evaluate([position] * size)()
        yield self.batch

    def node_bytes(self, state_bytes: int, num_actions: int) -> int:
        """Return about how much memory a node takes, with its edges and leaves."""
        # A node has about as many leaves as rollouts made it, and its edges may have been moved.
        leaf_bytes = state_bytes + Store.bytes_of(num_actions, 0)
        edges_bytes = Store.bytes_of(0, 3 * num_actions)
        return edges_bytes + (self.settings.threshold + 1) * leaf_bytes


class MixedLeaves:
    """`Leaves` of one tree, with its queue for the policy network."""

    counts_separately = True

    def __init__(
        self, evaluator: MixedEvaluator, rules: PackedRules, edge_width: int | None = None
    ) -> None:
        """Make them with an empty queue."""
        self._evaluator, self._rules, self._edge_width = evaluator, rules, edge_width
        self.threshold = evaluator.settings.threshold
        self.queue: deque[int] = deque()
        """Rows of nodes with the tree policy's priors, the oldest first."""
        self._allowed: dict[int, np.ndarray] = {}
        """bool[A]: the moves of leaves under a restriction, by row."""

    def root(self, store: Store, position: PackedPosition, legal: np.ndarray) -> int:
        """Add the node of `position`, with the policy network's priors."""
        (row,) = store.add(states_of([position]), np.array([position.to_play]))
        policies, _ = self._evaluator.policy([position._replace(legal=legal)])()
        self._set_moves(store, row, legal, policies[0], self._evaluator.settings.beta)
        store.columns.nodes["is_open"][row] = True
        return int(row)

    def _set_moves(
        self, store: Store, row: int, legal: np.ndarray, policy: np.ndarray, beta: float
    ) -> None:
        """Give a node those of the moves `legal` bool[A] that `policy` float[A] gives any
        probability; if it gives none, all."""
        likely = legal & (policy > 0)
        moves = (likely if likely.any() else legal)[None]
        priors = np.zeros(moves.shape)
        priors[moves] = _soften(policy[moves[0]], beta)
        store.set_moves(np.array([row]), *keep_most_probable(moves, priors, self._edge_width))

    def add(
        self, store: Store, rows: np.ndarray, positions: PackedPositions, allowed: np.ndarray | None
    ) -> Callable[[], None]:
        """Note the legal moves of the leaves; they have no priors before the first visit."""
        store.set_moves(rows, positions.legal, np.zeros(positions.legal.shape))
        if allowed is not None:
            self._allowed.update(zip(rows.tolist(), positions.legal & allowed, strict=True))
        return lambda: None

    def visit(self, store: Store, rows: np.ndarray) -> Visits:
        """Return the result of one rollout for each leaf, and the value of leaves visited for the
        first time."""
        results, values = np.empty(len(rows)), np.full(len(rows), np.nan)
        if not len(rows):
            return Visits(results, values)
        positions = [_position(store, row) for row in rows]
        # Rollouts take the host's cores while the networks are evaluated.
        outcomes, priors = self._evaluator.rollout(positions), self._evaluator.tree(positions)
        if self._evaluator.settings.uses_values:
            self._set_values(store, rows, values)
        policies, _ = priors()
        for i, (position, outcome) in enumerate(zip(positions, outcomes(), strict=True)):
            self._set_moves(store, rows[i], position.legal, policies[i], 1.0)
            results[i] = self._rules.result_of(float(outcome))
        return Visits(results, values)

    def _set_values(self, store: Store, rows: np.ndarray, values: np.ndarray) -> None:
        """Write the value network's `values` float64[V] for the first mover, at the first visits of
        leaves."""
        fresh, first = np.unique(rows, return_index=True)
        is_new = np.isnan(store.columns.nodes["value"][fresh])
        fresh, first = fresh[is_new], first[is_new]
        if len(fresh):
            _, found = self._evaluator.value([_position(store, row) for row in fresh])()
            store.set_values(fresh, found)
            signs = [sign_of(player) for player in store.columns.nodes["to_play"][fresh]]
            values[first] = found * signs

    def open(self, store: Store, rows: np.ndarray, visits: np.ndarray) -> int:
        """Open the leaves with `visits` above the threshold; one without a move to search stays a
        leaf."""
        count = 0
        for row in rows[visits > self.threshold].tolist():
            allowed = self._allowed.get(row)
            if store.columns.nodes["is_open"][row] or (allowed is not None and not allowed.any()):
                continue
            if allowed is not None:
                policy = Node(store, row).evaluation.policy(store.num_actions)
                self._set_moves(store, row, allowed, policy, 1.0)
            store.columns.nodes["is_open"][row] = True
            self.queue.append(row)
            count += 1
        return count

    def finish_batch(self, store: Store) -> None:
        """Evaluate the oldest nodes of the policy network's queue; adapt the threshold to the
        rest."""
        most = self._evaluator.settings.policy_batch
        self._answer(store, [self.queue.popleft() for _ in range(min(len(self.queue), most))])
        if self._evaluator.settings.is_adaptive:
            if len(self.queue) > most:
                self.threshold += 1
            elif not self.queue:
                self.threshold = max(0, self.threshold - 1)

    def retain(self, store: Store | None, new_rows: np.ndarray | None) -> None:
        """Keep the nodes of the tree in the queue, and evaluate the root itself."""
        waiting, self.queue = self.queue, deque()
        self._allowed.clear()
        if store is not None and new_rows is not None and waiting:
            kept = [row for row in new_rows[list(waiting)].tolist() if row >= 0]
            self._answer(store, [row for row in kept if row == 0])
            self.queue.extend(row for row in kept if row != 0)

    def _answer(self, store: Store, rows: Sequence[int]) -> None:
        """Give nodes the priors of the policy network."""
        if not rows:
            return
        policies, _ = self._evaluator.policy([_position(store, row) for row in rows])()
        for row, policy in zip(rows, policies, strict=True):
            node, priors = Node(store, row), np.zeros(policy.size)
            priors[node.actions] = _soften(policy[node.actions], self._evaluator.settings.beta)
            node.set_priors(priors)


def _position(store: Store, row: int) -> PackedPosition:
    """Return a position of the tree; its legal moves are those that are searched."""
    node, legal = Node(store, row), np.zeros(store.num_actions, bool)
    legal[node.actions] = True
    return PackedPosition(node.state, b"", node.to_play, False, 0.0, legal)


def _soften(policy: np.ndarray, beta: float) -> np.ndarray:
    """Return p ** beta over some moves, scaled to sum to one: float64[L]; uniform where all are
    zero."""
    odds = policy.astype(np.float64) ** beta
    total = odds.sum()
    return odds / total if total > 0 else np.full(len(odds), 1.0 / max(1, len(odds)))
