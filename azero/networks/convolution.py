"""Three implementations of a 3x3 convolution: XLA's own, matrix products over unrolled rows, and
minimal filtering (Winograd) along the rows.

On GPUs and TPUs XLA's is the fastest. On CPUs it reaches the speed of the vector units at best, and
its gradient much less: bf16 matrix units are used only by matrix products ("dots"), and without
such units float32 gains from fewer multiplications ("winograd"). All three map [B, H, W, C] to [B,
H, W, F], stride 1, zero padding, no bias.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from azero.types import Array

Matrix = tuple[tuple[float, ...], ...]


class Convolution(NamedTuple):
    """An implementation in parts, so that self-play prepares its kernels once."""

    prepare: Callable[[Array, int], Array]
    """(kernel [..., 3, 3, C, F], board width) -> weights [..., *]"""
    apply: Callable[[Array, Array], Array]
    """(x [B, H, W, C], weights of that width) -> [B, H, W, F] in the type of x"""
    gradient: Callable[[Array, Array], Array]
    """(x [B, H, W, C], gradient of the output [B, H, W, F]) -> gradient of the weights"""


def _prepare_xla(kernel: Array, width: int) -> Array:
    return kernel


def _apply_xla(x: Array, weights: Array) -> Array:
    return lax.conv_general_dilated(
        x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def _gradient_xla(x: Array, gradient: Array) -> Array:
    weights = jax.ShapeDtypeStruct((3, 3, x.shape[-1], gradient.shape[-1]), x.dtype)
    return jax.linear_transpose(lambda weights: _apply_xla(x, weights), weights)(gradient)[0]


def _prepare_dots(kernel: Array, width: int) -> Array:
    """Return [..., 3, 3C, F]: one matrix per kernel row."""
    *stack, rows, columns, channels, filters = kernel.shape
    return kernel.reshape(*stack, rows, columns * channels, filters)


def _apply_dots(x: Array, weights: Array) -> Array:
    """Sum three products, one per kernel row. The float32 sum is what makes XLA reach a CPU's bf16
    matrix units: a plain bf16 product is five times slower."""
    first, second, third = (
        lax.dot(row, weight, preferred_element_type=jnp.float32)
        for row, weight in zip(_unroll(x), weights, strict=True)
    )
    return (first + second + third).astype(x.dtype).reshape(*x.shape[:3], weights.shape[-1])


def _gradient_dots(x: Array, gradient: Array) -> Array:
    flat = gradient.reshape(-1, gradient.shape[-1])
    along_positions = (((0,), (0,)), ((), ()))
    return jnp.stack(
        [
            lax.dot_general(row, flat, along_positions, preferred_element_type=jnp.float32).astype(
                x.dtype
            )
            for row in _unroll(x)
        ]
    )


def _unroll(x: Array) -> list[Array]:
    """Return [B H W, 3C] for each kernel row: every point's row above, its own and the one below,
    each with the left and right neighbours."""
    height, width, channels = x.shape[1:]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    unrolled = jnp.concatenate([padded[:, :, shift : shift + width] for shift in range(3)], axis=-1)
    return [unrolled[:, row : row + height].reshape(-1, 3 * channels) for row in range(3)]


_POINTS = {
    2: (0, 1, -1),
    3: (0, 1, -1, 2),
    4: (0, 1, -1, Fraction(1, 2), -2),
    5: (0, 1, -1, Fraction(1, 2), Fraction(-1, 2), 2),
}
"""Finite interpolation points of F(m, 3), chosen for small rounding errors (Lavin and Gray 2015;
Barabasz et al. 2018)."""


def tile_width(width: int) -> int:
    """Return m, the outputs in a tile of a row of `width` points.

    F(m, 3) takes m + 2 products for m outputs. Of the tiles within a tenth of the fewest products,
    the smallest has the smallest rounding error.
    """
    products = {m: -(-width // m) * (m + 2) for m in _POINTS}
    return next(m for m in sorted(products) if products[m] <= 1.1 * min(products.values()))


@functools.cache
def minimal_filter(outputs: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return the matrices (inverse [m, n], kernel [n, 3], forward [n, n]) of F(m, 3), n = m + 2, by
    Cook and Toom's interpolation.

    For inputs d[n] and a kernel g[3]: inverse @ ((kernel @ g) * (forward @ d)) is the correlation
    of d with g, m outputs.
    """
    points = [Fraction(point) for point in _POINTS[outputs]]
    others = [[other for other in points if other != point] for point in points]
    scale = [
        math.prod((point - other for other in rest), start=Fraction(1))
        for point, rest in zip(points, others, strict=True)
    ]
    infinity = Fraction(0)
    inverse = [
        [*(point**power for point in points), Fraction(int(power == outputs - 1))]
        for power in range(outputs)
    ]
    kernel = [
        [point**power / factor for power in range(3)]
        for point, factor in zip(points, scale, strict=True)
    ] + [[infinity, infinity, Fraction(1)]]
    forward = [[*_polynomial(rest), infinity] for rest in others] + [_polynomial(points)]
    return _floats(inverse), _floats(kernel), _floats(forward)


