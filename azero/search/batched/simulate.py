"""One simulation in every lane: descend, expand, back up."""

from __future__ import annotations

import jax

from azero.games.game import Game
from azero.mesh import platform_dependent
from azero.search.batched.evaluation import CPU_CHUNK
from azero.search.batched.tree import ScoreFn, Tree, backup, descend, expand
from azero.search.search import LeafFn
from azero.types import Array, PyTree


def simulate(
    game: Game,
    leaf: LeafFn,
    score: ScoreFn,
    max_depth: int,
    params: PyTree,
    key: Array,
    tree: Tree,
    edge: Array,
    valid: Array,
    slot: int | Array,
) -> Tree:
    """Return `tree` after one simulation in each lane of `valid` bool[B, L], by the edges int32[B,
    L] of the roots and then by `score`. The new nodes are `slot` to `slot` + L - 1.

    A CPU runs as many lanes at once as it evaluates positions at once, so that their nodes are
    still in its cache when they are written.
    """
    batch, lanes = edge.shape
    group = _lanes_at_once(batch, lanes)

    def at_once(
        params: PyTree, key: Array, tree: Tree, edge: Array, valid: Array, slot: int | Array
    ) -> Tree:
        path = descend(tree, edge, valid, score, max_depth)
        leaf_key = jax.random.fold_in(key, slot)
        tree, value = expand(game, leaf, params, leaf_key, tree, path, slot)
        return backup(tree, path, value)

    def in_groups(
        params: PyTree, key: Array, tree: Tree, edge: Array, valid: Array, slot: Array
    ) -> Tree:
        def simulate_group(number: Array, tree: Tree) -> Tree:
            first = number * group
            edges, used = (
                jax.lax.dynamic_slice_in_dim(array, first, group, axis=1) for array in (edge, valid)
            )
            return at_once(params, key, tree, edges, used, slot + first)

        return jax.lax.fori_loop(0, lanes // group, simulate_group, tree)

    if group == lanes:
        return at_once(params, key, tree, edge, valid, slot)
    return platform_dependent(params, key, tree, edge, valid, slot, cpu=in_groups, default=at_once)


def _lanes_at_once(batch: int, lanes: int) -> int:
    """Return the most of `lanes` that a CPU evaluates at once for `batch` games, a divisor."""
    return max(
        group
        for group in range(1, lanes + 1)
        if lanes % group == 0 and (group == 1 or batch * group <= CPU_CHUNK)
    )
