"""Untrained networks for tests of something else than initialisation, whose program takes up to a
second to compile."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import jax
import numpy as np

from azero.checkpoint import Checkpointer
from azero.experiment import load
from azero.networks.network import Network
from azero.train.settings import CheckpointConfig
from azero.types import PyTree


def draw_variables(network: Network, seed: int = 0) -> PyTree:
    """Return variables of the form of `network.init`, drawn by NumPy: norms and biases are neutral,
    all other parameters have the variance 1 / inputs."""
    rng = np.random.default_rng(seed)

    def draw(path: tuple[jax.tree_util.DictKey, ...], leaf: jax.ShapeDtypeStruct) -> np.ndarray:
        if path[-1].key in ("bias", "mean"):
            return np.zeros(leaf.shape, leaf.dtype)
        if path[-1].key in ("scale", "var"):
            return np.ones(leaf.shape, leaf.dtype)
        # [..., inputs, outputs] or [..., 3, 3, inputs, outputs]
        inputs = math.prod(leaf.shape[-4:-1]) if len(leaf.shape) > 3 else leaf.shape[-2]
        return rng.normal(0.0, inputs**-0.5, leaf.shape).astype(leaf.dtype)

    form = jax.eval_shape(network.init, jax.random.key(0))
    return jax.tree_util.tree_map_with_path(draw, form)


def shaken_variables(network: Network) -> PyTree:
    """Return new variables with noise on all parameters but the filters, so that norms and biases
    are anything but neutral."""
    rng = np.random.default_rng(0)

    def shake(path: tuple[jax.tree_util.DictKey, ...], leaf: jax.Array) -> np.ndarray:
        amount = 0.0 if path[-1].key == "kernel" else 0.2
        return np.asarray(leaf) + rng.normal(0, amount, leaf.shape).astype(np.float32)

    noisy = jax.tree_util.tree_map_with_path(shake, jax.jit(network.init)(jax.random.key(1)))
    return {**noisy, "batch_stats": jax.tree.map(np.abs, noisy["batch_stats"])}


def save_last(run: Path, iteration: int) -> None:
    """Save a checkpoint of a run of tic-tac-toe that keeps only its last one."""
    config = load("tictactoe").config
    small = config.network.replace(blocks=1, filters=4)
    config = dataclasses.replace(config, network=small, checkpoint=CheckpointConfig(keep=1))
    variables = draw_variables(small.build(config.game.build()), iteration)
    checkpointer = Checkpointer(run, config)
    checkpointer.save(iteration, {"train": variables}, {})
    checkpointer.close()
