"""Small Go boards with known values: a search that knows only the rules finds who wins."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from azero.games.table import make
from azero.search.leaf import uniform_leaf
from azero.search.settings import PuctConfig


@pytest.mark.parametrize(
    ("size", "value", "openings", "make_leaf"),
    [
        ((1, 3), 3.0, {1}, uniform_leaf),  # the centre takes everything, the edges lose by 3
        ((2, 2), 1.0, {0, 1, 2, 3}, uniform_leaf),  # any point, decided by superko
    ],
)
def test_komi_around_the_value_decides_the_game(
    size: tuple[int, int], value: float, openings: set[int], make_leaf: object
) -> None:
    """With half a point less than the known value as komi Black wins, with half a point more White
    does."""
    for komi, sign in ((value - 0.5, 1.0), (value + 0.5, -1.0)):
        game = make("go", size=size, komi=komi, max_moves=24)
        search = PuctConfig(num_simulations=1500, dirichlet_fraction=0.0, c_puct=1.0).build(
            game, make_leaf(game)
        )  # type: ignore[operator]
        out = jax.jit(search)({}, jax.random.key(0), jax.tree.map(lambda x: x[None], game.init()))
        assert np.sign(float(out.best_child_value[0])) == sign
        if sign > 0:
            assert int(out.action[0]) in openings
