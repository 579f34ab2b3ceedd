"""Speed of one tree for one game: `azero bench engine`. A match measures the strength that batches
cost (docs/engines.md)."""

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from azero import mesh as mesh_lib
from azero.bench.timing import device_name
from azero.config import check_range
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.games.game import Game
from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.interop.onnx_file import Backend, OnnxNetwork, write_onnx
from azero.networks.make import resolve
from azero.networks.settings import ResNetConfig
from azero.players.thinking import Limits
from azero.players.tree_player import TreePlayer
from azero.search.leaf import SymmetryLeafFn, external_leaf, ignore_symmetry, symmetry_network_leaf
from azero.search.search import LeafFn
from azero.search.single.evaluator import Evaluator
from azero.search.single.packed import PackedRules, states_of
from azero.search.single.parallel import TreeSettings
from azero.settings import Config
from azero.types import Array, PyTree

BACKENDS: dict[str, Backend] = {"onnx": "onnxruntime", "openvino": "openvino"}
"""Values of `--against` and the libraries that they name."""
OPENING_MOVES = 30
"""Random moves before the measured search, for a middle-game position."""
VALUES = 0.2
"""Largest magnitude of the stand-in's values. With 8,000 visits at 9x9 calls of 128 leaves then
have 70 positions (with `go9` 79), calls of 256 have 92 (84). With values up to 1 the search follows
one line: 37, 44."""


@dataclass(frozen=True)
class EngineResult:
    """One line of the table."""

    batch: int
    visits_per_second: float
    network_share: float
    """Share of the search's time that is spent waiting for the network, 0 to 1."""
    positions_per_second: float
    """Speed of the network alone, with the same batch."""
    mean_batch: float
    """Actual positions per call of the search."""

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "batch": self.batch,
            "visits/s": f"{self.visits_per_second:,.0f}",
            "network's share": f"{self.network_share:.0%}",
            "network alone, positions/s": f"{self.positions_per_second:,.0f}",
            "positions a call": f"{self.mean_batch:.1f}",
        }


@dataclass(frozen=True)
class EngineArguments:
    """Time one search of a single tree."""

    against: str | None = None
    """onnx: the same network as an ONNX file, evaluated by ONNX Runtime on the CPU, in float32.
    openvino: by OpenVINO, in bfloat16 where the CPU computes in it."""
    size: int = 19
    """Points per side."""
    blocks: int = 6
    """Blocks of the tower."""
    filters: int = 96
    """Filters of the tower."""
    convolution: Literal["auto", "xla", "dots", "winograd"] = "auto"
    """How the tower is computed; auto is the engine's choice on this kind of machine."""
    batches: tuple[int, ...] = (1, 8, 16, 32)
    """Leaves per call."""
    visits: int = 800
    """Visits of each search."""
    stand_in: bool = False
    """Use hashes of the position as policies and values instead of a network: what remains is the
    cost of the tree, the rules and the calls."""
    overlaps: bool = False
    """Gather the next batch while the last one is evaluated."""


def run(arguments: EngineArguments) -> list[EngineResult]:
    """Time searches from one position, a fresh tree for every batch size; the weights are
    random."""
    config = Config(GoConfig(size=(arguments.size,)), network_of(arguments))
    game = config.game.build()
    network = config.network.build(game)
    variables = jax.jit(network.init)(jax.random.key(0))
    leaf, params = symmetry_network_leaf(game, network.infer), jax.jit(network.fold)(variables)
    outside = None
    if arguments.against is not None:
        outside = _onnx_network(variables, config, BACKENDS[arguments.against])
        leaf, params = external_leaf(game), ()
    if arguments.stand_in:
        leaf = ignore_symmetry(hash_leaf(game))
    else:
        leaf = with_hash_policies(game, leaf)
    position = random_opening(game)
    results = []
    for batch in arguments.batches:
        settings = TreeSettings(batch=batch, cache_size=0, overlaps=arguments.overlaps)
        evaluator = settings.make_evaluator(game, leaf, params, network=outside)
        player = TreePlayer(game, evaluator, settings=settings)
        results.append(measure(player, evaluator, batch, position, arguments.visits))
    return results


def network_of(arguments: EngineArguments) -> ResNetConfig:
    """Return the settings of the network, with the convolution for this kind of machine."""
    return resolve(
        ResNetConfig(
            blocks=arguments.blocks,
            filters=arguments.filters,
            convolution=arguments.convolution,
        )
    )


