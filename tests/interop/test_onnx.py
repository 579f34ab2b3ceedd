"""ONNX files: agreement with ONNX Runtime on every family of networks, and play."""

import dataclasses
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from needs import require_module
from untrained import shaken_variables

from azero.checkpoint import load_variables
from azero.checkpoint.exported import write_exported
from azero.experiment import load
from azero.games.position import Position
from azero.games.settings import GameConfig
from azero.interop.onnx_file import OnnxNetwork, write_onnx
from azero.learn.settings import LearnerConfig
from azero.networks.settings import (
    ConvolutionalConfig,
    Policy2016Config,
    PooledConfig,
    ResNetConfig,
)
from azero.players.file_specs import OnnxSpec
from azero.players.specs import CheckpointSpec, load_thinker, parse_player, resolve
from azero.players.thinking import Limits
from azero.settings import Config
from azero.types import PyTree

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
require_module("onnx")
require_module("onnxruntime")

SIZES = {
    "blocks": 3,
    "filters": 8,
    "value_hidden": 8,
    "train_dtype": "float32",
    "inference_dtype": "float32",
}
GO, CHESS = (GameConfig.default("go").replace(size=(5, 7)), GameConfig.default("chess"))
FAMILIES: dict[str, tuple[GameConfig, ConvolutionalConfig]] = {
    "dual-res": (GO, ResNetConfig(**SIZES)),
    "dual-conv": (GO, ResNetConfig(tower="conv", **SIZES)),
    "sep-plain": (GO, ResNetConfig(tower="plain", heads="sep", **SIZES)),
    "one block": (GO, ResNetConfig(**{**SIZES, "blocks": 1})),
    "first mover's value": (GO, ResNetConfig(colour_plane=16, policy_filters=4, **SIZES)),
    "sep-res, planes": (
        CHESS,
        ResNetConfig(heads="sep", policy_head="planes", policy_filters=4, value_filters=2, **SIZES),
    ),
    "pooled": (GO, PooledConfig(head_filters=4, **{**SIZES, "blocks": 6})),
    "pooled, fixed norms": (
        GO.replace(planes=19),
        PooledConfig(head_filters=4, norm="fixed", pool_every=3, **SIZES),
    ),
    "pooled, nested": (
        GO.replace(planes=19),
        PooledConfig(head_filters=4, inner_blocks=2, **{**SIZES, "blocks": 4}),
    ),
    "pooled, planes": (CHESS, PooledConfig(head_filters=4, pool_every=1, **SIZES)),
}


def network(game: GameConfig, settings: ConvolutionalConfig) -> tuple[PyTree, Config]:
    """Return an untrained network whose parameters are all anything but neutral."""
    config = Config(game, settings)
    return shaken_variables(settings.build(game.build())), config


def planes_of(config: Config, count: int, shape: tuple[int, int] | None = None) -> np.ndarray:
    game = config.game.build()
    draw = np.random.default_rng(3)
    planes = draw.random((count, *(shape or game.board_shape), game.num_planes)) < 0.3
    planes[..., 16] = draw.random((count, 1, 1)) < 0.5
    return planes.astype(np.float32)


def outputs(variables: PyTree, config: Config, planes: np.ndarray) -> dict[str, np.ndarray]:
    """Return what the network's own fast path says."""
    built = config.network.build(config.game.build())
    params = jax.jit(built.fold)(variables)
    logits, value = jax.jit(built.infer)(params, planes)
    heads = {} if built.analyse is None else jax.jit(built.analyse)(params, planes).auxiliary
    return {"logits": logits, "value": value, **heads}


def check_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """The heads of an untrained network reach a hundred: 1e-4 of the largest output is compared."""
    assert found.keys() == expected.keys()
    for head, mine in expected.items():
        assert found[head].shape == mine.shape, head
        scale = max(1.0, float(np.abs(mine).max()))
        np.testing.assert_allclose(found[head], mine, rtol=0, atol=1e-4 * scale, err_msg=head)


