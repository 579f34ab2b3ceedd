"""What stones do: placing and capturing, liberties, repetition, territory. Written for a batch of positions, the batch last while it computes.

The state of a position keeps, beside the stones, the set of stones whose chain has exactly one liberty ("atari"). With it the legal moves need no flood at all, and
a move needs the chains of at most five points: its own and its four neighbours'.

Repetition is found through sums of random codes. A position has one sum modulo 2^32 per colour; the code of point p carries p + 1 in its low ten bits, so that
one subtraction per past position tells the only point that could recreate it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.games.batching import batch_native
from azero.types import Array

MAX_POINTS = 1022
"""The low ten bits of a code hold point + 1; 0 and 1023 stay free."""
_LOW = 0x3FF


def mix(point: Array) -> Array:
    """Return the codes uint32 of points int32, by the finaliser of MurmurHash3 (Appleby, public domain), with point + 1 in the low ten bits."""
    low = point.astype(jnp.uint32) + 1
    code = low
    code = (code ^ (code >> 16)) * jnp.uint32(0x85EBCA6B)
    code = (code ^ (code >> 13)) * jnp.uint32(0xC2B2AE35)
    code = code ^ (code >> 16)
    return (code & ~jnp.uint32(_LOW)) | low


def codes(num_points: int) -> np.ndarray:
    """Return the table uint32[num_points] of `mix`, on the host."""
    low = np.arange(1, num_points + 1, dtype=np.uint32)
    code = low.copy()
    code = (code ^ (code >> 16)) * np.uint32(0x85EBCA6B)
    code = (code ^ (code >> 13)) * np.uint32(0xC2B2AE35)
    code = code ^ (code >> 16)
    return (code & ~np.uint32(_LOW)) | low


def sum_codes(rows: Array, shape: tuple[int, int]) -> Array:
    """Return the sum of the codes uint32[B] of the points in rows uint32[H, B]."""
    height, width = shape
    table = codes(height * width).reshape(height, width, 1)
    total = jnp.zeros(rows.shape, jnp.uint32)
    for column in range(width):
        total = total + (-((rows >> column) & 1) & jnp.asarray(table[:, column]))
    return total.sum(axis=0, dtype=jnp.uint32)


class Placed(NamedTuple):
    """A position after a stone, and how the two sums of codes changed."""

    board: Array
    """uint32[B, 2K]: Black's words, then White's"""
    atari: Array
    """uint32[B, K]"""
    change: Array
    """uint32[B, 2]: to add to the sums of Black and White"""


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
        """Place a stone of `to_play` at `point` (int32[], legal; num_points places none) on board uint32[2K] with atari uint32[K]."""
        return Placed(*batch_native(partial(_place, self))(board, atari, point, to_play))

    def legal(self, board: Array, atari: Array, sums: Array, checked: Array, to_play: Array) -> Array:
        """Return the words uint32[K] of the legal points.

        `sums` uint32[2, T] are the sums of past positions, newest (the current one) first; `checked` bool[T] says which must not be recreated.
        """
        return batch_native(partial(_legal, self))(board, atari, sums, checked, to_play)

    def territory(self, board: Array, wanted: Array) -> tuple[Array, Array]:
        """Return the words uint32[K] of the empty points that reach only Black's stones and only White's; none where `wanted` bool[] is False (that is free)."""
        return batch_native(partial(_territory, self))(board, wanted)


def _colours(stones: Stones, board: Array) -> tuple[Array, Array]:
    """Return Black's and White's rows uint32[H, B] of boards uint32[B, 2K]."""
    black, white = jnp.split(board.T, 2)
    return bits.rows_from_words(black, stones.shape), bits.rows_from_words(white, stones.shape)


def _full(stones: Stones) -> Array:
    return jnp.uint32(bits.full_row(stones.shape[1]))


def _place(stones: Stones, board: Array, atari_words: Array, point: Array, to_play: Array) -> tuple[Array, Array, Array]:
    shape = stones.shape
    is_white = (to_play == 1)[None]
    black, white = _colours(stones, board)
    own, other = jnp.where(is_white, white, black), jnp.where(is_white, black, white)
    atari = bits.rows_from_words(atari_words.T, shape)
    stone = bits.point_rows(point, shape)
    own = own | stone

    # The stone's chain, then the chains of the other colour above, below, left and right of it.
    seeds = jnp.stack([stone] + [seed & other for seed in (bits.from_above(stone), bits.from_below(stone), stone << 1, stone >> 1)], axis=1)
    chains = bits.flood(seeds, jnp.stack([own] + 4 * [other], axis=1))
    is_captured = bits.union(seeds & atari[:, None])[None] != 0
    captured = bits.any_of(jnp.where(is_captured, chains, jnp.uint32(0))[:, 1:])
    other = other & ~captured

    empty = ~(own | other) & _full(stones)
    liberties = bits.neighbours(chains) & empty[:, None]
    in_atari = bits.counts_one(liberties)[None] & ~is_captured
    freed_seeds, freed_mask = own & atari & ~chains[:, 0] & bits.neighbours(captured), own
    removed = jnp.zeros_like(own)
    if stones.suicide:
        is_dead = (bits.union(liberties[:, 0]) == 0)[None]
        removed = jnp.where(is_dead, chains[:, 0], jnp.uint32(0))
        freed_seeds = jnp.where(is_dead, other & atari & bits.neighbours(removed), freed_seeds)
        freed_mask = jnp.where(is_dead, other, own)
        in_atari = in_atari & ~is_dead[:, None]
        # The other chains beside a dead stone keep the liberties they had.
        chains = jnp.where(is_dead[:, None], chains * jnp.array([1, 0, 0, 0, 0], jnp.uint32).reshape(1, 5, 1), chains)
        own = own & ~removed
    freed = bits.flood(freed_seeds, freed_mask)
    touched = bits.any_of(chains) | freed | captured
    atari = (atari & ~touched) | bits.any_of(jnp.where(in_atari, chains, jnp.uint32(0)))

    own_change = mix(point) * (point < stones.num_points) if not stones.suicide else sum_codes(stone, shape) - sum_codes(removed, shape)
    other_change = -sum_codes(captured, shape)
    black, white = jnp.where(is_white, other, own), jnp.where(is_white, own, other)
    words = [bits.words_from_rows(rows, shape) for rows in (black, white, atari)]
    change = jnp.where(is_white, jnp.stack([other_change, own_change]), jnp.stack([own_change, other_change]))
    return jnp.concatenate(words[:2]).T, words[2].T, change.T


def _legal(stones: Stones, board: Array, atari_words: Array, sums: Array, checked: Array, to_play: Array) -> Array:
    shape = stones.shape
    is_white = to_play == 1
    black, white = _colours(stones, board)
    own, other = jnp.where(is_white[None], white, black), jnp.where(is_white[None], black, white)
    atari = bits.rows_from_words(atari_words.T, shape)
    empty = ~(own | other) & _full(stones)
    # A stone lives if it touches an empty point or an own chain with a second liberty, or if it takes another chain's last liberty.
    lives = empty & bits.neighbours(empty | (own & ~atari) | (other & atari))

    own_sums = jnp.where(is_white[:, None], sums[:, 1], sums[:, 0])
    other_sums = jnp.where(is_white[:, None], sums[:, 0], sums[:, 1])
    added = own_sums - own_sums[:, :1]
    taken = other_sums[:, :1] - other_sums
    legal = lives & ~_recreating(stones, other, atari, added, taken, checked)
    if stones.suicide:
        legal = legal | _suicides(stones, own, empty & ~lives, added, taken, checked)
    return bits.words_from_rows(legal, shape).T


def _recreating(stones: Stones, other: Array, atari: Array, added: Array, taken: Array, checked: Array) -> Array:
    """Return rows of the points whose stone, with what it captures, gives a checked past position: it adds one stone and takes a known sum from the other side.

    `added`, `taken` uint32[B, T]: own sum then minus now, the other's now minus then.
    """
    point = (added & _LOW).astype(jnp.int32) - 1
    pending = checked & (added == mix(point)) & (point >= 0) & (point < stones.num_points)

    def resolve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        pending, found = carry
        this = jnp.where(pending, point, -1).max(axis=1)
        stone = bits.point_rows(jnp.where(this >= 0, this, stones.num_points), stones.shape)
        captured = bits.flood(bits.neighbours(stone) & other & atari, other)
        same = pending & (point == this[:, None])
        is_repeat = (same & (taken == sum_codes(captured, stones.shape)[:, None])).any(axis=1)
        return pending & ~same, found | jnp.where(is_repeat[None], stone, jnp.uint32(0))

    return jax.lax.while_loop(lambda carry: carry[0].any(), resolve, (pending, jnp.zeros_like(other)))[1]


def _suicides(stones: Stones, own: Array, points: Array, added: Array, taken: Array, checked: Array) -> Array:
    """Return rows of those suicidal `points` that do not recreate a checked past position.

    A single stone leaves the position as it was: a repetition wherever index 0, the position itself, is checked (positional superko, and simple ko, where it would
    be a second pass); under situational superko, wherever the other side has been to move in it.
    """
    several = points & bits.neighbours(own)
    unchanged = (checked & (added == 0) & (taken == 0)).any(axis=1)
    single = jnp.where(unchanged[None], jnp.uint32(0), points & ~several)
    suspects = checked & (taken == 0) & (added != 0)

    def resolve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        remaining, found = carry
        stone = bits.lowest(remaining)
        removed = bits.flood(bits.neighbours(stone) & own, own)
        is_repeat = (suspects & (added == -sum_codes(removed, stones.shape)[:, None])).any(axis=1)
        return remaining & ~stone, found | jnp.where(is_repeat[None], stone, jnp.uint32(0))

    remaining = jnp.where(suspects.any(axis=1)[None], several, jnp.uint32(0))
    repeats = jax.lax.while_loop(lambda carry: (carry[0] != 0).any(), resolve, (remaining, jnp.zeros_like(own)))[1]
    return single | (several & ~repeats)


def _territory(stones: Stones, board: Array, wanted: Array) -> tuple[Array, Array]:
    black, white = _colours(stones, board)
    empty = ~(black | white) & _full(stones) & jnp.where(wanted[None], _full(stones), jnp.uint32(0))
    colours = jnp.stack([black, white], axis=1)
    masks = jnp.stack([empty, empty], axis=1)
    reached = bits.flood(bits.neighbours(colours) & masks, masks)
    only = reached & ~reached[:, ::-1]
    return bits.words_from_rows(only[:, 0], stones.shape).T, bits.words_from_rows(only[:, 1], stones.shape).T
