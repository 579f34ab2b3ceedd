"""3x3 convolutions by minimal filtering over square tiles (Winograd; Lavin and Gray 2015).

The rounding error of the weight gradients is 7 to 17 times that of a plain float32 convolution:
2e-6 to 4e-6 of their size on boards of 5x5 to 19x19.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

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


MATRIX_TILES = 2
"""On boards of at most so many tiles along each side `infer_tiles` transforms by matrix products
(docs/speed.md)."""


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
    rows = [jnp.stack(_combine(inverse, list(column)), axis=2) for column in at]
    y = jnp.stack(_combine(inverse, rows), axis=4)
    return y.reshape(batch, tiles[0] * outputs, tiles[1] * outputs, filters)[:, :height, :width]


def infer_tiles(x: Array, weights: Array) -> Array:
    """Return `apply_tiles(x, weights)`, on small boards with transforms by matrix products over the
    whole board.

    Self-play, with a core for each device, is faster so. Training is not: XLA does not divide these
    products over the threads of a device.
    """
    (batch, height, width, _), (points, *_, filters) = x.shape, weights.shape
    outputs = points - 2
    tall, wide = _tiles(height, outputs), _tiles(width, outputs)
    if max(tall, wide) > MATRIX_TILES:
        return apply_tiles(x, weights)
    inverse, _, forward = minimal_filter(outputs)
    at = _board_to_points(_board_matrices(forward, (height, width), outputs, -1), x)
    products = lax.dot_general(
        at, weights.reshape(points * points, -1, filters), (((2,), (1,)), ((0,), (0,)))
    )
    transposed = tuple(zip(*inverse, strict=True))
    return _points_to_board(
        _board_matrices(transposed, (height, width), outputs, 0),
        products.reshape(points, points, wide, tall, batch, filters),
    )


def gradient_tiles(x: Array, gradient: Array) -> Array:
    """Return the gradient of the weights of `prepare_tiles` from x [B, H, W, C] and the gradient of
    the output [B, H, W, F]."""
    _, height, width, _ = gradient.shape
    outputs = tile_width(width)
    inverse, _, _ = minimal_filter(outputs)
    tall, wide = _tiles(height, outputs), _tiles(width, outputs)
    pads = (0, tall * outputs - height), (0, wide * outputs - width)
    transposed = tuple(zip(*inverse, strict=True))
    spread = _transform(transposed, jnp.pad(gradient, ((0, 0), *pads, (0, 0))), outputs)
    # The smaller factor first: XLA copies the one that it transposes.
    products = lax.dot_general(
        spread, _tiles_at_points(x, outputs), (((1,), (1,)), ((0,), (0,)))
    ).swapaxes(1, 2)
    return products.reshape(outputs + 2, outputs + 2, *products.shape[1:])


def _tiles_at_points(x: Array, outputs: int) -> Array:
    """Return [n n, B T, C]: the inputs of the T tiles of a board at each pair of interpolation
    points."""
    _, height, width, _ = x.shape
    _, _, forward = minimal_filter(outputs)
    pads = (
        (1, _tiles(height, outputs) * outputs + 1 - height),
        (1, _tiles(width, outputs) * outputs + 1 - width),
    )
    return _transform(forward, jnp.pad(x, ((0, 0), *pads, (0, 0))), outputs)


def _tiles(size: int, outputs: int) -> int:
    """Return the number of tiles along `size` points."""
    return -(-size // outputs)


def _transform(matrix: Matrix, padded: Array, outputs: int) -> Array:
    """Return [n n, B T, C]: windows of k x k points of `padded`, `outputs` apart, multiplied by
    the matrix [n, k] along the rows and then along the columns.

    The barriers keep XLA from computing the first product again for every use of it.
    """
    points = len(matrix[0])
    tall, wide = ((size - points) // outputs + 1 for size in padded.shape[1:3])

    def every(count: int, first: int) -> slice:
        return slice(first, first + (count - 1) * outputs + 1, outputs)

    columns = lax.optimization_barrier(
        _combine(matrix, [padded[:, :, every(wide, start)] for start in range(points)])
    )
    transformed = [
        at
        for column in columns
        for at in _combine(matrix, [column[:, every(tall, start)] for start in range(points)])
    ]
    stacked = jnp.stack(transformed)
    return lax.optimization_barrier(stacked.reshape(len(transformed), -1, padded.shape[-1]))


def _board_matrices(
    matrix: Matrix, board_shape: Sequence[int], outputs: int, start: int
) -> list[NDArray[np.float32]]:
    """Return float32[n, T, H] and float32[n, S, W]: the matrix [n, k] at windows of k points, one
    for each tile along the columns and along the rows.

    A tile has `outputs` points, and its window begins `start` points after its first one. Points
    outside the board are left out.
    """
    matrices = []
    for size in board_shape:
        board = np.zeros((len(matrix), _tiles(size, outputs), size), np.float32)
        for tile in range(board.shape[1]):
            for column, entries in enumerate(zip(*matrix, strict=True)):
                point = tile * outputs + start + column
                if 0 <= point < size:
                    board[:, tile, point] = entries
        matrices.append(board)
    return matrices


def _board_to_points(matrices: list[NDArray[np.float32]], x: Array) -> Array:
    """Return [n n, S T B, C]: x [B, H, W, C] times the matrices [n, T, H] and [n, S, W]."""
    tall, wide = matrices
    batch, height, width, channels = x.shape
    points = len(wide)
    by_row = jnp.dot(wide.reshape(-1, width), x.transpose(2, 1, 0, 3).reshape(width, -1))
    by_both = _dot_each(tall.reshape(-1, height), by_row.reshape(-1, height, batch * channels))
    at = by_both.reshape(points, wide.shape[1], points, tall.shape[1], batch, channels)
    return at.swapaxes(1, 2).reshape(points * points, -1, channels)


def _points_to_board(matrices: list[NDArray[np.float32]], at: Array) -> Array:
    """Return [B, H, W, F]: `at` [n, n, S, T, B, F] times the transposes of the matrices [n, T, H]
    and [n, S, W]."""
    tall, wide = matrices
    points, _, wide_tiles, tall_tiles, batch, filters = at.shape
    height, width = tall.shape[-1], wide.shape[-1]
    by_both = at.swapaxes(1, 2).reshape(points * wide_tiles, points * tall_tiles, -1)
    by_row = _dot_each(tall.reshape(-1, height).T, by_both).reshape(points * wide_tiles, -1)
    y = jnp.dot(wide.reshape(-1, width).T, by_row)
    return y.reshape(width, height, batch, filters).transpose(2, 1, 0, 3)


def _dot_each(matrix: NDArray[np.float32], x: Array) -> Array:
    """Return the matrix [M, K] times each of x [R, K, N]."""
    matrices = jnp.broadcast_to(matrix, (len(x), *matrix.shape))
    return lax.dot_general(matrices, x, (((2,), (1,)), ((0,), (0,))))
