"""Losses of auxiliary heads, the weights of positions, averaged parameters and Muon."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from azero.data.sample import AuxiliaryTargets, Batch
from azero.learn.learner import Learner, make_learner, prediction_loss
from azero.learn.losses import (
    moves_left_loss,
    outcome_target,
    ownership_loss,
    reply_loss,
    score_loss,
    short_value_loss,
    soft_policy_loss,
)
from azero.learn.settings import LearnerConfig
from azero.mesh import make_mesh
from azero.networks.network import Outputs
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig

GAME: Any = SimpleNamespace(board_shape=(3, 3), num_planes=5, num_actions=10)
WEIGHTS = {
    "ownership_weight": 1.5,
    "score_weight": 0.02,
    "reply_weight": 0.15,
    "soft_policy_weight": 2.0,
    "short_value_weight": 0.3,
    "moves_left_weight": 0.1,
}


def draw_batch(seed: int, size: int = 12) -> Batch:
    rng = np.random.default_rng(seed)
    weights, reply = rng.dirichlet(np.full(10, 0.3), (2, size)).astype(np.float32)
    weights[::5], reply[::4] = 0.0, 0.0
    owners = rng.integers(-1, 2, (size, 3, 3)).astype(np.float32)
    targets = AuxiliaryTargets(
        root_value=jnp.asarray(rng.uniform(-1, 1, size), jnp.float32),
        later=jnp.asarray(rng.uniform(-1, 1, (size, 3)), jnp.float32),
        surprise=jnp.asarray(rng.uniform(0, 3, size), jnp.float32),
        moves_left=jnp.asarray(rng.uniform(0, 3, size), jnp.float32),
        reply=jnp.asarray(reply),
        ownership=jnp.asarray(owners),
        margin=jnp.asarray(owners.sum(axis=(1, 2))),
        is_scored=jnp.asarray(rng.random(size) < 0.7),
    )
    return Batch(
        jnp.asarray(rng.random((size, 3, 3, 5)) < 0.4),
        jnp.asarray(weights),
        jnp.asarray(rng.choice([-1.0, 0.0, 1.0], size), jnp.float32),
        auxiliary=targets,
    )


@functools.cache
def make(config: LearnerConfig, network: NetworkConfig) -> Learner:
    net = network.build(GAME)
    return make_learner(config, net, GAME, make_mesh(jax.devices()[:1]))


POOLED = PooledConfig(
    blocks=2,
    filters=8,
    head_filters=4,
    value_hidden=8,
    train_dtype="float32",
    inference_dtype="float32",
    convolution="xla",
)


def test_each_loss_is_the_mean_over_the_positions_that_have_its_target() -> None:
    batch, rng = draw_batch(0), np.random.default_rng(1)
    targets = batch.auxiliary
    assert targets is not None and targets.ownership is not None and targets.margin is not None
    scored = np.flatnonzero(targets.is_scored)
    size = len(batch.value)

    owners = rng.normal(size=(size, 3, 3))
    expected = []
    for row in scored:
        p = (1 + np.tanh(owners[row])) / 2
        t = (1 + np.asarray(targets.ownership[row])) / 2
        expected.append(-(t * np.log(p) + (1 - t) * np.log(1 - p)).mean())
    found = ownership_loss(jnp.asarray(owners, jnp.float32), batch, targets)
    assert float(found) == pytest.approx(np.mean(expected), rel=1e-5)

    logits = rng.normal(size=(size, 19))
    expected = []
    for row in scored:
        place = int(targets.margin[row]) + 9
        beyond = np.cumsum(softmax(logits[row])) - (np.arange(19) >= place)
        expected.append(-log_softmax(logits[row])[place] + np.square(beyond).sum())
    found = score_loss(jnp.asarray(logits, jnp.float32), batch, targets)
    assert float(found) == pytest.approx(np.mean(expected), rel=1e-5)

    logits = rng.normal(size=(size, 10))
    log_p, weights = log_softmax(logits, axis=1), np.asarray(batch.weights)
    reply = np.asarray(targets.reply)
    has = np.flatnonzero(reply.any(axis=1))
    found = reply_loss(jnp.asarray(logits, jnp.float32), batch, targets)
    assert float(found) == pytest.approx(-(reply[has] * log_p[has]).sum(axis=1).mean(), rel=1e-5)

    has = np.flatnonzero(weights.any(axis=1))
    soft = weights[has] ** 0.25 / (weights[has] ** 0.25).sum(axis=1, keepdims=True)
    found = soft_policy_loss(jnp.asarray(logits, jnp.float32), batch, targets)
    assert float(found) == pytest.approx(-(soft * log_p[has]).sum(axis=1).mean(), rel=1e-5)

    values = rng.uniform(-1, 1, (size, 3))
    found = short_value_loss(jnp.asarray(values, jnp.float32), batch, targets)
    assert float(found) == pytest.approx(np.square(values - targets.later).mean(), rel=1e-5)

    moves = rng.uniform(0, 3, size)
    gap = np.abs(moves - targets.moves_left)
    found = moves_left_loss(jnp.asarray(moves, jnp.float32), batch, targets)
    huber = np.where(gap <= 1, gap**2 / 2, gap - 0.5).mean()
    assert float(found) == pytest.approx(huber, rel=1e-5)


def test_outcomes_mix_the_result_with_the_value_of_the_root() -> None:
    result, root = jnp.array([1.0, 0.0, -1.0, 0.5]), jnp.array([0.2, 0.2, 0.2, 0.2])
    plain = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0.25, 0, 0.75]]
    np.testing.assert_allclose(outcome_target(result, 0.0 * root, 0.0), plain, atol=1e-6)
    mixed = 0.75 * np.array(plain) + 0.25 * np.array([0.4, 0.0, 0.6])
    np.testing.assert_allclose(outcome_target(result, 0.25 * root, 0.25), mixed, atol=1e-6)


def test_surprising_positions_weigh_more() -> None:
    batch, rng = draw_batch(2), np.random.default_rng(3)
    assert batch.auxiliary is not None
    size = len(batch.value)
    outputs = Outputs(
        jnp.asarray(rng.normal(size=(size, 10)), jnp.float32),
        jnp.asarray(rng.uniform(-1, 1, size), jnp.float32),
        {"outcome": jnp.asarray(rng.normal(size=(size, 3)), jnp.float32)},
    )
    losses = prediction_loss(LearnerConfig(surprise_share=0.5), outputs, batch)
    weight = 0.5 + 0.5 * np.asarray(batch.auxiliary.surprise)
    has = np.asarray(batch.weights).any(axis=1)
    each = -(np.asarray(batch.weights) * log_softmax(np.asarray(outputs.logits), axis=1)).sum(
        axis=1
    )
    assert float(losses.policy) == pytest.approx((weight * each)[has].mean(), rel=1e-5)
    place = np.asarray(batch.value).astype(int) + 1
    each = -log_softmax(np.asarray(outputs.auxiliary["outcome"]), axis=1)[np.arange(size), place]
    assert float(losses.value) == pytest.approx((weight * each).mean(), rel=1e-5)
    assert losses.auxiliary == {}


def test_the_value_target_mixes_result_root_value_and_lambda_return() -> None:
    batch, rng = draw_batch(5), np.random.default_rng(6)
    assert batch.auxiliary is not None
    config = LearnerConfig(root_value_share=0.2, lambda_return_share=0.5)
    value = jnp.asarray(rng.uniform(-1, 1, len(batch.value)), jnp.float32)
    target = 0.3 * np.asarray(batch.value) + 0.2 * np.asarray(batch.auxiliary.root_value)
    target += 0.5 * np.asarray(batch.auxiliary.later)[:, 0]
    outputs = Outputs(jnp.zeros_like(batch.weights), value, {})
    losses = prediction_loss(config, outputs, batch)
    expected = np.square(np.asarray(value) - target).mean()
    assert float(losses.value) == pytest.approx(expected, rel=1e-5)
    # The three outputs of a network with draws have the same expected value as target: at equal
    # logits the gradient is their share of a third minus the target.
    logits = jnp.zeros((len(batch.value), 3))

    def value_loss(logits):
        return prediction_loss(config, outputs._replace(auxiliary={"outcome": logits}), batch).value

    chosen = 1 / 3 - len(logits) * np.asarray(jax.grad(value_loss)(logits))
    np.testing.assert_allclose(chosen.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(chosen[:, 2] - chosen[:, 0], target, atol=1e-5)
    with pytest.raises(ValueError, match=r"lambda-return-share are together at most 1"):
        LearnerConfig(root_value_share=0.6, lambda_return_share=0.5)


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_all_heads_learn(optimiser) -> None:
    config = LearnerConfig(
        batch_size=12,
        optimiser=optimiser,
        learning_rate=((0, 0.02),),
        root_value_share=0.25,
        surprise_share=0.5,
        average_decay=0.9,
        **WEIGHTS,
    )
    learner, batch = make(config, POOLED), draw_batch(4)
    state = learner.init(jax.random.key(0))
    params = [jax.device_get(state.params)]
    history = []
    for _ in range(40):
        state, metrics = learner.train_step(state, batch)
        params.append(jax.device_get(state.params))
        history.append(jax.device_get(metrics))
    first, last = history[0], history[-1]
    assert {f"{name}_loss" for name in ("ownership", "score", "reply", "soft_policy")} <= set(last)
    for name in (name for name in last if name.endswith("_loss")):
        assert last[name] < first[name], name
    assert last["loss"] < 0.8 * first["loss"] and bool(last["is_finite"])
    # The average is of parameters, and self-play has it.
    average = params[0]
    for number in range(1, 41):
        kept = min(0.9, number / (number + 9))
        average = jax.tree.map(lambda a, p, k=kept: k * a + (1 - k) * p, average, params[number])
    found = jax.device_get(state.variables["params"])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), found, average)


def test_heads_that_are_not_there_are_named() -> None:
    network = ResNetConfig(blocks=1, filters=4, convolution="xla")
    config = LearnerConfig(batch_size=4, reply_weight=0.15)
    with pytest.raises(ValueError, match=r"learner.reply-weight: the network has no head 'reply'"):
        make(config, network)
    chess: Any = SimpleNamespace(board_shape=(3, 3), num_planes=5, num_actions=18)
    config = dataclasses.replace(config, reply_weight=0.0, ownership_weight=1.0)
    with pytest.raises(ValueError, match=r"no head 'ownership' in this game; it has moves_left, "):
        make_learner(config, POOLED.build(chess), chess, make_mesh(jax.devices()[:1]))
