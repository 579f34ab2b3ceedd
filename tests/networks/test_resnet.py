"""Layers and parameters against the paper's description (AGZ methods, 'Neural network
architecture'; Figure 4)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.experiment import load
from azero.games.table import make
from azero.networks.network import Inputs
from azero.networks.resnet import point_to_move
from azero.networks.settings import NetworkConfig, ResNetConfig
from azero.types import PyTree

SMALL = ResNetConfig(
    blocks=3, filters=8, train_dtype="float32", inference_dtype="float32", convolution="xla"
)


def abstract(config: NetworkConfig, size: int = 19) -> PyTree:
    network = config.build(Inputs((size, size), 17, size * size + 1))
    return jax.eval_shape(network.init, jax.random.key(0))


def count_parameters(blocks: int, filters: int, points: int = 361, planes: int = 17) -> int:
    """Count from the description: convolutions without bias, each followed by a batch norm of a
    scale and a shift per filter."""

    def convolution(inputs: int, outputs: int, width: int) -> int:
        return width * width * inputs * outputs + 2 * outputs

    def linear(inputs: int, outputs: int) -> int:
        return inputs * outputs + outputs

    tower = convolution(planes, filters, 3) + 2 * (blocks - 1) * convolution(filters, filters, 3)
    policy = convolution(filters, 2, 1) + linear(2 * points, points + 1)
    value = convolution(filters, 1, 1) + linear(points, 256) + linear(256, 1)
    return tower + policy + value


@pytest.mark.parametrize(
    ("name", "points", "planes", "move_planes"), [("chess", 64, 119, 73), ("shogi", 81, 362, 139)]
)
def test_published_sizes_of_chess_and_shogi(
    name: str, points: int, planes: int, move_planes: int
) -> None:
    """The policy head is one more convolution of the tower's kind and one to 73 or 139 planes (AZ,
    supplement, 'Architecture')."""
    game, config = make(name), load(name).config.network
    network = config.build(game)
    params = jax.eval_shape(network.init, jax.random.key(0))["params"]
    body = 9 * planes * 256 + 2 * 256 + 38 * (9 * 256 * 256 + 2 * 256)
    policy = 9 * 256 * 256 + 2 * 256 + 256 * move_planes + move_planes
    value = 256 + 2 + points * 256 + 256 + 256 + 1
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == body + policy + value
    assert params["policy"]["kernel"].shape == (1, 1, 256, move_planes)


def test_logits_of_the_planes_head_stand_square_by_square() -> None:
    """A piece on one square of an otherwise empty board changes, with one block and no shared
    statistics, only logits of squares within two steps of it."""
    network = dataclasses.replace(SMALL, blocks=1, policy_head="planes").build(
        Inputs((8, 8), 1, 64 * 3)
    )
    variables = network.init(jax.random.key(0))
    planes = np.zeros((2, 8, 8, 1), np.float32)
    planes[1, 1, 6] = 1.0
    empty, one = np.asarray(network.apply(variables, planes)[0]).reshape(2, 8, 8, 3)
    rows, columns = np.nonzero(np.any(empty != one, axis=-1))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 3, 4, 7)


def test_the_planes_head_refuses_moves_that_are_not_planes_of_squares() -> None:
    with pytest.raises(ValueError, match="362 moves on 361 points; choose linear"):
        abstract(dataclasses.replace(SMALL, policy_head="planes"))


def count_layers(tree: PyTree) -> int:
    """Weight layers: kernels, where a stack of blocks counts each of its layers."""
    kernels = [
        leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree) if path[-1].key == "kernel"
    ]
    return sum(leaf.shape[0] if leaf.ndim == 5 else 1 for leaf in kernels)


@pytest.mark.parametrize(
    ("blocks", "tower_layers", "parameters"), [(20, 39, 22_827_877), (40, 79, 46_441_317)]
)
def test_published_sizes(blocks: int, tower_layers: int, parameters: int) -> None:
    params = abstract(ResNetConfig(blocks=blocks, filters=256))["params"]
    assert (
        count_layers(params["tower"]),
        count_layers(params["policy"]),
        count_layers(params["value"]),
    ) == (tower_layers, 2, 3)
    total = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert total == count_parameters(blocks, 256) == parameters
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))


@pytest.mark.parametrize("heads", ["dual", "sep"])
def test_the_plain_tower_of_figure_4_has_12_convolutions(heads: str) -> None:
    """Twelve convolutional blocks, each of 256 filters, batch norm and a ReLU (AGZ methods, 'Neural
    network architecture comparison'): AlphaGo Lee's depth."""
    params = abstract(ResNetConfig(tower="plain", heads=heads, blocks=12, filters=256))["params"]  # type: ignore[arg-type]
    towers = {name: tower for name, tower in params.items() if name.endswith("tower")}
    weights = 9 * 17 * 256 + 11 * 9 * 256 * 256 + 12 * 2 * 256
    assert len(towers) == (1 if heads == "dual" else 2)
    for tower in towers.values():
        assert (
            count_layers(tower) == 12
            and sum(leaf.size for leaf in jax.tree.leaves(tower)) == weights
        )
    assert (
        count_layers(abstract(dataclasses.replace(SMALL, tower="conv"))["params"]["tower"]) == 5
    ), "stored networks keep their depth"


def test_figure_4_nets_have_the_same_towers() -> None:
    for tower in ("res", "conv"):
        dual = abstract(dataclasses.replace(SMALL, tower=tower))["params"]
        separate = abstract(dataclasses.replace(SMALL, tower=tower, heads="sep"))["params"]
        assert count_layers(dual["tower"]) == 5
        for name in ("policy_tower", "value_tower"):
            assert jax.tree.map(lambda leaf: leaf.shape, separate[name]) == jax.tree.map(
                lambda leaf: leaf.shape, dual["tower"]
            )


def test_residual_blocks_pass_their_input_on() -> None:
    """With its second batch norm at zero, a residual block is the identity after a ReLU, and a
    plain block gives zero."""
    planes = np.random.default_rng(0).random((2, 5, 5, 17)) < 0.5
    logits = {}
    for tower in ("res", "conv"):
        config = dataclasses.replace(SMALL, tower=tower)
        network = config.build(Inputs((5, 5), 17, 26))
        variables = network.init(jax.random.key(0))
        second = variables["params"]["tower"]["blocks"]["second"]["norm"]
        second["scale"] = jnp.zeros_like(second["scale"])
        logits[tower] = network.apply(variables, planes)[0]
        stem_only = dataclasses.replace(config, blocks=1).build(Inputs((5, 5), 17, 26))
        without = jax.tree.map(lambda leaf: leaf, variables)
        for collection in without.values():
            del collection["tower"]["blocks"]
        expected = stem_only.apply(without, planes)[0]
        if tower == "res":
            np.testing.assert_allclose(logits[tower], expected, atol=1e-6)
        else:
            assert np.ptp(logits[tower], axis=0).max() < 1e-6 < np.ptp(expected, axis=0).max()


def test_separate_towers_share_nothing() -> None:
    network = dataclasses.replace(SMALL, heads="sep").build(Inputs((5, 5), 17, 26))
    variables = network.init(jax.random.key(0))
    planes = np.random.default_rng(0).random((2, 5, 5, 17)) < 0.5
    gradient = jax.grad(
        lambda params: jnp.sum(network.apply({**variables, "params": params}, planes)[1])
    )(variables["params"])
    assert all(not leaf.any() for leaf in jax.tree.leaves(gradient["policy_tower"]))
    assert any(leaf.any() for leaf in jax.tree.leaves(gradient["value_tower"]))


def test_training_normalises_with_the_batch_and_keeps_a_running_average() -> None:
    network = SMALL.build(Inputs((5, 5), 17, 26))
    variables = network.init(jax.random.key(0))
    planes = np.random.default_rng(0).random((64, 5, 5, 17)) < 0.3
    _, stats = jax.jit(network.train_apply)(variables, planes)
    kernel = variables["params"]["tower"]["stem"]["kernel"]
    stem = jax.lax.conv_general_dilated(
        planes.astype(np.float32),
        kernel,
        (1, 1),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    norm = stats["tower"]["stem"]["norm"]
    np.testing.assert_allclose(norm["mean"], 0.05 * stem.mean((0, 1, 2)), atol=1e-6)
    np.testing.assert_allclose(norm["var"], 0.95 + 0.05 * stem.var((0, 1, 2)), atol=1e-5)


def test_outputs_are_float32_logits_and_values_in_range() -> None:
    network = dataclasses.replace(SMALL, train_dtype="bfloat16").build(Inputs((5, 5), 17, 26))
    logits, value = network.apply(network.init(jax.random.key(0)), np.ones((3, 5, 5, 17), bool))
    assert (logits.shape, logits.dtype, value.shape, value.dtype) == (
        (3, 26),
        jnp.float32,
        (3,),
        jnp.float32,
    )
    assert np.all(np.abs(value) <= 1.0)


def test_the_identity_start_gives_every_point_its_own_features() -> None:
    weights = np.asarray(point_to_move(jax.random.key(0), (9 * 4, 10)))
    features = np.random.default_rng(0).random((9, 4)).astype(np.float32)
    logits = features.reshape(-1) @ weights
    np.testing.assert_allclose(logits[:9], (features @ [1, -1, 1, -1]) / np.sqrt(2), rtol=1e-6)
    assert logits[9] == 0 and np.count_nonzero(weights) == 36
    network = dataclasses.replace(SMALL, policy_init="identity").build(Inputs((5, 5), 17, 26))
    kernel = network.init(jax.random.key(0))["params"]["policy"]["logits"]["kernel"]
    np.testing.assert_array_equal(kernel, point_to_move(jax.random.key(1), kernel.shape))
