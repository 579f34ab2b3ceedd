"""`azero plan`: real programs compiled by the TPU compiler, their properties, and the report's
figures against counts by hand and a compile of its own."""

import contextlib
import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from needs import NOT_HERE

from azero.chips import parse_topology
from azero.config import load_overlay
from azero.experiment import load
from azero.games.table import make
from azero.mesh import batch_sharded, replicated
from azero.networks.network import Inputs, Network
from azero.networks.settings import NetworkConfig, ResNetConfig
from azero.plan.compiled import (
    ProgramCost,
    compile_program,
    device_rates,
    program_costs,
    usable_bytes,
)
from azero.plan.cost import module_cost
from azero.plan.fitting import fit
from azero.plan.hlo import COLLECTIVES
from azero.plan.programs import PlannedPrograms, topology_mesh
from azero.plan.run_cost import game_length
from azero.settings import Config
from azero.train.estimate import evaluation_flops
from azero.types import Array, PyTree

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("libtpu") is None,
    reason=f"{NOT_HERE}the TPU compiler (pip install 'azero[plan]')",
)
TOPOLOGIES = ("v5e:1x1", "v5e:2x4", "v5e:16x16", "v4:2x2x1", "v6e:2x4")
EXPERIMENTS = ("go19", "go19_alphazero", "chess", "shogi")


def by_hand(points: int, planes: int, actions: int, network: NetworkConfig) -> int:
    """Return the operations of one evaluation of AlphaGo Zero's network, two for each product, as
    one counts them from its description."""
    filters, hidden = network.filters, network.value_hidden
    tower = 9 * planes * filters + (network.blocks - 1) * 2 * 9 * filters * filters
    if network.policy_head == "planes":
        policy = 9 * filters * network.policy_filters * points + network.policy_filters * actions
    else:
        policy = (
            filters * network.policy_filters * points + network.policy_filters * points * actions
        )
    value = filters * points + points * hidden + hidden
    return 2 * (tower * points + policy + value)


class Compiled(NamedTuple):
    """An experiment's programs and what the compiler says of them."""

    programs: PlannedPrograms
    costs: dict[str, ProgramCost]


def compile_all(config: Config, topology: str, *, fitted: bool = False) -> Compiled:
    slice_ = parse_topology(topology)
    if fitted:
        config = fit(config, slice_, True, silently)
    programs = PlannedPrograms(config, topology_mesh(slice_))
    return Compiled(programs, program_costs(programs, slice_, silently))


def silently(what: str) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def check_properties(compiled: Compiled) -> None:
    """Check what every experiment is held to, whatever the slice."""
    programs, costs = compiled
    for name in (
        "fold",
        "self-play",
        "game step",
        "unpack",
        *(["match"] if "match" in costs else []),
    ):
        assert not set(costs[name].counts) & set(COLLECTIVES), (
            f"{name} has collectives: {costs[name].counts}"
        )
    assert costs["game step"].counts["scatter"] == 0
    learner = costs["train step"]
    assert set(learner.counts) & set(COLLECTIVES) <= {"all-reduce"}
    if programs.mesh.size > 1:
        gradients = sum(4 * leaf.size for leaf in jax.tree.leaves(programs.parameters))
        # Summed once: in float32, or those of the tower in bf16. The rest is batch statistics, four
        # sums for each channel, and the losses.
        assert 0.49 * gradients < learner.work.exchanged_bytes < 1.05 * gradients


@pytest.fixture(scope="module")
def small() -> Compiled:
    return compile_all(load("tictactoe").config, "v5e:2x4")


@pytest.mark.parametrize("name", ["go19", "chess", "shogi"])
def test_by_hand_is_what_the_layers_say(name: str) -> None:
    config = load(name).config
    game = make(config.game.name)
    counted = by_hand(
        math.prod(game.board_shape), game.num_planes, game.num_actions, config.network
    )
    assert evaluation_flops(config.network, game) == pytest.approx(counted, rel=0.002), (
        "all but biases and batch norms"
    )


