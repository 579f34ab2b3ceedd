"""Descents, back-ups and copies of the tree of one game, compiled by Numba.

Importing takes 0.3 s, and the very first run compiles for several seconds; the result is kept on
disk (`azero.native`). `start` and `row` are rows of `Columns.nodes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from azero import native
from azero.search import puct
from azero.search.single import columns as tree_columns
from azero.search.single.columns import (
    ALPHAGO2016,
    ALPHAZERO,
    BLOCKED,
    EDGES,
    ENDED,
    ENDING,
    GUMBEL,
    LEAF,
    MOVES,
    NEW,
    NODES,
    PENDING,
    WIDEST,
    Columns,
    Parameters,
    Virtual,
)

_compile = native.compiler([__file__, tree_columns.__file__, puct.__file__])
_alphago_zero_scale = _compile(puct.alphago_zero_scale)
_alphazero_scale = _compile(puct.alphazero_scale)
_deviation_factor = _compile(puct.deviation_factor)
_puct_score = _compile(puct.puct_score)
_reduced_value = _compile(puct.reduced_value)
_TINY = float(np.finfo(np.float32).tiny)


@_compile
def descend(
    columns: Columns,
    rule: Parameters,
    start: int,
    first_edges: np.ndarray,
    count: int,
    height: int,
    max_depth: int,
    virtual: Virtual,
    waits: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Follow the rule from `start` to edges that do not lead to an open node, adding virtual
    visits.

    Results of finished games are backed up at once. With `waits` a descent to an edge whose
    evaluation is under way is blocked. Its virtual visits are kept until the end of the batch, so
    that the batch spreads, and then removed.

    Args:
      columns: of the tree, with room for the new edges (`Store.reserve_descents`).
      rule: chooses the edges.
      start: the node to begin at.
      first_edges: int[count] to begin with, or int[0] for those of the rule.
      count: most descents, and most blocked ones.
      height: the most edges of a path.
      max_depth: length at which a path ends at the value of its last node; -1 is none.
      virtual: what a descent counts as until its result is backed up.
      waits: whether descents are blocked, as where a leaf is evaluated only once.

    Returns:
      Paths int32[F, height, 2], a node and an edge each; the sums of the virtual visits of each
      edge, float64[F, height]; the lengths of the paths, int32[F]; what is at their ends, int8[F]:
      NEW, LEAF, ENDED, or BLOCKED without `waits`.
    """
    paths, sums = np.empty((2 * count, height, 2), np.int32), np.empty((2 * count, height))
    lengths, kinds = np.empty(2 * count, np.int32), np.empty(2 * count, np.int8)
    found = blocked = 0
    while found < count and blocked < count:
        first = first_edges[found] if len(first_edges) else -1
        length, kind, result = _follow(
            columns, rule, start, first, paths[found], sums[found], max_depth, virtual
        )
        if kind == ENDED:
            _back_up(columns, paths[found, :length], sums[found], result, virtual.visits)
            if rule.kind == ALPHAGO2016:
                _back_up_network(columns, paths[found, :length], result)
        elif kind != NEW and waits:
            blocked += 1
            paths[-blocked, :length], lengths[-blocked] = paths[found, :length], length
            sums[-blocked, :length] = sums[found, :length]
            continue
        lengths[found], kinds[found] = length, kind
        found += 1
    for i in range(1, blocked + 1):
        _take_back(columns, paths[-i, : lengths[-i]], sums[-i], virtual.visits)
    return paths[:found], sums[:found], lengths[:found], kinds[:found]


@_compile
def back_up(
    columns: Columns,
    paths: np.ndarray,
    sums: np.ndarray,
    lengths: np.ndarray,
    results: np.ndarray,
    network_values: np.ndarray,
    visits: int,
) -> None:
    """Replace the virtual visits on paths int32[F, height, 2], `visits` of each descent with `sums`
    float64[F, height], by `results` float64[F] for the first mover; and add network values
    float64[F], counted separately, where they are not nan."""
    for i in range(len(paths)):
        _back_up(columns, paths[i, : lengths[i]], sums[i], results[i], visits)
        if not math.isnan(network_values[i]):
            _back_up_network(columns, paths[i, : lengths[i]], network_values[i])


