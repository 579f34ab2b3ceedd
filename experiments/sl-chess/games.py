"""Write games of a program against itself, for a network that learns from them: Stockfish's as PGN,
or Fairy-Stockfish's of shogi as CSA.

    python experiments/sl-chess/games.py chess games.pgn --seconds 3600 --seed 1
    python experiments/sl-chess/games.py shogi games.csa --seconds 3600 --seed 1

Needs the program (Debian: apt-get install stockfish fairy-stockfish) and python-chess or cshogi
(pip install chess cshogi). Every game begins with 1 to 10 random moves, which are not part of the
record, and each side searches a number of nodes of its own, so that games differ and many are
decided. The same file is continued.
"""

import argparse
import collections
import random
import shutil
import subprocess
import time
from pathlib import Path

NODES = (100, 200, 400, 800, 1600)
MOST_RANDOM_MOVES = 10
MOST_MOVES = 300


class Program:
    """An engine on one thread."""

    def __init__(self, name: str, protocol: str) -> None:
        path = shutil.which(name, path="/usr/games:/usr/local/bin:/usr/bin")
        assert path, f"{name} is not installed"
        self.new_game = f"{protocol}newgame\nisready"
        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.ask(protocol, f"{protocol}ok")
        hash_option = {"uci": "Hash", "usi": "USI_Hash"}[protocol]
        self.ask(f"setoption name {hash_option} value 16\nisready", "readyok")

    def ask(self, command: str, word: str) -> str:
        """Send a command and return the line of the answer that begins with a word."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith(word):
                return line
        raise OSError("the program has stopped")

    def move(self, position: str, nodes: int) -> str:
        """Return its move after a search of a number of nodes."""
        return self.ask(f"position {position}\ngo nodes {nodes}", "bestmove").split()[1]


class ChessGame:
    """A game that begins after random moves."""

    program, protocol = "stockfish", "uci"

    def __init__(self, draw: random.Random) -> None:
        import chess

        board = chess.Board()
        for _ in range(draw.randint(1, MOST_RANDOM_MOVES)):
            if board.is_game_over():
                break
            board.push(draw.choice(list(board.legal_moves)))
        self.board = chess.Board(board.fen())

    @property
    def side(self) -> int:
        return 0 if self.board.turn else 1

    @property
    def num_moves(self) -> int:
        return len(self.board.move_stack)

    def is_over(self) -> bool:
        return self.board.is_game_over(claim_draw=True)

    def position(self) -> str:
        moves = " ".join(move.uci() for move in self.board.move_stack)
        return f"fen {self.board.root().fen()} moves {moves}"

    def push(self, move: str) -> None:
        self.board.push_uci(move)

    def record(self, names: list[str]) -> str | None:
        """Return the game as PGN; one that is too long is a draw."""
        import chess.pgn

        game = chess.pgn.Game.from_board(self.board)
        game.headers["White"], game.headers["Black"] = names
        result = self.board.result(claim_draw=True)
        game.headers["Result"] = "1/2-1/2" if result == "*" else result
        return f"{game}\n"


class ShogiGame:
    """A game that begins after random moves; the first side is Black, who moves first in shogi."""

    program, protocol = "fairy-stockfish", "usi"

    def __init__(self, draw: random.Random) -> None:
        import cshogi

        self.board = cshogi.Board()
        for _ in range(draw.randint(1, MOST_RANDOM_MOVES)):
            if self.board.is_game_over():
                break
            self.board.push(draw.choice(list(self.board.legal_moves)))
        self.start, self.start_csa = self.board.sfen(), self.board.csa_pos()
        self.usi: list[str] = []
        self.csa: list[str] = []
        self.seen = collections.Counter([self._key()])
        self.checks = False

    def _key(self) -> str:
        return self.board.sfen().rsplit(" ", 1)[0]

    @property
    def side(self) -> int:
        return self.board.turn

    @property
    def num_moves(self) -> int:
        return len(self.usi)

    def is_over(self) -> bool:
        return self.board.is_game_over() or self.seen[self._key()] == 4

    def position(self) -> str:
        return f"sfen {self.start} moves {' '.join(self.usi)}"

    def push(self, move: str) -> None:
        import cshogi

        sign = "+-"[self.side]
        self.csa.append(sign + cshogi.move_to_csa(self.board.push_usi(move)))
        self.usi.append(move)
        self.seen[self._key()] += 1
        self.checks |= self.seen[self._key()] > 1 and self.board.is_check()

    def record(self, names: list[str]) -> str | None:
        """Return the game as CSA; one that is too long is a draw, one in which a check was repeated
        is left out, since it may be lost for who gave it."""
        if self.checks:
            return None
        if self.seen[self._key()] == 4:
            end = "%SENNICHITE"
        else:
            end = "%TORYO" if self.board.is_game_over() else "%JISHOGI"
        lines = ["V2.2", f"N+{names[0]}", f"N-{names[1]}", self.start_csa.strip(), *self.csa, end]
        return "\n".join([*lines, "/"])


def play(program: Program, game: ChessGame | ShogiGame, nodes: list[int]) -> None:
    """Play a game to its end."""
    program.ask(program.new_game, "readyok")
    while not game.is_over() and game.num_moves < MOST_MOVES:
        game.push(program.move(game.position(), nodes[game.side]))


def main() -> None:
    """Play until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("game", choices=("chess", "shogi"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    kind = {"chess": ChessGame, "shogi": ShogiGame}[arguments.game]
    draw, program = random.Random(arguments.seed), Program(kind.program, kind.protocol)
    end, games, moves = time.monotonic() + arguments.seconds, 0, 0
    with arguments.out.open("a", encoding="utf-8") as file:
        while time.monotonic() < end:
            game, nodes = kind(draw), draw.choices(NODES, k=2)
            play(program, game, nodes)
            text = game.record([f"{kind.program}, {n} nodes" for n in nodes])
            if text is None or not game.num_moves:
                continue
            print(text, file=file, flush=True)
            games, moves = games + 1, moves + game.num_moves
            if games % 100 == 0:
                print(f"{games} games, {moves} moves", flush=True)
    program.process.kill()


if __name__ == "__main__":
    main()
