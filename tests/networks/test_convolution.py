"""The ways to convolve against the definition, on boards of many shapes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.networks import convolution as convolutions
from azero.networks.convolution import CONVOLUTIONS, convolve
from azero.networks.minimal_filtering import minimal_filter, tile_width


def correlate(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """The definition, in float64: y[h, w] = sum of x[h + r - 1, w + c - 1] kernel[r, c], zero
    outside the board."""
    batch, height, width, _ = x.shape
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    y = np.zeros((batch, height, width, kernel.shape[-1]))
    for row in range(3):
        for column in range(3):
            y += padded[:, row : row + height, column : column + width] @ kernel[
                row, column
            ].astype(np.float64)
    return y


def draw(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("outputs", [2, 3, 4, 5])
def test_minimal_filter_is_a_correlation(outputs: int) -> None:
    inverse, kernel, forward = (np.asarray(matrix) for matrix in minimal_filter(outputs))
    signal, taps = draw((outputs + 2,), 0).astype(np.float64), draw((3,), 1).astype(np.float64)
    expected = [signal[i : i + 3] @ taps for i in range(outputs)]
    np.testing.assert_allclose(
        inverse @ ((kernel @ taps) * (forward @ signal)), expected, atol=1e-12
    )


def test_tile_width_takes_few_products() -> None:
    assert {width: tile_width(width) for width in (1, 2, 3, 5, 7, 9, 13, 19)} == {
        1: 2,
        2: 2,
        3: 3,
        5: 5,
        7: 4,
        9: 3,
        13: 5,
        19: 4,
    }


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (5, 5), (7, 3), (8, 8), (9, 9), (19, 19)])
@pytest.mark.parametrize("name", sorted(CONVOLUTIONS))
def test_convolution_is_the_definition(name: str, shape: tuple[int, int]) -> None:
    x, kernel = draw((3, *shape, 6), 0), draw((3, 3, 6, 4), 1)
    expected = correlate(x, kernel)

    np.testing.assert_allclose(
        jax.jit(functools.partial(convolve, name))(x, kernel),
        expected,
        atol=2e-5 * np.abs(expected).max(),
    )


@pytest.mark.parametrize("shape", [(4, 5), (7, 8), (9, 6)])
@pytest.mark.parametrize("name", sorted(CONVOLUTIONS))
def test_gradients_are_those_of_the_definition(name: str, shape: tuple[int, int]) -> None:
    height, width = shape
    x, weight = draw((2, *shape, 3), 0), draw((2, *shape, 2), 2)
    kernel = draw((3, 3, 3, 2), 1)

    def loss(x: jax.Array, kernel: jax.Array) -> jax.Array:
        return jnp.sum(convolve(name, x, kernel) * weight)

    by_x, by_kernel = jax.jit(jax.grad(loss, argnums=(0, 1)))(x, kernel)
    # The loss is linear in x and in the kernel: each gradient entry is the loss at a unit vector.
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected_kernel = np.stack(
        [
            [
                np.einsum("bhwc,bhwf->cf", padded[:, r : r + height, c : c + width], weight)
                for c in range(3)
            ]
            for r in range(3)
        ]
    )
    np.testing.assert_allclose(
        by_kernel, expected_kernel, atol=2e-5 * np.abs(expected_kernel).max()
    )
    unit = np.zeros_like(x)
    unit[1, 0, 4, 2] = 1.0
    np.testing.assert_allclose(
        by_x[1, 0, 4, 2], np.sum(correlate(unit, kernel) * weight), atol=2e-5
    )


def test_prepare_keeps_leading_axes() -> None:
    kernels = draw((2, 3, 3, 6, 4), 0)
    for name, convolution in CONVOLUTIONS.items():
        stacked = convolution.prepare(jnp.asarray(kernels), 9)
        one_by_one = jnp.stack([convolution.prepare(jnp.asarray(kernel), 9) for kernel in kernels])
        np.testing.assert_array_equal(stacked, one_by_one, err_msg=name)


@pytest.mark.parametrize("name", ["dots", "winograd"])
def test_a_batch_in_parts_is_convolved_like_a_whole_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 4 * jax.device_count()
    x, kernel = draw((size, 5, 4, 3), 0), draw((3, 3, 3, 2), 1)
    gradient = draw((size, 5, 4, 2), 2)
    found = {}
    for parts in (1, 4):
        room = x.nbytes // parts // jax.device_count()
        monkeypatch.setattr(convolutions, "PART_BYTES", room)
        y, back = jax.vjp(jax.jit(lambda x, kernel: convolve(name, x, kernel)), x, kernel)
        loops = str(jax.make_jaxpr(lambda x, kernel: convolve(name, x, kernel))(x, kernel))
        assert ("scan" in loops) == (parts > 1)
        found[parts] = y, *back(gradient)
    for whole, divided in zip(found[1], found[4], strict=True):
        np.testing.assert_allclose(divided, whole, atol=2e-5 * np.abs(whole).max())
