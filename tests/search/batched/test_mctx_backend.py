"""PUCT through mctx agrees with our PUCT."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_toys import Bandit, RandomTree, constant_leaf, random_leaf, search_program

from azero.games.tictactoe.rules import TicTacToe
from azero.search.leaf import uniform_leaf
from azero.search.settings import GumbelConfig, PuctConfig, SearchConfig


@pytest.mark.parametrize("form", ["alphago_zero", "alphazero"])
@pytest.mark.parametrize(
    "changes",
    [
        {"dirichlet_fraction": 0.0},
        {"dirichlet_fraction": 0.25},
        {"root_temperature": 1.5, "forced_playouts": 2.0},
        {"first_play": "reduced", "forced_playouts": 6.0, "dirichlet_fraction": 0.0},
    ],
    ids=str,
)
def test_same_visits_as_ours(form: Any, changes: dict[str, Any]) -> None:
    """In random games with ends, illegal moves and double turns; both draw the root's noise from
    the same key."""
    game = RandomTree(num_actions=10, extra_turns=True)
    roots = jax.vmap(game.init)(jnp.arange(32))
    ours, theirs = (
        search_program(
            SearchConfig.kind(name)(num_simulations=80, puct_form=form, **changes),
            game,
            random_leaf(game),
        )({}, jax.random.key(5), roots)
        for name in ("puct", "mctx_puct")
    )
    np.testing.assert_array_equal(ours.visits, theirs.visits)
    np.testing.assert_array_equal(ours.weights, theirs.weights)
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_array_equal(ours.prior, theirs.prior)
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-5)
    np.testing.assert_allclose(ours.best_child_value, theirs.best_child_value, atol=1e-5)


@pytest.mark.parametrize("name", ["puct", "gumbel", "mctx_puct", "mctx_gumbel"])
def test_a_single_visit_of_a_move_that_is_not_played_says_nothing_of_the_best_child(
    name: Any,
) -> None:
    """Two simulations, one for each move: the prior decides what is played, a lost move, and the
    won one that was looked at once does not hold up a resignation."""
    game = Bandit((-0.9, 1.0))
    config = SearchConfig.default(name).replace(num_simulations=2).without_noise()
    if isinstance(config, GumbelConfig):
        config = config.replace(c_scale=0.0)
    root = jax.tree.map(lambda x: x[None], game.init())
    out = jax.jit(config.build(game, constant_leaf((0.9, 0.1))))({}, jax.random.key(0), root)
    assert (out.visits[0].tolist(), int(out.action[0])) == ([1, 1], 0)
    assert float(out.best_child_value[0]) == pytest.approx(-0.9)


@pytest.mark.parametrize("name", ["mctx_puct", "mctx_gumbel"])
def test_finds_a_win_through_mctx(name: Any) -> None:
    """X has two in a row: the backend must make finished games absorbing for the win to keep its
    value however often it is visited."""
    game = TicTacToe()
    state = game.init()
    for square in (0, 3, 1, 4):
        state = game.step(state, jnp.int32(square))
    config = SearchConfig.default(name).replace(num_simulations=60).without_noise()
    out = jax.jit(config.build(game, uniform_leaf(game)))(
        {}, jax.random.key(0), jax.tree.map(lambda x: x[None], state)
    )
    assert int(out.action[0]) == 2
    assert float(out.best_child_value[0]) == 1.0
    assert (np.asarray(out.weights[0])[[0, 1, 3, 4]] == 0.0).all()
    is_taken = np.isin(np.arange(9), [0, 1, 3, 4])
    np.testing.assert_allclose(out.prior[0], np.where(is_taken, 0.0, 0.2), atol=1e-6)


def test_mctx_refuses_what_its_tree_cannot_do() -> None:
    settings = PuctConfig(variance_scale=0.85)
    with pytest.raises(ValueError, match=r"variance-scale = 0.85.*mctx.*search.name puct"):
        settings.as_kind("mctx_puct")
