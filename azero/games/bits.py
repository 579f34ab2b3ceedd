"""Boards as bits.

Two forms of a set of points on an H x W board (W <= 31):
    words   uint32[K, ...], K = ceil(H*W / 32): point i is bit i % 32 of word i // 32. Small: this is what a state stores.
    rows    a list of H arrays uint32[..., B]: column c of row r is bit c of rows[r]; bits from W on are zero. A step between columns is a shift by one bit, and one
            between rows is the next array of the list, so that every operation is one plain vector operation over the batch: no gather, no scatter, and no
            concatenation, which XLA does not vectorise on a CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from azero.types import Array


Rows = list[Array]
"""One uint32 array per row of the board."""


def num_words(num_points: int) -> int:
    """Return the uint32 words that hold `num_points` bits."""
    return -(-num_points // 32)


def rows_from_words(words: Array, shape: tuple[int, int]) -> Rows:
    """Return the rows of words uint32[K, ...]."""
    height, width = shape
    rows = []
    for row in range(height):
        word, offset = divmod(row * width, 32)
        bits = words[word] >> offset
        if offset + width > 32:
            bits = bits | (words[word + 1] << (32 - offset))
        rows.append(bits & jnp.uint32(full_row(width)))
    return rows


def words_from_rows(rows: Rows, shape: tuple[int, int]) -> Array:
    """Return words uint32[K, ...] of rows."""
    height, width = shape
    words = [jnp.zeros_like(rows[0]) for _ in range(num_words(height * width))]
    for row in range(height):
        word, offset = divmod(row * width, 32)
        words[word] = words[word] | (rows[row] << offset)
        if offset + width > 32:
            words[word + 1] = words[word + 1] | (rows[row] >> (32 - offset))
    return jnp.stack(words)


def full_row(width: int) -> int:
    """Return the row word with all columns set."""
    return (1 << width) - 1


def unpack(words: Array, num_points: int) -> Array:
    """Return bool[..., num_points] of words uint32[..., K]."""
    bits = (words[..., None] >> jnp.arange(32, dtype=jnp.uint32).reshape((1,) * words.ndim + (32,))) & 1
    return bits.reshape(*words.shape[:-1], -1)[..., :num_points] != 0


def pack_host(points: np.ndarray) -> np.ndarray:
    """Return words uint32[K] of bool[num_points], on the host."""
    padded = np.zeros(num_words(points.size) * 32, np.uint64)
    padded[: points.size] = points.reshape(-1)
    return (padded.reshape(-1, 32) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)


def unpack_host(words: np.ndarray, num_points: int) -> np.ndarray:
    """Return bool[num_points] of words uint32[K], on the host."""
    return ((words[:, None] >> np.arange(32, dtype=np.uint32)) & 1).reshape(-1)[:num_points] != 0


def point_rows(points: Array, shape: tuple[int, int]) -> Rows:
    """Return rows uint32[B] with one bit each for points int32[B]; none where the point is not on the board (a pass)."""
    height, width = shape
    bit = jnp.uint32(1) << (points % width).astype(jnp.uint32)
    row_of_point = points // width
    return [jnp.where(row_of_point == row, bit, jnp.uint32(0)) for row in range(height)]


def each(function: Callable[..., Array], *sets: Rows) -> Rows:
    """Return the rows of `function` applied to the sets row by row."""
    return [function(*rows) for rows in zip(*sets, strict=True)]


def select(condition: Array, chosen: Rows, otherwise: Rows) -> Rows:
    """Return `chosen` where `condition` bool[..., B] holds, else `otherwise`."""
    return each(lambda a, b: jnp.where(condition, a, b), chosen, otherwise)


def where(condition: Array, rows: Rows) -> Rows:
    """Return the set where `condition` bool[..., B] holds, else the empty set."""
    return each(lambda row: jnp.where(condition, row, jnp.uint32(0)), rows)


def from_above(rows: Rows) -> Rows:
    """Return the rows moved one down: what each point sees above it."""
    return [jnp.zeros_like(rows[0]), *rows[:-1]]


def from_below(rows: Rows) -> Rows:
    """Return the rows moved one up: what each point sees below it."""
    return [*rows[1:], jnp.zeros_like(rows[0])]


def neighbours(rows: Rows) -> Rows:
    """Return the points next to a point of the set. Bit W may be set; mask it."""
    return each(lambda row, above, below: above | below | (row << 1) | (row >> 1), rows, from_above(rows), from_below(rows))


def union(rows: Rows) -> Array:
    """Return the word uint32[..., B] that collects the columns of all rows: zero where the set is empty."""
    return functools.reduce(lambda a, b: a | b, rows)


def flood(seeds: Rows, mask: Rows) -> Rows:
    """Return every point of `mask` that is connected, inside `mask`, to a seed. Seeds lie in `mask`.

    A sweep goes down and up the board. On each row it carries the set along runs of the mask: upwards through a whole run by the carry of an addition, downwards by
    up to three columns with two shifts. The loop ends after a sweep in which no position of the batch grew, mostly the third or fourth.
    """
    pairs = [row & (row >> 1) for row in mask]

    def fill(row: Array, index: int) -> Array:
        row = (mask[index] & ~(mask[index] + row)) | row
        row = row | (mask[index] & (row >> 1))
        return row | (pairs[index] & (row >> 2))

    def sweep(carry: tuple[Rows, Array]) -> tuple[Rows, Array]:
        before, rows = carry[0], list(carry[0])
        rows[0] = fill(rows[0], 0)
        for index in range(1, len(rows)):
            rows[index] = fill(rows[index] | (rows[index - 1] & mask[index]), index)
        for index in range(len(rows) - 2, -1, -1):
            rows[index] = fill(rows[index] | (rows[index + 1] & mask[index]), index)
        return rows, (union(each(lambda a, b: a ^ b, rows, before)) != 0).any()

    return jax.lax.while_loop(lambda carry: carry[1], sweep, (list(seeds), (union(seeds) != 0).any()))[0]


def counts_one(rows: Rows) -> Array:
    """Return bool[..., B]: the set has exactly one point."""
    seen, twice = rows[0], jnp.zeros_like(rows[0])
    for row in rows[1:]:
        twice = twice | (seen & row)
        seen = seen | row
    twice = twice | (seen & (seen - 1))
    return (seen != 0) & (twice == 0)


def any_of(rows: Rows) -> Rows:
    """Return the union, rows uint32[B], of P sets, rows uint32[P, B]."""
    return [functools.reduce(lambda a, b: a | b, list(row)) for row in rows]


def lowest(rows: Rows) -> Rows:
    """Return the first point, row by row, of each set; nothing of an empty set."""
    found, earlier = [], jnp.zeros_like(rows[0])
    for row in rows:
        found.append(jnp.where(earlier == 0, row & -row, jnp.uint32(0)))
        earlier = earlier | row
    return found
