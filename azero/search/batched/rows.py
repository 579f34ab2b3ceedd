"""Reading and writing the arrays of a tree, in which node n of game b is row n B + b.

On a TPU whole rows are written: the compiler lays out an array whose single edges are written the
other way round, and copies the whole of it in every simulation. Elsewhere single edges are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint

from azero.mesh import platform_dependent
from azero.types import Array

Change = Callable[[Array, Array], Array]
"""(old entries, new values) -> entries"""


def node_rows(node: Array) -> Array:
    """Return int32[B, L], the rows of nodes int[B, L]."""
    batch = node.shape[0]
    return node.astype(jnp.int32) * batch + jnp.arange(batch, dtype=jnp.int32)[:, None]


def read_rows(array: Array, node: Array) -> Array:
    """Return [B, L, ...], the rows of nodes int32[B, L]. The indices are in bounds; the promise
    halves the time of the gather on the CPU."""
    return array.at[node_rows(node)].get(mode="promise_in_bounds")


def read_entry(array: Array, node: Array, edge: Array) -> Array:
    """Return int32[B, L], the entries of integers [N B, E] for an edge of each lane."""

    def single(array: Array, row: Array, edge: Array) -> Array:
        return array.at[row, edge].get(mode="promise_in_bounds").astype(jnp.int32)

    def whole_row(array: Array, row: Array, edge: Array) -> Array:
        entries = array.at[row].get(mode="promise_in_bounds").astype(jnp.int32)
        return jnp.sum(jnp.where(_is_edge(edge, entries), entries, 0), axis=-1, dtype=jnp.int32)

    return platform_dependent(array, node_rows(node), edge, tpu=whole_row, default=single)


def _is_edge(edge: Array, entries: Array) -> Array:
    """Return bool[B, L, E], which of the entries [..., E] of a row is that of `edge` int32[B,
    L]."""
    return jax.nn.one_hot(edge, entries.shape[-1], dtype=bool)


def add(old: Array, new: Array) -> Array:
    """Return the sum."""
    return old + new


def replace(old: Array, new: Array) -> Array:
    """Return the new values."""
    del old
    return new


def change_below_root(
    array: Array, node: Array, edge: Array, is_used: Array, new: Array, change: Change
) -> Array:
    """Change [N B, E] at an edge of each lane in use, whose node [B, L] is not the root.

    The lanes of a game are in disjoint subtrees, so no row occurs twice.
    """
    row = jnp.where(is_used, node_rows(node), array.shape[0])  # out of range is dropped

    def whole_row(array: Array, row: Array, edge: Array, new: Array) -> Array:
        old = array.at[row].get(mode="clip")
        rows = jnp.where(_is_edge(edge, old), change(old, new[..., None]), old)
        return array.at[row].set(rows, mode="drop", unique_indices=True)

    single = functools.partial(_change_single, change)
    new = new.astype(array.dtype)
    return platform_dependent(array, row, edge, new, tpu=whole_row, default=single)


def _change_single(change: Change, array: Array, row: Array, edge: Array, new: Array) -> Array:
    """Change the entries of [N B, E] in rows int32[B, L], none of them twice; rows out of range are
    dropped."""
    place = array.at[row, edge]
    how: Any = {"mode": "drop", "unique_indices": True}
    return place.add(new, **how) if change is add else place.set(new, **how)


def change_roots(array: Array, edge: Array, is_used: Array, new: Array, change: Change) -> Array:
    """Change the roots' rows of [N B, E] at an edge of each lane [B, L] in use.

    The lanes of a game leave its root by different edges.
    """

    def whole_rows(array: Array, edge: Array, is_used: Array, new: Array) -> Array:
        old = array[: edge.shape[0]]
        lanes = _is_edge(edge, old) & is_used[..., None]
        changes = jnp.sum(jnp.where(lanes, new[..., None], 0), axis=1)
        rows = jnp.where(jnp.any(lanes, axis=1), change(old, changes.astype(array.dtype)), old)
        return array.at[: edge.shape[0]].set(rows)

    def single(array: Array, edge: Array, is_used: Array, new: Array) -> Array:
        game = jnp.arange(edge.shape[0], dtype=jnp.int32)[:, None]
        row = jnp.where(is_used, game, array.shape[0])
        return _change_single(change, array, row, edge, new)

    new = new.astype(array.dtype)
    return platform_dependent(array, edge, is_used, new, tpu=whole_rows, default=single)


def in_row_order(rows: Array) -> Array:
    """Return rows [R, E] as they are, on a TPU laid out row after row.

    Otherwise the compiler gives the array that they are written to the layout of the rows, and
    copies it between that layout and the one for reading rows.
    """

    def pinned(rows: Array) -> Array:
        return with_layout_constraint(rows, Layout(major_to_minor=(0, 1)))

    return platform_dependent(rows, tpu=pinned, default=lambda rows: rows)