def _onnx_network(variables: PyTree, config: Config, backend: Backend) -> OnnxNetwork:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.onnx"
        write_onnx(file, variables, config)
        return OnnxNetwork(file, backend)


def with_hash_policies(game: Game, leaf: SymmetryLeafFn) -> SymmetryLeafFn:
    """Make the leaf with the values of `leaf` and policies that are hashes of the position.

    The policies of random weights are even: the descents of a batch meet at one leaf, and calls are
    not full. Those of trained networks and of hashes are not.
    """
    draw = hash_leaf(game)

    def drawn(params: PyTree, key: Array, states: PyTree, symmetry: Array) -> tuple[Array, Array]:
        logits, values = leaf(params, key, states, symmetry)
        # Part of the answer, so that XLA does not leave the policy head out.
        return draw(params, key, states)[0] + 1e-6 * logits, values

    return drawn


def hash_leaf(game: Game) -> LeafFn:
    """Make the leaf whose logits in [-3, 3] and values up to VALUES are hashes of the position."""

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        del params, key
        code = jnp.uint32(0)
        for column in jax.tree.leaves(states):
            words = column.astype(jnp.uint32).reshape(len(column), -1)
            factors = jnp.arange(1, 2 * words.shape[1], 2, dtype=jnp.uint32)
            code = code * jnp.uint32(0x9E3779B1) + (words * factors).sum(axis=1, dtype=jnp.uint32)
        drawn = code[:, None] * jnp.arange(1, 2 * game.num_actions + 2, 2, dtype=jnp.uint32)
        drawn = (drawn ^ (drawn >> 15)) * jnp.uint32(0x2C1B3C6D)
        uniform = (drawn >> 8).astype(jnp.float32) / 2**24
        return 6.0 * uniform[:, :-1] - 3.0, VALUES * (2.0 * uniform[:, -1] - 1.0)

    return leaf


def random_opening(game: Game) -> Position:
    """Return the position after OPENING_MOVES random moves other than passes."""
    random, position = np.random.default_rng(0), Position.start(game)
    for _ in range(OPENING_MOVES):
        position = position.play(int(random.choice(np.flatnonzero(position.legal[:-1]))))
    return position


def measure(
    player: TreePlayer, evaluator: Evaluator, batch: int, position: Position, visits: int
) -> EngineResult:
    """Time one search of `player`, whose batch is `batch`, and then the network alone."""
    player.warm_up(position)
    player.think(position, Limits(visits=2 * batch))  # compiles what is left, or loads it
    player.reset()
    before, began = evaluator.counts, time.perf_counter()
    analysis = player.think(position, Limits(visits=visits))
    seconds, after = time.perf_counter() - began, evaluator.counts
    packed = PackedRules(position.game, batch).pack(position.state)
    states, legal = states_of([packed] * batch), np.tile(packed.legal, (batch, 1))
    for _ in range(max(1, visits // batch)):
        evaluator.evaluate_uncached(states, legal, np.zeros(batch))
    alone = evaluator.counts
    calls, asked = after.calls - before.calls, after.positions - before.positions
    return EngineResult(
        batch,
        visits_per_second=analysis.playouts / seconds,
        network_share=(after.seconds - before.seconds) / seconds,
        mean_batch=asked / calls,
        positions_per_second=(alone.positions - after.positions) / (alone.seconds - after.seconds),
    )


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    mesh_lib.split_cpu()
    chosen = tyro.cli(EngineArguments, args=arguments)
    if chosen.against is not None and chosen.against not in BACKENDS:
        raise ValueError(
            f"azero bench engine compares with {' and '.join(BACKENDS)}, not {chosen.against!r}"
        )
    check_range(chosen, "--", "size blocks filters batches visits", 1)
    console, network = make_console(), network_of(chosen)
    shape = f"{chosen.size}x{chosen.size}, {chosen.blocks} blocks of {chosen.filters} filters"
    how = f"{network.convolution} {network.inference_dtype}"
    if chosen.stand_in:
        shape, how = f"{chosen.size}x{chosen.size}, no network", "policies and values are hashes"
    results = run(replace(chosen, against=None))
    title = f"{shape} ({how}), {chosen.visits} visits, {device_name()}"
    console.print(results_table(results, title, 0))
    if chosen.against is not None:
        results = run(replace(chosen, stand_in=False, overlaps=False))
        title = f"{shape} ({BACKENDS[chosen.against]}, CPU), {chosen.visits} visits"
        console.print(results_table(results, title, 0))
