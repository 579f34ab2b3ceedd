"""Speed of the training step and its share of the device's peak: `azero bench train`.

Operations are counted by hand from the network's layers, a multiplication and an addition per
weight and point, forward and backward; the rest of a step (batch norm, losses, the optimiser) takes
time but is not counted.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax.sharding import Mesh, PartitionSpec

from azero import mesh as mesh_lib
from azero.bench.games import engine_of, spread_games
from azero.bench.timing import best_seconds, device_name
from azero.chips import peak_flops
from azero.config import check_range
from azero.console.progress import working
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.data.sample import Samples, unpack
from azero.games.game import Game
from azero.games.table import make
from azero.learn.learner import TrainState, make_learner
from azero.learn.metrics import Metrics, StepMetrics
from azero.learn.settings import LearnerConfig
from azero.networks.make import resolve
from azero.networks.network import Network
from azero.networks.settings import NetworkConfig, ResNetConfig
from azero.selfplay.targets import policy_room, policy_words
from azero.train.estimate import TRAINING_PASSES, evaluation_flops, parameter_shapes
from azero.types import Array, PyTree

PRODUCT_SIZE = {"cpu": 1024}
"""Side of the square matrices whose product is measured; 8192 elsewhere."""


@dataclass(frozen=True)
class TrainResult:
    """One line of the table."""

    what: str
    batch: int
    """Positions per step over all devices."""
    positions_per_second: float
    step_seconds: float
    flops: float
    """FLOP/s, forward and backward."""
    peak: float | None
    """Published FLOP/s of all devices for the compute type; None for devices without an entry, such
    as CPUs."""
    product: float
    """FLOP/s of a large matrix product of the compute type on the same devices in the same run."""

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "what": self.what,
            "batch": self.batch,
            "positions/s": f"{self.positions_per_second:,.0f}",
            "ms/step": f"{1000 * self.step_seconds:,.1f}",
            "TFLOP/s": f"{self.flops / 1e12:,.2f}",
            "of the peak": f"{self.flops / self.peak:.0%}" if self.peak else "unknown",
            "of a matrix product": f"{self.flops / self.product:.0%}",
        }


@dataclass(frozen=True)
class TrainArguments:
    """Time the training step: by default AlphaGo Zero's network and batch on an accelerator, a
    small network on a CPU."""

    size: int | None = None
    """Points per side (19; on a CPU 9)."""
    blocks: int | None = None
    """Blocks of the tower (20; on a CPU 6)."""
    filters: int | None = None
    """Filters of the tower (256; on a CPU 64)."""
    batch: int | None = None
    """Positions per step over all devices (2048 on each; on a CPU 128). If they do not fit into
    memory, half as many are tried."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """Compute type of the tower (bfloat16; on a CPU float32)."""
    steps: int = 8
    """Steps in one measurement."""
    repeats: int = 3
    """Number of measurements, of which the best counts."""


def run(arguments: TrainArguments) -> list[TrainResult]:
    """Time the step alone and with the unpacking of its samples, on positions from the middle of
    games."""
    on_cpu = jax.default_backend() == "cpu"
    size, blocks, filters = (
        arguments.size or (9 if on_cpu else 19),
        arguments.blocks or (6 if on_cpu else 20),
        arguments.filters or (64 if on_cpu else 256),
    )
    dtype: Literal["float32", "bfloat16"] = arguments.dtype or ("float32" if on_cpu else "bfloat16")
    mesh, game = mesh_lib.make_mesh(), make("go", size=size)
    config = resolve(
        ResNetConfig(blocks=blocks, filters=filters, train_dtype=dtype, inference_dtype=dtype)
    )
    network = config.build(game)
    operations = step_flops(config, game)
    product = product_flops(mesh, config.train_dtype)
    peak = peak_flops(jax.devices()[0].device_kind, config.train_dtype)
    batch, seconds = fit(
        arguments.batch or (128 if on_cpu else 2048 * mesh.size),
        mesh.size,
        lambda batch: time_steps(network, game, mesh, batch, arguments),
    )
    return [
        TrainResult(
            what,
            batch,
            batch / took,
            took,
            operations * batch / took,
            peak * mesh.size if peak else None,
            product,
        )
        for what, took in zip(("train step", "with unpacking"), seconds, strict=True)
    ]


def step_flops(config: NetworkConfig, game: Game) -> float:
    """Return the operations of a training step for one position: forward and backward, without the
    gradient of the planes, which nothing needs."""
    params = parameter_shapes(config.build(game))
    points = game.board_shape[0] * game.board_shape[1]
    stems = sum(params[tower]["stem"]["kernel"].size for tower in params if tower.endswith("tower"))
    return TRAINING_PASSES * evaluation_flops(config, game) - 2 * stems * points


def fit(
    batch: int, devices: int, measure: Callable[[int], tuple[float, float]]
) -> tuple[int, tuple[float, float]]:
    """Return the largest of `batch`, half of it, a quarter ... that fits the devices' memory, and
    the result of `measure` for it."""
    while True:
        try:
            return batch, measure(batch)
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error) or batch % (2 * devices):
                raise
        print(f"a batch of {batch} does not fit the memory; {batch // 2} instead", flush=True)
        batch //= 2


def time_steps(
    network: Network, game: Game, mesh: Mesh, batch: int, arguments: TrainArguments
) -> tuple[float, float]:
    """Return the seconds of one training step on `batch` positions, and of one with the unpacking
    of its samples before it."""
    learner = make_learner(LearnerConfig(batch_size=batch), network, game, mesh)
    samples = mesh_lib.put(
        jax.jit(lambda key: mid_game_samples(game, batch, key))(jax.random.key(0)),
        mesh_lib.batch_sharded(mesh),
    )
    unpacked = unpack(game, samples)
    state = learner.init(jax.random.key(1))

    def step(state: TrainState) -> tuple[TrainState, Metrics]:
        return learner.train_step(state, unpacked)

    def step_from_packed(state: TrainState) -> tuple[TrainState, Metrics]:
        return learner.train_step(state, unpack(game, samples))

    alone, state = _best(step, state, arguments)
    with_unpacking, _ = _best(step_from_packed, state, arguments)
    return alone, with_unpacking


def _best(
    step: Callable[[TrainState], tuple[TrainState, Metrics]],
    state: TrainState,
    arguments: TrainArguments,
) -> tuple[float, TrainState]:
    """Return the seconds of one of `arguments.steps` steps in a row, the best of
    `arguments.repeats` measurements, and the state after them."""

    def steps(_: int) -> TrainState:
        nonlocal state
        started = StepMetrics()
        for _ in range(arguments.steps):
            state, metrics = step(state)
            started.add(metrics)
        return state

    return best_seconds(steps, arguments.repeats) / arguments.steps, state


def mid_game_samples(game: Game, batch: int, key: Array) -> Samples:
    """Return samples as the replay would send them, from the middle of random games; of the boards
    before them only the last is kept, eight times."""
    games_key, value_key, symmetry_key = jax.random.split(key, 3)
    states = spread_games(engine_of(game), batch, game.num_actions - 1, games_key)
    legal = jax.vmap(game.legal_action_mask)(states)
    frames = jax.vmap(game.pack_frame)(states)
    return Samples(
        frames=jnp.repeat(frames[:, None], game.num_frames, axis=1),
        to_play=jax.vmap(game.to_play)(states).astype(jnp.uint8),
        policy=policy_words(legal.astype(jnp.int32), policy_room(game)),
        is_target=jnp.ones(batch, bool),
        value=jax.random.rademacher(value_key, (batch,), jnp.float32),
        symmetry=jax.random.randint(symmetry_key, (batch,), 0, game.num_symmetries).astype(
            jnp.uint8
        ),
    )


def product_flops(mesh: Mesh, dtype: str) -> float:
    """Return the FLOP/s that all devices together reach in a product of square matrices, a
    practical peak."""
    side = PRODUCT_SIZE.get(jax.default_backend(), 8192)
    shards = PartitionSpec(mesh_lib.DATA_AXIS)
    matrices = mesh_lib.put(
        np.full((mesh.size, side, side), 1 / side, jnp.dtype(dtype)), mesh_lib.batch_sharded(mesh)
    )

    def local(matrices: PyTree) -> PyTree:
        return jnp.matmul(matrices, matrices)

    product = jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=shards, out_specs=shards, check_vma=False)
    )
    result = matrices

    def products(_: int) -> Array:
        nonlocal result
        for _ in range(4):
            result = product(result)
        return result

    return 4 * mesh.size * 2 * side**3 / best_seconds(products, 3)


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(TrainArguments, args=arguments)
    check_range(chosen, "--", "size blocks filters batch steps repeats", 1)
    mesh_lib.split_cpu()
    with working("measuring the training step", make_console(stderr=True)):
        results = run(chosen)
    settings = ", ".join(
        f"{name} {value}" for name, value in dataclasses.asdict(chosen).items() if value is not None
    )
    make_console().print(
        results_table(results, f"The training step on {device_name()} ({settings})", 1)
    )
