"""The rollout policy and the tree policy of AlphaGo (2016): a linear softmax over pattern features,
behind the Network contract.

Source: AG16 Extended Data Table 4. `planes` uint32[B, H, W, C] are the numbers of
`azero.games.go.alphago2016.patterns`, one for each group: 0 is none, else the weight's number from
1, or a 32-bit code whose high bits index a table. A move's logit is the sum of its weights; stones,
where the 3x3 pattern is 0, and the pass are never played. The value is 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from azero.networks.network import NEVER, Network, Outputs, Shapes
from azero.networks.settings import LinearConfig
from azero.types import Array, PyTree


class Group(NamedTuple):
    """A feature group."""

    name: str
    size: int | None
    """Weights; None is a table of codes, whose size is a setting."""


GROUPS = (
    Group("response", 1),
    Group("save_atari", 1),
    Group("neighbour", 8),
    Group("nakade", 8192),
    Group("response_pattern", None),
    Group("pattern", None),
    Group("self_atari", 1),
    Group("distance", 17),
    Group("distance_before", 17),
    Group("diamond", None),
)
"""The first six are the rollout policy's, all are the tree policy's (AG16 Extended Data Table
4)."""
NUM_GROUPS = {"rollout2016": 6, "tree2016": 10}
PATTERN = [group.name for group in GROUPS].index("pattern")


def linear_network(config: LinearConfig, game: Shapes, platform: str | None = None) -> Network:
    """Make the policy `config.name`, the same on all platforms.

    Raises:
      ValueError: the planes or the actions are not those of the policy.
    """
    groups = GROUPS[: NUM_GROUPS[config.name]]
    num_planes, num_actions = game.num_planes, game.num_actions
    num_points = math.prod(game.board_shape)
    if num_planes != len(groups) or num_actions != num_points + 1:
        raise ValueError(
            f"{config.name} takes game.planes {len(groups)} and {num_points + 1} moves, not "
            f"{num_planes} and {num_actions}"
        )

    def init(key: Array) -> PyTree:
        del key  # at first all moves are equally likely
        return {"params": init_weights(groups, config.pattern_bits), "batch_stats": {}}

    def infer(params: PyTree, planes: Array) -> tuple[Array, Array]:
        logits = sum_weights(params, [planes[..., index] for index in range(len(groups))])
        logits = jnp.where(planes[..., PATTERN] != 0, logits, NEVER).reshape(planes.shape[0], -1)
        logits = jnp.pad(logits, ((0, 0), (0, 1)), constant_values=NEVER)
        return logits, jnp.zeros(planes.shape[0], jnp.float32)

    def apply(variables: PyTree, planes: Array) -> tuple[Array, Array]:
        return infer(variables["params"], planes)

    def train_apply(variables: PyTree, planes: Array) -> tuple[Outputs, PyTree]:
        return Outputs(*apply(variables, planes), {}), variables["batch_stats"]

    return Network(init, apply, train_apply, lambda variables: variables["params"], infer)


def init_weights(groups: Sequence[Group], pattern_bits: int) -> PyTree:
    """Return zero weights, a vector for each group."""
    return {
        group.name: jnp.zeros(1 << pattern_bits if group.size is None else group.size, jnp.float32)
        for group in groups
    }


def sum_weights(params: PyTree, numbers: Sequence[Array]) -> Array:
    """Return the logits float32[...] of moves with the given numbers uint32[...], one for each of
    the first GROUPS."""
    total = jnp.zeros(numbers[0].shape, jnp.float32)
    for group, number in zip(GROUPS, numbers, strict=False):
        weights = params[group.name]
        if group.size is None:
            index = number >> (32 - int(np.log2(weights.size)))
            total = total + jnp.where(number != 0, weights[index], 0.0)
        elif group.size <= 17:
            # A few weights need no look-up, which is slow on accelerators.
            for value in range(group.size):
                total = total + jnp.where(number == value + 1, weights[value], 0.0)
        else:
            total = total + jnp.where(number != 0, weights[jnp.maximum(number, 1) - 1], 0.0)
    return total
