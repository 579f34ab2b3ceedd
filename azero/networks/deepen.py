"""Makes a tower of residual blocks deeper without changing what it computes: every further block
begins as an identity, because its last layer is zero (Chen et al. 2016, arXiv 1511.05641, Net2Net,
section 2.3).
"""

import dataclasses

import jax
import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from azero.networks.network import Shapes
from azero.networks.pooled import count_groups
from azero.networks.settings import NetworkConfig, PooledConfig, ResidualConfig, ResNetConfig
from azero.types import PyTree

_LAST = (("second",), ("expand",), ("second", "norm", "scale"))
"""The last layers of a block: of the network with global pooling, of its nested bottlenecks, and of
AlphaGo Zero's."""

_STACKS = ("blocks", "plain", "pooling", "left")
"""Names of the stacks of layers of the blocks."""


def deepen(
    own: PyTree, config: NetworkConfig, given: PyTree, given_config: NetworkConfig, game: Shapes
) -> PyTree:
    """Return the variables of a deeper network that computes what a given one does.

    Args:
      own: initial variables of the deeper network. Its further blocks keep them, except for their
        last layer.
      config: its settings.
      given: the variables of the given network.
      given_config: its settings. Unless they are those of a tower of fewer residual blocks that is
        otherwise the same, `given` is returned.
      game: the shapes of the deeper network's planes and moves.
    """
    if not isinstance(config, ResidualConfig) or not isinstance(given_config, ResidualConfig):
        return given
    same = dataclasses.replace(given_config, blocks=config.blocks)
    has_skips = not isinstance(config, ResNetConfig) or config.tower == "res"
    is_deeper = config.blocks > given_config.blocks
    if not has_skips or not is_deeper or _shapes(same, game) != _shapes(config, game):
        return given
    found, variables = flatten_dict(given), {}
    for path, initial in flatten_dict(own).items():
        depth = next((i for i, name in enumerate(path) if name in _STACKS), None)
        if depth is None:
            variables[path] = found[path]
            continue
        stack, rest = path[depth], path[depth + 1 :]
        variables[path] = array = np.array(initial)
        for number in range(config.blocks - 1):
            name, index = _place(config, number)
            if name == stack and number < given_config.blocks - 1:
                name, given_index = _place(given_config, number)
                array[index] = found[(*path[:depth], name, *rest)][given_index]
            elif name == stack and path[0] == "params" and rest in _LAST:
                array[index] = 0.0
    return unflatten_dict(variables)


def _place(config: ResidualConfig, number: int) -> tuple[str, tuple[int, ...]]:
    """Return the stack of a residual block, and its index there."""
    if not isinstance(config, PooledConfig):
        return "blocks", (number,)
    group, place = divmod(number, config.pool_every)
    if group == count_groups(config)[0]:
        return "left", (place,)
    return ("pooling", (group,)) if place == config.pool_every - 1 else ("plain", (group, place))


def _shapes(config: NetworkConfig, game: Shapes) -> PyTree:
    variables = jax.eval_shape(config.build(game).init, jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf.shape, variables)
