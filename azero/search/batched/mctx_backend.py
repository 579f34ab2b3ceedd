"""PUCT and Gumbel search through DeepMind's mctx: a backend that a setting selects, and the
reference of the tests.

mctx has neither terminal positions nor masks of legal moves below the root. A finished game is an
absorbing state: its value is the result, and the discount is +1 because the side to move does not
change. Illegal moves are marked by their prior logit. `SearchConfig.edge_width` has no effect:
mctx's nodes have an edge for every action.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import mctx

from azero.games.game import Game
from azero.search.batched import puct
from azero.search.batched.evaluation import ILLEGAL, evaluate_roots, exact_values
from azero.search.batched.tree import Edges, best_child_value, best_legal
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.settings import GumbelConfig, PuctConfig
from azero.types import Array, PyTree

ILLEGAL_LOGIT = -1e30
"""Prior logit of an illegal move: finite, since mctx adds Q-values to it."""


def make_recurrent_fn(game: Game, leaf: LeafFn) -> mctx.RecurrentFn:
    """Return mctx's (params, key, action, embedding) -> (output, embedding), where the embedding is
    the slim state."""

    def recurrent_fn(
        params: PyTree, key: Array, action: Array, embedding: PyTree
    ) -> tuple[mctx.RecurrentFnOutput, PyTree]:
        states = jax.vmap(game.step)(embedding, action)
        logits, values = leaf(params, key, states)
        values = exact_values(game, states, values)
        same_side = jax.vmap(game.to_play)(states) == jax.vmap(game.to_play)(embedding)
        output = mctx.RecurrentFnOutput(
            reward=jnp.zeros_like(values),
            discount=jnp.where(same_side, 1.0, -1.0),
            prior_logits=jnp.where(
                jax.vmap(game.legal_action_mask)(states), logits.astype(jnp.float32), ILLEGAL_LOGIT
            ),
            value=values,
        )
        return output, states

    return recurrent_fn


def edges_of(tree: mctx.Tree, node: Array | int) -> Edges:
    """Return the edges of one node of an mctx tree without its batch axis."""
    logits = tree.children_prior_logits[node]
    visits = tree.children_visits[node].astype(jnp.float32)
    priors = jnp.where(logits > 0.5 * ILLEGAL_LOGIT, jax.nn.softmax(logits), ILLEGAL)
    return Edges(priors, visits, visits * tree.qvalues(node), tree.raw_values[node])


def make_mctx_puct(config: PuctConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Make the search of `azero.search.batched.puct` on mctx's tree (through `mctx.search`:
    `mctx.muzero_policy` cannot express unvisited Q = 0 with illegal moves)."""
    score, root_score = puct.make_score(config), puct.make_score(config, is_root=True)
    recurrent_fn = make_recurrent_fn(game, leaf)

    def select_at_root(key: Array, tree: mctx.Tree, node: Array) -> Array:
        del key
        edges = edges_of(tree, node)
        return best_legal(root_score(edges), edges)

    def select(key: Array, tree: mctx.Tree, node: Array, depth: Array) -> Array:
        del key, depth
        edges = edges_of(tree, node)
        return best_legal(score(edges), edges)

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        root_key, noise_key, tree_key = jax.random.split(key, 3)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        priors = puct.root_priors(config, noise_key, logits, legal_mask)
        prior_logits = jnp.where(
            legal_mask, jnp.log(jnp.maximum(priors, jnp.finfo(jnp.float32).tiny)), ILLEGAL_LOGIT
        )
        tree = mctx.search(
            params,
            tree_key,
            root=mctx.RootFnOutput(prior_logits=prior_logits, value=values, embedding=states),
            recurrent_fn=recurrent_fn,
            root_action_selection_fn=select_at_root,
            interior_action_selection_fn=select,
            num_simulations=config.num_simulations,
            max_depth=config.max_depth,
            invalid_actions=(~legal_mask).astype(jnp.float32),
        )
        edges = jax.vmap(edges_of, in_axes=(0, None))(tree, tree.ROOT_INDEX)
        action = jnp.argmax(edges.visits + 0.5 * priors, axis=-1).astype(jnp.int32)
        visits = puct.unforced_visits(config, edges, action)
        weights = visits / jnp.sum(visits, axis=-1, keepdims=True)
        output = read_output(tree, action, weights, jax.nn.softmax(logits, axis=-1))
        return output._replace(visits=visits.astype(jnp.int32))

    return search


def make_mctx_gumbel(config: GumbelConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Make the Gumbel search by `mctx.gumbel_muzero_policy`, its Q-transform set to the paper's
    form for Go."""
    recurrent_fn = make_recurrent_fn(game, leaf)
    # sigma = (c_visit + max N) c_scale q with q in [0, 1] is, up to a constant, half that of a
    # Q-value in [-1, 1].
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=0.5 * config.c_scale,
        maxvisit_init=config.c_visit,
        rescale_values=False,
    )

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        root_key, policy_key = jax.random.split(key)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        logits = jnp.where(legal_mask, logits, ILLEGAL_LOGIT)
        policy = mctx.gumbel_muzero_policy(
            params,
            policy_key,
            mctx.RootFnOutput(prior_logits=logits, value=values, embedding=states),
            recurrent_fn,
            config.num_simulations,
            invalid_actions=(~legal_mask).astype(jnp.float32),
            max_depth=config.max_depth,
            qtransform=qtransform,
            max_num_considered_actions=min(config.max_considered, game.num_actions),
            gumbel_scale=config.gumbel_scale,
        )
        weights = jnp.where(legal_mask, policy.action_weights, 0.0)
        prior = jax.nn.softmax(logits, axis=-1)
        return read_output(policy.search_tree, policy.action, weights, prior)

    return search


def read_output(
    tree: Any, action: Array, weights: Array, prior: Array | None = None
) -> SearchOutput:
    """Return the `SearchOutput` of an mctx tree."""
    summary = tree.summary()
    edges = jax.vmap(edges_of, in_axes=(0, None))(tree, tree.ROOT_INDEX)
    visits, best = summary.visit_counts.astype(jnp.int32), best_child_value(edges, action)
    return SearchOutput(action, weights, visits, summary.value, best, tree, prior)
