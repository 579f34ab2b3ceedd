"""An array tree for B games at once: init_tree, descend, expand, backup.

Every function works on the whole batch with a scalar loop predicate; none is vmapped, so that XLA
updates the big arrays in place (a vmapped while_loop selects between two whole trees at every
step). Lanes are [B, L]: L simulations of the same game that run in parallel in disjoint subtrees;
PUCT has L = 1.

An edge is a pair (node, move) and holds what AlphaGo Zero stores there: P, N and W. The child of an
edge is a node index or one of two negative marks. A terminal position gets no node: the edge into
it is marked TERMINAL, and each visit plays the move again and backs up the exact result.

Every node has room for E edges. Where E is the number of actions A (Go), edge and action are the
same number. Where few of many actions are ever legal (chess: 218 of 4,672), E is smaller and
`Tree.moves` holds the action of each edge, in ascending order, so that ties are broken as among all
actions.

Node n of game b is row n B + b of every array, so that the nodes of one simulation are consecutive
rows, and so are the roots (`azero.search.batched.rows`).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azero.config import LARGEST_INT
from azero.games.game import Game
from azero.mesh import platform_dependent
from azero.search.batched.evaluation import (
    ILLEGAL,
    compact,
    play_and_evaluate,
)
from azero.search.batched.reductions import argmax, edge_sum
from azero.search.batched.rows import (
    add,
    change_below_root,
    change_roots,
    in_row_order,
    node_rows,
    read_entry,
    read_rows,
    replace,
)
from azero.search.search import LeafFn
from azero.types import Array, PyTree

UNVISITED = -1
"""Mark of an edge in `Tree.children` that was never followed."""
TERMINAL = -2
"""Mark of an edge in `Tree.children` that ends the game."""
ROOT = 0
"""Index of the root among the nodes of a game."""


@struct.dataclass
class Tree:
    """Search trees of B games with N nodes of E edges; nodes are filled in the order in which they
    were evaluated."""

    states: PyTree
    """[N B, ...]: slim states (`Game.search_state`)."""
    players: Array
    """int8[N B]: the side to move, 0 or 1."""
    raw_values: Array
    """float32[N B]: the leaf's value when the node was expanded, for the side to move there."""
    parents: Array
    """int[N B]: node index of the parent (int16 where that suffices); ROOT for rows that are not
    nodes: those not yet used, and evaluations of terminal positions."""
    edges: Array
    """int[N B]: the edge that led from the parent here."""
    moves: Array | None
    """int[N B, E]: the action of each edge, ascending; num_actions where there is none. None where
    edges and actions are the same."""
    children: Array
    """int[N B, E]: node index of the child of each edge, or UNVISITED or TERMINAL."""
    priors: Array
    """float32[N B, E]: P(s, a), which sums to one over the legal moves; ILLEGAL on the others."""
    visits: Array
    """int[N B, E]: N(s, a); int32 where trees are kept from move to move."""
    value_sums: Array
    """float32[N B, E]: W(s, a), the sum of the values backed up through the edge, for the side to
    move at s."""
    squares: Array | None
    """float32[N B]: the sum of the squares of the values backed up through the edges of the node;
    None where the search does not need it."""
    num_nodes: int = struct.field(pytree_node=False)
    """N"""

    @property
    def num_games(self) -> int:
        """B"""
        return self.players.shape[0] // self.num_nodes


class Edges(NamedTuple):
    """The edges of one node per lane, as a selection rule sees them: E of them, or all A actions at
    a root (`root_actions`)."""

    priors: Array
    """float32[..., E]"""
    visits: Array
    """float32[..., E]"""
    value_sums: Array
    """float32[..., E]"""
    raw_value: Array
    """float32[...]"""
    squares: Array | None = None
    """float32[...]: see `Tree.squares`."""

    def legal_mask(self) -> Array:
        """Return bool[..., E]."""
        return self.priors >= 0.0

    def qvalues(self, unvisited: float | Array) -> Array:
        """Return Q = W / N in [-1, 1], float32[..., E], with `unvisited` (which broadcasts) where N
        is zero."""
        return jnp.where(
            self.visits > 0.0, self.value_sums / jnp.maximum(self.visits, 1.0), unvisited
        )


