"""Gumbel AlphaZero (Danihelka et al. 2022), with sequential halving run in parallel.

The considered moves of the root have disjoint subtrees, so one descent and one call of the leaf
serve one simulation of each of them: a phase that visits w moves r times each takes r calls of B x
w positions instead of r x w calls of B. Below the root nothing changes: a subtree sees its own
simulations in the same order. At the root there are two differences:

1. The moves of a phase are all chosen from the scores at its start. Visited one after the other,
   the first visit of a phase raises max_b N(b), and with it the scale of sigma, by one before the
   next move is chosen; so near the cut another move may be kept.
2. The schedule is that of `max_considered` moves in every position. Where fewer moves are legal,
   their share of visits does not grow: lanes stay empty and such a root gets fewer than
   `num_simulations` simulations, each move as many as it would have had among `max_considered`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.game import Game
from azero.search.batched.evaluation import evaluate_roots, masked_priors
from azero.search.batched.reductions import argmax, edge_max, edge_sum
from azero.search.batched.simulate import simulate
from azero.search.batched.tree import (
    Edges,
    Tree,
    best_child_value,
    init_tree,
    node_value,
    root_actions,
    root_edge_of,
)
from azero.search.search import LeafFn, SearchFn, SearchOutput
from azero.search.settings import GumbelConfig
from azero.types import Array, PyTree

_TINY = float(np.finfo(np.float32).tiny)


class HalvingPhase(NamedTuple):
    """A phase of sequential halving: `width` moves, visited `rounds` times each."""

    width: int
    rounds: int


def halving_schedule(max_considered: int, num_simulations: int) -> tuple[HalvingPhase, ...]:
    """Return the phases of sequential halving, whose visits add up to `num_simulations` (GUM
    section 3, with m = min(n, max_considered) moves).

    A phase gives each of its w moves max(1, floor(n / (ceil(log2 m) w))) visits and keeps half of
    them, but never fewer than two. Simulations left over go to the best moves, one each.

    Raises:
      ValueError: either number is below one.
    """
    if max_considered < 1 or num_simulations < 1:
        raise ValueError(
            f"search.max-considered and search.num-simulations are at least 1, not "
            f"{max_considered} and {num_simulations}"
        )
    width = min(max_considered, num_simulations)
    if width == 1:
        return (HalvingPhase(1, num_simulations),)
    num_phases = math.ceil(math.log2(width))
    phases: list[HalvingPhase] = []
    left = num_simulations
    while left >= width:
        wanted = max(1, num_simulations // (num_phases * width))
        rounds = min(wanted, left // width)
        left -= width * rounds
        # the last two moves stay
        merged = phases.pop().rounds if phases and phases[-1].width == width else 0
        phases.append(HalvingPhase(width, merged + rounds))
        if rounds < wanted:
            break
        width = max(2, width // 2)
    if left:
        phases.append(HalvingPhase(left, 1))
    return tuple(phases)


def completed_qvalues(edges: Edges) -> Array:
    """Return Q where visited and v_mix elsewhere, in [-1, 1]: float32[..., A] (GUM appendix D).

    v_mix = (v + sum_b N_b (sum_visited P Q) / (sum_visited P)) / (1 + sum_b N_b).
    """
    visited = edges.visits > 0.0
    qvalues = edges.qvalues(unvisited=0.0)
    priors = jnp.where(visited, jnp.maximum(edges.priors, _TINY), 0.0)
    prior_sum = jnp.maximum(edge_sum(priors), _TINY)
    weighted = edge_sum(priors * qvalues) / prior_sum
    total = edge_sum(edges.visits)
    mixed = (edges.raw_value + total * weighted) / (1.0 + total)
    return jnp.where(visited, qvalues, mixed[..., None])


def sigma(edges: Edges, c_visit: float, c_scale: float) -> Array:
    """Return (c_visit + max_b N_b) c_scale q of the completed Q-values, with q in [0, 1]:
    float32[..., A] (GUM equation 8)."""
    scale = (c_visit + edge_max(edges.visits)[..., None]) * c_scale
    return scale * (0.5 * (completed_qvalues(edges) + 1.0))


def interior_score(edges: Edges, c_visit: float, c_scale: float) -> Array:
    """Return pi'(a) - N(a) / (1 + sum_b N_b), whose argmax visits moves in proportion to pi':
    float32[..., A] (GUM equation 14)."""
    legal, exponent = edges.legal_mask(), sigma(edges, c_visit, c_scale)
    highest = edge_max(jnp.where(legal, exponent, -jnp.inf))[..., None]
    # exp(log P + sigma) without the logarithm
    powers = jnp.where(legal, jnp.maximum(edges.priors, _TINY) * jnp.exp(exponent - highest), 0.0)
    improved = powers / edge_sum(powers)[..., None]
    return improved - edges.visits / (1.0 + edge_sum(edges.visits)[..., None])


def make_gumbel(config: GumbelConfig, game: Game, leaf: LeafFn) -> SearchFn:
    """Make the Gumbel search: the evaluation of the root, then one call of `leaf` for each round of
    `halving_schedule`, with `width` positions per game."""
    phases = halving_schedule(min(config.max_considered, game.num_actions), config.num_simulations)
    num_nodes = 1 + sum(phase.width * phase.rounds for phase in phases)
    max_depth = config.max_depth or config.num_simulations

    def score(edges: Edges) -> Array:
        return interior_score(edges, config.c_visit, config.c_scale)

    def search(params: PyTree, key: Array, roots: PyTree) -> SearchOutput:
        root_key, gumbel_key, leaf_key = jax.random.split(key, 3)
        states, logits, legal_mask, values = evaluate_roots(game, leaf, params, root_key, roots)
        log_priors = jax.nn.log_softmax(logits, axis=-1)  # -inf on illegal moves
        gumbel = config.gumbel_scale * jax.random.gumbel(gumbel_key, log_priors.shape, jnp.float32)
        tree = init_tree(
            game, states, masked_priors(logits, legal_mask), values, num_nodes, config.edge_width
        )
        has_room = root_actions(tree, game.num_actions).legal_mask()

        def visit(tree: Tree, phase: HalvingPhase, action: Array, valid: Array, slot: int) -> Tree:
            edge = root_edge_of(tree, action)

            def one_round(number: Array | int, tree: Tree) -> Tree:
                first = slot + number * phase.width
                return simulate(
                    game, leaf, score, max_depth, params, leaf_key, tree, edge, valid, first
                )

            if phase.rounds == 1:
                return one_round(0, tree)
            return jax.lax.fori_loop(0, phase.rounds, one_round, tree)

        def root_scores(edges: Edges) -> Array:
            """Return g + log P + sigma(q) of the remaining moves, those with the most visits; -inf
            elsewhere, also for moves without an edge at the root."""
            remaining = edges.visits == jnp.max(edges.visits, axis=-1, keepdims=True)
            return jnp.where(
                remaining & has_room,
                gumbel + log_priors + sigma(edges, config.c_visit, config.c_scale),
                -jnp.inf,
            )

        slot = 1
        for phase in phases:
            scores, action = jax.lax.top_k(
                root_scores(root_actions(tree, game.num_actions)), phase.width
            )
            tree = visit(tree, phase, action.astype(jnp.int32), scores > -jnp.inf, slot)
            slot += phase.width * phase.rounds

        edges = root_actions(tree, game.num_actions)
        improved = jax.nn.softmax(
            log_priors + sigma(edges, config.c_visit, config.c_scale), axis=-1
        )
        action = argmax(root_scores(edges))
        return SearchOutput(
            action=action,
            weights=jnp.where(legal_mask, improved, 0.0),
            visits=edges.visits.astype(jnp.int32),
            value=node_value(edges),
            best_child_value=best_child_value(edges, action),
            tree=tree,
            prior=jnp.exp(log_priors),
        )

    return search
