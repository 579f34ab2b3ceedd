"""AlphaGo Zero's towers and heads in Flax Linen: dual|sep x res|conv|plain from one definition.

Source: AGZ (Nature 550) methods, 'Neural network architecture', and Figure 4.
Parameters, batch-norm statistics and heads are float32; the towers compute in `dtype`.
"""

import functools
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from azero.mesh import platform_dependent
from azero.networks.convolution import convolve
from azero.networks.settings import ResNetConfig
from azero.types import Array

_HE = nn.initializers.he_normal()
"""Initial weights of every layer before a ReLU (the paper gives none)."""

_Dense = functools.partial(nn.Dense, precision=lax.Precision.HIGHEST)

_PARTS = 3
"""How many bfloat16 make a float32: 8 bits of the significand each."""
_MOST_UNROLLED = 8
"""Most residual blocks that are unrolled where the settings leave it open (measured with 3 blocks
of 32 filters on a CPU; compile time grows with them)."""


class ConvolutionNorm(nn.Module):
    """A convolution without bias and its batch norm: [B, H, W, C] -> float32 [B, H, W, filters]."""

    config: ResNetConfig
    dtype: Any
    is_training: bool
    filters: int
    width: int = 3
    """3 in the towers, 1 in the heads."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        kernel = self.param(
            "kernel", _HE, (self.width, self.width, x.shape[-1], self.filters), jnp.float32
        )
        if self.width == 3:
            x, kernel = x.astype(self.dtype), kernel.astype(self.dtype)
            y = convolve(self.config.convolution, x, kernel)
        else:
            y = pointwise(x, kernel[0, 0])
        norm = nn.BatchNorm(
            use_running_average=not self.is_training,
            momentum=self.config.batch_norm_momentum,
            epsilon=self.config.batch_norm_epsilon,
            dtype=jnp.float32,
            name="norm",
        )
        return norm(y.astype(jnp.float32))


class Block(nn.Module):
    """Two 3x3 convolutions, with a skip connection ('res') or without ('conv'), or a single one
    ('plain')."""

    config: ResNetConfig
    dtype: Any
    is_training: bool

    @nn.compact
    def __call__(self, x: Array) -> tuple[Array, None]:
        layer = functools.partial(
            ConvolutionNorm, self.config, self.dtype, self.is_training, self.config.filters
        )
        y = layer(name="first")(x)
        if self.config.tower != "plain":
            y = layer(name="second")(nn.relu(y).astype(self.dtype))
        if self.config.tower == "res":
            y = y + x.astype(jnp.float32)
        return nn.relu(y).astype(self.dtype), None


class Tower(nn.Module):
    """The first convolution and `config.blocks - 1` blocks, stacked along axis 0 of their
    parameters."""

    config: ResNetConfig
    dtype: Any
    is_training: bool
    unroll: int
    """Blocks computed in an iteration of the loop over them."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        stem = ConvolutionNorm(
            self.config, self.dtype, self.is_training, self.config.filters, name="stem"
        )
        y = stem(x)
        y = nn.relu(y).astype(self.dtype)
        if self.config.blocks == 1:
            return y
        length = self.config.blocks - 1
        blocks = nn.scan(
            Block,
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True},
            length=length,
            unroll=self.unroll,
        )
        y, _ = blocks(self.config, self.dtype, self.is_training, name="blocks")(y)
        return y


class PlanesHead(nn.Module):
    """AlphaZero's policy head in chess and shogi: one more convolution with batch norm and ReLU,
    and a convolution to the planes that encode moves.

    The logits float32[B, A] are those of the first square's planes, then of the second's, row by
    row. Source: AZ, supplement, 'Architecture', which gives the number of planes but no kernel
    sizes: here the first convolution is 3x3 as in the tower, the last one 1x1.
    """

    config: ResNetConfig
    num_actions: int
    dtype: Any
    is_training: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        filters = self.config.policy_filters
        y = ConvolutionNorm(self.config, self.dtype, self.is_training, filters, name="conv")(x)
        planes = move_planes(self.num_actions, x.shape[1:3])
        kernel = self.param(
            "kernel", nn.linear.default_kernel_init, (1, 1, y.shape[-1], planes), jnp.float32
        )
        bias = self.param("bias", nn.initializers.zeros_init(), (planes,), jnp.float32)
        return (pointwise(nn.relu(y), kernel[0, 0]) + bias).reshape(x.shape[0], -1)


class PolicyHead(nn.Module):
    """1x1 convolution of 2 filters, batch norm, ReLU, and a linear layer to the logits float32[B,
    A]."""

    config: ResNetConfig
    num_actions: int
    is_training: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        filters = self.config.policy_filters
        y = ConvolutionNorm(self.config, jnp.float32, self.is_training, filters, 1, name="conv")(x)
        y = nn.relu(y).reshape(x.shape[0], -1)
        is_identity = self.config.policy_init == "identity"
        init = point_to_move if is_identity else nn.linear.default_kernel_init
        return _Dense(self.num_actions, kernel_init=init, name="logits")(y)


class ValueHead(nn.Module):
    """1x1 convolution of 1 filter, batch norm, ReLU, 256 units, ReLU, one unit, tanh:
    float32[B]."""

    config: ResNetConfig
    is_training: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        filters = self.config.value_filters
        y = ConvolutionNorm(self.config, jnp.float32, self.is_training, filters, 1, name="conv")(x)
        y = nn.relu(y).reshape(x.shape[0], -1)
        y = nn.relu(_Dense(self.config.value_hidden, kernel_init=_HE, name="hidden")(y))
        return jnp.tanh(_Dense(1, name="value")(y))[:, 0]