class Path(NamedTuple):
    """Where the lanes of one simulation leave the tree: the last edge, whose child is evaluated
    next."""

    node: Array
    """int32[B, L]"""
    edge: Array
    """int32[B, L]"""
    child: Array
    """int32[B, L]: the child of that edge: UNVISITED, TERMINAL, or a node where the depth limit
    ended the descent."""
    valid: Array
    """bool[B, L]: lanes in use."""


ScoreFn = Callable[[Edges], Array]
"""Edges of [...] nodes -> scores float32[..., E]. The descent follows the legal edge with the
highest score, the first of equals."""


def index_dtype(num_nodes: int) -> jnp.dtype:
    """Return the narrowest type that holds node indices and visit counts of a tree with `num_nodes`
    nodes."""
    return jnp.dtype(jnp.int16 if num_nodes <= jnp.iinfo(jnp.int16).max else jnp.int32)


def best_legal(scores: Array, edges: Edges) -> Array:
    """Return int32[...]: the legal edge with the highest score, the first of equals."""
    return argmax(jnp.where(edges.legal_mask(), scores, -jnp.inf))


def init_tree(
    game: Game,
    states: PyTree,
    priors: Array,
    values: Array,
    num_nodes: int,
    width: int | None = None,
    keeps_squares: bool = False,
    keeps_visits: bool = False,
) -> Tree:
    """Return trees of at most `num_nodes` nodes that hold only the evaluated roots: slim states [B,
    ...], priors float32[B, A] with ILLEGAL marks, values float32[B] for the side to move. `width`
    is E, by default the most legal moves that a position of the game can have. `keeps_squares` adds
    `Tree.squares`; with `keeps_visits` visits of earlier searches are kept, so that there may be
    more of them than nodes.

    Raises:
      ValueError: an index of 32 bits does not reach all nodes.
    """
    batch, num_actions = priors.shape
    small = index_dtype(max(num_nodes, num_actions))
    width = edge_width(game, width)
    moves, priors = compact(priors, width)

    rows = num_nodes * batch
    if rows > LARGEST_INT:
        raise ValueError(
            f"trees of {num_nodes:,} nodes for {batch:,} games of one device are too large: lower "
            "search.num-simulations, search.kept-nodes, or selfplay.search-batch"
        )

    def room(root: Array) -> Array:
        return jnp.zeros((rows, *root.shape[1:]), root.dtype).at[:batch].set(root)

    return Tree(
        states=jax.tree.map(room, states),
        players=room(jax.vmap(game.to_play)(states).astype(jnp.int8)),
        raw_values=room(values.astype(jnp.float32)),
        parents=jnp.full(rows, ROOT, small),
        edges=jnp.zeros(rows, small),
        moves=None if moves is None else room(moves.astype(small)),
        children=jnp.full((rows, width), UNVISITED, small),
        priors=room(priors),
        visits=jnp.zeros((rows, width), jnp.int32 if keeps_visits else small),
        value_sums=jnp.zeros((rows, width), jnp.float32),
        squares=jnp.zeros(rows, jnp.float32) if keeps_squares else None,
        num_nodes=num_nodes,
    )


def edge_width(game: Game, width: int | None = None) -> int:
    """Return E: `width`, or as many as a position of `game` can have legal moves, but never more
    than there are actions."""
    return min(game.max_legal_actions if width is None else width, game.num_actions)


def read_edges(tree: Tree, row: Array) -> Edges:
    """Return the edges of the nodes in rows int32[...], which are in bounds."""

    def read(array: Array) -> Array:
        return array.at[row].get(mode="promise_in_bounds")

    return Edges(
        read(tree.priors),
        read(tree.visits).astype(jnp.float32),
        read(tree.value_sums),
        read(tree.raw_values),
        None if tree.squares is None else read(tree.squares),
    )