class Attention(NetworkConfig):
    """A network whose layers work at every square, and whose squares look at each other."""

    def build(self, shapes: Inputs, platform: str | None = None) -> Network:
        sizes = {"stem": (shapes.num_planes, 64), "attention": (64, 192), "moves": (64, 1)}

        def init(key: Array) -> PyTree:
            return {"params": {name: jnp.zeros(size) for name, size in sizes.items()}}

        def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
            stem, attention, moves = (variables["params"][name] for name in sizes)
            x = planes.reshape(len(planes), -1, shapes.num_planes) @ stem
            query, key, value = jnp.split(x @ attention, 3, axis=-1)
            x = jax.nn.softmax(query @ key.mT) @ value
            return (x @ moves)[..., 0], x.mean((1, 2))

        return Network(init, apply, apply, lambda variables: variables, apply)  # type: ignore[arg-type]


SHOGI = load("shogi_efficient").config


@pytest.mark.parametrize(
    "config", [Attention("attention"), SHOGI.network.replace(convolution="dots")]
)
def test_by_hand_is_what_the_compiler_counts(config: NetworkConfig) -> None:
    shapes = SHOGI.game.build()
    network = config.build(shapes, "gpu")
    variables = jax.eval_shape(network.init, jax.random.key(0))
    planes = jax.ShapeDtypeStruct((1, *shapes.board_shape, shapes.num_planes), jnp.float32)
    compiled = jax.jit(network.apply).lower(variables, planes).compile().cost_analysis()["flops"]
    # The compiler leaves out products beyond the border, up to (27 / 25)^2 of a 3x3 convolution on
    # 9x9, and counts softmax.
    assert 0.98 < evaluation_flops(config, shapes) / compiled < 1.17


@needs_compiler
@pytest.mark.parametrize("overlay", [None, "pod"])
def test_the_gate_of_400_games_is_built_on_every_slice(overlay: str | None) -> None:
    """400 games divide over none of these slices; a gate that cannot be built ends a plan, and a
    run before its first iteration."""
    config = load("go19").config
    if overlay is not None:
        config = load_overlay(Path(__file__).parents[2] / "configs" / f"{overlay}.toml", config)
    for topology, devices in (
        ("v5e:4x4", 16),
        ("v5e:4x8", 32),
        ("v5e:8x8", 64),
        ("v5e:8x16", 128),
        ("v5e:16x16", 256),
    ):
        programs = PlannedPrograms(config, topology_mesh(parse_topology(topology)))
        assert (programs.mesh.size, programs.in_order()[-1].name) == (devices, "match")
    carry = programs.trace_match().in_avals[0][2]
    assert carry.ply.shape == (256,), "200 pairs of games, filled up to one a device"


@needs_compiler
def test_the_compiled_tower_of_20_blocks_does_what_was_counted_by_hand() -> None:
    slice_ = parse_topology("v5e:1x1")
    mesh = topology_mesh(slice_)
    network = ResNetConfig(blocks=20, filters=256).build(Inputs((19, 19), 17, 362), "tpu")
    folded = jax.eval_shape(lambda key: network.fold(network.init(key)), jax.random.key(0))
    planes = jax.ShapeDtypeStruct((8, 19, 19, 17), jnp.bool_)
    lowered = jax.jit(network.infer, in_shardings=(replicated(mesh), batch_sharded(mesh))).lower(
        folded, planes
    )
    cost = module_cost(compile_program(lowered, slice_.name).module, device_rates(slice_))
    assert cost.flops == pytest.approx(8 * by_hand(361, 17, 362, ResNetConfig()), rel=0.02)


@needs_compiler
def test_a_small_experiment_holds_what_the_large_ones_are_held_to(small: Compiled) -> None:
    check_properties(small)


@needs_compiler
def test_work_is_what_was_counted_by_hand(small: Compiled) -> None:
    config, game = small.programs.config, small.programs.game
    network, points = config.network, math.prod(game.board_shape)
    one = by_hand(points, game.num_planes, game.num_actions, network)
    moves = config.selfplay.moves_per_dispatch * config.selfplay.num_games // 8
    assert small.costs["self-play"].work.flops == pytest.approx(
        moves * (config.search.num_simulations + 1) * one, rel=0.02
    )
    # Forward, and back to the kernels and to what went in, which nobody asks of the first layer.
    stem = 2 * 9 * game.num_planes * network.filters * points
    assert small.costs["train step"].work.flops == pytest.approx(
        (3 * one - stem) * config.learner.batch_size / 8, rel=0.02
    )