@_compile
def set_moves(columns: Columns, rows: np.ndarray, legal: np.ndarray, policies: np.ndarray) -> None:
    """Give nodes without tried moves those of `legal` bool[P, A], with the priors of float32[P, A].

    There must be room for them all.
    """
    for i in range(len(rows)):
        node, count = columns.nodes[rows[i]], legal[i].sum()
        if count > node.num_moves:
            node.first_move = columns.counts[MOVES]
            columns.counts[MOVES] += count
            columns.counts[WIDEST] = max(columns.counts[WIDEST], count)
        node.num_moves, place = count, node.first_move
        for action in range(legal.shape[1]):
            if legal[i, action]:
                columns.actions[place], columns.priors[place] = action, policies[i, action]
                place += 1
        bring_forward(columns, rows[i])


@_compile
def bring_forward(columns: Columns, row: int) -> None:
    """Swap the most probable untried move into the first place of the untried; of equals the one
    with the lowest number."""
    actions, priors, node = columns.actions, columns.priors, columns.nodes[row]
    first = best = node.first_move + node.tried
    for i in range(first + 1, node.first_move + node.num_moves):
        if priors[i] > priors[best] or (priors[i] == priors[best] and actions[i] < actions[best]):
            best = i
    if node.tried < node.num_moves:
        actions[first], actions[best] = actions[best], actions[first]
        priors[first], priors[best] = priors[best], priors[first]


@_compile
def add_edge(columns: Columns, row: int) -> None:
    """Add the edge of the most probable untried move, whose move has not been played yet."""
    node, edges = columns.nodes[row], columns.edges
    tried = node.tried
    if tried == node.room:
        room, place = min(max(2, 2 * tried), node.num_moves), columns.counts[EDGES]
        edges[place : place + tried] = edges[node.first_edge : node.first_edge + tried]
        node.first_edge, node.room = place, room
        columns.counts[EDGES] += room
    edge = edges[node.first_edge + tried]
    edge.visits = edge.sums = edge.squares = edge.result = 0.0
    edge.network_visits = edge.network_sums = 0.0
    edge.child = PENDING
    node.explored += columns.priors[node.first_move + tried]
    node.tried += 1
    bring_forward(columns, row)


@_compile
def find_below(columns: Columns, root: int) -> tuple[np.ndarray, int, int]:
    """Return the rows of the nodes below `root`, itself first: int64[N]; and how many moves and
    tried edges they have."""
    rows = np.empty(columns.counts[NODES], np.int64)
    rows[0] = root
    found, looked, num_moves, num_edges = 1, 0, 0, 0
    while looked < found:
        node = columns.nodes[rows[looked]]
        looked += 1
        num_moves += node.num_moves
        num_edges += node.tried
        for i in range(node.first_edge, node.first_edge + node.tried):
            if columns.edges[i].child >= 0:
                rows[found] = columns.edges[i].child
                found += 1
    return rows[:found], num_moves, num_edges


@_compile
def copy_below(old: Columns, new: Columns, rows: np.ndarray) -> np.ndarray:
    """Copy the nodes `rows`, of which each has its children among them, to the beginning of `new`;
    return the new row of every old one, -1 where there is none: int64[N]."""
    new_rows = np.full(old.counts[NODES], -1)
    for i in range(len(rows)):
        new_rows[rows[i]] = i
    moves = edges = 0
    for i in range(len(rows)):
        new.nodes[i] = old.nodes[rows[i]]
        node = new.nodes[i]
        first, count = node.first_move, node.num_moves
        new.actions[moves : moves + count] = old.actions[first : first + count]
        new.priors[moves : moves + count] = old.priors[first : first + count]
        for edge in range(node.tried):
            new.edges[edges + edge] = old.edges[node.first_edge + edge]
            child = new.edges[edges + edge].child
            if child >= 0:
                new.edges[edges + edge].child = new_rows[child]
        node.first_move, node.first_edge, node.room = moves, edges, node.tried
        moves, edges = moves + count, edges + node.tried
    new.counts[NODES], new.counts[MOVES], new.counts[EDGES] = len(rows), moves, edges
    new.counts[WIDEST] = old.counts[WIDEST]
    return new_rows


