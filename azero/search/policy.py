"""The search that does not search: the leaf's own policy, for matches of a raw network (AGZ Figure 6b measures it too)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.tree import evaluate_roots
from azero.types import Array, PyTree


def make_policy(game: Game, leaf: LeafFn) -> SearchFn:
    """Make the search of zero simulations: its weights are the leaf's policy over the legal moves, its action the most probable one."""

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        _, logits, legal_mask, values = evaluate_roots(game, leaf, params, key, roots)
        weights = jnp.where(legal_mask, jax.nn.softmax(logits, axis=-1), 0.0)
        return SearchOutput(jnp.argmax(logits, axis=-1).astype(jnp.int32), weights, jnp.zeros(logits.shape, jnp.int32), values, values, None)

    return search
