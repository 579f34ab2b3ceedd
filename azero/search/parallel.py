"""One tree for one game, on the host: many leaves per call of the network by virtual loss, kept from move to move.

PUCT as in AlphaZero. A descent that waits for its evaluation counts as a visit that was lost (AlphaGo 2016, methods: virtual loss), so that the next descent of
the same batch goes elsewhere; the backup takes the loss back and adds what the leaf said.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from azero.search.evaluator import Evaluator, Symmetries
from azero.search.node import Ending, Node, count_nodes, restrict
from azero.search.packed import PackedRules
from azero.types import PyTree

_UNVISITED_VALUES = {"loss": -1.0, "draw": 0.0}


@dataclass(frozen=True)
class TreeSettings:
    """How one tree searches. Values lie in [-1, 1] throughout."""

    batch: int = 8
    """Leaves per call of the network. More are faster and look at worse moves."""
    c_base: float = 19652.0
    """c = log((N + base + 1) / base) + init (AZ pseudocode)."""
    c_init: float = 1.25
    """See c_base; for values in [0, 1], as published; the search doubles it (AZ pseudocode)."""
    unvisited: Literal["reduction", "loss", "draw"] = "reduction"
    """Value of a move never tried: the node's own less a reduction that grows with the probability already explored (KG), a loss (AZ), or a draw (AGZ)."""
    reduction: float = 0.2
    """reduction: the value is V - reduction sqrt(P explored) (KG: 0.2)."""
    symmetry: Symmetries = "random"
    """How the network looks at a leaf: in a random symmetry (AGZ), the mean over all, or as it is (AZ)."""
    max_nodes: int = 400_000
    """The search stops when the tree has so many positions; at 19x19 one takes 2.3 KB (measured)."""
    cache_size: int = 20_000
    """Evaluations remembered beside the tree, for positions that come again."""

    def __post_init__(self) -> None:
        for name, allowed in (("unvisited", ("reduction", *_UNVISITED_VALUES)), ("symmetry", typing.get_args(Symmetries))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}")
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

    def search(self, most: int, root: Node | None = None) -> int:
        """Search one batch from the root: at most `most` playouts and at most `settings.batch`.

        Args:
          most: at least one.
          root: a copy of the root with fewer moves (`restrict`), for a search among those alone.

        Returns:
          Playouts made; zero if and only if the tree is full. Where an error (or the keyboard) interrupts the batch, the tree is forgotten.
        """
        start = self.root if root is None else root
        if start is None:
            raise RuntimeError("the tree has no root")
        if self.is_full:
            return 0
        try:
            return self._search_batch(start, most)
        except BaseException:
            self.clear()  # losses of descents that will not end would stay in it
            raise

    def _search_batch(self, start: Node, most: int) -> int:
        waiting: list[_Descent] = []
        in_vain: list[_Descent] = []
        done, batch = 0, min(most, self._settings.batch, self._settings.max_nodes - self.num_nodes)
        while len(waiting) + done < batch and len(in_vain) < batch:
            descent = self._descend(start)
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

    def _descend(self, node: Node) -> _Descent:
        """Follow the rule from `node` to an edge without a node behind it, and count a lost visit on every edge of the way."""
        path: list[tuple[Node, int]] = []
        while True:
            edge = self._select(node)
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
            node = child

    def _select(self, node: Node) -> int:
        """Return the edge with the highest Q + U; `node.tried` is the best one never tried."""
        settings, tried, priors = self._settings, node.tried, node.evaluation.priors
        parent_visits = 1 + node.total_visits
        # Twice the published c, because values are in [-1, 1] here and in [0, 1] there.
        scale = 2.0 * (math.log((parent_visits + settings.c_base + 1.0) / settings.c_base) + settings.c_init) * math.sqrt(parent_visits)
        if tried == 0:
            return 0
        visits = node.visits[:tried]
        scores = node.sums[:tried] / visits + scale * priors[:tried] / (1.0 + visits)
        best = int(scores.argmax())
        if tried == len(priors):
            return best
        reduced = settings.unvisited == "reduction"
        fresh = node.value - settings.reduction * math.sqrt(node.explored) if reduced else _UNVISITED_VALUES[settings.unvisited]
        return tried if fresh + scale * float(priors[tried]) > scores[best] else best

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
            evaluation = next(evaluations)
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
