"""The nodes of the tree of one game, and what else an edge may lead to.

An edge belongs to its parent node, as in AlphaGo Zero: visits, sum and sum of squares of the values
for the side to move at the parent. The moves of a node are in falling order of their priors.
Unvisited moves all have the same value, so the best of them is always the first one: the visited
moves come before all others, and only they take memory and time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from azero.search.single.packed import PackedPosition

_FIRST_EDGES = 4
"""Edges that a node has room for at first; the room doubles as needed."""


class Evaluation(NamedTuple):
    """The legal moves of a position, the most probable first, and its value."""

    actions: np.ndarray
    """int[L]: int16 where that suffices."""
    priors: np.ndarray
    """float[L], falling; they sum to one."""
    value: float
    """In [-1, 1] for the side to move; nan where it is not known."""

    @classmethod
    def ordered(
        cls,
        actions: np.ndarray,
        priors: np.ndarray,
        value: float,
        num_actions: int,
    ) -> Evaluation:
        """Return the evaluation with `actions` int[L] sorted by `priors`, the highest first."""
        order = np.argsort(-priors, kind="stable")
        dtype = np.int16 if num_actions <= np.iinfo(np.int16).max else np.int32
        return cls(actions[order].astype(dtype), priors[order], value)

    def policy(self, num_actions: int) -> np.ndarray:
        """Return the priors as float32[A], zero on illegal moves."""
        policy = np.zeros(num_actions, np.float32)
        policy[self.actions] = self.priors
        return policy

    def among(self, allowed: np.ndarray) -> Evaluation:
        """Return the same for the moves of `allowed` bool[A] alone, their priors in proportion."""
        chosen = allowed[self.actions]
        actions, priors = self.actions[chosen], self.priors[chosen]
        total = priors.sum()
        even = np.full(priors.shape, 1 / max(1, len(priors)), priors.dtype)
        return Evaluation(actions, priors / total if total > 0 else even, self.value)

    def narrowed(self, width: int | None) -> Evaluation:
        """Return the same for the `width` most probable moves alone; None is all."""
        if width is None or len(self.actions) <= width:
            return self
        priors = self.priors[:width] / max(float(self.priors[:width].sum()), 1e-30)
        return Evaluation(self.actions[:width], priors, self.value)


class Node:
    """A position of the tree that is not over, with its edges."""

    __slots__ = (
        "_network",
        "children",
        "evaluation",
        "explored",
        "position",
        "squares",
        "sums",
        "total_value",
        "total_visits",
        "tried",
        "visits",
    )

    def __init__(self, position: PackedPosition, evaluation: Evaluation) -> None:
        # The mask takes up to 11 KB and is not needed any more: the evaluation has the legal moves.
        self.position = position._replace(legal=np.zeros(0, bool))
        self.evaluation = evaluation
        self.tried = 0
        """Edges visited so far: the first ones of `evaluation`."""
        self.visits = np.zeros(0)
        """float64[room]: N, virtual losses of unfinished descents included."""
        self.sums = np.zeros(0)
        """float64[room]: W, sum of the values for the side to move here; a virtual loss is -1."""
        self.squares = np.zeros(0)
        """float64[room]: sum of the squared values, virtual losses left out."""
        self.children: list[Node | Leaf | Ending | None] = []
        """The child of each tried edge; None while its first evaluation is pending."""
        self.total_visits = 0
        self.total_value = evaluation.value
        """Sum of the node's own evaluation and of all backed-up values."""
        self.explored = 0.0
        """Sum of the priors of the tried edges."""
        self._network: np.ndarray | None = None

    @property
    def value(self) -> float:
        """Mean of the node's own evaluation and all that was backed up, for the side to move."""
        return self.total_value / (1 + self.total_visits)

    def network_part(self) -> np.ndarray:
        """Return N_v and W_v, values of a network counted apart from rollouts: float64[2, room].

        The array is made at the first call.
        """
        room = len(self.visits)
        if self._network is None:
            self._network = np.zeros((2, room))
        elif self._network.shape[1] < room:
            self._network = np.pad(self._network, ((0, 0), (0, room - self._network.shape[1])))
        return self._network

    def add_edge(self) -> None:
        """Make room for the best untried edge."""
        if self.tried == len(self.visits):
            room = min(max(_FIRST_EDGES, 2 * self.tried), len(self.evaluation.actions))
            self.visits = _grown(self.visits, room)
            self.sums = _grown(self.sums, room)
            self.squares = _grown(self.squares, room)
        self.explored += float(self.evaluation.priors[self.tried])
        self.children.append(None)
        self.tried += 1

    def edge_of(self, action: int) -> int | None:
        """Return the index of the edge of `action` if it has been tried."""
        found = np.flatnonzero(self.evaluation.actions[: self.tried] == action)
        return int(found[0]) if len(found) else None

    def set_priors(self, policy: np.ndarray) -> None:
        """Replace the priors by `policy` float[A]; tried edges keep their places, the others are
        sorted."""
        tried, untried = np.split(self.evaluation.actions, [self.tried])
        order = np.concatenate([tried, untried[np.lexsort((untried, -policy[untried]))]])
        self.evaluation = Evaluation(order, policy[order], self.evaluation.value)
        self.explored = float(policy[tried].sum())


