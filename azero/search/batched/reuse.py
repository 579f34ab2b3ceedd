"""Trees that are kept from move to move: after a move the subtree of the chosen child becomes the
tree of the next search, with all its statistics (AGZ methods, 'Play').

A tree of N nodes has two parts: nodes 0 to K - 1 are kept ones, the others those of the present
search, which begins at node K in every game, so that its nodes are consecutive rows, as without
kept nodes. After a move the nodes of the subtree are renumbered from 0 on in the order in which
they were evaluated, in which a parent always precedes its children. Where they are more than K, the
last ones are left out: their edges keep P, N and W, and the next visit evaluates the position
again.

No row moves to a higher number, so the rows are moved in place, block by block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azero.games.game import Game
from azero.search.batched.evaluation import ILLEGAL, compact
from azero.search.batched.rows import read_entry, read_rows
from azero.search.batched.tree import ROOT, UNVISITED, Tree, edge_width, init_tree
from azero.search.search import PreviousSearch
from azero.search.settings import PuctConfig, SearchConfig
from azero.types import Array, PyTree

NewTreesFn = Callable[[int], Tree]
"""Number of games -> trees without nodes, for searches with nothing to continue."""
_BLOCK_ROWS = 4096
"""Rows that are moved at once: a few megabytes in addition to the tree, and few iterations of the
loop."""


def make_new_trees(config: SearchConfig, game: Game, num_simulations: int) -> NewTreesFn | None:
    """Return the function that makes the trees of a search that keeps them; None for one that does
    not.

    `num_simulations` is the most that a search of these trees makes.
    """
    room = config.kept_room
    if not isinstance(config, PuctConfig) or not room:
        return None

    def shapes(batch: int) -> Tree:
        states = jax.vmap(lambda _: game.search_state(game.init()))(jnp.arange(batch))
        return init_tree(
            game,
            states,
            jnp.zeros((batch, game.num_actions), jnp.float32),
            jnp.zeros(batch, jnp.float32),
            room + num_simulations,
            config.edge_width,
            keeps_squares=config.variance_scale > 0.0,
            keeps_visits=True,
        )

    def new_trees(batch: int) -> Tree:
        # The first search has moves of -1 only, and writes its own root.
        return jax.tree.map(
            lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(lambda: shapes(batch))
        )

    return new_trees


def continue_trees(
    game: Game, previous: PreviousSearch, room: int, states: PyTree, priors: Array, values: Array
) -> Tree:
    """Return the trees of the positions that the moves since the previous search have led to; of a
    game whose position the previous tree does not have, one of its evaluated root alone.

    Args:
      previous: the trees and the moves.
      room: K.
      states: slim states [B, ...] of the positions.
      priors: float32[B, A] with ILLEGAL marks, of the evaluation of the positions; the marks are
        exact. A kept root has its own priors, visits and values; those of a move that only the
        rules of the whole game forbid are left out.
      values: float32[B] for the side to move.
    """
    tree, is_kept = reroot(previous.tree, previous.moves, room)
    batch = values.shape[0]
    moves, fresh = compact(priors, edge_width(game, tree.priors.shape[-1]))
    kept_moves = None if tree.moves is None else tree.moves[:batch].astype(jnp.int32)
    is_legal = priors >= 0.0
    if kept_moves is not None:
        is_legal = jnp.take_along_axis(is_legal, kept_moves, axis=1, mode="fill", fill_value=False)
    is_edge = (tree.priors[:batch] >= 0.0) & is_legal
    is_kept &= is_edge.any(axis=-1)
    kept = _restrict(tree.priors[:batch], is_edge)
    has_edge = is_kept[:, None] & is_edge
    visits = tree.visits[:batch]

    def write(array: Array, rows: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(array, rows.astype(array.dtype), 0, 0)

    squares = tree.squares
    if squares is not None:
        # In proportion, since they are not known by edge; exact where no move is left out.
        share = jnp.sum(jnp.where(has_edge, visits, 0), -1) / jnp.maximum(jnp.sum(visits, -1), 1)
        squares = write(squares, squares[:batch] * share)
    return dataclasses.replace(
        tree,
        states=jax.tree.map(write, tree.states, states),
        players=write(tree.players, jax.vmap(game.to_play)(states)),
        raw_values=write(tree.raw_values, jnp.where(is_kept, tree.raw_values[:batch], values)),
        moves=None
        if tree.moves is None or kept_moves is None or moves is None
        else write(tree.moves, jnp.where(is_kept[:, None], kept_moves, moves)),
        children=write(tree.children, jnp.where(has_edge, tree.children[:batch], UNVISITED)),
        priors=write(tree.priors, jnp.where(is_kept[:, None], kept, fresh)),
        visits=write(tree.visits, jnp.where(has_edge, visits, 0)),
        value_sums=write(tree.value_sums, jnp.where(has_edge, tree.value_sums[:batch], 0.0)),
        squares=squares,
    )


def _restrict(priors: Array, is_edge: Array) -> Array:
    """Return float32[B, E]: `priors` of the moves that are left, with a sum of one where some are
    left out."""
    left = jnp.where(is_edge, priors, ILLEGAL)
    total = jnp.sum(jnp.where(is_edge, priors, 0.0), axis=-1, keepdims=True)
    lacks = jnp.any((priors >= 0.0) & ~is_edge, axis=-1, keepdims=True)
    return jnp.where(is_edge & lacks, priors / jnp.maximum(total, 1e-30), left)


def reroot(tree: Tree, moves: Array, room: int) -> tuple[Tree, Array]:
    """Make the nodes that moves int32[B, M] lead to the roots of their trees, with at most `room`
    nodes each.

    Returns:
      The trees, of the same size; and bool[B], where there is such a node. The other trees have
      no nodes.
    """
    root = _node_after(tree, moves)
    subtree = _find_subtree(tree, root, room)
    return _clear(_move_rows(tree, subtree), room), root >= 0


def _node_after(tree: Tree, moves: Array) -> Array:
    """Return int32[B]: the nodes that moves int32[B, M] lead to from the roots, UNVISITED where
    there is none."""
    node = jnp.full((moves.shape[0], 1), ROOT, jnp.int32)
    is_node = node == ROOT
    for i in range(moves.shape[1]):
        action = moves[:, i : i + 1]
        edge, is_edge = jnp.maximum(action, 0), action >= 0
        if tree.moves is not None:
            matches = read_rows(tree.moves, node).astype(jnp.int32) == action[..., None]
            edge, is_edge = jnp.argmax(matches, axis=-1).astype(jnp.int32), matches.any(axis=-1)
        child = read_entry(tree.children, node, edge)
        is_node &= is_edge & (child >= 0)
        node = jnp.where(is_node, child, ROOT)
    return jnp.where(is_node, node, UNVISITED)[:, 0]


class _Subtree(NamedTuple):
    nodes: Array
    """int32[K, B]: the nodes that are kept, in ascending order; N where there are no more."""
    renumbered: Array
    """int32[N B]: their new numbers, UNVISITED for all other rows."""


def _find_subtree(tree: Tree, root: Array, room: int) -> _Subtree:
    """Return the nodes of the subtrees whose roots are nodes int32[B]."""
    batch = root.shape[0]
    shape = (tree.num_nodes, batch)
    node = jax.lax.broadcasted_iota(jnp.int32, shape, 0)
    game = jax.lax.broadcasted_iota(jnp.int32, shape, 1).reshape(-1)

    class Carry(NamedTuple):
        is_below: Array
        """bool[N B]: the node or one of its next 2^i - 1 ancestors is the root sought."""
        ancestor: Array
        """int32[N B]: row of the 2^i-th ancestor"""

    def double(carry: Carry) -> Carry:
        is_below, ancestor = carry
        return Carry(is_below | is_below[ancestor], ancestor[ancestor])

    start = Carry((node == root).reshape(-1), tree.parents.astype(jnp.int32) * batch + game)
    is_below = jax.lax.while_loop(
        lambda carry: jnp.any(carry.ancestor >= batch), double, start
    ).is_below.reshape(shape)
    number = jnp.cumsum(is_below, axis=0, dtype=jnp.int32) - 1
    renumbered = jnp.where(is_below & (number < room), number, UNVISITED)
    nodes = jax.lax.sort(jnp.where(is_below, node, tree.num_nodes), dimension=0)[:room]
    return _Subtree(nodes, renumbered.reshape(-1))


def _move_rows(tree: Tree, subtree: _Subtree) -> Tree:
    """Give the nodes of the subtree their new numbers. Rows after them are not nodes."""
    room, batch = subtree.nodes.shape
    size = min(max(1, _BLOCK_ROWS // batch), room, tree.num_nodes - room)
    rounds = -(-room // size)
    padding = jnp.full((rounds * size - room, batch), tree.num_nodes, jnp.int32)
    nodes = jnp.concatenate([subtree.nodes, padding])
    game = jnp.tile(jnp.arange(batch, dtype=jnp.int32), size)

    def move(i: Array, tree: Tree) -> Tree:
        old = jax.lax.dynamic_slice_in_dim(nodes, i * size, size).reshape(-1)
        is_node = old < tree.num_nodes
        rows = jnp.where(is_node, old, ROOT) * batch + game

        def new_number(old: Array, game: Array) -> Array:
            row = jnp.maximum(old.astype(jnp.int32), 0) * batch + game
            return subtree.renumbered.at[row].get(mode="promise_in_bounds")

        def write(array: Array, rows: Array) -> Array:
            return jax.lax.dynamic_update_slice_in_dim(
                array, rows.astype(array.dtype), i * size * batch, 0
            )

        moved: Tree = jax.tree.map(lambda array: array.at[rows].get(mode="promise_in_bounds"), tree)
        children = moved.children
        moved = dataclasses.replace(
            moved,
            parents=jnp.where(is_node, jnp.maximum(new_number(moved.parents, game), ROOT), ROOT),
            children=jnp.where(children >= 0, new_number(children, game[:, None]), children),
        )
        # Without the barrier the compiler may merge reading and writing, and copy the whole array.
        return jax.tree.map(write, tree, jax.lax.optimization_barrier(moved))

    return jax.lax.fori_loop(0, rounds, move, tree)


def _clear(tree: Tree, room: int) -> Tree:
    """Make the rows of all nodes from `room` on those of nodes that were never visited."""
    first = room * tree.num_games

    def clear(array: Array, value: float) -> Array:
        empty = jnp.full((array.shape[0] - first, *array.shape[1:]), value, array.dtype)
        return jax.lax.dynamic_update_slice_in_dim(array, empty, first, 0)

    return dataclasses.replace(
        tree,
        parents=clear(tree.parents, ROOT),
        children=clear(tree.children, UNVISITED),
        visits=clear(tree.visits, 0),
        value_sums=clear(tree.value_sums, 0),
        squares=None if tree.squares is None else clear(tree.squares, 0),
    )
