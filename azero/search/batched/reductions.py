"""Sums, maxima, softmax and draws over the edges of nodes or all actions, fast on CPUs.

There XLA divides the reduction of a row into windows, which it does not vectorise, nor the search
for an index, and compares floats with care for NaN; a product with ones and plain comparisons are
several times as fast. Elsewhere the usual operations are used: they are fused, and products may
round.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from azero.mesh import platform_dependent
from azero.types import Array


def edge_sum(values: Array) -> Array:
    """Return the sums of float32[..., E]: float32[...]."""
    return platform_dependent(
        values, cpu=_sum_by_product, default=functools.partial(jnp.sum, axis=-1)
    )


def _sum_by_product(values: Array) -> Array:
    return jnp.matmul(
        values, jnp.ones(values.shape[-1], jnp.float32), precision=jax.lax.Precision.HIGHEST
    )


def edge_max(values: Array) -> Array:
    """Return the maxima of float32[..., E], without NaN: float32[...]."""
    return platform_dependent(
        values, cpu=_max_by_comparison, default=functools.partial(jnp.max, axis=-1)
    )


def _max_by_comparison(values: Array) -> Array:
    def larger(first: Array, second: Array) -> Array:
        return jax.lax.select(first > second, first, second)

    lowest = jnp.array(-jnp.inf, values.dtype)
    return jax.lax.reduce(values, lowest, larger, (values.ndim - 1,))


def argmax(scores: Array) -> Array:
    """Return the index of the highest of float32[..., E], without NaN, the first of equals:
    int32[...]."""
    return platform_dependent(scores, cpu=_first_of_highest, default=_argmax)


def _argmax(scores: Array) -> Array:
    return jnp.argmax(scores, axis=-1).astype(jnp.int32)


def _first_of_highest(scores: Array) -> Array:
    """Return the same as `_argmax` by a maximum and a comparison: half the time of a level of the
    descent, and a sixth of the time of shogi's self-play less (docs/speed-changes.md).

    Without the barrier XLA would compute the scores twice, and their last bits might differ.
    """
    scores = jax.lax.optimization_barrier(scores)
    is_best = scores == edge_max(scores)[..., None]
    edge = jax.lax.broadcasted_iota(jnp.float32, scores.shape, scores.ndim - 1)
    last = scores.shape[-1] - 1.0
    return (last - edge_max(jnp.where(is_best, last - edge, 0.0))).astype(jnp.int32)


def categorical(key: Array, logits: Array) -> Array:
    """Return what `jax.random.categorical` draws from float32[..., E]: int32[...]."""
    return argmax(jax.random.gumbel(key, logits.shape, logits.dtype) + logits)


def edge_softmax(logits: Array) -> Array:
    """Return the softmax over the edges of float32[..., E], of which one at least is above -inf."""
    powers = jnp.exp(logits - edge_max(logits)[..., None])
    return powers / edge_sum(powers)[..., None]
