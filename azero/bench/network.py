"""Speed of the network, in self-play and in training, compared with plain `nn.Conv`: `python -m
azero.bench.network --against linen`.

All rows split the batch over all devices. XLA computes a convolution on one core only, so `main`
makes a device of every core of a CPU.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import jax
import numpy as np
import tyro
from jax.sharding import Mesh, PartitionSpec
from rich.table import Table

from azero.bench.flags import check_counts
from azero.console.terminal import make_console
from azero.data.sample import Batch
from azero.learn.learner import TrainState, make_learner
from azero.learn.settings import LearnerConfig
from azero.mesh import DATA_AXIS, batch_sharded, make_mesh, put, replicated
from azero.networks.make import has_bf16_units
from azero.networks.network import Inputs, Network
from azero.networks.settings import ResNetConfig
from azero.types import Array, PyTree

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


@dataclass(frozen=True)
class NetworkArguments:
    """What to time."""

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
    """Number of calls, of which the best counts."""


def run(
    against: Literal["linen", "none"] = "linen",
    size: int = 19,
    blocks: int = 4,
    filters: int = 96,
    batch: int = 64,
    train: bool = False,
    repeats: int = 5,
) -> list[NetworkResult]:
    """Time every path that suits this machine on the same random planes; the arguments are those of
    `NetworkArguments`.

    Raises:
      ValueError: the batch does not split over the devices.
    """
    mesh = make_mesh()
    base = ResNetConfig(blocks=blocks, filters=filters)
    operations = count_operations(base, size)
    low_precision = jax.default_backend() != "cpu" or has_bf16_units()
    dtypes: tuple[Literal["float32", "bfloat16"], ...] = (
        ("float32", "bfloat16") if low_precision else ("float32",)
    )
    results = []
    for dtype in dtypes:
        typed = dataclasses.replace(base, train_dtype=dtype, inference_dtype=dtype)
        if against == "linen":
            results.append(
                time_apply(
                    dataclasses.replace(typed, convolution="xla"),
                    mesh,
                    size,
                    batch,
                    repeats,
                    operations,
                )
            )
        convolutions: tuple[Literal["xla", "dots", "winograd"], ...] = (
            ("xla", "dots", "winograd") if dtype == "float32" else ("xla", "dots")
        )
        for convolution in convolutions if jax.default_backend() == "cpu" else ("xla",):
            config = dataclasses.replace(typed, convolution=convolution)
            results.append(time_infer(config, mesh, size, batch, repeats, operations))
            if train:
                results.append(time_train(config, mesh, size, batch, repeats, operations))
    linen = max(
        (result.positions_per_second for result in results if result.path.startswith("linen")),
        default=None,
    )
    if linen is None:
        return results
    return [
        result
        if result.path.startswith("train")
        else dataclasses.replace(result, ratio=result.positions_per_second / linen)
        for result in results
    ]


def count_operations(config: ResNetConfig, size: int) -> int:
    """Return the multiplications and additions of the 3x3 convolutions for one position."""
    inputs = NUM_PLANES + 2 * (config.blocks - 1) * config.filters
    return 2 * 9 * inputs * config.filters * size * size


def time_apply(
    config: ResNetConfig, mesh: Mesh, size: int, batch: int, repeats: int, operations: int
) -> NetworkResult:
    """Time the network as trained."""
    network = _make(config, size)
    variables = put(jax.jit(network.init)(jax.random.key(0)), replicated(mesh))
    return _time(
        "linen xla",
        config.train_dtype,
        _sharded(network.apply, mesh),
        (variables, _planes(mesh, size, batch)),
        batch,
        repeats,
        operations,
    )


def time_infer(
    config: ResNetConfig, mesh: Mesh, size: int, batch: int, repeats: int, operations: int
) -> NetworkResult:
    """Time the folded network of self-play."""
    network = _make(config, size)
    folded = put(
        jax.jit(lambda key: network.fold(network.init(key)))(jax.random.key(0)), replicated(mesh)
    )
    arguments = (folded, _planes(mesh, size, batch))
    return _time(
        f"infer {config.convolution}",
        config.inference_dtype,
        _sharded(network.infer, mesh),
        arguments,
        batch,
        repeats,
        operations,
    )


def time_train(
    config: ResNetConfig, mesh: Mesh, size: int, batch: int, repeats: int, operations: int
) -> NetworkResult:
    """Time the learner's step."""
    num_actions = size * size + 1
    game: Any = SimpleNamespace(
        board_shape=(size, size), num_planes=NUM_PLANES, num_actions=num_actions
    )
    learner = make_learner(LearnerConfig(batch_size=batch), _make(config, size), game, mesh)
    weights = np.full((batch, num_actions), 1 / num_actions, np.float32)
    samples = put(
        Batch(_planes(mesh, size, batch), weights, np.zeros(batch, np.float32)),  # type: ignore[arg-type]
        batch_sharded(mesh),
    )
    state: list[TrainState] = [learner.init(jax.random.key(0))]

    def step(samples: Batch) -> Array:
        # The state is donated: every call needs the one before's.
        state[0], metrics = learner.train_step(state[0], samples)
        return metrics["loss"]

    start = time.perf_counter()
    jax.block_until_ready(step(samples))
    compile_seconds = time.perf_counter() - start
    return _result(
        f"train {config.convolution}",
        config.train_dtype,
        lambda: step(samples),
        batch,
        repeats,
        3 * operations,
        compile_seconds,
    )


