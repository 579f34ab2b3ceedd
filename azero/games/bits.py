"""Sets of points of a board as bits.

Two forms of a set of points on an H x W board (W <= 31):
    words  uint32[K, ...], K = ceil(H*W / 32): point i is bit i % 32 of word i // 32. Small: this is
           what a state stores.
    rows   uint32[H, ..., B]: column c of row r is bit c of rows[r]; bits from W on are zero. The
           batch is last, so that a step between columns is a shift by one bit and one between rows
           an offset of whole vectors: no gather, no scatter.

The optimization barriers keep concatenations from being fused with the arithmetic around them: on a
CPU XLA does not vectorise a fused one, and copies a separate one block by block.
"""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

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
        rows.append(bits & jnp.uint32(full_row(width)))
    return _join(rows)


def words_from_rows(rows: Array, shape: tuple[int, int]) -> Array:
    """Return words uint32[K, ...] of rows uint32[H, ...]."""
    height, width = shape
    words = [jnp.zeros(rows.shape[1:], jnp.uint32) for _ in range(num_words(height * width))]
    for row in range(height):
        word, offset = divmod(row * width, 32)
        words[word] = words[word] | (rows[row] << offset)
        if offset + width > 32:
            words[word + 1] = words[word + 1] | (rows[row] >> (32 - offset))
    return _join(words)


def _join(arrays: list[Array]) -> Array:
    return jax.lax.optimization_barrier(jnp.stack(arrays))


def batch_first(words: Array) -> Array:
    """Return uint32[B, N] of words uint32[N, B], N at least 16, transposed once.

    XLA on a CPU fuses a transposition into its uses, which then read single words from all over the
    batch, except into a concatenation of more than eight arrays: so it is made in sixteen parts.
    """
    cuts = [len(words) * part // 16 for part in range(17)]
    parts = [words[start:end].T for start, end in itertools.pairwise(cuts)]
    return jax.lax.optimization_barrier(jnp.concatenate(parts, axis=1))


def full_row(width: int) -> int:
    """Return the row word with all columns set."""
    return (1 << width) - 1


def board_rows(shape: tuple[int, int]) -> Array:
    """Return rows uint32[H, 1] of all points."""
    return jnp.full((shape[0], 1), full_row(shape[1]), jnp.uint32)


def unpack(words: Array, num_points: int) -> Array:
    """Return bool[..., num_points] of words uint32[..., K]."""
    bits = (
        words[..., None] >> jnp.arange(32, dtype=jnp.uint32).reshape((1,) * words.ndim + (32,))
    ) & 1
    return bits.reshape(*words.shape[:-1], -1)[..., :num_points] != 0


def pack(points: Array) -> Array:
    """Return words uint32[..., K] of bool[..., num_points]."""
    length = num_words(points.shape[-1]) * 32
    padded = jnp.pad(points, [(0, 0)] * (points.ndim - 1) + [(0, length - points.shape[-1])])
    bits = padded.reshape(*points.shape[:-1], -1, 32).astype(jnp.uint32) << jnp.arange(
        32, dtype=jnp.uint32
    ).reshape((1,) * points.ndim + (32,))
    return bits.sum(axis=-1, dtype=jnp.uint32)


def pack_host(points: np.ndarray) -> np.ndarray:
    """Return words uint32[K] of bool[num_points], on the host."""
    padded = np.zeros(num_words(points.size) * 32, bool)
    padded[: points.size] = points.reshape(-1)
    return np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32)


def unpack_host(words: np.ndarray, num_points: int) -> np.ndarray:
    """Return bool[..., num_points] of words uint32[..., K], on the host."""
    octets = np.ascontiguousarray(words, "<u4").view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=num_points, bitorder="little").view(bool)


