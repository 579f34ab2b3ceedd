"""Learning rates: constant between given steps as published, or on lines or cosine waves between them, with an optional warm-up."""

from __future__ import annotations

import jax.numpy as jnp
import optax

from azero.learn.settings import LearnerConfig
from azero.types import Array


def make_schedule(config: LearnerConfig) -> optax.Schedule:
    """Return the learning rate as a function of the training step (int32[] -> float32[])."""
    starts = [first for first, _ in config.learning_rate]
    rates = [rate for _, rate in config.learning_rate]

    def schedule(step: Array) -> Array:
        index = jnp.sum(step >= jnp.asarray(starts, jnp.int32)) - 1
        rate = jnp.asarray(rates, jnp.float32)[index]
        if config.rate_between != "steps":
            following = jnp.minimum(index + 1, len(starts) - 1)
            first, last = (jnp.asarray(starts, jnp.float32)[place] for place in (index, following))
            done = jnp.clip((jnp.asarray(step, jnp.float32) - first) / jnp.maximum(last - first, 1.0), 0.0, 1.0)
            share = done if config.rate_between == "linear" else (1.0 - jnp.cos(jnp.pi * done)) / 2.0
            rate = rate + share * (jnp.asarray(rates, jnp.float32)[following] - rate)
        if config.warmup_steps == 0:
            return rate
        done = (jnp.asarray(step, jnp.float32) + 1.0) / config.warmup_steps
        return rate * jnp.minimum(1.0, done)

    return schedule
