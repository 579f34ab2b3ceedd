"""The search of AlphaGo (2016): one tree on the host that mixes rollouts with the values of a network, and waits for neither.

Source: AG16 methods, 'Search algorithm'; constants from its Extended Data Table 5. An edge keeps its visits and sums apart: N_v, W_v of the value network and
N_r, W_r of rollouts. A descent follows argmax Q + u with Q = (1 - lambda) W_v / N_v + lambda W_r / N_r and u = c P sqrt(sum N_r) / (1 + N_r) to a move behind
which there is no node, and leaves n_vl lost rollouts on its way, which the backup takes back. The position behind that move is valued once and rolled out at
every visit; it becomes a node when its edge has more than n_thr rollouts. A node begins with the tree policy's priors; those of the policy network, softened by
beta, take their place when its turn in the queue comes. A move to which the policies give nothing is not searched while there is another: the networks of 2016
have no pass, and where they play they fill no eye of their own (sensible moves).

The paper's threads are batches here: the descents of a batch are evaluated together, and the queue of the policy network gives `policy_batch` answers a batch.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

import numpy as np

from azero.search.single.node import Ending
from azero.search.single.packed import PackedPosition, PackedRules
from azero.types import PyTree

FirstPlay = Literal["zero", "parent"]


@dataclass(frozen=True)
class ApvSettings:
    """How the tree searches."""

    batch: int = 16
    """Descents whose leaves are evaluated together (AG16: 40 threads)."""
    c_puct: float = 5.0
    """Exploration constant (AG16: 5)."""
    mixing: float = 0.5
    """lambda: the share of rollouts in Q; 0 is the value network alone, 1 rollouts alone (AG16: 0.5)."""
    virtual_loss: float = 3.0
    """n_vl: rollouts that a descent counts as lost until its result is there (AG16: 3)."""
    threshold: int = 40
    """n_thr: an edge with more rollouts gets a node (AG16: 40)."""
    is_adaptive: bool = False
    """Raise the threshold while the policy network's queue is longer than one batch of it, and lower it while it is empty (AG16: yes)."""
    policy_batch: int = 16
    """Positions of the queue that the policy network answers for each batch of descents (AG16: one at a time, but by processors of its own)."""
    beta: float = 0.67
    """The policy network's priors are proportional to p ** beta (AG16: 0.67)."""
    fpu: FirstPlay = "zero"
    """First-play urgency, the Q of a move that no descent has taken: 0 (AG16), or with "parent" the mean over the moves that have been taken. With 0, a side that is
    behind looks at every move once before it looks at any again, which few rollouts cannot afford."""
    max_nodes: int = 400_000
    """The search stops when the tree has so many nodes."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.mixing <= 1.0:
            raise ValueError(f"mixing lies in [0, 1], not {self.mixing}")
        if self.fpu not in get_args(FirstPlay):
            raise ValueError(f"fpu is {' or '.join(get_args(FirstPlay))}, not {self.fpu}")
        for name, least in (("batch", 1), ("threshold", 0), ("policy_batch", 1), ("max_nodes", 1), ("virtual_loss", 0), ("c_puct", 0), ("beta", 0)):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name.replace('_', '-')} is at least {least}, not {getattr(self, name)}")


class AskFn(Protocol):
    """`Evaluator.ask`, with the symmetries left to the evaluator."""

    def __call__(self, positions: Sequence[PackedPosition]) -> tuple[np.ndarray, np.ndarray]:
        """Return policies float32[P, A] over the legal moves and values float32[P] for the side to move."""
        ...


class Judges(NamedTuple):
    """Who is asked about positions."""

    policy: AskFn
    """the policy network; its values are not looked at"""
    value: AskFn
    """the value network; its policies are not looked at"""
    rollout: AskFn
    """outcomes of one rollout each, for the side to move: points without komi where the game is scored; the policies are the tree policy's"""


class Leaf:
    """A position behind an edge that is no node yet."""

    __slots__ = ("placeholder", "position", "value")

    def __init__(self, position: PackedPosition) -> None:
        self.position = position
        self.value: float | None = None
        """Of the value network, for the side to move; None until it has answered."""
        self.placeholder: np.ndarray | None = None
        """float32[A]: the tree policy."""


