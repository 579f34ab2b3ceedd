"""Placing and capturing stones, liberties, repetition, territory. Natively batched, with the batch
axis last inside.

The state of a position keeps, in addition to the stones, the set of stones whose chain has exactly
one liberty ("atari"). With it the legal moves need no flood fill, and a move needs the chains of at
most five points: its own and its four neighbours.

Repetition is detected by sums of random codes. A position has one sum modulo 2^32 per colour; the
code of point p has p + 1 in its low ten bits, so that one subtraction per past position gives the
only point that could recreate it.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.games.batching import batch_native
from azero.mesh import platform_dependent
from azero.types import Array

MAX_POINTS = 1022
"""The low ten bits of a code hold point + 1; 0 and 1023 stay free."""
_LOW = 0x3FF
_FEW_POSITIONS = 16
"""Most past positions that a TPU compares with at once: those of a search's slim state are eight,
those of a game as many as it has moves."""


def mix(point: Any) -> Any:
    """Return the codes uint32 of points int32, jax or numpy: hashes with point + 1 in the low ten
    bits."""
    low = point.astype(np.uint32) + np.uint32(1)
    return (bits.finish_hash(low) & np.uint32(~_LOW & 0xFFFFFFFF)) | low


def codes(num_points: int) -> np.ndarray:
    """Return the codes uint32[num_points] of all points, on the host."""
    return np.asarray(mix(np.arange(num_points)))


def sum_codes(rows: Array, shape: tuple[int, int]) -> Array:
    """Return the sum of the codes uint32[..., B] of the points in rows uint32[H, ..., B]."""
    table = codes(shape[0] * shape[1]).reshape(*shape, *(1,) * (rows.ndim - 1))
    total = jnp.zeros_like(rows)
    for column in range(shape[1]):
        total = total + (-((rows >> column) & 1) & table[:, column])
    return total.sum(axis=0, dtype=jnp.uint32)


class Placed(NamedTuple):
    """A position after a stone, and how the two sums of codes changed."""

    board: Array
    """uint32[B, 2K]: Black's words, then White's"""
    atari: Array
    """uint32[B, K]"""
    change: Array
    """uint32[B, 2]: what to add to the sums of Black and White"""


class PlacedRows(NamedTuple):
    """A position after a stone, as rows uint32[H, B]."""

    own: Array
    other: Array
    atari: Array
    captured: Array
    """stones captured from the other side"""
    removed: Array | None
    """the stone's own chain where it was captured; None where suicide is illegal"""


@dataclass(frozen=True)
class Stones:
    """The mechanics on one board shape."""

    shape: tuple[int, int]
    suicide: bool = False

    @property
    def num_points(self) -> int:
        """Points of the board."""
        return self.shape[0] * self.shape[1]

    def place(self, board: Array, atari: Array, point: Array, to_play: Array) -> Placed:
        """Place a stone of `to_play` at `point` (int32[], legal; num_points places none) on board
        uint32[2K] with atari uint32[K]."""
        return Placed(*batch_native(_place, self)(board, atari, point, to_play))

    def legal(
        self,
        board: Array,
        atari: Array,
        now: Array,
        past: Array,
        checked: Array,
        to_play: Array,
        allows_suicide: Array | None = None,
    ) -> Array:
        """Return the words uint32[K] of the legal points.

        `now` uint32[2] and `past` uint32[2, T] are sums of codes, Black's and White's, of this
        board and of past ones; `checked` bool[T] says which of those must not be recreated.
        `allows_suicide` bool[] can forbid suicide under rules that have it; None allows it.
        """
        extra = () if allows_suicide is None else (allows_suicide,)
        return batch_native(_legal, self)(board, atari, now, past, checked, to_play, *extra)

    def territory(self, board: Array, wanted: Array) -> tuple[Array, Array]:
        """Return the words uint32[K] of the empty points that reach only Black's stones, and only
        White's; none where `wanted` bool[] is False (free)."""
        return batch_native(_territory, self)(board, wanted)


def colour_rows(
    shape: tuple[int, int], board: Array, is_swapped: Array | None = None
) -> tuple[Array, Array]:
    """Return Black's and White's rows uint32[H, ..., B] of boards uint32[B, ..., 2K], exchanged
    where `is_swapped` bool[B]."""
    black, white = jnp.split(board.T, 2)
    if is_swapped is not None:
        black, white = jnp.where(is_swapped, white, black), jnp.where(is_swapped, black, white)
    return bits.rows_from_words(black, shape), bits.rows_from_words(white, shape)


def _empty(stones: Stones, own: Array, other: Array) -> Array:
    return ~(own | other) & jnp.uint32(bits.full_row(stones.shape[1]))


