"""Whole games against python-chess: the legal moves at every ply, and how and when each game
ends."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from chess_referee import Referee, chess
from perft import part, programs
from small_boards import play_beside_referees

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


def play_and_compare(game: Chess, count: int, seed: int) -> collections.Counter:
    """Play `count` games side by side and compare everything; return how often each ending came
    up."""
    rng = np.random.default_rng(seed)
    referees = [Referee(chess.STARTING_FEN, game.max_moves) for _ in range(count)]
    states, reasons = play_beside_referees(
        programs(game),
        game.init(),
        referees,
        ENDINGS,
        lambda number, referee, moves: choose(rng, referee.board, moves, number % 4),
        count,
    )
    for number, referee in enumerate(referees):
        assert text.format_fen(text.board_of_state(part(states, number))) == str(referee)
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
    for number in range(10):
        reasons += play_and_compare(Chess(), 200, seed + 100 + number)
    assert sum(reasons.values()) == 2000
    assert set(reasons) == set(ENDINGS[1:]), reasons
