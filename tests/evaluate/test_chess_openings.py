"""The twelve openings: their positions, and games that reach them by other orders of moves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from azero.evaluate.chess_openings import OPENINGS, board_of, games_reaching, opening_keys
from azero.games.chess import text
from azero.games.table import make


def frames_of(names: str) -> np.ndarray:
    game = make("chess")
    step = jax.jit(game.step)
    state = game.init()
    frames = [np.asarray(game.pack_frame(state))]
    for name in names.split():
        state = step(state, jnp.int32(text.board_of_state(state).names[name]))
        frames.append(np.asarray(game.pack_frame(state)))
    return np.stack(frames)


def test_positions_by_their_fen() -> None:
    fens = {opening.eco: text.format_fen(board_of(opening)) for opening in OPENINGS}
    assert len(fens) == 12
    assert fens["C60"] == "r1bqkbnr/1ppp1ppp/p1n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R w KQkq - 0 4"
    assert fens["E61"] == "rnbqkb1r/pppppp1p/5np1/8/2PP4/2N5/PP2PPPP/R1BQKBNR b KQkq - 1 3"
    assert len(np.unique(opening_keys(), axis=0)) == 12


def test_games_that_reach_them() -> None:
    games = [
        frames_of("d2d4 d7d5 c2c4 e7e6"),
        frames_of("c2c4 d7d5 d2d4"),
        frames_of("g1f3 g8f6 d2d4"),
        frames_of("a2a3"),
    ]
    number = np.repeat(np.arange(4), [len(frames) for frames in games])
    counts = dict(
        zip(
            (opening.eco for opening in OPENINGS),
            games_reaching(np.concatenate(games), number, 4).tolist(),
            strict=True,
        )
    )
    assert counts == {"A10": 1, "D06": 2, "A46": 1, "A05": 1} | dict.fromkeys(
        ("E00", "E61", "C00", "B50", "B30", "B40", "C60", "B10"), 0
    )
