"""The optimiser: learning rates, the L2 term of the loss, clipping, SGD with momentum, AdamW or
Muon."""

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import optax.contrib

from azero.learn.settings import LearnerConfig
from azero.types import Array, PyTree

_POINTWISE = ("reduce", "expand")
"""Names of 1x1 convolutions without window axes (`azero.networks.pooled`): of three groups of three
blocks, their stack has the shape of 3x3 kernels."""
_ADAM_RMS = 0.2
"""Updates of Muon are scaled to this root mean square, that of AdamW's, so that both take the same
learning rate (Liu et al. 2025, arXiv 2502.16982, section 2.2)."""


def make_penalty(config: LearnerConfig) -> tuple[float, Callable[[PyTree, PyTree], PyTree]]:
    """Return c of the loss's term c ||theta||^2 (AGZ, equation 1), and what adds its gradient.

    The gradient is 2 c theta, of all parameters, biases and those of batch norm included. AdamW and
    Muon decay the weights themselves, so that c is zero for them.

    Returns:
      c, and a function (gradients, params) -> gradients. It is not part of the optimiser, for two
      reasons: metrics have the norm of what is clipped, and the optimiser's state keeps its tree.
    """
    weight = config.l2 if config.optimiser == "momentum" else 0.0
    decay = optax.add_decayed_weights(2 * weight)

    def penalise(gradients: PyTree, params: PyTree) -> PyTree:
        return decay.update(gradients, optax.EmptyState(), params)[0]

    return weight, penalise


def make_optimiser(config: LearnerConfig) -> optax.GradientTransformation:
    """Return SGD with momentum (AGZ), AdamW or Muon, these with decoupled weight decay, after the
    clipping.

    The state is that of the optimiser alone: an `EmptyState` in a chain would change its tree, by
    which checkpoints are read, and a run could not begin to clip.
    """
    schedule = make_schedule(config)
    sgd = optax.sgd(schedule, momentum=config.momentum)
    adamw = optax.adamw(schedule, weight_decay=config.l2)
    muon = optax.contrib.muon(
        schedule,
        weight_decay=config.l2,
        adam_weight_decay=config.l2,
        muon_weight_dimension_numbers=_matrices,
        consistent_rms=_ADAM_RMS,
    )
    optimiser = {"momentum": sgd, "adamw": adamw, "muon": muon}[config.optimiser]
    if config.clip_norm is None:
        return optimiser
    clip = optax.clip_by_global_norm(config.clip_norm)

    def update(
        gradients: PyTree, state: PyTree, params: PyTree | None = None
    ) -> tuple[PyTree, PyTree]:
        clipped, _ = clip.update(gradients, optax.EmptyState())
        return optimiser.update(clipped, state, params)

    return optax.GradientTransformation(optimiser.init, update)


def _matrices(params: PyTree) -> PyTree:
    """Return which axes of each matrix are its inputs and which its outputs, as Muon takes them;
    None for scales and biases. Matrices are [..., inputs, outputs], and kernels [..., 3, 3, inputs,
    outputs]; the axes before them are those of layers that are stacked."""

    def axes(path: tuple[Any, ...], leaf: Array) -> optax.contrib.MuonDimensionNumbers | None:
        name, last = jax.tree_util.keystr(path[-1:], simple=True), leaf.ndim - 1
        if name in ("scale", "bias") or last < 1:
            return None
        is_kernel = leaf.shape[-4:-2] == (3, 3) and name not in _POINTWISE
        inputs = (last - 3, last - 2, last - 1) if is_kernel else (last - 1,)
        return optax.contrib.MuonDimensionNumbers(inputs, (last,))

    return jax.tree_util.tree_map_with_path(axes, params)


def make_schedule(config: LearnerConfig) -> optax.Schedule:
    """Return the learning rate as a function of the training step (int32[] -> float32[])."""
    starts, rates = zip(*config.learning_rate, strict=True)
    if config.rate_between == "steps":
        parts = [optax.constant_schedule(rate) for rate in rates]
    else:
        decay = optax.linear_schedule if config.rate_between == "linear" else _cosine_schedule
        pairs = itertools.pairwise(config.learning_rate)
        parts = [decay(rate, last, end - start) for (start, rate), (end, last) in pairs]
        parts.append(optax.constant_schedule(rates[-1]))
    joined = optax.join_schedules(parts, starts[1:])

    def schedule(step: Array) -> Array:
        rate = jnp.asarray(joined(step), jnp.float32)
        if config.warmup_steps == 0:
            return rate
        # optax has warm-ups that end at one rate, and no product of schedules: here the first
        # rates may change while it lasts.
        done = (jnp.asarray(step, jnp.float32) + 1.0) / config.warmup_steps
        return rate * jnp.minimum(1.0, done)

    return schedule


def _cosine_schedule(first: float, last: float, steps: int) -> optax.Schedule:
    """Return half a cosine wave from rate `first` to `last`, either of which may be zero.

    The last rate of `optax.cosine_decay_schedule` is a share of the first one.
    """
    fall = optax.cosine_decay_schedule(first - last, steps)
    return lambda step: last + fall(step)
