"""Inputs of the rollout and the tree policy of AlphaGo (2016) for every move: the groups of AG16
Extended Data Table 4 as one number per group and point.

    0  response          1 where the move is one of the 12 points around the previous move that a
                         response pattern describes
    1  save atari        1 where the move saves stones in atari
    2  neighbour         1 to 8 where the move is 8-connected to the previous one
    3  nakade            the shape around the move in the stones captured by the previous move, and
                         their number: 1 to 8192
    4  response pattern  a code of the 12 points around the previous move and of the move's place
                         among them
    5  pattern           a code of the 3x3 points around the move
    (only for the tree policy:)
    6  self-atari        1 where the move's chain is left with one liberty
    7  distance          Manhattan distance to the previous move, 1 to 17
    8  distance          the same to the move before it
    9  diamond           a code of the 12 points around the move
0 is none. A point of a pattern is empty, off the board, or a stone: own or the other side's, with
1, 2 or at least 3 liberties. Codes are 32-bit hashes, whose high bits index the policy's table. The
paper's tables hold the 69,338 and 32,207 most frequent patterns; a hash needs no list of them.
Where the paper only names a feature, the definition is ours: `saves` and `_nakade` below.

Natively batched, the batch last: sets of points are rows uint32[H, B], numbers at points uint32[H,
W, B]. Behind an optimization barrier an array is computed once; otherwise XLA on a CPU would fuse
it into the loops that read it, and compute it again in each.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.lax import optimization_barrier

from azero.games import bits
from azero.games.batching import batch_native
from azero.games.go.groups import Chains, find_chains, find_moves, self_atari
from azero.games.go.stones import colour_rows, non_suicide_points
from azero.types import Array

NUM_ROLLOUT = 6
NUM_TREE = 10
PLANE_COUNTS = (NUM_ROLLOUT, NUM_TREE)
PATTERN = 5
"""The 3x3 pattern's index among the numbers."""
_OFF_BOARD = 7
_MARGIN = 2
MOST_DISTANCE = 17
"""34 weights for two moves (AG16 Extended Data Table 4)."""
MOST_CAPTURED = 31
"""Counts 1 to 31 and 256 surroundings fit the 8192 nakade patterns of AG16 Extended Data Table
4."""