@pytest.mark.parametrize("name", FAMILIES)
def test_onnx_runtime_agrees(name: str, tmp_path: Path) -> None:
    variables, config = network(*FAMILIES[name])
    file = tmp_path / "new" / "network.onnx"
    write_onnx(file, variables, config)
    onnx = OnnxNetwork(file)
    assert onnx.config == config
    planes = planes_of(config, 5)
    expected = outputs(variables, config, planes)
    for count in (1, 5):
        first = {head: array[:count] for head, array in expected.items()}
        check_close(onnx.outputs(planes[:count]), first)
    assert np.std(np.asarray(expected["value"])) > 1e-5


@pytest.mark.parametrize("name", ["sep-plain", "pooled"])
def test_openvino_agrees(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_module("openvino")
    monkeypatch.setattr("azero.interop.onnx_file.num_cores", lambda: 2)
    variables, config = network(*FAMILIES[name])
    file = tmp_path / "network.onnx"
    write_onnx(file, variables, config)
    openvino = OnnxNetwork(file, "openvino", dtype="float32")
    assert openvino.config == config
    for count in (1, 4):
        planes = planes_of(config, count)
        check_close(openvino.outputs(planes), outputs(variables, config, planes))


def test_a_batch_is_split_over_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables, config = network(*FAMILIES["one block"])
    file = tmp_path / "network.onnx"
    write_onnx(file, variables, config)
    planes = planes_of(config, 6)
    monkeypatch.setattr("azero.interop.onnx_file.num_cores", lambda: 1)
    whole = OnnxNetwork(file)
    monkeypatch.setattr("azero.interop.onnx_file.num_cores", lambda: 3)
    split = OnnxNetwork(file)
    check_close(split.outputs(planes), whole.outputs(planes))
    check_close(split.outputs(planes[:4]), whole.outputs(planes[:4]))


@pytest.mark.parametrize("name", ["go5-komi", "efficiency/go7-first", "chess-endings"])
def test_trained_networks_agree(name: str, tmp_path: Path) -> None:
    variables, config = load_variables(EXPERIMENTS / name / "checkpoint")
    file = tmp_path / "network.onnx"
    if name == "chess-endings":
        positions = tmp_path / "starts.txt"
        positions.write_text("8/8/8/8/8/2k5/8/K1R5 w - - 0 1\n")
        config = dataclasses.replace(
            config, game=config.game.replace(start_positions=str(positions))
        )
    write_onnx(file, variables, config)
    assert str(tmp_path).encode() not in file.read_bytes(), "a folder of this machine"
    planes = planes_of(config, 8)
    expected, found = outputs(variables, config, planes), OnnxNetwork(file).outputs(planes)
    for head, mine in expected.items():
        np.testing.assert_allclose(found[head], mine, rtol=1e-5, atol=1e-4, err_msg=head)


def test_a_pooled_network_takes_boards_of_any_size(tmp_path: Path) -> None:
    variables, config = network(*FAMILIES["pooled"])
    file = tmp_path / "network.onnx"
    write_onnx(file, variables, config)
    other = dataclasses.replace(config, game=config.game.replace(size=(9,)))
    planes = planes_of(other, 2)
    expected, found = outputs(variables, other, planes), OnnxNetwork(file).outputs(planes)
    check_close(found, expected)


def test_a_file_is_a_player(tmp_path: Path) -> None:
    """It finds what the same network finds in XLA, under every symmetry; komi may differ."""
    config = dataclasses.replace(
        load("go5").config, network=ResNetConfig(policy_filters=4, **SIZES)
    )
    variables, config = network(config.game, config.network)
    file = tmp_path / "five.onnx"
    write_onnx(file, variables, config)
    spec = parse_player(f"onnx:{file}?visits=12")
    assert spec == OnnxSpec(file, 12) and spec.name == "onnx five, 12 visits"
    assert resolve(spec) == (spec, config)
    player = load_thinker(spec, config.game.replace(komi=3.5))
    position = Position.start(player.game).play(12)
    built = config.network.build(player.game)
    planes = np.asarray(player.game.observe(position.state))[None]
    logits, value = jax.jit(built.apply)(variables, planes)
    masked = np.where(position.legal, np.asarray(logits)[0], -np.inf)
    policy, mine = player.evaluate(position, 0)
    np.testing.assert_allclose(policy, np.asarray(jax.nn.softmax(masked)), atol=1e-5)
    np.testing.assert_allclose(mine, np.asarray(value)[0], atol=1e-5)
    turned = player.game.transform_planes(planes[0], 3)
    logits, value = jax.jit(built.apply)(variables, np.asarray(turned)[None])
    back = player.game.inverse_transform_policy(logits[0], 3)
    policy, mine = player.evaluate(position, 3)
    np.testing.assert_allclose(mine, np.asarray(value)[0], atol=1e-5)
    masked = np.where(position.legal, np.asarray(back), -np.inf)
    np.testing.assert_allclose(policy, np.asarray(jax.nn.softmax(masked)), atol=1e-5)
    assert player.think(position, Limits(visits=12)).visits == 12
    with pytest.raises(ValueError, match="knows go on 5x5 and cannot play go on 9x9"):
        load_thinker(spec, config.game.replace(size=(9,)))
    with pytest.raises(ValueError, match="knows go on 5x5 and cannot play tictactoe on 3x3"):
        load_thinker(spec, load("tictactoe").config.game)
    with pytest.raises(ValueError, match=r"takes visits=NUMBER, backend=onnxruntime\|openvino"):
        parse_player(f"onnx:{file}?search=engine")


@pytest.mark.parametrize(("name", "method"), [("pooled", "points"), ("pooled, planes", "draws")])
def test_a_file_estimates_what_its_network_does(name: str, method: str, tmp_path: Path) -> None:
    variables, config = network(*FAMILIES[name])
    learner = LearnerConfig(ownership_weight=1.5, score_weight=0.02)
    config = dataclasses.replace(config, learner=learner)
    write_onnx(tmp_path / "network.onnx", variables, config)
    write_exported(tmp_path / "checkpoint", variables, 1, config)
    found = []
    for spec in (OnnxSpec(tmp_path / "network.onnx"), CheckpointSpec(tmp_path / "checkpoint")):
        player = load_thinker(spec)
        position = Position.start(player.game)
        position = position.play(int(np.flatnonzero(position.legal)[0]))
        estimate = getattr(player, f"estimate_{method}")
        found.append(estimate(position, np.flatnonzero(position.legal)[:3].tolist()))
    assert len(found[0]) == len(found[1]) >= 3
    for ours, theirs in zip(*found, strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), ours, theirs)


