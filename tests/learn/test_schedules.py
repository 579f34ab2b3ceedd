"""Learning rates at the steps where they change."""

import jax
import jax.numpy as jnp
import pytest

from azero.learn.schedules import make_schedule
from azero.learn.settings import LearnerConfig


def test_published_schedule() -> None:
    """AGZ Extended Data Table 3, reinforcement learning."""
    schedule = jax.jit(make_schedule(LearnerConfig()))
    rates = {0: 1e-2, 200_000: 1e-2, 399_999: 1e-2, 400_000: 1e-3, 599_999: 1e-3, 600_000: 1e-4, 3_100_000: 1e-4}
    for step, rate in rates.items():
        assert float(schedule(jnp.int32(step))) == pytest.approx(rate), step


def test_warm_up_is_linear_and_ends() -> None:
    schedule = make_schedule(LearnerConfig(learning_rate=((0, 0.8), (6, 0.1)), warmup_steps=4))
    assert [float(schedule(jnp.int32(step))) for step in range(7)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.1])


def test_one_cycle_on_lines_and_waves() -> None:
    cycle = LearnerConfig(learning_rate=((0, 0.0), (4, 0.8), (12, 0.0)), rate_between="linear")
    schedule = jax.jit(make_schedule(cycle))
    assert [float(schedule(jnp.int32(step))) for step in (0, 1, 4, 6, 8, 12, 100)] == pytest.approx([0, 0.2, 0.8, 0.6, 0.4, 0, 0])
    wave = make_schedule(LearnerConfig(learning_rate=((0, 1.0), (8, 0.0)), rate_between="cosine"))
    assert [float(wave(jnp.int32(step))) for step in (0, 2, 4, 8)] == pytest.approx([1, 0.8535534, 0.5, 0])