class ApvNode:
    """A position of the tree with its edges, one for every legal move to which the policy that made it gives a chance."""

    __slots__ = ("actions", "children", "is_settled", "position", "priors", "rollout_sums", "rollouts", "value_sums", "values")

    def __init__(self, position: PackedPosition, policy: np.ndarray) -> None:
        self.position = position
        likely = position.legal & (policy > 0)
        self.actions = np.flatnonzero(likely if likely.any() else position.legal)
        self.is_settled = False
        """Whether the priors are the policy network's."""
        self.priors = np.zeros(0)
        self._set_priors(policy, 1.0)
        self.values, self.value_sums, self.rollouts, self.rollout_sums = np.zeros((4, len(self.actions)))
        """float64[L]: N_v, W_v, N_r, W_r for the side to move here; N_r and W_r with the virtual losses of descents under way."""
        self.children: list[ApvNode | Leaf | Ending | None] = [None] * len(self.actions)

    def settle(self, policy: np.ndarray, beta: float) -> None:
        """Take the priors from the policy network's answer float32[A]."""
        self._set_priors(policy, beta)
        self.is_settled = True

    def _set_priors(self, policy: np.ndarray, beta: float) -> None:
        odds = policy[self.actions].astype(np.float64) ** beta
        total = odds.sum()
        self.priors = odds / total if total > 0 else np.full(len(self.actions), 1.0 / max(1, len(self.actions)))

    def action_values(self, mixing: float) -> np.ndarray:
        """Return Q float64[L]; a part without visits counts 0."""
        by_value = self.value_sums / np.maximum(self.values, 1.0)
        by_rollout = self.rollout_sums / np.maximum(self.rollouts, 1.0)
        return (1.0 - mixing) * by_value + mixing * by_rollout


Path = list[tuple[ApvNode, int]]


