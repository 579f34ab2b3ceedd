"""Natively batched functions: traced once for each shape, whatever calls them."""

import jax
import numpy as np

from azero.games.batching import CHUNK, batch_native


def test_a_shape_is_traced_once() -> None:
    traced = []

    def add(number: int, array: jax.Array) -> jax.Array:
        traced.append(array.shape)
        return array + number

    numbers = np.arange(3 * CHUNK, dtype=np.int32)
    for batch in (3, 3, 3 * CHUNK):
        added = jax.jit(jax.vmap(batch_native(add, 2)))(numbers[:batch])
        np.testing.assert_array_equal(added, numbers[:batch] + 2)
    assert traced == [(1,), (3,), (CHUNK,), (3 * CHUNK,)]
