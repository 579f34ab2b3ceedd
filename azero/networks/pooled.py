"""A tower with global pooling, whose parameters fit boards of any size.

Sources: KG = Wu 2019 (arXiv 1902.10565), section 3.3 and appendix A; KGM = KataGo's
docs/KataGoMethods.md. The forward pass is written once, over a dictionary of layers, either as
trained or folded for inference.

    tower     3x3 convolution; residual blocks of norm, ReLU, 3x3, norm, ReLU, 3x3; norm, ReLU.
    pooling   in every `pool_every`-th block some channels of the first convolution are pooled over
              the board; a linear layer maps them to biases of the other channels.
    nested    with `inner_blocks` a block is a norm, ReLU, 1x1 convolution to half of the filters,
              residual blocks, of which the last one pools if the block does, and a norm, ReLU and
              1x1 convolution back (KGM, 'Nested Bottleneck Residual Nets').
    norms     "batch": batch norms. "fixed": scales and biases, initialised so that the output of
              every norm has a variance of one, and one batch norm at the end of the tower (KGM).
    heads     `azero.networks.pooled_heads`.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from azero.networks.convolution import CONVOLUTIONS, convolve
from azero.networks.inference import map_chunks
from azero.networks.network import Network, Outputs, Shapes
from azero.networks.pooled_heads import fold_heads, head_names, head_specs, heads
from azero.networks.pooled_layers import (
    HE,
    SMALL,
    Norms,
    ParamSpec,
    affine,
    bias_by_pooled,
    fold_first,
    init_params,
    init_stats,
    norm_specs,
    stack,
)
from azero.networks.settings import PooledConfig
from azero.types import Array, PyTree


class _Mode(NamedTuple):
    """The mode of the forward pass: training, evaluation or inference."""

    convolve: Callable[[Array, Array], Array]
    """(x [B, H, W, C], kernel or its prepared weights) -> [B, H, W, F]"""
    dtype: jnp.dtype
    """Of the tower."""
    make_norms: Callable[[PyTree, PyTree], Norms]
    """(parameters, statistics) -> the norms of a layer"""
    unroll: bool
    """Unroll the loop over the blocks."""


def pooled_network(
    config: PooledConfig, game: Shapes, chunk: int | None, unroll: bool, train_unroll: bool
) -> Network:
    """Make the network of resolved settings for the planes and moves of `game`.

    `chunk` is that of `azero.networks.inference.map_chunks`; `unroll` unrolls the loop over the
    blocks, `train_unroll` that of training.

    Raises:
      ValueError: the actions are neither the points and pass nor the same number for every square.
    """
    specs, epsilon = _specs(config, game), config.batch_norm_epsilon
    train_convolve = functools.partial(convolve, config.convolution)
    inference_convolve = CONVOLUTIONS[config.convolution].apply
    train_dtype, inference_dtype = jnp.dtype(config.train_dtype), jnp.dtype(config.inference_dtype)

    def make_norms(is_training: bool) -> Callable[[PyTree, PyTree], Norms]:
        return lambda params, stats: Norms(
            params, stats, is_training, config.batch_norm_momentum, epsilon
        )

    training = _Mode(train_convolve, train_dtype, make_norms(True), train_unroll)
    frozen = _Mode(train_convolve, train_dtype, make_norms(False), unroll)
    inference = _Mode(inference_convolve, inference_dtype, make_norms(False), unroll)

    def init(key: Array) -> PyTree:
        params = init_params(specs, key)
        if config.norm == "batch":
            return {"params": params, "batch_stats": init_stats(params)}
        return {
            "params": _fix_variance(config, params),
            "batch_stats": init_stats({"end": params["end"]}),
        }

    def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
        outputs, _ = _forward(frozen, variables["params"], variables["batch_stats"], planes)
        return outputs.logits, outputs.value

    def train_apply(variables: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
        return _forward(training, variables["params"], variables["batch_stats"], planes)

    def fold(variables: PyTree) -> PyTree:
        return _fold(config, game.board_shape[1], variables["params"], variables["batch_stats"])

    def analyse(folded: PyTree, planes: Array) -> Outputs:
        return map_chunks(lambda part: _forward(inference, folded, {}, part)[0], planes, chunk)

    def infer(folded: PyTree, planes: Array) -> tuple[Array, Array]:
        def evaluate(part: Array) -> tuple[Array, Array]:
            outputs, _ = _forward(inference, folded, {}, part)  # XLA drops the other heads
            return outputs.logits, outputs.value

        return map_chunks(evaluate, planes, chunk)

    return Network(init, apply, train_apply, fold, infer, analyse, head_names(specs))


def count_groups(config: PooledConfig) -> tuple[int, int]:
    """Return the number of groups of `pool_every` blocks, whose last block pools, and the number of
    plain blocks left over."""
    return divmod(config.blocks - 1, config.pool_every)


def _specs(config: PooledConfig, game: Shapes) -> PyTree:
    """Return the specs of the parameters; those of blocks of the same kind are stacked."""
    filters, pooled = config.block_filters, config.pooled_filters
    others = filters - pooled
    plain = {
        "start": norm_specs(filters),
        "first": ParamSpec(HE, (3, 3, filters, filters)),
        "middle": norm_specs(filters),
        "second": ParamSpec(HE, (3, 3, filters, filters)),
    }
    pooling = {
        **plain,
        "pool": norm_specs(pooled),
        "pooled_bias": ParamSpec(SMALL, (3 * pooled, others)),
        "middle": norm_specs(others),
        "second": ParamSpec(HE, (3, 3, others, filters)),
    }
    if config.inner_blocks:
        inner_plain = {"plain": stack(plain, config.inner_blocks)}
        inner_pooling: PyTree = {"pooling": pooling}
        if config.inner_blocks > 1:
            inner_pooling["plain"] = stack(plain, config.inner_blocks - 1)
        plain = _nested_specs(config.filters, filters, inner_plain)
        pooling = _nested_specs(config.filters, filters, inner_pooling)
    groups, left = count_groups(config)
    specs = {
        "stem": ParamSpec(HE, (3, 3, game.num_planes, config.filters)),
        "end": norm_specs(config.filters),
        **head_specs(config, game),
    }
    if groups:
        specs["pooling"] = stack(pooling, groups)
    if groups and config.pool_every > 1:
        specs["plain"] = stack(plain, groups, config.pool_every - 1)
    if left:
        specs["left"] = stack(plain, left)
    return specs


def _nested_specs(outer: int, inner: int, blocks: PyTree) -> PyTree:
    """Return the specs of a nested bottleneck of `blocks`, from `outer` filters to `inner` ones."""
    return {
        "start": norm_specs(outer),
        "reduce": ParamSpec(HE, (outer, inner)),
        "inner": blocks,
        "end": norm_specs(inner),
        "expand": ParamSpec(HE, (inner, outer)),
    }


def _fix_variance(config: PooledConfig, params: PyTree) -> PyTree:
    """Return the parameters with the scales of the norms at the start of the blocks set to undo the
    variance of their input.

    The stem has a variance of one and every block adds one, so the input of the n-th block has n
    (KGM, 'Fixed Variance Initialization'; there a constant factor and a scale that starts at one).
    """
    groups, left = count_groups(config)
    index = jnp.arange(1, config.blocks, dtype=jnp.float32)
    in_groups = index[: index.size - left].reshape(groups, config.pool_every)
    numbers = {
        "plain": in_groups[:, :-1],
        "pooling": in_groups[:, -1],
        "left": index[index.size - left :],
    }

    def scale_norm(norm: PyTree, variance: Array) -> PyTree:
        return {**norm, "scale": norm["scale"] / variance[..., None] ** 0.5}

    def scaled(block: PyTree, number: Array) -> PyTree:
        block = {**block, "start": scale_norm(block["start"], number)}
        if "inner" not in block:
            return block
        count = config.inner_blocks
        plain = jnp.arange(1, count + ("pooling" not in block["inner"]), dtype=jnp.float32)
        variances = {"plain": plain, "pooling": jnp.float32(count)}
        inner = {name: scaled(layer, variances[name]) for name, layer in block["inner"].items()}
        return {**block, "inner": inner, "end": scale_norm(block["end"], jnp.float32(count + 1))}

    return {
        name: scaled(layer, numbers[name]) if name in numbers else layer
        for name, layer in params.items()
    }


def _forward(mode: _Mode, params: PyTree, stats: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
    """Return the network's outputs for planes [B, H, W, C], and its new running statistics."""

    def block(x: Array, layer: tuple[PyTree, PyTree]) -> tuple[Array, PyTree]:
        (params, stats), norms = layer, mode.make_norms(*layer)
        y = jax.nn.relu(norms("start", x))
        inner_stats: PyTree = {}
        if "inner" in params:
            y = _pointwise(mode, y, params["reduce"])
            y, inner_stats = group(y, layers_of(params["inner"], stats.get("inner", {})))
            y = _pointwise(mode, jax.nn.relu(norms("end", y)), params["expand"])
        else:
            y = _convolve(mode, y, params["first"])
            if "pooled_bias" in params:
                y, _ = bias_by_pooled(norms, params["pooled_bias"], y)
            else:
                y = jax.nn.relu(norms("middle", y))
            y = _convolve(mode, y, params["second"])
        new_stats = norms.new_stats | ({"inner": inner_stats} if inner_stats else {})
        return (x.astype(jnp.float32) + y.astype(jnp.float32)).astype(mode.dtype), new_stats

    def group(x: Array, layers: dict[str, tuple[PyTree, PyTree]]) -> tuple[Array, PyTree]:
        new_stats = {}
        if "plain" in layers:
            x, new_stats["plain"] = lax.scan(block, x, layers["plain"], unroll=mode.unroll)
        if "pooling" in layers:
            x, new_stats["pooling"] = block(x, layers["pooling"])
        return x, {name: layer for name, layer in new_stats.items() if layer}

    def layers_of(params: PyTree, stats: PyTree) -> dict[str, tuple[PyTree, PyTree]]:
        return {
            name: (params[name], stats.get(name, {}))
            for name in ("plain", "pooling", "left")
            if name in params
        }

    x = _convolve(mode, planes, params["stem"])
    new_stats: dict[str, PyTree] = {}
    layers = layers_of(params, stats)
    left = layers.pop("left", None)
    if layers:
        x, new_stats = lax.scan(group, x, layers, unroll=mode.unroll)
    if left is not None:
        x, new_stats["left"] = lax.scan(block, x, left, unroll=mode.unroll)
    norms = mode.make_norms(params, stats)
    outputs, head_stats = heads(mode.make_norms, params, stats, jax.nn.relu(norms("end", x)))
    new_stats = {name: layer for name, layer in new_stats.items() if layer}
    return outputs, new_stats | norms.new_stats | head_stats


