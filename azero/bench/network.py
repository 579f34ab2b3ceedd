"""Speed of the network, in self-play and in training, compared with plain `nn.Conv`: `azero bench
network --against linen`.

All rows split the batch over all devices. XLA computes a convolution on one core only, so `main`
makes a device of every core of a CPU, as self-play does.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import jax
import numpy as np
import tyro
from jax.sharding import Mesh, PartitionSpec

from azero.bench.timing import device_name
from azero.config import check_range
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.data.sample import Batch
from azero.learn.learner import TrainState, make_learner
from azero.learn.settings import LearnerConfig
from azero.mesh import DATA_AXIS, batch_sharded, make_mesh, put, replicated, split_cpu
from azero.networks.make import has_bf16_units
from azero.networks.network import Inputs, Network
from azero.networks.settings import ResNetConfig
from azero.types import Array, PyTree

Dtype = Literal["float32", "bfloat16"]
NUM_PLANES = 17
"""Planes of a Go position (AGZ)."""


@dataclass(frozen=True)
class NetworkResult:
    """One line of the table."""

    path: str
    """Program: `linen` (the trained form, with nn.Conv), `infer` or `train`, and the
    convolution."""
    dtype: str
    positions_per_second: float
    gflops: float
    """1e9 multiplications and additions per second by the definition of the layers (training: three
    times those), whatever the path computes."""
    cpu_seconds: float
    """CPU seconds per 1,000 positions."""
    compile_seconds: float
    ratio: float | None = None
    """Speed relative to the fastest `linen` row; None without one, and for training."""

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "path": self.path,
            "type": self.dtype,
            "positions/s": f"{self.positions_per_second:,.0f}",
            "GFLOP/s": f"{self.gflops:,.0f}",
            "CPU s/1,000": f"{self.cpu_seconds:.3f}",
            "compile s": f"{self.compile_seconds:.1f}",
            "x linen": "" if self.ratio is None else f"{self.ratio:.2f}",
        }


@dataclass(frozen=True)
class NetworkArguments:
    """Time the network, and the training step."""

    against: Literal["linen", "none"] = "linen"
    """Also time the trained form, with XLA's convolution on the whole batch."""
    size: int = 19
    """Points per side."""
    blocks: int = 4
    """Blocks of the tower."""
    filters: int = 96
    """Filters of the tower."""
    batch: int = 64
    """Positions per call, over all devices together."""
    train: bool = False
    """Also time the training step."""
    repeats: int = 5
    """Number of calls; the best counts."""


def run(arguments: NetworkArguments) -> list[NetworkResult]:
    """Time every path that suits this machine on the same random planes.

    Raises:
      ValueError: the batch does not split over the devices.
    """
    mesh = make_mesh()
    base = ResNetConfig(blocks=arguments.blocks, filters=arguments.filters)
    on_cpu, results = jax.default_backend() == "cpu", list[NetworkResult]()
    dtypes: tuple[Dtype, ...] = ("float32", "bfloat16")
    for dtype in dtypes[:1] if on_cpu and not has_bf16_units() else dtypes:
        typed = dataclasses.replace(base, train_dtype=dtype, inference_dtype=dtype)
        if arguments.against == "linen":
            results.append(time_apply(typed.replace(convolution="xla"), mesh, arguments))
        convolutions = ("xla", "dots", "winograd") if dtype == "float32" else ("xla", "dots")
        for convolution in convolutions if on_cpu else ("xla",):
            config = typed.replace(convolution=convolution)
            results.append(time_infer(config, mesh, arguments))
            if arguments.train:
                results.append(time_train(config, mesh, arguments))
    linen = [row.positions_per_second for row in results if row.path.startswith("linen")]
    return [
        dataclasses.replace(row, ratio=row.positions_per_second / max(linen))
        if linen and not row.path.startswith("train")
        else row
        for row in results
    ]


def count_operations(config: ResNetConfig, size: int) -> int:
    """Return the multiplications and additions of the 3x3 convolutions for one position."""
    inputs = NUM_PLANES + 2 * (config.blocks - 1) * config.filters
    return 2 * 9 * inputs * config.filters * size * size


