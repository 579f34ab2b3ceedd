"""Monte Carlo playouts of Go: the owner of each point after random but sensible play. Batched, on
the default device.

Both sides fill no own eye, prefer captures, and do not put a large own chain into atari; without
such a move they pass. So eyes stay eyes and a seki stays a seki, while a dead chain is captured in
nearly every playout.
"""

import functools
import threading
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azero.games import bits
from azero.games.batching import select_states
from azero.games.go.alphago2016.features import eyes
from azero.games.go.rules import Go
from azero.games.go.state import GoState
from azero.games.go.stones import colour_rows
from azero.types import Array

CAPTURE_PREFERENCE = 0.7
"""Share of the moves at which a side captures if it can."""
RESCUE_PREFERENCE = 0.5
"""Share of the moves at which a side that captures nothing extends a chain of its own from
atari."""
NAKADE_STONES = 3
"""Chains up to this many stones may be put into atari: with larger ones that destroys a seki more
often than it kills by shape."""
MOVES_PER_POINT = 2.5
"""Move limit of a playout, per point of the board; the position is then scored as it is."""

_RUNNING = threading.Lock()
"""Held by the thread that runs: a second thread waits for the program that the first one
compiles."""


class _Carry(NamedTuple):
    states: GoState
    """states[B]"""
    key: Array
    ply: Array


def count_ownership(board: np.ndarray, num_playouts: int, seed: int = 0) -> np.ndarray:
    """Return float32[H, W]: the mean owner of each point at the end of playouts from `board`
    int8[H, W], 1 Black to -1 White.

    Black begins half of the playouts, White the other half.
    """
    run, game = _compiled((board.shape[0], board.shape[1]), num_playouts)
    flat = board.reshape(-1)
    states = [
        game.host_setup(
            np.flatnonzero(flat > 0).tolist(), np.flatnonzero(flat < 0).tolist(), to_play
        )
        for to_play in (0, 1)
    ]
    with _RUNNING:
        return np.asarray(run(jax.random.key(seed), *states))


@functools.lru_cache(maxsize=4)
def _compiled(
    shape: tuple[int, int], num_playouts: int
) -> tuple[Callable[[Array, GoState, GoState], Array], Go]:
    """Return the compiled playouts on a board and their game: with simple ko, which needs no
    history."""
    num_moves = int(MOVES_PER_POINT * shape[0] * shape[1]) + 10
    game = Go(shape, komi=0.5, superko="simple", max_moves=num_moves + 2)

    def run(key: Array, black_first: GoState, white_first: GoState) -> Array:
        half = num_playouts // 2
        states = jax.tree.map(
            lambda a, b: jnp.concatenate(
                [jnp.broadcast_to(leaf[None], (half, *leaf.shape)) for leaf in (a, b)]
            ),
            black_first,
            white_first,
        )

        def is_unfinished(carry: _Carry) -> Array:
            return (carry.ply < num_moves) & ~jax.vmap(game.is_terminal)(carry.states).all()

        def move(carry: _Carry) -> _Carry:
            key, draw_key = jax.random.split(carry.key)
            return _Carry(_play_one(game, carry.states, draw_key), key, carry.ply + 1)

        final = jax.lax.while_loop(is_unfinished, move, _Carry(states, key, jnp.int32(0))).states
        return jax.vmap(game.owners)(final.frames[:, 0]).astype(jnp.float32).mean(axis=0)

    return jax.jit(run), game


def _play_one(game: Go, states: GoState, key: Array) -> GoState:
    """Play one move of every playout: the first sensible one of two drawn moves, else a pass."""
    shape, num_points = game.board_shape, game.num_points
    is_white = states.to_play == 1
    own, other = colour_rows(shape, states.frames[:, 0], is_white)
    atari = bits.rows_from_words(states.atari.T, shape)
    board = bits.board_rows(shape)
    empty = board & ~(own | other)

    legal = jax.vmap(game.legal_action_mask)(states)[:, :num_points]
    rows = (
        eyes(own, other, board),
        empty & bits.neighbours(other & atari),
        empty & bits.neighbours(own & atari),
    )
    own_eyes, captures, rescues = (_unpack(points, shape) for points in rows)
    candidates = legal & ~own_eyes
    noise_key, capture_key, rescue_key = jax.random.split(key, 3)
    wants_capture = jax.random.uniform(capture_key, (candidates.shape[0], 1)) < CAPTURE_PREFERENCE
    wants_rescue = jax.random.uniform(rescue_key, (candidates.shape[0], 1)) < RESCUE_PREFERENCE
    urgency = jnp.where(captures & wants_capture, 2.0, jnp.where(rescues & wants_rescue, 1.0, 0.0))
    score = jnp.where(candidates, jax.random.uniform(noise_key, candidates.shape) + urgency, -1.0)
    best, drawn = jax.lax.top_k(score, 2)
    drawn = jnp.where(best >= 0, drawn, num_points).astype(jnp.int32)

    twice = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), states)
    moves = jnp.concatenate([drawn[:, 0], drawn[:, 1]])
    both = jax.vmap(game.step)(twice, moves)
    sensible = _is_sensible(game, twice, both, moves)
    num_games = is_white.shape[0]
    first, second = (
        jax.tree.map(lambda leaf, start=start: leaf[start : start + num_games], (both, sensible))
        for start in (0, num_games)
    )
    passed = states.replace(  # type: ignore[attr-defined]
        to_play=1 - states.to_play, num_passes=states.num_passes + 1, num_moves=states.num_moves + 1
    )
    return select_states(
        jax.vmap(game.is_terminal)(states),
        states,
        select_states(first[1], first[0], select_states(second[1], second[0], passed)),
    )


def _unpack(rows: Array, shape: tuple[int, int]) -> Array:
    """Return bool[B, N] of rows uint32[H, B]."""
    return bits.unpack(bits.words_from_rows(rows, shape).T, shape[0] * shape[1])


def _is_sensible(game: Go, before: GoState, after: GoState, action: Array) -> Array:
    """Return bool[B]: the move is a stone, and does not put a large own chain into atari without
    capturing anything."""
    shape, is_white = game.board_shape, before.to_play == 1
    own, other = colour_rows(shape, after.frames[:, 0], is_white)
    _, other_before = colour_rows(shape, before.frames[:, 0], is_white)
    stone = bits.point_rows(action, shape)
    in_atari = ~bits.is_empty(stone & bits.rows_from_words(after.atari.T, shape))
    is_small = bits.count_points(bits.flood(stone & own, own)) <= NAKADE_STONES
    captures = (other != other_before).any(axis=0)
    return (action < game.num_points) & (~in_atari | captures | is_small)
