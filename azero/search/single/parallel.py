"""One tree for one game, on the host: many leaves per call of the network by virtual loss, kept from move to move.

The rule that chooses edges is passed in (`azero.search.single.selection`). A descent that waits for its evaluation counts as a visit that was lost (AlphaGo 2016,
methods: virtual loss), so that the next descent of the same batch goes elsewhere; the backup takes the loss back and adds what the leaf said.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from azero.search.single.evaluator import Evaluator, Symmetries
from azero.search.single.node import Ending, Node, count_nodes, restrict
from azero.search.single.packed import PackedRules
from azero.search.single.selection import ENGINE, Gumbel, Rule
from azero.types import PyTree


@dataclass(frozen=True)
class TreeSettings:
    """How one tree searches. Values lie in [-1, 1] throughout."""

    batch: int = 8
    """Leaves per call of the network. More are faster and look at worse moves."""
    rule: Rule = ENGINE
    """Chooses the edges."""
    symmetry: Symmetries = "random"
    """How the network looks at a leaf: in a random symmetry (AGZ), the mean over all, or as it is (AZ)."""
    max_nodes: int = 400_000
    """The search stops when the tree has so many positions; at 19x19 one takes 2.3 KB (measured)."""
    cache_size: int = 20_000
    """Evaluations remembered beside the tree, for positions that come again."""
    keeps_tree: bool = True
    """Whether a search goes on with what earlier ones found. The searches of self-play begin anew at every move, and Gumbel's plan of visits has to."""
    edge_width: int | None = None
    """See `SearchConfig.edge_width`."""
    max_depth: int | None = None
    """See `SearchConfig.max_depth`."""

    def __post_init__(self) -> None:
        if self.symmetry not in typing.get_args(Symmetries):
            raise ValueError(f"symmetry is one of {', '.join(typing.get_args(Symmetries))}, not {self.symmetry!r}")
        if self.keeps_tree and isinstance(self.rule, Gumbel):
            raise ValueError("keeps-tree: a Gumbel search begins anew at every move")
        for name, least in (("batch", 1), ("max_nodes", 1), ("cache_size", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name.replace('_', '-')} is at least {least}, not {getattr(self, name)}")


class _Descent(NamedTuple):
    """A way from the root to an edge."""

    path: list[tuple[Node, int]]
    is_new: bool
    """The last edge has just been made; nobody has played its move yet."""
    end: Ending | None
    """What stands behind the last edge, if nothing is searched behind it."""


class ParallelTree:
    """The tree of one game."""

    def __init__(self, rules: PackedRules, evaluator: Evaluator, settings: TreeSettings, left_moves: Callable[[int, int], np.ndarray] | None = None) -> None:
        """Make an empty tree; `move_to` gives it a root.

        Args:
          rules: take batches of at least `settings.batch`, as the evaluator does.
          evaluator: of the leaves; trees may share one.
          settings: of the search.
          left_moves: (to_play, depth) -> bool[A], the moves that are searched at so many moves below the root; None is all. The root is not asked about:
            `search` takes it restricted. A tree that restricts has one root.
        """
        self._left_moves = left_moves
        self._rules = rules
        self._evaluator = evaluator
        self._settings = settings
        self.root: Node | None = None
        self.num_nodes = 0
        """Positions in the tree, each way to them counted."""
        self.num_descents = 0
        """Descents since the root was set, those without a result left out."""
        self.sum_depths = 0
        """The sum of their lengths."""
        self.deepest = 0
        """The longest of them."""

    @property
    def is_full(self) -> bool:
        """Whether the tree has reached its limit; then it searches no more until the root moves on."""
        return self.num_nodes >= self._settings.max_nodes

    def clear(self) -> None:
        """Forget the tree."""
        self.root, self.num_nodes = None, 0

    def move_to(self, state: PyTree, legal: np.ndarray, actions: Sequence[int] | None) -> bool:
        """Make `state`, which is not over, the root.

        Args:
          state: of a real game.
          legal: bool[A], the moves that are legal in the real game; a search may see more (superko over the whole game).
          actions: the moves since the last root; None if it does not follow from it.

        Returns:
          Whether the tree below has been kept: the position had been visited.
        """
        self.num_descents = self.sum_depths = self.deepest = 0
        position = self._rules.pack(state)
        node = self._follow(actions) if actions is not None else None
        kept = node is not None and node.position.state == position.state
        if node is None or not kept:
            self.root = None  # the memory of the old tree goes first
            node = Node(position, self._evaluator.evaluate([position])[0])
        if not np.array_equal(np.sort(node.evaluation.actions), np.flatnonzero(legal)):
            node = restrict(node, legal)
        if node is not self.root:
            self.root = node
            self.num_nodes = count_nodes(node)
        return kept

    def _follow(self, actions: Sequence[int]) -> Node | None:
        node: Node | Ending | None = self.root
        for action in actions:
            if not isinstance(node, Node):
                return None
            edge = node.edge_of(action)
            node = None if edge is None else node.children[edge]
        return node if isinstance(node, Node) else None

    def search(self, most: int, root: Node | None = None, edges: Sequence[int] | None = None) -> int:
        """Search one batch from the root: at most `most` playouts and at most `settings.batch`.

        Args:
          most: at least one.
          root: a copy of the root with fewer moves (`restrict`), for a search among those alone.
          edges: of the root, one for each playout, in place of those that the rule chooses there.

        Returns:
          Playouts made; zero if and only if the tree is full. Where an error (or the keyboard) interrupts the batch, the tree is forgotten.
        """
        start = self.root if root is None else root
        if start is None:
            raise RuntimeError("the tree has no root")
        if self.is_full:
            return 0
        try:
            return self._search_batch(start, most if edges is None else min(most, len(edges)), edges)
        except BaseException:
            self.clear()  # losses of descents that will not end would stay in it
            raise

    def _search_batch(self, start: Node, most: int, edges: Sequence[int] | None) -> int:
        waiting: list[_Descent] = []
        in_vain: list[_Descent] = []
        done, batch = 0, min(most, self._settings.batch, self._settings.max_nodes - self.num_nodes)
        while len(waiting) + done < batch and len(in_vain) < batch:
            descent = self._descend(start, None if edges is None else edges[len(waiting) + done])
            if descent.end is None and not descent.is_new:
                in_vain.append(descent)
                continue
            self._count(len(descent.path))
            if descent.end is not None:
                _back_up(descent.path, descent.end.result)
                done += 1
            else:
                waiting.append(descent)
        # Those in vain met an edge that waits; their losses stood until now and kept the batch wide.
        for descent in in_vain:
            _take_back(descent.path)
        self._expand(waiting)
        return done + len(waiting)

    def _count(self, depth: int) -> None:
        self.num_descents += 1
        self.sum_depths += depth
        self.deepest = max(self.deepest, depth)

    def _descend(self, node: Node, first_edge: int | None) -> _Descent:
        """Follow the rule from `node` to an edge without a node behind it, and count a lost visit on every edge of the way."""
        path: list[tuple[Node, int]] = []
        while True:
            edge = first_edge if first_edge is not None and not path else self._settings.rule.select(node)
            is_new = edge == node.tried
            if is_new:
                node.add_edge()
            path.append((node, edge))
            node.visits[edge] += 1.0
            node.sums[edge] -= 1.0
            node.total_visits += 1
            node.total_value -= 1.0
            child = node.children[edge]
            if not isinstance(child, Node):
                return _Descent(path, is_new, child)
            if len(path) == self._settings.max_depth:
                return _Descent(path, is_new, Ending(child.evaluation.value * _sign(child.position.to_play)))
            node = child

    def _expand(self, descents: list[_Descent]) -> None:
        """Play the last moves of `descents`, evaluate what arises, hang it into the tree and back it up."""
        if not descents:
            return
        parents = [descent.path[-1] for descent in descents]
        actions = [int(node.evaluation.actions[edge]) for node, edge in parents]
        positions = self._rules.step([node.position for node, _ in parents], actions)
        going_on = [position for position in positions if not position.is_terminal]
        evaluations = iter(self._evaluator.evaluate(going_on))
        for descent, (node, edge), position in zip(descents, parents, positions, strict=True):
            if position.is_terminal:
                node.children[edge] = Ending(position.result)
                _back_up(descent.path, position.result)
                continue
            evaluation = next(evaluations).narrowed(self._settings.edge_width)
            if self._left_moves is not None:
                evaluation = evaluation.among(self._left_moves(position.to_play, len(descent.path)))
            value = evaluation.value * _sign(position.to_play)
            if len(evaluation.actions):
                node.children[edge] = Node(position, evaluation)
                self.num_nodes += 1
            else:
                node.children[edge] = Ending(value)
            _back_up(descent.path, value)


def _sign(to_play: int) -> float:
    """Return 1 for the first mover, else -1: a value for one of them times this is a value for the other's point of view."""
    return 1.0 - 2.0 * to_play


def _back_up(path: list[tuple[Node, int]], value: float) -> None:
    """Replace the loss on every edge of `path` by `value`, which is for the first mover."""
    for node, edge in path:
        gain = value * _sign(node.position.to_play)
        node.sums[edge] += 1.0 + gain
        node.squares[edge] += gain * gain
        node.total_value += 1.0 + gain


def _take_back(path: list[tuple[Node, int]]) -> None:
    """Undo the visit and the loss on every edge of `path`."""
    for node, edge in path:
        node.visits[edge] -= 1.0
        node.sums[edge] += 1.0
        node.total_visits -= 1
        node.total_value += 1.0
