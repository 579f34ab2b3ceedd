"""Sums, maxima and softmax over the edges of nodes, fast on CPUs.

There XLA divides the reduction of a row into windows, which it does not vectorise, and compares
floats with care for NaN; a product with ones and a plain comparison are several times as fast.
Elsewhere the usual operations are used: they are fused, and products may round.
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


def edge_softmax(logits: Array) -> Array:
    """Return the softmax over the edges of float32[..., E], of which one at least is above -inf."""
    powers = jnp.exp(logits - edge_max(logits)[..., None])
    return powers / edge_sum(powers)[..., None]
