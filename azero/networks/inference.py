"""The fast path of self-play: batch norm folded into the convolutions, low precision, and chunks of
a batch that fit a CPU's cache."""

import functools
import math
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from azero.mesh import platform_dependent
from azero.networks.convolution import CONVOLUTIONS
from azero.networks.resnet import pointwise
from azero.networks.settings import ResNetConfig
from azero.types import Array, PyTree

T = TypeVar("T")
"""A tree of arrays."""


def fold(config: ResNetConfig, board_width: int, variables: PyTree) -> PyTree:
    """Return the inference parameters of `variables`: each convolution with its batch norm becomes
    {"weights", "bias"}.

    Everything is computed in float32; the weights of the towers are then cast to the inference
    type. Biases and heads stay float32.
    """
    params, stats = variables["params"], variables["batch_stats"]
    prepare, dtype = CONVOLUTIONS[config.convolution].prepare, jnp.dtype(config.inference_dtype)

    def fold_tower(layers: PyTree, running: PyTree) -> PyTree:
        if "kernel" not in layers:
            return {name: fold_tower(layers[name], running[name]) for name in layers}
        kernel, bias = _fold_layer(layers, running, config.batch_norm_epsilon)
        return {"weights": prepare(kernel, board_width).astype(dtype), "bias": bias}

    def fold_module(name: str, module: PyTree, running: PyTree) -> PyTree:
        if name.endswith("tower"):
            return fold_tower(module, running)
        if name == "policy" and config.policy_head == "planes":
            return {**module, "conv": fold_tower(module["conv"], running["conv"])}
        kernel, bias = _fold_layer(module["conv"], running["conv"], config.batch_norm_epsilon)
        return {**module, "conv": {"weights": kernel[0, 0], "bias": bias}}

    return {name: fold_module(name, module, stats[name]) for name, module in params.items()}


def _fold_layer(layer: PyTree, running: PyTree, epsilon: float) -> tuple[Array, Array]:
    """Return the kernel [..., k, k, C, F] and the bias [..., F] of a convolution (or a stack of
    them) with its batch norm folded in."""
    norm, statistics = layer["norm"], running["norm"]
    scale = norm["scale"] * lax.rsqrt(statistics["var"] + epsilon)
    bias = norm["bias"] - statistics["mean"] * scale
    return layer["kernel"] * scale[..., None, None, None, :], bias


def infer(
    config: ResNetConfig, folded: PyTree, planes: Array, chunk: int | None, unroll: int
) -> tuple[Array, Array]:
    """Return (logits float32[B, A], value float32[B]) of planes [B, H, W, C].

    `chunk` is the number of positions evaluated at a time, one chunk after the other; None
    evaluates the whole batch at once. `unroll` is the number of residual blocks per iteration of
    the loop over them (see `jax.lax.scan`).
    """
    return map_chunks(functools.partial(_infer_chunk, config, unroll, folded), planes, chunk)


