"""Checks of the rules of Go that take minutes: random games against sgfmill, real games, and how often the search's weaker repetition rule matters.

    python -m azero.bench.rules random --moves 1000000
    python -m azero.bench.rules replay PATH...
    python -m azero.bench.rules repetitions --size 9
"""

from __future__ import annotations

import argparse
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from azero.bench.games import draw
from azero.games import bits
from azero.games.go.rules import Go, GoState
from azero.games.go.sgf import GameRecord, read_games
from azero.types import Array

NO_MOVE = -1
"""Padding behind the last move of a recorded game."""


class RandomGames(NamedTuple):
    """Random games as arrays [T, B, ...]."""

    actions: np.ndarray
    boards: np.ndarray
    """int8[T, B, N]: after the move, 1 Black, -1 White"""
    is_over: np.ndarray
    """bool[T, B]: the game ended with this move; the next one begins on an empty board"""
    scores: np.ndarray
    """float32[T, B]: Black's area minus White's, after the move"""
    num_weaker: np.ndarray
    """int32[T, B]: moves that the search state allows and the exact rule forbids, before the move"""
    num_legal: np.ndarray
    """int32[T, B]: legal points, before the move"""


def play_random(game: Go, num_games: int, num_moves: int, seed: int) -> RandomGames:
    """Play `num_games` games side by side for `num_moves` random legal moves, over and over."""

    def move(state: GoState, word: Array) -> tuple[GoState, tuple[Array, ...]]:
        exact = game.legal_action_mask(state)
        slim = game.legal_action_mask(game.search_state(state))
        action = draw(exact, word)
        state = game.step(state, action)
        is_over = game.is_terminal(state)
        fresh = jax.tree.map(lambda new, old: jnp.where(is_over, new, old), game.init(), state)
        weaker = (slim & ~exact).sum(dtype=jnp.int32)
        return fresh, (action, state.frames[0], is_over, game.score(state), weaker, exact[:-1].sum(dtype=jnp.int32))

    @jax.jit
    def play(key: Array) -> tuple[Array, ...]:
        states = jax.tree.map(lambda a: jnp.broadcast_to(a[None], (num_games, *a.shape)), game.init())
        words = jax.random.bits(key, (num_moves, num_games))
        return jax.lax.scan(jax.vmap(move), states, words)[1]

    actions, frames, is_over, scores, weaker, num_legal = map(np.asarray, play(jax.random.key(seed)))
    return RandomGames(actions, _boards(frames, game.num_points), is_over, scores, weaker, num_legal)


def _boards(frames: np.ndarray, num_points: int) -> np.ndarray:
    """Return int8[..., N] of frames uint32[..., 2K]."""
    halves = frames.reshape(*frames.shape[:-1], 2, -1)
    points = (halves[..., None] >> np.arange(32, dtype=np.uint32)) & 1
    black, white = np.moveaxis(points.reshape(*halves.shape[:-1], -1)[..., :num_points].astype(np.int8), -2, 0)
    return black - white


def compare_with_sgfmill(size: int, games: RandomGames, komi: float) -> int:
    """Play the games on sgfmill's board and compare every position, and the area of every final one. Return the number of moves compared.

    Raises:
      AssertionError: a board or an area differs; the size, the game and the move are named.
    """
    from sgfmill import boards

    values = {"b": 1, "w": -1, None: 0}
    for game in range(games.actions.shape[1]):
        board, colour = boards.Board(size), "b"
        for index, action in enumerate(games.actions[:, game].tolist()):
            if action < size * size:
                # Rows are mirrored, which no rule sees.
                board.play(*divmod(action, size), colour)
            theirs = [values[cell] for row in board.board for cell in row]
            place = f"{size}x{size} game {game} move {index}"
            assert games.boards[index, game].tolist() == theirs, f"{place}: the boards differ"
            colour = "w" if colour == "b" else "b"
            if games.is_over[index, game]:
                assert board.area_score() - komi == games.scores[index, game], f"{place}: the areas differ"
                board, colour = boards.Board(size), "b"
    return games.actions.size


def check_random(num_moves: int, sizes: Iterable[int] = range(2, 20), num_games: int = 32, seed: int = 0) -> Iterator[str]:
    """Compare about `num_moves` random moves, spread over `sizes`, with sgfmill; yield a line for every size."""
    sizes = list(sizes)
    plies = -(-num_moves // (len(sizes) * num_games))
    total = 0
    for size in sizes:
        game = Go(size=size, komi=0.5)
        total += compare_with_sgfmill(size, play_random(game, num_games, plies, seed + size), game.komi)
        jax.clear_caches()
        yield f"{size}x{size}: equal; {total} moves in all"


class Violation(NamedTuple):
    """A move of a real game that the rules forbid."""

    name: str
    move: int
    """counted from 1"""
    rule: str


def replay(records: Iterable[GameRecord], batch: int = 256) -> Iterator[tuple[GameRecord, np.ndarray, list[Violation]]]:
    """Replay games and yield each with its final board int8[N] and what broke a rule (positional superko, no suicide).

    A forbidden move is noted and, unless the point is taken, played all the same as far as the rules of capture go; a move out of turn is noted and played by its owner.
    """
    for size, group in itertools.groupby(records, key=lambda record: record.size):
        for chunk in itertools.batched(group, batch) if hasattr(itertools, "batched") else _chunks(group, batch):
            yield from _replay_chunk(size, list(chunk), batch)


def _chunks(items: Iterable[GameRecord], count: int) -> Iterator[tuple[GameRecord, ...]]:
    iterator = iter(items)
    while chunk := tuple(itertools.islice(iterator, count)):
        yield chunk