@needs_compiler
def test_memory_is_what_a_compile_of_its_own_says(small: Compiled) -> None:
    slice_ = parse_topology("v5e:2x4")
    programs = PlannedPrograms(small.programs.config, topology_mesh(slice_))
    analysis = programs.train_step().lower().compile().memory_analysis()
    total = (
        analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
        + analysis.temp_size_in_bytes
    )
    reported = small.costs["train step"].compiled.memory
    assert reported.total == pytest.approx(total + analysis.generated_code_size_in_bytes, rel=0.1)
    assert small.costs["train step"].hbm_bytes > reported.total, (
        "games in flight and other players lie beside it"
    )


def test_published_games_give_the_length_of_a_game() -> None:
    # 2,048 games x 80 moves x 7,000 iterations / 4.9 million
    assert game_length(load("go19")) == pytest.approx(234, abs=1)
    assert game_length(load("chess")) == pytest.approx(104, abs=1)


@needs_compiler
def test_the_command_prints_json_alone_and_progress_elsewhere(tmp_path: Path) -> None:
    shown = "azero plan --experiment tictactoe --topology v5e:1x1 --search.num-simulations 4"
    assert shown in (Path(__file__).parents[2] / "docs" / "planning.md").read_text()
    words = [*shown.split()[2:], "--price", "1.2", "--json"]
    done = run_plan(*words, "--picture", str(tmp_path / "profile.svg"))
    plan = json.loads(done.stdout)
    assert plan["fits"] and set(plan["programs"]) == {
        "fold",
        "self-play",
        "game step",
        "unpack",
        "train step",
        "match",
    }
    assert plan["dollars"] == pytest.approx(plan["run"]["run_days"] * 24 * 1.2)
    assert plan["hbm_bytes"] == max(program["hbm_bytes"] for program in plan["programs"].values())
    assert "compiling self-play for v5e:1x1" in done.stderr
    for name, program in plan["programs"].items():
        found = plan["profile"][name]
        assert found["roofline"] == pytest.approx(program["cost"]["seconds"])
        assert found["seconds"] == pytest.approx(sum(x["seconds"] for x in found["lines"]))
    parts = plan["profile"]["self-play"]["parts"]
    assert {"search tree", "rules", "convolutions and products"} <= parts.keys()
    assert any(x["source"].startswith("networks/") for x in plan["profile"]["train step"]["lines"])
    drawn = (tmp_path / "profile.svg").read_text()
    assert "search tree" in drawn and "train step, " in drawn


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--experiment", "go20"), "unknown experiment 'go20'"),
        (("--topology", "v9:2x2"), "unknown TPU generation 'v9'"),
        pytest.param(
            ("--topology", "v5e:3x3"), "rejects the topology 'v5e:3x3'", marks=needs_compiler
        ),
        pytest.param(
            ("--selfplay.num-games", "100"),
            "selfplay.num-games = 100 is not divisible by the 8 devices",
            marks=needs_compiler,
        ),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], message: str) -> None:
    done = run_plan(*words)
    assert (
        done.returncode == 2
        and message in done.stderr
        and "Traceback" not in done.stderr
        and done.stdout == ""
    )


def run_plan(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "azero", "plan", *words], capture_output=True, text=True, timeout=600
    )


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_published_experiments_on_slices(name: str, topology: str) -> None:
    # Few chips have no room for the whole batch of the papers: there the sizes are chosen.
    compiled = compile_all(load(name).config, topology, fitted=topology != "v5e:16x16")
    check_properties(compiled)
    assert max(cost.hbm_bytes for cost in compiled.costs.values()) <= usable_bytes(
        parse_topology(topology)
    )
    assert compiled.costs["self-play"].work.unknown_loops > 0
