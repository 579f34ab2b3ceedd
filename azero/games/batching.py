"""Natively batched functions with the one-position interface of a game."""

import functools
from collections.abc import Callable, Hashable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap

from azero.mesh import platform_dependent
from azero.types import PyTree

CHUNK = 128
"""Positions at a time on a CPU: 1,024 at once do not fit the cache (1 MB a core) and run at half
the speed, at 9x9 and at 19x19."""


def repeat_state(state: PyTree, count: int) -> PyTree:
    """Return states[count, ...], all of them `state`."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count, *jnp.shape(leaf))), state)


def select_states(mask: jax.Array, chosen: PyTree, others: PyTree) -> PyTree:
    """Return `chosen` [B, ...] where bool[B] `mask` holds, `others` elsewhere."""

    def select(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(mask.reshape(mask.shape + (1,) * (other.ndim - 1)), one, other)

    return jax.tree.map(select, chosen, others)


@functools.cache
def batch_native(
    function: Callable[..., PyTree],
    *settings: Hashable,
    on_cpu: Callable[..., PyTree] | None = None,
) -> Callable[..., PyTree]:
    """Return a function of one position that calls `function(*settings, ...)`, which is written for
    arrays [B, ...], once for the whole batch.

    Without `vmap` the batch has one position. Under `vmap`, also nested, all mapped axes become the
    one batch axis, so that a loop inside `function` has a scalar condition instead of a select over
    its whole carry. On a CPU the batch is cut into chunks, or passed whole to `on_cpu(*settings,
    ...)` where that is given. The same arguments return the same function, which is traced once for
    each shape.
    """
    native = functools.partial(function, *settings)

    @custom_vmap
    @jax.jit  # keeps constants of `function` inside; as operands, `lax.cond` would batch them
    def call(*arguments: jax.Array) -> PyTree:
        batch = arguments[0].shape[0]
        chunk = _chunk_size(batch)
        if on_cpu is not None:
            for_cpu = functools.partial(on_cpu, *settings)
        elif chunk < batch:
            for_cpu = functools.partial(_in_chunks, native, chunk)
        else:
            return native(*arguments)
        return platform_dependent(*arguments, cpu=for_cpu, default=native)

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


def _chunk_size(batch: int) -> int:
    """Return the size of equal chunks of at most CHUNK positions; `batch` if they would be smaller
    than a quarter of that."""
    return next(
        (size for size in range(min(CHUNK, batch), CHUNK // 4, -1) if batch % size == 0), batch
    )


def _in_chunks(function: Callable[..., PyTree], chunk: int, *arguments: jax.Array) -> PyTree:
    """Call `function` on chunks of the batch, one after the other."""
    batch = arguments[0].shape[0]
    chunks = [a.reshape(batch // chunk, chunk, *a.shape[1:]) for a in arguments]
    output = jax.lax.map(lambda chunk_arguments: function(*chunk_arguments), chunks)
    return jax.tree.map(lambda a: a.reshape(batch, *a.shape[2:]), output)
