"""The Network contract: pure functions over a dictionary of variables."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from azero.types import Array, PyTree

NEVER = -1e9
"""Logit of a move for which a network has no output, such as the pass of AlphaGo's policy network
of 2016; no policy target may have it."""


class Shapes(Protocol):
    """The attributes of a game that a network needs; every Game has them."""

    @property
    def board_shape(self) -> tuple[int, int]:
        """Rows and columns of the planes."""

    @property
    def num_planes(self) -> int:
        """Planes of a position."""

    @property
    def num_actions(self) -> int:
        """Moves that have a logit."""


class Inputs(NamedTuple):
    """The shapes of a network without a game."""

    board_shape: tuple[int, int]
    num_planes: int
    num_actions: int


class Outputs(NamedTuple):
    """The outputs of a network for B positions, in training."""

    logits: Array
    """float32[B, A] over all actions, unmasked."""
    value: Array
    """float32[B] in [-1, 1] for the side to move."""
    auxiliary: dict[str, Array]
    """Outputs of the auxiliary heads, by name (`azero.networks.pooled_heads`); empty where there
    are none."""


class Network(NamedTuple):
    """A policy and value network as pure functions, whatever library defines its layers.

    `variables` is {"params": ..., "batch_stats": ...}, nested dictionaries of float32 arrays.
    `planes` is [B, H, W, C] of any dtype (bool from a game). Logits are float32[B, A] over all
    actions, unmasked; value is float32[B] in [-1, 1] for the side to move.
    """

    init: Callable[[Array], PyTree]
    """key -> variables"""
    apply: Callable[[PyTree, Array], tuple[Array, Array]]
    """(variables, planes) -> (logits, value), with the running batch-norm statistics."""
    train_apply: Callable[[PyTree, Array], tuple[Outputs, PyTree]]
    """(variables, planes) -> (outputs, new batch_stats), with the statistics of this (global)
    batch."""
    fold: Callable[[PyTree], PyTree]
    """variables -> inference parameters: batch norm folded into the convolutions, in the inference
    dtype."""
    infer: Callable[[PyTree, Array], tuple[Array, Array]]
    """(inference parameters, planes) -> (logits, value), the fast path of self-play."""
    analyse: Callable[[PyTree, Array], Outputs] | None = None
    """(inference parameters, planes) -> outputs, with the auxiliary heads that `fold` keeps
    (`azero.networks.pooled_heads`); None where there are none."""
    heads: frozenset[str] = frozenset()
    """Names of the auxiliary heads, in `Outputs.auxiliary`."""


def check_network(network: Network, game: Shapes) -> None:
    """Trace a network's inference of two positions; nothing is computed.

    Raises:
      ValueError: its outputs have other shapes than `Network` says; both are named.
    """
    params = jax.eval_shape(lambda key: network.fold(network.init(key)), jax.random.key(0))
    planes = jax.ShapeDtypeStruct((2, *game.board_shape, game.num_planes), jnp.float32)
    logits, value = jax.eval_shape(network.infer, params, planes)
    if (logits.shape, value.shape) != ((2, game.num_actions), (2,)):
        raise ValueError(
            f"the network's infer returns logits {list(logits.shape)} and values "
            f"{list(value.shape)} for 2 positions, not [2, {game.num_actions}] and [2]"
        )
