"""Learning rates at the steps where they change, and the L2 term."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from azero.learn.optimiser import make_optimiser, make_penalty, make_schedule
from azero.learn.settings import LearnerConfig


def test_published_schedule() -> None:
    """AGZ Extended Data Table 3, reinforcement learning."""
    schedule = jax.jit(make_schedule(LearnerConfig()))
    rates = {
        0: 1e-2,
        200_000: 1e-2,
        399_999: 1e-2,
        400_000: 1e-3,
        599_999: 1e-3,
        600_000: 1e-4,
        3_100_000: 1e-4,
    }
    for step, rate in rates.items():
        assert float(schedule(jnp.int32(step))) == pytest.approx(rate), step


def test_warm_up_is_linear_and_ends() -> None:
    schedule = make_schedule(LearnerConfig(learning_rate=((0, 0.8), (6, 0.1)), warmup_steps=4))
    assert [float(schedule(jnp.int32(step))) for step in range(7)] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 0.8, 0.8, 0.1]
    )


def test_one_cycle_on_lines_and_waves() -> None:
    cycle = LearnerConfig(learning_rate=((0, 0.0), (4, 0.8), (12, 0.0)), rate_between="linear")
    schedule = jax.jit(make_schedule(cycle))
    assert [float(schedule(jnp.int32(step))) for step in (0, 1, 4, 6, 8, 12, 100)] == pytest.approx(
        [0, 0.2, 0.8, 0.6, 0.4, 0, 0]
    )
    wave = make_schedule(LearnerConfig(learning_rate=((0, 1.0), (8, 0.0)), rate_between="cosine"))
    assert [float(wave(jnp.int32(step))) for step in (0, 2, 4, 8)] == pytest.approx(
        [1, 0.8535534, 0.5, 0]
    )
    rising = make_schedule(LearnerConfig(learning_rate=((0, 0.0), (8, 1.0)), rate_between="cosine"))
    assert [float(rising(jnp.int32(step))) for step in (0, 4, 8)] == pytest.approx([0, 0.5, 1])


def test_the_penalty_adds_the_gradient_of_the_l2_term() -> None:
    params = {"kernel": jnp.arange(6.0).reshape(2, 3), "bias": jnp.ones(3)}
    weight, penalise = make_penalty(LearnerConfig(l2=0.25))

    def term(params: dict[str, jax.Array]) -> jax.Array:
        return weight * sum((jnp.sum(jnp.square(leaf)) for leaf in params.values()), jnp.zeros(()))

    none = jax.tree.map(jnp.zeros_like, params)
    assert weight == 0.25 and jax.tree.all(
        jax.tree.map(jnp.array_equal, penalise(none, params), jax.grad(term)(params))
    )
    weight, penalise = make_penalty(LearnerConfig(l2=0.25, optimiser="adamw"))
    assert weight == 0.0 and penalise(params, params) is params, "AdamW decays the weights itself"


@pytest.mark.parametrize("optimiser", ["momentum", "adamw"])
def test_the_optimisers_state_is_that_of_checkpoints_whatever_is_set(optimiser: Any) -> None:
    params = {"kernel": jnp.ones((2, 3))}
    forms = {
        jax.tree.structure(
            make_optimiser(LearnerConfig(optimiser=optimiser, l2=l2, clip_norm=clip)).init(params)
        )
        for l2 in (0.0, 1.0)
        for clip in (None, 1.0)
    }
    assert len(forms) == 1
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(
            make_optimiser(LearnerConfig(optimiser=optimiser)).init(params)
        )
    ]
    written = {
        "momentum": ["[0].trace['kernel']", "[1].count"],
        "adamw": ["[0].count", "[0].mu['kernel']", "[0].nu['kernel']", "[2].count"],
    }
    assert paths == written[optimiser]


def test_muon_takes_every_pointwise_convolution_of_a_stack_as_a_matrix() -> None:
    """A stack of three groups of three blocks looks like a 3x3 kernel."""
    optimiser = make_optimiser(LearnerConfig(optimiser="muon", l2=0.0))
    gradients = jax.random.normal(jax.random.key(0), (3, 3, 6, 4))

    def updates(gradients: jax.Array) -> jax.Array:
        params = {"reduce": jnp.zeros_like(gradients)}
        return optimiser.update({"reduce": gradients}, optimiser.init(params), params)[0]["reduce"]

    alone = jnp.stack([jnp.stack([updates(one) for one in group]) for group in gradients])
    assert jnp.allclose(updates(gradients), alone, rtol=1e-3, atol=1e-7)
