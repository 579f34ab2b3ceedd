"""Networks of Leela Zero as ours, and ours as Leela Zero's.

Both are AlphaGo Zero's network. What differs, and is converted without loss:

    planes    18 against 17: White to move has a plane of its own, which on a padded board is not
              implied by the other. Ours with `game.planes` 18 has it too; a network of 17 planes is
              written with zero weights for it. The order is ours by position, theirs by side.
    board     their first row is the lowest, ours the highest: kernels and dense layers are flipped.
    norms     theirs have no scale and no shift, but the convolution before them has biases.
    layout    theirs is [outputs, inputs, rows, columns], with the filter before the point.
    value     in files of version 2 it is Black's (`network.colour_plane`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from azero.games.go.settings import GoConfig
from azero.interop.leela_file import NUM_PLANES, Layout, read_layout, read_numbers, write_numbers
from azero.networks.settings import ResNetConfig
from azero.search.settings import PuctConfig
from azero.settings import Config
from azero.types import PyTree

_EPSILON = 1e-5
"""Added to the variance (Network.cpp, process_bn_var)."""
_POSITIONS = 8
_COLOUR_PLANE = 16
"""The plane of Black to move, in both orders."""
_PLANES = [
    *(2 * age for age in range(_POSITIONS)),
    *(2 * age + 1 for age in range(_POSITIONS)),
    *range(2 * _POSITIONS, NUM_PLANES),
]
"""Which of our planes each of theirs is."""
_UNIT_VARIANCE = np.float32(1.0 - _EPSILON)
_VALUE_HIDDEN = 256
"""Units of the value head (Network.h, VALUE_LAYER); fewer are padded with zeros."""


def read_leela_settings(path: Path) -> Config:
    """Return the settings with which the network of a file plays; its numbers are not read.

    Raises:
      ValueError: the file is not one of Leela Zero, or it is damaged.
      OSError: it cannot be opened.
    """
    return _settings(read_layout(path))


def read_leela(path: Path) -> tuple[PyTree, Config]:
    """Return the variables of the network in a file, and the settings with which it plays.

    Raises:
      ValueError: the file is not one of Leela Zero, or it is damaged; the line is named.
      OSError: it cannot be opened.
    """
    layout = read_layout(path)
    numbers = read_numbers(path, layout)
    size, filters = layout.size, layout.filters
    stem, stem_stats = _read_convolution(numbers, (filters, NUM_PLANES, 3, 3))
    stem["kernel"] = stem["kernel"][:, :, np.argsort(_PLANES)]
    tower, tower_stats = {"stem": stem}, {"stem": stem_stats}
    if layout.blocks:
        tower["blocks"], tower_stats["blocks"] = _read_blocks(numbers, layout)
    policy, policy_stats = _read_convolution(numbers, (layout.policy_filters, filters, 1, 1))
    logits = _read_dense(numbers, (size**2 + 1, layout.policy_filters, size**2))
    value, value_stats = _read_convolution(numbers, (layout.value_filters, filters, 1, 1))
    hidden = _read_dense(numbers, (layout.value_hidden, layout.value_filters, size**2))
    last = _read_dense(numbers, (1, 1, layout.value_hidden), has_points=False)
    params = {
        "tower": tower,
        "policy": {"conv": policy, "logits": {n: _flip_moves(a) for n, a in logits.items()}},
        "value": {"conv": value, "hidden": hidden, "value": last},
    }
    stats = {"tower": tower_stats, "policy": {"conv": policy_stats}, "value": {"conv": value_stats}}
    return {"params": params, "batch_stats": stats}, _settings(layout)


def write_leela(path: Path, variables: PyTree, config: Config) -> None:
    """Write a network as a file of Leela Zero, of version 1, or 2 where its value is Black's.

    Args:
      path: the file; it is compressed where the name ends in .gz.
      variables: the network's.
      config: the settings of its run.

    Raises:
      ValueError: Leela Zero has no such network; what differs is named.
      StorageError: the file cannot be written.
    """
    network = _check_compatible(config)
    params, stats = variables["params"], variables["batch_stats"]

    def convolution(*names: str, block: int | None = None) -> Iterator[np.ndarray]:
        layer, running = params, stats
        for name in names:
            layer, running = layer[name], running[name]
        kernel, bias = _fold(layer, running, network.batch_norm_epsilon, block)
        if names[-1] == "stem":
            kernel = _their_planes(kernel)
        yield np.flip(kernel, 0).transpose(3, 2, 0, 1)
        yield bias
        yield np.zeros_like(bias)
        yield np.full_like(bias, _UNIT_VARIANCE)

    def arrays() -> Iterator[np.ndarray]:
        yield from convolution("tower", "stem")
        for block in range(network.blocks - 1):
            yield from convolution("tower", "blocks", "first", block=block)
            yield from convolution("tower", "blocks", "second", block=block)
        yield from convolution("policy", "conv")
        logits = {n: _flip_moves(np.asarray(a)) for n, a in params["policy"]["logits"].items()}
        yield _their_dense(logits["kernel"], network.policy_filters)
        yield logits["bias"]
        yield from convolution("value", "conv")
        missing = (0, _VALUE_HIDDEN - network.value_hidden)
        hidden, last = params["value"]["hidden"], params["value"]["value"]
        kernel = np.pad(np.asarray(hidden["kernel"]), ((0, 0), missing))
        yield _their_dense(kernel, network.value_filters)
        yield np.pad(np.asarray(hidden["bias"]), missing)
        yield np.pad(np.asarray(last["kernel"])[:, 0], missing)
        yield np.asarray(last["bias"])

    write_numbers(path, 1 if network.colour_plane is None else 2, arrays())


def _settings(layout: Layout) -> Config:
    """Return the settings of a network: AlphaGo Zero's, in float32, on its board."""
    return Config(
        game=GoConfig(size=(layout.size,), komi=7.5, planes=NUM_PLANES),
        network=ResNetConfig(
            blocks=layout.blocks + 1,
            filters=layout.filters,
            policy_filters=layout.policy_filters,
            value_filters=layout.value_filters,
            value_hidden=layout.value_hidden,
            batch_norm_epsilon=_EPSILON,
            colour_plane=_COLOUR_PLANE if layout.version == 2 else None,
            train_dtype="float32",
            inference_dtype="float32",
        ),
        search=PuctConfig(num_simulations=1600),  # AGZ methods, 'Self-play'
    )


