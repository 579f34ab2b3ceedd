"""Checks that a game's methods return arrays of the shapes and types of the contract."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.types import PyTree

_OF_32_BITS = {"float64": jnp.float32, "int64": jnp.int32}


def check_contract(game: Game) -> None:
    """Trace all methods of a game that are compiled; nothing is computed.

    Raises:
      ValueError: one returns something else than `Game` says; both are named.
    """
    state = _shapes(jax.eval_shape(game.init))
    word, policy = _array((), jnp.int32), _array((game.num_actions,), jnp.float32)
    frame = _array((game.frame_words,), jnp.uint32)
    frames = _array((game.num_frames, *frame.shape), jnp.uint32)
    kind = getattr(jax.eval_shape(game.observe_frames, frames, word), "dtype", None)
    planes = _array(
        (*game.board_shape, game.num_planes), jnp.bool_ if kind == jnp.bool_ else jnp.float32
    )
    expected: dict[str, tuple[tuple[PyTree, ...], PyTree]] = {
        "step": ((state, word), state),
        "legal_action_mask": ((state,), _array(policy.shape, jnp.bool_)),
        "to_play": ((state,), word),
        "is_terminal": ((state,), _array((), jnp.bool_)),
        "rewards": ((state,), _array((2,), jnp.float32)),
        "pack_frame": ((state,), frame),
        "observe_frames": ((frames, word), planes),
        "observe": ((state,), planes),
        "transform_planes": ((planes, word), planes),
        "transform_policy": ((policy, word), policy),
        "inverse_transform_policy": ((policy, word), policy),
    }
    for method, (arguments, wanted) in expected.items():
        found = _shapes(jax.eval_shape(getattr(game, method), *arguments))
        if found != wanted:
            raise ValueError(
                f"{method} of the game {game.name} returns {_words(found)}, not {_words(wanted)}"
            )


def _array(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _shapes(tree: PyTree) -> PyTree:
    """Return a tree of shapes without what else JAX knows of its leaves. Numbers of 64 bits count
    as those of 32: with `jax_enable_x64` Python's numbers have them."""
    return jax.tree.map(
        lambda leaf: _array(leaf.shape, _OF_32_BITS.get(leaf.dtype.name, leaf.dtype)), tree
    )


def _words(tree: PyTree) -> str:
    """Return a tree in words: float32[2] for an array."""
    named = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)
    return str(named).replace("'", "")