def place_rows(
    own: Array, other: Array, atari: Array, stone: Array, board: Array, suicide: bool = False
) -> PlacedRows:
    """Place a legal `stone` of the side `own`; none where that set is empty. All are rows uint32[H,
    B], `board` uint32[H, 1] the points of the board."""
    own = own | stone
    # The stone's chain, then the chains of the other colour above, below, left and right of it.
    seeds = jnp.stack([stone, *(side & other for side in bits.neighbours_by_side(stone))], axis=1)
    chains = bits.flood(seeds, jnp.stack([own, other, other, other, other], axis=1))
    own_chain, other_chains = chains[:, 0], chains[:, 1:]
    is_captured = ~bits.is_empty(seeds[:, 1:] & atari[:, None])
    captured = bits.union(bits.where(is_captured[None], other_chains))
    other = other & ~captured

    liberties = bits.neighbours(chains) & (board & ~(own | other))[:, None]
    in_atari = bits.counts_one(liberties)
    own_in_atari, others_in_atari = in_atari[0], in_atari[1:] & ~is_captured
    freed_seeds, freed_mask, removed = (
        own & atari & ~own_chain & bits.neighbours(captured),
        own,
        None,
    )
    if suicide:
        is_dead = bits.is_empty(liberties[:, 0])
        removed = bits.where(is_dead[None], own_chain)
        freed_seeds = jnp.where(
            is_dead[None], other & atari & bits.neighbours(removed), freed_seeds
        )
        freed_mask = jnp.where(is_dead[None], other, own)
        # The other neighbours of a captured stone keep their liberties.
        others_in_atari = others_in_atari & ~is_dead[None]
        other_chains = bits.where(~is_dead[None, None], other_chains)
        own = own & ~removed
    freed = bits.flood(freed_seeds, freed_mask)
    atari = atari & ~(own_chain | bits.union(other_chains) | freed)
    atari = (
        atari
        | bits.where(own_in_atari[None], own_chain)
        | bits.union(bits.where(others_in_atari[None], other_chains))
    )
    return PlacedRows(own, other, atari, captured, removed)


def non_suicide_points(own: Array, other: Array, atari: Array, board: Array) -> Array:
    """Return rows of the empty points where a stone of `own` is not suicide.

    It touches an empty point or an own chain with a second liberty, or it captures a chain.
    """
    empty = board & ~(own | other)
    return empty & bits.neighbours(empty | (own & ~atari) | (other & atari))


def _place(
    stones: Stones, board: Array, atari_words: Array, point: Array, to_play: Array
) -> tuple[Array, Array, Array]:
    shape, is_white = stones.shape, to_play == 1
    own, other = colour_rows(stones.shape, board, is_white)
    atari = bits.rows_from_words(atari_words.T, shape)
    placed = place_rows(
        own, other, atari, bits.point_rows(point, shape), bits.board_rows(shape), stones.suicide
    )

    own_change = jnp.where(point < stones.num_points, mix(point), jnp.uint32(0))
    if placed.removed is not None:
        own_change = own_change - sum_codes(placed.removed, shape)
    change = jnp.stack([own_change, -sum_codes(placed.captured, shape)], axis=1)
    own_words, other_words, atari_words = (
        bits.words_from_rows(rows, shape).T for rows in (placed.own, placed.other, placed.atari)
    )
    swapped = is_white[:, None]
    board = jnp.concatenate(
        [jnp.where(swapped, other_words, own_words), jnp.where(swapped, own_words, other_words)],
        axis=1,
    )
    return board, atari_words, jnp.where(swapped, change[:, ::-1], change)


def _legal(
    stones: Stones,
    board: Array,
    atari_words: Array,
    now: Array,
    past: Array,
    checked: Array,
    to_play: Array,
    allows_suicide: Array | None = None,
) -> Array:
    shape, is_white = stones.shape, to_play == 1
    own, other = colour_rows(shape, board, is_white)
    atari = bits.rows_from_words(atari_words.T, shape)
    swapped = is_white[:, None]
    now, past = (
        jnp.where(swapped, now[:, ::-1], now),
        jnp.where(swapped[..., None], past[:, ::-1], past),
    )
    added, taken = past[:, 0] - now[:, :1], now[:, 1:] - past[:, 1]
    return bits.words_from_rows(
        legal_rows(stones, own, other, atari, added, taken, checked, allows_suicide), shape
    ).T


def legal_rows(
    stones: Stones,
    own: Array,
    other: Array,
    atari: Array,
    added: Array,
    taken: Array,
    checked: Array,
    allows_suicide: Array | None = None,
) -> Array:
    """Return rows uint32[H, B] of the legal points of the side `own`.

    `added`, `taken` uint32[B, T] are sums of codes: of `own` in a past position less now, and of
    `other` now less then; `checked` bool[B, T] says which past positions must not be recreated;
    `allows_suicide` bool[B] says in which positions suicide is legal, where the rules have it (None
    is all).
    """
    lives = non_suicide_points(own, other, atari, bits.board_rows(stones.shape))
    legal = lives & ~_recreating(stones, other, atari, added, taken, checked)
    if stones.suicide:
        points = _empty(stones, own, other) & ~lives
        points = points if allows_suicide is None else bits.where(allows_suicide[None], points)
        legal = legal | _suicides(stones, own, points, added, taken, checked)
    return legal


