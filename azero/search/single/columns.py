"""The arrays of the tree of one game, which grow with it.

A node has a row of `nodes`, its legal moves are consecutive in `actions` and `priors`, and its
tried edges together in `edges`. An edge belongs to its parent node, as in AlphaGo Zero. The moves
of a node are the tried ones in the order of their first visits, then the most probable of the
others, then the rest in any order: unvisited moves all have the same value, so the best of them is
always the most probable one, and only tried moves take the memory of an edge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

NODE = np.dtype(
    [
        ("value", "f8"),  # the position's own evaluation for the side to move; nan: not known
        ("total_value", "f8"),  # of that and of all backed-up values
        ("explored", "f8"),  # sum of the priors of the tried moves
        ("first_move", "i8"),
        ("first_edge", "i8"),
        ("total_visits", "i4"),
        ("num_moves", "i4"),
        ("tried", "i4"),
        ("room", "i4"),  # edges that fit in place; when there are more, all of them move
        ("to_play", "i1"),
        ("is_open", "?"),  # descents continue below it; without a move they end at its value
    ],
    align=True,
)
EDGE = np.dtype(
    [
        ("visits", "f8"),  # N, virtual visits of unfinished descents included
        ("sums", "f8"),  # W for the side to move at the node, virtual visits included
        ("squares", "f8"),  # sum of the squared values, virtual visits left out
        ("network_visits", "f8"),  # N_v and W_v: a network's values, apart from rollouts
        ("network_sums", "f8"),
        ("result", "f8"),  # for the first mover, where the child is ENDING
        ("child", "i4"),  # a row of `nodes`, ENDING or PENDING
    ],
    align=True,
)
PENDING, ENDING = -1, -2
"""Children that are not nodes: the move has not been played yet; the game is over."""
NEW, LEAF, ENDED, BLOCKED = range(4)
"""Ends of descents: an edge whose move is to be played; a position that is no open node; a result;
an edge whose move an earlier descent is about to play."""
ALPHAGO_ZERO, ALPHAZERO, ALPHAGO2016, GUMBEL = range(4)
"""Kinds of rules."""
NODES, MOVES, EDGES, WIDEST = range(4)
"""Entries of `Columns.counts`."""


class Parameters(NamedTuple):
    """A rule of `azero.search.single.selection` for compiled code: its fields."""

    kind: int
    """ALPHAGO_ZERO or ALPHAZERO (`Puct`), ALPHAGO2016 or GUMBEL."""
    c_puct: float = 0.0
    c_base: float = 1.0
    c_init: float = 0.0
    unvisited: float = math.nan
    """Value of an untried move; nan: it depends on the node."""
    reduction: float = 0.0
    variance_scale: float = 0.0
    stdev_prior: float = 1.0
    stdev_prior_weight: float = 1.0
    mixing: float = 0.0
    c_visit: float = 0.0
    c_scale: float = 0.0


class Virtual(NamedTuple):
    """What a descent counts as until its result is backed up."""

    visits: int
    is_lost: bool
    """Its visits count as losses (AG16 methods), or have the value that the edge had before, so
    that only their number counts (WU-UCT, Liu et al. 2020, arXiv:1810.11755, section 3)."""


class Columns(NamedTuple):
    """The arrays that compiled code works on."""

    nodes: np.ndarray
    """NODE[room]"""
    actions: np.ndarray
    """int[room], int16 where that suffices"""
    priors: np.ndarray
    """float32[room]; those of a node sum to one"""
    edges: np.ndarray
    """EDGE[room]"""
    counts: np.ndarray
    """int64[4]: nodes, moves and edges in use, and the most moves of a node"""