@_compile
def _follow(
    columns: Columns,
    rule: Parameters,
    start: int,
    first_edge: int,
    path: np.ndarray,
    sums: np.ndarray,
    max_depth: int,
    virtual: Virtual,
) -> tuple[int, int, float]:
    """Write a path into int32[height, 2], and the sums of its virtual visits into float64[height];
    return its length, what is at its end, and the result if that is ENDED."""
    row, length = start, 0
    while True:
        node = columns.nodes[row]
        edge = _select(columns, rule, row) if length or first_edge < 0 else first_edge
        is_new, value = edge == node.tried, -1.0
        if is_new:
            value = value if virtual.is_lost else _unvisited_value(columns, rule, row)
            add_edge(columns, row)
        taken = columns.edges[node.first_edge + edge]
        if not virtual.is_lost and not is_new:
            value = taken.sums / taken.visits
        path[length, 0], path[length, 1], sums[length] = row, edge, virtual.visits * value
        taken.visits += virtual.visits
        taken.sums += sums[length]
        node.total_visits += virtual.visits
        node.total_value += sums[length]
        length += 1
        if taken.child == ENDING:
            return length, ENDED, taken.result
        if taken.child == PENDING:
            return length, NEW if is_new else BLOCKED, 0.0
        child = columns.nodes[taken.child]
        if not child.is_open:
            return length, LEAF, 0.0
        if child.num_moves == 0 or length == max_depth:
            return length, ENDED, child.value * _sign_of(child)
        row = taken.child


@_compile
def _select(columns: Columns, rule: Parameters, row: int) -> int:
    """Return the best tried edge, or the number of tried ones where the best untried is better."""
    node = columns.nodes[row]
    if node.tried == 0:
        return 0
    if rule.kind == GUMBEL:
        return _select_gumbel(columns, rule, row)
    scale, fresh = _scale(columns, rule, row), _unvisited_value(columns, rule, row)
    best, best_score = 0, -math.inf
    for i in range(node.tried):
        edge, prior = columns.edges[node.first_edge + i], columns.priors[node.first_move + i]
        score = _puct_score(_mean(rule, edge), prior, edge.visits, scale)
        if score > best_score:
            best, best_score = i, score
    if node.tried == node.num_moves:
        return best
    prior = columns.priors[node.first_move + node.tried]
    return node.tried if _puct_score(fresh, prior, 0.0, scale) > best_score else best


@_compile
def _scale(columns: Columns, rule: Parameters, row: int) -> float:
    """Return c sqrt(N) of PUCT."""
    node = columns.nodes[row]
    if rule.kind != ALPHAZERO:
        scale = _alphago_zero_scale(float(node.total_visits), rule.c_puct, math)
    else:  # twice the published c: values are in [-1, 1] here and in [0, 1] there
        scale = 2.0 * _alphazero_scale(float(node.total_visits), rule.c_base, rule.c_init, math)
    if rule.variance_scale:
        squares = node.value**2
        for i in range(node.first_edge, node.first_edge + node.tried):
            squares += columns.edges[i].squares
        scale *= _deviation_factor(
            node.total_value / (1.0 + node.total_visits),
            squares,
            1.0 + node.total_visits,
            rule.variance_scale,
            rule.stdev_prior,
            rule.stdev_prior_weight,
            np,
        )
    return scale


@_compile
def _unvisited_value(columns: Columns, rule: Parameters, row: int) -> float:
    """Return the value of an unvisited move."""
    node = columns.nodes[row]
    if not math.isnan(rule.unvisited):
        return rule.unvisited
    if rule.kind != ALPHAGO2016:
        value = node.total_value / (1.0 + node.total_visits)
        return _reduced_value(value, node.explored, rule.reduction, math)
    total = 0.0
    for i in range(node.first_edge, node.first_edge + node.tried):
        total += _mean(rule, columns.edges[i]) * columns.edges[i].visits
    return total / max(1, node.total_visits)


