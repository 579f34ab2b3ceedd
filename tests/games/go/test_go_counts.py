"""Exact numbers: legal positions (OEIS A094777 and the 1xn, 2xn rows), numbers of games, and the
values of solved boards."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from solver import MoveTable, Solver, count_games, move_table

from azero.games import bits
from azero.games.go.rules import Go

LEGAL_POSITIONS = {
    (1, 1): 1,
    (1, 2): 5,
    (1, 3): 15,
    (1, 4): 41,
    (1, 5): 113,
    (1, 6): 313,
    (1, 7): 867,
    (1, 8): 2401,
    (1, 9): 6649,
    (2, 2): 57,
    (2, 3): 489,
    (2, 4): 4125,
    (2, 5): 35117,
    (3, 3): 12675,
    (3, 4): 321689,
}
# The number of games, Tromp's convention: either colour at any time, no position twice, passes not
# counted.
GAMES = {(1, 1): 1, (1, 2): 9, (1, 3): 907}
# The value for Black, who begins, with best play under positional superko and area scoring.
VALUES = {(1, 1): 0, (1, 2): 0, (1, 3): 3, (1, 4): 4, (1, 5): 0, (2, 2): 1, (2, 3): 0, (3, 3): 9}


@functools.cache
def table_of(shape: tuple[int, int]) -> MoveTable:
    return move_table(Go(size=shape, komi=0.0))


@pytest.mark.parametrize("shape", LEGAL_POSITIONS, ids=str)
def test_every_board_with_liberties_is_counted(shape: tuple[int, int]) -> None:
    """Colour the board in every way; a board is legal if a flood from the liberties reaches every
    stone."""
    num_points = shape[0] * shape[1]
    colourings = np.arange(3**num_points)
    colours = (colourings[None] // 3 ** np.arange(num_points)[:, None]) % 3
    rows = [
        (
            (colours == colour).reshape(*shape, -1)
            << np.arange(shape[1], dtype=np.uint32)[None, :, None]
        ).sum(axis=1, dtype=np.uint32)
        for colour in range(3)
    ]

    @jax.jit
    def num_legal(empty: jax.Array, black: jax.Array, white: jax.Array) -> jax.Array:
        near = bits.neighbours(empty)
        lives = [bits.flood(near & stones, stones) == stones for stones in (black, white)]
        return (lives[0] & lives[1]).all(axis=0).sum()

    assert int(num_legal(*map(jnp.asarray, rows))) == LEGAL_POSITIONS[shape]


@pytest.mark.parametrize("shape", VALUES, ids=str)
def test_the_rules_reach_every_legal_position(shape: tuple[int, int]) -> None:
    assert len(table_of(shape).score) == LEGAL_POSITIONS[shape]


@pytest.mark.parametrize("shape", GAMES, ids=str)
def test_number_of_games(shape: tuple[int, int]) -> None:
    assert count_games(table_of(shape)) == GAMES[shape]


@pytest.mark.parametrize("shape", VALUES, ids=str)
def test_value_of_small_boards(shape: tuple[int, int]) -> None:
    assert Solver(table_of(shape)).value() == VALUES[shape]
