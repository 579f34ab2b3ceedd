"""3x3 convolutions by minimal filtering over square tiles (Winograd; Lavin and Gray 2015).

The rounding error of the weight gradients is larger than that of a plain float32 convolution and
below 2e-5 of the largest one (tests/networks/test_convolution.py).
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import jax.numpy as jnp
from jax import lax

from azero.types import Array

Matrix = tuple[tuple[float, ...], ...]


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
    zero = Fraction(0)  # of the point at infinity
    inverse = [
        [*(point**power for point in points), Fraction(int(power == outputs - 1))]
        for power in range(outputs)
    ]
    kernel = [
        [point**power / factor for power in range(3)]
        for point, factor in zip(points, scale, strict=True)
    ] + [[zero, zero, Fraction(1)]]
    forward = [[*_polynomial(rest), zero] for rest in others] + [_polynomial(points)]
    return _floats(inverse), _floats(kernel), _floats(forward)


def _floats(matrix: Sequence[Sequence[Fraction | int]]) -> Matrix:
    return tuple(tuple(float(entry) for entry in row) for row in matrix)


def _polynomial(roots: list[Fraction]) -> list[Fraction]:
    """Return the coefficients of the monic polynomial with these roots, lowest power first."""
    coefficients = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *coefficients]
        scaled = [*(root * c for c in coefficients), Fraction(0)]
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


def prepare_tiles(kernel: Array, width: int) -> Array:
    """Return [..., n, n, C, F]: the transformed kernel at each pair of interpolation points, the
    first of the columns, the second of the rows."""
    _, transform, _ = minimal_filter(tile_width(width))
    rows = jnp.stack(_combine(transform, [kernel[..., row, :, :, :] for row in range(3)]), axis=-4)
    columns = [rows[..., column, :, :] for column in range(3)]
    return jnp.stack(_combine(transform, columns), axis=-4)


def apply_tiles(x: Array, weights: Array) -> Array:
    """Convolve x [B, H, W, C] with weights of `prepare_tiles`; returns [B, H, W, F]."""
    batch, height, width, _ = x.shape
    points, filters = weights.shape[0], weights.shape[-1]
    outputs = points - 2
    inverse, _, _ = minimal_filter(outputs)
    products = lax.dot_general(
        _tiles_at_points(x, outputs),
        weights.reshape(points * points, -1, filters),
        (((2,), (1,)), ((0,), (0,))),
    )
    tiles = _tiles(height, outputs), _tiles(width, outputs)
    at = products.reshape(points, points, batch, *tiles, filters)
    columns = jnp.stack(_combine(inverse, list(at)), axis=4)
    y = jnp.stack(_combine(inverse, list(columns)), axis=2)
    return y.reshape(batch, tiles[0] * outputs, tiles[1] * outputs, filters)[:, :height, :width]


def gradient_tiles(x: Array, gradient: Array) -> Array:
    """Return the gradient of the weights of `prepare_tiles` from x [B, H, W, C] and the gradient of
    the output [B, H, W, F]."""
    outputs = tile_width(gradient.shape[2])
    inverse, _, _ = minimal_filter(outputs)
    transposed = tuple(zip(*inverse, strict=True))
    # The smaller factor first: XLA copies the one that it transposes.
    products = lax.dot_general(
        _transform(transposed, gradient, outputs),
        _tiles_at_points(x, outputs),
        (((1,), (1,)), ((0,), (0,))),
    ).swapaxes(1, 2)
    return products.reshape(outputs + 2, outputs + 2, *products.shape[1:])


def _tiles_at_points(x: Array, outputs: int) -> Array:
    """Return [n n, B T, C]: the inputs of the T tiles of a board at each pair of interpolation
    points."""
    _, _, forward = minimal_filter(outputs)
    return _transform(forward, x, outputs, border=1)


def _tiles(size: int, outputs: int) -> int:
    """Return the number of tiles along `size` points."""
    return -(-size // outputs)


def _transform(matrix: Matrix, x: Array, outputs: int, border: int = 0) -> Array:
    """Return [n n, B T, C]: windows of k x k points of x [B, H, W, C], one for each of T tiles,
    multiplied by the matrix [n, k] along the columns and then along the rows.

    A tile has `outputs` points, and its window begins `border` points before its first one. Points
    outside the board are zero.

    The second product takes the n results of the first one as one array: with an array for each
    the program has up to twice as many operations, compiles longer and is slower
    (docs/speed-changes.md). The barriers keep XLA from computing the first product again for every
    use of it.
    """
    columns = jnp.stack(_combine(matrix, _windows(matrix, x, 1, outputs, border)))
    columns = lax.optimization_barrier(columns)
    both = jnp.stack(_combine(matrix, _windows(matrix, columns, 3, outputs, border)))
    return lax.optimization_barrier(both.reshape(len(matrix) ** 2, -1, x.shape[-1]))


def _windows(matrix: Matrix, x: Array, axis: int, outputs: int, border: int) -> list[Array]:
    """Return the k points of the windows of all tiles along an axis, each [..., T, ...]."""
    size, points = x.shape[axis], len(matrix[0])
    last = (_tiles(size, outputs) - 1) * outputs
    pads = [(0, 0)] * x.ndim
    pads[axis] = (border, last + points - border - size)
    padded = jnp.pad(x, pads)
    return [
        lax.slice_in_dim(padded, start, start + last + 1, outputs, axis) for start in range(points)
    ]
