"""The one glossary of azero: array shapes in house letters, sign conventions, and array aliases.

Shape letters
    B games in a batch, T plies (or learning steps), N nodes of a tree, A actions,
    H W C board planes, D devices, K moves of one dispatch, F words of a packed frame,
    S moves that a policy target has room for.

Conventions
    mask     True where something is allowed.
    value    float32 in [-1, 1], for the side to move at that position.
    rewards  float32[2], for the first and the second mover of the game (index 0 is Black in Go),
             zero until the end.
    to_play  int32, 0 for the first mover of the game, 1 for the second.
    weights  non-negative, sum to one over the legal actions, zero on illegal ones.
    key      a typed PRNG key (`jax.random.key`); a key passed in is consumed.
    planes   [H, W, C], channels last, in the compute dtype of the network or bool from a game.
"""

from typing import Any

import jax

Array = jax.Array
PyTree = Any
"""A game state, a set of network variables: any pytree of arrays."""


def format_arrays(tree: PyTree) -> str:
    """Return the types and shapes of a tree of arrays in words: float32[2] for an array."""
    named = jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)
    return str(named).replace("'", "")
