"""Replays recorded games in batches under the rules: the position before and after every move, and
which moves are illegal."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.games.go import setup
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.games.go.state import GoState
from azero.types import Array

NO_MOVE = -1
"""Padding after the last move of a recorded game."""


def start_states(game: Go, records: Sequence[GameRecord], batch: int) -> GoState:
    """Return the states before the first moves as NumPy arrays [batch, ...], padded with empty
    boards. Where the planes show the komi it is the record's, or the game's if the record has none.

    Raises:
      ValueError: the set-up stones of a record are impossible.
    """
    states: GoState = jax.tree.map(
        lambda leaf: np.repeat(np.asarray(leaf)[None], batch, axis=0), game.init()
    )
    for column, record in enumerate(records):
        if record.black_points or record.white_points:
            start = game.host_setup(record.black_points, record.white_points, record.to_play)
            for leaf, value in zip(jax.tree.leaves(states), jax.tree.leaves(start), strict=True):
                leaf[column] = value
        else:
            states.to_play[column] = record.to_play
        if states.komi is not None and record.komi is not None:
            states.komi[column] = round(2 * record.komi)
    return states


@functools.partial(jax.jit, static_argnums=0)
def replay_moves(
    game: Go, states: GoState, actions: Array, colours: Array
) -> tuple[GoState, Array, Array, Array]:
    """Play moves on `states` [B, ...], each by the given colour, even illegal ones unless their
    point is occupied.

    Args:
      game: the rules; passes do not end a game here.
      states: the start positions.
      actions: int32[T, B], NO_MOVE after the end of a game.
      colours: int32[T, B], 0 Black, 1 White.

    Returns:
      (states after the moves, bool[T, B] legal, bool[T, B] in turn, frames uint32[T, B, F] after
        each move)
    """

    def move(
        state: GoState, action: Array, colour: Array
    ) -> tuple[GoState, tuple[Array, Array, Array]]:
        is_move = action != NO_MOVE
        in_turn = colour == state.to_play
        state = dataclasses.replace(
            state, to_play=jnp.where(is_move, colour, state.to_play), num_passes=jnp.int32(0)
        )
        board = bits.unpack(state.frames[0].reshape(2, -1), game.num_points).any(axis=0)
        chosen = jnp.arange(game.num_actions, dtype=jnp.int32) == action
        is_taken = (jnp.append(board, jnp.zeros((), bool)) & chosen).any()
        legal = (game.legal_action_mask(state) & chosen).any()
        played = game.step(state, action)
        state = jax.tree.map(
            lambda new, old: jnp.where(is_move & ~is_taken, new, old), played, state
        )
        return state, (legal | ~is_move, in_turn | ~is_move, game.pack_frame(state))

    last, (legal, in_turn, frames) = jax.lax.scan(
        lambda states, inputs: jax.vmap(move)(states, *inputs),
        states,
        (jnp.asarray(actions), jnp.asarray(colours)),
    )
    return last, legal, in_turn, frames


def broken_rule(game: Go, boards: np.ndarray, colour: int, action: int) -> str:
    """Return which rule an illegal move breaks, given the boards int8[T, N] up to it."""
    board = boards[-1].reshape(game.board_shape).copy()
    point = divmod(action, game.board_shape[1])
    if board[point]:
        return "the point is taken"
    own = 1 - 2 * colour
    board[point] = own
    for value in (-own, own):
        for chain, liberties in setup.chains(board):
            if not liberties and board[next(iter(chain))] == value:
                if value == own:
                    return "suicide"
                board[tuple(np.array(list(chain)).T)] = 0
    earlier = np.flatnonzero((boards == board.reshape(-1)).all(axis=1))
    return f"repeats the position after move {earlier[0]}" if len(earlier) else "unknown"
