"""The planes of AlphaGo (2016) on 5,000 positions of random games and 5,000 of games between
people, against the plain Python version."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_features import assert_equal

from azero.games.go.rules import Go
from azero.games.go.sgf import read_games

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "go"
RECORDS = [
    path for path in (SHARED / "fox-pro-even.sgf.gz", DATA / "games.sgf.gz") if path.exists()
]
GAME = Go(num_planes=49)
POSITIONS, GAMES, BATCH = 5000, 1000, 250
LONGEST = 300
"""Moves of a game that positions are taken from."""


def human_games() -> np.ndarray:
    """Moves int32[G, LONGEST] of games without handicap, -1 behind the last one."""
    plain = (
        record
        for record in read_games(RECORDS[0], [])
        if record.board_shape == (19, 19)
        and record.moves
        and not record.black_points
        and not record.white_points
    )
    moves = [
        [action for _, action in record.moves][:LONGEST]
        for record, _ in zip(plain, range(GAMES), strict=False)
    ]
    return np.array([line + [-1] * (LONGEST - len(line)) for line in moves], np.int32)


def after(states, actions):
    """The states after moves int32[B], unchanged where there is none."""

    def one(state, action):
        return jax.tree.map(
            lambda new, old: jnp.where(action >= 0, new, old),
            GAME.step(state, jnp.maximum(action, 0)),
            state,
        )

    return jax.vmap(one)(states, actions)


@jax.jit
def replayed(states, moves):
    """Frames and sides to move [LONGEST, B, ...] after each of the moves int32[LONGEST, B]."""

    def play(states, actions):
        states = after(states, actions)
        return states, (states.frames, states.to_play)

    return jax.lax.scan(play, states, moves)[1]


@jax.jit
def random_games(states, key):
    """Moves int32[LONGEST, B] drawn evenly from the legal ones, -1 once a game is over."""

    def play(states, key):
        legal = jax.vmap(GAME.legal_action_mask)(states)
        drawn = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
        actions = jnp.where(jax.vmap(GAME.is_terminal)(states), -1, drawn)
        return after(states, actions), actions

    return jax.lax.scan(play, states, jax.random.split(key, LONGEST))[1]


@pytest.mark.timeout(3600)
@pytest.mark.slow
@pytest.mark.parametrize("source", ["random", "people"])
def test_agreement_with_the_plain_version(source: str, seed: int) -> None:
    rng = np.random.default_rng(6 + seed)
    begin = jax.vmap(lambda _: GAME.init())(np.arange(BATCH))
    observe = jax.jit(jax.vmap(GAME.observe_frames))
    people = human_games() if source == "people" else None
    compared = 0
    while compared < POSITIONS:
        drawn = (
            random_games(begin, jax.random.key(seed + compared))
            if people is None
            else people[rng.integers(len(people), size=BATCH)].T
        )
        moves = np.asarray(drawn)
        frames, to_play = map(np.asarray, replayed(begin, moves))
        ply = rng.integers((moves >= 0).sum(axis=0))
        games = np.arange(BATCH)
        frames, to_play = frames[ply, games], to_play[ply, games]
        planes = np.asarray(observe(frames, to_play))
        assert_equal(planes, frames, to_play, GAME)
        compared += BATCH
