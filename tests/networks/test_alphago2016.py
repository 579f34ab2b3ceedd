"""The networks of 2016: layers and parameters as published, and the inference path equal to the
training path."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.networks.alphago2016 import convolve_first
from azero.networks.network import Inputs
from azero.networks.settings import ResNetConfig

SHAPE, ACTIONS = (19, 19), 362
PAPER = ResNetConfig(
    blocks=12, filters=192, convolution="xla", train_dtype="float32", inference_dtype="float32"
)
SMALL = ResNetConfig(
    blocks=3, filters=8, value_hidden=16, train_dtype="float32", inference_dtype="float32"
)
PLANES = {"policy2016": 48, "value2016": 49}


def parameters(name, config=PAPER):
    network = config.as_kind(name).build(Inputs(SHAPE, PLANES[name], ACTIONS))
    return jax.eval_shape(network.init, jax.random.key(0))["params"]


def test_the_policy_network_has_the_published_layers():
    params = parameters("policy2016")
    assert params["first"]["kernel"].shape == (5, 5, 48, 192)
    assert params["layers"]["kernel"].shape == (11, 3, 3, 192, 192)  # layers 2 to 12
    assert params["head"]["kernel"].shape == (192, 1)  # layer 13
    assert params["head"]["bias"].shape == (361,)  # one for every point
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert count == (25 * 48 * 192 + 192) + 11 * (9 * 192 * 192 + 192) + (192 + 361) == 3_882_793


def test_the_value_network_has_the_published_layers():
    params = parameters("value2016")
    assert params["first"]["kernel"].shape == (5, 5, 49, 192)
    assert params["layers"]["kernel"].shape[0] == 11  # layers 2 to 12
    # layers 13, 14 and the output
    assert [params[name]["kernel"].shape for name in ("head", "hidden", "value")] == [
        (192, 1),
        (361, 256),
        (256, 1),
    ]
    count = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert (
        count
        == (25 * 49 * 192 + 192)
        + 11 * (9 * 192 * 192 + 192)
        + (192 + 1)
        + (361 * 256 + 256)
        + (256 + 1)
        == 3_980_162
    )


@pytest.mark.parametrize("name", ["policy2016", "value2016"])
@pytest.mark.parametrize("convolution", ["xla", "dots", "winograd"])
def test_inference_equals_training(name, convolution):
    config = SMALL.as_kind(name).replace(convolution=convolution)
    network = config.build(Inputs((9, 9), 12, 82))
    variables = network.init(jax.random.key(0))
    planes = jax.random.bernoulli(jax.random.key(1), 0.3, (5, 9, 9, 12))
    logits, value = jax.jit(network.apply)(variables, planes)
    inferred = jax.jit(network.infer)(network.fold(variables), planes)
    np.testing.assert_allclose(logits, inferred[0], atol=2e-4)
    np.testing.assert_allclose(value, inferred[1], atol=2e-5)
    assert logits.shape == (5, 82) and value.shape == (5,)
    if name == "policy2016":
        assert not value.any()
        assert (jax.nn.softmax(logits)[:, -1] == 0).all()
        assert np.unique(logits[:, :-1]).size > 300
    else:
        assert not logits.any()
        assert (abs(value) < 1).all() and np.unique(value).size == 5


def test_every_point_has_a_bias_of_its_own():
    network = SMALL.as_kind("policy2016").build(Inputs((9, 9), 4, 82))
    variables = network.init(jax.random.key(0))
    planes = jnp.zeros((1, 9, 9, 4), bool)
    before, _ = network.apply(variables, planes)
    variables["params"]["head"]["bias"] = variables["params"]["head"]["bias"].at[40].add(3.0)
    after, _ = network.apply(variables, planes)
    np.testing.assert_allclose(np.asarray(after - before)[0, :81], 3.0 * (np.arange(81) == 40))


def test_the_first_layer_is_a_convolution_on_every_device():
    x = jax.random.normal(jax.random.key(0), (2, 7, 9, 3))
    kernel = jax.random.normal(jax.random.key(1), (5, 5, 3, 4))
    np.testing.assert_allclose(
        convolve_first("dots", x, kernel), convolve_first("xla", x, kernel), atol=1e-4
    )


def test_a_game_with_other_moves_is_refused():
    with pytest.raises(ValueError, match="a move for every point and pass, 82 in all, not 83"):
        SMALL.as_kind("policy2016").build(Inputs((9, 9), 4, 83))
