"""The leaf of AlphaGo (2016): a rollout at every visit, a value once, and priors in two steps.

Source: AG16 methods, "Search algorithm"; constants from its Extended Data Table 5. The position
behind an edge is valued once and rolled out at every visit; it becomes a node when its edge has
more than n_thr visits. A node begins with the tree policy's priors; those of the policy network,
softened by beta, take their place when its turn in the queue comes. A move with probability zero is
not searched while there is another: the networks of 2016 have no pass, and where they play they
fill no eye of their own (sensible moves).

The paper's threads are batches here: the leaves of a batch are evaluated together, and after each
batch the policy network evaluates `policy_batch` nodes of its queue.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from azero.games.game import Game
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.evaluator import Evaluator
from azero.search.single.leaves import Visit
from azero.search.single.node import Evaluation, Leaf, Node, nodes_below, sign_of
from azero.search.single.packed import PackedPosition, PackedRules
from azero.types import PyTree

_EDGE_BYTES = 64
"""Of an edge: six numbers of 8 bytes, and the reference to its child."""
_LEAF_BYTES = 5
"""Of a leaf for every move, apart from its state: the tree policy's prior, and whether it is legal.
A node has about as many leaves as rollouts made it."""


@dataclass(frozen=True)
class MixSettings:
    """How leaves are evaluated."""

    asks_values: bool = True
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
        for name, least in (("threshold", 0), ("policy_batch", 1), ("beta", 0)):
            if not getattr(self, name) >= least:
                words = name.replace("_", "-")
                raise ValueError(f"{words} is at least {least}, not {getattr(self, name)}")


class AskFn(Protocol):
    """Evaluates positions with one network or policy."""

    def __call__(self, positions: Sequence[PackedPosition]) -> tuple[np.ndarray, np.ndarray]:
        """Return policies float32[P, A] over legal moves, values float32[P] for the side to
        move."""
        ...


def make_ask(
    game: Game,
    leaf: SymmetryLeafFn,
    params: PyTree,
    *,
    batch: int,
    seed: int,
    random_symmetry: bool = True,
) -> AskFn:
    """Return a function that evaluates positions with one leaf, in calls of up to `batch`; `seed`
    is for all random numbers.

    With `random_symmetry` every position is evaluated under a random symmetry (AG16 methods: the
    implicit symmetry ensemble); rollouts need none.
    """
    evaluator = Evaluator(game, leaf, params, batch=batch, symmetry="none", cache_size=0, seed=seed)
    random, num_symmetries = (
        np.random.default_rng(seed),
        game.num_symmetries if random_symmetry else 1,
    )

    def ask(positions: Sequence[PackedPosition]) -> tuple[np.ndarray, np.ndarray]:
        symmetries = random.integers(0, num_symmetries, len(positions)).tolist()
        return evaluator.ask(positions, symmetries)

    return ask


class MixedEvaluator(NamedTuple):
    """`LeafEvaluator` of a policy network, a value network and rollouts."""

    policy: AskFn
    """the policy network; its values are not used"""
    value: AskFn
    """the value network; its policies are not used"""
    rollout: AskFn
    """outcomes of one rollout each, for the side to move: points without komi where the game is
    scored; the policies are the tree policy's"""
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
        policies, _ = self.policy([position])
        _, values = self.value([position])
        policy = policies[0]
        return Evaluation.ordered(legal, policy[legal], float(values[0]), policy.size)

    def warm_up_in_steps(self, position: PackedPosition) -> Iterator[int]:
        """Compile everything, all in one step."""
        for size in {1, self.settings.policy_batch}:
            self.policy([position] * size)
        for size in {1, self.batch}:
            self.rollout([position] * size)
            if self.settings.asks_values:
                self.value([position] * size)
        yield self.batch

    def node_bytes(self, state_bytes: int, num_actions: int) -> int:
        """Return about how much memory a node takes, with its edges and leaves."""
        leaf_bytes = state_bytes + _LEAF_BYTES * num_actions
        return _EDGE_BYTES * num_actions + (self.settings.threshold + 1) * leaf_bytes


