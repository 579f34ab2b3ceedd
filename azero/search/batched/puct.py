"""PUCT search as published: AlphaGo Zero's form, and that of AlphaZero's pseudocode."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.batched.evaluation import ILLEGAL, evaluate_roots, masked_priors
from azero.search.batched.reductions import argmax, edge_sum
from azero.search.batched.reuse import continue_trees
from azero.search.batched.simulate import simulate
from azero.search.batched.tree import (
    Edges,
    ScoreFn,
    Tree,
    best_child_value,
    best_legal,
    init_tree,
    node_value,
    root_actions,
    root_edges,
)
from azero.search.puct import (
    UNVISITED_VALUES,
    alphago_zero_scale,
    alphazero_scale,
    deviation_factor,
    puct_score,
    reduced_value,
    unvisited_of,
)
from azero.search.search import LeafFn, PreviousSearch, SearchFn, SearchOutput
from azero.search.settings import PuctConfig
from azero.types import Array, PyTree

TermsFn = Callable[[Edges], tuple[Array, Array]]
"""Edges of [...] nodes -> the two terms of PUCT: values float32[..., A] and c sqrt(N)
float32[..., 1]."""


def alphago_zero_terms(
    edges: Edges, unvisited: float | Array, c_puct: float
) -> tuple[Array, Array]:
    """Return the terms of Q + c_puct P sqrt(sum_b N_b) / (1 + N), with Q in [-1, 1] (AGZ methods,
    "Select").

    At the first visit below a node sum_b N_b is zero and every move scores zero. The paper leaves
    that tie open; here the prior breaks it: the sum counts as at least one. Later visits follow the
    printed formula.
    """
    total = jnp.maximum(edge_sum(edges.visits)[..., None], 1.0)
    scale = alphago_zero_scale(total, c_puct, jnp)
    return edges.qvalues(unvisited), scale


def alphazero_terms(
    edges: Edges, unvisited: float | Array, pb_c_base: float, pb_c_init: float
) -> tuple[Array, Array]:
    """Return the terms of the pseudocode's `ucb_score`, with values in [0, 1] (AZ pseudocode).

    The visits of the parent count its own evaluation. (The pseudocode leaves it out at the root
    only, where all moves then tie in the first simulation; here the root is like any other node.)
    """
    total = edge_sum(edges.visits)[..., None]
    scale = alphazero_scale(total, pb_c_base, pb_c_init, jnp)
    return 0.5 * (edges.qvalues(unvisited) + 1.0), scale


def make_terms(config: PuctConfig, is_root: bool = False) -> TermsFn:
    """Return the terms of the rule that `config` describes, at the root or below it.

    Raises:
      ValueError: there is no such rule.
    """
    unvisited, reduction = unvisited_of(config)
    if is_root and config.dirichlet_fraction > 0.0:
        reduction = 0.0  # KG section 3.2
    if config.puct_form == "alphago_zero":
        form = functools.partial(alphago_zero_terms, c_puct=config.c_puct)
    else:
        form = functools.partial(
            alphazero_terms, pb_c_base=config.pb_c_base, pb_c_init=config.pb_c_init
        )
    fixed = UNVISITED_VALUES.get(unvisited)

    def unvisited_value(edges: Edges) -> Array:
        """Return float32[..., 1]."""
        explored = edge_sum(jnp.where(edges.visits > 0.0, edges.priors, 0.0))
        value: Array = reduced_value(node_value(edges), explored, reduction, jnp)
        return value[..., None]

    def terms(edges: Edges) -> tuple[Array, Array]:
        values, scale = form(edges, unvisited_value(edges) if fixed is None else fixed)
        if config.variance_scale == 0.0:
            return values, scale
        assert edges.squares is not None
        factor = deviation_factor(
            node_value(edges),
            edges.squares + edges.raw_value**2,
            1.0 + edge_sum(edges.visits),
            config.variance_scale,
            config.stdev_prior,
            config.stdev_prior_weight,
            jnp,
        )
        return values, scale * factor[..., None]

    return terms


def make_score(config: PuctConfig, is_root: bool = False) -> ScoreFn:
    """Return the selection rule that `config` describes, at the root or below it.

    At the root, a visited move with fewer visits than `forced_visits` comes first: its score is
    infinite (KG section 3.2).

    Raises:
      ValueError: there is no such rule.
    """
    terms = make_terms(config, is_root)

    def score(edges: Edges) -> Array:
        values, scale = terms(edges)
        return puct_score(values, edges.priors, edges.visits, scale)

    def forcing_score(edges: Edges) -> Array:
        lags = (edges.visits > 0.0) & (edges.visits < forced_visits(edges, config.forced_playouts))
        return jnp.where(lags, jnp.inf, score(edges))

    return forcing_score if is_root and config.forced_playouts > 0.0 else score


def forced_visits(edges: Edges, factor: float) -> Array:
    """Return n_forced = sqrt(k P(c) sum_b N_b), k the `factor`: float32[..., A] (KG section
    3.2)."""
    total = edge_sum(edges.visits)[..., None]
    return jnp.sqrt(factor * jnp.maximum(edges.priors, 0.0) * total)


def unforced_visits(config: PuctConfig, edges: Edges, best: Array) -> Array:
    """Return the visits of the root's moves without those that were only forced: float32[B, A] (KG
    section 3.2, "Policy Target Pruning").

    `best` int32[B], the most visited move, keeps its visits. Every other move loses up to n_forced
    visits, as long as its final score stays below that of the best move; a move left with a single
    visit loses it, too.
    """
    if config.forced_playouts == 0.0:
        return edges.visits
    values, scale = make_terms(config, is_root=True)(edges)
    scores = puct_score(values, edges.priors, edges.visits, scale)
    gap = jnp.take_along_axis(scores, best[:, None], axis=-1) - values
    # Q + c sqrt(N) P / (1 + n) stays below the best score while n is above this number.
    bound = scale * edges.priors / jnp.maximum(gap, 1e-30) - 1.0
    forced = jnp.floor(forced_visits(edges, config.forced_playouts))
    left = jnp.maximum(edges.visits - forced, jnp.maximum(jnp.floor(bound) + 1.0, 0.0))
    left = jnp.where(gap > 0.0, jnp.minimum(left, edges.visits), edges.visits)
    left = jnp.where(left > 1.0, left, 0.0)
    is_best = jnp.arange(left.shape[-1], dtype=jnp.int32) == best[:, None]
    return jnp.where(is_best, edges.visits, left)


def root_priors(config: PuctConfig, key: Array, logits: Array, legal_mask: Array) -> Array:
    """Return the root's priors, with the temperature and noise of `config`: float32[B, A] with
    ILLEGAL marks."""
    if config.root_temperature != 1.0:
        logits = logits / config.root_temperature
    return mix_dirichlet(
        key, masked_priors(logits, legal_mask), config.dirichlet_alpha, config.dirichlet_fraction
    )


def mix_dirichlet(key: Array, priors: Array, alpha: float, fraction: float) -> Array:
    """Return (1 - fraction) P + fraction Dirichlet(alpha), the noise over the legal moves only:
    float32[B, A] with ILLEGAL marks (AGZ methods, "Self-play")."""
    if fraction == 0.0:
        return priors
    legal_mask = priors >= 0.0
    # A Dirichlet draw is independent gamma draws, normalised; in logarithms, because most draws at
    # alpha = 0.03 are below the smallest float32.
    log_gamma = jax.random.loggamma(key, alpha, priors.shape, jnp.float32)
    noise = jax.nn.softmax(jnp.where(legal_mask, log_gamma, -jnp.inf), axis=-1)
    return jnp.where(legal_mask, (1.0 - fraction) * priors + fraction * noise, ILLEGAL)


def make_puct(config: PuctConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Make the PUCT search: `config.num_simulations` simulations after the evaluation of the root,
    one position per game in each call of `leaf`. With a `PreviousSearch` they are added to its
    trees (AGZ methods, 'Play'), and the noise to the priors of the new roots."""
    score, root_score = make_score(config), make_score(config, is_root=True)
    num_simulations = config.num_simulations

    def new_tree(key: Array, states: PyTree, logits: Array, legal: Array, values: Array) -> Tree:
        return init_tree(
            game,
            states,
            root_priors(config, key, logits, legal),
            values,
            num_simulations + 1,
            config.edge_width,
            keeps_squares=config.variance_scale > 0.0,
        )

    def kept_tree(key: Array, tree: Tree) -> Tree:
        """Return the tree with noise in the priors of its roots."""
        priors = tree.priors[: tree.num_games]
        logits = jnp.log(jnp.maximum(priors, jnp.finfo(jnp.float32).tiny))
        noisy = root_priors(config, key, logits, priors >= 0.0)
        return dataclasses.replace(
            tree, priors=jax.lax.dynamic_update_slice_in_dim(tree.priors, noisy, 0, 0)
        )

    def search(
        params: PyTree, key: Array, roots: PyTree, previous: PreviousSearch | None = None
    ) -> SearchOutput:
        root_key, noise_key, leaf_key = jax.random.split(key, 3)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        if previous is None:
            first, tree = 1, new_tree(noise_key, states, logits, legal_mask, values)
        else:
            first, priors = config.kept_room, masked_priors(logits, legal_mask)
            kept = continue_trees(game, previous, first, states, priors, values)
            tree = kept_tree(noise_key, kept)
        valid = jnp.ones((values.shape[0], 1), bool)
        max_depth = config.max_depth or tree.num_nodes - 1

        def visit(slot: Array, tree: Tree) -> Tree:
            edges = root_edges(tree)
            edge = best_legal(root_score(edges), edges)[:, None]
            return simulate(game, leaf, score, max_depth, params, leaf_key, tree, edge, valid, slot)

        tree = jax.lax.fori_loop(first, first + num_simulations, visit, tree)
        output = summarize(config, tree, game.num_actions)
        return output._replace(prior=jax.nn.softmax(logits, axis=-1))

    return search


def summarize(config: PuctConfig, tree: Tree, num_actions: int) -> SearchOutput:
    """Return the output of a PUCT search: the policy target is the visit distribution without
    forced visits, the action the most visited move (of equals the one with the higher prior)."""
    edges = root_actions(tree, num_actions)
    # priors are at most 1, so they only break ties
    action = argmax(edges.visits + 0.5 * edges.priors)
    visits = unforced_visits(config, edges, action)
    return SearchOutput(
        action=action,
        weights=visits / jnp.sum(visits, axis=-1, keepdims=True),
        visits=visits.astype(jnp.int32),
        value=node_value(edges),
        best_child_value=best_child_value(edges, action),
        tree=tree,
    )
