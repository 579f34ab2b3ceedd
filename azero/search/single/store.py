"""The memory of the tree of one game: its arrays and the packed states of its positions."""

from __future__ import annotations

import numpy as np

from azero.search.single.columns import EDGE, EDGES, MOVES, NODE, NODES, WIDEST, Columns

_FIRST_NODES, _FIRST_MOVES, _FIRST_EDGES = 1 << 12, 1 << 19, 1 << 13
"""Capacity of an empty tree. Memory that is not touched is not allocated by the system."""

_GROWTH = 8
"""Factor by which a full array grows: when it doubled, copying took a fifth of the time of a large
tree."""


class Store:
    """The arrays of one tree, and the packed states of its positions."""

    def __init__(self, num_words: int, num_actions: int) -> None:
        """Make room for a small tree of states of `num_words` words."""
        self.num_actions = num_actions
        dtype = np.int16 if num_actions <= np.iinfo(np.int16).max else np.int32
        self.states = np.empty((_FIRST_NODES, num_words), np.uint32)
        """uint32[room, W]"""
        self.columns = Columns(
            np.empty(_FIRST_NODES, NODE),
            np.empty(_FIRST_MOVES, dtype),
            np.empty(_FIRST_MOVES, np.float32),
            np.empty(_FIRST_EDGES, EDGE),
            np.zeros(4, np.int64),
        )

    @staticmethod
    def bytes_of(moves: int, edges: int) -> int:
        """Return the memory of a node with this many moves and edges, without its state."""
        return NODE.itemsize + moves * 6 + edges * EDGE.itemsize

    def clear(self) -> None:
        """Drop the tree; the memory is kept for the next one."""
        self.columns.counts[:] = 0

    def reserve(self, nodes: int = 0, moves: int = 0, edges: int = 0) -> None:
        """Make room for this many more of each."""
        columns, used = self.columns, self.columns.counts
        self.states = _grown(self.states, int(used[NODES]) + nodes)
        self.columns = Columns(
            _grown(columns.nodes, int(used[NODES]) + nodes),
            _grown(columns.actions, int(used[MOVES]) + moves),
            _grown(columns.priors, int(used[MOVES]) + moves),
            _grown(columns.edges, int(used[EDGES]) + edges),
            used,
        )

    def reserve_descents(self, count: int) -> None:
        """Make room for `count` descents, each of which may move the edges of the widest node."""
        self.reserve(edges=count * int(self.columns.counts[WIDEST]))

    def add(self, states: np.ndarray, to_play: np.ndarray) -> np.ndarray:
        """Add positions uint32[P, W] that are not over, without moves; return their rows
        int64[P]."""
        begin, count = int(self.columns.counts[NODES]), len(states)
        self.reserve(nodes=count)
        rows = np.arange(begin, begin + count)
        self.states[rows] = states
        fresh = np.zeros(count, NODE)
        fresh["value"] = np.nan
        fresh["to_play"] = to_play
        self.columns.nodes[rows] = fresh
        self.columns.counts[NODES] += count
        return rows

    def set_moves(self, rows: np.ndarray, legal: np.ndarray, policies: np.ndarray) -> None:
        """Give nodes without tried moves the moves of `legal` bool[P, A] with the priors of
        `policies` float[P, A]."""
        from azero.search.single import compiled

        counts = legal.sum(axis=1)
        self.reserve(moves=int(counts.sum()))
        compiled.set_moves(self.columns, rows, legal, policies.astype(np.float32, copy=False))

    def set_values(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Set the evaluations of nodes without visits, float[P] for the side to move."""
        nodes = self.columns.nodes
        nodes["value"][rows] = nodes["total_value"][rows] = values

    def below(self, root: int) -> tuple[Store, np.ndarray]:
        """Return a copy of the subtree of `root`, the root first, in arrays of its own; and the new
        row of every old one, -1 where there is none: int64[N]."""
        from azero.search.single import compiled

        rows, num_moves, num_edges = compiled.find_below(self.columns, root)
        part = Store(self.states.shape[1], self.num_actions)
        part.reserve(len(rows), num_moves, num_edges)
        part.states[: len(rows)] = self.states[rows]
        return part, compiled.copy_below(self.columns, part.columns, rows)


def _grown(column: np.ndarray, size: int) -> np.ndarray:
    """Return the column with room for at least `size` rows."""
    if size <= len(column):
        return column
    grown = np.empty((max(size, _GROWTH * len(column)), *column.shape[1:]), column.dtype)
    grown[: len(column)] = column
    return grown
