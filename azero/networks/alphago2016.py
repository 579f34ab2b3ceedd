"""The policy network and the value network of AlphaGo (2016), behind the Network contract.

Source: AG16 methods, 'Policy network: neural network architecture' and 'Value network'. They use
these settings: `filters` (k), `blocks` (the convolutions before the last one: 12 in the paper, one
of 5x5 and the others of 3x3), `value_hidden` (256), and the compute types. There is no batch norm;
`batch_stats` is empty.

    policy    12 convolutions of k filters with ReLU; 1x1 of one filter with a bias for every point:
              13 layers. The paper has no pass: here its probability is zero. The value is 0 for
              every position.
    value     12 convolutions of k filters with ReLU; 1x1 of one filter; 256 units with ReLU; one
              with tanh: 15 layers. The policy is uniform.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jax.nn.initializers import Initializer

from azero.networks.convolution import CONVOLUTIONS, convolve
from azero.networks.inference import add_bias, dense, map_chunks
from azero.networks.network import NEVER, Network, Outputs, Shapes
from azero.networks.resnet import pointwise
from azero.networks.settings import ConvolutionalConfig
from azero.types import Array, PyTree

FIRST_WIDTH = 5
"""Points on a side of the first layer's filters (AG16)."""

_HE = jax.nn.initializers.he_normal()
"""Initial weights of every layer before a ReLU (the paper gives none)."""
_LECUN = jax.nn.initializers.lecun_normal()
"""Initial weights of the last layers."""

Convolve = Callable[[Array, Array], Array]


def policy_network(config: ConvolutionalConfig, game: Shapes, chunk: int | None) -> Network:
    """Make the policy network; the actions are the points, and pass.

    Raises:
      ValueError: the actions are not those of Go.
    """
    height, width = game.board_shape
    if game.num_actions != height * width + 1:
        raise ValueError(
            f"the policy network of 2016 has a move for every point and pass, "
            f"{height * width + 1} in all, not {game.num_actions}"
        )

    def init(key: Array) -> PyTree:
        tower_key, head_key = jax.random.split(key)
        head = {
            "kernel": _LECUN(head_key, (config.filters, 1), jnp.float32),
            "bias": jnp.zeros(height * width, jnp.float32),
        }
        return {
            "params": {**_init_tower(config, tower_key, game.num_planes), "head": head},
            "batch_stats": {},
        }

    def outputs(params: PyTree, features: Array) -> tuple[Array, Array]:
        head, batch = params["head"], features.shape[0]
        points = pointwise(features.astype(jnp.float32), head["kernel"]).reshape(batch, -1)
        points = add_bias(points, head["bias"])
        logits = jnp.pad(points, ((0, 0), (0, 1)), constant_values=NEVER)
        return logits, jnp.zeros(batch, jnp.float32)

    return _network(config, game.board_shape, init, outputs, chunk)


def value_network(config: ConvolutionalConfig, game: Shapes, chunk: int | None) -> Network:
    """Make the value network."""

    def init(key: Array) -> PyTree:
        tower_key, head_key, hidden_key, value_key = jax.random.split(key, 4)
        num_points, hidden = math.prod(game.board_shape), config.value_hidden
        params = {
            **_init_tower(config, tower_key, game.num_planes),
            "head": _init_layer(_HE, head_key, (config.filters, 1)),
            "hidden": _init_layer(_HE, hidden_key, (num_points, hidden)),
            "value": _init_layer(_LECUN, value_key, (hidden, 1)),
        }
        return {"params": params, "batch_stats": {}}

    def outputs(params: PyTree, features: Array) -> tuple[Array, Array]:
        head, batch = params["head"], features.shape[0]
        points = pointwise(features.astype(jnp.float32), head["kernel"])
        points = jax.nn.relu(add_bias(points, head["bias"])).reshape(batch, -1)
        hidden = jax.nn.relu(dense(params["hidden"], points))
        value = jnp.tanh(dense(params["value"], hidden))[:, 0]
        return jnp.zeros((batch, game.num_actions), jnp.float32), value

    return _network(config, game.board_shape, init, outputs, chunk)


