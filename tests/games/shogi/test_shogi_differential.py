"""Whole games against cshogi: the legal moves at every ply, and how, when and for whom each game
ends."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from needs import require_module
from perft import part
from shogi_positions import BATCH, programs
from small_boards import play_beside_referees

from azero.games.shogi import text
from azero.games.shogi.rules import ENDINGS, Shogi

cshogi = require_module("cshogi")

COMPASS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
KINDS = "PLNSBRG"
BARE = "4k4/9/9/9/9/9/9/9/4K4 b 2r2b4g4s4n4l18p 1"
ENTERED = "3+P+P4/+P+P+PK+P+P+P+P1/9/9/9/9/4k4/9/9 b 2R2B4G4S4N4L8P 1"


def action_of(move: int, turn: int) -> int:
    """The number of a move, worked out from Table S2 a second time: 139 planes for each square,
    seen from the mover's side."""

    def seen(square: int) -> tuple[int, int]:
        # cshogi counts down the files from 1a.
        file, rank = divmod(square, 9)
        return (file, rank) if turn else (8 - file, 8 - rank)

    end = seen(cshogi.move_to(move))
    if cshogi.move_is_drop(move):
        return 139 * (9 * end[1] + end[0]) + 132 + KINDS.index(cshogi.move_to_usi(move)[0])
    start = seen(cshogi.move_from(move))
    files, ranks = end[0] - start[0], end[1] - start[1]
    if abs(files) == 1 and ranks == 2:
        plane = 64 + (files < 0)
    else:
        name = ("N" if ranks > 0 else "S" if ranks < 0 else "") + (
            "E" if files > 0 else "W" if files < 0 else ""
        )
        plane = 8 * COMPASS.index(name) + max(abs(files), abs(ranks)) - 1
    return 139 * (9 * start[1] + start[0]) + plane + 66 * cshogi.move_is_promotion(move)


class Referee:
    """A game on cshogi's board; repetitions are counted here, by the pieces, the hands and the
    side, move numbers left out."""

    def __init__(self, sfen: str, game: Shogi) -> None:
        self.board, self.game = cshogi.Board(sfen), game
        self.keys, self.checks = [self.key()], []

    def __str__(self) -> str:
        moves = [cshogi.move_to_usi(move) for move in self.board.history]
        return f"{self.board.sfen()} after {moves}"

    def moves(self) -> dict[int, int]:
        """The legal moves by their actions."""
        return {action_of(move, self.board.turn): move for move in self.board.legal_moves}

    def key(self) -> str:
        return self.board.sfen().rsplit(" ", 1)[0]

    def push(self, move: int) -> None:
        self.board.push(move)
        self.keys.append(self.key())
        self.checks.append(self.board.is_check())

    def ending(self) -> tuple[str, int]:
        """Why the game is over, and 1 if Black has won, -1 if White has; empty if it goes on."""
        mover = 1 if self.board.turn == cshogi.BLACK else -1
        if not list(self.board.legal_moves):
            return ("checkmate" if self.board.is_check() else "no legal move"), -mover
        if self.keys.count(self.keys[-1]) >= 4:
            since = self.keys.index(self.keys[-1])
            # The last move was the other side's, the one before it the mover's.
            moves = self.checks[since:][::-1]
            theirs, mine = all(moves[0::2]), all(moves[1::2])
            if theirs != mine:
                return "perpetual check", mover if theirs else -mover
            return "fourfold repetition", 0
        if self.game.entering_king and self.board.is_nyugyoku():
            return "entering king", mover
        return ("move limit", 0) if len(self.checks) >= self.game.max_moves else ("", 0)


def choose(rng: np.random.Generator, referee: Referee, legal: dict[int, int], style: int) -> int:
    """A random move; some games like to go back, some like to give check, some like to run forward
    and to promote."""
    board, moves = referee.board, list(legal)
    liked: list[int] = []
    if style == 1 and len(board.history) >= 2 and rng.random() < 0.9:
        last = board.history[-2]
        if not cshogi.move_is_drop(last):
            back = (cshogi.move_to(last), cshogi.move_from(last))
            liked = [
                a
                for a, m in legal.items()
                if not cshogi.move_is_drop(m) and (cshogi.move_from(m), cshogi.move_to(m)) == back
            ]
    elif style == 2 and rng.random() < 0.7:
        checks = (
            set(board.check_moves)
            if hasattr(board, "check_moves") and not board.is_check()
            else set()
        )
        liked = [action for action, move in legal.items() if move in checks]
    elif style == 3 and rng.random() < 0.6:
        liked = [
            action
            for action, move in legal.items()
            if cshogi.move_is_promotion(move) or board.piece(cshogi.move_to(move))
        ]
    return int(rng.choice(liked or moves))


def play_and_compare(
    game: Shogi, count: int, seed: int, sfen: str = cshogi.STARTING_SFEN
) -> collections.Counter:
    """Play `count` games side by side and compare everything; return how often each ending came
    up."""
    rng, referees = np.random.default_rng(seed), [Referee(sfen, game) for _ in range(count)]
    states, reasons = play_beside_referees(
        programs(game),
        game.from_sfen(sfen),
        referees,
        ENDINGS,
        lambda number, referee, moves: choose(rng, referee, moves, number % 4),
        BATCH,
    )
    for number, referee in enumerate(referees):
        assert text.format_sfen(text.board_of_state(part(states, number))) == referee.board.sfen()
    return reasons


def test_random_games(seed: int) -> None:
    reasons = play_and_compare(Shogi(), 50, seed + 1)
    assert sum(reasons.values()) == 50
    # of so few games, those of other seeds may lack one
    assert seed or {"checkmate", "fourfold repetition"} <= set(reasons), reasons


def test_games_with_everything_in_hand(seed: int) -> None:
    """White drops pieces near a bare king, and the other way round: mates, drop-pawn mates, long
    checks."""
    reasons = play_and_compare(Shogi(), 30, seed + 2, sfen=BARE) + play_and_compare(
        Shogi(), 30, seed + 3, sfen=ENTERED
    )
    assert sum(reasons.values()) == 60 and (seed or "entering king" in reasons), reasons


@pytest.mark.timeout(3600)
@pytest.mark.slow
def test_two_thousand_random_games(seed: int) -> None:
    reasons: collections.Counter = collections.Counter()
    for number in range(2000 // BATCH):
        reasons += play_and_compare(
            Shogi(), BATCH, seed + 100 + number, sfen=cshogi.STARTING_SFEN if number % 4 else BARE
        )
    assert sum(reasons.values()) == 2000 // BATCH * BATCH
    assert {"checkmate", "fourfold repetition", "move limit"} <= set(reasons), reasons
