"""The engines of chess and shogi as other programs meet them: python-chess and cshogi hold the
clocks and know the rules, Stockfish and Fairy-Stockfish play."""

import os
import random
import shlex
import sys
import time
from pathlib import Path

import pytest
from needs import require_module, require_program

HERE = Path(__file__).parent
THINKER = [sys.executable, str(HERE / "moves_process.py")]
CLI = [sys.executable, "-m", "azero"]
TINY = "blocks=1&filters=8"
LONGEST = 400
"""Moves after which a game is given up as a draw."""
MAIN_SECONDS, INCREMENT_SECONDS = 10.0, 0.1
BYOYOMI_SECONDS = 3.0
"""A machine that is busy with other things gives a process its turn late."""


def _environment() -> dict[str, str]:
    return {**os.environ, "JAX_NUM_CPU_DEVICES": "1"}


def play_chess(command: list[str], num_games: int) -> list[str]:
    """Play games on clocks through python-chess, which raises an error at an illegal move, and
    return the results."""
    chess = require_module("chess")
    engines = require_module("chess.engine")
    stockfish = require_program("stockfish")
    results = []
    ours, theirs = (
        engines.SimpleEngine.popen_uci(command, timeout=240.0, env=_environment()),
        engines.SimpleEngine.popen_uci(stockfish),
    )
    try:
        theirs.configure({"Skill Level": 0, "Threads": 1})
        ours.ping()
        for number in range(num_games):
            board = chess.Board()
            draw = random.Random(number // 2)
            for _ in range(4):
                board.push(draw.choice(list(board.legal_moves)))
            clocks = [MAIN_SECONDS, MAIN_SECONDS]
            while not board.is_game_over(claim_draw=True) and board.ply() < LONGEST:
                is_ours = board.turn == (number % 2 == 0)
                white, black = clocks
                limit = engines.Limit(
                    white_clock=white,
                    black_clock=black,
                    white_inc=INCREMENT_SECONDS,
                    black_inc=INCREMENT_SECONDS,
                )
                began = time.monotonic()
                result = (
                    ours.play(board, limit, game=number)
                    if is_ours
                    else theirs.play(board, engines.Limit(nodes=50), game=number)
                )
                assert result.move is not None and not result.resigned
                if is_ours:
                    clocks[not board.turn] -= time.monotonic() - began
                    assert clocks[not board.turn] > 0, (
                        f"game {number}: the time ran out in move {board.fullmove_number}"
                    )
                    clocks[not board.turn] += INCREMENT_SECONDS
                board.push(result.move)
            results.append(board.result(claim_draw=True))
    finally:
        ours.quit()
        theirs.quit()
    return results


def play_shogi(command: list[str], num_games: int, folder: Path) -> list[str]:
    """Play games with byoyomi through cshogi's client and return how they ended."""
    cshogi = require_module("cshogi")
    usi = require_module("cshogi.usi")
    fairy = require_program("fairy-stockfish")
    script = folder / "engine.sh"
    script.write_text(f"#!/bin/sh\nexport JAX_NUM_CPU_DEVICES=1\nexec {shlex.join(command)}\n")
    script.chmod(0o755)
    ours, theirs = usi.Engine(str(script)), usi.Engine(fairy)
    endings = []
    try:
        for engine in (ours, theirs):
            engine.isready()
        for number in range(num_games):
            for engine in (ours, theirs):
                engine.usinewgame()
            board, moves = cshogi.Board(), []
            draw = random.Random(number // 2)
            for _ in range(4):
                moves.append(cshogi.move_to_usi(draw.choice(list(board.legal_moves))))
                board.push_usi(moves[-1])
            endings.append(_shogi_game(cshogi, ours, theirs, board, moves, number))
    finally:
        ours.quit()
        theirs.quit()
    return endings


def _shogi_game(cshogi, ours, theirs, board, moves: list[str], number: int) -> str:
    while len(moves) < LONGEST:
        if board.is_draw() != cshogi.NOT_REPETITION:
            return "repetition"
        is_ours = (board.turn == cshogi.BLACK) == (number % 2 == 0)
        engine = ours if is_ours else theirs
        engine.position(moves=moves)
        began = time.monotonic()
        move, _ = (
            engine.go(btime=0, wtime=0, byoyomi=round(1000 * BYOYOMI_SECONDS))
            if is_ours
            else engine.go(nodes=200)
        )
        assert not is_ours or time.monotonic() - began < BYOYOMI_SECONDS, (
            f"game {number}: the time ran out in move {len(moves) + 1}"
        )
        if move in ("resign", "win"):
            assert move == "win" or board.is_game_over(), (
                f"game {number}: {move} after {' '.join(moves)}"
            )
            assert move == "resign" or board.is_nyugyoku()
            return move
        assert move in {cshogi.move_to_usi(legal) for legal in board.legal_moves}, (
            f"game {number}: {move} after {' '.join(moves)}"
        )
        board.push_usi(move)
        moves.append(move)
    return "long"


def test_a_thinker_plays_chess_through_python_chess() -> None:
    results = play_chess([*THINKER, "chess"], 2)
    assert len(results) == 2 and set(results) <= {"1-0", "0-1", "1/2-1/2"}


def test_a_thinker_plays_shogi_through_cshogi(tmp_path: Path) -> None:
    assert len(play_shogi([*THINKER, "shogi"], 2, tmp_path)) == 2


def test_python_chess_analyses_ponders_and_stops() -> None:
    chess = require_module("chess")
    engines = require_module("chess.engine")
    with engines.SimpleEngine.popen_uci(
        [*THINKER, "chess"], timeout=240.0, env=_environment()
    ) as engine:
        assert {"MultiPV", "Hash", "Threads", "Ponder", "UCI_ShowWDL", "Move Overhead"} <= set(
            engine.options
        )
        with engine.analysis(
            chess.Board(),
            multipv=2,
            root_moves=[chess.Move.from_uci(name) for name in ("e2e4", "d2d4", "c2c4")],
        ) as analysis:
            seen = [info for _, info in zip(range(4), analysis, strict=False)]
        assert {info["pv"][0].uci() for info in seen if "pv" in info} <= {"e2e4", "d2d4", "c2c4"}
        board = chess.Board()
        for _ in range(4):
            result = engine.play(
                board,
                engines.Limit(white_clock=1, black_clock=1),
                ponder=True,
                info=engines.INFO_SCORE,
            )
            board.push(result.move)
        mated = chess.Board("7k/6Q1/6K1/8/8/8/8/8 b - - 0 1")
        assert engine.analyse(mated, engines.Limit(nodes=1))["score"].relative.mate() == 0


@pytest.mark.slow
def test_a_network_plays_a_hundred_games_of_chess() -> None:
    results = play_chess([*CLI, "uci", "--random-net", f"chess?{TINY}", "--visits", "4"], 100)
    assert len(results) == 100


@pytest.mark.slow
def test_a_network_plays_a_hundred_games_of_shogi(tmp_path: Path) -> None:
    assert (
        len(
            play_shogi(
                [*CLI, "usi", "--random-net", f"shogi?{TINY}", "--visits", "4"], 100, tmp_path
            )
        )
        == 100
    )