def map_chunks(evaluate: Callable[[Array], T], planes: Array, chunk: int | None) -> T:
    """Return `evaluate(planes)`, a tree of arrays [B, ...], for planes [B, H, W, C], computed for
    at most `chunk` positions at a time; None is all at once."""
    batch = planes.shape[0]
    if chunk is None or batch <= chunk:
        return evaluate(planes)
    chunks = -(-batch // chunk)
    padded = jnp.pad(planes, ((0, chunks * chunk - batch), (0, 0), (0, 0), (0, 0)))
    outputs = lax.map(evaluate, padded.reshape(chunks, chunk, *planes.shape[1:]))
    return jax.tree.map(lambda leaf: leaf.reshape(chunks * chunk, *leaf.shape[2:])[:batch], outputs)


def _infer_chunk(
    config: ResNetConfig, unroll: int, folded: PyTree, planes: Array
) -> tuple[Array, Array]:
    layer = functools.partial(_layer, CONVOLUTIONS[config.convolution].apply)
    tower = functools.partial(_tower, layer=layer, is_residual=config.tower == "res", unroll=unroll)
    x = planes.astype(jnp.dtype(config.inference_dtype))
    if config.heads == "dual":
        policy_features = value_features = tower(folded["tower"], x)
    else:
        policy_features = tower(folded["policy_tower"], x)
        value_features = tower(folded["value_tower"], x)
    policy, value = folded["policy"], folded["value"]
    if config.policy_head == "planes":
        features = jax.nn.relu(layer(policy["conv"], policy_features))
        logits = add_bias(pointwise(features, policy["kernel"][0, 0]), policy["bias"]).reshape(
            planes.shape[0], -1
        )
    else:
        logits = dense(policy["logits"], _head(policy["conv"], policy_features))
    hidden = jax.nn.relu(dense(value["hidden"], _head(value["conv"], value_features)))
    return logits, jnp.tanh(dense(value["value"], hidden))[:, 0]


def _layer(convolve: Callable[[Array, Array], Array], params: PyTree, x: Array) -> Array:
    """Return float32[B, H, W, F] of a 3x3 convolution with its batch norm folded in, before the
    ReLU."""
    return add_bias(convolve(x, params["weights"]).astype(jnp.float32), params["bias"])


def _tower(
    layers: PyTree,
    x: Array,
    layer: Callable[[PyTree, Array], Array],
    is_residual: bool,
    unroll: int,
) -> Array:
    def block(x: Array, params: PyTree) -> tuple[Array, None]:
        y = layer(params["first"], x)
        if "second" in params:
            y = layer(params["second"], jax.nn.relu(y).astype(x.dtype))
        if is_residual:
            y = y + x.astype(jnp.float32)
        return jax.nn.relu(y).astype(x.dtype), None

    x = jax.nn.relu(layer(layers["stem"], x)).astype(x.dtype)
    if "blocks" not in layers:
        return x
    return lax.scan(block, x, layers["blocks"], unroll=unroll)[0]


def _head(params: PyTree, features: Array) -> Array:
    """Return the flattened float32[B, H W F] output of a head's 1x1 convolution."""
    y = add_bias(pointwise(features, params["weights"]), params["bias"])
    return jax.nn.relu(y).reshape(features.shape[0], -1)


def dense(params: PyTree, x: Array) -> Array:
    """Apply a linear layer {"kernel", "bias"} to x [B, C] at full float32 precision."""
    return add_bias(jnp.dot(x, params["kernel"], precision=lax.Precision.HIGHEST), params["bias"])


def add_bias(x: Array, bias: Array) -> Array:
    """Add bias [F] along the last axis of x."""
    return x + spread(bias, x.shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def spread(values: Array, shape: tuple[int, ...]) -> Array:
    """Repeat values [F] for all positions of `shape`, [..., F]; the gradient is `sum_positions`."""
    return jnp.broadcast_to(values, shape)


@jax.custom_vjp
def sum_positions(x: Array) -> Array:
    """Return the sums [F] of x [..., F]; the gradient is `spread`.

    On CPUs by a product with ones: XLA sums windows of 32 rows, unvectorised, and first stores what
    is summed, a tenth of a training step more (docs/speed-changes.md). Every device sums its own
    positions first, because a collective inside a branch may deadlock.
    """
    num_parts = math.gcd(x.shape[0], jax.device_count())
    parts = x.reshape(num_parts, -1, *x.shape[1:])
    return platform_dependent(parts, cpu=_sum_by_product, default=_sum).sum(axis=0)


def _sum_by_product(parts: Array) -> Array:
    rows = parts.reshape(parts.shape[0], -1, parts.shape[-1])
    ones = jnp.ones(rows.shape[:2], rows.dtype)
    product = functools.partial(jnp.einsum, "dn,dnf->df", precision=lax.Precision.HIGHEST)
    return product(ones, rows, preferred_element_type=jnp.float32).astype(rows.dtype)


def _sum(parts: Array) -> Array:
    return jnp.sum(parts, axis=tuple(range(1, parts.ndim - 1)))


spread.defvjp(
    lambda values, shape: (spread(values, shape), None),
    lambda shape, _, gradient: (sum_positions(gradient),),
)
sum_positions.defvjp(
    lambda x: (sum_positions(x), x.shape), lambda shape, gradient: (spread(gradient, shape),)
)
