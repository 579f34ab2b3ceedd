"""A deeper network that begins as a shallower one."""

import dataclasses

import jax
import numpy as np
import pytest

from azero.networks.deepen import deepen
from azero.networks.network import Inputs
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig
from azero.types import Array, PyTree

GAME = Inputs(board_shape=(3, 4), num_planes=5, num_actions=13)
SMALL = {"filters": 8, "value_hidden": 4, "train_dtype": "float32", "inference_dtype": "float32"}
RESNET = ResNetConfig(blocks=2, convolution="xla", **SMALL)  # type: ignore[arg-type]
POOLED = PooledConfig(  # type: ignore[arg-type]
    blocks=4, convolution="xla", head_filters=4, score_hidden=4, **SMALL
)


def learned(config: NetworkConfig, seed: int) -> PyTree:
    """Return variables of which none is zero or one."""
    variables = config.build(GAME).init(jax.random.key(seed))
    leaves, tree = jax.tree.flatten(variables)
    keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
    return jax.tree.unflatten(
        tree,
        [
            leaf + 0.2 * jax.random.uniform(key, leaf.shape)
            for leaf, key in zip(leaves, keys, strict=True)
        ],
    )


@pytest.mark.parametrize(
    ("config", "blocks"),
    [
        (RESNET, 4),
        (dataclasses.replace(RESNET, blocks=1, heads="sep"), 3),
        (POOLED, 5),  # a block that did not pool is now one of a group
        (dataclasses.replace(POOLED, norm="fixed", pool_every=3), 9),
        (dataclasses.replace(POOLED, blocks=3, inner_blocks=2), 6),
    ],
)
def test_it_computes_the_same_and_can_learn_more(config: NetworkConfig, blocks: int) -> None:
    deeper = dataclasses.replace(config, blocks=blocks)
    given, own = learned(config, 1), deeper.build(GAME).init(jax.random.key(2))
    variables = deepen(own, deeper, given, config, GAME)
    assert jax.tree.map(np.shape, variables) == jax.tree.map(np.shape, own)
    planes = jax.random.bernoulli(jax.random.key(0), 0.5, (3, *GAME.board_shape, GAME.num_planes))
    old, new = config.build(GAME), deeper.build(GAME)

    @jax.jit
    def outputs(given: PyTree, params: PyTree) -> PyTree:
        def value(params: PyTree) -> Array:
            return new.train_apply({**variables, "params": params}, planes)[0].value.sum()

        deeper = {**variables, "params": params}
        return old.apply(given, planes), new.apply(deeper, planes), jax.grad(value)(params)

    one, other, gradients = outputs(given, variables["params"])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), one, other)
    # Every block that is an identity learns.
    learning = jax.tree.map(
        lambda p, g: np.sum((p == 0) & (g != 0)), variables["params"], gradients
    )
    assert sum(jax.tree.leaves(learning)) >= blocks - config.blocks


@pytest.mark.parametrize(
    ("config", "other"),
    [
        (RESNET, dataclasses.replace(RESNET, blocks=1)),
        (dataclasses.replace(RESNET, blocks=3, filters=9), RESNET),
        (dataclasses.replace(RESNET, blocks=3, tower="conv"), RESNET),
        (dataclasses.replace(POOLED, blocks=7, pool_every=3), POOLED),
        (POOLED, RESNET),
    ],
)
def test_other_networks_are_left_as_they_are(config: NetworkConfig, other: NetworkConfig) -> None:
    given = learned(other, 1)
    if config is RESNET:
        config, other = other, config
    assert deepen(learned(config, 2), config, given, other, GAME) is given
