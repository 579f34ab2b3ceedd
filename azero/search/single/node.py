"""The nodes of one tree for one game.

An edge belongs to its parent node, as in AlphaGo Zero: visits, sum and sum of squares of the values for the side to move at the parent. The moves of a node lie
in falling order of their priors. Unvisited moves all have the same value, so the best of them is always the first one: the visited moves come before all others,
and only they take memory and time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from azero.search.single.evaluator import Evaluation
from azero.search.single.packed import PackedPosition

_FIRST_EDGES = 4
"""Edges that a node has room for when it is first left; the room doubles as needed."""


class Node:
    """A position of the tree that is not over, with its edges."""

    __slots__ = ("children", "evaluation", "explored", "position", "squares", "sums", "total_value", "total_visits", "tried", "visits")

    def __init__(self, position: PackedPosition, evaluation: Evaluation) -> None:
        # The mask, of up to 11 KB, has done its work: the evaluation has the legal moves.
        self.position = position._replace(legal=np.zeros(0, bool))
        self.evaluation = evaluation
        self.tried = 0
        """Edges visited so far: the first ones of `evaluation`."""
        self.visits = np.zeros(0)
        """float64[room]: those of edges still waiting for their evaluation included."""
        self.sums = np.zeros(0)
        """float64[room]: W, sum of the values for the side to move here; a waiting visit counts -1."""
        self.squares = np.zeros(0)
        """float64[room]: sum of the squared values, waiting visits left out."""
        self.children: list[Node | Ending | None] = []
        """What lies behind each tried edge; None while its first evaluation is awaited."""
        self.total_visits = 0
        self.total_value = evaluation.value
        """The node's own evaluation and all sums."""
        self.explored = 0.0
        """Sum of the priors of the tried edges."""

    @property
    def value(self) -> float:
        """Mean of the node's own evaluation and everything backed up into it, for the side to move."""
        return self.total_value / (1 + self.total_visits)

    def add_edge(self) -> None:
        """Make room for the best untried edge."""
        if self.tried == len(self.visits):
            room = min(max(_FIRST_EDGES, 2 * self.tried), len(self.evaluation.actions)) - self.tried
            self.visits, self.sums, self.squares = (np.append(column, np.zeros(room)) for column in (self.visits, self.sums, self.squares))
        self.explored += float(self.evaluation.priors[self.tried])
        self.children.append(None)
        self.tried += 1

    def edge_of(self, action: int) -> int | None:
        """Return the index of the edge of `action` if it has been tried."""
        found = np.flatnonzero(self.evaluation.actions[: self.tried] == action)
        return int(found[0]) if len(found) else None


class Ending(NamedTuple):
    """A position behind which nothing is searched: the game is over, or a restriction leaves no move there. It is no node: each visit backs up the same value."""

    result: float
    """For the first mover: the exact result of a game that is over, else the position's evaluation."""


def count_nodes(root: Node) -> int:
    """Return the number of nodes of the tree below `root`, itself included."""
    count, todo = 0, [root]
    while todo:
        node = todo.pop()
        count += 1
        todo.extend(child for child in node.children if isinstance(child, Node))
    return count


def restrict(node: Node, allowed: np.ndarray) -> Node:
    """Return a copy of `node` with the moves of `allowed` bool[A] alone and what is known of them; the nodes below are shared."""
    part = Node(node.position, node.evaluation.among(allowed))
    kept = np.flatnonzero(allowed[node.evaluation.actions[: node.tried]])
    _fill(part, node.visits[kept], node.sums[kept], node.squares[kept], [node.children[edge] for edge in kept])
    return part


def merge(node: Node, part: Node) -> Node:
    """Return a copy of `node` that knows of the moves of `part`, made of it by `restrict` and searched since, what `part` knows."""
    actions, priors, value = node.evaluation
    others = [edge for edge in range(node.tried) if actions[edge] not in part.evaluation.actions]
    tried = [int(action) for action in part.evaluation.actions[: part.tried]] + [int(actions[edge]) for edge in others]
    untried = [int(action) for action in actions if action not in set(tried)]
    prior_of = dict(zip(actions.tolist(), priors.tolist(), strict=True))
    order = np.array(tried + untried, actions.dtype)
    merged = Node(node.position, Evaluation(order, np.array([prior_of[int(action)] for action in order], np.float32), value))
    visits, sums, squares = (np.concatenate([getattr(part, name)[: part.tried], getattr(node, name)[others]]) for name in ("visits", "sums", "squares"))
    _fill(merged, visits, sums, squares, part.children + [node.children[edge] for edge in others])
    return merged


def _fill(node: Node, visits: np.ndarray, sums: np.ndarray, squares: np.ndarray, children: list[Node | Ending | None]) -> None:
    """Give a new node statistics of its first edges."""
    node.visits, node.sums, node.squares, node.children, node.tried = visits, sums, squares, children, len(children)
    node.total_visits = int(visits.sum())
    node.total_value = node.evaluation.value + float(sums.sum())
    node.explored = float(node.evaluation.priors[: node.tried].sum())
