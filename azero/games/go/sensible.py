"""Sensible moves: legal points that fill no own eye (AG16 Extended Data Table 2, 'Sensibleness'),
else a pass; for policies without a pass.

Games of such moves end: when only eyes are left, both sides pass.
"""

import jax
import jax.numpy as jnp

from azero.games import bits
from azero.games.go.alphago2016.features import eyes
from azero.games.go.alphago2016.patterns import unpack_rows
from azero.games.go.rules import Go
from azero.games.go.state import GoState
from azero.games.go.stones import colour_rows
from azero.types import Array


def sensible_moves(game: Go, states: GoState) -> Array:
    """Return bool[B, A] of states[B]: the legal points that are not eyes of the side to move; pass
    where there is none, and once the game is over."""
    points = (jax.vmap(game.legal_action_mask)(states) & ~own_eyes(game, states))[:, :-1]
    points &= ~jax.vmap(game.is_terminal)(states)[:, None]
    return jnp.concatenate([points, ~points.any(axis=1, keepdims=True)], axis=1)


def own_eyes(game: Go, states: GoState) -> Array:
    """Return bool[B, A] of states[B]: the points that are eyes of the side to move."""
    shape = game.board_shape
    own, other = colour_rows(shape, states.frames[:, 0], states.to_play == 1)
    found = unpack_rows(eyes(own, other, bits.board_rows(shape)), shape[1]) != 0
    return jnp.pad(found.reshape(game.num_points, -1).T, ((0, 0), (0, 1)))


def random_points(game: Go, states: GoState) -> Array:
    """Return bool[B, A] of states[B]: the legal points; pass where there is none (AG16: the random
    move is drawn from the points until it is legal)."""
    points = jax.vmap(game.legal_action_mask)(states)[:, :-1]
    return jnp.concatenate([points, ~points.any(axis=1, keepdims=True)], axis=1)
