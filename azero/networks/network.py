"""The Network contract: pure functions over a dictionary of variables."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from azero.types import Array, PyTree, format_arrays

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
    """Trace a network's functions for two positions; nothing is computed.

    Raises:
      ValueError: its outputs or its variables have other shapes or types than `Network` says; both
        are named.
    """
    if not isinstance(network, Network):
        raise ValueError(f"the maker of the network returns {network!r:.80}, not a Network")
    variables = jax.eval_shape(network.init, jax.random.key(0))
    if not isinstance(variables, Mapping) or set(variables) != {"params", "batch_stats"}:
        names = ", ".join(map(str, variables)) if isinstance(variables, Mapping) else "no names"
        raise ValueError(
            f"the network's init returns a dictionary of {names}, not of params and batch_stats, "
            "which is {} without batch norm"
        )
    for name, array in _arrays(variables).items():
        if not array.startswith("float32"):
            raise ValueError(f"the network's variable {name} is {array}, not float32")
    planes = jax.ShapeDtypeStruct((2, *game.board_shape, game.num_planes), jnp.float32)
    folded = jax.eval_shape(network.fold, variables)
    outputs = f"float32[2, {game.num_actions}], float32[2]"
    _check_outputs("infer", jax.eval_shape(network.infer, folded, planes), f"({outputs})")
    _check_outputs("apply", jax.eval_shape(network.apply, variables, planes), f"({outputs})")
    trained = jax.eval_shape(network.train_apply, variables, planes)
    match trained:
        case (Outputs(logits, value, _), batch_stats):
            _check_outputs("train_apply", (logits, value), f"({outputs})")
        case _:
            _check_outputs("train_apply", trained, f"(Outputs({outputs}, {{}}), batch_stats)")
    known, new = _arrays(variables["batch_stats"]), _arrays(batch_stats)
    if new != known:
        raise ValueError(
            f"the network's train_apply returns the batch_stats {new or 'none'}, and its init "
            f"{known or 'none'}"
        )


def _check_outputs(name: str, found: PyTree, wanted: str) -> None:
    """Raise ValueError if what a network's function `name` returns for two positions is not
    `wanted`, in words."""
    words = format_arrays(found)
    if words != wanted:
        raise ValueError(f"the network's {name} returns {words:.300} for 2 positions, not {wanted}")


def _arrays(variables: PyTree) -> dict[str, str]:
    """Return the types and shapes of arrays by their paths."""
    return {
        jax.tree_util.keystr(path): format_arrays(leaf)
        for path, leaf in jax.tree.leaves_with_path(variables)
    }
