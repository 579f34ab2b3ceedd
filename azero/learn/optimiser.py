"""The optimiser: learning rates, the L2 term of the loss, clipping, SGD with momentum or AdamW."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax.numpy as jnp
import optax

from azero.learn.settings import LearnerConfig
from azero.types import Array, PyTree


def make_penalty(config: LearnerConfig) -> tuple[float, Callable[[PyTree, PyTree], PyTree]]:
    """Return c of the loss's term c ||theta||^2 (AGZ, equation 1), and what adds its gradient.

    The gradient is 2 c theta, of all parameters, biases and those of batch norm included. AdamW
    decays the weights itself, so that c is zero for it.

    Returns:
      c, and a function (gradients, params) -> gradients. It is no part of the optimiser, for two
      reasons: metrics have the norm of what is clipped, and the optimiser's state keeps its tree.
    """
    weight = config.l2 if config.optimiser == "momentum" else 0.0
    decay = optax.add_decayed_weights(2 * weight)

    def penalise(gradients: PyTree, params: PyTree) -> PyTree:
        return decay.update(gradients, optax.EmptyState(), params)[0]

    return weight, penalise


def make_optimiser(config: LearnerConfig) -> optax.GradientTransformation:
    """Return SGD with momentum (AGZ) or AdamW with decoupled weight decay, after the clipping.

    The state is that of SGD or AdamW alone: an `EmptyState` in a chain would change its tree, by
    which checkpoints are read, and a run could not begin to clip.
    """
    schedule = make_schedule(config)
    sgd = optax.sgd(schedule, momentum=config.momentum)
    adamw = optax.adamw(schedule, weight_decay=config.l2)
    optimiser = sgd if config.optimiser == "momentum" else adamw
    if config.clip_norm is None:
        return optimiser
    clip = optax.clip_by_global_norm(config.clip_norm)

    def update(
        gradients: PyTree,
        state: PyTree,
        params: PyTree | None = None,
    ) -> tuple[PyTree, PyTree]:
        clipped, _ = clip.update(gradients, optax.EmptyState())
        return optimiser.update(clipped, state, params)

    return optax.GradientTransformation(optimiser.init, update)


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
