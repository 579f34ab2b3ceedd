"""An array tree for B games at once: plant, descend, expand, backup.

Every function works on the whole batch with a scalar loop predicate; none is vmapped, so that XLA updates the big arrays in place (a vmapped while_loop
selects between two whole trees at every step). Lanes are [B, L]: L simulations of the same game that run side by side in disjoint subtrees; PUCT has L = 1.

An edge is a pair (node, action) and holds what AlphaGo Zero stores there: P, N and W. Children of an edge are node indices, or one of two negative marks.
A terminal position gets no node: the edge into it is marked TERMINAL, and each visit plays the move again and backs up the exact result.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from azero.games.game import Game
from azero.search.search import LeafFn
from azero.types import Array, PyTree

UNVISITED = -1
"""Mark of an edge in `Tree.children` that was never followed."""
TERMINAL = -2
"""Mark of an edge in `Tree.children` that ends the game."""
ILLEGAL = -1.0
"""Prior of an illegal move, so that no separate mask is stored; legal moves have priors in [0, 1]."""
ROOT = 0
"""Index of the root among the nodes of a game."""
CPU_PIECE = 256
"""Positions that the CPU plays and evaluates at once; more overflow its cache (measured: 4,096 positions of 9x9 Go took twice as long each)."""


@struct.dataclass
class Tree:
    """Search trees of B games with N nodes and A actions; nodes are filled in the order in which they were evaluated."""

    states: PyTree
    """[B, N, ...]: slim states (`Game.search_state`)."""
    players: Array
    """int8[B, N]: the side to move, 0 or 1."""
    raw_values: Array
    """float32[B, N]: the leaf's value when the node was expanded, for the side to move there."""
    parents: Array
    """int[B, N]: node index of the parent (int16 where that suffices)."""
    actions: Array
    """int[B, N]: the move that led from the parent here."""
    children: Array
    """int[B, N, A]: node index behind each edge, or UNVISITED or TERMINAL."""
    priors: Array
    """float32[B, N, A]: P(s, a), which sums to one over the legal moves; ILLEGAL on the others."""
    visits: Array
    """int[B, N, A]: N(s, a)."""
    value_sums: Array
    """float32[B, N, A]: W(s, a), the sum of the values backed up through the edge, for the side to move at s."""


class Edges(NamedTuple):
    """The edges of one node per lane, as a selection rule sees them."""

    priors: Array
    """float32[..., A]"""
    visits: Array
    """float32[..., A]"""
    value_sums: Array
    """float32[..., A]"""
    raw_value: Array
    """float32[...]"""

    def legal_mask(self) -> Array:
        """Return bool[..., A]."""
        return self.priors >= 0.0

    def qvalues(self, unvisited: float | Array) -> Array:
        """Return Q = W / N in [-1, 1], float32[..., A], with `unvisited` (which broadcasts) where N is zero."""
        return jnp.where(self.visits > 0.0, self.value_sums / jnp.maximum(self.visits, 1.0), unvisited)


class Path(NamedTuple):
    """Where the lanes of one simulation left the tree: the last edge, which is evaluated next."""

    node: Array
    """int32[B, L]"""
    action: Array
    """int32[B, L]"""
    child: Array
    """int32[B, L]: what stood at that edge: UNVISITED, TERMINAL, or a node where the depth limit ended the descent."""
    valid: Array
    """bool[B, L]: lanes that simulate at all."""


ScoreFn = Callable[[Edges], Array]
"""Edges of [...] nodes -> scores float32[..., A]; the highest legal score is followed, the first of equals."""


def index_dtype(num_nodes: int) -> jnp.dtype:
    """Return the narrowest type that holds node indices and visit counts of a tree with `num_nodes` nodes."""
    return jnp.dtype(jnp.int16 if num_nodes <= jnp.iinfo(jnp.int16).max else jnp.int32)


def masked_priors(logits: Array, legal_mask: Array) -> Array:
    """Return the softmax of `logits` over the legal moves, ILLEGAL elsewhere: float32[..., A]."""
    probabilities = jax.nn.softmax(jnp.where(legal_mask, logits.astype(jnp.float32), -jnp.inf), axis=-1)
    return jnp.where(legal_mask, probabilities, ILLEGAL)