def _read_blocks(numbers: Iterator[np.ndarray], layout: Layout) -> tuple[PyTree, PyTree]:
    """Return the parameters and the statistics of the residual blocks, stacked along axis 0."""
    shape = (layout.filters, layout.filters, 3, 3)
    stacks: tuple[PyTree, PyTree] = ({}, {})
    for block in range(layout.blocks):
        for name in ("first", "second"):
            for stack, layer in zip(stacks, _read_convolution(numbers, shape), strict=True):
                _place(stack.setdefault(name, {}), layer, block, layout.blocks)
    return stacks


def _place(stack: PyTree, layer: Mapping[str, PyTree], index: int, length: int) -> None:
    """Write the arrays of `layer` at `index` into a stack of `length`."""
    for name, leaf in layer.items():
        if isinstance(leaf, Mapping):
            _place(stack.setdefault(name, {}), leaf, index, length)
        else:
            array = stack.setdefault(name, np.empty((length, *leaf.shape), np.float32))
            array[index] = leaf


def _read_convolution(
    numbers: Iterator[np.ndarray], shape: tuple[int, int, int, int]
) -> tuple[PyTree, PyTree]:
    """Return parameters and statistics of a convolution [F, C, rows, columns] with its norm."""
    weights, biases, means, variances = (next(numbers) for _ in range(4))
    kernel = np.flip(weights.reshape(shape).transpose(2, 3, 1, 0), 0)
    norm = {"scale": np.ones_like(means), "bias": np.zeros_like(means)}
    return {"kernel": kernel, "norm": norm}, {"norm": {"mean": means - biases, "var": variances}}


