"""Equation 1 on hand-made numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.learn.losses import batch_losses
from azero.networks.network import NEVER


def test_equation_1_by_hand() -> None:
    # Logits log(1, 2, 1) are the probabilities (1/4, 1/2, 1/4).
    logits = jnp.log(jnp.asarray([[1.0, 2.0, 1.0], [1.0, 2.0, 1.0]]))
    weights = jnp.asarray([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]])
    losses = batch_losses(logits, jnp.asarray([0.5, -1.0]), weights, jnp.asarray([1.0, 1.0]))
    assert float(losses.policy) == pytest.approx((np.log(2) + np.log(4)) / 2)
    assert float(losses.value) == pytest.approx((0.25 + 4.0) / 2)
    assert float(losses.entropy) == pytest.approx(1.5 * np.log(2))
    assert float(losses.target_entropy) == pytest.approx(np.log(2) / 2)
    assert float(losses.accuracy) == pytest.approx(0.5)


def test_positions_without_a_policy_target_count_for_the_value_only() -> None:
    rng = np.random.default_rng(0)
    logits, weights = (
        rng.normal(size=(4, 5)).astype(np.float32),
        rng.random((4, 5)).astype(np.float32),
    )
    weights /= weights.sum(1, keepdims=True)
    weights[2:] = 0.0
    value, target = rng.normal(size=4).astype(np.float32), rng.normal(size=4).astype(np.float32)
    half = batch_losses(logits[:2], value[:2], weights[:2], target[:2])
    whole = batch_losses(logits, value, weights, target)
    for name in ("policy", "target_entropy", "accuracy"):
        assert float(getattr(whole, name)) == pytest.approx(float(getattr(half, name)))
    assert float(whole.value) == pytest.approx(float(np.mean((value - target) ** 2)))


def test_moves_that_a_network_does_not_have_are_no_targets() -> None:
    # The first position's target lies half on such a move, the second's altogether; the third has a
    # target of its own.
    logits = jnp.asarray([[0.0, 0.0, NEVER], [0.0, 1.0, NEVER], [0.0, 0.0, 2.0]])
    weights = jnp.asarray([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])

    def loss(logits):
        return batch_losses(logits, jnp.zeros(3), weights, jnp.zeros(3)).policy

    last = -jax.nn.log_softmax(logits[2])[2]
    assert float(loss(logits)) == pytest.approx((0.5 * np.log(2) + float(last)) / 2)
    gradient = np.asarray(jax.grad(loss)(logits))
    assert (
        np.isfinite(gradient).all()
        and not gradient[:2, 2].any()
        and not gradient[1].any()
        and gradient[0].any()
    )
    losses = batch_losses(logits, jnp.zeros(3), weights, jnp.zeros(3))
    assert np.isfinite(float(losses.entropy)) and float(losses.accuracy) == 1.0


def test_no_policy_target_at_all_gives_zero_not_nan() -> None:
    losses = batch_losses(jnp.ones((2, 3)), jnp.zeros(2), jnp.zeros((2, 3)), jnp.ones(2))
    assert (float(losses.policy), float(losses.value)) == (0.0, 1.0)
