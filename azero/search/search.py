"""The Search and Leaf contracts."""

from collections.abc import Callable
from typing import NamedTuple

from azero.types import Array, PyTree

LeafFn = Callable[[PyTree, Array, PyTree], tuple[Array, Array]]
"""(params, key, states[B]) -> (prior_logits float32[B, A], value float32[B] for the side to move).
Rollouts and mixes are other leaves."""


class SearchOutput(NamedTuple):
    """The result of searching B root positions."""

    action: Array
    """int32[B]: the move the search would play (most visits; for Gumbel the winner of sequential
    halving)."""
    weights: Array
    """float32[B, A]: the policy target (visit distribution for PUCT, the improved policy for
    Gumbel); zero on illegal actions."""
    visits: Array
    """int32[B, A]: the visits of the root's children that count for the policy target and for the
    choice of the move: without forced playouts (`PuctConfig.forced_playouts`). The tree has all
    visits."""
    value: Array
    """float32[B]: the root's value after the search, in [-1, 1] for the side to move."""
    best_child_value: Array
    """float32[B]: the value of the child that `action` leads to, for the side to move at the root
    (AlphaGo Zero resigns on both)."""
    tree: PyTree
    """The search tree, for tests, the next search (`PreviousSearch`) and display."""
    prior: Array | None = None
    """float32[B, A]: the leaf's policy at the root over the legal moves, without noise; None where
    the search does not return it."""


class PreviousSearch(NamedTuple):
    """The previous search of the same B games, for the next one to continue."""

    tree: PyTree
    """The tree of the previous search."""
    moves: Array
    """int32[B, M]: the moves played since, oldest first; -1 where a game has nothing to continue,
    as at its beginning."""


SearchFn = Callable[..., SearchOutput]
"""(params, key, roots[B]) -> SearchOutput. Roots are states of real games; the root's legal mask is
exact. A search that can continue trees (`PuctConfig.reuse_tree`) takes a PreviousSearch as an
optional fourth argument."""
