"""Small games with known or random trees, and a plain Python search that the array searches have to
equal."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from azero.search.batched.tree import Tree
from azero.search.search import LeafFn
from azero.search.settings import SearchConfig


def by_game(tree: Tree) -> Tree:
    """Return the tree with axes [B, N, ...] instead of rows [N B, ...], as NumPy arrays."""

    def split(rows: jax.Array) -> np.ndarray:
        shape = (tree.num_nodes, tree.num_games, *rows.shape[1:])
        return np.asarray(rows).reshape(shape).swapaxes(0, 1)

    return jax.tree.map(split, tree)


def _mix(word: jax.Array) -> jax.Array:
    """Return a well mixed uint32 (a public-domain integer hash, "lowbias32")."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x7FEB352D)
    word = (word ^ (word >> 15)) * jnp.uint32(0x846CA68B)
    return word ^ (word >> 16)


def _uniform(word: jax.Array) -> jax.Array:
    return (_mix(word) >> 8).astype(jnp.float32) / 2**24


@struct.dataclass
class ToyState:
    code: jax.Array
    """uint32[]: a hash of the moves so far."""
    depth: jax.Array
    player: jax.Array


@dataclass(frozen=True)
class RandomTree:
    """A game drawn at random: legal moves, ends, results and evaluations are hashes of the moves so
    far. With `extra_turns` a side may move twice running."""

    num_actions: int = 6
    max_moves: int = 8
    legal_share: float = 0.7
    end_share: float = 0.15
    extra_turns: bool = False

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    def init(self, seed: int | jax.Array = 0) -> ToyState:
        return ToyState(_mix(jnp.asarray(seed, jnp.uint32) + 1), jnp.int32(0), jnp.int32(0))

    def step(self, state: ToyState, action: jax.Array) -> ToyState:
        code = _mix(state.code * jnp.uint32(31) + action.astype(jnp.uint32) + 7)
        again = (_uniform(code + 5) < 0.3) & self.extra_turns
        played = ToyState(code, state.depth + 1, jnp.where(again, state.player, 1 - state.player))
        return jax.tree.map(
            lambda old, new: jnp.where(self.is_terminal(state), old, new), state, played
        )

    def legal_action_mask(self, state: ToyState) -> jax.Array:
        actions = jnp.arange(self.num_actions, dtype=jnp.uint32)
        legal = _uniform(state.code + 977 * (actions + 1)) < self.legal_share
        return legal | (actions == state.code % self.num_actions) | self.is_terminal(state)

    def to_play(self, state: ToyState) -> jax.Array:
        return state.player

    def is_terminal(self, state: ToyState) -> jax.Array:
        return (state.depth >= self.max_moves) | (
            (_uniform(state.code + 3) < self.end_share) & (state.depth > 0)
        )

    def rewards(self, state: ToyState) -> jax.Array:
        first = jnp.floor(_uniform(state.code + 11) * 3.0) - 1.0
        return jnp.where(self.is_terminal(state), jnp.stack([first, -first]), 0.0)

    def search_state(self, state: ToyState) -> ToyState:
        return state


@functools.cache
def random_leaf(game: RandomTree) -> LeafFn:
    """Return the leaf of a `RandomTree`: logits in [-2, 2] and values in [-1, 1], drawn by the
    position."""

    def leaf(params: Any, key: jax.Array, states: ToyState) -> tuple[jax.Array, jax.Array]:
        actions = jnp.arange(game.num_actions, dtype=jnp.uint32)
        logits = 4.0 * _uniform(states.code[:, None] + 131 * (actions + 1)[None]) - 2.0
        return logits, 2.0 * _uniform(states.code + 17) - 1.0

    return leaf


