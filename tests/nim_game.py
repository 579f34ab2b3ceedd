"""Nim as a stand-in game: a pile, take one or two, who takes the last one wins. The answer is
known: leave a multiple of three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from azero.search.search import SearchOutput
from azero.types import Array


class State(NamedTuple):
    pile: Array
    ply: Array


@dataclass(frozen=True)
class Nim:
    pile: int = 7
    name: str = "nim"
    num_actions: int = 2
    max_legal_actions: int = 2

    @property
    def max_moves(self) -> int:
        return self.pile

    def init(self) -> State:
        return State(jnp.int32(self.pile), jnp.int32(0))

    def step(self, state: State, action: Array) -> State:
        over = self.is_terminal(state)
        return State(
            jnp.where(over, state.pile, state.pile - 1 - action),
            jnp.where(over, state.ply, state.ply + 1),
        )

    def legal_action_mask(self, state: State) -> Array:
        return (state.pile >= jnp.arange(1, 3)) | self.is_terminal(state)

    def to_play(self, state: State) -> Array:
        return state.ply % 2

    def is_terminal(self, state: State) -> Array:
        return state.pile <= 0

    def rewards(self, state: State) -> Array:
        winner = (state.ply + 1) % 2
        signs = jnp.where(jnp.arange(2) == winner, 1.0, -1.0)
        return jnp.where(self.is_terminal(state), signs, 0.0)

    def format_action(self, state: State, action: int) -> str:
        return f"take{action + 1}"


def nim_search(params: Any, key: Array, roots: State) -> SearchOutput:
    """A player that is perfect where params > 0 and takes one where it is 0; its weights are 3 : 1
    for its choice where both are legal."""
    del key
    perfect = jnp.where(roots.pile % 3 == 2, 1, 0)
    action = jnp.where(params > 0, perfect, 0).astype(jnp.int32)
    legal = roots.pile[:, None] >= jnp.arange(1, 3)
    weights = jnp.where(legal, jnp.where(jax.nn.one_hot(action, 2) > 0, 3.0, 1.0), 0.0)
    weights = weights / jnp.maximum(weights.sum(-1, keepdims=True), 1e-9)
    value = jnp.where(roots.pile % 3 == 0, -1.0, 1.0)
    return SearchOutput(action, weights, (weights * 4).astype(jnp.int32), value, value, ())