def time_apply(config: ResNetConfig, mesh: Mesh, arguments: NetworkArguments) -> NetworkResult:
    """Time the network as trained."""
    network = _make(config, arguments.size)
    variables = put(jax.jit(network.init)(jax.random.key(0)), replicated(mesh))
    call, seconds = _compile(network.apply, variables, mesh, arguments)
    return _result("linen xla", config.train_dtype, call, seconds, config, arguments)


def time_infer(config: ResNetConfig, mesh: Mesh, arguments: NetworkArguments) -> NetworkResult:
    """Time the folded network of self-play."""
    network = _make(config, arguments.size)
    folded = put(
        jax.jit(lambda key: network.fold(network.init(key)))(jax.random.key(0)), replicated(mesh)
    )
    call, seconds = _compile(network.infer, folded, mesh, arguments)
    path = f"infer {config.convolution}"
    return _result(path, config.inference_dtype, call, seconds, config, arguments)


def time_train(config: ResNetConfig, mesh: Mesh, arguments: NetworkArguments) -> NetworkResult:
    """Time the learner's step."""
    size, batch = arguments.size, arguments.batch
    num_actions = size * size + 1
    game: Any = SimpleNamespace(
        board_shape=(size, size), num_planes=NUM_PLANES, num_actions=num_actions
    )
    learner = make_learner(LearnerConfig(batch_size=batch), _make(config, size), game, mesh)
    weights = np.full((batch, num_actions), 1 / num_actions, np.float32)
    samples = put(
        Batch(_planes(mesh, arguments), weights, np.zeros(batch, np.float32)),  # type: ignore[arg-type]
        batch_sharded(mesh),
    )
    state: list[TrainState] = [learner.init(jax.random.key(0))]

    def step() -> Array:
        # The state is donated: every call needs that of the call before.
        state[0], metrics = learner.train_step(state[0], samples)
        return metrics["loss"]

    start = time.perf_counter()
    jax.block_until_ready(step())
    seconds = time.perf_counter() - start
    path = f"train {config.convolution}"
    return _result(path, config.train_dtype, step, seconds, config, arguments, passes=3)


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    split_cpu()
    chosen = tyro.cli(NetworkArguments, args=arguments)
    check_range(chosen, "--", "size blocks filters batch repeats", 1)
    results = run(chosen)
    network = f"{chosen.size}x{chosen.size}, {chosen.blocks} blocks of {chosen.filters} filters"
    title = f"{network}, batch {chosen.batch}, {device_name()}"
    make_console().print(results_table(results, title, 2))


def _make(config: ResNetConfig, size: int) -> Network:
    return config.build(Inputs((size, size), NUM_PLANES, size * size + 1))


def _planes(mesh: Mesh, arguments: NetworkArguments) -> Array:
    shape = (arguments.batch, arguments.size, arguments.size, NUM_PLANES)
    return put(np.random.default_rng(0).random(shape) < 0.3, batch_sharded(mesh))


def _compile(
    function: Callable[[PyTree, Array], PyTree],
    params: PyTree,
    mesh: Mesh,
    arguments: NetworkArguments,
) -> tuple[Callable[[], PyTree], float]:
    """Return a call of `function` on random planes, split over the devices, and the seconds to
    compile it."""
    split = PartitionSpec(DATA_AXIS)
    sharded = jax.shard_map(
        function, mesh=mesh, in_specs=(PartitionSpec(), split), out_specs=split, check_vma=False
    )
    planes, start = _planes(mesh, arguments), time.perf_counter()
    compiled = jax.jit(sharded).lower(params, planes).compile()
    return lambda: compiled(params, planes), time.perf_counter() - start


def _result(
    path: str,
    dtype: str,
    call: Callable[[], Any],
    compile_seconds: float,
    config: ResNetConfig,
    arguments: NetworkArguments,
    passes: int = 1,
) -> NetworkResult:
    """Time `call`, which costs as much as `passes` evaluations."""
    jax.block_until_ready(call())
    wall, cpu = [], []
    for _ in range(arguments.repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    rate = arguments.batch / min(wall)
    gflops = rate * passes * count_operations(config, arguments.size) / 1e9
    cpu_seconds = 1000 * min(cpu) / arguments.batch
    return NetworkResult(path, dtype, rate, gflops, cpu_seconds, compile_seconds)
