"""Networks as ONNX files: written with the package onnx, evaluated by ONNX Runtime."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from azero.config import to_dict
from azero.data.files import write_atomic
from azero.interop.onnx_graph import pooled_graph, resnet_graph
from azero.networks.settings import NetworkConfig, PooledConfig, ResNetConfig
from azero.settings import Config, from_dict
from azero.types import PyTree

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
    graph, outputs = _graph(config, variables)
    board = ("H", "W") if config.network.FITS_ANY_BOARD else game.board_shape
    planes = onnx.helper.make_tensor_value_info("planes", float32, ["B", *board, game.num_planes])
    infos = [
        onnx.helper.make_tensor_value_info(name, float32, _shape(name, config, board))
        for name in outputs
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(graph.nodes, game.name, [planes], infos, graph.constants),
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="azero",
    )
    onnx.helper.set_model_props(model, {_SETTINGS: json.dumps(to_dict(config))})
    onnx.checker.check_model(model)
    write_atomic(path, [model.SerializeToString()])


def _graph(config: Config, variables: PyTree) -> tuple[Any, list[str]]:
    network = config.network
    if not isinstance(network, PooledConfig | ResNetConfig):
        raise ValueError(
            f"a network {network.name} cannot be written as ONNX, only alphago_zero and pooled"
        )
    plain: NetworkConfig = dataclasses.replace(
        network, convolution="xla", train_dtype="float32", inference_dtype="float32"
    )
    folded = jax.tree.map(np.asarray, jax.jit(plain.build(config.game.build()).fold)(variables))
    if isinstance(network, PooledConfig):
        return pooled_graph(network, folded)
    return resnet_graph(network, folded)


def _shape(name: str, config: Config, board: tuple[Any, Any]) -> list[Any]:
    """Return the shape of an output; None is a size that depends on the board."""
    any_board = config.network.FITS_ANY_BOARD
    actions = None if any_board else config.game.build().num_actions
    shapes: dict[str, list[Any]] = {
        "logits": [actions],
        "value": [],
        "outcome": [3],
        "ownership": list(board),
        "score": [None],
    }
    return ["B", *shapes[name]]


class OnnxNetwork:
    """An ONNX file as a function of planes, evaluated by ONNX Runtime on the CPU
    (`azero.search.single.evaluator.HostNetwork`)."""

    def __init__(self, path: Path, threads: int = 0) -> None:
        """Open a file; `threads` 0 is one for each core.

        Raises:
          ValueError: there is no such file, `write_onnx` did not write it, or the package
          onnxruntime
            is not installed.
        """
        runtime = _require("onnxruntime")
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3  # errors; they are raised as well
        try:
            self._session = runtime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has a class of its own for every kind of damage
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} is not a readable ONNX file: {reason}") from None
        settings = self._session.get_modelmeta().custom_metadata_map.get(_SETTINGS)
        if settings is None:
            raise ValueError(
                f"{path} does not say which game it plays; write it with azero checkpoint "
                "--export-onnx"
            )
        self.config = from_dict(json.loads(settings), source=str(path))
        """The settings of its run."""

    def __call__(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (logits float32[B, A], value float32[B]) of planes float32[B, H, W, C]."""
        logits, value = self._session.run(["logits", "value"], {"planes": planes})
        return logits, value

    def outputs(self, planes: np.ndarray) -> dict[str, np.ndarray]:
        """Return all outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, {"planes": planes}), strict=True))


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise ValueError(
            f"the package {package} is not installed: pip install 'azero[onnx]'"
        ) from None
