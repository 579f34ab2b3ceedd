"""Our networks as ONNX graphs: batch norm folded in, float32, any batch.

Input `planes` is float32[B, H, W, C], as a game's `observe` gives them. Outputs are `logits` [B, A]
and `value` [B] in [-1, 1] for the side to move, and those of the auxiliary heads that inference
keeps (`azero.networks.pooled_heads`). The network with global pooling takes boards of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from azero.networks.pooled_heads import SCORE_SCALE
from azero.networks.pooled_layers import COMMON_WIDTH
from azero.networks.settings import ResNetConfig
from azero.types import PyTree

if TYPE_CHECKING:
    import onnx

_TO_CHANNELS_FIRST = (0, 3, 1, 2)
_TO_CHANNELS_LAST = (0, 2, 3, 1)
_BOARD_AXES = np.array([2, 3])


class Graph:
    """A graph under construction; strings name its tensors."""

    def __init__(self) -> None:
        """Make an empty graph."""
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        """Add an array; Python and JAX numbers become float32."""
        from onnx import numpy_helper

        array = np.asarray(array)
        array = array if array.dtype == np.int64 else array.astype(np.float32)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, kind: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add an operator; inputs that are not strings are constants. Return its output."""
        from onnx import helper

        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        output = output or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def convolution(self, x: str, kernel: Any, bias: Any | None = None) -> str:
        """Convolve x [B, C, H, W] with kernel [k, k, C, F] or [C, F], zero padding."""
        kernel = np.asarray(kernel)
        kernel = kernel if kernel.ndim == 4 else kernel[None, None]
        weights = kernel.transpose(3, 2, 0, 1)
        inputs = [x, weights] if bias is None else [x, weights, np.asarray(bias)]
        return self.add("Conv", *inputs, pads=[kernel.shape[0] // 2] * 4)

    def dense(self, layer: PyTree, x: str) -> str:
        """Apply a linear layer to the last axis of x."""
        return self.add("Add", self.add("MatMul", x, layer["kernel"]), layer["bias"])

    def per_channel(self, kind: str, x: str, array: Any) -> str:
        """Combine x [B, C, H, W] with array [C]."""
        return self.add(kind, x, np.asarray(array)[:, None, None])

    def slice_channels(self, x: str, start: int, end: int) -> str:
        """Return x [B, start:end, ...]."""
        return self.add("Slice", x, *(np.array([n]) for n in (start, end, 1)))

    def flatten(self, x: str) -> str:
        """Return [B, H W C] of x [B, C, H, W], by points and then channels."""
        return self.add("Flatten", self.add("Transpose", x, perm=_TO_CHANNELS_LAST))

    def mean(self, x: str) -> str:
        """Return the mean [B, C] of x [B, C, H, W] over the board."""
        return self.add("ReduceMean", x, axes=_BOARD_AXES.tolist(), keepdims=0)


def resnet_graph(config: ResNetConfig, folded: PyTree) -> tuple[Graph, list[str]]:
    """Return the graph of AlphaGo Zero's network and the names of its outputs.

    `folded` are the inference parameters for XLA's convolution in float32.
    """
    graph = Graph()
    x = graph.add("Transpose", "planes", perm=_TO_CHANNELS_FIRST)
    if config.heads == "dual":
        policy_features = value_features = _tower(graph, config, folded["tower"], x)
    else:
        policy_features = _tower(graph, config, folded["policy_tower"], x)
        value_features = _tower(graph, config, folded["value_tower"], x)
    policy, value = folded["policy"], folded["value"]
    features = _convolution_and_relu(graph, policy["conv"], policy_features)
    if config.policy_head == "linear":
        moves = graph.dense(policy["logits"], graph.flatten(features))
    else:
        moves = graph.flatten(graph.convolution(features, policy["kernel"], policy["bias"]))
    graph.add("Identity", moves, output="logits")
    features = graph.flatten(_convolution_and_relu(graph, value["conv"], value_features))
    hidden = graph.add("Relu", graph.dense(value["hidden"], features))
    result = graph.add("Tanh", graph.dense(value["value"], hidden))
    if config.colour_plane is not None:
        ends = (np.array([0, 0, config.colour_plane]), np.array([1, 1, config.colour_plane + 1]))
        colour = graph.add("Slice", "planes", *ends, np.array([1, 2, 3]))
        colour = graph.add("Squeeze", colour, np.array([2, 3]))
        is_first = graph.add("Greater", colour, 0.0)
        result = graph.add("Where", is_first, result, graph.add("Neg", result))
    graph.add("Squeeze", result, np.array([1]), output="value")
    return graph, ["logits", "value"]


def _tower(graph: Graph, config: ResNetConfig, layers: PyTree, x: str) -> str:
    x = _convolution_and_relu(graph, layers["stem"], x)
    for index in range(config.blocks - 1):
        y = x
        for name in ("first", "second")[: 1 if config.tower == "plain" else 2]:
            layer = {part: leaf[index] for part, leaf in layers["blocks"][name].items()}
            y = graph.convolution(y, layer["weights"], layer["bias"])
            if name == "second" and config.tower == "res":
                y = graph.add("Add", y, x)
            y = graph.add("Relu", y)
        x = y
    return x


def _convolution_and_relu(graph: Graph, layer: PyTree, x: str) -> str:
    return graph.add("Relu", graph.convolution(x, layer["weights"], layer["bias"]))


def pooled_graph(folded: PyTree) -> tuple[Graph, list[str]]:
    """Return the graph of the network with global pooling; as `resnet_graph`."""
    graph = Graph()
    scale = _board_scale(graph)
    x = graph.add("Transpose", "planes", perm=_TO_CHANNELS_FIRST)
    x = graph.convolution(x, folded["stem"])
    for block in _blocks(folded):
        x = _pooled_block(graph, block, x, scale)
    x = graph.add("Relu", _affine(graph, folded["end"], x))
    _policy(graph, folded["policy"], x, scale)
    others = _values(graph, folded["value"], x, scale)
    return graph, ["logits", "value", *others]


def _board_scale(graph: Graph) -> str:
    """Return (sqrt(H W) - 14) / 10, as `azero.networks.pooled_layers.board_scale`."""
    points = graph.add("Cast", _num_points(graph), to=1)  # 1: float32
    width = graph.add("Sub", graph.add("Sqrt", points), COMMON_WIDTH)
    return graph.add("Div", width, 10.0)


def _num_points(graph: Graph) -> str:
    """Return H W int64[] of the planes."""
    shape = graph.add("Shape", "planes", start=1, end=3)
    return graph.add("ReduceProd", shape, keepdims=0)


def _blocks(folded: PyTree) -> list[PyTree]:
    """Return the residual blocks in order, unstacked."""
    groups = {name: folded[name] for name in ("plain", "pooling") if name in folded}
    blocks = [block for group in _unstack(groups) for block in _group_blocks(group)]
    return blocks + _unstack(folded.get("left", {}))


def _group_blocks(group: PyTree) -> list[PyTree]:
    """Return the residual blocks of a group in order: the plain ones, then the one that pools."""
    plain = _unstack(group.get("plain", {}))
    return [*plain, group["pooling"]] if "pooling" in group else plain


def _unstack(layers: PyTree) -> list[PyTree]:
    """Return the layers of a stack."""
    leaves, tree = jax.tree.flatten(layers)
    return [jax.tree.unflatten(tree, one) for one in zip(*leaves, strict=True)]


def _affine(graph: Graph, norm: PyTree, x: str) -> str:
    if "scale" in norm:
        x = graph.per_channel("Mul", x, norm["scale"])
    return graph.per_channel("Add", x, norm["bias"])


def _pooled_block(graph: Graph, block: PyTree, x: str, scale: str) -> str:
    y = graph.add("Relu", _affine(graph, block["start"], x))
    if "inner" in block:
        y = graph.convolution(y, block["reduce"])
        for inner in _group_blocks(block["inner"]):
            y = _pooled_block(graph, inner, y, scale)
        y = graph.add("Relu", _affine(graph, block["end"], y))
        return graph.add("Add", x, graph.convolution(y, block["expand"]))
    y = graph.convolution(y, block["first"])
    if "pooled_bias" in block:
        y, _ = _bias_by_pooled(graph, block, y, scale)
    else:
        y = graph.add("Relu", _affine(graph, block["middle"], y))
    return graph.add("Add", x, graph.convolution(y, block["second"]))


def _bias_by_pooled(graph: Graph, layer: PyTree, y: str, scale: str) -> tuple[str, str]:
    """Do what `azero.networks.pooled_layers.bias_by_pooled` does, channels first."""
    others = layer["pooled_bias"].shape[-1]
    channels = others + layer["pooled_bias"].shape[0] // 3
    pooled = graph.slice_channels(y, others, channels)
    pooled = graph.add("Relu", _affine(graph, layer["pool"], pooled))
    mean = graph.mean(pooled)
    most = graph.add("ReduceMax", pooled, axes=_BOARD_AXES.tolist(), keepdims=0)
    pooled = graph.add("Concat", mean, graph.add("Mul", mean, scale), most, axis=1)
    bias = graph.add("MatMul", pooled, layer["pooled_bias"])
    bias = graph.add("Unsqueeze", bias, _BOARD_AXES)
    y = graph.add("Add", graph.slice_channels(y, 0, others), bias)
    return graph.add("Relu", _affine(graph, layer["middle"], y)), pooled


def _policy(graph: Graph, layer: PyTree, x: str, scale: str) -> None:
    y, pooled = _bias_by_pooled(graph, layer, graph.convolution(x, layer["first"]), scale)
    last = layer["moves"]
    moves = graph.convolution(y, last["kernel"][0], last["bias"][0])
    parts = [graph.flatten(moves)]
    if "pass" in layer:
        parts.append(graph.dense(layer["pass"], pooled))
    graph.add("Concat", *parts, axis=1, output="logits")


def _values(graph: Graph, layer: PyTree, x: str, scale: str) -> list[str]:
    """Add the value and the other heads; return their names."""
    y = graph.convolution(x, layer["first"])
    y = graph.add("Relu", _affine(graph, layer["middle"], y))
    mean = graph.mean(y)
    square = graph.add("Sub", graph.add("Mul", scale, scale), 0.1)
    scaled = [graph.add("Mul", mean, factor) for factor in (scale, square)]
    pooled = graph.add("Concat", mean, *scaled, axis=1)
    hidden = graph.add("Relu", graph.dense(layer["hidden"], pooled))
    outcome = graph.dense(layer["outcome"], hidden)
    graph.add("Identity", outcome, output="outcome")
    chances = graph.add("Softmax", outcome, axis=1)
    difference = graph.add("MatMul", chances, np.array([-1.0, 0.0, 1.0])[:, None])
    graph.add("Squeeze", difference, np.array([1]), output="value")
    if "ownership" not in layer:
        return ["outcome"]
    owners = graph.convolution(y, layer["ownership"]["kernel"], layer["ownership"]["bias"])
    graph.add("Squeeze", owners, np.array([1]), output="ownership")
    _score(graph, layer["score"], pooled)
    return ["outcome", "ownership", "score"]


def _score(graph: Graph, layer: PyTree, pooled: str) -> None:
    points = _num_points(graph)
    end = graph.add("Add", points, np.array(1))
    scores = graph.add("Range", graph.add("Neg", points), end, np.array(1))
    parity = graph.add("Mod", graph.add("Add", scores, points), np.array(2))
    columns: Sequence[str] = [
        graph.add("Mul", graph.add("Cast", scores, to=1), SCORE_SCALE),
        graph.add("Sub", graph.add("Cast", parity, to=1), 0.5),
    ]
    inputs = graph.add(
        "Concat", *(graph.add("Unsqueeze", one, np.array([1])) for one in columns), axis=1
    )
    place = graph.add("MatMul", inputs, layer["place"])
    hidden = graph.add("Unsqueeze", graph.dense(layer["hidden"], pooled), np.array([1]))
    hidden = graph.add("Relu", graph.add("Add", hidden, place))
    graph.add("Squeeze", graph.add("MatMul", hidden, layer["last"]), np.array([2]), output="score")
