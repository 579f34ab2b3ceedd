"""Leaves: how a search evaluates positions. By a network, by random playouts, or not at all."""

from collections.abc import Callable
from typing import TypeVar, cast

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.search import LeafFn
from azero.types import Array, PyTree

SymmetryLeafFn = Callable[[PyTree, Array, PyTree, Array], tuple[Array, Array]]
"""(params, key, states[B], symmetry int32[B]) -> what a LeafFn returns, each position evaluated
under its symmetry; 0 is the identity."""

AnyLeafFn = TypeVar("AnyLeafFn", bound=Callable[..., tuple[Array, ...]])
"""A function whose arguments begin with (params, key, states) and whose results begin with the
logits: a LeafFn, a SymmetryLeafFn, or another."""


def network_leaf(
    game: Game, infer: Callable[[PyTree, Array], tuple[Array, Array]], random_symmetry: bool
) -> LeafFn:
    """Make the leaf that evaluates planes with `infer`, the inference function of a network.

    With `random_symmetry` every position is transformed by a symmetry of its own, drawn uniformly,
    and its policy transformed back (AGZ methods, "Expand and evaluate").
    """
    turned = symmetry_network_leaf(game, infer)

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        if not random_symmetry or game.num_symmetries == 1:
            return infer(params, jax.vmap(game.observe)(states))
        batch = jax.tree.leaves(states)[0].shape[:1]
        symmetry = jax.random.randint(key, batch, 0, game.num_symmetries, jnp.int32)
        return turned(params, key, states, symmetry)

    return leaf


def averaged_network_leaf(
    game: Game, infer: Callable[[PyTree, Array], tuple[Array, Array]]
) -> LeafFn:
    """Make the leaf whose logits and value are the means over all symmetries of the position:
    deterministic, at the cost of as many evaluations."""
    turned = symmetry_network_leaf(game, infer)

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        count = game.num_symmetries
        repeated = jax.tree.map(lambda array: jnp.repeat(array, count, axis=0), states)
        batch = jax.tree.leaves(states)[0].shape[0]
        symmetry = jnp.tile(jnp.arange(count, dtype=jnp.int32), batch)
        outputs = turned(params, key, repeated, symmetry)
        logits, values = (array.reshape(batch, count, *array.shape[1:]) for array in outputs)
        return logits.mean(axis=1), values.mean(axis=1)

    return leaf


def symmetry_network_leaf(
    game: Game, infer: Callable[[PyTree, Array], tuple[Array, Array]]
) -> SymmetryLeafFn:
    """Make the leaf of a network for symmetries that the caller chooses."""

    def leaf(params: PyTree, key: Array, states: PyTree, symmetry: Array) -> tuple[Array, Array]:
        del key
        planes = jax.vmap(game.observe)(states)
        if game.num_symmetries == 1:
            return infer(params, planes)
        logits, values = infer(params, jax.vmap(game.transform_planes)(planes, symmetry))
        return jax.vmap(game.inverse_transform_policy)(logits, symmetry), values

    return leaf


def external_leaf(game: Game) -> SymmetryLeafFn:
    """Make the leaf of a network that is evaluated outside XLA (`azero.search.single.evaluator`):
    its `params` are the outputs (logits, values) for the planes under the symmetries."""
    return symmetry_network_leaf(game, lambda outputs, planes: outputs)


def ignore_symmetry(leaf: LeafFn) -> SymmetryLeafFn:
    """Adapt `leaf` to a SymmetryLeafFn that ignores the symmetry."""
    return lambda params, key, states, symmetry: leaf(params, key, states)


LAST_RESORT = -2e9
"""Logit of a move that is played only where there is no other: below that of a move for which a
network has no output (`networks.network.NEVER`)."""


def last_resort_leaf(leaf: AnyLeafFn, last_resorts: Callable[[PyTree], Array]) -> AnyLeafFn:
    """Make the leaf that gives the moves of `last_resorts` (states[B]) -> bool[B, A] the logit
    LAST_RESORT: they are played only in positions without another move."""

    def masked(params: PyTree, key: Array, states: PyTree, *others: Array) -> tuple[Array, ...]:
        logits, *answers = leaf(params, key, states, *others)
        return jnp.where(last_resorts(states), LAST_RESORT, logits), *answers

    return cast(AnyLeafFn, masked)


def uniform_leaf(game: Game) -> LeafFn:
    """Make the leaf without knowledge: equal priors, value 0. A search with it sees only the
    results of finished games."""

    def leaf(params: PyTree, key: Array, states: PyTree) -> tuple[Array, Array]:
        del params, key
        batch = jax.tree.leaves(states)[0].shape[0]
        return jnp.zeros((batch, game.num_actions), jnp.float32), jnp.zeros((batch,), jnp.float32)

    return leaf
