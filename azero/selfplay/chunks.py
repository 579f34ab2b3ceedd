"""Searching a batch of games in chunks, which bounds the memory of a search."""

from typing import Any

import jax
import jax.numpy as jnp

from azero.search.search import PreviousSearch, SearchFn, SearchOutput
from azero.types import Array, PyTree


def in_chunks(search: SearchFn, size: int | None) -> SearchFn:
    """Return a search of the same positions, `size` at a time, that keeps no tree: trees take more
    memory than anything else in a run."""

    def run(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        count = jax.tree.leaves(roots)[0].shape[0]
        if size is None or size >= count:
            return search(params, key, roots)._replace(tree=None)

        def chunk(inputs: tuple[Array, PyTree]) -> SearchOutput:
            return search(params, *inputs)._replace(tree=None)

        parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), roots)
        output = jax.lax.map(chunk, (jax.random.split(key, count // size), parts))
        return jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), output)

    return run


def continued_in_chunks(search: SearchFn, size: int | None) -> SearchFn:
    """Return a search of the same positions, `size` at a time, that continues the trees of the
    previous search: trees [C, ...] for C chunks, updated in place."""

    def run(params: PyTree, key: Array, roots: PyTree, kept: PreviousSearch) -> SearchOutput:
        chunks = jax.tree.leaves(kept.tree)[0].shape[0]

        def chunk(trees: PyTree, inputs: tuple[Array, Array, PyTree, Array]) -> Any:
            i, key, roots, moves = inputs
            tree = jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, 0, False), trees)
            output = search(params, key, roots, PreviousSearch(tree, moves))
            trees = jax.tree.map(
                lambda leaf, new: jax.lax.dynamic_update_index_in_dim(leaf, new, i, 0),
                trees,
                output.tree,
            )
            return trees, output._replace(tree=None)

        parts = jax.tree.map(
            lambda leaf: leaf.reshape(chunks, -1, *leaf.shape[1:]), (roots, kept.moves)
        )
        keys = key[None] if chunks == 1 else jax.random.split(key, chunks)
        numbers = jnp.arange(chunks, dtype=jnp.int32)
        trees, outputs = jax.lax.scan(chunk, kept.tree, (numbers, keys, *parts))
        joined: SearchOutput = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), outputs)
        return joined._replace(tree=trees)

    return run
