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
    """The result of one visit of a leaf, in [-1, 1] for the first mover."""

    result: float
    network_value: float | None = None
    """The value of a network that is counted apart (`Node.network_part`), at the first visit."""


class Leaves(Protocol):
    """Evaluates the leaves of one tree."""

    counts_apart: bool
    """Whether a network's values are counted apart from the results of visits.

    If so, every visit of a leaf has a result of its own, and several descents of a batch may end at
    the same leaf.
    """

    def root(self, position: PackedPosition, legal: np.ndarray) -> Node:
        """Return the node of `position`, in which the moves of `legal` bool[A] may be played."""
        ...

    def visit(self, leaves: Sequence[Leaf]) -> list[Visit]:
        """Return the result of a visit of each leaf; some may be the same leaf."""
        ...

    def expand(self, leaf: Leaf, visits: float) -> Node | Leaf | Ending:
        """Return what replaces `leaf` behind its edge, which has `visits` visits."""
        ...

    def finish_batch(self) -> None:
        """Finish a batch after all its results have been backed up."""
        ...

    def retain(self, root: Node | None) -> None:
        """Forget nodes that are not below the new `root`; None forgets all."""
        ...


class LeafEvaluator(Protocol):
    """Evaluates positions, single ones and those of trees; trees may share one."""

    @property
    def num_symmetries(self) -> int:
        """Symmetries that `view` may be asked for; 0 where it draws them itself."""
        ...

    def leaves(self, rules: PackedRules, edge_width: int | None = None) -> Leaves:
        """Return what evaluates the leaves of one tree; for its width see `SearchConfig`."""
        ...

    def view(self, position: PackedPosition, symmetry: int | None) -> Evaluation:
        """Return the evaluation of `position` under one symmetry; None leaves the choice to the
        evaluator."""
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

    counts_apart = False

    def __init__(
        self,
        evaluate: Callable[[Sequence[PackedPosition]], list[Evaluation]],
        edge_width: int | None = None,
    ) -> None:
        """Make them of the evaluations of a network; `edge_width` as in `SearchConfig`."""
        self._evaluate, self._edge_width = evaluate, edge_width

    def root(self, position: PackedPosition, legal: np.ndarray) -> Node:
        """Return the node of `position`, with the network's priors over `legal`."""
        evaluation = self._evaluate([position])[0]
        # The real game may forbid more moves than a search does: superko over the whole game.
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
        """Return the node, or an ending where a restriction allows no move."""
        del visits
        assert leaf.evaluation is not None
        evaluation = leaf.evaluation.narrowed(self._edge_width)
        if leaf.allowed is not None:
            evaluation = evaluation.among(leaf.allowed)
        is_open = len(evaluation.actions) > 0
        value = evaluation.value * sign_of(leaf.position.to_play)
        return Node(leaf.position, evaluation) if is_open else Ending(value)

    def finish_batch(self) -> None:
        """Do nothing: a leaf is evaluated at its first visit."""

    def retain(self, root: Node | None) -> None:
        """Do nothing: no node waits for an answer."""
