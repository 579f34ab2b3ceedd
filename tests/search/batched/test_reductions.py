"""Sums, maxima and softmax over edges are those of numpy, draws those of JAX."""

import jax
import numpy as np
import pytest

from azero.search.batched.reductions import (
    argmax,
    categorical,
    edge_max,
    edge_softmax,
    edge_sum,
)


@pytest.mark.parametrize("shape", [(1,), (3, 82), (2, 5, 362)])
def test_they_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(jax.jit(edge_sum)(values), values.sum(-1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(jax.jit(edge_max)(values), values.max(-1))
    values[..., 1::2] = -np.inf
    powers = np.exp(values)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(jax.jit(edge_softmax)(values), expected, rtol=1e-5)


def test_the_first_of_the_highest_is_found_and_draws_are_those_of_jax() -> None:
    scores = np.random.default_rng(0).integers(-3, 4, (50, 11_259)).astype(np.float32)
    scores[0] = -np.inf
    scores[1, :-1] = -np.inf
    np.testing.assert_array_equal(jax.jit(argmax)(scores), scores.argmax(-1))
    key = jax.random.key(3)
    drawn = jax.jit(categorical)(key, scores)
    np.testing.assert_array_equal(drawn, jax.random.categorical(key, scores, axis=-1))
    assert drawn[1] == 11_258