def point_rows(points: Array, shape: tuple[int, int]) -> Array:
    """Return rows uint32[H, B] with one bit each for points int32[B]; none where the point is not
    on the board (a pass)."""
    height, width = shape
    bit = jnp.uint32(1) << (points % width).astype(jnp.uint32)
    rows = jnp.arange(height, dtype=jnp.int32).reshape(height, 1)
    return where(rows == (points // width)[None], jnp.broadcast_to(bit[None], (height, *bit.shape)))


def where(condition: Array, rows: Array) -> Array:
    """Return the set where `condition` bool (of the same rank) holds, else the empty set."""
    return jnp.where(condition, rows, jnp.uint32(0))


def vertical_neighbours(rows: Array) -> tuple[Array, Array]:
    """Return two sets: the points below a point of the set, and those above one."""
    padded = jax.lax.optimization_barrier(
        jax.lax.pad(rows, jnp.uint32(0), [(1, 1, 0)] + [(0, 0, 0)] * (rows.ndim - 1))
    )
    return padded[:-2], padded[2:]


def neighbours_by_side(rows: Array) -> list[Array]:
    """Return four sets: the points whose neighbour above, below, to the left, to the right is in
    the set. Bit W may be set; mask it."""
    return [*vertical_neighbours(rows), rows << 1, rows >> 1]


def neighbours(rows: Array) -> Array:
    """Return the points next to a point of the set. Bit W may be set; mask it."""
    return functools.reduce(jnp.bitwise_or, neighbours_by_side(rows))


def is_empty(rows: Array) -> Array:
    """Return bool[..., B]: there is no point in the set."""
    return functools.reduce(jnp.bitwise_or, list(rows)) == 0


def union(rows: Array) -> Array:
    """Return the union uint32[H, B] of P sets uint32[H, P, B]."""
    return functools.reduce(jnp.bitwise_or, [rows[:, index] for index in range(rows.shape[1])])


@functools.partial(jax.jit, inline=True)
def flood(seeds: Array, mask: Array) -> Array:
    """Return every point of `mask` that is connected to a seed within `mask` (flood fill). Seeds
    are in `mask`; both are rows uint32[H, ..., B].

    A sweep goes down and up the board. On each row it carries the set along runs of the mask:
    upwards through a whole run by the carry of an addition, downwards by up to three columns with
    two shifts. The loop ends after a sweep in which no position of the batch grew, usually the
    third or fourth.

    (`jit` so that a shape is traced once: tracing every flood of the rules again took a quarter of
    their time to trace. The program is the same.)
    """
    masks = list(mask)
    pairs = [row & (row >> 1) for row in masks]

    def fill(row: Array, index: int) -> Array:
        row = (masks[index] & ~(masks[index] + row)) | row
        row = row | (masks[index] & (row >> 1))
        return row | (pairs[index] & (row >> 2))

    def sweep(carry: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
        before, rows = carry[0], list(carry[0])
        rows[0] = fill(rows[0], 0)
        for index in range(1, len(rows)):
            rows[index] = fill(rows[index] | (rows[index - 1] & masks[index]), index)
        for index in range(len(rows) - 2, -1, -1):
            rows[index] = fill(rows[index] | (rows[index + 1] & masks[index]), index)
        changed = [new ^ old for new, old in zip(rows, before, strict=True)]
        return rows, (functools.reduce(jnp.bitwise_or, changed) != 0).any()

    return _join(
        jax.lax.while_loop(lambda carry: carry[1], sweep, (list(seeds), (seeds != 0).any()))[0]
    )


def first_point(rows: Array, shape: tuple[int, int]) -> Array:
    """Return the point int32[B] of sets uint32[H, B] of one point; 0 of an empty one."""
    row = jnp.arange(shape[0], dtype=jnp.int32)[:, None]
    column = jnp.bitwise_count(rows - 1).astype(jnp.int32)  # the bits below the lowest
    return jnp.where(rows != 0, row * shape[1] + column, 0).sum(axis=0, dtype=jnp.int32)


def counts_one(rows: Array) -> Array:
    """Return bool[..., B]: the set has exactly one point."""
    seen, twice = rows[0], jnp.zeros_like(rows[0])
    for row in list(rows)[1:]:
        twice = twice | (seen & row)
        seen = seen | row
    twice = twice | (seen & (seen - 1))
    return (seen != 0) & (twice == 0)


def lowest(rows: Array) -> Array:
    """Return the first point, row by row, of each set uint32[H, B]; nothing of an empty set."""
    found, earlier = [], jnp.zeros_like(rows[0])
    for row in list(rows):
        found.append(jnp.where(earlier == 0, row & -row, jnp.uint32(0)))
        earlier = earlier | row
    return _join(found)


def count_points(rows: Array) -> Array:
    """Return int32[..., B], how many points each set uint32[H, ..., B] has."""
    return jnp.bitwise_count(rows).sum(axis=0, dtype=jnp.int32)


def number_rows(numbers: Array, rows: Array, num_bits: int) -> list[Array]:
    """Return binary digits, the lowest first, of a number at every point: `numbers` int32[B] at the
    points of rows uint32[H, B], 0 elsewhere."""
    return [where((((numbers >> bit) & 1) != 0)[None], rows) for bit in range(num_bits)]


def add_point(digits: list[Array], rows: Array) -> list[Array]:
    """Return the digits of the numbers at every point, increased by one at the points of rows; the
    largest number wraps to 0."""
    added = []
    for digit in digits:
        added.append(digit ^ rows)
        rows = digit & rows
    return added


def points_with(digits: list[Array], number: int, points: Array) -> Array:
    """Return those of `points` whose number is `number`."""
    for bit, digit in enumerate(digits):
        points = points & (digit if number >> bit & 1 else ~digit)
    return points


def finish_hash(code: Any) -> Any:
    """Return uint32 of uint32, numpy's or JAX's, in which every bit depends on all: the finaliser
    of MurmurHash3 (Appleby, public domain)."""
    code = (code ^ (code >> 16)) * np.uint32(0x85EBCA6B)
    code = (code ^ (code >> 13)) * np.uint32(0xC2B2AE35)
    return code ^ (code >> 16)


def hash_words(code: Any, words: Iterable[Any], first: int, second: int) -> Any:
    """Return a hash uint32 of words uint32, numpy's or JAX's: a multiply-and-rotate chain from
    `code` on, with two factors (after MurmurHash3)."""
    for word in words:
        mixed = _rotate(word * np.uint32(first), 15) * np.uint32(second)
        code = _rotate(code ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return finish_hash(code)


def _rotate(word: Any, amount: int) -> Any:
    return (word << amount) | (word >> (32 - amount))
