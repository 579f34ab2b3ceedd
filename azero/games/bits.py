"""Boards as bits.

Two forms of a set of points on an H x W board (W <= 31):
    words   uint32[K], K = ceil(H*W / 32): point i is bit i % 32 of word i // 32. Small: this is what a state stores.
    rows    uint32[H, ...]: column c of row r is bit c of word r; bits from W on are zero. Every function here takes any trailing axes, the batch last, so that a
            step between rows is an offset of whole vectors and one between columns a shift by one bit: no gather, no scatter.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from azero.types import Array


def num_words(num_points: int) -> int:
    """Return the uint32 words that hold `num_points` bits."""
    return -(-num_points // 32)


def rows_from_words(words: Array, shape: tuple[int, int]) -> Array:
    """Return rows uint32[H, ...] of words uint32[K, ...]."""
    height, width = shape
    rows = []
    for row in range(height):
        word, offset = divmod(row * width, 32)
        bits = words[word] >> offset
        if offset + width > 32:
            bits = bits | (words[word + 1] << (32 - offset))
        rows.append(bits)
    return jnp.stack(rows) & jnp.uint32(full_row(width))


def words_from_rows(rows: Array, shape: tuple[int, int]) -> Array:
    """Return words uint32[K, ...] of rows uint32[H, ...]."""
    height, width = shape
    words = [jnp.zeros(rows.shape[1:], jnp.uint32) for _ in range(num_words(height * width))]
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


def point_rows(points: Array, shape: tuple[int, int]) -> Array:
    """Return rows uint32[H, B] with one bit each for points int32[B]; none where the point is not on the board (a pass)."""
    height, width = shape
    bit = jnp.uint32(1) << (points % width).astype(jnp.uint32)
    rows = jnp.arange(height, dtype=jnp.int32).reshape(height, 1)
    return jnp.where(rows == (points // width)[None], bit[None], jnp.uint32(0))


def from_above(rows: Array) -> Array:
    """Return the rows moved one down: what each point sees above it."""
    return jnp.concatenate([jnp.zeros_like(rows[:1]), rows[:-1]])


def from_below(rows: Array) -> Array:
    """Return the rows moved one up: what each point sees below it."""
    return jnp.concatenate([rows[1:], jnp.zeros_like(rows[:1])])


def neighbours(rows: Array) -> Array:
    """Return the points next to a point of the set. Bit W may be set; mask it."""
    return from_above(rows) | from_below(rows) | (rows << 1) | (rows >> 1)


def flood(seeds: Array, mask: Array) -> Array:
    """Return every point of `mask` that is connected, inside `mask`, to a seed. Seeds lie in `mask`. Both are rows uint32[H, ...]; the loop ends when no lane grows."""

    def grow(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        filled, _ = carry
        grown = filled
        for _ in range(4):
            grown = grown | (neighbours(grown) & mask)
        return grown, (grown != filled).any()

    return jax.lax.while_loop(lambda carry: carry[1], grow, (seeds, (seeds != 0).any()))[0]


def counts_one(rows: Array) -> Array:
    """Return bool[...]: the set has exactly one point."""
    seen, twice = rows[0], jnp.zeros_like(rows[0])
    for row in range(1, rows.shape[0]):
        twice = twice | (seen & rows[row])
        seen = seen | rows[row]
    twice = twice | (seen & (seen - 1))
    return (seen != 0) & (twice == 0)


def union(rows: Array) -> Array:
    """Return the words uint32[...] that collect the columns of all rows: zero where the set is empty."""
    return jax.lax.reduce(rows, jnp.uint32(0), jax.lax.bitwise_or, (0,))


def any_of(rows: Array) -> Array:
    """Return the union uint32[H, B] of P sets uint32[H, P, B]."""
    return jax.lax.reduce(rows, jnp.uint32(0), jax.lax.bitwise_or, (1,))


def lowest(rows: Array) -> Array:
    """Return the first point, row by row, of each set uint32[H, B]; nothing of an empty set."""
    found, earlier = [], jnp.zeros_like(rows[0])
    for row in range(rows.shape[0]):
        found.append(jnp.where(earlier == 0, rows[row] & -rows[row], jnp.uint32(0)))
        earlier = earlier | rows[row]
    return jnp.stack(found)
