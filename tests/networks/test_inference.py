"""The folded network against the original, with batch norms that do something."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untrained import draw_variables

from azero.mesh import batch_sharded, make_mesh
from azero.networks.inference import spread, sum_positions
from azero.networks.network import Inputs, Network
from azero.networks.resnet import pointwise
from azero.networks.settings import NetworkConfig, ResNetConfig
from azero.types import Array, PyTree

CONFIG = ResNetConfig(
    blocks=3, filters=16, train_dtype="float32", inference_dtype="float32", convolution="xla"
)


def shaken(network: Network) -> PyTree:
    """Variables whose batch norms are far from where they start: shifts, scales, means and
    variances all differ by filter."""
    variables = draw_variables(network)
    rng = np.random.default_rng(2)

    def shake(path: tuple, leaf: jax.Array) -> jax.Array:
        is_norm = any(getattr(part, "key", None) == "norm" for part in path)
        return (
            leaf + jnp.asarray(rng.uniform(-0.4, 0.4, leaf.shape), jnp.float32) if is_norm else leaf
        )

    return jax.tree_util.tree_map_with_path(shake, variables)


def draw_planes(batch: int, size: int) -> np.ndarray:
    return np.random.default_rng(0).random((batch, size, size, 17)) < 0.3


def differences(config: NetworkConfig, size: int, batch: int) -> tuple[float, float]:
    """Largest difference of the probabilities and of the value between `apply` in float32 and
    `infer`; logits are compared through a softmax in bf16 only."""
    planes = draw_planes(batch, size)
    network = config.build(Inputs((size, size), 17, size * size + 1))
    variables = shaken(network)
    logits, value = jax.jit(network.apply)(variables, planes)
    folded_logits, folded_value = jax.jit(network.infer)(jax.jit(network.fold)(variables), planes)
    if config.inference_dtype == "bfloat16":
        logits, folded_logits = jax.nn.softmax(logits), jax.nn.softmax(folded_logits)
    return float(jnp.abs(logits - folded_logits).max()), float(jnp.abs(value - folded_value).max())


@pytest.mark.parametrize("size", [5, 9, 19])
@pytest.mark.parametrize("convolution", ["xla", "dots", "winograd"])
def test_float32_agrees_to_1e_5(convolution: str, size: int) -> None:
    assert max(differences(dataclasses.replace(CONFIG, convolution=convolution), size, 16)) < 1e-5


@pytest.mark.parametrize("convolution", ["xla", "dots", "winograd"])
def test_the_planes_head_folds(convolution: str) -> None:
    config = dataclasses.replace(
        CONFIG, convolution=convolution, policy_head="planes", policy_filters=12
    )
    network = config.build(Inputs((5, 5), 17, 25 * 7))
    variables, planes = shaken(network), draw_planes(8, 5)
    logits, _ = jax.jit(network.apply)(variables, planes)
    folded_logits, _ = jax.jit(network.infer)(jax.jit(network.fold)(variables), planes)
    assert logits.shape == (8, 25 * 7)
    np.testing.assert_allclose(folded_logits, logits, atol=2e-5)


@pytest.mark.parametrize("convolution", ["xla", "dots"])
def test_bfloat16_agrees_to_2e_2(convolution: str) -> None:
    assert (
        max(
            differences(
                dataclasses.replace(CONFIG, convolution=convolution, inference_dtype="bfloat16"),
                5,
                16,
            )
        )
        < 2e-2
    )


@pytest.mark.parametrize(
    ("tower", "heads", "blocks"),
    [
        *itertools.product(["res", "conv"], ["dual", "sep"], [2]),
        ("plain", "dual", 4),
        ("res", "dual", 1),
    ],
)
def test_every_kind_of_net_folds(tower: str, heads: str, blocks: int) -> None:
    assert (
        max(differences(dataclasses.replace(CONFIG, tower=tower, heads=heads, blocks=blocks), 5, 8))
        < 1e-5
    )


def test_batches_larger_than_a_chunk_and_not_a_multiple_of_it() -> None:
    # 16 filters at 9x9: chunks of 128 positions (512 KB / 5 KB, rounded to a power of two).
    network = dataclasses.replace(CONFIG, convolution="winograd").build(Inputs((9, 9), 17, 82))
    planes = draw_planes(300, 9)
    folded = jax.jit(network.fold)(draw_variables(network))
    whole = jax.jit(network.infer)(folded, planes)
    parts = [
        jax.jit(network.infer)(folded, planes[start : start + 10]) for start in range(0, 300, 10)
    ]
    for joined, separate in zip(whole, zip(*parts, strict=True), strict=True):
        np.testing.assert_allclose(joined, np.concatenate(separate), atol=1e-5)


def test_three_bfloat16_parts_of_a_kernel_are_as_precise_as_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a TPU runs in the heads; a kernel rounded to bfloat16 would be a thousand times worse."""
    keys = jax.random.split(jax.random.key(0))
    x = jax.random.normal(keys[0], (4, 5, 5, 64)).astype(jnp.bfloat16)
    kernel = jax.random.normal(keys[1], (64, 3))
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *arguments, tpu, **_: tpu(*arguments))
    exact = np.einsum("bhwc,cf->bhwf", np.asarray(x, np.float64), np.asarray(kernel, np.float64))
    error = np.abs(np.asarray(jax.jit(pointwise)(x, kernel), np.float64) - exact).max()
    rounded = kernel.astype(jnp.bfloat16).astype(jnp.float32)
    assert error < 1e-5 < 1e-2 < np.abs(np.asarray(pointwise(x, rounded)) - exact).max()


def test_gradients_through_three_bfloat16_parts_are_as_precise_as_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (4, 5, 5, 64)).astype(jnp.bfloat16)
    kernel = jax.random.normal(keys[1], (64, 1))
    weights = jax.random.normal(keys[2], (4, 5, 5, 1))

    def gradients() -> tuple[Array, Array]:
        return jax.jit(jax.grad(lambda x, k: (pointwise(x, k) * weights).sum(), (0, 1)))(x, kernel)

    of_x, of_kernel = gradients()
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *arguments, tpu, **_: tpu(*arguments))
    of_x_in_parts, of_kernel_in_parts = gradients()
    np.testing.assert_array_equal(of_x, of_x_in_parts)
    np.testing.assert_allclose(of_kernel, of_kernel_in_parts, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_sums_and_repetition_have_the_gradients_of_jax(is_sharded):
    def loss(x, values, repeat, add):
        mean = add(jnp.square(x)) / x.size
        return jnp.sum(jnp.sin(x * repeat(values, x.shape)) + repeat(mean, x.shape) * x)

    x = jax.random.normal(jax.random.key(0), (16, 3, 4, 5)) + 1.0
    x = jax.device_put(x, batch_sharded(make_mesh())) if is_sharded else x
    values = jnp.arange(5.0)
    grad = jax.jit(jax.grad(loss, argnums=(0, 1)), static_argnums=(2, 3))
    found = grad(x, values, spread, sum_positions)
    expected = grad(x, values, jnp.broadcast_to, lambda x: jnp.sum(x, (0, 1, 2)))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