class ApvTree:
    """The tree of one game."""

    def __init__(self, rules: PackedRules, judges: Judges, settings: ApvSettings, left_moves: Callable[[int, int], np.ndarray] | None = None) -> None:
        """Make an empty tree; `move_to` gives it a root. The rules take batches of at least `settings.batch`.

        `left_moves` (to_play, depth) -> bool[A] are the moves that are searched at so many moves below the root, None is all; a tree that restricts has one root.
        """
        self._rules, self._judges, self._settings, self._left_moves = rules, judges, settings, left_moves
        self.root: ApvNode | None = None
        self.threshold = settings.threshold
        self.num_nodes = 0
        self._queue: deque[ApvNode] = deque()

    def clear(self) -> None:
        """Forget the tree."""
        self.root, self.num_nodes = None, 0
        self._queue.clear()

    def move_to(self, state: PyTree, legal: np.ndarray, actions: Sequence[int] | None) -> bool:
        """Make `state` the root, with the moves of `legal` bool[A]; `actions` are the moves since the last root, None if it does not follow from it.

        Returns:
          Whether the tree below has been kept.
        """
        position = self._rules.pack(state)._replace(legal=legal)
        node = self._follow(actions) if actions is not None else None
        kept = node is not None and node.position.state == position.state and np.array_equal(node.position.legal, legal)
        if node is None or not kept:
            self.clear()
            policies, _ = self._judges.policy([position])
            node = ApvNode(position, policies[0])
            node.settle(policies[0], self._settings.beta)
        below = _nodes(node)
        known = {id(one) for one in below}
        self.root, self.num_nodes = node, len(below)
        self._queue = deque(waiting for waiting in self._queue if waiting is not node and id(waiting) in known)
        if not node.is_settled:
            self._settle([node])
        return kept

    def _follow(self, actions: Sequence[int]) -> ApvNode | None:
        node: ApvNode | Leaf | Ending | None = self.root
        for action in actions:
            if not isinstance(node, ApvNode) or action not in node.actions:
                return None
            node = node.children[int(np.searchsorted(node.actions, action))]
        return node if isinstance(node, ApvNode) else None

    def search(self, most: int) -> int:
        """Make one batch of at most `most` descents and return how many; zero if and only if the tree is full."""
        if self.root is None:
            raise RuntimeError("the tree has no root")
        if self.num_nodes >= self._settings.max_nodes:
            return 0
        paths = [self._descend(self.root) for _ in range(min(most, self._settings.batch))]
        self._reach(paths)
        ends = [(path, path[-1][0].children[path[-1][1]]) for path in paths]
        leaves = [(path, end) for path, end in ends if isinstance(end, Leaf)]
        self._value([(path, leaf) for path, leaf in leaves])
        results = self._roll_out([leaf for _, leaf in leaves])
        for (path, _), result in zip(leaves, results, strict=True):
            self._back_up_rollout(path, result)
        for path, end in ends:
            if isinstance(end, Ending):
                # The exact result stands for both judges.
                self._back_up_rollout(path, end.result)
                _back_up_value(path, end.result)
        self._grow(leaves)
        self._answer()
        return len(paths)

    def _descend(self, node: ApvNode) -> Path:
        path: Path = []
        while True:
            total = node.rollouts.sum()
            spread = self._settings.c_puct * math.sqrt(total) * node.priors / (1.0 + node.rollouts)
            values = node.action_values(self._settings.mixing)
            if self._settings.fpu == "parent" and total > 0:
                values = np.where(node.rollouts > 0, values, (values * node.rollouts).sum() / total)
            # At a node without rollouts all spreads are zero; the prior decides then.
            edge = int((values + spread + 1e-9 * node.priors).argmax())
            path.append((node, edge))
            node.rollouts[edge] += self._settings.virtual_loss
            node.rollout_sums[edge] -= self._settings.virtual_loss
            child = node.children[edge]
            if not isinstance(child, ApvNode):
                return path
            node = child

    def _reach(self, paths: list[Path]) -> None:
        """Play the last moves of `paths` where nobody has yet."""
        fresh = {(id(node), edge): (node, edge) for (node, edge) in (path[-1] for path in paths) if node.children[edge] is None}
        if not fresh:
            return
        edges = list(fresh.values())
        positions = self._rules.step([node.position for node, _ in edges], [int(node.actions[edge]) for node, edge in edges])
        for (node, edge), position in zip(edges, positions, strict=True):
            node.children[edge] = Ending(position.result) if position.is_terminal else Leaf(position)

    def _value(self, leaves: list[tuple[Path, Leaf]]) -> None:
        """Ask the value network about leaves it has not seen, and back its answers up once along the way that came there first."""
        fresh = {id(leaf): (path, leaf) for path, leaf in reversed(leaves) if leaf.value is None}
        if not fresh or self._settings.mixing == 1.0:
            return
        _, values = self._judges.value([leaf.position for _, leaf in fresh.values()])
        for (path, leaf), value in zip(fresh.values(), values, strict=True):
            leaf.value = float(value)
            _back_up_value(path, leaf.value * _sign(leaf.position.to_play))

    def _roll_out(self, leaves: list[Leaf]) -> list[float]:
        """Return the results of one rollout from each leaf, for the first mover."""
        if not leaves:
            return []
        policies, outcomes = self._judges.rollout([leaf.position for leaf in leaves])
        for leaf, policy in zip(leaves, policies, strict=True):
            leaf.placeholder = policy
        signs = (_sign(leaf.position.to_play) for leaf in leaves)
        return [self._rules.result_of(sign * float(outcome)) for sign, outcome in zip(signs, outcomes, strict=True)]

    def _back_up_rollout(self, path: Path, result: float) -> None:
        """Take the virtual losses back and add a rollout's result, which is for the first mover."""
        loss = self._settings.virtual_loss
        for node, edge in path:
            node.rollouts[edge] += 1.0 - loss
            node.rollout_sums[edge] += loss + result * _sign(node.position.to_play)

    def _grow(self, leaves: list[tuple[Path, Leaf]]) -> None:
        """Make nodes of the leaves whose edges have been rolled out often enough; a position without a move that may be searched stays a leaf."""
        for path, leaf in leaves:
            node, edge = path[-1]
            if node.children[edge] is leaf and node.rollouts[edge] > self.threshold and leaf.placeholder is not None:
                legal = leaf.position.legal
                if self._left_moves is not None:
                    legal = legal & self._left_moves(leaf.position.to_play, len(path))
                if not legal.any():
                    continue
                child = ApvNode(leaf.position._replace(legal=legal), leaf.placeholder)
                node.children[edge] = child
                self._queue.append(child)
                self.num_nodes += 1

    def _answer(self) -> None:
        """Let the policy network answer the oldest positions of its queue, and adapt the threshold to the length of the rest."""
        waiting = [self._queue.popleft() for _ in range(min(len(self._queue), self._settings.policy_batch))]
        self._settle(waiting)
        if self._settings.is_adaptive:
            if len(self._queue) > self._settings.policy_batch:
                self.threshold += 1
            elif not self._queue:
                self.threshold = max(0, self.threshold - 1)

    def _settle(self, nodes: list[ApvNode]) -> None:
        if not nodes:
            return
        policies, _ = self._judges.policy([node.position for node in nodes])
        for node, policy in zip(nodes, policies, strict=True):
            node.settle(policy, self._settings.beta)


def choose_edge(root: ApvNode, mixing: float) -> tuple[int, bool]:
    """Return the edge of the most rollouts, the better in Q of equals, and whether it is also the best in Q of those rolled out; if not, search on (AG16)."""
    values = root.action_values(mixing)
    most = int(np.lexsort((values, root.rollouts))[-1])
    return most, bool(values[most] >= values[root.rollouts > 0].max(initial=-np.inf))


def _sign(to_play: int) -> float:
    """Return 1 for the first mover, else -1."""
    return 1.0 - 2.0 * to_play


def _back_up_value(path: Path, value: float) -> None:
    """Add an answer of the value network, which is for the first mover."""
    for node, edge in path:
        node.values[edge] += 1.0
        node.value_sums[edge] += value * _sign(node.position.to_play)


def _nodes(root: ApvNode) -> list[ApvNode]:
    """Return the nodes of the tree below `root`, itself included."""
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(child for child in node.children if isinstance(child, ApvNode))
    return found
