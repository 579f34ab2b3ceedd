"""Layers of the network with global pooling: norms, pooling, and the bias from pooled channels; how
they are initialised and folded.

Sources: KG = Wu 2019 (arXiv 1902.10565), appendix A; KGM = KataGo's docs/KataGoMethods.md. A layer
is a dictionary. Names used in several layers: "first" is the kernel of a convolution, "middle" the
norm right after it; where some of its channels are pooled, "pool" is their norm and "pooled_bias"
the linear layer applied to them.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from azero.networks.inference import add_bias, spread, sum_positions
from azero.types import Array, PyTree

HE = jax.nn.initializers.he_normal()
"""Initial weights of every layer before a ReLU: they keep the variance."""
LECUN = jax.nn.initializers.lecun_normal()
"""Initial weights of the last layers."""
SMALL = jax.nn.initializers.variance_scaling(0.1, "fan_in", "truncated_normal")
"""Initial weights of `pooled_bias` (no source): the bias has a quarter of the variance of what it
is added to, as the maximum of normal values over a board is about 2.5."""

COMMON_WIDTH = 14.0
"""Board size at which the scaled mean is zero (KG, appendix A.1)."""


class ParamSpec(NamedTuple):
    """How a parameter is initialised."""

    init: Callable[..., Array]
    """(key, shape, dtype) -> weights"""
    shape: tuple[int, ...]
    stack: tuple[int, ...] = ()
    """Sizes of a stack of such parameters, each initialised on its own."""


def init_params(specs: PyTree, key: Array) -> PyTree:
    """Return float32 parameters for a tree of `ParamSpec`s."""
    leaves, tree = jax.tree.flatten(specs, is_leaf=lambda node: isinstance(node, ParamSpec))

    def init(spec: ParamSpec, key: Array) -> Array:
        keys = jax.random.split(key, math.prod(spec.stack))
        params = jax.vmap(lambda key: spec.init(key, spec.shape, jnp.float32))(keys)
        return params.reshape(*spec.stack, *spec.shape)

    return jax.tree.unflatten(tree, map(init, leaves, jax.random.split(key, len(leaves))))


def stack(specs: PyTree, *sizes: int) -> PyTree:
    """Return the `ParamSpec`s of a stack of layers with the parameters `specs`."""
    return jax.tree.map(
        lambda spec: spec._replace(stack=(*sizes, *spec.stack)),
        specs,
        is_leaf=lambda node: isinstance(node, ParamSpec),
    )


def norm_specs(filters: int) -> PyTree:
    """Return the `ParamSpec`s of a norm: at first its scale is one and its bias zero."""
    ones, zeros = jax.nn.initializers.ones, jax.nn.initializers.zeros
    return {"scale": ParamSpec(ones, (filters,)), "bias": ParamSpec(zeros, (filters,))}


def dense_specs(inputs: int, outputs: int, init: Callable[..., Array] = LECUN) -> PyTree:
    """Return the `ParamSpec`s of a linear layer."""
    zeros = jax.nn.initializers.zeros
    return {"kernel": ParamSpec(init, (inputs, outputs)), "bias": ParamSpec(zeros, (outputs,))}


def init_stats(params: PyTree) -> PyTree:
    """Return the initial running statistics of all norms in `params`: mean 0, variance 1."""
    if "scale" in params:
        return {"mean": jnp.zeros_like(params["bias"]), "var": jnp.ones_like(params["bias"])}
    below = {name: init_stats(node) for name, node in params.items() if isinstance(node, dict)}
    return {name: stats for name, stats in below.items() if stats}


class Norms:
    """The norms of one layer, by name: (name, x [..., F]) -> float32[..., F].

    A norm with running statistics is a batch norm; in training it uses those of the batch. A norm
    without is a scale and a bias; one folded into the layer before it is a bias only.
    """

    def __init__(
        self, params: PyTree, stats: PyTree, is_training: bool, momentum: float, epsilon: float
    ) -> None:
        self._params, self._stats, self._is_training = params, stats, is_training
        self._momentum, self._epsilon = momentum, epsilon
        self.new_stats: PyTree = {}
        """The new running statistics of the norms that were called."""

    def __call__(self, name: str, x: Array) -> Array:
        params, stats, x = self._params[name], self._stats.get(name), x.astype(jnp.float32)
        if "scale" not in params:
            return add_bias(x, params["bias"])
        if stats is not None and self._is_training:
            count = x.size // x.shape[-1]
            mean = sum_positions(x) / count
            var = jnp.maximum(sum_positions(jnp.square(x)) / count - jnp.square(mean), 0.0)
            batch = {"mean": mean, "var": var}
            self.new_stats[name] = {
                part: self._momentum * stats[part] + (1.0 - self._momentum) * batch[part]
                for part in stats
            }
            stats = batch
        elif stats is not None:
            self.new_stats[name] = stats
        scale, bias = affine(params, stats, self._epsilon)
        return add_bias(x * spread(scale, x.shape), bias)


def affine(params: PyTree, stats: PyTree | None, epsilon: float) -> tuple[Array, Array]:
    """Return the (scale, bias) float32[..., F] of a norm with running statistics, or without."""
    if stats is None:
        return params["scale"], params["bias"]
    scale = params["scale"] * lax.rsqrt(stats["var"] + epsilon)
    return scale, params["bias"] - stats["mean"] * scale


def board_scale(x: Array) -> float:
    """Return the factor of the pooled mean of x [B, H, W, C]: (b - 14) / 10 with b = sqrt(H W) (KG,
    appendix A.1)."""
    return (math.sqrt(x.shape[1] * x.shape[2]) - COMMON_WIDTH) / 10.0


def pool(x: Array) -> Array:
    """Return [B, 3C] of x [B, H, W, C]: mean, mean scaled by the board's width, and maximum."""
    mean = jnp.mean(x, (1, 2))
    return jnp.concatenate([mean, mean * board_scale(x), board_max(x)], axis=-1)


