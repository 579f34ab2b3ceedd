"""One simulation in every lane: descend, expand, back up."""

from __future__ import annotations

import functools
from typing import Any

import jax

from azero.games.game import Game
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
    at_once = functools.partial(_simulate, game, leaf, score, max_depth)
    group = _lanes_at_once(batch, lanes)
    if group == lanes:
        return at_once(params, key, tree, edge, valid, slot)
    in_groups = functools.partial(_simulate_in_groups, at_once, group)
    return jax.lax.platform_dependent(
        params, key, tree, edge, valid, slot, cpu=in_groups, default=at_once
    )


def _simulate(
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
    path = descend(tree, edge, valid, score, max_depth)
    key = jax.random.fold_in(key, slot)
    tree, value = expand(game, leaf, params, key, tree, path, slot)
    return backup(tree, path, value)


def _lanes_at_once(batch: int, lanes: int) -> int:
    """Return the most of `lanes` that a CPU evaluates at once for `batch` games, a divisor."""
    return max(
        group
        for group in range(1, lanes + 1)
        if lanes % group == 0 and (group == 1 or batch * group <= CPU_CHUNK)
    )


def _simulate_in_groups(
    at_once: Any,
    group: int,
    params: PyTree,
    key: Array,
    tree: Tree,
    edge: Array,
    valid: Array,
    slot: Array,
) -> Tree:
    def simulate_group(number: Array, tree: Tree) -> Tree:
        first = number * group
        edges, used = (
            jax.lax.dynamic_slice_in_dim(lanes, first, group, axis=1) for lanes in (edge, valid)
        )
        return at_once(params, key, tree, edges, used, slot + first)

    return jax.lax.fori_loop(0, edge.shape[1] // group, simulate_group, tree)