AROUND = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""The eight points of a 3x3 pattern, as (row, column) from its middle."""
DIAMOND = (*AROUND, (-2, 0), (2, 0), (0, -2), (0, 2))
"""The twelve points of a diamond."""


class Situation(NamedTuple):
    """The data from which the features are computed; rows uint32[H, B]."""

    own: Array
    """of the side to move"""
    other: Array
    one: Array
    """stones of chains with one liberty"""
    two: Array
    """stones of chains with two liberties"""
    last: Array
    """the previous move; none after a pass and at the start"""
    captured: Array
    """stones that it captured"""


def planes_from_frames(
    frames: Array, to_play: Array, shape: tuple[int, int], num_planes: int
) -> Array:
    """Return the numbers uint32[H, W, C] of a position, those of the rollout policy (C = 6) or of
    the tree policy (10). The number of the 3x3 pattern is 0 at stones, which are no moves.

    `frames` uint32[8, 2K] and `to_play` int32[] are as for the planes of `features`.
    """
    return batch_native(_planes, shape, num_planes)(frames, to_play)


def _planes(shape: tuple[int, int], num_planes: int, frames: Array, to_play: Array) -> Array:
    now, chains = situation(frames, to_play, shape)
    board = bits.board_rows(shape)
    if num_planes == NUM_ROLLOUT:
        numbers = rollout_features(now, shape)
    else:
        own, _ = colour_rows(shape, frames[:, 1:3], to_play == 1)
        legal = non_suicide_points(now.own, now.other, now.one, board)
        in_atari = self_atari(find_moves(now.own, now.other, chains, legal, board), legal)
        numbers = tree_features(now, _only(own[:, 0] & ~own[:, 1]), in_atari, shape)
    empty = board & ~(now.own | now.other)
    numbers[PATTERN] = jnp.where(unpack_rows(empty, shape[1]) != 0, numbers[PATTERN], 0)
    return jnp.stack(numbers).transpose(3, 1, 2, 0)


def situation(frames: Array, to_play: Array, shape: tuple[int, int]) -> tuple[Situation, Chains]:
    """Return the situations of positions, and their chains; frames uint32[B, T, 2K], newest first
    and at least two, to_play int32[B]."""
    own, other = colour_rows(shape, frames[:, :2], to_play == 1)
    (own, own_before), (other, other_before) = (jnp.unstack(side, axis=1) for side in (own, other))
    chains = find_chains(own, other, bits.board_rows(shape))
    two = bits.points_with(chains.levels, 1, own | other)
    last = _only(other & ~other_before)
    captured = bits.where(~bits.is_empty(last)[None], own_before & ~own)
    return Situation(own, other, chains.atari, two, last, captured), chains


def _only(rows: Array) -> Array:
    """Return sets of one point, else empty sets: the set-up before a game's first move is not a
    move."""
    return bits.where(bits.counts_one(rows)[None], rows)


class Near(NamedTuple):
    """The groups that are 0 except at the 12 points around the previous move; arrays [12, B]."""

    point: Array
    """int32: the point; H W where it is off the board, or there was no such move"""
    response: Array
    neighbour: Array
    response_pattern: Array


def rollout_features(now: Situation, shape: tuple[int, int]) -> list[Array]:
    """Return the six numbers uint32[H, W, B] of the rollout policy at every point."""
    cells = _cells(now, shape)
    near = _near(now.last, cells, shape)
    lane = jnp.arange(near.point.shape[1], dtype=jnp.int32)[None]

    def spread(numbers: Array) -> Array:
        flat = jnp.zeros((shape[0] * shape[1], lane.shape[1]), jnp.uint32)
        return flat.at[near.point, lane].set(numbers, mode="drop").reshape(*shape, -1)

    return [
        spread(near.response),
        unpack_rows(saves(now, shape), shape[1]),
        spread(near.neighbour),
        _nakade(now.captured, shape),
        spread(near.response_pattern),
        optimization_barrier(_finish(_code(cells, AROUND))),
    ]


def _near(last: Array, cells: Array, shape: tuple[int, int]) -> Near:
    height, width = shape
    row, column = jnp.divmod(bits.first_point(last, shape), width)
    rows, columns = (
        side[None] + np.array(DIAMOND, np.int32)[:, axis, None]
        for axis, side in enumerate((row, column))
    )
    is_inside = (
        (rows >= 0)
        & (rows < height)
        & (columns >= 0)
        & (columns < width)
        & ~bits.is_empty(last)[None]
    )
    place = (rows + _MARGIN) * (width + 2 * _MARGIN) + columns + _MARGIN
    seen = jnp.take_along_axis(cells.reshape(-1, cells.shape[-1]), place, axis=0)
    factors = np.array(FACTORS, np.uint32)[:, None]
    context = (seen * factors[: len(DIAMOND)]).sum(axis=0, dtype=jnp.uint32)
    index = jnp.broadcast_to(np.arange(1, len(DIAMOND) + 1, dtype=np.uint32)[:, None], seen.shape)
    return Near(
        point=jnp.where(is_inside, rows * width + columns, height * width),
        response=jnp.ones_like(index),
        neighbour=jnp.where(index <= len(AROUND), index, 0),
        response_pattern=_finish(context[None] + index * factors[-1:]),
    )


def tree_features(
    now: Situation, before_last: Array, self_atari: Array, shape: tuple[int, int]
) -> list[Array]:
    """Return the ten numbers uint32[H, W, B] of the tree policy; `before_last` is the move before
    the previous one, both further arguments rows uint32[H, B]."""
    distances = [_distance(move, shape) for move in (now.last, before_last)]
    return [
        *rollout_features(now, shape),
        unpack_rows(self_atari, shape[1]),
        *distances,
        _finish(_code(_cells(now, shape), DIAMOND) + jnp.uint32(1)),
    ]


def unpack_rows(rows: Array, width: int) -> Array:
    """Return 0 or 1, uint32[H, W, B], of rows uint32[H, B]."""
    return (rows[:, None] >> jnp.arange(width, dtype=jnp.uint32)[None, :, None]) & 1


def saves(now: Situation, shape: tuple[int, int]) -> Array:
    """Return rows of the moves that save own stones in atari (a close guess without reading).

    The move captures an adjacent chain in atari; or it is their last liberty and has two empty
    adjacent points, or one and an own chain of two liberties, or an own chain of three.
    """
    board = bits.board_rows(shape)
    empty = board & ~(now.own | now.other)
    threatened = now.own & now.one
    takers = bits.flood(bits.neighbours(threatened) & now.other & now.one, now.other)
    once = twice = jnp.zeros_like(empty)
    for side in bits.neighbours_by_side(empty):
        once, twice = once | side, twice | (once & side)
    safe = (
        twice
        | (once & bits.neighbours(now.own & now.two))
        | bits.neighbours(now.own & ~now.one & ~now.two)
        | bits.neighbours(takers)
    )
    return empty & ((bits.neighbours(threatened) & safe) | bits.neighbours(takers))


def _nakade(captured: Array, shape: tuple[int, int]) -> Array:
    """Return 1 + the eight points around (256) + 256 (stones taken - 1) at points of `captured`, a
    set of at least two; else 0."""
    number = bits.count_points(captured)
    captured = bits.where((number >= 2)[None], captured)
    above, below = bits.vertical_neighbours(captured)
    sides = (
        above << 1,
        above,
        above >> 1,
        captured << 1,
        captured >> 1,
        below << 1,
        below,
        below >> 1,
    )
    surroundings = sum(
        (unpack_rows(side, shape[1]) << index for index, side in enumerate(sides)),
        start=jnp.uint32(0),
    )
    size = (jnp.clip(number, 1, MOST_CAPTURED) - 1).astype(jnp.uint32)[None, None]
    return optimization_barrier(unpack_rows(captured, shape[1]) * (1 + surroundings + 256 * size))


def _distance(move: Array, shape: tuple[int, int]) -> Array:
    """Return the Manhattan distance of every point to `move`, 1 to 17; 0 where there was none, and
    at the move itself."""
    place = bits.first_point(move, shape)[None, None]
    row, column = jnp.divmod(place, shape[1])
    rows = abs(jnp.arange(shape[0], dtype=jnp.int32)[:, None, None] - row)
    columns = abs(jnp.arange(shape[1], dtype=jnp.int32)[None, :, None] - column)
    was_there = ~bits.is_empty(move)[None, None]
    return jnp.where(was_there, jnp.minimum(rows + columns, MOST_DISTANCE), 0).astype(jnp.uint32)


def _cells(now: Situation, shape: tuple[int, int]) -> Array:
    """Return uint32[H + 4, W + 4, B]: 0 empty, 1 to 3 own and 4 to 6 other stones by their
    liberties, 7 off the board."""
    more = ~now.one & ~now.two
    digits = (
        (now.own & ~now.two) | (now.other & now.two),
        (now.own & ~now.one) | (now.other & more),
        now.other,
    )
    cells = sum(
        (unpack_rows(digit, shape[1]) << index for index, digit in enumerate(digits)),
        start=jnp.uint32(0),
    )
    margin = (_MARGIN, _MARGIN, 0)
    return optimization_barrier(
        jnp.pad(
            optimization_barrier(cells),
            [margin[:2], margin[:2], (0, 0)],
            constant_values=_OFF_BOARD,
        )
    )


def _code(cells: Array, offsets: tuple[tuple[int, int], ...]) -> Array:
    """Return a hash uint32[H, W, B] of the cells at `offsets` around every point."""
    height, width = cells.shape[0] - 2 * _MARGIN, cells.shape[1] - 2 * _MARGIN
    total = jnp.zeros((height, width, cells.shape[2]), jnp.uint32)
    for (row, column), factor in zip(offsets, FACTORS, strict=False):
        total = total + cells[
            _MARGIN + row : _MARGIN + row + height, _MARGIN + column : _MARGIN + column + width
        ] * jnp.uint32(factor)
    return optimization_barrier(total)


def _finish(code: Array) -> Array:
    """Return a hash of a code, never 0."""
    return bits.finish_hash(code) | jnp.uint32(1)


FACTORS = tuple((0x9E3779B1 * (2 * index + 1) ** 5 & 0xFFFFFFFF) | 1 for index in range(13))
"""Odd factors that spread the cells of a pattern over 32 bits (ours)."""