def _network(
    config: ConvolutionalConfig,
    board_shape: tuple[int, int],
    init: Callable[[Array], PyTree],
    outputs: Callable[[PyTree, Array], tuple[Array, Array]],
    chunk: int | None,
) -> Network:
    """Make the network of the tower and `outputs`: (params, features [B, H, W, F]) -> (logits,
    value)."""
    train_convolve = functools.partial(convolve, config.convolution)
    convolution = CONVOLUTIONS[config.convolution]
    train_dtype, inference_dtype = jnp.dtype(config.train_dtype), jnp.dtype(config.inference_dtype)

    def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
        params = variables["params"]
        return outputs(params, _tower(config, params, planes.astype(train_dtype), train_convolve))

    def train_apply(variables: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
        return Outputs(*apply(variables, planes), {}), variables["batch_stats"]

    def fold(variables: PyTree) -> PyTree:
        params = variables["params"]
        layers = params["layers"]
        kernel = convolution.prepare(layers["kernel"], board_shape[1]).astype(inference_dtype)
        return {**params, "layers": {**layers, "kernel": kernel}}

    def infer(folded: PyTree, planes: Array) -> tuple[Array, Array]:
        def evaluate(part: Array) -> tuple[Array, Array]:
            x = part.astype(inference_dtype)
            return outputs(folded, _tower(config, folded, x, convolution.apply))

        return map_chunks(evaluate, planes, chunk)

    return Network(init, apply, train_apply, fold, infer)


def _init_tower(config: ConvolutionalConfig, key: Array, num_planes: int) -> PyTree:
    first_key, key = jax.random.split(key)
    shape, count = (3, 3, config.filters, config.filters), config.blocks - 1
    kernels = jnp.zeros((0, *shape), jnp.float32)
    if count:
        kernels = jax.vmap(lambda one: _HE(one, shape, jnp.float32))(jax.random.split(key, count))
    first_shape = (FIRST_WIDTH, FIRST_WIDTH, num_planes, config.filters)
    return {
        "first": _init_layer(_HE, first_key, first_shape),
        "layers": {"kernel": kernels, "bias": jnp.zeros((count, config.filters), jnp.float32)},
    }


def _init_layer(init: Initializer, key: Array, shape: tuple[int, ...]) -> PyTree:
    return {"kernel": init(key, shape, jnp.float32), "bias": jnp.zeros(shape[-1], jnp.float32)}


def _tower(config: ConvolutionalConfig, params: PyTree, x: Array, convolve: Convolve) -> Array:
    """Return the features [B, H, W, F] of planes [B, H, W, C], in the type of `x`."""

    def layer(x: Array, params: PyTree) -> tuple[Array, None]:
        y = convolve(x, params["kernel"].astype(x.dtype)).astype(jnp.float32)
        return jax.nn.relu(add_bias(y, params["bias"])).astype(x.dtype), None

    first = params["first"]
    y = convolve_first(config.convolution, x, first["kernel"].astype(x.dtype)).astype(jnp.float32)
    x = jax.nn.relu(add_bias(y, first["bias"])).astype(x.dtype)
    return lax.scan(layer, x, params["layers"])[0]


def convolve_first(name: str, x: Array, kernel: Array) -> Array:
    """Convolve x [B, H, W, C] with kernel [5, 5, C, F], stride 1, padded with zeros to the same
    size.

    Where XLA's convolution is slow (CPUs), it is computed as one matrix product for each row of the
    kernel, and so is its gradient with respect to the kernel.
    """
    if name == "xla":
        return CONVOLUTIONS["xla"].apply(x, kernel)
    height, width = x.shape[1:3]
    margin = FIRST_WIDTH // 2
    padded = jnp.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    unrolled = jnp.concatenate(
        [padded[:, :, shift : shift + width] for shift in range(FIRST_WIDTH)], axis=-1
    )
    weights = kernel.reshape(FIRST_WIDTH, -1, kernel.shape[-1])
    products = [
        lax.dot_general(
            unrolled[:, row : row + height],
            weights[row],
            (((3,), (0,)), ((), ())),
            preferred_element_type=jnp.float32,
        )
        for row in range(FIRST_WIDTH)
    ]
    return functools.reduce(jnp.add, products)
