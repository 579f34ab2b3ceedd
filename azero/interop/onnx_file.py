"""Networks as ONNX files: written with the package onnx, evaluated by ONNX Runtime or OpenVINO."""

import dataclasses
import functools
import importlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from azero.checkpoint.exported import settings_of_network
from azero.cores import num_cores
from azero.data.files import write_atomic
from azero.games.game import Game
from azero.interop.onnx_graph import pooled_graph, resnet_graph
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig
from azero.settings import Config, from_dict
from azero.types import PyTree

Backend = Literal["onnxruntime", "openvino"]
"""What evaluates an ONNX file; the names of the packages."""

_OPSET = 17
"""Of ONNX 1.12 (2022); ONNX Runtime from 1.12 on, and most other programs, read it."""
_IR_VERSION = 8
"""Of the same version."""
_SETTINGS = "azero.config"
"""Key of the settings, as JSON, in the file's metadata."""


def write_onnx(path: Path, variables: PyTree, config: Config) -> None:
    """Write a network as an ONNX file, with the settings of its run in the metadata.

    Args:
      path: the file.
      variables: the network's.
      config: the settings of its run.

    Raises:
      ValueError: there is no such graph, or the package onnx is not installed.
      StorageError: the file cannot be written.
    """
    onnx = _require("onnx")
    game = config.game.build()
    float32 = onnx.TensorProto.FLOAT
    graph, outputs = _graph(config, game, variables)
    any_board = config.network.FITS_ANY_BOARD
    board = ("H", "W") if any_board else game.board_shape
    # None is a size that depends on the board.
    shapes: dict[str, Sequence[Any]] = {
        "logits": [None if any_board else game.num_actions],
        "value": [],
        "outcome": [3],
        "ownership": board,
        "score": [None],
    }
    planes = onnx.helper.make_tensor_value_info("planes", float32, ["B", *board, game.num_planes])
    infos = [
        onnx.helper.make_tensor_value_info(name, float32, ["B", *shapes[name]]) for name in outputs
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, game.name, [planes], infos, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="azero",
    )
    onnx.helper.set_model_props(model, {_SETTINGS: json.dumps(settings_of_network(config))})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, [model.SerializeToString()])


def _graph(config: Config, game: Game, variables: PyTree) -> tuple[Any, list[str]]:
    network = config.network
    if not isinstance(network, PooledConfig | ResNetConfig):
        raise ValueError(
            f"a network {network.name} cannot be written as ONNX, only alphago_zero and pooled"
        )
    plain: NetworkConfig = dataclasses.replace(
        network, convolution="xla", train_dtype="float32", inference_dtype="float32"
    )
    folded = jax.tree.map(np.asarray, jax.jit(plain.build(game).fold)(variables))
    if isinstance(network, PooledConfig):
        return pooled_graph(folded)
    return resnet_graph(network, folded)


