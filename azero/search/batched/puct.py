"""PUCT search exactly as AlphaGo Zero and exactly as AlphaZero's pseudocode have it."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.batched.tree import (
    ILLEGAL,
    Edges,
    ScoreFn,
    Tree,
    backup,
    best_child_value,
    best_legal,
    descend,
    evaluate_roots,
    expand,
    init_tree,
    masked_priors,
    root_actions,
    root_edges,
    root_value,
)
from azero.search.puct import alphago_zero_scale, alphazero_scale, puct_score
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.settings import PuctConfig
from azero.types import Array, PyTree


def alphago_zero_score(edges: Edges, c_puct: float) -> Array:
    """Return Q + c_puct P sqrt(sum_b N_b) / (1 + N), with Q in [-1, 1] and 0 for unvisited moves:
    float32[..., A] (AGZ methods, "Select").

    At the first visit below a node sum_b N_b is zero and every move scores zero. The paper leaves
    that tie open; here the prior breaks it, by taking the sum as at least one. All later visits are
    as printed.
    """
    total = jnp.maximum(jnp.sum(edges.visits, axis=-1, keepdims=True), 1.0)
    scale = alphago_zero_scale(total, c_puct, jnp)
    score: Array = puct_score(edges.qvalues(unvisited=0.0), edges.priors, edges.visits, scale)
    return score


def alphazero_score(edges: Edges, pb_c_base: float, pb_c_init: float) -> Array:
    """Return the pseudocode's `ucb_score`: values in [0, 1], unvisited moves 0, a loss:
    float32[..., A] (AZ pseudocode).

    The visits of the parent count its own evaluation. (The pseudocode leaves it out at the root
    alone, where its first simulation is then a tie of all moves; here the root is a node like any
    other.)
    """
    total = jnp.sum(edges.visits, axis=-1, keepdims=True)
    scale = alphazero_scale(total, pb_c_base, pb_c_init, jnp)
    values = 0.5 * (edges.qvalues(unvisited=-1.0) + 1.0)
    score: Array = puct_score(values, edges.priors, edges.visits, scale)
    return score


def make_score(config: PuctConfig) -> ScoreFn:
    """Return the selection rule that `config.puct_form` names.

    Raises:
      ValueError: there is no such rule.
    """
    if config.puct_form == "alphago_zero":
        return functools.partial(alphago_zero_score, c_puct=config.c_puct)
    if config.puct_form == "alphazero":
        return functools.partial(
            alphazero_score, pb_c_base=config.pb_c_base, pb_c_init=config.pb_c_init
        )
    raise ValueError(f"search.puct-form is alphago_zero or alphazero, not {config.puct_form!r}")


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
    one position per game in each call of `leaf`."""
    score = make_score(config)
    num_simulations = config.num_simulations
    max_depth = config.max_depth or num_simulations

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        root_key, noise_key, leaf_key = jax.random.split(key, 3)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        priors = mix_dirichlet(
            noise_key,
            masked_priors(logits, legal_mask),
            config.dirichlet_alpha,
            config.dirichlet_fraction,
        )
        tree = init_tree(game, states, priors, values, num_simulations + 1, config.edge_width)
        valid = jnp.ones((priors.shape[0], 1), bool)

        def simulate(slot: Array, tree: Tree) -> Tree:
            edges = root_edges(tree)
            edge = best_legal(score(edges), edges)
            path = descend(tree, edge[:, None], valid, score, max_depth)
            tree, value = expand(
                game, leaf, params, jax.random.fold_in(leaf_key, slot), tree, path, slot
            )
            return backup(tree, path, value)

        return summarize(
            jax.lax.fori_loop(1, num_simulations + 1, simulate, tree), game.num_actions
        )._replace(prior=jax.nn.softmax(logits, axis=-1))

    return search


def summarize(tree: Tree, num_actions: int) -> SearchOutput:
    """Return what PUCT plays and teaches: the visit distribution, and the most visited move (the
    one with the higher prior among equals)."""
    edges = root_actions(tree, num_actions)
    action = jnp.argmax(edges.visits + 0.5 * edges.priors, axis=-1).astype(
        jnp.int32
    )  # priors are at most 1, so they only break ties
    return SearchOutput(
        action=action,
        weights=edges.visits / jnp.sum(edges.visits, axis=-1, keepdims=True),
        visits=edges.visits.astype(jnp.int32),
        value=root_value(edges),
        best_child_value=best_child_value(edges, action),
        tree=tree,
    )
