"""Sums, maxima and softmax over edges are those of numpy."""

import jax
import numpy as np
import pytest

from azero.search.batched.reductions import edge_max, edge_softmax, edge_sum


@pytest.mark.parametrize("shape", [(1,), (3, 82), (2, 5, 362)])
def test_they_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(jax.jit(edge_sum)(values), values.sum(-1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(jax.jit(edge_max)(values), values.max(-1))
    values[..., 1::2] = -np.inf
    powers = np.exp(values)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(jax.jit(edge_softmax)(values), expected, rtol=1e-5)
