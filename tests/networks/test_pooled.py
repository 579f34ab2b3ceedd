"""The network with global pooling: boards of any size, its heads, its norms, and inference equal to
training."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from untrained import draw_variables

from azero.networks.convolution import CONVOLUTIONS
from azero.networks.network import Inputs, Network
from azero.networks.pooled_layers import Norms, bias_by_pooled, board_max, pool, pool_for_value
from azero.networks.settings import PooledConfig
from azero.types import Array, PyTree

SMALL = PooledConfig(
    blocks=4,
    filters=12,
    head_filters=8,
    value_hidden=16,
    score_hidden=8,
    train_dtype="float32",
    inference_dtype="float32",
    convolution="dots",
)
PLANES = 5
MOVES = {"points and pass": 82, "planes": 81 * 3}


@functools.cache
def build(config: PooledConfig, shape: tuple[int, int], num_actions: int | None = None) -> Network:
    """Return a network, the same one for the same settings: what one test has compiled of it serves
    the others."""
    points = shape[0] * shape[1]
    return config.build(Inputs(shape, PLANES, points + 1 if num_actions is None else num_actions))


def draw_planes(batch: int, shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).random((batch, *shape, PLANES)) < 0.3


def fit(network: Network, planes: np.ndarray, steps: int) -> tuple[PyTree, list[float]]:
    """Return the variables after some steps on random targets for every head, and the losses."""
    variables = jax.jit(network.init)(jax.random.key(0))
    outputs, _ = jax.eval_shape(network.train_apply, variables, planes)
    rng, optimiser = np.random.default_rng(1), optax.adam(1e-2)

    def targets(logits: jax.ShapeDtypeStruct) -> Array:
        return jnp.asarray(
            np.eye(logits.shape[-1], dtype=np.float32)[
                rng.integers(logits.shape[-1], size=logits.shape[0])
            ]
        )

    classes = {
        name: targets(head)
        for name, head in {"logits": outputs.logits, **outputs.auxiliary}.items()
        if name in ("logits", "outcome", "reply", "soft_policy", "score")
    }
    numbers = {
        name: jnp.asarray(rng.random(outputs.auxiliary[name].shape), jnp.float32)
        for name in ("short_values", "moves_left", "ownership")
        if name in outputs.auxiliary
    }

    def loss(params: PyTree, stats: PyTree) -> tuple[Array, PyTree]:
        trained, stats = network.train_apply({"params": params, "batch_stats": stats}, planes)
        heads = {"logits": trained.logits, **trained.auxiliary}
        parts = [
            jnp.mean(optax.softmax_cross_entropy(heads[name], target))
            for name, target in classes.items()
        ] + [jnp.mean(jnp.square(heads[name] - target)) for name, target in numbers.items()]
        return functools.reduce(jnp.add, parts), stats

    @jax.jit
    def step(variables: PyTree, state: PyTree) -> tuple[PyTree, PyTree, Array]:
        (value, stats), gradients = jax.value_and_grad(loss, has_aux=True)(
            variables["params"], variables["batch_stats"]
        )
        updates, state = optimiser.update(gradients, state)
        params = optax.apply_updates(variables["params"], updates)
        return {"params": params, "batch_stats": stats}, state, value

    state, losses = optimiser.init(variables["params"]), []
    for _ in range(steps):
        variables, state, value = step(variables, state)
        losses.append(float(value))
    return variables, losses


@pytest.mark.parametrize(
    ("norm", "inner_blocks", "moves"),
    [
        ("batch", 0, "points and pass"),
        ("batch", 0, "planes"),
        ("fixed", 0, "points and pass"),
        ("batch", 1, "points and pass"),
        pytest.param("fixed", 1, "planes", marks=pytest.mark.slow),
    ],
)
def test_it_learns_and_infers_what_it_learned(norm: str, inner_blocks: int, moves: str) -> None:
    network = build(SMALL.replace(norm=norm, inner_blocks=inner_blocks), (9, 9), MOVES[moves])
    planes = draw_planes(32, (9, 9))
    before = jax.jit(network.init)(jax.random.key(0))
    variables, losses = fit(network, planes, 60)
    assert losses[-1] < 0.5 * losses[0]
    assert jax.tree.structure(variables) == jax.tree.structure(before)
    for old, new in zip(*map(jax.tree.leaves, (before, variables)), strict=True):
        assert not np.array_equal(old, new), "every parameter and statistic learns"
    logits, value = jax.jit(network.apply)(variables, planes)
    folded = jax.jit(network.fold)(variables)
    inferred = jax.jit(network.infer)(folded, planes)
    np.testing.assert_allclose(inferred[0], logits, atol=1e-4)
    np.testing.assert_allclose(inferred[1], value, atol=1e-5)
    assert np.unique(value).size > 16 and (abs(value) <= 1).all()  # 1 by rounding


@pytest.mark.parametrize("convolution", list(CONVOLUTIONS))
@pytest.mark.parametrize(
    ("blocks", "pool_every", "inner_blocks"),
    [(1, 2, 0), (2, 2, 0), (3, 1, 1), (4, 3, 0), (4, 2, 2), (6, 2, 0)],
    ids=str,
)
def test_every_tower_folds(
    convolution: str, blocks: int, pool_every: int, inner_blocks: int
) -> None:
    config = SMALL.replace(
        blocks=blocks, pool_every=pool_every, inner_blocks=inner_blocks, convolution=convolution
    )
    network = build(config, (5, 7))
    plain = build(config.replace(convolution="xla"), (5, 7))  # its parameters are the same
    variables = draw_variables(plain)
    rng = np.random.default_rng(2)

    def shake(path: tuple, leaf: Array) -> Array:
        is_norm = path[-1].key in ("scale", "bias", "mean", "var")
        return leaf + jnp.asarray(rng.uniform(-0.3, 0.3, leaf.shape), jnp.float32) * is_norm

    variables = jax.tree_util.tree_map_with_path(shake, variables)
    planes = draw_planes(6, (5, 7))
    expected = jax.jit(network.apply)(variables, planes)
    inferred = jax.jit(network.infer)(jax.jit(network.fold)(variables), planes)
    for one, other in zip(expected, inferred, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-5)


@pytest.mark.parametrize("convolution", ["xla", "dots"])
def test_bfloat16_agrees_to_2e_2(convolution: str) -> None:
    config = SMALL.replace(convolution=convolution, inference_dtype="bfloat16")
    network, planes = build(config, (5, 5)), draw_planes(8, (5, 5))
    variables = draw_variables(network)
    logits, value = jax.jit(network.apply)(variables, planes)
    inferred = jax.jit(network.infer)(jax.jit(network.fold)(variables), planes)
    assert inferred[0].dtype == inferred[1].dtype == jnp.float32
    np.testing.assert_allclose(jax.nn.softmax(inferred[0]), jax.nn.softmax(logits), atol=2e-2)
    np.testing.assert_allclose(inferred[1], value, atol=2e-2)


def test_the_same_variables_play_on_every_board() -> None:
    """Statistics from training on one board serve on another, and so does what is folded there."""
    variables, _ = fit(build(SMALL, (5, 5)), draw_planes(8, (5, 5)), 2)
    for shape in [(5, 5), (7, 9), (9, 9), (13, 13)]:
        network, points = build(SMALL, shape), shape[0] * shape[1]
        assert jax.tree.map(jnp.shape, variables) == jax.tree.map(
            jnp.shape, jax.eval_shape(network.init, jax.random.key(0))
        )
        planes = draw_planes(3, shape)
        logits, value = jax.jit(network.apply)(variables, planes)
        outputs, _ = jax.jit(network.train_apply)(variables, planes)
        analysed = jax.jit(network.analyse)(jax.jit(network.fold)(variables), planes)
        assert logits.shape == (3, points + 1)
        assert {name: head.shape for name, head in outputs.auxiliary.items()} == {
            "outcome": (3, 3),
            "reply": (3, points + 1),
            "soft_policy": (3, points + 1),
            "short_values": (3, 3),
            "moves_left": (3,),
            "ownership": (3, *shape),
            "score": (3, 2 * points + 1),
        }
        assert set(analysed.auxiliary) == {"outcome", "ownership", "score"}
        np.testing.assert_allclose(analysed.logits, logits, atol=1e-4)
        np.testing.assert_allclose(analysed.value, value, atol=1e-5)


def test_moves_on_every_square_stand_square_by_square() -> None:
    """With one block and nothing pooled, a piece changes only logits of squares beside it."""
    network = build(SMALL.replace(blocks=1, norm="fixed"), (8, 8), 64 * 3)
    variables = draw_variables(network)
    kernel = variables["params"]["policy"]["pooled_bias"]
    variables["params"]["policy"]["pooled_bias"] = jnp.zeros_like(kernel)
    planes = np.zeros((2, 8, 8, PLANES), np.float32)
    planes[1, 1, 6] = 1.0
    empty, one = np.asarray(jax.jit(network.apply)(variables, planes)[0]).reshape(2, 8, 8, 3)
    rows, columns = np.nonzero(np.any(empty != one, axis=-1))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 2, 5, 7)
    outputs, _ = jax.eval_shape(network.train_apply, variables, planes)
    assert not {"ownership", "score"} & set(outputs.auxiliary)


def test_a_far_corner_changes_the_policy_everywhere() -> None:
    """Its two blocks see two or three points far; what is pooled reaches the other corner."""
    network = build(SMALL.replace(blocks=2, pool_every=1), (19, 19))
    variables = draw_variables(network)
    kernel = variables["params"]["policy"]["pooled_bias"]
    variables["params"]["policy"]["pooled_bias"] = jnp.zeros_like(kernel)  # the tower's pooling
    planes = np.zeros((2, 19, 19, PLANES), bool)
    planes[1, 0, 0] = True
    empty, one = np.asarray(jax.jit(network.apply)(variables, planes)[0])
    assert (empty[:361] != one[:361]).all()
    plain = build(SMALL.replace(blocks=2, pool_every=2), (19, 19))
    variables = draw_variables(plain)
    variables["params"]["policy"]["pooled_bias"] = jnp.zeros_like(kernel)
    empty, one = np.asarray(jax.jit(plain.apply)(variables, planes)[0])
    assert np.argwhere((empty != one)[:361].reshape(19, 19)).max() == 3


def test_pooled_values_are_those_of_the_paper() -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 4, 9, 3)), jnp.float32)
    mean, scale = x.mean((1, 2)), (6.0 - 14.0) / 10.0
    np.testing.assert_allclose(
        pool(x), np.concatenate([mean, mean * scale, x.max((1, 2))], -1), rtol=1e-5
    )
    np.testing.assert_allclose(
        pool_for_value(x),
        np.concatenate([mean, mean * scale, mean * ((6 - 14) ** 2 / 100 - 0.1)], -1),
        rtol=1e-5,
    )
    params = {name: {"bias": jnp.zeros(size)} for name, size in (("pool", 1), ("middle", 2))}
    kernel = jnp.asarray([[1.0, 2.0], [0.0, 0.0], [10.0, 0.0]])
    y, pooled = bias_by_pooled(Norms(params, {}, False, 0.9, 0.0), kernel, x)
    np.testing.assert_allclose(pooled, pool(jax.nn.relu(x[..., 2:])), rtol=1e-6)
    biased = x[..., :2] + (pooled @ kernel)[:, None, None, :]
    np.testing.assert_allclose(y, np.maximum(biased, 0), rtol=1e-5)


def test_the_gradient_of_the_maximum_goes_to_one_point() -> None:
    x = np.random.default_rng(0).integers(0, 5, (3, 4, 5, 2)).astype(np.float32)  # with ties
    value, pull = jax.vjp(board_max, jnp.asarray(x))
    weights = jnp.arange(1.0, 7.0).reshape(3, 2)
    (gradient,) = pull(weights)
    np.testing.assert_array_equal(value, x.max((1, 2)))
    np.testing.assert_array_equal((np.asarray(gradient) != 0).sum((1, 2)), 1)
    np.testing.assert_array_equal(gradient.sum((1, 2)), weights)
    np.testing.assert_array_equal((gradient * x).sum((1, 2)), weights * value)


def test_heads_mean_what_they_say() -> None:
    network, planes = build(SMALL, (5, 5)), draw_planes(4, (5, 5))
    variables = draw_variables(network)
    outputs, _ = jax.jit(network.train_apply)(variables, planes)
    loss, _, win = jax.nn.softmax(outputs.auxiliary["outcome"]).T
    np.testing.assert_allclose(outputs.value, win - loss, atol=1e-6)
    assert (abs(outputs.auxiliary["short_values"]) < 1).all()
    assert (outputs.auxiliary["moves_left"] > 0).all()
    assert all(head.dtype == jnp.float32 for head in jax.tree.leaves(outputs))


@pytest.mark.parametrize("inner_blocks", [0, 2])
def test_fixed_norms_keep_the_variance_and_one_batch_norm(inner_blocks: int) -> None:
    config = SMALL.replace(norm="fixed", blocks=9, filters=64, inner_blocks=inner_blocks)
    network = build(config, (9, 9))
    variables = jax.jit(network.init)(jax.random.key(0))
    assert set(variables["batch_stats"]) == {"end"}
    params = variables["params"]
    np.testing.assert_allclose(params["plain"]["start"]["scale"][:, 0, 0] ** -2, [1, 3, 5, 7], 1e-5)
    np.testing.assert_allclose(params["pooling"]["start"]["scale"][:, 0] ** -2, [2, 4, 6, 8], 1e-5)
    # Normal planes have the variance of one that the scales are made for. The sum grows by about
    # one a block, so that the batch norm at the end finds about nine.
    planes = np.random.default_rng(0).normal(size=(16, 9, 9, PLANES)).astype(np.float32)
    _, stats = jax.jit(network.train_apply)(variables, planes)
    momentum = config.batch_norm_momentum
    end = (stats["end"]["var"] - momentum) / (1 - momentum)
    assert 4 < float(end.mean()) < 18


def test_batches_larger_than_a_chunk() -> None:
    # 12 filters at 9x9: chunks of 128 positions.
    network, planes = build(SMALL.replace(blocks=2), (9, 9)), draw_planes(150, (9, 9))
    folded = jax.jit(network.fold)(draw_variables(network))
    whole = jax.jit(network.analyse)(folded, planes)
    parts = [jax.jit(network.analyse)(folded, planes[at : at + 50]) for at in (0, 50, 100)]
    jax.tree.map(
        lambda joined, *separate: np.testing.assert_allclose(
            joined, np.concatenate(separate), atol=1e-5
        ),
        whole,
        *parts,
    )


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(ValueError, match="not for 83 moves on 81 points"):
        build(SMALL, (9, 9), 83)
    with pytest.raises(ValueError, match=r"network\.pool-filters is below .* convolution, 12, not"):
        SMALL.replace(pool_filters=12)
    with pytest.raises(ValueError, match=r"network\.filters is even and at least 4 with"):
        SMALL.replace(filters=13, inner_blocks=2)
    with pytest.raises(ValueError, match=r"network\.pool-every is at least 1, not 0"):
        SMALL.replace(pool_every=0)