def descend(tree: Tree, edge: Array, valid: Array, score: ScoreFn, max_depth: int) -> Path:
    """Follow edges int32[B, L] of the root, in the lanes `valid` bool[B, L], and then the selection
    rule `score`, to the first edge that leaves the tree, or to paths of `max_depth` edges."""
    root = jnp.full_like(edge, ROOT)
    child = jnp.where(valid, read_entry(tree.children, root, edge), UNVISITED)
    start = Path(root, edge, child, valid)

    def unfinished(carry: tuple[Path, Array]) -> Array:
        path, depth = carry
        return jnp.any(path.child >= 0) & (depth < max_depth)

    def follow(carry: tuple[Path, Array]) -> tuple[Path, Array]:
        path, depth = carry
        path = platform_dependent(
            tree,
            path,
            cpu=functools.partial(_follow_in_blocks, score),
            default=functools.partial(_follow, score),
        )
        return path, depth + 1

    return jax.lax.while_loop(unfinished, follow, (start, jnp.ones((), jnp.int32)))[0]


def _follow(score: ScoreFn, tree: Tree, path: Path) -> Path:
    """Go on by one edge in the lanes that are inside the tree."""
    inside = path.child >= 0
    node = jnp.where(inside, path.child, path.node)
    edges = read_edges(tree, node_rows(node))
    edge = jnp.where(inside, best_legal(score(edges), edges), path.edge)
    child = jnp.where(inside, read_entry(tree.children, node, edge), path.child)
    return path._replace(node=node, edge=edge, child=child)


BLOCK = 32
"""Lanes that a CPU scores together."""