def _recreating(
    stones: Stones, other: Array, atari: Array, added: Array, taken: Array, checked: Array
) -> Array:
    """Return rows of the points where a stone, with its captures, recreates a checked past
    position: it adds one stone and removes a known sum from the other side.

    `added`, `taken` uint32[B, T]: own sum then minus now, the other's now minus then.
    """
    point = (added & _LOW).astype(jnp.int32) - 1
    point = jnp.where(checked & (added == mix(point)) & (point < stones.num_points), point, -1)
    if point.shape[1] > _FEW_POSITIONS:
        return _recreating_one_by_one(stones, other, atari, point, taken)
    return platform_dependent(
        other,
        atari,
        point,
        taken,
        tpu=partial(_recreating_at_once, stones),
        default=partial(_recreating_one_by_one, stones),
    )


def _recreating_at_once(
    stones: Stones, other: Array, atari: Array, point: Array, taken: Array
) -> Array:
    """Return the rows of `_recreating` for candidate points int32[B, T], -1 for none, from one
    flood: on a TPU a small instruction takes as long as one eight times its size."""
    points = jnp.where(point >= 0, point, stones.num_points).T
    stone = bits.point_rows(points.reshape(-1), stones.shape).reshape(-1, *points.shape)
    seeds = bits.neighbours(stone) & (other & atari)[:, None]
    captured = bits.flood(seeds, jnp.broadcast_to(other[:, None], stone.shape))
    is_repeat = sum_codes(captured, stones.shape) == taken.T
    return bits.union(bits.where(is_repeat[None], stone))


def _recreating_one_by_one(
    stones: Stones, other: Array, atari: Array, point: Array, taken: Array
) -> Array:
    """Return the rows of `_recreating` for candidate points int32[B, T], -1 for none, in a loop.

    It takes one of each position at a time, the highest first; usually there is at most one, where
    a single stone was captured a move ago.
    """

    def resolve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        this, found = carry
        stone = bits.point_rows(jnp.where(this >= 0, this, stones.num_points), stones.shape)
        captured = sum_codes(
            bits.flood(bits.neighbours(stone) & other & atari, other), stones.shape
        )
        is_repeat = ((point == this[:, None]) & (taken == captured[:, None])).any(axis=1)
        return jnp.where(point < this[:, None], point, -1).max(axis=1), found | bits.where(
            is_repeat[None], stone
        )

    return jax.lax.while_loop(
        lambda carry: (carry[0] >= 0).any(), resolve, (point.max(axis=1), jnp.zeros_like(other))
    )[1]


def _suicides(
    stones: Stones, own: Array, points: Array, added: Array, taken: Array, checked: Array
) -> Array:
    """Return rows of those suicidal `points` that do not recreate a checked past position.

    A single stone leaves the position unchanged: a repetition wherever the position itself is
    checked (positional superko, and simple ko, where it would be like a pass); under situational
    superko, wherever the other side has been to move in it.
    """
    several = points & bits.neighbours(own)
    is_unchanged = (checked & (added == 0) & (taken == 0)).any(axis=1)
    single = bits.where(~is_unchanged[None], points & ~several)
    suspects = checked & (taken == 0) & (added != 0)

    def resolve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        remaining, found = carry
        stone = bits.lowest(remaining)
        removed = sum_codes(bits.flood(bits.neighbours(stone) & own, own), stones.shape)
        is_repeat = (suspects & (added == -removed[:, None])).any(axis=1)
        return remaining & ~stone, found | bits.where(is_repeat[None], stone)

    remaining = bits.where(suspects.any(axis=1)[None], several)
    repeats = jax.lax.while_loop(
        lambda carry: (carry[0] != 0).any(), resolve, (remaining, jnp.zeros_like(own))
    )[1]
    return single | (several & ~repeats)


def _territory(stones: Stones, board: Array, wanted: Array) -> tuple[Array, Array]:
    black, white = colour_rows(stones.shape, board)
    empty = bits.where(wanted[None], _empty(stones, black, white))
    masks = jnp.stack([empty, empty], axis=1)
    reached = bits.flood(bits.neighbours(jnp.stack([black, white], axis=1)) & masks, masks)
    only = reached & ~reached[:, ::-1]
    return bits.words_from_rows(only[:, 0], stones.shape).T, bits.words_from_rows(
        only[:, 1], stones.shape
    ).T
