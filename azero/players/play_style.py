"""Choosing a move from a search tree: limits, choice, sampled openings, resignation; values, bounds
and principal variations of the root's moves."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from azero.config import check_range
from azero.players.clock import LAG_SECONDS
from azero.players.thinking import Limits, MoveInfo
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

    Only PUCT has the choice "lcb"; ties are ordered by visits, then by priors.
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
    """Return the tree's statistics of the tried moves in `order`; `evaluation` has the priors among
    all legal moves."""
    values, lower = rule.values(node), lower_bounds(node, rule)
    priors = dict(zip(evaluation.actions.tolist(), evaluation.priors.tolist(), strict=True))
    infos = []
    for edge in order:
        action, visits = int(node.actions[edge]), int(node.visits[edge])
        line = _principal_variation(node, edge)
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


def _principal_variation(node: Node, edge: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the line of most visited moves that begins with `edge`, and the visits of each."""
    actions, visits = [int(node.actions[edge])], [int(node.visits[edge])]
    child = node.child(edge)
    while isinstance(child, Node) and child.tried:
        edge = int(np.argmax(child.visits))
        actions.append(int(child.actions[edge]))
        visits.append(int(child.visits[edge]))
        child = child.child(edge)
    return tuple(actions), tuple(visits)


@dataclass(frozen=True)
class PlayStyle:
    """How a move is chosen from a tree."""

    limits: Limits = field(default_factory=lambda: Limits(visits=800))  # AZ: 800
    """For every move; a clock adds its own time limit."""
    choice: Literal["lcb", "visits"] = "lcb"
    """The move with the best lower confidence bound among those with enough visits (as Leela Zero
    and KataGo), or the most visited one. The Gumbel search has its own choice, the winner of
    sequential halving."""
    temperature_moves: int = 0
    """Moves at the start of the game, of both sides, that are sampled in proportion to visits, by
    Gumbel to its improved policy (temperature 1)."""
    resign_threshold: float | None = None
    """Resign when the value and the best move's value are below this, in [-1, 1]; None never
    resigns."""
    resign_moves: int = 3
    """Number of own moves in a row for which the value must be below the threshold."""
    resigns_by_all: bool = False
    """Resign only when the value of every move is below the threshold (AG16)."""
    extension: float = 0.0
    """If the most visited move does not have the best value, search longer, at most by this share
    (AG16 gives no limit). A time limit is not extended."""
    lag_seconds: float = LAG_SECONDS
    """Subtracted from every time limit of a clock."""
    own_moves: float | None = None
    """Own moves over which a clock's main time is divided (AZ: 20); None is by the board, see
    `thinking_seconds`."""
    stop_early: bool = True
    """With a clock: stop when no other move can catch up with the most visited one."""

    def with_visits(self, visits: int, counts_new: bool = False) -> "PlayStyle":
        """Return this style with another limit of visits; with `counts_new`, of new visits."""
        if counts_new:
            limits = dataclasses.replace(self.limits, visits=None, playouts=visits)
        else:
            limits = dataclasses.replace(self.limits, visits=visits)
        return dataclasses.replace(self, limits=limits)

    def __post_init__(self) -> None:
        if self.choice not in CHOICES:
            allowed = ", ".join(CHOICES)
            raise ValueError(f"choice must be one of {allowed}, not {self.choice!r}")
        check_range(self, "", "resign_moves", 1)
        check_range(self, "", "lag_seconds", 0)
        check_range(self, "", "own_moves", 0, above=True)


ALPHAGO2016 = PlayStyle(
    limits=Limits(playouts=800),  # ours; AG16 plays by the clock, 5 s a move
    choice="visits",
    resign_threshold=-0.8,  # AG16: less than a win in ten
    resign_moves=1,
    resigns_by_all=True,  # AG16: max_a Q(s, a)
    extension=0.5,
    stop_early=False,
)
"""The style of AlphaGo (AG16 methods, "Search algorithm")."""
