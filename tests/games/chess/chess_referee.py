"""python-chess as the referee, and the action code worked out from Table S2 a second time, move by
move."""

from __future__ import annotations

from needs import require_module

chess = require_module("chess.pgn").chess

COMPASS = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"]
KNIGHT = {
    (1, 2): 0,
    (2, 1): 1,
    (2, -1): 2,
    (1, -2): 3,
    (-1, -2): 4,
    (-2, -1): 5,
    (-2, 1): 6,
    (-1, 2): 7,
}


def action_of(move: chess.Move, turn: chess.Color) -> int:
    """The number of a legal move: 73 planes for each square, seen from the mover's side."""
    start, end = (
        square if turn else chess.square_mirror(square)
        for square in (move.from_square, move.to_square)
    )
    files, ranks = (
        chess.square_file(end) - chess.square_file(start),
        chess.square_rank(end) - chess.square_rank(start),
    )
    if move.promotion in (chess.KNIGHT, chess.BISHOP, chess.ROOK):
        plane = (
            64 + 3 * (files + 1) + (chess.KNIGHT, chess.BISHOP, chess.ROOK).index(move.promotion)
        )
    elif (files, ranks) in KNIGHT:
        plane = 56 + KNIGHT[files, ranks]
    else:
        name = ("N" if ranks > 0 else "S" if ranks < 0 else "") + (
            "E" if files > 0 else "W" if files < 0 else ""
        )
        plane = 7 * COMPASS.index(name) + max(abs(files), abs(ranks)) - 1
    return 73 * start + plane


class Referee:
    """A game on python-chess's board."""

    def __init__(self, fen: str, max_moves: int) -> None:
        self.board, self.max_moves = chess.Board(fen), max_moves

    def __str__(self) -> str:
        return self.board.fen()

    def moves(self) -> dict[int, chess.Move]:
        """The legal moves by their actions."""
        return {action_of(move, self.board.turn): move for move in self.board.legal_moves}

    def push(self, move: chess.Move) -> None:
        self.board.push(move)

    def ending(self) -> tuple[str, int]:
        """Why the game is over, with every draw that the players of chess may claim taken at once;
        empty if it goes on. And White's reward."""
        board = self.board
        if not any(board.generate_legal_moves()):
            return ("checkmate", -1 if board.turn else 1) if board.is_check() else ("stalemate", 0)
        if board.is_insufficient_material():
            return "insufficient material", 0
        if board.halfmove_clock >= 100:
            return "fifty moves", 0
        if board.is_repetition(3):
            return "threefold repetition", 0
        return "move limit" if len(board.move_stack) >= self.max_moves else "", 0