def _read_dense(
    numbers: Iterator[np.ndarray], shape: tuple[int, int, int], has_points: bool = True
) -> PyTree:
    """Return the kernel [points x filters, outputs] and the bias of a linear layer [outputs,
    filters, points]."""
    weights, bias = next(numbers).reshape(shape), next(numbers)
    flipped = _flip_points(weights, 2) if has_points else weights
    return {"kernel": flipped.transpose(2, 1, 0).reshape(-1, shape[0]), "bias": bias}


def _their_dense(kernel: np.ndarray, filters: int) -> np.ndarray:
    """Return the weights [outputs, filters, points] of a kernel [points x filters, outputs]."""
    return _flip_points(kernel.reshape(-1, filters, kernel.shape[-1]).transpose(2, 1, 0), 2)


def _flip_points(array: np.ndarray, axis: int) -> np.ndarray:
    """Return `array`, whose `axis` is the points of a square board, with the rows in reverse
    order."""
    size = round(array.shape[axis] ** 0.5)
    rows = array.reshape(*array.shape[:axis], size, size, *array.shape[axis + 1 :])
    return np.flip(rows, axis).reshape(array.shape)


def _flip_moves(array: np.ndarray) -> np.ndarray:
    """Return [..., moves] with the rows of points in reverse order; pass stays last."""
    points, passes = array[..., :-1], array[..., -1:]
    return np.concatenate([_flip_points(points, array.ndim - 1), passes], axis=-1)


def _fold(
    layer: PyTree, running: PyTree, epsilon: float, block: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel and the bias of a convolution with its norm folded into it."""

    def take(leaf: PyTree) -> np.ndarray:
        return np.asarray(leaf if block is None else leaf[block], np.float64)

    norm, statistics = layer["norm"], running["norm"]
    scale = take(norm["scale"]) / np.sqrt(take(statistics["var"]) + epsilon)
    bias = take(norm["bias"]) - take(statistics["mean"]) * scale
    return (take(layer["kernel"]) * scale).astype(np.float32), bias.astype(np.float32)


def _their_planes(kernel: np.ndarray) -> np.ndarray:
    """Return the kernel [3, 3, 18, F] of one over our 17 or 18 planes."""
    missing = NUM_PLANES - kernel.shape[2]
    return np.pad(kernel, ((0, 0), (0, 0), (0, missing), (0, 0)))[:, :, _PLANES]


def _check_compatible(config: Config) -> ResNetConfig:
    """Return the settings of the network.

    Raises:
      ValueError: Leela Zero has no such network.
    """
    game, network = config.game, config.network
    if not isinstance(game, GoConfig) or not isinstance(network, ResNetConfig):
        raise ValueError(
            f"Leela Zero has AlphaGo Zero's network for Go (game.name go, network.name "
            f"{ResNetConfig().name}), not {network.name} for {game.name}"
        )
    wanted = (
        ("game.size of one number", game.size, len(set(game.size)) == 1),
        ("game.planes 17 or 18", game.planes, game.planes in (17, NUM_PLANES)),
        ("network.tower res", network.tower, network.tower == "res"),
        ("network.heads dual", network.heads, network.heads == "dual"),
        ("network.policy-head linear", network.policy_head, network.policy_head == "linear"),
        ("network.policy-filters 2", network.policy_filters, network.policy_filters == 2),
        ("network.value-filters 1", network.value_filters, network.value_filters == 1),
        (
            f"network.value-hidden at most {_VALUE_HIDDEN}",
            network.value_hidden,
            network.value_hidden <= _VALUE_HIDDEN,
        ),
        (
            f"network.colour-plane none or {_COLOUR_PLANE}",
            network.colour_plane,
            network.colour_plane in (None, _COLOUR_PLANE),
        ),
    )
    problems = [f"{name}, not {found}" for name, found, holds in wanted if not holds]
    if problems:
        raise ValueError(f"a network of Leela Zero has {'; '.join(problems)}")
    return network
