"""The search of zero simulations: it plays the leaf's policy, for matches of the raw network (as in
AGZ Figure 6b)."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.batched.evaluation import evaluate_roots
from azero.search.batched.reductions import argmax
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.types import Array, PyTree


def make_policy(
    game: Game, leaf: LeafFn, allowed_moves: Callable[[PyTree], Array] | None = None
) -> SearchFn:
    """Make the search of zero simulations: its weights are the leaf's policy over the legal moves,
    its action is the most probable move.

    `allowed_moves` (states[B]) -> bool[B, A] restricts the legal moves; it allows at least one in
    every position.
    """

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        _, logits, allowed, values = evaluate_roots(game, leaf, params, key, roots)
        if allowed_moves is not None:
            allowed = allowed_moves(roots)
            logits = jnp.where(allowed, logits, -jnp.inf)
        weights = jnp.where(allowed, jax.nn.softmax(logits, axis=-1), 0.0)
        visits = jnp.zeros(logits.shape, jnp.int32)
        return SearchOutput(argmax(logits), weights, visits, values, values, tree=None)

    return search
