"""How the leaves of one tree are evaluated: the contract, and the leaf of a single network.

AlphaGo of 2016 has another one, `azero.search.single.mixed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from azero.search.single.node import Ending, Evaluation, Leaf, Node, sign_of
from azero.search.single.packed import PackedPosition, PackedRules


class Visit(NamedTuple):
    """What one visit of a leaf gives, in [-1, 1] for the first mover."""

    result: float
    network_value: float | None = None
    """Of a network whose values are counted apart (`Node.network_part`), at its first answer."""


class Leaves(Protocol):
    """Evaluates the leaves of one tree."""

    counts_apart: bool
    """Whether a network's values are counted apart from the results of visits.

    Then every visit of a leaf has a result of its own, and descents of a batch may meet at it.
    """

    def root(self, position: PackedPosition, legal: np.ndarray) -> Node:
        """Return the node of `position`, in which the moves of `legal` bool[A] may be played."""
        ...

    def visit(self, leaves: Sequence[Leaf]) -> list[Visit]:
        """Return what a visit of each leaf gives; some may be the same leaf."""
        ...

    def expand(self, leaf: Leaf, visits: float) -> Node | Leaf | Ending:
        """Return what lies behind an edge from now on that led to `leaf` in so many visits."""
        ...

    def finish_batch(self) -> None:
        """Do what is to be done when all results of a batch have been backed up."""
        ...

    def retain(self, root: Node | None) -> None:
        """Forget nodes that are not below `root`, a new root; None is all."""
        ...


class LeafEvaluator(Protocol):
    """Evaluates positions, those of trees among them; trees may share one."""

    @property
    def num_symmetries(self) -> int:
        """Symmetries that `view` may be asked for; 0 where it draws them itself."""
        ...

    def leaves(self, rules: PackedRules, edge_width: int | None = None) -> Leaves:
        """Return what evaluates the leaves of one tree; for its width see `SearchConfig`."""
        ...

    def view(self, position: PackedPosition, symmetry: int | None) -> Evaluation:
        """Return the evaluation of `position` through one symmetry, or without preference."""
        ...

    def warm_up_in_steps(self, position: PackedPosition) -> Iterator[int]:
        """Compile for positions like this one; yield how many may be evaluated together."""
        ...

    def node_bytes(self, state_bytes: int, num_actions: int) -> int:
        """Return about how much memory a node takes, with its edges and leaves."""
        ...


class NetworkLeaves:
    """`Leaves` of one network: its value is backed up once, and the leaf becomes a node."""

    counts_apart = False

    def __init__(
        self,
        evaluate: Callable[[Sequence[PackedPosition]], list[Evaluation]],
        edge_width: int | None = None,
    ) -> None:
        """Make them of the evaluations of a network; `edge_width` as in `SearchConfig`."""
        self._evaluate, self._edge_width = evaluate, edge_width

    def root(self, position: PackedPosition, legal: np.ndarray) -> Node:
        """Return the node of `position`, with the network's priors in proportion."""
        evaluation = self._evaluate([position])[0]
        # The real game may forbid more than a search sees: superko over the whole game.
        allowed = legal[evaluation.actions].all()
        return Node(position, evaluation if allowed else evaluation.among(legal))

    def visit(self, leaves: Sequence[Leaf]) -> list[Visit]:
        """Return the network's values."""
        evaluations = self._evaluate([leaf.position for leaf in leaves])
        visits = []
        for leaf, evaluation in zip(leaves, evaluations, strict=True):
            leaf.evaluation, value = evaluation, evaluation.value
            visits.append(Visit(value if leaf.position.to_play == 0 else -value))
        return visits

    def expand(self, leaf: Leaf, visits: float) -> Node | Ending:
        """Return the node, or an ending where a restriction leaves no move."""
        del visits
        assert leaf.evaluation is not None
        evaluation = leaf.evaluation.narrowed(self._edge_width)
        if leaf.allowed is not None:
            evaluation = evaluation.among(leaf.allowed)
        is_open = len(evaluation.actions) > 0
        value = evaluation.value * sign_of(leaf.position.to_play)
        return Node(leaf.position, evaluation) if is_open else Ending(value)

    def finish_batch(self) -> None:
        """Do nothing: all is evaluated at the first visit."""

    def retain(self, root: Node | None) -> None:
        """Do nothing: no node waits for an answer."""