class PolicyValue(nn.Module):
    """The whole network: planes [B, H, W, C] -> (logits float32[B, A], value float32[B])."""

    config: ResNetConfig
    num_actions: int
    is_training: bool
    unroll: int
    """Blocks computed in an iteration of the loop over them."""

    @nn.compact
    def __call__(self, planes: Array) -> tuple[Array, Array]:
        dtype = jnp.dtype(self.config.train_dtype)
        x = planes.astype(dtype)
        tower = functools.partial(Tower, self.config, dtype, self.is_training, self.unroll)
        if self.config.heads == "dual":
            policy_features = value_features = tower(name="tower")(x)
        else:
            policy_features = tower(name="policy_tower")(x)
            value_features = tower(name="value_tower")(x)
        head: nn.Module
        if self.config.policy_head == "planes":
            head = PlanesHead(self.config, self.num_actions, dtype, self.is_training, name="policy")
        else:
            head = PolicyHead(self.config, self.num_actions, self.is_training, name="policy")
        logits = head(policy_features)
        return logits, ValueHead(self.config, self.is_training, name="value")(value_features)


def move_planes(num_actions: int, board_shape: tuple[int, ...]) -> int:
    """Return how many planes encode `num_actions` moves on a board.

    Raises:
      ValueError: the number of moves is not a multiple of the number of squares.
    """
    squares = math.prod(board_shape)
    if num_actions % squares:
        raise ValueError(
            f"network.policy-head planes is for games with as many moves on every square, "
            f"not for {num_actions} moves on {squares} points; choose linear"
        )
    return num_actions // squares


def point_to_move(key: Array, shape: tuple[int, int], dtype: Any = jnp.float32) -> Array:
    """Return weights [points x filters, actions] that make the logit of a point proportional to the
    sum of its even features minus that of its odd ones; other weights are 0.

    Actions other than points (pass) have zero weights. For games whose first actions are the
    points, row by row.
    """
    del key
    inputs, actions = shape
    filters = -(-inputs // actions)  # pass makes one action more than there are points
    place = jnp.arange(inputs, dtype=jnp.int32)
    sign = jnp.where(place % filters % 2 == 0, 1.0, -1.0) * (2.0 / filters) ** 0.5
    return jnp.where(
        (place // filters)[:, None] == jnp.arange(actions, dtype=jnp.int32)[None],
        sign[:, None],
        0.0,
    ).astype(dtype)


def scan_unroll(length: int, platform: str) -> int:
    """Return how many of `length` blocks an iteration of the loop over them computes on `platform`.

    One, so that twenty blocks compile as fast as one; all blocks of a small network on CPUs, which
    is an eighth to a tenth faster, and on TPUs (docs/speed-changes.md).
    """
    return length if platform in ("cpu", "tpu") and 1 <= length <= _MOST_UNROLLED else 1


def pointwise(x: Array, kernel: Array) -> Array:
    """Apply a 1x1 convolution: x [B, H, W, C] times kernel float32[C, F], at full float32 precision
    also on TPUs.

    Returns:
      float32[B, H, W, F].
    """
    if x.dtype != jnp.bfloat16:
        return _pointwise_at_once(x, kernel)
    return platform_dependent(x, kernel, tpu=_pointwise_in_parts, default=_pointwise_at_once)


def _pointwise_at_once(x: Array, kernel: Array) -> Array:
    x = x.astype(jnp.float32)
    return jnp.einsum("bhwc,cf->bhwf", x, kernel, precision=lax.Precision.HIGHEST)


@jax.custom_vjp
def _pointwise_in_parts(x: Array, kernel: Array) -> Array:
    """Multiply bfloat16 `x` by float32 weights as by the three bfloat16 whose sum is a weight; all
    products are exact.

    The matrix unit multiplies them side by side; a float32 product of few columns would not use it.
    """
    y = jnp.einsum("bhwc,cf->bhwf", x, _in_parts(kernel), preferred_element_type=jnp.float32)
    return _sum_parts(y)


def _pointwise_forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _pointwise_in_parts(x, kernel), (x, kernel)


def _pointwise_gradients(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    """Return the gradients of `x` and of the weights; the latter in parts, too, or XLA would
    multiply and sum a single column without the matrix unit."""
    x, kernel = saved
    of_kernel = _sum_parts(
        jnp.einsum("bhwc,bhwf->cf", x, _in_parts(gradient), preferred_element_type=jnp.float32)
    )
    # The weights' gradients first, or `x` would take memory during the rest of the backward pass.
    kernel, of_kernel = lax.optimization_barrier((kernel, of_kernel))
    of_x = jnp.einsum("bhwf,cf->bhwc", gradient, kernel, precision=lax.Precision.HIGHEST)
    return of_x.astype(x.dtype), of_kernel


_pointwise_in_parts.defvjp(_pointwise_forward, _pointwise_gradients)


def _in_parts(x: Array) -> Array:
    """Return bfloat16 [..., 3F], smallest parts first, whose sums are float32 `x` [..., F]."""
    parts = []
    for _ in range(_PARTS):
        # Not by a cast to bfloat16 and back, which XLA removes.
        parts.append(lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7))
        x = x - parts[-1]
    return jnp.concatenate(parts[::-1], axis=-1).astype(jnp.bfloat16)


def _sum_parts(x: Array) -> Array:
    return functools.reduce(jnp.add, jnp.split(x, _PARTS, axis=-1))
