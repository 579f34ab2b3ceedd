"""A network that begins as one that sees more positions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.networks.fewer_positions import see_fewer_positions
from azero.networks.network import Inputs
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig

POSITIONS, PER_POSITION, OTHERS = 3, 4, 2
SMALL = {"filters": 8, "value_hidden": 4, "train_dtype": "float32", "inference_dtype": "float32"}
RESNET = ResNetConfig(blocks=1, convolution="xla", **SMALL)  # type: ignore[arg-type]
POOLED = PooledConfig(  # type: ignore[arg-type]
    blocks=2, convolution="xla", head_filters=4, score_hidden=4, **SMALL
)


def inputs(positions: int) -> Inputs:
    return Inputs((3, 4), positions * PER_POSITION + OTHERS, num_actions=13)


@pytest.mark.parametrize(
    ("config", "fewer"), [(RESNET, 1), (dataclasses.replace(RESNET, heads="sep"), 2), (POOLED, 1)]
)
def test_it_computes_the_same_where_older_positions_are_equal(
    config: NetworkConfig, fewer: int
) -> None:
    given, game = inputs(POSITIONS), inputs(fewer)
    old, new = config.build(given), config.build(game)
    variables = old.init(jax.random.key(0))
    cut = see_fewer_positions(variables, POSITIONS, fewer, PER_POSITION)
    assert jax.tree.map(np.shape, cut) == jax.tree.map(np.shape, new.init(jax.random.key(1)))
    key, other_key = jax.random.split(jax.random.key(2))
    seen = jax.random.uniform(key, (5, 3, 4, fewer * PER_POSITION))
    oldest = jnp.tile(seen[..., -PER_POSITION:], POSITIONS - fewer)
    others = jax.random.uniform(other_key, (5, 3, 4, OTHERS))
    expected = old.apply(variables, jnp.concatenate([seen, oldest, others], axis=-1))
    found = new.apply(cut, jnp.concatenate([seen, others], axis=-1))
    for one, two in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-4)
