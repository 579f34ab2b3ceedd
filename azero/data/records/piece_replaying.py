"""Replays games of chess and shogi in batches: the moves of a record are codes, of which one
compiled program finds the actions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.data.records.formats import GROUP, MOVES_PER_CALL
from azero.games.game import Game
from azero.games.positions import ReadsPositions
from azero.selfplay.trajectory import HostArray
from azero.types import Array, PyTree

Fitting = Callable[[Array, Array], Array]
"""(frame uint32[F], code int32[K]) -> bool[A]: the actions that the code may mean in the position,
legal or not."""


class Line(NamedTuple):
    """What became of a game's codes."""

    frames: HostArray
    """uint32[T, F]: the positions before the moves that were played."""
    to_play: HostArray
    """uint8[T]"""
    actions: HostArray
    """int16[T]"""
    is_over: bool
    """The rules end the game before its next code."""


def replay(
    game: Game, fitting: Fitting, starts: Sequence[str], codes: Sequence[Sequence[tuple[int, ...]]]
) -> list[Line]:
    """Return up to GROUP games from positions in FEN or SFEN, each up to its end by the rules, or
    before the first move whose code does not fit exactly one legal action. A game has at least one
    code."""
    length = -(-max(map(len, codes)) // MOVES_PER_CALL) * MOVES_PER_CALL
    table = np.zeros((length, GROUP, len(codes[0][0])), np.int32)
    for column, line in enumerate(codes):
        table[: len(line), column] = line
    states, parts = _states(game, starts), []
    for first in range(0, length, MOVES_PER_CALL):
        states, part = _play(game, fitting, states, table[first : first + MOVES_PER_CALL])
        parts.append(jax.tree.map(np.asarray, part))
    frames, to_play, actions, is_over = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    lines = []
    for column, line in enumerate(codes):
        stopped = np.flatnonzero(actions[: len(line), column] < 0)
        count = int(stopped[0]) if len(stopped) else len(line)
        played = slice(count), column
        lines.append(
            Line(
                frames[played],
                to_play[played],
                actions[played],
                bool(count < len(line) and is_over[count, column]),
            )
        )
    return lines


def _states(game: Game, starts: Sequence[str]) -> PyTree:
    """Return the states of GROUP positions; equal ones, of which there are many, are read once."""
    assert isinstance(game, ReadsPositions)
    numbers = {line: number for number, line in enumerate(dict.fromkeys(starts))}
    places = np.zeros(GROUP, np.int64)
    places[: len(starts)] = [numbers[line] for line in starts]
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], game.from_positions(list(numbers)))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _play(
    game: Game, fitting: Fitting, states: PyTree, codes: Array
) -> tuple[PyTree, tuple[Array, Array, Array, Array]]:
    """Play the moves of codes int32[T, B, K]; a game stays where a code fits no action, or several.

    Returns:
      (states after the moves, (before each move: frames uint32[T, B, F], to play uint8[T, B], the
      action int16[T, B] or -1, whether the game is over bool[T, B]))
    """

    def move(state: Any, code: Array) -> tuple[Any, tuple[Array, Array, Array, Array]]:
        is_over, frame = game.is_terminal(state), game.pack_frame(state)
        fits = game.legal_action_mask(state) & fitting(frame, code)
        is_played = ~is_over & (fits.sum(dtype=jnp.int32) == 1)
        action = (fits * jnp.arange(game.num_actions, dtype=jnp.int32)).sum(dtype=jnp.int32)
        after = jax.tree.map(
            lambda new, old: jnp.where(is_played, new, old), game.step(state, action), state
        )
        found = jnp.where(is_played, action, -1).astype(jnp.int16)
        return after, (frame, game.to_play(state).astype(jnp.uint8), found, is_over)

    return jax.lax.scan(lambda states, row: jax.vmap(move)(states, row), states, codes)