@jax.custom_vjp
def board_max(x: Array) -> Array:
    """Return the maximum [B, C] of x [B, H, W, C] over the board.

    Its gradient goes to the first point with the maximum. That of `jnp.max` compares x with the
    maximum and divides by the number of equal points: where XLA computes x twice with different
    rounding there are none, and the gradient is NaN (seen on CPUs without XLA's new fusion
    emitters, jax 0.10.2).
    """
    return jnp.max(x, (1, 2))


def _board_max_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    points = x.reshape(x.shape[0], -1, x.shape[-1])
    return board_max(x), (x, jnp.argmax(points, axis=1))


def _board_max_backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array]:
    x, index = saved
    place = lax.broadcasted_iota(index.dtype, (1, x.shape[1] * x.shape[2], 1), 1)
    by_points = jnp.where(place == index[:, None], gradient[:, None], 0.0)
    return (by_points.reshape(x.shape),)


board_max.defvjp(_board_max_forward, _board_max_backward)


def pool_for_value(x: Array) -> Array:
    """Return [B, 3C] of x [B, H, W, C]: mean, and mean scaled by the board's width linearly and
    quadratically (KG, appendix A.5)."""
    mean, scale = jnp.mean(x, (1, 2)), board_scale(x)
    return jnp.concatenate([mean, mean * scale, mean * (scale**2 - 0.1)], axis=-1)


def bias_by_pooled(norms: Norms, kernel: Array, y: Array) -> tuple[Array, Array]:
    """Pool the last P channels of y [B, H, W, R + P] and add them, mapped by kernel [3P, R]
    ("pooled_bias"), to the first R as a bias.

    Returns:
      The first R channels after norm and ReLU, [B, H, W, R], and the pooled channels [B, 3P].
    """
    others = kernel.shape[-1]
    pooled = pool(jax.nn.relu(norms("pool", y[..., others:])))
    bias = jnp.dot(pooled, kernel, precision=lax.Precision.HIGHEST)
    y = y[..., :others].astype(jnp.float32) + bias[:, None, None, :]
    return jax.nn.relu(norms("middle", y)), pooled


def fold_first(params: PyTree, stats: PyTree, epsilon: float) -> PyTree:
    """Return a layer, or a stack of layers, with the norms right after its "first" convolution
    folded into it: their biases stay."""
    scale, bias = affine(params["middle"], stats.get("middle"), epsilon)
    folded = {**params, "middle": {"bias": bias}}
    if "pooled_bias" in params:
        folded["pooled_bias"] = params["pooled_bias"] * scale[..., None, :]
        pool_scale, pool_bias = affine(params["pool"], stats.get("pool"), epsilon)
        folded["pool"] = {"bias": pool_bias}
        scale = jnp.concatenate([scale, pool_scale], axis=-1)
    window = (1,) * (params["first"].ndim - scale.ndim)
    folded["first"] = params["first"] * scale.reshape(*scale.shape[:-1], *window, scale.shape[-1])
    return folded
