"""Statistics of a tree's root moves: values, bounds, principal variations, their order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azero.players.thinking import MoveInfo
from azero.search.single.node import Evaluation, Node
from azero.search.single.selection import AlphaGo2016, Puct, Rule, mean_values

CHOICES = ("lcb", "visits")
"""Rules that rank the moves: see `PlayStyle.choice`."""
_DEVIATIONS = 5.0
"""Standard deviations of the mean between the value and its lower bound (KataGo's default)."""
_SHARE_OF_MOST = 0.1
"""A move can be chosen by its bound only with this share of the visits of the most visited one
(Leela Zero)."""
_PRIOR_VARIANCE = 1.0
"""Variance of one virtual visit, that of a coin between -1 and 1, so that two equal values do not
imply certainty."""


def lower_bounds(node: Node, rule: Rule) -> np.ndarray:
    """Return lower confidence bounds of the tried moves, at least -1: float64[tried].

    AlphaGo of 2016 has none: its values are not means of backed-up values.
    """
    if isinstance(rule, AlphaGo2016):
        return rule.values(node)
    visits, values = node.visits, mean_values(node)
    variances = np.maximum(node.edges["squares"] / visits - values**2, 0.0)
    smoothed = (visits * variances + _PRIOR_VARIANCE) / (visits + 1.0)
    return np.maximum(values - _DEVIATIONS * np.sqrt(smoothed / visits), -1.0)


def order_moves(node: Node, rule: Rule, choice: str) -> list[int]:
    """Return the edges of the tried moves, the one to play first.

    Only PUCT has the choice "lcb"; equals are in the order of visits, then of priors.
    """
    order = rule.order(node)
    if choice == "visits" or not order or not isinstance(rule, Puct):
        return order
    visits, lower = node.visits, lower_bounds(node, rule)
    enough = visits >= _SHARE_OF_MOST * visits.max()
    return sorted(order, key=lambda edge: (not enough[edge], -lower[edge] if enough[edge] else 0.0))


def is_most_visited_best(node: Node, rule: Rule) -> bool:
    """Return whether the first move by visits also has the best value; if not, AG16 searches on."""
    values = rule.values(node)
    return not len(values) or bool(values[rule.order(node)[0]] >= values.max())


def describe_moves(
    node: Node, evaluation: Evaluation, rule: Rule, order: Sequence[int]
) -> tuple[MoveInfo, ...]:
    """Return the tree's statistics of the tried moves in `order`.

    `evaluation` has the priors among all legal moves.
    """
    values, lower = rule.values(node), lower_bounds(node, rule)
    priors = dict(zip(evaluation.actions.tolist(), evaluation.priors.tolist(), strict=True))
    infos = []
    for edge in order:
        action, visits = int(node.actions[edge]), int(node.visits[edge])
        line = principal_variation(node, edge)
        value, bound = float(values[edge]), float(lower[edge])
        parts = _parts(node, edge) if isinstance(rule, AlphaGo2016) else (None, None)
        infos.append(MoveInfo(action, visits, value, priors[action], bound, *line, *parts))
    return tuple(infos)


def _parts(node: Node, edge: int) -> tuple[float | None, float | None]:
    """Return W_v / N_v and W_r / N_r of an edge (AG16); None where there is no value yet."""
    counts = node.edges[edge]
    pairs = (("network_sums", "network_visits"), ("sums", "visits"))
    network, rollout = (
        float(counts[total] / counts[number]) if counts[number] else None for total, number in pairs
    )
    return network, rollout


class Variation(NamedTuple):
    """Moves in a row."""

    actions: tuple[int, ...]
    visits: tuple[int, ...]
    """Visits of each move."""


def principal_variation(node: Node, edge: int) -> Variation:
    """Return the line of most visited moves that begins with `edge`."""
    actions, visits = [int(node.actions[edge])], [int(node.visits[edge])]
    child = node.child(edge)
    while isinstance(child, Node) and child.tried:
        edge = int(np.argmax(child.visits))
        actions.append(int(child.actions[edge]))
        visits.append(int(child.visits[edge]))
        child = child.child(edge)
    return Variation(tuple(actions), tuple(visits))
