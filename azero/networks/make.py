"""Making a network from its settings, and settling what they leave to the machine."""

from __future__ import annotations

import dataclasses
import functools
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.config import NetworkConfig
from azero.networks import alphago2016, inference, rollout
from azero.networks.network import Network
from azero.networks.resnet import PolicyValue, blocks_per_turn
from azero.types import Array, PyTree

_PIECE_BYTES = 1 << 19
"""Bytes of one layer's activations that a CPU core works on at a time: fastest at 5x5x32 and 19x19x96 on cores with 1 MB of L2 cache (measured)."""

_BF16_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}
"""Names of bf16 matrix and dot-product units in /proc/cpuinfo: Intel AMX, AVX-512, Arm."""


ARCHITECTURES_2016 = {"policy2016": alphago2016.policy_network, "value2016": alphago2016.value_network}
"""The convolutional networks of 2016 by name."""


class Choice(NamedTuple):
    """Settings with "auto" settled by measuring."""

    config: NetworkConfig
    positions_per_second: dict[str, float]
    """What was measured, by "convolution dtype"; empty where there was nothing to choose."""


def make_network(config: NetworkConfig, board_shape: tuple[int, int], num_planes: int, num_actions: int, platform: str | None = None) -> Network:
    """Make the network of `config` for planes [B, *board_shape, num_planes] and `num_actions` moves.

    `config` goes through `resolve` first. `platform` is what it will run on, "cpu", "gpu" or "tpu"; default what there is here.
    """
    platform = platform or jax.default_backend()
    config = resolve(config, platform)
    piece = piece_size(config, board_shape) if platform == "cpu" else None
    if config.name in rollout.NUM_GROUPS:
        return rollout.linear_network(config, board_shape, num_planes, num_actions)
    if config.name in ARCHITECTURES_2016:
        return ARCHITECTURES_2016[config.name](config, board_shape, num_planes, num_actions, piece)
    turn = blocks_per_turn(config.blocks - 1, platform)
    frozen = PolicyValue(config, num_actions, is_training=False, turn=turn)
    training = PolicyValue(config, num_actions, is_training=True, turn=turn)

    def init(key: Array) -> PyTree:
        return frozen.init(key, jnp.zeros((1, *board_shape, num_planes), jnp.float32))

    def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
        outputs, _ = frozen.apply(variables, planes, mutable=[])
        return outputs

    def train_apply(variables: PyTree, planes: Array) -> tuple[tuple[Array, Array], PyTree]:
        outputs, changed = training.apply(variables, planes, mutable=["batch_stats"])
        return outputs, changed["batch_stats"]

    fold = functools.partial(inference.fold, config, board_shape[1])
    return Network(init, apply, train_apply, fold, functools.partial(inference.infer, config, piece=piece, turn=turn))


def piece_size(config: NetworkConfig, board_shape: tuple[int, int]) -> int:
    """Return how many positions a CPU core evaluates at a time: a power of two whose activations stay in its cache."""
    position_bytes = board_shape[0] * board_shape[1] * config.filters * 4
    return 1 << max(0, round(np.log2(_PIECE_BYTES / position_bytes)))


def resolve(config: NetworkConfig, platform: str | None = None) -> NetworkConfig:
    """Return `config` without "auto", by the kind of device alone: `platform`, or what there is here.

    GPUs and TPUs take XLA's convolution. CPUs with bf16 units take matrix products, other CPUs minimal filtering, which needs float32: with it both
    compute types are float32, whatever the settings say.
    """
    convolution = config.convolution
    if convolution == "auto":
        on_cpu = (platform or jax.default_backend()) == "cpu"
        convolution = ("dots" if has_bf16_units() and config.inference_dtype == "bfloat16" else "winograd") if on_cpu else "xla"
    if convolution == "winograd":
        return dataclasses.replace(config, convolution="winograd", train_dtype="float32", inference_dtype="float32")
    return dataclasses.replace(config, convolution=convolution)


def choose(config: NetworkConfig, board_shape: tuple[int, int], num_planes: int, num_actions: int) -> Choice:
    """Settle "auto" by measuring the candidates of this CPU on a net of the same width and two blocks (one to three seconds).

    XLA's convolution is no candidate on a CPU: its gradient is several times slower there than that of the other two. Elsewhere nothing is measured.
    """
    if config.convolution != "auto" or jax.default_backend() != "cpu":
        return Choice(resolve(config), {})
    products_dtype = config.inference_dtype if has_bf16_units() else "float32"
    candidates = [
        resolve(dataclasses.replace(config, convolution="winograd")),
        dataclasses.replace(config, convolution="dots", inference_dtype=products_dtype, train_dtype=products_dtype),
    ]
    rates = [_measure(candidate, board_shape, num_planes, num_actions) for candidate in candidates]
    names = [f"{candidate.convolution} {candidate.inference_dtype}" for candidate in candidates]
    return Choice(candidates[int(np.argmax(rates))], dict(zip(names, rates, strict=True)))


def has_bf16_units() -> bool:
    """Return whether this machine's CPU multiplies bf16 matrices in hardware, as far as Linux says so."""
    cpuinfo = Path("/proc/cpuinfo")
    return cpuinfo.exists() and bool(_BF16_FLAGS & set(cpuinfo.read_text(encoding="utf-8").split()))


def _measure(config: NetworkConfig, board_shape: tuple[int, int], num_planes: int, num_actions: int) -> float:
    """Return positions/s of the inference path of a two-block net."""
    network = make_network(dataclasses.replace(config, name="alphago_zero", blocks=2, heads="dual"), board_shape, num_planes, num_actions)
    batch = 4 * piece_size(config, board_shape)
    planes = jnp.zeros((batch, *board_shape, num_planes), jnp.float32)
    folded = jax.jit(lambda key: network.fold(network.init(key)))(jax.random.key(0))
    infer = jax.jit(network.infer).lower(folded, planes).compile()
    seconds = []
    for _ in range(8):
        start = time.perf_counter()
        jax.block_until_ready(infer(folded, planes))
        seconds.append(time.perf_counter() - start)
    return batch / min(seconds)