def best_legal(scores: Array, edges: Edges) -> Array:
    """Return int32[...]: the legal move with the highest score, the first of equals.

    (Not by a maximum and a comparison, though XLA vectorises those on the CPU: it computes the scores twice then, not always to the same last bit.)
    """
    return jnp.argmax(jnp.where(edges.legal_mask(), scores, -jnp.inf), axis=-1).astype(jnp.int32)


def plant(game: Game, states: PyTree, priors: Array, values: Array, num_nodes: int) -> Tree:
    """Return trees that hold only the evaluated roots.

    Args:
      states: slim states [B, ...] of the roots; priors: float32[B, A] with ILLEGAL marks; values: float32[B] for the side to move; num_nodes: N.
    """
    batch, num_actions = priors.shape
    small = index_dtype(max(num_nodes, num_actions))

    def room(root: Array) -> Array:
        return jnp.zeros((batch, num_nodes, *root.shape[1:]), root.dtype).at[:, ROOT].set(root)

    edges = (batch, num_nodes, num_actions)
    return Tree(
        states=jax.tree.map(room, states),
        players=room(jax.vmap(game.to_play)(states).astype(jnp.int8)),
        raw_values=room(values.astype(jnp.float32)),
        parents=jnp.full((batch, num_nodes), ROOT, small),
        actions=jnp.zeros((batch, num_nodes), small),
        children=jnp.full(edges, UNVISITED, small),
        priors=room(priors),
        visits=jnp.zeros(edges, small),
        value_sums=jnp.zeros(edges, jnp.float32),
    )


def _games(node: Array) -> Array:
    """Return int32[B, 1], the game of each row of lanes."""
    return jnp.arange(node.shape[0], dtype=jnp.int32)[:, None]


def _at(array: Array, *indices: Array) -> Array:
    """Return array[game, *indices]; the indices are known to lie inside, and saying so halves the time of the gather on the CPU."""
    return array.at[(_games(indices[0]), *indices)].get(mode="promise_in_bounds")


def read_edges(tree: Tree, node: Array) -> Edges:
    """Return the edges of nodes int32[B, L]."""
    visits = _at(tree.visits, node).astype(jnp.float32)
    return Edges(_at(tree.priors, node), visits, _at(tree.value_sums, node), _at(tree.raw_values, node))


def descend(tree: Tree, action: Array, valid: Array, score: ScoreFn, max_depth: int) -> Path:
    """Follow edges from the root to the first one that leaves the tree.

    Args:
      action: int32[B, L], the moves at the root; valid: bool[B, L]; score: the rule below the root; max_depth: longest path in edges.
    """

    class Carry(NamedTuple):
        node: Array
        action: Array
        child: Array
        depth: Array

    def unfinished(carry: Carry) -> Array:
        return jnp.any(carry.child >= 0) & (carry.depth < max_depth)

    def follow(carry: Carry) -> Carry:
        inside = carry.child >= 0
        node = jnp.where(inside, carry.child, carry.node)
        edges = read_edges(tree, node)
        action = jnp.where(inside, best_legal(score(edges), edges), carry.action)
        child = jnp.where(inside, _at(tree.children, node, action).astype(jnp.int32), carry.child)
        return Carry(node, action, child, carry.depth + 1)

    root = jnp.full_like(action, ROOT)
    child = jnp.where(valid, _at(tree.children, root, action).astype(jnp.int32), UNVISITED)
    end = jax.lax.while_loop(unfinished, follow, Carry(root, action, child, jnp.ones((), jnp.int32)))
    return Path(end.node, end.action, end.child, valid)


class _Evaluated(NamedTuple):
    """What `expand` learns about P new positions."""

    states: PyTree
    players: Array
    terminal: Array
    priors: Array
    values: Array
    """float32[P], for the side to move: the leaf's, or the exact result where the game is over."""


