"""Leaves: symmetries drawn per position, playouts with a known mean."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.tictactoe.rules import TicTacToe
from azero.search.leaf import averaged_network_leaf, network_leaf

GAME = TicTacToe()


def positions(count: int, *squares: int) -> Any:
    state = GAME.init()
    for square in squares:
        state = GAME.step(state, jnp.int32(square))
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *x.shape)), state)


def test_an_equivariant_network_does_not_notice_the_symmetry() -> None:
    """A network whose policy is the board itself gives the same answer through every symmetry."""

    def infer(params: Any, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        board = planes.astype(jnp.float32) @ jnp.asarray([1.0, -1.0, 0.5])
        return board.reshape(-1, 9), board.mean((1, 2))

    states = positions(64, 0, 5, 7)
    plain, turned = (
        network_leaf(GAME, infer, random_symmetry=random)({}, jax.random.key(0), states)
        for random in (False, True)
    )
    np.testing.assert_array_equal(plain[0], turned[0])
    np.testing.assert_allclose(plain[1], turned[1], atol=1e-6)


def test_every_position_draws_one_of_all_eight_symmetries() -> None:
    def infer(params: Any, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.broadcast_to(jnp.arange(9.0), (planes.shape[0], 9)), jnp.zeros(planes.shape[0])

    logits, _ = network_leaf(GAME, infer, random_symmetry=True)(
        {}, jax.random.key(0), positions(400)
    )
    expected = {
        tuple(np.asarray(GAME.inverse_transform_policy(jnp.arange(9.0), jnp.int32(s))))
        for s in range(8)
    }
    rows, counts = np.unique(np.asarray(logits), axis=0, return_counts=True)
    assert {tuple(row) for row in rows} == expected
    assert counts.min() > 25  # 50 each on average


def test_the_averaged_leaf_is_the_mean_over_the_eight_views() -> None:
    """A network that always names square 0 with a value read off that square: its mean names the
    four corners, and is the same for turned positions."""

    def infer(params: Any, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros((planes.shape[0], 9)).at[:, 0].set(1.0), planes[:, 0, 0, 0].astype(
            jnp.float32
        )

    logits, values = averaged_network_leaf(GAME, infer)({}, jax.random.key(0), positions(3, 0, 4))
    np.testing.assert_allclose(
        logits, np.tile([0.25, 0, 0.25, 0, 0, 0, 0.25, 0, 0.25], (3, 1)), atol=1e-6
    )
    # X, who is to move, stands in one corner of four
    np.testing.assert_allclose(values, np.full(3, 0.25), atol=1e-6)