def _floats(matrix: Sequence[Sequence[Fraction | int]]) -> Matrix:
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


def _polynomial(roots: list[Fraction]) -> list[Fraction]:
    """Return the coefficients of the monic polynomial with these roots, lowest power first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted, scaled = (
            [Fraction(0), *coefficients],
            [*(root * c for c in coefficients), Fraction(0)],
        )
        coefficients = [a - b for a, b in zip(shifted, scaled, strict=True)]
    return coefficients


def _combine(matrix: Matrix, terms: list[Array]) -> list[Array]:
    """Return the matrix times the vector of arrays, skipping zeros."""

    def row(coefficients: tuple[float, ...]) -> Array:
        parts = [
            term if c == 1.0 else term * c
            for c, term in zip(coefficients, terms, strict=True)
            if c != 0.0
        ]
        return functools.reduce(jnp.add, parts)

    return [row(coefficients) for coefficients in matrix]


def _prepare_winograd(kernel: Array, width: int) -> Array:
    """Return [..., n, 3C, F]: for every interpolation point one matrix over the three kernel
    rows."""
    *stack, _, _, channels, filters = kernel.shape
    _, transform, _ = minimal_filter(tile_width(width))
    columns = [kernel[..., column, :, :] for column in range(3)]
    return jnp.stack(_combine(transform, columns), axis=-4).reshape(
        *stack, len(transform), 3 * channels, filters
    )


def _apply_winograd(x: Array, weights: Array) -> Array:
    batch, height, width, _ = x.shape
    outputs, filters = weights.shape[0] - 2, weights.shape[-1]
    inverse, _, _ = minimal_filter(outputs)
    products = lax.dot_general(_at_points(x, outputs), weights, (((2,), (1,)), ((0,), (0,))))
    products = products.reshape(outputs + 2, batch, height, -1, filters)
    y = jnp.stack(_combine(inverse, list(products)), axis=3)
    return y.reshape(batch, height, -1, filters)[:, :, :width]


def _gradient_winograd(x: Array, gradient: Array) -> Array:
    batch, height, width, filters = gradient.shape
    outputs = tile_width(width)
    inverse, _, _ = minimal_filter(outputs)
    tiles = -(-width // outputs)
    padded = jnp.pad(gradient, ((0, 0), (0, 0), (0, tiles * outputs - width), (0, 0))).reshape(
        batch, height, tiles, outputs, filters
    )
    transposed = tuple(zip(*inverse, strict=True))
    spread = jnp.stack(
        _combine(transposed, [padded[:, :, :, output] for output in range(outputs)])
    ).reshape(outputs + 2, -1, filters)
    # The smaller factor first: XLA copies the one that it transposes.
    return lax.dot_general(spread, _at_points(x, outputs), (((1,), (1,)), ((0,), (0,)))).swapaxes(
        1, 2
    )


def _at_points(x: Array, outputs: int) -> Array:
    """Return [n, B H T, 3C]: the transformed inputs of the T tiles of each row at each
    interpolation point, with those of the rows above and below."""
    height, width, channels = x.shape[1:]
    _, _, forward = minimal_filter(outputs)
    tiles = -(-width // outputs)
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, tiles * outputs + 1 - width), (0, 0)))
    span = (tiles - 1) * outputs + 1
    at_points = jnp.stack(
        _combine(
            forward, [padded[:, :, start : start + span : outputs] for start in range(outputs + 2)]
        )
    )
    rows = jnp.concatenate([at_points[:, :, row : row + height] for row in range(3)], axis=-1)
    return rows.reshape(outputs + 2, -1, 3 * channels)


CONVOLUTIONS: dict[str, Convolution] = {
    "xla": Convolution(_prepare_xla, _apply_xla, _gradient_xla),
    "dots": Convolution(_prepare_dots, _apply_dots, _gradient_dots),
    "winograd": Convolution(_prepare_winograd, _apply_winograd, _gradient_winograd),
}


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def convolve(name: str, x: Array, kernel: Array) -> Array:
    """Convolve x [B, H, W, C] with kernel [3, 3, C, F] by `CONVOLUTIONS[name]`, for training.

    The gradients are given explicitly, because autodiff's transposed slices and concatenations are
    slow on CPUs: that of the input is a convolution with the flipped kernel.
    """
    convolution = CONVOLUTIONS[name]
    return convolution.apply(x, convolution.prepare(kernel, x.shape[2]))


def _convolve_forward(name: str, x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve(name, x, kernel), (x, kernel)


def _convolve_backward(
    name: str, saved: tuple[Array, Array], gradient: Array
) -> tuple[Array, Array]:
    x, kernel = saved
    convolution, width = CONVOLUTIONS[name], x.shape[2]
    flipped = kernel[::-1, ::-1].swapaxes(2, 3)
    by_x = convolution.apply(gradient, convolution.prepare(flipped, width))
    by_weights = convolution.gradient(x, gradient)
    return by_x, jax.linear_transpose(lambda kernel: convolution.prepare(kernel, width), kernel)(
        by_weights
    )[0]


convolve.defvjp(_convolve_forward, _convolve_backward)
