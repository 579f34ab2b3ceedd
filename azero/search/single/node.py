"""Nodes of the tree of one game, as seen from Python: `Node` reads and writes the arrays of
`azero.search.single.columns`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from azero.search.single.columns import EDGES, ENDING, MOVES
from azero.search.single.store import Store


class Evaluation(NamedTuple):
    """The legal moves of a position, the most probable first, and its value."""

    actions: np.ndarray
    """int[L]: int16 where that suffices."""
    priors: np.ndarray
    """float[L], descending; they sum to one."""
    value: float
    """In [-1, 1] for the side to move; nan where it is not known."""

    @classmethod
    def ordered(
        cls, actions: np.ndarray, priors: np.ndarray, value: float, num_actions: int
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
        """Return the same for the moves of `allowed` bool[A] only, with their priors
        renormalised."""
        chosen = allowed[self.actions]
        actions, priors = self.actions[chosen], self.priors[chosen]
        total = priors.sum()
        even = np.full(priors.shape, 1 / max(1, len(priors)), priors.dtype)
        return Evaluation(actions, priors / total if total > 0 else even, self.value)


class Ending(NamedTuple):
    """A position that is not searched further: each visit backs up the same value.

    The game is over, or a restriction allows no move.
    """

    result: float
    """For the first mover: the exact result of a finished game, else the evaluation."""


class Node:
    """A position of the tree that is not over, with its edges."""

    __slots__ = ("row", "store")

    def __init__(self, store: Store, row: int) -> None:
        """See row `row` of `store.columns.nodes`, until the store is cleared."""
        self.store, self.row = store, row

    @property
    def state(self) -> bytes:
        """The packed slim state."""
        return self.store.states[self.row].tobytes()

    @property
    def to_play(self) -> int:
        """The side to move."""
        return int(self._columns["to_play"])

    @property
    def tried(self) -> int:
        """Moves visited so far: the first ones."""
        return int(self._columns["tried"])

    @property
    def total_visits(self) -> int:
        """Visits of all moves, virtual losses of unfinished descents included."""
        return int(self._columns["total_visits"])

    @property
    def explored(self) -> float:
        """Sum of the priors of the tried moves."""
        return float(self._columns["explored"])

    @property
    def own_value(self) -> float:
        """The evaluation of the position itself, for the side to move; nan where not known."""
        return float(self._columns["value"])

    @property
    def value(self) -> float:
        """Mean of the node's own evaluation and all that was backed up, for the side to move."""
        return float(self._columns["total_value"]) / (1 + self.total_visits)

    @property
    def actions(self) -> np.ndarray:
        """The moves, int[L]: the tried ones, then the most probable of the others, then the rest in
        any order."""
        return self.store.columns.actions[self._moves]

    @property
    def priors(self) -> np.ndarray:
        """The priors of these moves, float32[L]; they sum to one."""
        return self.store.columns.priors[self._moves]

    @property
    def evaluation(self) -> Evaluation:
        """The moves, the tried ones in their order and the others by descending priors, and
        `own_value`.

        It is a copy.
        """
        tried, actions, priors = self.tried, self.actions, self.priors
        rest = tried + np.lexsort((actions[tried:], -priors[tried:]))
        order = np.concatenate([np.arange(tried), rest])
        return Evaluation(actions[order], priors[order], self.own_value)

    @property
    def edges(self) -> np.ndarray:
        """The edges of the tried moves: EDGE[tried], for reading and writing."""
        first, tried = int(self._columns["first_edge"]), self.tried
        return self.store.columns.edges[first : first + tried]

    @property
    def visits(self) -> np.ndarray:
        """N of the tried moves, virtual losses of unfinished descents included: float64[tried]."""
        return self.edges["visits"]

    @property
    def sums(self) -> np.ndarray:
        """W of the tried moves, for the side to move here: float64[tried]."""
        return self.edges["sums"]

    @property
    def children(self) -> list[Node | Ending | None]:
        """The children of the tried moves; None where there is no node yet."""
        return [self.child(edge) for edge in range(self.tried)]

    def child(self, edge: int) -> Node | Ending | None:
        """Return what the tried move number `edge` leads to."""
        row, result = self.edges[edge][["child", "result"]]
        if row == ENDING:
            return Ending(float(result))
        if row < 0 or not self.store.columns.nodes["is_open"][row]:
            return None
        child = Node(self.store, int(row))
        return child if len(child.actions) else Ending(child.own_value * sign_of(child.to_play))

    def edge_of(self, action: int) -> int | None:
        """Return the index of the edge of `action` if it has been tried."""
        found = np.flatnonzero(self.actions[: self.tried] == action)
        return int(found[0]) if len(found) else None

    def set_priors(self, policy: np.ndarray) -> None:
        """Replace the priors by `policy` float[A]."""
        from azero.search.single import compiled

        self.priors[:] = policy[self.actions]
        self._columns["explored"] = self.priors[: self.tried].sum()
        compiled.bring_forward(self.store.columns, self.row)

    @property
    def _columns(self) -> np.void:
        return self.store.columns.nodes[self.row]

    @property
    def _moves(self) -> slice:
        node = self._columns
        return slice(int(node["first_move"]), int(node["first_move"] + node["num_moves"]))


def sign_of(to_play: int) -> float:
    """Return 1 for the first mover, else -1: the factor between values for `to_play` and for the
    first mover."""
    return 1.0 - 2.0 * to_play


def restrict(node: Node, allowed: np.ndarray) -> Node:
    """Return a copy with the moves of `allowed` bool[A] alone; the nodes below are shared."""
    kept = allowed[node.actions[: node.tried]]
    return _copy(node, node.evaluation.among(allowed), node.edges[kept])


def merge(node: Node, part: Node) -> Node:
    """Return a copy of `node` with the results of `part`, which `restrict` made and which was then
    searched."""
    actions, priors, value = node.evaluation
    known = part.actions[: part.tried]
    others = np.flatnonzero(~np.isin(actions[: node.tried], part.actions))
    tried = np.concatenate([known, actions[others]])
    order = np.concatenate([tried, actions[~np.isin(actions, tried)]])
    policy = np.zeros(int(actions.max()) + 1, priors.dtype)
    policy[actions] = priors
    edges = np.concatenate([part.edges, node.edges[others]])
    return _copy(node, Evaluation(order, policy[order], value), edges)


def _copy(node: Node, evaluation: Evaluation, edges: np.ndarray) -> Node:
    """Return a copy of a node with the moves of `evaluation`, of which the first have `edges`."""
    store, num_moves, tried = node.store, len(evaluation.actions), len(edges)
    (row,) = store.add(store.states[[node.row]], np.array([node.to_play]))
    store.reserve(moves=num_moves, edges=tried)
    columns = store.columns
    first_move, first_edge = int(columns.counts[MOVES]), int(columns.counts[EDGES])
    columns.actions[first_move : first_move + num_moves] = evaluation.actions
    columns.priors[first_move : first_move + num_moves] = evaluation.priors
    columns.edges[first_edge : first_edge + tried] = edges
    columns.counts[MOVES] += num_moves
    columns.counts[EDGES] += tried
    copied = columns.nodes[row]
    copied["first_move"], copied["num_moves"] = first_move, num_moves
    copied["first_edge"], copied["tried"], copied["room"] = first_edge, tried, tried
    copied["value"], copied["is_open"] = evaluation.value, True
    copied["total_visits"] = edges["visits"].sum()
    copied["total_value"] = evaluation.value + edges["sums"].sum()
    copied["explored"] = evaluation.priors[:tried].sum()
    return Node(store, int(row))
