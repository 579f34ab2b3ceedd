"""Speed of inference on a CPU compared with ONNX Runtime and OpenVINO: `azero bench inference`.

All evaluate the same network with random weights on all cores: ours in the form of self-play, with
one device per core, the others its ONNX file (`azero.interop.onnx_file`), with a part of the batch
on every core. Each is measured with several batch sizes; the fastest counts.
"""

import functools
import importlib.util
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import tyro
from rich.console import Console

from azero import mesh as mesh_lib
from azero.bench.forward import in_batches
from azero.bench.network import NUM_PLANES, count_operations
from azero.bench.timing import device_name, measure_rates
from azero.config import check_range
from azero.console.progress import working
from azero.console.tables import Cell, results_table
from azero.console.terminal import make_console
from azero.games.go.settings import GoConfig
from azero.interop.onnx_file import Backend, OnnxNetwork, openvino_has_bfloat16, write_onnx
from azero.networks.make import resolve
from azero.networks.settings import ResNetConfig
from azero.settings import Config
from azero.types import PyTree

COMMAND = "azero bench inference"
LONGEST_CALL = 2e11
"""Operations of a call; larger batches are left out, because a call would take seconds."""


class Shape(NamedTuple):
    """A board and a network."""

    size: int
    blocks: int
    filters: int

    def __str__(self) -> str:
        return f"{self.size}x{self.size} {self.blocks}x{self.filters}"


@dataclass(frozen=True)
class InferenceArguments:
    """Time inference, and that of other libraries."""

    against: tuple[Backend, ...] = ("onnxruntime", "openvino")
    """Libraries to compare with; those that are not installed are skipped with a message."""
    networks: tuple[str, ...] = ("5x4x32", "9x4x48", "9x6x128", "19x6x96", "19x20x256")
    """Points per side, blocks and filters."""
    batches: tuple[int, ...] = (8, 64, 256, 1024, 2048)
    """Positions a call, over all cores."""
    seconds: float = 1.0
    """Seconds of each measurement."""


class InferenceResult(NamedTuple):
    """The fastest batch of one library, for one network."""

    network: str
    library: str
    how: str
    """Type and, for ours, the convolution."""
    batch: int
    positions_per_second: float
    cpu_seconds: float
    """CPU seconds per 1,000 positions."""
    ratio: float | None = None
    """Our speed divided by this one's; None for ours."""

    def cells(self) -> dict[str, Cell]:
        """Return its row of the table."""
        return {
            "network": self.network,
            "library": self.library,
            "type": self.how,
            "best batch": self.batch,
            "positions/s": f"{self.positions_per_second:,.0f}",
            "CPU s/1,000": f"{self.cpu_seconds:.3f}",
            "azero faster": "" if self.ratio is None else f"{self.ratio:.2f} x",
        }


_Evaluate = Callable[[np.ndarray], Any]


def run(arguments: InferenceArguments, console: Console) -> list[InferenceResult]:
    """Measure every network, ours first.

    Raises:
      ValueError: a network is not SIZExBLOCKSxFILTERS.
    """
    shapes = [read_shape(text) for text in arguments.networks]
    for library in arguments.against:
        if importlib.util.find_spec(library) is None:
            console.print(f"{library} is not installed: measured without it")
    results = []
    for shape in shapes:
        with working(f"inference, {shape}", console):
            ours, *others = (
                _fastest(shape, library, how, evaluate, arguments)
                for library, how, evaluate in _libraries(shape, arguments.against)
            )
        results.append(ours)
        results += [
            row._replace(ratio=ours.positions_per_second / row.positions_per_second)
            for row in others
        ]
    return results


def read_shape(text: str) -> Shape:
    """Return the network that `text` names.

    Raises:
      ValueError: it is not SIZExBLOCKSxFILTERS.
    """
    words = text.split("x")
    if len(words) != 3 or not all(word.isdecimal() and int(word) for word in words):
        raise ValueError(f"--networks takes SIZExBLOCKSxFILTERS such as 9x6x128, not {text!r}")
    return Shape(*map(int, words))


def _libraries(shape: Shape, against: tuple[Backend, ...]) -> Iterator[tuple[str, str, _Evaluate]]:
    """Yield every library's name, how it computes, and its function of planes bool[B, H, W, C]."""
    network = resolve(ResNetConfig(blocks=shape.blocks, filters=shape.filters))
    config = Config(GoConfig(size=(shape.size,)), network)
    made = network.build(config.game.build())
    variables = jax.jit(made.init)(jax.random.key(0))
    mesh = mesh_lib.make_mesh()
    folded = mesh_lib.put(jax.jit(made.fold)(variables), mesh_lib.replicated(mesh))
    ours = in_batches(made, mesh)
    split = mesh_lib.batch_sharded(mesh)
    how = f"{network.inference_dtype}, {network.convolution}"
    yield "azero", how, lambda planes: ours(folded, jax.device_put(planes, split))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "network.onnx"
        if against:
            write_onnx(file, variables, config)
        for library in against:
            if importlib.util.find_spec(library) is None:
                continue
            yield library, "float32", _of_onnx(OnnxNetwork(file, library, dtype="float32"))
            if library == "openvino" and openvino_has_bfloat16():
                yield library, "bfloat16", _of_onnx(OnnxNetwork(file, library))


def _of_onnx(network: OnnxNetwork) -> _Evaluate:
    return lambda planes: network(planes.astype(np.float32))


def _fastest(
    shape: Shape, library: str, how: str, evaluate: _Evaluate, arguments: InferenceArguments
) -> InferenceResult:
    """Return the fastest of all batches, which are rounded up to multiples of the devices; planes
    and outputs are on the host."""
    devices = jax.device_count()
    config = ResNetConfig(blocks=shape.blocks, filters=shape.filters)
    most = LONGEST_CALL / count_operations(config, shape.size)
    first, *others = sorted({-(-batch // devices) * devices for batch in arguments.batches})
    results = []
    for batch in [first, *(batch for batch in others if batch <= most)]:
        planes = np.random.default_rng(0).random((batch, shape.size, shape.size, NUM_PLANES)) < 0.3
        call = functools.partial(_on_host, evaluate, planes)
        rates = measure_rates(call, arguments.seconds)
        found = batch * rates.per_second, 1000 / (batch * rates.per_core_second)
        results.append(InferenceResult(str(shape), library, how, batch, *found))
    return max(results, key=lambda row: row.positions_per_second)


def _on_host(evaluate: _Evaluate, planes: np.ndarray, _: int) -> PyTree:
    return jax.device_get(evaluate(planes))


def main(arguments: list[str]) -> None:
    """Print the table of `run`; `--help` lists the arguments."""
    chosen = tyro.cli(InferenceArguments, args=arguments)
    check_range(chosen, "--", "batches", 1)
    check_range(chosen, "--", "seconds", 0, above=True)
    mesh_lib.split_cpu()
    results = run(chosen, make_console(stderr=True))
    make_console().print(results_table(results, f"Inference, {device_name()} ({COMMAND})", 3))