def _follow_in_blocks(score: ScoreFn, tree: Tree, path: Path) -> Path:
    """Return the same as `_follow`, for a CPU: only the lanes inside the tree are scored, BLOCK at
    a time. Most descents are short, and the longest of many decides how often all are followed."""
    batch, lanes = path.node.shape
    size = batch * lanes
    inside = (path.child >= 0).reshape(size)
    room = -(-size // BLOCK) * BLOCK
    order = jnp.nonzero(inside, size=room, fill_value=size)[0].astype(jnp.int32)

    def follow(number: Array, ends: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        nodes, edges, children = ends
        lane = jax.lax.dynamic_slice(order, (number * BLOCK,), (BLOCK,))
        node = jnp.maximum(children.at[lane].get(mode="fill", fill_value=ROOT), ROOT)
        row = node * batch + jnp.minimum(lane, size - 1) // lanes
        of_node = read_edges(tree, row)
        edge = best_legal(score(of_node), of_node)
        child = tree.children.at[row, edge].get(mode="promise_in_bounds").astype(jnp.int32)

        def write(array: Array, new: Array) -> Array:
            return array.at[lane].set(new, mode="drop", unique_indices=True)

        return write(nodes, node), write(edges, edge), write(children, child)

    ends = tuple(array.reshape(size) for array in (path.node, path.edge, path.child))
    blocks = -(-jnp.sum(inside, dtype=jnp.int32) // BLOCK)
    node, edge, child = jax.lax.fori_loop(0, blocks, follow, ends)
    node, edge, child = (array.reshape(batch, lanes) for array in (node, edge, child))
    return Path(node, edge, child, path.valid)


def expand(
    game: Game, leaf: LeafFn, params: PyTree, key: Array, tree: Tree, path: Path, slot: int | Array
) -> tuple[Tree, Array]:
    """Play the last move of every lane, evaluate the positions, and store them in nodes `slot` to
    `slot` + L - 1.

    The leaf sees all B x L positions in one call (on the CPU in chunks of at most CPU_CHUNK).

    Returns:
      The tree, and the values float32[B, L] of the new positions for the first mover of the game.
    """
    batch, lanes = path.node.shape

    def in_rows(array: Array) -> Array:
        """Return [B, L] in the order of the tree's rows, [L B]."""
        return array.swapaxes(0, 1).reshape(lanes * batch)

    def by_game(array: Array) -> Array:
        return array.reshape(lanes, batch).swapaxes(0, 1)

    def write(array: Array, rows: Array) -> Array:
        rows = rows.astype(array.dtype)
        if array.shape == tree.priors.shape:
            rows = in_row_order(rows)
        return jax.lax.dynamic_update_slice(array, rows, (slot * batch, *([0] * (array.ndim - 1))))

    row = in_rows(node_rows(path.node))
    before = jax.tree.map(lambda array: array.at[row].get(mode="promise_in_bounds"), tree.states)
    action = path.edge if tree.moves is None else read_entry(tree.moves, path.node, path.edge)
    action = in_rows(action)
    width = tree.priors.shape[-1]
    new = play_and_evaluate(game, leaf, width, params, key, before, action)

    new_child = jnp.where(
        by_game(new.terminal), TERMINAL, slot + jnp.arange(lanes, dtype=jnp.int32)
    )
    child = jnp.where(path.child == UNVISITED, new_child, path.child)
    parent = jnp.where((child >= 0) & (path.child == UNVISITED), path.node, ROOT)
    is_root = path.node == ROOT
    children = change_below_root(
        tree.children, path.node, path.edge, path.valid & ~is_root, child, replace
    )
    tree = dataclasses.replace(
        tree,
        states=jax.tree.map(write, tree.states, new.states),
        players=write(tree.players, new.players),
        raw_values=write(tree.raw_values, new.values),
        parents=write(tree.parents, in_rows(parent)),
        edges=write(tree.edges, in_rows(path.edge)),
        moves=None if tree.moves is None or new.moves is None else write(tree.moves, new.moves),
        children=change_roots(children, path.edge, path.valid & is_root, child, replace),
        priors=write(tree.priors, new.priors),
    )
    return tree, by_game(new.values * (1.0 - 2.0 * new.players.astype(jnp.float32)))


def backup(tree: Tree, path: Path, value: Array) -> Tree:
    """Count the visit and add `value`, float32[B, L] for the first mover, on every edge from the
    lane's last one up to the root."""

    class Carry(NamedTuple):
        visits: Array
        value_sums: Array
        squares: Array | None
        node: Array
        edge: Array

    def is_below(node: Array) -> Array:
        return path.valid & (node != ROOT)

    def sign(node: Array) -> Array:
        return 1.0 - 2.0 * read_rows(tree.players, node).astype(jnp.float32)

    one = jnp.ones(value.shape, tree.visits.dtype)

    def climb(carry: Carry) -> Carry:
        node, edge, squares, is_used = carry.node, carry.edge, carry.squares, is_below(carry.node)
        if squares is not None:
            row = jnp.where(is_used, node_rows(node), squares.shape[0])
            squares = squares.at[row].add(value * value, mode="drop", unique_indices=True)
        return Carry(
            change_below_root(carry.visits, node, edge, is_used, one, add),
            change_below_root(carry.value_sums, node, edge, is_used, sign(node) * value, add),
            squares,
            jnp.where(is_used, read_rows(tree.parents, node).astype(jnp.int32), node),
            jnp.where(is_used, read_rows(tree.edges, node).astype(jnp.int32), edge),
        )

    end = jax.lax.while_loop(
        lambda carry: jnp.any(is_below(carry.node)),
        climb,
        Carry(tree.visits, tree.value_sums, tree.squares, path.node, path.edge),
    )
    root, batch, squares = jnp.zeros_like(end.node), value.shape[0], end.squares
    if squares is not None:
        total = jnp.sum(jnp.where(path.valid, value * value, 0.0), axis=-1)
        squares = squares.at[:batch].add(total)
    return dataclasses.replace(
        tree,
        visits=change_roots(end.visits, end.edge, path.valid, one, add),
        value_sums=change_roots(end.value_sums, end.edge, path.valid, sign(root) * value, add),
        squares=squares,
    )


def root_edges(tree: Tree) -> Edges:
    """Return the edges of the roots, with arrays of [B, E] and [B]."""
    batch = tree.num_games
    return Edges(
        tree.priors[:batch],
        tree.visits[:batch].astype(jnp.float32),
        tree.value_sums[:batch],
        tree.raw_values[:batch],
        None if tree.squares is None else tree.squares[:batch],
    )


def root_actions(tree: Tree, num_actions: int) -> Edges:
    """Return the edges of the roots, indexed by action: arrays of [B, A] and [B]; an action without
    an edge is ILLEGAL."""
    edges = root_edges(tree)
    if tree.moves is None:
        return edges
    moves = tree.moves[: tree.num_games].astype(jnp.int32)

    def spread(values: Array, empty: float) -> Array:
        room = jnp.full((values.shape[0], num_actions), empty, values.dtype)
        game = jnp.arange(values.shape[0], dtype=jnp.int32)[:, None]
        return room.at[game, moves].set(values, mode="drop", unique_indices=False)

    return Edges(
        spread(edges.priors, ILLEGAL),
        spread(edges.visits, 0.0),
        spread(edges.value_sums, 0.0),
        edges.raw_value,
        edges.squares,
    )


def root_edge_of(tree: Tree, action: Array) -> Array:
    """Return int32[B, L]: the edges at the root of actions int32[B, L]."""
    if tree.moves is None:
        return action
    moves = tree.moves[: tree.num_games, None, :].astype(jnp.int32)
    return jnp.argmax(moves == action[:, :, None], axis=-1).astype(jnp.int32)


def node_value(edges: Edges) -> Array:
    """Return float32[...]: the mean of the node's own evaluation and of all values backed up
    through it, for its side to move."""
    return (edges.raw_value + edge_sum(edges.value_sums)) / (1.0 + edge_sum(edges.visits))


def best_child_value(edges: Edges, action: Array) -> Array:
    """Return float32[B]: Q of the child that the search chose, `action` int32[B].

    AlphaGo Zero resigns where "its root value and best child value" are low (methods, 'Self-play')
    without saying which child is the best: here the one that it would play, the most visited
    (Browne et al. 2012, section 3.3: the robust child). The highest Q may rest on a single visit,
    made because of the noise.
    """
    return jnp.take_along_axis(edges.qvalues(unvisited=-jnp.inf), action[:, None], axis=-1)[:, 0]


def state_bytes(game: Game) -> int:
    """Return the bytes of a position in a search."""
    state = jax.eval_shape(lambda: game.search_state(game.init()))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def bytes_per_node(
    game: Game, num_nodes: int = 1, width: int | None = None, keeps_visits: bool = False
) -> int:
    """Return the bytes that one node takes in a tree of `num_nodes` nodes of `width` edges (counts
    and indices are int16 up to 32,767 nodes; `keeps_visits` as in `init_tree`).

    That is the slim state, 12 bytes an edge (14 where `Tree.moves` names the actions) and 9 more:
    4.3 KB and the state for 19x19 Go, half of what mctx's tree takes. (`Tree.squares` would be
    another 4.)
    """
    small = index_dtype(max(num_nodes, game.num_actions)).itemsize
    edges = edge_width(game, width)
    edge_bytes = edges * (
        # prior, value sum; visits; child and move
        8 + (4 if keeps_visits else small) + (1 if edges == game.num_actions else 2) * small
    )
    return state_bytes(game) + edge_bytes + 1 + 4 + 2 * small  # player, raw value, parent, edge


def tree_bytes(num_simulations: int, game: Game, width: int | None = None, kept: int = 0) -> int:
    """Return the bytes of the tree of one game: a node for each simulation, and one for the root
    or, where trees are kept from move to move, `kept` nodes."""
    num_nodes = num_simulations + max(1, kept)
    return num_nodes * bytes_per_node(game, num_nodes, width, kept > 0)
