"""What a tree says of its root's moves: values, lower confidence bounds, principal variations, and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from azero.players.thinking import MoveInfo
from azero.search.single.evaluator import Evaluation
from azero.search.single.node import Node

CHOICES = ("lcb", "visits")
"""Rules that order the moves: see `PlayStyle.choice`."""
_DEVIATIONS = 5.0
"""Standard deviations of the mean between the value and its lower bound (KataGo's default)."""
_SHARE_OF_MOST = 0.1
"""A move needs this share of the visits of the most visited one to be chosen by its bound (Leela Zero)."""
_PRIOR_VARIANCE = 1.0
"""Variance of one imagined visit, so that two equal values do not make a certainty: that of a coin between -1 and 1."""


class Bounds(NamedTuple):
    """Values of the tried moves of a node, for the side to move there."""

    values: np.ndarray
    """float64[L]"""
    lower: np.ndarray
    """float64[L]: at least -1."""


def bounds_of(node: Node) -> Bounds:
    """Return means and lower confidence bounds of the node's tried moves."""
    visits = node.visits[: node.tried]
    values = node.sums[: node.tried] / visits
    variances = np.maximum(node.squares[: node.tried] / visits - values**2, 0.0)
    smoothed = (visits * variances + _PRIOR_VARIANCE) / (visits + 1.0)
    return Bounds(values, np.maximum(values - _DEVIATIONS * np.sqrt(smoothed / visits), -1.0))


def order_moves(node: Node, choice: str) -> list[int]:
    """Return the indices of the node's tried moves, the one to play first; equals in the order of visits, then of priors."""
    visits = node.visits[: node.tried]
    by_visits = np.lexsort((-node.evaluation.priors[: node.tried], -visits)).tolist()
    if choice == "visits" or not by_visits:
        return list(by_visits)
    lower = bounds_of(node).lower
    enough = visits >= _SHARE_OF_MOST * visits.max()
    return sorted(by_visits, key=lambda edge: (not enough[edge], -lower[edge] if enough[edge] else 0.0))


def describe_moves(node: Node, evaluation: Evaluation, order: Sequence[int]) -> tuple[MoveInfo, ...]:
    """Return what the tree says of the node's tried moves in the given order; `evaluation` has the priors among all legal moves."""
    bounds = bounds_of(node)
    prior_of = dict(zip(evaluation.actions.tolist(), evaluation.priors.tolist(), strict=True))
    infos = []
    for edge in order:
        action = int(node.evaluation.actions[edge])
        value, lower = float(bounds.values[edge]), float(bounds.lower[edge])
        infos.append(MoveInfo(action, int(node.visits[edge]), value, prior_of[action], lower, *principal_variation(node, edge)))
    return tuple(infos)


class Line(NamedTuple):
    """Moves in a row."""

    actions: tuple[int, ...]
    visits: tuple[int, ...]
    """Of each of them."""


def principal_variation(node: Node, edge: int) -> Line:
    """Return the line of most visited moves that begins with `edge`."""
    actions, visits = [int(node.evaluation.actions[edge])], [int(node.visits[edge])]
    child = node.children[edge]
    while isinstance(child, Node) and child.tried:
        edge = int(np.argmax(child.visits[: child.tried]))
        actions.append(int(child.evaluation.actions[edge]))
        visits.append(int(child.visits[edge]))
        child = child.children[edge]
    return Line(tuple(actions), tuple(visits))
