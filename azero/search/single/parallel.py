"""The tree of one game, on the host: many leaves per call of the network, kept from move to move.

The selection rule (`azero.search.single.selection`) and the evaluator of leaves
(`azero.search.single.leaves`) are passed in. A descent that waits for its evaluation counts as a
visit or as lost visits (`TreeSettings.virtual_loss`), so that the next descent of the same batch
goes elsewhere; the backup replaces them with the leaf's result. The tree is stored in arrays
(`azero.search.single.columns`), and compiled code descends and backs up whole batches.
"""

from __future__ import annotations

import typing
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from azero.config import check_range
from azero.games.game import Game
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.columns import ENDED, ENDING, NEW, NODES, Virtual
from azero.search.single.evaluator import Evaluator, HostNetwork, Symmetries
from azero.search.single.leaves import Leaves
from azero.search.single.node import Node, restrict
from azero.search.single.packed import PackedRules
from azero.search.single.selection import ENGINE, Gumbel, Rule
from azero.search.single.store import Store
from azero.types import PyTree

_VISITS_PER_LEAF = 8
"""Visits of the root for each further leaf of a batch (ours: measured, docs/engines.md)."""


@dataclass(frozen=True)
class TreeSettings:
    """How one tree searches. Values lie in [-1, 1] throughout."""

    batch: int = 8
    """Most leaves per call of the network. More are faster but search worse moves; see
    `batch_after`."""
    rule: Rule = ENGINE
    """Chooses the edges."""
    symmetry: Symmetries = "random"
    """How the network evaluates a leaf: under a random symmetry (AGZ), averaged over all, or as it
    is (AZ)."""
    max_nodes: int = 400_000
    """The search stops when the tree has this many nodes; at 19x19 one takes 2.3 KB (measured)."""
    cache_size: int = 20_000
    """Evaluations cached outside the tree, for positions that come again."""
    keeps_tree: bool = True
    """Whether a search reuses the tree of the previous move. The searches of self-play do not, and
    Gumbel's schedule of visits must not."""
    edge_width: int | None = None
    """See `SearchConfig.edge_width`."""
    max_depth: int | None = None
    """See `SearchConfig.max_depth`."""
    virtual_loss: int = 0
    """Lost visits that a descent counts as until its result is backed up (AG16: 3). With 0 it
    counts as one visit with the value that its moves had before (Liu et al. 2020): +74 Elo over 1
    with batches of 8 at 64 visits (docs/engines.md)."""
    overlaps: bool = False
    """Gather the next batch while one is evaluated, so that neither the host nor an accelerator
    waits for the other; then two batches at a time have virtual losses."""

    def __post_init__(self) -> None:
        known = typing.get_args(Symmetries)
        if self.symmetry not in known:
            raise ValueError(f"symmetry is one of {', '.join(known)}, not {self.symmetry!r}")
        if self.keeps_tree and isinstance(self.rule, Gumbel):
            raise ValueError("keeps-tree: a Gumbel search starts over at every move")
        if self.overlaps and (isinstance(self.rule, Gumbel) or self.virtual_loss > 1):
            raise ValueError("overlaps: only a PUCT search with a virtual loss of 0 or 1 does")
        check_range(self, "", "batch max_nodes", 1)
        check_range(self, "", "cache_size virtual_loss", 0)

    def batch_after(self, visits: float) -> int:
        """Return the leaves of the next batch after so many visits of the root.

        The first ones are few: a batch is gathered without the results of its own leaves, which
        costs most where little is known. Virtual losses are as published, with full batches.
        """
        if self.virtual_loss:
            return self.batch
        return min(self.batch, 1 + int(visits) // _VISITS_PER_LEAF)

    @property
    def virtual(self) -> Virtual:
        """What a descent counts as until its result is backed up."""
        return Virtual(max(1, self.virtual_loss), self.virtual_loss > 0)

    def make_evaluator(
        self,
        game: Game,
        leaf: SymmetryLeafFn,
        params: PyTree,
        seed: int = 0,
        mesh: Mesh | None = None,
        network: HostNetwork | None = None,
    ) -> Evaluator:
        """Return the evaluator of a network for trees with these settings.

        `mesh` are the devices; None is all of this host. For `network` see `Evaluator`.
        """
        return Evaluator(
            game,
            leaf,
            params,
            batch=self.batch,
            symmetry=self.symmetry,
            cache_size=self.cache_size,
            seed=seed,
            mesh=mesh,
            network=network,
        )


class _Batch(NamedTuple):
    """Descents that wait for an evaluation."""

    store: Store
    paths: np.ndarray
    """int32[P, height, 2]: nodes and edges"""
    sums: np.ndarray
    """float64[P, height]: of their virtual visits"""
    lengths: np.ndarray
    """int32[P]"""
    ends: np.ndarray
    """int32[P, 2]: the last of each path"""
    wait: Callable[[], None] | None
    """Waits for the evaluation of new leaves; None: there are none."""


class ParallelTree:
    """The tree of one game."""

    def __init__(
        self,
        rules: PackedRules,
        leaves: Leaves,
        settings: TreeSettings,
        allowed_moves: Callable[[int, int], np.ndarray] | None = None,
    ) -> None:
        """Make an empty tree; `move_to` gives it a root.

        Args:
          rules: take batches of at least `settings.batch`, as the evaluator of the leaves does.
          leaves: evaluates them, for this tree alone.
          settings: of the search.
          allowed_moves: (to_play, depth) -> bool[A], the moves that are searched `depth` moves
            below the root; None is all. It is not called for the root: `search` takes that
            restricted. A tree with restrictions keeps one root.
        """
        self._allowed_moves = allowed_moves
        self._rules, self._leaves, self._settings = rules, leaves, settings
        self.root: Node | None = None
        self._store: Store | None = None
        self.num_nodes = 0
        """Open nodes of the tree; a position reached by several paths counts several times."""
        self._unfinished: deque[_Batch] = deque()
        self._height = 1
        """Edges of the longest path that a descent may take."""
        self.num_descents = 0
        """Descents with a result since the root was set."""
        self.sum_depths = 0
        """The sum of their lengths."""
        self.deepest = 0
        """The longest of them."""

    def clear(self) -> None:
        """Drop the tree; its memory is kept for the next one."""
        if self._store is not None:
            self._store.clear()
        self._unfinished.clear()
        self.root, self.num_nodes, self._height = None, 0, 1
        self._leaves.retain(None, None)

    def warm_up(self) -> None:
        """Compile descents and back-ups, or load them, with a tree of one position."""
        from azero.search.single import compiled

        store, one = Store(1, self._rules.game.num_actions), np.ones(1, np.int32)
        rows = store.add(np.zeros((1, 1), np.uint32), np.zeros(1))
        legal = np.arange(store.num_actions)[None] < 2
        store.set_moves(rows, legal, legal / legal.sum())
        store.reserve_descents(1)
        arguments = (self._settings.rule.parameters, 0, np.zeros(0, np.int64), 1, 1, -1)
        found = compiled.descend(store.columns, *arguments, self._settings.virtual, False)
        compiled.back_up(store.columns, *found[:3], one * 1.0, one * 1.0, 1)
        store.below(0)

    def move_to(self, state: PyTree, legal: np.ndarray, actions: Sequence[int] | None) -> bool:
        """Make `state`, which is not over, the root.

        Args:
          state: of a real game.
          legal: bool[A], the legal moves; a search may allow more (superko over the whole game).
          actions: the moves since the last root; None if `state` does not follow from it.

        Returns:
          Whether the tree below `state` is kept, because the position had been visited.
        """
        self.finish()
        self.num_descents = self.sum_depths = self.deepest = 0
        position = self._rules.pack(state)
        node = self._follow(actions) if actions is not None else None
        is_kept = node is not None and node.state == position.state
        if node is None or not is_kept or not legal[node.actions].any():
            self.clear()
            store = self._store or Store(len(position.state) // 4, len(legal))
            self.root, self._store = Node(store, self._leaves.root(store, position, legal)), store
            self.num_nodes = 1
            return False
        if self.root is None or node.row != self.root.row:
            store, new_rows = node.store.below(node.row)
            self._leaves.retain(store, new_rows)
            is_open = store.columns.nodes["is_open"][: store.columns.counts[NODES]]
            self.num_nodes = int(is_open.sum())
            self.root, self._store = Node(store, 0), store
        if not legal[self.root.actions].all():
            self.root = restrict(self.root, legal)
        return True

    def _follow(self, actions: Sequence[int]) -> Node | None:
        node = self.root
        for action in actions:
            edge = None if node is None else node.edge_of(action)
            child = None if node is None or edge is None else node.child(edge)
            node = child if isinstance(child, Node) else None
        return node

    def search(
        self, most: int, root: Node | None = None, edges: Sequence[int] | None = None
    ) -> int:
        """Search one batch from the root: at most `most` playouts and at most `settings.batch`.

        Args:
          most: at least one.
          root: a copy of the root with fewer moves (`restrict`), to search only those.
          edges: edges of the root, one for each playout; None lets the rule choose.

        Returns:
          Playouts made; zero if and only if the tree is full. With `settings.overlaps` the last
          batch has virtual losses instead of results until the next call or `finish`. An exception
          (KeyboardInterrupt included) clears the tree.
        """
        start = self.root if root is None else root
        if start is None:
            raise RuntimeError("the tree has no root")
        try:
            most = most if edges is None else min(most, len(edges))
            made = self._begin_batch(start, most, edges)
            if not made and self._unfinished:  # all wait for the batch before
                self.finish()
                made = self._begin_batch(start, most, edges)
        except BaseException:
            self.clear()  # virtual losses of unfinished descents would stay in it
            raise
        self.finish(int(self._settings.overlaps))
        return made

    def finish(self, most_unfinished: int = 0) -> None:
        """Back up the results of the batches that are being evaluated, the oldest first, until at
        most so many are left."""
        try:
            while len(self._unfinished) > most_unfinished:
                self._finish_batch(self._unfinished.popleft())
        except BaseException:
            self.clear()
            raise

    def _begin_batch(self, start: Node, most: int, edges: Sequence[int] | None) -> int:
        """Gather a batch and begin to evaluate it; return its size, zero where there is no room or
        nothing to evaluate."""
        from azero.search.single import compiled

        settings, store = self._settings, start.store
        room = settings.max_nodes - self.num_nodes - sum(len(b.paths) for b in self._unfinished)
        count = min(most, settings.batch, room)
        if count <= 0:
            return 0
        store.reserve_descents(count)
        paths, sums, lengths, kinds = compiled.descend(
            store.columns,
            settings.rule.parameters,
            start.row,
            np.array([] if edges is None else edges, np.int64),
            count,
            self._height,
            -1 if settings.max_depth is None else settings.max_depth,
            settings.virtual,
            not self._leaves.counts_separately,
        )
        if not len(lengths):
            return 0
        self.num_descents += len(lengths)
        self.sum_depths += int(lengths.sum())
        self.deepest = max(self.deepest, int(lengths.max()))
        self._height = max(self._height, int(lengths.max()) + 1)
        ends = paths[np.arange(len(lengths)), lengths - 1]
        is_new, waits = kinds == NEW, kinds != ENDED
        wait = self._play(store, ends[is_new], lengths[is_new])
        self._unfinished.append(
            _Batch(store, paths[waits], sums[waits], lengths[waits], ends[waits], wait)
        )
        return len(lengths)

    def _play(
        self, store: Store, ends: np.ndarray, depths: np.ndarray
    ) -> Callable[[], None] | None:
        """Play the moves of new edges, int[P, 2] nodes and edges, and begin to evaluate the leaves;
        return what waits for it, None where there are none."""
        if not len(ends):
            return None
        nodes, edges = store.columns.nodes[ends[:, 0]], store.columns.edges
        places = nodes["first_edge"] + ends[:, 1]
        actions = store.columns.actions[nodes["first_move"] + ends[:, 1]]
        positions = self._rules.step_states(store.states[ends[:, 0]], actions)
        is_over, goes_on = positions.is_terminal, ~positions.is_terminal
        edges["child"][places[is_over]] = ENDING
        edges["result"][places[is_over]] = positions.results[is_over]
        if not goes_on.any():
            return None
        leaves, restricts, allowed = positions.take(goes_on), self._allowed_moves, None
        if restricts is not None:
            players, depths = leaves.to_play.tolist(), depths[goes_on].tolist()
            allowed = np.stack([restricts(*one) for one in zip(players, depths, strict=True)])
        rows = store.add(leaves.states, leaves.to_play)
        edges["child"][places[goes_on]] = rows
        return self._leaves.add(store, rows, leaves, allowed)

    def _finish_batch(self, batch: _Batch) -> None:
        """Wait for the evaluation, back up the results, and open the leaves that become nodes."""
        from azero.search.single import compiled

        store, paths, sums, lengths, ends, wait = batch
        if wait is not None:
            wait()
        places = store.columns.nodes["first_edge"][ends[:, 0]] + ends[:, 1]
        edges = store.columns.edges[places]
        is_leaf, results = edges["child"] >= 0, edges["result"]
        network_values = (
            results if self._leaves.counts_separately else np.full(len(results), np.nan)
        )
        leaves = edges["child"][is_leaf]
        results, network_values = results.copy(), network_values.copy()
        results[is_leaf], network_values[is_leaf] = self._leaves.visit(store, leaves)
        visits = self._settings.virtual.visits
        compiled.back_up(store.columns, paths, sums, lengths, results, network_values, visits)
        visited = store.columns.edges["visits"][places[is_leaf]]
        self.num_nodes += self._leaves.open(store, leaves, visited)
        self._leaves.finish_batch(store)