def table(results: list[NetworkResult], title: str) -> Table:
    """Return `results` as people read them."""
    columns = ("path", "type", "positions/s", "GFLOP/s", "CPU s/1,000", "compile s", "x linen")
    shown = Table(title=title)
    for column in columns:
        shown.add_column(column, justify="left" if column in columns[:2] else "right", no_wrap=True)
    for result in results:
        ratio = "" if result.ratio is None else f"{result.ratio:.2f}"
        numbers = (
            f"{result.positions_per_second:,.0f}",
            f"{result.gflops:,.0f}",
            f"{result.cpu_seconds:.3f}",
            f"{result.compile_seconds:.1f}",
            ratio,
        )
        shown.add_row(result.path, result.dtype, *numbers)
    return shown


def main(arguments: list[str] | None = None) -> None:
    """Print the table of `run`; `--help` lists the arguments. A CPU has as many devices as cores,
    unless JAX_NUM_CPU_DEVICES says otherwise."""
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    chosen = tyro.cli(NetworkArguments, args=arguments)
    check_counts(chosen, "size blocks filters batch repeats")
    results = run(**dataclasses.asdict(chosen))
    devices = f"{jax.device_count()} {jax.default_backend()} devices"
    make_console().print(
        table(
            results,
            f"{chosen.size}x{chosen.size}, {chosen.blocks} blocks of {chosen.filters} "
            f"filters, batch {chosen.batch}, {devices}",
        )
    )


def _make(config: ResNetConfig, size: int) -> Network:
    return config.build(Inputs((size, size), NUM_PLANES, size * size + 1))


def _planes(mesh: Mesh, size: int, batch: int) -> Array:
    planes: Array = put(
        np.random.default_rng(0).random((batch, size, size, NUM_PLANES)) < 0.3, batch_sharded(mesh)
    )
    return planes


def _sharded(
    function: Callable[[PyTree, Array], PyTree], mesh: Mesh
) -> Callable[[PyTree, Array], PyTree]:
    split = PartitionSpec(DATA_AXIS)
    return jax.shard_map(
        function, mesh=mesh, in_specs=(PartitionSpec(), split), out_specs=split, check_vma=False
    )


def _time(
    path: str,
    dtype: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    batch: int,
    repeats: int,
    operations: int,
) -> NetworkResult:
    start = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile()
    compile_seconds = time.perf_counter() - start
    return _result(
        path, dtype, lambda: compiled(*arguments), batch, repeats, operations, compile_seconds
    )


def _result(
    path: str,
    dtype: str,
    call: Callable[[], Any],
    batch: int,
    repeats: int,
    operations: int,
    compile_seconds: float,
) -> NetworkResult:
    jax.block_until_ready(call())
    wall, cpu = [], []
    for _ in range(repeats):
        start, cpu_start = time.perf_counter(), time.process_time()
        jax.block_until_ready(call())
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    rate = batch / min(wall)
    return NetworkResult(
        path, dtype, rate, rate * operations / 1e9, 1000 * min(cpu) / batch, compile_seconds
    )


if __name__ == "__main__":
    main()