class MixedLeaves:
    """`Leaves` of one tree, with its queue for the policy network."""

    counts_apart = True

    def __init__(
        self,
        evaluator: MixedEvaluator,
        rules: PackedRules,
        edge_width: int | None = None,
    ) -> None:
        """Make them with an empty queue."""
        self._evaluator, self._rules, self._edge_width = evaluator, rules, edge_width
        self.threshold = evaluator.settings.threshold
        self.queue: deque[tuple[Node, PackedPosition]] = deque()
        """Nodes with the tree policy's priors, the oldest first."""

    def root(self, position: PackedPosition, legal: np.ndarray) -> Node:
        """Return the node of `position`, with the policy network's priors."""
        position = position._replace(legal=legal)
        policies, _ = self._evaluator.policy([position])
        return self._make_node(position, policies[0], self._evaluator.settings.beta)

    def _make_node(self, position: PackedPosition, policy: np.ndarray, beta: float) -> Node:
        likely = position.legal & (policy > 0)
        actions = np.flatnonzero(likely if likely.any() else position.legal)
        priors = _soften(policy[actions], beta)
        evaluation = Evaluation.ordered(actions, priors, math.nan, policy.size)
        return Node(position, evaluation.narrowed(self._edge_width))

    def visit(self, leaves: Sequence[Leaf]) -> list[Visit]:
        """Return the result of one rollout for each leaf, and the value of leaves visited for the
        first time."""
        if not leaves:
            return []
        values = self._values(leaves)
        policies, outcomes = self._evaluator.rollout([leaf.position for leaf in leaves])
        visits = []
        for i, (leaf, policy) in enumerate(zip(leaves, policies, strict=True)):
            leaf.policy = policy
            outcome = sign_of(leaf.position.to_play) * float(outcomes[i])
            visits.append(Visit(self._rules.result_of(outcome), values.get(i)))
        return visits

    def _values(self, leaves: Sequence[Leaf]) -> dict[int, float]:
        """Return the value network's values for the first mover, at the first visits of leaves, by
        the index of the visit.
        """
        if not self._evaluator.settings.asks_values:
            return {}
        numbered = reversed(list(enumerate(leaves)))
        fresh = {id(leaf): i for i, leaf in numbered if leaf.value is None}
        if not fresh:
            return {}
        _, values = self._evaluator.value([leaves[i].position for i in fresh.values()])
        for i, value in zip(fresh.values(), values, strict=True):
            leaves[i].value = float(value) * sign_of(leaves[i].position.to_play)
        return {i: value for i in fresh.values() if (value := leaves[i].value) is not None}

    def expand(self, leaf: Leaf, visits: float) -> Node | Leaf:
        """Return a node if `visits` is above the threshold; a leaf without a move to search stays a
        leaf."""
        position = leaf.position
        if leaf.allowed is not None:
            position = position._replace(legal=position.legal & leaf.allowed)
        if visits <= self.threshold or leaf.policy is None or not position.legal.any():
            return leaf
        node = self._make_node(position, leaf.policy, 1.0)
        self.queue.append((node, position))
        return node

    def finish_batch(self) -> None:
        """Evaluate the oldest nodes of the policy network's queue; adapt the threshold to the
        rest."""
        most = self._evaluator.settings.policy_batch
        self._answer([self.queue.popleft() for _ in range(min(len(self.queue), most))])
        if self._evaluator.settings.is_adaptive:
            if len(self.queue) > most:
                self.threshold += 1
            elif not self.queue:
                self.threshold = max(0, self.threshold - 1)

    def retain(self, root: Node | None) -> None:
        """Keep the nodes below `root` in the queue, and evaluate `root` itself."""
        waiting, self.queue = self.queue, deque()
        if root is not None and waiting:
            below = {id(node) for node in nodes_below(root)}
            self._answer([one for one in waiting if one[0] is root])
            self.queue.extend(o for o in waiting if o[0] is not root and id(o[0]) in below)

    def _answer(self, waiting: Sequence[tuple[Node, PackedPosition]]) -> None:
        """Give nodes the priors of the policy network."""
        if not waiting:
            return
        policies, _ = self._evaluator.policy([position for _, position in waiting])
        for (node, _), policy in zip(waiting, policies, strict=True):
            actions, priors = np.sort(node.evaluation.actions), np.zeros(policy.size)
            priors[actions] = _soften(policy[actions], self._evaluator.settings.beta)
            node.set_priors(priors)


def _soften(policy: np.ndarray, beta: float) -> np.ndarray:
    """Return p ** beta over some moves, scaled to sum to one: float64[L]; uniform where all are
    zero."""
    odds = policy.astype(np.float64) ** beta
    total = odds.sum()
    return odds / total if total > 0 else np.full(len(odds), 1.0 / max(1, len(odds)))
