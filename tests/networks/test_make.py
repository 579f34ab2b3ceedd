"""What "auto" becomes, and that a choice of how to compute is nothing else."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.networks import make
from azero.networks.make import chunk_size, resolve
from azero.networks.network import Inputs, Outputs, check_network
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig
from azero.types import Array, PyTree

SMALL = ResNetConfig(blocks=4, filters=8)


def test_cpu_without_bf16_units_takes_minimal_filtering_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(make, "has_bf16_units", lambda: False)
    resolved = resolve(SMALL)
    assert (resolved.convolution, resolved.train_dtype, resolved.inference_dtype) == (
        "winograd",
        "float32",
        "float32",
    )


def test_cpu_with_bf16_units_takes_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "has_bf16_units", lambda: True)
    assert (resolve(SMALL).convolution, resolve(SMALL).inference_dtype) == ("dots", "bfloat16")
    assert resolve(dataclasses.replace(SMALL, inference_dtype="float32")).convolution == "winograd"


@pytest.mark.parametrize(
    ("flags", "convolution"),
    [({"amx_bf16", "avx512_bf16"}, "dots"), ({"avx512_bf16"}, "winograd"), ({"bf16"}, "winograd")],
)
def test_only_matrix_units_take_products(
    monkeypatch: pytest.MonkeyPatch, flags: set[str], convolution: str
) -> None:
    monkeypatch.setattr(make, "cpu_flags", lambda: frozenset(flags))
    assert resolve(SMALL).convolution == convolution


def test_accelerators_take_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make.jax, "default_backend", lambda: "tpu")
    assert resolve(SMALL) == dataclasses.replace(SMALL, convolution="xla")


def test_a_colour_plane_that_the_game_lacks_is_refused() -> None:
    config, game = SMALL.replace(colour_plane=17), Inputs((3, 3), 17, 9)
    with pytest.raises(ValueError, match=r"colour-plane is from 0 to 16 .*, not 17"):
        config.build(game)
    config.replace(colour_plane=16).build(game)


def test_settings_are_taken_as_given() -> None:
    given = dataclasses.replace(SMALL, convolution="dots")
    assert resolve(given) == given


def test_chunks_fit_the_cache() -> None:
    sizes = {
        (size, filters): chunk_size(dataclasses.replace(SMALL, filters=filters), (size, size))
        for size, filters in [(5, 32), (9, 96), (19, 96), (19, 256)]
    }
    assert sizes == {(5, 32): 128, (9, 96): 16, (19, 96): 4, (19, 256): 2}


@pytest.mark.parametrize(
    "settings",
    [
        ResNetConfig(blocks=3, filters=8, value_hidden=8),
        ResNetConfig(blocks=3, filters=8, value_hidden=8, heads="sep", tower="plain"),
        PooledConfig(blocks=3, filters=8, value_hidden=8, head_filters=4, pool_every=1),
    ],
    ids=lambda settings: settings.name,
)
def test_blocks_in_a_loop_and_one_after_the_other_learn_the_same(
    settings: ResNetConfig | PooledConfig,
) -> None:
    """Same parameters, so that checkpoints of one serve the other; outputs, new statistics and
    gradients to the last digits."""
    shapes = Inputs((5, 5), 4, 26)
    planes = jax.random.normal(jax.random.key(1), (16, 5, 5, 4))

    def learn(train_loop: str) -> PyTree:
        chosen = settings.replace(train_loop=train_loop, train_dtype="float32", convolution="xla")
        network = chosen.build(shapes)
        variables = network.init(jax.random.key(0))

        def loss(params: PyTree) -> tuple[jax.Array, PyTree]:
            outputs, stats = network.train_apply({**variables, "params": params}, planes)
            return jnp.sum(outputs.logits**2) + jnp.sum(outputs.value), stats

        step = jax.jit(jax.value_and_grad(loss, has_aux=True))
        assert ("while" in step.lower(variables["params"]).as_text()) == (train_loop == "scan")
        return step(variables["params"])

    looped, unrolled = learn("scan"), learn("unrolled")
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-4),
        looped,
        unrolled,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda logits, value: (logits, value[:, None]), r"float32\[2, 1\]\) for 2 positions"),
        (
            lambda logits, value: (logits[:, 1:], value),
            r"\(float32\[2, 8\].*, not \(float32\[2, 9\], float32\[2\]\)$",
        ),
        (lambda logits, value: (logits.astype(jnp.bfloat16), value), r"\(bfloat16\[2, 9\], "),
    ],
)
def test_outputs_of_other_shapes_or_types_are_an_error(
    change: Callable[[Array, Array], tuple[Array, Array]], message: str
) -> None:
    game = Inputs((3, 3), 3, 9)
    network = ResNetConfig(blocks=1, filters=4).build(game)
    check_network(network, game)

    def trained(variables: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
        outputs, batch_stats = network.train_apply(variables, planes)
        return Outputs(*change(*outputs[:2]), {}), batch_stats

    wrong: dict[str, Callable[..., Any]] = {
        "infer": lambda params, planes: change(*network.infer(params, planes)),
        "apply": lambda variables, planes: change(*network.apply(variables, planes)),
        "train_apply": trained,
    }
    for name, function in wrong.items():
        with pytest.raises(ValueError, match=f"the network's {name} returns .*{message}"):
            check_network(network._replace(**{name: function}), game)


def test_what_is_no_network_is_an_error() -> None:
    game = Inputs((3, 3), 3, 9)
    network = ResNetConfig(blocks=1, filters=4).build(game)
    alone = network._replace(train_apply=network.apply)
    with pytest.raises(
        ValueError, match=r"train_apply returns \(float32.*, not \(Outputs\(float32"
    ):
        check_network(alone, game)
    more = network._replace(infer=lambda params, planes: network.train_apply(params, planes)[0])
    with pytest.raises(ValueError, match=r"infer returns Outputs\(logits=float32.*, not \(float32"):
        check_network(more._replace(fold=lambda variables: variables), game)
    with pytest.raises(ValueError, match="the maker of the network returns None, not a Network"):
        OwnConfig().build(game)


@dataclasses.dataclass(frozen=True)
class OwnConfig(NetworkConfig):
    """A network outside the package whose maker returns nothing."""

    MAKER: ClassVar[str] = f"{__name__}:make_nothing"
    name: str = "own"


def make_nothing(config: OwnConfig, game: Inputs) -> None:
    """Forget to return the network."""


def test_variables_of_another_type_and_other_statistics_are_errors() -> None:
    game = Inputs((3, 3), 3, 9)
    network = ResNetConfig(blocks=1, filters=4).build(game)
    half = network._replace(
        init=lambda key: jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), network.init(key))
    )
    with pytest.raises(
        ValueError, match=r"variable \['batch_stats'\].* is bfloat16.*, not float32"
    ):
        check_network(half, game)
    bare = network._replace(init=lambda key: {"params": network.init(key)["params"]})
    with pytest.raises(ValueError, match="a dictionary of params, not of params and batch_stats"):
        check_network(bare, game)
    without = network._replace(
        train_apply=lambda variables, planes: (network.train_apply(variables, planes)[0], {})
    )
    with pytest.raises(ValueError, match="train_apply returns the batch_stats none, and its init"):
        check_network(without, game)
