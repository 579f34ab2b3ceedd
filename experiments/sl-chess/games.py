"""Write games of Stockfish against itself as PGN, for a network that learns from them.

    python experiments/sl-chess/games.py games.pgn --seconds 3600 --seed 1

Needs Stockfish (Debian: apt-get install stockfish) and python-chess (pip install chess). Every game
begins with 1 to 10 random moves, which are not part of the record, and each side searches a number
of nodes of its own, so that games differ and many are decided. The same file is continued.
"""

import argparse
import random
import shutil
import subprocess
import time
from pathlib import Path

import chess
import chess.pgn

NODES = (100, 200, 400, 800, 1600)
MOST_RANDOM_MOVES = 10
MOST_MOVES = 300


class Stockfish:
    """The program, on one thread."""

    def __init__(self) -> None:
        name = shutil.which("stockfish", path="/usr/games:/usr/local/bin:/usr/bin")
        assert name, "stockfish is not installed"
        self.process = subprocess.Popen(
            [name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.ask("uci", "uciok")
        self.ask("setoption name Hash value 16\nisready", "readyok")

    def ask(self, command: str, word: str) -> str:
        """Send a command and return the line of the answer that begins with a word."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        raise OSError("stockfish has stopped")

    def move(self, board: chess.Board, nodes: int) -> chess.Move:
        """Return its move after a search of a number of nodes."""
        moves = " ".join(move.uci() for move in board.move_stack)
        command = f"position fen {board.root().fen()} moves {moves}\ngo nodes {nodes}"
        return chess.Move.from_uci(self.ask(command, "bestmove").split()[1])


def opening(draw: random.Random) -> chess.Board:
    """Return a position after random moves in which the game goes on."""
    while True:
        board = chess.Board()
        for _ in range(draw.randint(1, MOST_RANDOM_MOVES)):
            if board.is_game_over():
                break
            board.push(draw.choice(list(board.legal_moves)))
        if not board.is_game_over():
            return chess.Board(board.fen())


def play(stockfish: Stockfish, draw: random.Random) -> chess.pgn.Game:
    """Return one game."""
    board, nodes = opening(draw), draw.choices(NODES, k=2)
    first = 0 if board.turn else 1
    stockfish.ask("ucinewgame\nisready", "readyok")
    while not board.is_game_over(claim_draw=True) and len(board.move_stack) < MOST_MOVES:
        side = (len(board.move_stack) + first) % 2
        board.push(stockfish.move(board, nodes[side]))
    game = chess.pgn.Game.from_board(board)
    game.headers["White"], game.headers["Black"] = (f"Stockfish, {n} nodes" for n in nodes)
    if board.is_game_over(claim_draw=True):
        game.headers["Result"] = board.result(claim_draw=True)
    else:
        game.headers["Result"] = "1/2-1/2"
    return game


def main() -> None:
    """Play until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    draw, stockfish = random.Random(arguments.seed), Stockfish()
    end, games, moves = time.monotonic() + arguments.seconds, 0, 0
    with arguments.out.open("a", encoding="utf-8") as file:
        while time.monotonic() < end:
            game = play(stockfish, draw)
            print(game, file=file, end="\n\n", flush=True)
            games, moves = games + 1, moves + len(list(game.mainline_moves()))
            if games % 100 == 0:
                print(f"{games} games, {moves} moves", flush=True)
    stockfish.process.kill()


if __name__ == "__main__":
    main()