@dataclass(frozen=True)
class Bandit:
    """One move, then the game is over: `payoffs` are the results of the arms for the first
    mover."""

    payoffs: tuple[float, ...]
    legal: tuple[bool, ...] | None = None
    max_moves: int = 1

    @property
    def num_actions(self) -> int:
        return len(self.payoffs)

    @property
    def max_legal_actions(self) -> int:
        return self.num_actions

    def init(self) -> ToyState:
        return ToyState(jnp.uint32(0), jnp.int32(0), jnp.int32(0))

    def step(self, state: ToyState, action: jax.Array) -> ToyState:
        played = ToyState(action.astype(jnp.uint32), jnp.int32(1), jnp.int32(1))
        return jax.tree.map(lambda old, new: jnp.where(state.depth > 0, old, new), state, played)

    def legal_action_mask(self, state: ToyState) -> jax.Array:
        legal = jnp.asarray(self.legal if self.legal is not None else (True,) * self.num_actions)
        return legal | (state.depth > 0)

    def to_play(self, state: ToyState) -> jax.Array:
        return state.player

    def is_terminal(self, state: ToyState) -> jax.Array:
        return state.depth > 0

    def rewards(self, state: ToyState) -> jax.Array:
        first = jnp.where(state.depth > 0, jnp.asarray(self.payoffs, jnp.float32)[state.code], 0.0)
        return jnp.stack([first, -first])

    def search_state(self, state: ToyState) -> ToyState:
        return state


@functools.cache
def constant_leaf(priors: tuple[float, ...], value: float = 0.0) -> LeafFn:
    """Return a leaf with the same priors and value everywhere."""

    def leaf(params: Any, key: jax.Array, states: Any) -> tuple[jax.Array, jax.Array]:
        batch = jax.tree.leaves(states)[0].shape[0]
        return jnp.broadcast_to(
            jnp.log(jnp.asarray(priors, jnp.float32)), (batch, len(priors))
        ), jnp.full((batch,), value)

    return leaf


@functools.cache
def search_program(settings: SearchConfig, game: Any, leaf: LeafFn) -> Any:
    """Return the compiled search, one for equal arguments: most of a test's time is compiling."""
    return jax.jit(settings.build(game, leaf))


@functools.cache
def game_programs(game: Any, leaf: LeafFn) -> tuple[Any, Any]:
    """Return the compiled look at a state, and the compiled step, of a `Reference`."""

    @jax.jit
    def look(state: Any) -> tuple[Any, ...]:
        logits, value = leaf({}, jax.random.key(0), jax.tree.map(lambda x: x[None], state))
        return (
            game.to_play(state),
            game.is_terminal(state),
            game.legal_action_mask(state),
            game.rewards(state),
            logits[0],
            value[0],
        )

    return look, jax.jit(game.step)


@dataclass
class Node:
    """A position of the plain Python search."""

    state: Any
    player: int
    terminal: bool
    value: float
    logits: dict[int, float]
    visits: dict[int, int] = field(default_factory=dict)
    value_sums: dict[int, float] = field(default_factory=dict)
    children: dict[int, Node] = field(default_factory=dict)

    def priors(self) -> dict[int, float]:
        highest = max(self.logits.values())
        powers = {action: math.exp(logit - highest) for action, logit in self.logits.items()}
        return {action: power / sum(powers.values()) for action, power in powers.items()}

    def q(self, action: int) -> float:
        return self.value_sums[action] / self.visits[action]


Rule = Callable[[Node], int]


class Reference:
    """Monte Carlo tree search on dictionaries, by recursion, one simulation after the other."""

    def __init__(self, game: Any, leaf: LeafFn) -> None:
        self.game = game
        self.look, self.step = game_programs(game, leaf)

    def node(self, state: Any) -> Node:
        player, terminal, legal, rewards, logits, value = (np.asarray(x) for x in self.look(state))
        worth = float(rewards[int(player)]) if terminal else float(value)
        return Node(
            state,
            int(player),
            bool(terminal),
            worth,
            {a: float(logits[a]) for a in range(len(logits)) if legal[a]},
        )

    def simulate(self, node: Node, rule: Rule, action: int | None = None) -> tuple[float, int]:
        """Run one simulation from `node`, its first move given or by the rule; return the value and
        whose it is."""
        if node.terminal:
            return node.value, node.player
        action = rule(node) if action is None else action
        if action in node.children:
            value, player = self.simulate(node.children[action], rule)
        else:
            child = node.children[action] = self.node(self.step(node.state, jnp.int32(action)))
            value, player = child.value, child.player
        node.visits[action] = node.visits.get(action, 0) + 1
        node.value_sums[action] = node.value_sums.get(action, 0.0) + (
            value if player == node.player else -value
        )
        return value, player


def best(scores: dict[int, float]) -> int:
    """Return the key with the highest value, the first of equals."""
    return min(scores, key=lambda action: (-scores[action], action))
