"""Leaves: how a search evaluates positions. By a network, by random playouts, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.search import LeafFn
from azero.types import Array, PyTree


def network_leaf(game: Game, infer: Callable[[PyTree, Array], tuple[Array, Array]], random_symmetry: bool) -> LeafFn:
    """Make the leaf that evaluates planes with `infer`, the inference function of a network.

    With `random_symmetry` every position is turned or reflected by a symmetry of its own, drawn uniformly, and its policy turned back (AGZ methods, "Expand and
    evaluate").
    """

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        planes = jax.vmap(game.observe)(states)
        if not random_symmetry or game.num_symmetries == 1:
            return infer(params, planes)
        symmetry = jax.random.randint(key, planes.shape[:1], 0, game.num_symmetries, jnp.int32)
        logits, values = infer(params, jax.vmap(game.transform_planes)(planes, symmetry))
        return jax.vmap(game.inverse_transform_policy)(logits, symmetry), values

    return leaf


def uniform_leaf(game: Game) -> LeafFn:
    """Make the leaf that knows nothing: equal priors, value 0. A search with it finds only what the rules themselves tell."""

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        del params, key
        batch = jax.tree.leaves(states)[0].shape[0]
        return jnp.zeros((batch, game.num_actions), jnp.float32), jnp.zeros((batch,), jnp.float32)

    return leaf


def rollout_leaf(game: Game) -> LeafFn:
    """Make the leaf of plain Monte Carlo search: equal priors, and the result of one game of uniformly random legal moves."""

    class Playout(NamedTuple):
        states: PyTree
        key: Array

    def unfinished(playout: Playout) -> Array:
        return jnp.any(~jax.vmap(game.is_terminal)(playout.states))

    def play(playout: Playout) -> Playout:
        key, move_key = jax.random.split(playout.key)
        legal_mask = jax.vmap(game.legal_action_mask)(playout.states)
        draws = jax.random.uniform(move_key, legal_mask.shape)
        action = jnp.argmax(jnp.where(legal_mask, draws, -1.0), axis=-1).astype(jnp.int32)
        return Playout(jax.vmap(game.step)(playout.states, action), key)  # a finished game stays as it is

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        del params
        players = jax.vmap(game.to_play)(states)
        end = jax.lax.while_loop(unfinished, play, Playout(states, key))
        result = jax.vmap(game.rewards)(end.states)
        values = jnp.take_along_axis(result, players[:, None], axis=-1)[:, 0]
        return jnp.zeros((players.shape[0], game.num_actions), jnp.float32), values

    return leaf