def test_a_player_names_its_backend(tmp_path: Path) -> None:
    spec = parse_player(f"onnx:{tmp_path}/five.onnx?backend=openvino")
    assert isinstance(spec, OnnxSpec)
    assert (spec.backend, spec.name) == ("openvino", "onnx five, openvino")
    with pytest.raises(ValueError, match=r"backend=tensorrt .*backend=onnxruntime\|openvino"):
        parse_player(f"onnx:{tmp_path}/five.onnx?backend=tensorrt")


def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(ValueError, match=r"openvino is not installed: pip install 'azero\[openv"):
        OnnxNetwork(tmp_path / "x.onnx", "openvino")


def test_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "x.onnx"
    with pytest.raises(ValueError, match="there is no file"):
        OnnxNetwork(file)
    variables, config = network(*FAMILIES["dual-res"])
    write_onnx(file, variables, config)
    whole = file.read_bytes()
    damaged = whole.replace(b'{"game"', b'["game"')
    assert damaged != whole
    for content in (b"", b"not a network", whole[: len(whole) // 2], damaged):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.onnx") as error:
            OnnxNetwork(file)
        assert "\n" not in str(error.value)
    onnx = require_module("onnx")
    model = onnx.load_from_string(whole)
    model.metadata_props[0].value = "[1]"
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"x\.onnx: its settings are damaged"):
        OnnxNetwork(file)
    model = onnx.load_from_string(whole)
    for node in model.graph.node:
        node.output[:] = ["other" if name == "value" else name for name in node.output]
    for output in model.graph.output:
        output.name = output.name.replace("value", "other")
    file.write_bytes(model.SerializeToString())
    for backend in ("onnxruntime", "openvino"):
        require_module(backend)
        with pytest.raises(ValueError, match=r"x\.onnx has no input or output value"):
            OnnxNetwork(file, backend)
    with pytest.raises(ValueError, match="policy2016 cannot be written as ONNX"):
        write_onnx(file, {}, Config(GO.replace(size=(9,), planes=48), Policy2016Config(**SIZES)))