def _play_and_evaluate(game: Game, leaf: LeafFn, params: PyTree, key: Array, before: PyTree, action: Array) -> _Evaluated:
    """Play moves int32[P] on states [P, ...] and evaluate what arises."""
    states = jax.vmap(game.step)(before, action)
    logits, values = leaf(params, key, states)
    terminal = jax.vmap(game.is_terminal)(states)
    return _Evaluated(
        states,
        players=jax.vmap(game.to_play)(states),
        terminal=terminal,
        priors=masked_priors(logits, jax.vmap(game.legal_action_mask)(states)),
        values=jnp.where(terminal, result_for_mover(game, states), values.astype(jnp.float32)),
    )


def num_pieces(size: int) -> int:
    """Return into how many equal pieces the CPU cuts a batch of `size`: as few as fit CPU_PIECE, or one if only slivers would divide it (a prime number)."""
    pieces = next(count for count in range(1, size + 1) if size % count == 0 and size // count <= CPU_PIECE)
    return pieces if size // pieces >= CPU_PIECE // 8 or size <= CPU_PIECE else 1


def _in_pieces(game: Game, leaf: LeafFn, params: PyTree, key: Array, before: PyTree, action: Array) -> _Evaluated:
    """Do the same piece by piece, for a machine whose cache a wide batch would overflow."""
    size = action.shape[0]
    pieces = num_pieces(size)

    def cut(array: Array) -> Array:
        return array.reshape(pieces, size // pieces, *array.shape[1:])

    def evaluate(piece: tuple[Array, PyTree, Array]) -> _Evaluated:
        return _play_and_evaluate(game, leaf, params, *piece)

    evaluated = jax.lax.map(evaluate, (jax.random.split(key, pieces), jax.tree.map(cut, before), cut(action)))
    return jax.tree.map(lambda array: array.reshape(size, *array.shape[2:]), evaluated)


def expand(game: Game, leaf: LeafFn, params: PyTree, key: Array, tree: Tree, path: Path, slot: int | Array) -> tuple[Tree, Array]:
    """Play the last move of every lane, evaluate the positions, and store them in nodes `slot` to `slot` + L - 1.

    The leaf sees all B x L positions in one call (on the CPU in pieces of at most CPU_PIECE).

    Returns:
      The tree, and the values float32[B, L] of the new positions for the first mover of the game.
    """
    batch, lanes = path.node.shape

    def flat(array: Array) -> Array:
        return array.reshape(batch * lanes, *array.shape[2:])

    def write(array: Array, new: Array) -> Array:
        rows = new.reshape(batch, lanes, *array.shape[2:]).astype(array.dtype)
        return jax.lax.dynamic_update_slice(array, rows, (0, slot, *([0] * (array.ndim - 2))))

    before = jax.tree.map(lambda array: flat(_at(array, path.node)), tree.states)
    at_once, in_pieces = (functools.partial(how, game, leaf) for how in (_play_and_evaluate, _in_pieces))
    if num_pieces(batch * lanes) == 1:
        new = at_once(params, key, before, flat(path.action))
    else:
        new = jax.lax.platform_dependent(params, key, before, flat(path.action), cpu=in_pieces, default=at_once)

    new_child = jnp.where(new.terminal.reshape(batch, lanes), TERMINAL, slot + jnp.arange(lanes, dtype=jnp.int32))
    child = jnp.where(path.child == UNVISITED, new_child, path.child)
    node = jnp.where(path.valid, path.node, tree.parents.shape[1])  # out of range is dropped
    tree = dataclasses.replace(
        tree,
        states=jax.tree.map(write, tree.states, new.states),
        players=write(tree.players, new.players),
        raw_values=write(tree.raw_values, new.values),
        parents=write(tree.parents, path.node),
        actions=write(tree.actions, path.action),
        children=tree.children.at[_games(node), node, path.action].set(child.astype(tree.children.dtype), mode="drop", unique_indices=True),
        priors=write(tree.priors, new.priors),
    )
    return tree, (new.values * (1.0 - 2.0 * new.players.astype(jnp.float32))).reshape(batch, lanes)


def backup(tree: Tree, path: Path, value: Array) -> Tree:
    """Count the visit and add `value`, float32[B, L] for the first mover, on every edge from the lane's last one up to the root."""

    class Carry(NamedTuple):
        visits: Array
        value_sums: Array
        node: Array
        action: Array
        climbing: Array

    def climb(carry: Carry) -> Carry:
        sign = 1.0 - 2.0 * _at(tree.players, carry.node).astype(jnp.float32)
        node = jnp.where(carry.climbing, carry.node, tree.parents.shape[1])  # out of range is dropped
        edge = (_games(node), node, carry.action)  # the lanes of a game are in disjoint subtrees, so no edge occurs twice
        return Carry(
            visits=carry.visits.at[edge].add(jnp.ones((), carry.visits.dtype), mode="drop", unique_indices=True),
            value_sums=carry.value_sums.at[edge].add(sign * value, mode="drop", unique_indices=True),
            node=_at(tree.parents, carry.node).astype(jnp.int32),
            action=_at(tree.actions, carry.node).astype(jnp.int32),
            climbing=carry.climbing & (carry.node != ROOT),
        )

    end = jax.lax.while_loop(lambda carry: jnp.any(carry.climbing), climb, Carry(tree.visits, tree.value_sums, path.node, path.action, path.valid))
    return dataclasses.replace(tree, visits=end.visits, value_sums=end.value_sums)


def evaluate_roots(game: Game, leaf: LeafFn, params: PyTree, key: Array, roots: PyTree) -> tuple[PyTree, Array, Array, Array]:
    """Evaluate B states of real games, whose legal moves are exact.

    Returns:
      Slim states [B, ...]; logits float32[B, A], -inf on illegal moves; bool[B, A], the legal moves; values float32[B] for the side to move.
    """
    states = jax.vmap(game.search_state)(roots)
    legal_mask = jax.vmap(game.legal_action_mask)(roots)
    logits, values = leaf(params, key, states)
    values = jnp.where(jax.vmap(game.is_terminal)(states), result_for_mover(game, states), values.astype(jnp.float32))
    return states, jnp.where(legal_mask, logits.astype(jnp.float32), -jnp.inf), legal_mask, values


def result_for_mover(game: Game, states: PyTree) -> Array:
    """Return float32[B]: the result of finished games for the side to move, zero for the others."""
    players = jax.vmap(game.to_play)(states)
    return jnp.take_along_axis(jax.vmap(game.rewards)(states), players[:, None], axis=-1)[:, 0]


def root_edges(tree: Tree) -> Edges:
    """Return the edges of the roots, with arrays of [B, A] and [B]."""
    edges = read_edges(tree, jnp.zeros((tree.players.shape[0], 1), jnp.int32))
    return Edges(*(array[:, 0] for array in edges))


def root_value(edges: Edges) -> Array:
    """Return float32[B]: the mean over the root's own evaluation and everything backed up into it."""
    return (edges.raw_value + jnp.sum(edges.value_sums, axis=-1)) / (1.0 + jnp.sum(edges.visits, axis=-1))


def best_child_value(edges: Edges) -> Array:
    """Return float32[B]: the highest Q among the visited edges."""
    return jnp.max(edges.qvalues(unvisited=-jnp.inf), axis=-1)


def bytes_per_node(game: Game, num_nodes: int = 1) -> int:
    """Return the bytes that one node takes in a tree of `num_nodes` nodes (counts and indices are int16 up to 32,767 nodes).

    That is the slim state, 12 bytes an action and 9 more: 4.3 KB and the state for 19x19 Go, half of what mctx's tree takes.
    """
    state = jax.eval_shape(lambda: game.search_state(game.init()))
    state_bytes = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    small = index_dtype(max(num_nodes, game.num_actions)).itemsize
    edge_bytes = game.num_actions * (4 + 4 + 2 * small)  # prior, value sum, visits, child
    return state_bytes + edge_bytes + 1 + 4 + 2 * small  # player, raw value, parent, action


def tree_bytes(num_simulations: int, game: Game) -> int:
    """Return the bytes of the tree of one game: a node for the root and one for each simulation."""
    return (num_simulations + 1) * bytes_per_node(game, num_simulations + 1)