def _grown(column: np.ndarray, room: int) -> np.ndarray:
    """Return the column with zeros behind it (np.append takes three times as long)."""
    grown = np.zeros(room)
    grown[: len(column)] = column
    return grown


class Leaf:
    """A position of the tree that is not a node yet."""

    __slots__ = ("allowed", "evaluation", "policy", "position", "value")

    def __init__(self, position: PackedPosition, allowed: np.ndarray | None) -> None:
        self.position = position
        self.allowed = allowed
        """bool[A]: the moves, legal or not, that a restriction allows; None is all."""
        self.evaluation: Evaluation | None = None
        """Of a network, once it has been evaluated."""
        self.policy: np.ndarray | None = None
        """float32[A] of the tree policy, once it has been evaluated (AG16)."""
        self.value: float | None = None
        """Of the value network, for the first mover, once it has been evaluated (AG16)."""


class Ending(NamedTuple):
    """A position below which nothing is searched: each visit backs up the same value.

    The game is over, a restriction allows no move, or the depth limit is reached.
    """

    result: float
    """For the first mover: the exact result of a finished game, else the evaluation."""


def sign_of(to_play: int) -> float:
    """Return 1 for the first mover, else -1: the factor between values for `to_play` and for the
    first mover."""
    return 1.0 - 2.0 * to_play


def nodes_below(root: Node) -> list[Node]:
    """Return the nodes of the tree below `root`, itself included."""
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(child for child in node.children if isinstance(child, Node))
    return found


def restrict(node: Node, allowed: np.ndarray) -> Node:
    """Return a copy with the moves of `allowed` bool[A] alone; the nodes below are shared."""
    part = Node(node.position, node.evaluation.among(allowed))
    kept = np.flatnonzero(allowed[node.evaluation.actions[: node.tried]])
    _fill(part, _columns(node)[:, kept], [node.children[edge] for edge in kept])
    return part


def merge(node: Node, part: Node) -> Node:
    """Return a copy of `node` with the results of `part`, which `restrict` made and which was then
    searched."""
    actions, priors, value = node.evaluation
    known = part.evaluation.actions[: part.tried]
    others = [e for e in range(node.tried) if actions[e] not in part.evaluation.actions]
    tried = np.concatenate([known, actions[others]])
    order = np.concatenate([tried, actions[~np.isin(actions, tried)]])
    policy = np.zeros(int(actions.max()) + 1, priors.dtype)
    policy[actions] = priors
    merged = Node(node.position, Evaluation(order, policy[order], value))
    columns = np.concatenate([_columns(part), _columns(node)[:, others]], axis=1)
    _fill(merged, columns, part.children + [node.children[edge] for edge in others])
    return merged


def _columns(node: Node) -> np.ndarray:
    """Return all statistics of the tried edges: float64[5, tried]."""
    return np.vstack([node.visits, node.sums, node.squares, node.network_part()])[:, : node.tried]


def _fill(node: Node, columns: np.ndarray, children: list[Node | Leaf | Ending | None]) -> None:
    """Give a new node statistics of its first edges."""
    node.visits, node.sums, node.squares = (column.copy() for column in columns[:3])
    node._network = columns[3:].copy()
    node.children, node.tried = children, len(children)
    node.total_visits = int(node.visits.sum())
    node.total_value = node.evaluation.value + float(node.sums.sum())
    node.explored = float(node.evaluation.priors[: node.tried].sum())
