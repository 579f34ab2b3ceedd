"""How the leaves of one tree are evaluated: the contract, and the leaf of a single network.

AlphaGo of 2016 has another one, `azero.search.single.mixed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from azero.search.single.node import Evaluation
from azero.search.single.packed import PackedPosition, PackedPositions, PackedRules
from azero.search.single.store import Store


class Visits(NamedTuple):
    """The results of visits of leaves, in [-1, 1] for the first mover."""

    results: np.ndarray
    """float64[V]"""
    network_values: np.ndarray
    """float64[V]: of a network that is counted separately (`EDGE`), at the first visits of leaves;
    elsewhere nan."""


class Leaves(Protocol):
    """Evaluates the leaves of one tree, which are nodes that are not open yet.

    `rows` are their rows of `Columns.nodes`.
    """

    counts_separately: bool
    """Whether a network's values are counted separately from the results of visits.

    If so, every visit of a leaf has a result of its own, and several descents of a batch may end at
    the same leaf.
    """

    def root(self, store: Store, position: PackedPosition, legal: np.ndarray) -> int:
        """Add the open node of `position`, in which the moves of `legal` bool[A] may be played;
        return its row."""
        ...

    def add(
        self, store: Store, rows: np.ndarray, positions: PackedPositions, allowed: np.ndarray | None
    ) -> Callable[[], None]:
        """Begin to evaluate new leaves; the function that is returned waits, and gives them their
        moves.

        `allowed` bool[P, A] are the moves, legal or not, that a restriction allows; None is all.
        """
        ...

    def visit(self, store: Store, rows: np.ndarray) -> Visits:
        """Return the result of a visit of each leaf; some may be the same leaf."""
        ...

    def open(self, store: Store, rows: np.ndarray, visits: np.ndarray) -> int:
        """Open the leaves, whose edges have float64[P] `visits`, that are to become nodes; return
        how many have moves. Descents end at the value of one without."""
        ...

    def finish_batch(self, store: Store) -> None:
        """Finish a batch after all its results have been backed up."""
        ...

    def retain(self, store: Store | None, new_rows: np.ndarray | None) -> None:
        """Note that the tree is now `store` with its root in row 0, and that each row has the new
        number int64[N], -1 where it was dropped; None without a tree."""
        ...


class LeafEvaluator(Protocol):
    """Evaluates positions, single ones and those of trees; trees may share one."""

    @property
    def num_symmetries(self) -> int:
        """Symmetries that `view` accepts; 0 where it draws them itself."""
        ...

    def leaves(self, rules: PackedRules, edge_width: int | None = None) -> Leaves:
        """Return the evaluator of the leaves of one tree; for its width see `SearchConfig`."""
        ...

    def view(self, position: PackedPosition, symmetry: int | None) -> Evaluation:
        """Return the evaluation of `position` under one symmetry; None leaves the choice to the
        evaluator."""
        ...

    def own_policy(self, priors: np.ndarray) -> np.ndarray:
        """Return the policy float32[A] whose priors float32[A] an open node has."""
        ...

    def warm_up_in_steps(self, position: PackedPosition) -> Iterator[int]:
        """Compile for positions like this one; yield each time how many may be evaluated
        together."""
        ...

    def node_bytes(self, state_bytes: int, num_actions: int) -> int:
        """Return about how much memory a node takes, with its edges and leaves."""
        ...


class NetworkLeaves:
    """`Leaves` of one network: its value is backed up once, and the leaf becomes a node."""

    counts_separately = False

    def __init__(
        self,
        begin: Callable[[PackedPositions], Callable[[], tuple[np.ndarray, np.ndarray]]],
        edge_width: int | None = None,
    ) -> None:
        """Make the leaves of a network; `begin` begins to evaluate positions (`Evaluator.begin`);
        `edge_width` as in `SearchConfig`."""
        self._begin, self._edge_width = begin, edge_width

    def root(self, store: Store, position: PackedPosition, legal: np.ndarray) -> int:
        """Add the node of `position`, with the network's priors over `legal`."""
        positions = PackedPositions.of([position])
        policies, values = self._begin(positions)()
        moves = positions.legal
        # The real game may forbid more moves than a search does: superko over the whole game.
        if (moves & ~legal).any():
            moves, policies = moves & legal, among(policies, moves & legal)
        rows = store.add(positions.states, positions.to_play)
        store.set_moves(rows, moves, policies)
        store.set_values(rows, values)
        store.columns.nodes["is_open"][rows] = True
        return int(rows[0])

    def add(
        self, store: Store, rows: np.ndarray, positions: PackedPositions, allowed: np.ndarray | None
    ) -> Callable[[], None]:
        """Begin to evaluate the leaves; then set their moves and values."""
        answers = self._begin(positions)

        def finish() -> None:
            policies, values = answers()
            legal, policies = keep_most_probable(positions.legal, policies, self._edge_width)
            if allowed is not None:
                legal = legal & allowed
                policies = among(policies, legal)
            store.set_moves(rows, legal, policies)
            store.set_values(rows, values)

        return finish

    def visit(self, store: Store, rows: np.ndarray) -> Visits:
        """Return the network's values."""
        nodes = store.columns.nodes[rows]
        results = nodes["value"] * np.where(nodes["to_play"] == 0, 1.0, -1.0)
        return Visits(results, np.full(len(rows), np.nan))

    def open(self, store: Store, rows: np.ndarray, visits: np.ndarray) -> int:
        """Open all."""
        del visits
        store.columns.nodes["is_open"][rows] = True
        return int((store.columns.nodes["num_moves"][rows] > 0).sum())

    def finish_batch(self, store: Store) -> None:
        """Do nothing: a leaf is evaluated at its first visit."""

    def retain(self, store: Store | None, new_rows: np.ndarray | None) -> None:
        """Do nothing: no node waits for an answer."""


def among(policies: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return policies float[P, A] over the moves of `allowed` bool[P, A] alone, renormalised;
    uniform where all are zero."""
    kept = np.where(allowed, policies, 0)
    totals = kept.sum(axis=1, keepdims=True)
    even = allowed / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    return np.where(totals > 0, kept / np.where(totals > 0, totals, 1), even).astype(policies.dtype)


def keep_most_probable(
    legal: np.ndarray, policies: np.ndarray, width: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return moves bool[P, A] and policies float[P, A] for the `width` most probable moves only;
    None is all."""
    is_wide = np.zeros(len(legal), bool) if width is None else legal.sum(axis=1) > width
    if not is_wide.any():
        return legal, policies
    order = np.argsort(np.where(legal, -policies, np.inf), axis=1, kind="stable")
    kept = np.zeros_like(legal)
    np.put_along_axis(kept, order[:, :width], True, axis=1)
    kept = np.where(is_wide[:, None], kept, legal)
    return kept, np.where(is_wide[:, None], among(policies, kept), policies)
