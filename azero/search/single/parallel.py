"""The tree of one game, on the host: many leaves per call of the network, kept from move to move.

What chooses edges (`azero.search.single.selection`) and what evaluates leaves
(`azero.search.single.leaves`) are passed in. A descent that waits for its evaluation counts as lost
visits (virtual loss, AG16 methods), so that the next descent of the same batch goes elsewhere; the
backup removes the loss and adds the leaf's result.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jax.sharding import Mesh

from azero.games.game import Game
from azero.search.leaf import SymmetryLeafFn
from azero.search.single.evaluator import Evaluator, HostNetwork, Symmetries
from azero.search.single.leaves import Leaves
from azero.search.single.node import Ending, Leaf, Node, nodes_below, restrict, sign_of
from azero.search.single.packed import PackedRules
from azero.search.single.selection import ENGINE, Gumbel, Rule
from azero.types import PyTree

Path = list[tuple[Node, int]]
"""Nodes from the root on, and the edges by which they were left."""


@dataclass(frozen=True)
class TreeSettings:
    """How one tree searches. Values lie in [-1, 1] throughout."""

    batch: int = 8
    """Leaves per call of the network. More are faster but search worse moves."""
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
    virtual_loss: int = 1
    """Lost visits that a descent counts as until its result is backed up."""

    def __post_init__(self) -> None:
        known = typing.get_args(Symmetries)
        if self.symmetry not in known:
            raise ValueError(f"symmetry is one of {', '.join(known)}, not {self.symmetry!r}")
        if self.keeps_tree and isinstance(self.rule, Gumbel):
            raise ValueError("keeps-tree: a Gumbel search starts over at every move")
        limits = (("batch", 1), ("max_nodes", 1), ("cache_size", 0), ("virtual_loss", 1))
        for name, least in limits:
            if getattr(self, name) < least:
                words = name.replace("_", "-")
                raise ValueError(f"{words} is at least {least}, not {getattr(self, name)}")

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


class _Descent(NamedTuple):
    """A path from the root to an edge that leads to no node."""

    path: Path
    is_new: bool
    """The last edge is new: its move has not been played yet."""
    end: Leaf | Ending | None
    """The child of the last edge; None while it is not known."""


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
        self.num_nodes = 0
        """Nodes of the tree; a position reached by several paths counts several times."""
        self.num_descents = 0
        """Descents with a result since the root was set."""
        self.sum_depths = 0
        """The sum of their lengths."""
        self.deepest = 0
        """The longest of them."""

    @property
    def is_full(self) -> bool:
        """Whether the tree has reached its limit of nodes; a move of the root frees some."""
        return self.num_nodes >= self._settings.max_nodes

    def clear(self) -> None:
        """Forget the tree."""
        self.root, self.num_nodes = None, 0
        self._leaves.retain(None)

    def move_to(self, state: PyTree, legal: np.ndarray, actions: Sequence[int] | None) -> bool:
        """Make `state`, which is not over, the root.

        Args:
          state: of a real game.
          legal: bool[A], the legal moves; a search may allow more (superko over the whole game).
          actions: the moves since the last root; None if `state` does not follow from it.

        Returns:
          Whether the tree below `state` is kept, because the position had been visited.
        """
        self.num_descents = self.sum_depths = self.deepest = 0
        position = self._rules.pack(state)
        node = self._follow(actions) if actions is not None else None
        is_kept = node is not None and node.position.state == position.state
        if node is None or not is_kept or not legal[node.evaluation.actions].any():
            self.clear()  # free the memory of the old tree first
            self.root, self.num_nodes = self._leaves.root(position, legal), 1
            return False
        self._leaves.retain(node)
        if not legal[node.evaluation.actions].all():
            node = restrict(node, legal)
        if node is not self.root:
            self.root, self.num_nodes = node, len(nodes_below(node))
        return True

    def _follow(self, actions: Sequence[int]) -> Node | None:
        node: Node | Leaf | Ending | None = self.root
        for action in actions:
            if not isinstance(node, Node):
                return None
            edge = node.edge_of(action)
            node = None if edge is None else node.children[edge]
        return node if isinstance(node, Node) else None

    def search(
        self,
        most: int,
        root: Node | None = None,
        edges: Sequence[int] | None = None,
    ) -> int:
        """Search one batch from the root: at most `most` playouts and at most `settings.batch`.

        Args:
          most: at least one.
          root: a copy of the root with fewer moves (`restrict`), to search only those.
          edges: edges of the root, one for each playout; None lets the rule choose.

        Returns:
          Playouts made; zero if and only if the tree is full. An exception (also of the keyboard)
          clears the tree.
        """
        start = self.root if root is None else root
        if start is None:
            raise RuntimeError("the tree has no root")
        if self.is_full:
            return 0
        try:
            most = most if edges is None else min(most, len(edges))
            return self._search_batch(start, most, edges)
        except BaseException:
            self.clear()  # virtual losses of unfinished descents would stay in it
            raise

    def _search_batch(self, start: Node, most: int, edges: Sequence[int] | None) -> int:
        found: list[_Descent] = []
        blocked: list[_Descent] = []
        batch = min(most, self._settings.batch, self._settings.max_nodes - self.num_nodes)
        while len(found) < batch and len(blocked) < batch:
            descent = self._descend(start, None if edges is None else edges[len(found)])
            if isinstance(descent.end, Ending):
                self._back_up_ending(descent.path, descent.end)
            elif descent.end is None and not descent.is_new and not self._leaves.counts_apart:
                blocked.append(descent)
                continue
            self.num_descents += 1
            self.sum_depths += len(descent.path)
            self.deepest = max(self.deepest, len(descent.path))
            found.append(descent)
        # Blocked descents ended at an edge that waits for its evaluation. Their virtual losses were
        # kept until now, so that the batch spreads.
        for descent in blocked:
            self._take_back(descent.path)
        self._play([descent.path for descent in found if descent.is_new])
        self._visit([descent.path for descent in found if not isinstance(descent.end, Ending)])
        self._leaves.finish_batch()
        return len(found)

    def _descend(self, node: Node, first_edge: int | None) -> _Descent:
        """Follow the rule from `node` to an edge that leads to no node, adding virtual losses."""
        path: Path = []
        select, count = self._settings.rule.select, self._settings.virtual_loss
        loss = float(count)  # NumPy adds floats faster than integers to its columns
        while True:
            edge = select(node) if first_edge is None or path else first_edge
            is_new = edge == node.tried
            if is_new:
                node.add_edge()
            path.append((node, edge))
            node.visits[edge] += loss
            node.sums[edge] -= loss
            node.total_visits += count
            node.total_value -= loss
            child = node.children[edge]
            if not isinstance(child, Node):
                return _Descent(path, is_new, child)
            if len(path) == self._settings.max_depth:
                value = child.evaluation.value * sign_of(child.position.to_play)
                return _Descent(path, is_new, Ending(value))
            node = child

    def _play(self, paths: list[Path]) -> None:
        """Play the last moves of `paths`, which are new."""
        if not paths:
            return
        parents = [path[-1] for path in paths]
        actions = [int(node.evaluation.actions[edge]) for node, edge in parents]
        positions = self._rules.step([node.position for node, _ in parents], actions)
        for path, (node, edge), position in zip(paths, parents, positions, strict=True):
            if position.is_terminal:
                node.children[edge] = Ending(position.result)
                continue
            restricts = self._allowed_moves
            allowed = None if restricts is None else restricts(position.to_play, len(path))
            node.children[edge] = Leaf(position, allowed)

    def _visit(self, paths: list[Path]) -> None:
        """Evaluate the leaves at the ends of `paths`, back up the results, and make nodes of the
        leaves."""
        ends = [node.children[edge] for node, edge in (path[-1] for path in paths)]
        leaves = [end for end in ends if isinstance(end, Leaf)]
        visits = iter(self._leaves.visit(leaves))
        for path, end in zip(paths, ends, strict=True):
            if isinstance(end, Ending):
                self._back_up_ending(path, end)
                continue
            visit = next(visits)
            self._back_up(path, visit.result)
            if visit.network_value is not None:
                _back_up_network(path, visit.network_value)
        for path, end in zip(paths, ends, strict=True):
            node, edge = path[-1]
            if isinstance(end, Leaf) and node.children[edge] is end:
                child = self._leaves.expand(end, node.visits[edge])
                node.children[edge] = child
                self.num_nodes += isinstance(child, Node)

    def _back_up_ending(self, path: Path, end: Ending) -> None:
        """Back up an exact result, which also counts as a network's value."""
        self._back_up(path, end.result)
        if self._leaves.counts_apart:
            _back_up_network(path, end.result)

    def _back_up(self, path: Path, result: float) -> None:
        """Replace the virtual loss on every edge of `path` by `result`, which is for the first
        mover."""
        loss = self._settings.virtual_loss
        for node, edge in path:
            gain = result if node.position.to_play == 0 else -result
            node.sums[edge] += loss + gain
            node.squares[edge] += gain * gain
            node.total_value += loss + gain
            if loss != 1:
                node.visits[edge] += 1 - loss
                node.total_visits += 1 - loss

    def _take_back(self, path: Path) -> None:
        """Undo the virtual loss on every edge of `path`."""
        loss = self._settings.virtual_loss
        for node, edge in path:
            node.visits[edge] -= loss
            node.sums[edge] += loss
            node.total_visits -= loss
            node.total_value += loss


def _back_up_network(path: Path, value: float) -> None:
    """Add a network's value, which is for the first mover, to the part that is counted apart."""
    for node, edge in path:
        part = node.network_part()
        part[0, edge] += 1.0
        part[1, edge] += value * sign_of(node.position.to_play)