def _convolve(mode: _Mode, x: Array, weights: Array) -> Array:
    """Return a 3x3 convolution of the tower, in the tower's dtype."""
    return mode.convolve(x.astype(mode.dtype), weights.astype(mode.dtype))


def _pointwise(mode: _Mode, x: Array, weights: Array) -> Array:
    """Return a 1x1 convolution of the tower by weights [C, F], in the tower's dtype."""
    return jnp.dot(x.astype(mode.dtype), weights.astype(mode.dtype))


def _fold(config: PooledConfig, board_width: int, params: PyTree, stats: PyTree) -> PyTree:
    """Return the inference parameters: norms right after a convolution are folded into it, others
    become a scale and a bias; 3x3 kernels are prepared for the board and cast."""
    epsilon = config.batch_norm_epsilon

    def prepare(kernel: Array) -> Array:
        weights = CONVOLUTIONS[config.convolution].prepare(kernel, board_width)
        return weights.astype(jnp.dtype(config.inference_dtype))

    def fold_norm(layer: PyTree, running: PyTree, name: str) -> PyTree:
        scale, bias = affine(layer[name], running.get(name), epsilon)
        return {"scale": scale, "bias": bias}

    def fold_block(layer: PyTree, running: PyTree) -> PyTree:
        start = fold_norm(layer, running, "start")
        if "inner" in layer:
            inner = fold_blocks(layer["inner"], running.get("inner", {}))
            return {
                **layer,
                "start": start,
                "inner": inner,
                "end": fold_norm(layer, running, "end"),
            }
        folded = fold_first(layer, running, epsilon)
        kernels = {name: prepare(folded[name]) for name in ("first", "second")}
        return {**folded, **kernels, "start": start}

    def fold_blocks(layers: PyTree, running: PyTree) -> PyTree:
        return {
            name: fold_block(layers[name], running.get(name, {}))
            for name in ("plain", "pooling", "left")
            if name in layers
        }

    return {
        "stem": prepare(params["stem"]),
        **fold_blocks(params, stats),
        "end": fold_norm(params, stats, "end"),
        **fold_heads(params, stats, epsilon),
    }