@_compile
def _mean(rule: Parameters, edge: Any) -> float:
    """Return Q of a tried edge."""
    if rule.kind != ALPHAGO2016:
        return edge.sums / edge.visits
    by_network = edge.network_sums / max(edge.network_visits, 1.0)
    return (1.0 - rule.mixing) * by_network + rule.mixing * (edge.sums / max(edge.visits, 1.0))


@_compile
def _select_gumbel(columns: Columns, rule: Parameters, row: int) -> int:
    """Return the edge whose share of visits is furthest below the improved policy (GUM equation
    14).

    That is proportional to P exp(s q), s = (c_visit + max N) c_scale, q in [0, 1]: Q where visited
    and v_mix elsewhere (GUM equation 8, appendix D). So the untried moves need no loop.
    """
    node, total = columns.nodes[row], float(columns.nodes[row].total_visits)
    first, tried = node.first_edge, node.tried
    most = weighted = explored = 0.0
    highest = -math.inf
    for i in range(tried):
        edge, prior = columns.edges[first + i], columns.priors[node.first_move + i]
        most, highest = max(most, edge.visits), max(highest, edge.sums / edge.visits)
        weighted, explored = weighted + prior * edge.sums / edge.visits, explored + prior
    mixed = (node.value + total * weighted / max(explored, _TINY)) / (1.0 + total)
    if tried < node.num_moves:
        highest = max(highest, mixed)
    half_scale = 0.5 * (rule.c_visit + most) * rule.c_scale
    untried = math.exp(half_scale * min(mixed - highest, 0.0))
    best_prior = columns.priors[node.first_move + tried] if tried < node.num_moves else 0.0
    odds = max(1.0 - explored, best_prior) * untried if tried < node.num_moves else 0.0
    for i in range(tried):
        edge, prior = columns.edges[first + i], columns.priors[node.first_move + i]
        odds += max(prior, _TINY) * math.exp(half_scale * (edge.sums / edge.visits - highest))
    best, best_share = tried, max(best_prior, _TINY) * untried / odds
    if tried == node.num_moves:
        best, best_share = 0, -math.inf
    for i in range(tried - 1, -1, -1):  # the first of equals
        edge, prior = columns.edges[first + i], columns.priors[node.first_move + i]
        q = math.exp(half_scale * (edge.sums / edge.visits - highest))
        share = max(prior, _TINY) * q / odds - edge.visits / (1.0 + total)
        if share >= best_share:
            best, best_share = i, share
    return best


@_compile
def _sign_of(node: Any) -> float:
    """Return the factor between values for the side to move and for the first mover."""
    return 1.0 if node.to_play == 0 else -1.0


@_compile
def _back_up(
    columns: Columns, path: np.ndarray, sums: np.ndarray, result: float, visits: int
) -> None:
    """Replace the virtual visits on every edge of a path by the result for the first mover."""
    for i in range(len(path)):
        node = columns.nodes[path[i, 0]]
        edge, gain = columns.edges[node.first_edge + path[i, 1]], result * _sign_of(node)
        edge.sums += gain - sums[i]
        edge.squares += gain * gain
        edge.visits += 1 - visits
        node.total_value += gain - sums[i]
        node.total_visits += 1 - visits


@_compile
def _back_up_network(columns: Columns, path: np.ndarray, value: float) -> None:
    """Add a network's value for the first mover, which is counted separately."""
    for i in range(len(path)):
        node = columns.nodes[path[i, 0]]
        edge = columns.edges[node.first_edge + path[i, 1]]
        edge.network_visits += 1.0
        edge.network_sums += value * _sign_of(node)


@_compile
def _take_back(columns: Columns, path: np.ndarray, sums: np.ndarray, visits: int) -> None:
    """Undo the virtual visits on every edge of a path."""
    for i in range(len(path)):
        node = columns.nodes[path[i, 0]]
        edge = columns.edges[node.first_edge + path[i, 1]]
        edge.visits -= visits
        edge.sums -= sums[i]
        node.total_visits -= visits
        node.total_value -= sums[i]
