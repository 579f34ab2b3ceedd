"""Whole games against python-chess: the legal moves at every ply, and how and when each game
ends."""

from __future__ import annotations

import collections

import jax
import numpy as np
import pytest
from chess_perft import stack
from chess_referee import chess, ending, legal_actions, make_look

from azero.games.chess import text
from azero.games.chess.rules import ENDINGS, Chess

GAMES_AT_ONCE = 50


def choose(
    rng: np.random.Generator, board: chess.Board, legal: dict[int, chess.Move], style: int
) -> int:
    """A random move; some games like to go back (repetitions), some like pawns and castling, some
    like to take (bare kings)."""
    moves = list(legal)
    if style == 1 and len(board.move_stack) >= 2 and rng.random() < 0.7:
        last = board.move_stack[-2]
        back = [
            action
            for action, move in legal.items()
            if (move.from_square, move.to_square) == (last.to_square, last.from_square)
        ]
        moves = back or moves
    elif style == 2 and rng.random() < 0.6:
        liked = [
            a
            for a, move in legal.items()
            if board.piece_type_at(move.from_square) == chess.PAWN or board.is_castling(move)
        ]
        moves = liked or moves
    elif style == 3 and rng.random() < 0.6:
        moves = [a for a, move in legal.items() if board.is_capture(move)] or moves
    return int(rng.choice(moves))


def play_and_compare(
    game: Chess, count: int, seed: int, fen: str = chess.STARTING_FEN
) -> collections.Counter:
    """Play `count` games side by side and compare everything; return how often each ending came
    up."""
    rng = np.random.default_rng(seed)
    step, look = jax.jit(jax.vmap(game.step)), make_look(game)
    boards = [chess.Board(fen) for _ in range(count)]
    states = stack([game.from_fen(fen)] * count)
    over, reasons = [""] * count, collections.Counter()
    while not all(over):
        masks, endings, rewards = map(np.asarray, look(states))
        actions = np.zeros(count, np.int32)
        for number, board in enumerate(boards):
            if over[number]:
                continue
            over[number] = ending(board, game.max_moves)
            assert ENDINGS[endings[number]] == over[number], (
                board.fen(),
                ENDINGS[endings[number]],
                over[number],
            )
            if over[number]:
                reasons[over[number]] += 1
                loser = -1 if board.turn else 1
                assert rewards[number].tolist() == (
                    [loser, -loser] if over[number] == "checkmate" else [0, 0]
                )
                continue
            legal = legal_actions(board)
            assert np.flatnonzero(masks[number]).tolist() == sorted(legal), board.fen()
            actions[number] = choose(rng, board, legal, number % 4)
            board.push(legal[int(actions[number])])
        states = step(states, actions)
    for number, board in enumerate(boards):
        mine = text.format_fen(
            text.board_of_state(
                jax.tree.map(lambda leaf, number=number: np.asarray(leaf)[number], states)
            )
        )
        assert mine == board.fen()
    return reasons


def test_random_games(seed: int) -> None:
    reasons = play_and_compare(Chess(), GAMES_AT_ONCE, seed + 1)
    assert sum(reasons.values()) == GAMES_AT_ONCE
    # Of so few games, those of other seeds may lack an ending.
    assert seed or {
        "checkmate",
        "insufficient material",
        "fifty moves",
        "threefold repetition",
    } <= set(reasons), reasons


def test_a_shorter_limit_of_moves(seed: int) -> None:
    assert play_and_compare(Chess(max_moves=9), 4, seed) == {"move limit": 4}


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_two_thousand_random_games(seed: int) -> None:
    reasons: collections.Counter = collections.Counter()
    for part in range(10):
        reasons += play_and_compare(Chess(), 200, seed + 100 + part)
    assert sum(reasons.values()) == 2000
    assert set(reasons) == set(ENDINGS[1:]), reasons
