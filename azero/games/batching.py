"""Natively batched functions with the one-position interface of a game."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from azero.types import PyTree

CHUNK = 128
"""Positions at a time on a CPU: 1,024 at once do not fit the cache (1 MB a core) and run at half
the speed, at 9x9 and at 19x19."""


def repeat_state(state: PyTree, count: int) -> PyTree:
    """Return states[count, ...], all of them `state`."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), state)


def batch_native(
    function: Callable[..., PyTree], on_cpu: Callable[..., PyTree] | None = None
) -> Callable[..., PyTree]:
    """Return a function of one position that calls `function`, which is written for arrays [B,
    ...], once for the whole batch.

    Without `vmap` the batch has one position. Under `vmap`, also nested, all mapped axes become the
    one batch axis, so that a loop inside `function` has a scalar condition instead of a select over
    its whole carry. On a CPU the batch is cut into chunks, or passed whole to `on_cpu` where that
    is given.
    """
    for_cpu = functools.partial(_in_chunks, function) if on_cpu is None else on_cpu

    @custom_vmap
    @jax.jit  # keeps the constants of `function` inside: as operands a condition would map them
    def call(*arguments: jax.Array) -> PyTree:
        return jax.lax.platform_dependent(*arguments, cpu=for_cpu, default=function)

    @call.def_vmap
    def _merge(
        axis_size: int, in_batched: list[bool], *arguments: jax.Array
    ) -> tuple[PyTree, PyTree]:
        mapped = [
            a if is_mapped else jnp.broadcast_to(a[None], (axis_size, *a.shape))
            for a, is_mapped in zip(arguments, in_batched, strict=True)
        ]
        inner = mapped[0].shape[1]
        output = call(*[a.reshape(axis_size * inner, *a.shape[2:]) for a in mapped])
        output = jax.tree.map(lambda a: a.reshape(axis_size, inner, *a.shape[1:]), output)
        return output, jax.tree.map(lambda _: True, output)

    def unbatched(*arguments: Any) -> PyTree:
        return jax.tree.map(lambda a: a[0], call(*[jnp.asarray(a)[None] for a in arguments]))

    return unbatched


def _in_chunks(function: Callable[..., PyTree], *arguments: jax.Array) -> PyTree:
    """Call `function` on equal chunks of at most CHUNK positions, one after the other; on the whole
    batch if all such chunks would be small."""
    batch = arguments[0].shape[0]
    chunk = next(
        (size for size in range(min(CHUNK, batch), CHUNK // 4, -1) if batch % size == 0), batch
    )
    if chunk == batch:
        return function(*arguments)
    chunks = [a.reshape(batch // chunk, chunk, *a.shape[1:]) for a in arguments]
    output = jax.lax.map(lambda chunk_arguments: function(*chunk_arguments), chunks)
    return jax.tree.map(lambda a: a.reshape(batch, *a.shape[2:]), output)
