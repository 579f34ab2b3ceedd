"""The search that does not search: the leaf's own policy, for matches of a raw network (AGZ Figure
6b measures it too)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.batched.tree import evaluate_roots
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.types import Array, PyTree


def make_policy(
    game: Game, leaf: LeafFn, allowed_moves: Callable[[PyTree], Array] | None = None
) -> SearchFn:
    """Make the search of zero simulations: its weights are the leaf's policy over the legal moves,
    its action the most probable one.

    `allowed_moves` (states[B]) -> bool[B, A] leaves legal moves out; in every position it leaves
    one.
    """

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        _, logits, allowed, values = evaluate_roots(game, leaf, params, key, roots)
        if allowed_moves is not None:
            allowed = allowed_moves(roots)
            logits = jnp.where(allowed, logits, -jnp.inf)
        weights = jnp.where(allowed, jax.nn.softmax(logits, axis=-1), 0.0)
        return SearchOutput(
            jnp.argmax(logits, axis=-1).astype(jnp.int32),
            weights,
            jnp.zeros(logits.shape, jnp.int32),
            values,
            values,
            None,
        )

    return search
