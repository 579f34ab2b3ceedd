"""The twelve openings of chess by which AlphaZero's play is shown (Silver et al. 2017, arXiv
1712.01815, Table 2), and how often games reach them."""

from typing import NamedTuple

import numpy as np

from azero.games.chess import position
from azero.games.chess.text import START, ChessBoard, board_of_fen


class Opening(NamedTuple):
    """A position that people have reached more than 100,000 times."""

    eco: str
    """number in the Encyclopaedia of Chess Openings"""
    name: str
    moves: tuple[str, ...]
    """in UCI, from the opening position"""


OPENINGS = (
    Opening("A10", "English Opening", ("c2c4",)),
    Opening("D06", "Queen's Gambit", ("d2d4", "d7d5", "c2c4")),
    Opening("A46", "Queen's Pawn Game", ("d2d4", "g8f6", "g1f3")),
    Opening("E00", "Queen's Pawn Game", ("d2d4", "g8f6", "c2c4", "e7e6")),
    Opening("E61", "King's Indian Defence", ("d2d4", "g8f6", "c2c4", "g7g6", "b1c3")),
    Opening("C00", "French Defence", ("e2e4", "e7e6", "d2d4", "d7d5")),
    Opening("B50", "Sicilian Defence", ("e2e4", "c7c5", "g1f3", "d7d6")),
    Opening("B30", "Sicilian Defence", ("e2e4", "c7c5", "g1f3", "b8c6")),
    Opening("B40", "Sicilian Defence", ("e2e4", "c7c5", "g1f3", "e7e6")),
    Opening("C60", "Ruy Lopez", ("e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6")),
    Opening("B10", "Caro-Kann Defence", ("e2e4", "c7c6")),
    Opening("A05", "Reti Opening", ("g1f3", "g8f6")),
)
"""Table 2, in its order; the moves are those before the continuations that it prints."""


def board_of(opening: Opening) -> ChessBoard:
    """Return the position of an opening."""
    board = board_of_fen(START)
    for name in opening.moves:
        board = board.after(board.names[name])
    return board


def opening_keys() -> np.ndarray:
    """Return the keys uint32[12, 9] of the positions of OPENINGS."""
    frames = []
    for opening in OPENINGS:
        board = board_of(opening)
        black = position.is_black(np.array([board.plies], np.uint32))  # type: ignore[arg-type]
        word = position.seen_rights(board.position.castling, black) | np.uint32(
            board.plies << position.PLIES_BIT
        )
        frames.append(np.concatenate([*position.pack_board(board.position, black), word]))
    return _keys(np.stack(frames))


def games_reaching(frames: np.ndarray, game: np.ndarray, num_games: int) -> np.ndarray:
    """Return int64[12]: how many of `num_games` games reach each opening, by whatever order of
    moves; `frames` uint32[T, 9] are the positions of all games, `game` int[T] their games."""
    keys = _keys(frames)
    counts = np.zeros(len(OPENINGS), np.int64)
    for index, key in enumerate(opening_keys()):
        reached = np.zeros(num_games, bool)
        reached[game[(keys == key).all(axis=1)]] = True
        counts[index] = reached.sum()
    return counts


def _keys(frames: np.ndarray) -> np.ndarray:
    """Return frames uint32[T, 9] without occurrences and counts."""
    keys = frames.copy()
    keys[:, -1] &= np.uint32(0b1111 | 1 << position.PLIES_BIT)
    return keys
