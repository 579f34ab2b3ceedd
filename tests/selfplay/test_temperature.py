"""Choosing moves: proportional at first, greedy later, never an illegal move."""

import jax
import jax.numpy as jnp
import numpy as np

from azero.selfplay.temperature import choose


def _draws(weights: list[float], ply: int, temperature_moves: int, count: int = 4000) -> np.ndarray:
    rows = jnp.tile(jnp.array(weights), (count, 1))
    return np.asarray(
        choose(jax.random.key(3), rows, jnp.full(count, 2), jnp.full(count, ply), temperature_moves)
    )


def test_early_moves_follow_the_weights() -> None:
    counts = np.bincount(_draws([1.0, 0.0, 3.0, 4.0], ply=4, temperature_moves=5), minlength=4)
    assert counts[1] == 0
    np.testing.assert_allclose(counts / 4000, [1 / 8, 0, 3 / 8, 1 / 2], atol=0.03)


def test_later_moves_are_greedy_with_the_ties_of_the_search() -> None:
    assert set(_draws([5.0, 5.0, 5.0, 5.0], ply=5, temperature_moves=5)) == {2}


def test_temperature_is_a_setting_of_each_game() -> None:
    weights = jnp.tile(jnp.array([1.0, 1.0, 0.0]), (2000, 1))
    moves = choose(
        jax.random.key(0),
        weights,
        jnp.zeros(2000, jnp.int32),
        jnp.full(2000, 3),
        jnp.arange(2000) % 2 * 10,
    )
    assert (moves[::2] == 0).all()
    assert 400 < int(moves[1::2].sum()) < 600


def test_the_same_key_draws_the_same_moves_and_a_row_of_zeros_is_greedy() -> None:
    assert (_draws([1.0, 1.0, 1.0], 0, 1) == _draws([1.0, 1.0, 1.0], 0, 1)).all()
    assert set(_draws([0.0, 0.0, 0.0], 0, 1, count=5)) == {2}
