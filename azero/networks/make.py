"""Makes networks from settings, and resolves settings that depend on the machine."""

import dataclasses
import functools
from typing import Literal, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from azero.config import check
from azero.networks import alphago2016, inference
from azero.networks.network import Network, Outputs, Shapes
from azero.networks.pooled import pooled_network
from azero.networks.resnet import PolicyValue, scan_unroll
from azero.networks.settings import (
    ConvolutionalConfig,
    NetworkConfig,
    Policy2016Config,
    PooledConfig,
    ResidualConfig,
    ResNetConfig,
    Value2016Config,
)
from azero.types import Array, PyTree
from azero.xla_flags import cpu_flags

N = TypeVar("N", bound=NetworkConfig)

_CHUNK_BYTES = 1 << 19
"""Bytes of one layer's activations that a CPU core works on at a time: fastest at 5x5x32 and
19x19x96 on cores with 1 MB of L2 cache (measured)."""


def make_resnet(config: ResNetConfig, game: Shapes, platform: str | None = None) -> Network:
    """Make the network of AlphaGo Zero for the planes and moves of `game`.

    `platform` is where it will run, "cpu", "gpu" or "tpu"; by default JAX's default backend.

    Raises:
      ValueError: the game has no such colour plane.
    """
    check(
        config.colour_plane is None or config.colour_plane < game.num_planes,
        f"network.colour-plane is from 0 to {game.num_planes - 1} in this game, not "
        f"{config.colour_plane}",
    )
    platform = platform or jax.default_backend()
    config = resolve(config, platform)
    chunk = chunk_size(config, game.board_shape) if platform == "cpu" else None
    unroll = scan_unroll(config.blocks - 1, platform)
    train_unroll = _train_unroll(config, platform)
    frozen = PolicyValue(config, game.num_actions, is_training=False, unroll=unroll)
    training = PolicyValue(config, game.num_actions, is_training=True, unroll=train_unroll)

    def init(key: Array) -> PyTree:
        return frozen.init(key, jnp.zeros((1, *game.board_shape, game.num_planes), jnp.float32))

    def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
        (logits, value), _ = frozen.apply(variables, planes, mutable=[])
        return logits, _for_side_to_move(config, planes, value)

    def train_apply(variables: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
        (logits, value), changed = training.apply(variables, planes, mutable=["batch_stats"])
        value = _for_side_to_move(config, planes, value)
        return Outputs(logits, value, {}), changed["batch_stats"]

    def infer(folded: PyTree, planes: Array) -> tuple[Array, Array]:
        logits, value = inference.infer(config, folded, planes, chunk, unroll)
        return logits, _for_side_to_move(config, planes, value)

    fold = functools.partial(inference.fold, config, game.board_shape[1])
    return Network(init, apply, train_apply, fold, infer)


def _for_side_to_move(config: ResNetConfig, planes: Array, value: Array) -> Array:
    """Return the values [B] of planes [B, H, W, C] for the side to move."""
    if config.colour_plane is None:
        return value
    return jnp.where(planes[:, 0, 0, config.colour_plane] > 0, value, -value)


def make_pooled(config: PooledConfig, game: Shapes, platform: str | None = None) -> Network:
    """Make the network with global pooling; arguments as of `make_resnet`."""
    platform = platform or jax.default_backend()
    config = resolve(config, platform)
    chunk = chunk_size(config, game.board_shape) if platform == "cpu" else None
    blocks = config.blocks - 1
    unroll = scan_unroll(blocks, platform) == blocks
    return pooled_network(config, game, chunk, unroll, _train_unroll(config, platform) == blocks)


def make_alphago2016(
    config: Policy2016Config | Value2016Config, game: Shapes, platform: str | None = None
) -> Network:
    """Make the policy or the value network of AlphaGo (2016); arguments as of `make_resnet`."""
    platform = platform or jax.default_backend()
    config = resolve(config, platform)
    chunk = chunk_size(config, game.board_shape) if platform == "cpu" else None
    make = (
        alphago2016.policy_network
        if isinstance(config, Policy2016Config)
        else alphago2016.value_network
    )
    return make(config, game, chunk)


def _train_unroll(config: ResidualConfig, platform: str) -> int:
    """Return how many residual blocks an iteration of the training step's loop computes."""
    length = config.blocks - 1
    if config.train_loop == "auto":
        return scan_unroll(length, platform)
    return max(1, length) if config.train_loop == "unrolled" else 1


def chunk_size(config: ConvolutionalConfig, board_shape: tuple[int, int]) -> int:
    """Return how many positions a CPU core evaluates at a time: a power of two whose activations
    stay in its cache."""
    position_bytes = board_shape[0] * board_shape[1] * config.filters * 4
    return 1 << max(0, round(np.log2(_CHUNK_BYTES / position_bytes)))


def resolve(config: N, platform: str | None = None) -> N:
    """Return `config` without "auto": the convolution and its compute types by kind of processor,
    so that equal machines compute the same.

    `platform` is "cpu", "gpu" or "tpu"; by default JAX's default backend. GPUs and TPUs use XLA's
    convolution, CPUs that of `_cpu_convolution`. Minimal filtering needs float32: with it both
    compute types are float32, whatever the settings say.
    """
    if not isinstance(config, ConvolutionalConfig):
        return config
    convolution = config.convolution
    if convolution == "auto":
        on_cpu = (platform or jax.default_backend()) == "cpu"
        convolution = _cpu_convolution(config) if on_cpu else "xla"
    if convolution == "winograd":
        return dataclasses.replace(
            config, convolution="winograd", train_dtype="float32", inference_dtype="float32"
        )
    return dataclasses.replace(config, convolution=convolution)


def _cpu_convolution(config: ConvolutionalConfig) -> Literal["dots", "winograd"]:
    """Return the convolution of CPUs by instruction set and compute type; both were measured with
    `azero bench network` and `azero bench inference` (docs/speed-changes.md).

    | processor | inference in | convolution |
    |---|---|---|
    | with matrix units (AMX) | bfloat16 | dots |
    | with them | float32 | winograd |
    | AVX-512 with bf16 products or without, AVX2, Arm and others | either | winograd |

    Products of AVX512_BF16 are not used by XLA itself, and through YNNPACK (`azero.xla_flags`) they
    are slower than minimal filtering with 32 or 48 filters and 5 to 12% faster with 128. XLA's own
    convolution is never chosen: its gradient is several times slower than that of the other two.
    """
    return "dots" if config.inference_dtype == "bfloat16" and has_bf16_units() else "winograd"


def has_bf16_units() -> bool:
    """Return whether this machine's CPU has matrix units for bf16 (AMX) that XLA uses, according to
    /proc/cpuinfo; False where there is no such file."""
    return "amx_bf16" in cpu_flags()
