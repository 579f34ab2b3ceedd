"""Making a network from its settings."""

from __future__ import annotations

import dataclasses
import functools
import os

import jax
import jax.numpy as jnp

from azero.config import NetworkConfig
from azero.networks import inference
from azero.networks.network import Network
from azero.networks.resnet import PolicyValue
from azero.types import Array, PyTree


def make_network(config: NetworkConfig, board_shape: tuple[int, int], num_planes: int, num_actions: int) -> Network:
    """Make the network of `config` for planes [B, *board_shape, num_planes] and `num_actions` moves.

    Settings that say "auto" are taken from `resolve`.
    """
    config = resolve(config)
    piece = int(os.environ.get("PIECE", "64"))
    frozen = PolicyValue(config, num_actions, is_training=False)
    training = PolicyValue(config, num_actions, is_training=True)

    def init(key: Array) -> PyTree:
        return frozen.init(key, jnp.zeros((1, *board_shape, num_planes), jnp.float32))

    def train_apply(variables: PyTree, planes: Array) -> tuple[tuple[Array, Array], PyTree]:
        outputs, changed = training.apply(variables, planes, mutable=["batch_stats"])
        return outputs, changed["batch_stats"]

    return Network(
        init=init,
        apply=frozen.apply,
        train_apply=train_apply,
        fold=functools.partial(inference.fold, config, board_shape[1]),
        infer=functools.partial(inference.infer, config, piece=piece),
    )


def resolve(config: NetworkConfig) -> NetworkConfig:
    """Return `config` without "auto"."""
    if config.convolution != "auto":
        return config
    return dataclasses.replace(config, convolution="xla" if jax.default_backend() != "cpu" else "dots")