class OnnxNetwork:
    """An ONNX file as a function of planes, evaluated on the CPU by another program's library
    (`azero.search.single.evaluator.HostNetwork`)."""

    def __init__(
        self,
        path: Path,
        backend: Backend = "onnxruntime",
        dtype: Literal["auto", "float32"] = "auto",
    ) -> None:
        """Open a file.

        Args:
          path: the file.
          backend: the library.
          dtype: auto leaves it to the library: OpenVINO computes in bfloat16 where the CPU does.

        Raises:
          ValueError: there is no such file, `write_onnx` did not write it, or the library is not
            installed.
        """
        open_file = _open_openvino if backend == "openvino" else _open_onnxruntime
        _require(backend)
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        try:
            properties, names, self._make_programs = open_file(path, dtype)
        except Exception as error:  # the libraries have classes of their own for every damage
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} is not a readable ONNX file: {reason}") from None
        settings = properties.get(_SETTINGS)
        if settings is None:
            raise ValueError(
                f"{path} does not say which game it plays; write it with azero checkpoint "
                "--export-onnx"
            )
        try:
            data = json.loads(settings)
            if not isinstance(data, dict):
                raise ValueError("they are not a JSON object")
        except ValueError as error:
            raise ValueError(f"{path}: its settings are damaged: {error}") from None
        if missing := {"planes", "logits", "value"} - names:
            raise ValueError(f"{path} has no input or output {', '.join(sorted(missing))}")
        self.config = from_dict(data, source=str(path))
        """The settings of its run."""
        self._threads = num_cores()
        self._pool = ThreadPoolExecutor(self._threads)
        self._programs: dict[tuple[int, ...], list[_Program]] = {}

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (logits float32[B, A], value float32[B]) of planes float32[B, H, W, C]."""
        outputs = self.outputs(planes)
        return outputs["logits"], outputs["value"]

    def outputs(self, planes: jax.Array | np.ndarray) -> dict[str, np.ndarray]:
        """Return all outputs by name, of planes [B, H, W, C].

        A batch is split over the threads, which is faster than a layer split over them; a batch
        that does not split evenly is evaluated by all of them together.
        """
        parts = self._threads if len(planes) % self._threads == 0 else 1
        shape = (parts, len(planes) // parts, *planes.shape[1:])
        if shape not in self._programs:
            self._programs[shape] = self._make_programs(parts, self._threads, shape[1:])
        parted = np.asarray(planes, np.float32).reshape(shape)
        answers = list(
            self._pool.map(lambda program, part: program(part), self._programs[shape], parted)
        )
        return {name: np.concatenate([answer[name] for answer in answers]) for name in answers[0]}


_Program = Callable[[np.ndarray], dict[str, np.ndarray]]
"""planes float32[P, H, W, C] -> outputs by name"""
_MakePrograms = Callable[[int, int, tuple[int, ...]], list[_Program]]
"""(programs that run side by side, threads of all of them, shape of the planes of each)"""


def _open_onnxruntime(path: Path, dtype: str) -> tuple[dict[str, str], set[str], _MakePrograms]:
    """Return a file's metadata, the names of its inputs and outputs, and what makes its programs;
    ONNX Runtime computes in the types of the file, float32, whatever `dtype` is."""
    del dtype
    runtime, content = _require("onnxruntime"), path.read_bytes()

    @functools.cache
    def session(threads: int) -> Any:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors; they are raised as well
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    properties = session(1).get_modelmeta().custom_metadata_map
    names = [output.name for output in session(1).get_outputs()]

    def make_programs(parts: int, threads: int, shape: tuple[int, ...]) -> list[_Program]:
        del shape
        run = session(threads // parts).run
        return [
            lambda planes: dict(zip(names, run(names, {"planes": planes}), strict=True))
        ] * parts

    inputs = [node.name for node in session(1).get_inputs()]
    return properties, {*inputs, *names}, make_programs


def _open_openvino(path: Path, dtype: str) -> tuple[dict[str, str], set[str], _MakePrograms]:
    """Return a file's metadata, the names of its inputs and outputs, and what makes its programs,
    compiled for their shape."""
    openvino = _require("openvino")
    core = openvino.Core()
    model = core.read_model(str(path))
    place = ["framework", _SETTINGS]
    properties = (
        {_SETTINGS: model.get_rt_info(place).astype(str)} if model.has_rt_info(place) else {}
    )
    precision = {} if dtype == "auto" else {"INFERENCE_PRECISION_HINT": "f32"}

    def make_programs(parts: int, threads: int, shape: tuple[int, ...]) -> list[_Program]:
        fixed = model.clone()
        fixed.reshape({"planes": list(shape)})
        options = {"NUM_STREAMS": parts, "INFERENCE_NUM_THREADS": threads, **precision}
        compiled = core.compile_model(fixed, "CPU", options)
        names = [output.get_any_name() for output in compiled.outputs]

        def program(request: Any) -> _Program:
            return lambda planes: dict(
                zip(names, request.infer({"planes": planes}).to_tuple(), strict=True)
            )

        return [program(compiled.create_infer_request()) for _ in range(parts)]

    names = {name for port in (*model.inputs, *model.outputs) for name in port.names}
    return properties, names, make_programs


def openvino_has_bfloat16() -> bool:
    """Return whether OpenVINO computes in bfloat16 on this CPU.

    Raises:
      ValueError: it is not installed.
    """
    capabilities = _require("openvino").Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return "BF16" in capabilities


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        extra = "openvino" if package == "openvino" else "onnx"
        raise ValueError(
            f"the package {package} is not installed: pip install 'azero[{extra}]'"
        ) from None
