"""3x3 convolutions: XLA's own, and three matrix products over a row-unrolled copy, which suits CPUs with bf16 matrix units."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import lax

from azero.types import Array

ConvolveFn = Callable[[Array, Array], Array]
"""(x [B, H, W, C], kernel [3, 3, C, F]) -> [B, H, W, F] in the type of x; stride 1, zero padding, no bias."""


def convolve_xla(x: Array, kernel: Array) -> Array:
    """Convolve through `lax.conv_general_dilated`: what GPUs and TPUs want."""
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolve_dots(x: Array, kernel: Array) -> Array:
    """Convolve as three matrix products, one per kernel row, over a copy in which every point holds its left and right neighbours too (3C inputs)."""
    batch, height, width, channels = x.shape
    filters = kernel.shape[-1]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    unrolled = jnp.concatenate([padded[:, :, shift : shift + width] for shift in range(3)], axis=-1)
    rows = kernel.reshape(3, 3 * channels, filters)
    total = sum(_matmul(unrolled[:, row : row + height].reshape(-1, 3 * channels), rows[row]) for row in range(3))
    return jnp.asarray(total).reshape(batch, height, width, filters).astype(x.dtype)


def _matmul(a: Array, b: Array) -> Array:
    """Return a [M, K] times b [K, N] in float32, whatever the type of the factors."""
    return lax.dot(a, b, preferred_element_type=jnp.float32)


CONVOLUTIONS: dict[str, ConvolveFn] = {"xla": convolve_xla, "dots": convolve_dots}
