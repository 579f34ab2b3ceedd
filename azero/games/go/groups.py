"""Chain features of AlphaGo's planes: liberties, and the effect of every move. Natively batched:
sets of points are rows uint32[H, B].

Small numbers at points are stored as binary digits, one set of points for each, so that counts are
added for all points at once.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games import bits
from azero.types import Array

LEVELS = 8
"""Planes per number (AG16 Extended Data Table 2)."""
_DIGITS = 3
_SUM_DIGITS = 4


class Chains(NamedTuple):
    """The chains of both sides, and the effect of a stone of the side to move that joins one of
    them and captures nothing."""

    levels: list[Array]
    """three digits: liberties less one, at most 7, at every stone"""
    atari: Array
    """stones of chains with one liberty"""
    threatened: Array
    """one stone of every own chain with one liberty"""
    hunted: Array
    """one stone of every chain of the other side with two liberties"""
    joined_once: Array
    """empty points next to an own chain"""
    joined_twice: Array
    """empty points next to several own chains"""
    kept: list[Array]
    """four digits, where exactly one own chain is joined: its other liberties, at most 8"""
    size: list[Array]
    """three digits, at the same points: its stones, at most 7"""
    fresh: list[Array]
    """four sets at the same points: where the neighbour above, below, to the left, to the right is
    empty and not a liberty of the joined chain"""


class ChainMoves(NamedTuple):
    """The effect of a stone of the side to move at every legal point: digits of numbers at
    points."""

    liberties: list[Array]
    """three digits: the liberties of its chain less one, at most 7"""
    captured: list[Array]
    """three digits: stones captured, at most 7"""
    own_size: list[Array]
    """three digits: stones of its chain less one, at most 7"""


def find_chains(own: Array, other: Array, board: Array) -> Chains:
    """Return the chains, found one of each side at a time; all rows uint32[H, B], `board` uint32[H,
    1]."""
    batch = own.shape[-1]
    sides = jnp.concatenate([own, other], axis=-1)
    empty = board & ~(own | other)
    both_empty = jnp.concatenate([empty, empty], axis=-1)
    none, both_none = jnp.zeros_like(own), jnp.zeros_like(sides)

    def one(
        carry: tuple[Array, list[Array], Array, Array, Chains],
    ) -> tuple[Array, list[Array], Array, Array, Chains]:
        remaining, levels, atari, few, found = carry
        stone = bits.lowest(remaining)
        chain = bits.flood(stone, sides)
        liberties = bits.neighbours(chain) & both_empty
        number = bits.count_points(liberties)
        levels = _set_digits(
            levels, bits.number_rows(jnp.minimum(number, LEVELS) - 1, chain, _DIGITS)
        )
        atari = atari | bits.where((number == 1)[None], chain)
        wanted = jnp.concatenate([number[:batch] == 1, number[batch:] == 2])
        few = few | bits.where(wanted[None], stone)
        mine, number = liberties[:, :batch], number[:batch]
        size = jnp.minimum(bits.count_points(chain[:, :batch]), LEVELS - 1)
        found = found._replace(
            joined_once=found.joined_once | mine,
            joined_twice=found.joined_twice | (found.joined_once & mine),
            kept=_set_digits(
                found.kept, bits.number_rows(jnp.minimum(number - 1, LEVELS), mine, _SUM_DIGITS)
            ),
            size=_set_digits(found.size, bits.number_rows(size, mine, _DIGITS)),
            fresh=_set_digits(
                found.fresh, [mine & side for side in bits.neighbours_by_side(empty & ~mine)]
            ),
        )
        return remaining & ~chain, levels, atari, few, found

    start = Chains(
        [], none, none, none, none, none, [none] * _SUM_DIGITS, [none] * _DIGITS, [none] * 4
    )
    _, levels, atari, few, found = jax.lax.while_loop(
        lambda carry: (carry[0] != 0).any(),
        one,
        (sides, [both_none] * _DIGITS, both_none, both_none, start),
    )
    return found._replace(
        levels=[digit[:, :batch] | digit[:, batch:] for digit in levels],
        atari=atari[:, :batch] | atari[:, batch:],
        threatened=few[:, :batch],
        hunted=few[:, batch:],
    )


def find_moves(own: Array, other: Array, chains: Chains, legal: Array, board: Array) -> ChainMoves:
    """Return the effect of a move at each of the `legal` points.

    Most stones are isolated or join one chain and capture nothing: their numbers are sums. The
    others are played, one per position at a time.
    """
    empty = board & ~(own | other)
    played = legal & (chains.joined_twice | bits.neighbours(other & chains.atari))
    summed = legal & ~played
    alone, joining = summed & ~chains.joined_once, summed & chains.joined_once
    total = [digit & joining for digit in chains.kept]
    for fresh, side in zip(chains.fresh, bits.neighbours_by_side(empty), strict=True):
        total = bits.add_point(total, (fresh & joining) | (side & alone))
    liberties = [jnp.zeros_like(own)] * _DIGITS
    for number in range(2, LEVELS):
        liberties = _set_digits(
            liberties, _constant_rows(number - 1, bits.points_with(total, number, summed))
        )
    many = functools.reduce(
        jnp.bitwise_or,
        [bits.points_with(total, number, summed) for number in range(LEVELS, 2**_SUM_DIGITS)],
    )
    liberties = _set_digits(liberties, _constant_rows(LEVELS - 1, many))
    start = ChainMoves(
        liberties, [jnp.zeros_like(own)] * _DIGITS, [digit & joining for digit in chains.size]
    )

    def one(carry: tuple[Array, ChainMoves]) -> tuple[Array, ChainMoves]:
        remaining, moves = carry
        stone = bits.lowest(remaining)
        seeds = jnp.stack([stone, bits.neighbours(stone) & other & chains.atari], axis=1)
        chain, taken = jnp.unstack(
            bits.flood(seeds, jnp.stack([own | stone, other], axis=1)), axis=1
        )
        number = bits.count_points(bits.neighbours(chain) & ((empty & ~stone) | taken))
        numbers = (
            jnp.clip(number, 1, LEVELS) - 1,
            jnp.minimum(bits.count_points(taken), LEVELS - 1),
            jnp.minimum(bits.count_points(chain), LEVELS) - 1,
        )
        moves = ChainMoves(
            *(
                _set_digits(digits, bits.number_rows(n, stone, _DIGITS))
                for digits, n in zip(moves, numbers, strict=True)
            )
        )
        return remaining & ~stone, moves

    return jax.lax.while_loop(lambda carry: (carry[0] != 0).any(), one, (played, start))[1]


def self_atari(moves: ChainMoves, legal: Array) -> Array:
    """Return the legal points where a stone's chain is left with one liberty."""
    return bits.points_with(moves.liberties, 0, legal)


def _set_digits(digits: list[Array], added: list[Array]) -> list[Array]:
    """Return the union of the digits of numbers at different points."""
    return [old | new for old, new in zip(digits, added, strict=True)]


def _constant_rows(number: int, rows: Array) -> list[Array]:
    return [rows if number >> bit & 1 else jnp.zeros_like(rows) for bit in range(_DIGITS)]
