"""Records of shogi games, in the formats CSA (`csa`), KIF and KI2 (`kif`). Host side only."""

import re
from dataclasses import dataclass

from azero.games.shogi.sfen import START, parse_square
from azero.games.shogi.text import ShogiBoard, board_of_sfen, encode_usi, format_sfen

Ratings = tuple[float | None, float | None]
_RATING = re.compile(r"'(black|white)_rate:.*:(\d+(?:\.\d*)?)\s*")


@dataclass(frozen=True)
class ShogiGame:
    """The main line of one game."""

    name: str
    """source: the file and the number of the game in it"""
    black: str
    """the player's name; empty if it is not given"""
    white: str
    sfen: str
    """start position"""
    actions: tuple[int, ...]
    """as in `azero.games.shogi.moves`"""
    winner: str
    """black, white or draw; empty if unknown"""
    ending: str = ""
    """why it ended, in the words of the format (%TORYO, 投了); empty if it is not given"""
    facts: tuple[tuple[str, str], ...] = ()
    """the event, place, times and opening, under their names in CSA (EVENT, SITE, START_TIME)"""
    comments: tuple[str, ...] = ()
    """of the moves, "" where there is none; those before the first move are left out"""
    ratings: Ratings = (None, None)
    """of Black and White, from the comments of floodgate; None where there is none"""

    @property
    def moves(self) -> tuple[int, ...]:
        """The actions."""
        return self.actions

    @property
    def rewards(self) -> tuple[float, float] | None:
        """Results of Black and White, +1, -1 or 0; None if unknown."""
        return {"black": (1.0, -1.0), "white": (-1.0, 1.0), "draw": (0.0, 0.0)}.get(self.winner)

    @property
    def verdict(self) -> str:
        """The result in words: "Black wins (%TORYO)"; empty if the record has none."""
        winner = {"black": "Black wins", "white": "White wins", "draw": "a draw"}.get(self.winner)
        return f"{winner} ({self.ending})" if winner and self.ending else winner or self.ending

    @property
    def is_resigned(self) -> bool:
        """The record says that a player resigned."""
        return self.ending in ("%TORYO", "投了")


class UncheckedBoard:
    """A position whose moves are not checked: where the pieces are, and who is to move."""

    def __init__(self, board: ShogiBoard) -> None:
        self.pieces = list(board.pieces)
        self.is_white = board.is_white

    def play(self, usi: str) -> None:
        """Play a move in USI, legal or not."""
        end = parse_square(usi[2:4])
        if usi[1] == "*":
            self.pieces[end] = usi[0].lower() if self.is_white else usi[0]
        else:
            start = parse_square(usi[:2])
            self.pieces[end] = ("+" if usi.endswith("+") else "") + self.pieces[start]
            self.pieces[start] = ""
        self.is_white = not self.is_white


class MoveList:
    """The moves of a game that is being read."""

    def __init__(self, sfen: str = START, is_checked: bool = True) -> None:
        """Begin at a position. Without `is_checked` moves need not be legal, and reading is much
        faster."""
        board = board_of_sfen(sfen)
        self.board: ShogiBoard | UncheckedBoard = board if is_checked else UncheckedBoard(board)
        self.sfen = format_sfen(board)
        self.actions: list[int] = []
        self.comments: list[str] = []
        self.last_square = ""
        """destination of the last move, in USI"""

    def play(self, usi: str, place: str) -> None:
        """Play a move in USI.

        Raises:
          ValueError: it is not legal, or not a move at all; `place`, the move in the record, is
            quoted.
        """
        board = self.board
        action = (
            board.names.get(usi)
            if isinstance(board, ShogiBoard)
            else encode_usi(usi, board.is_white)
        )
        if action is None:
            raise ValueError(f"{place} is not a legal move after {len(self.actions)} moves")
        self.actions.append(action)
        self.comments.append("")
        self.last_square = usi[2:4]
        if isinstance(board, ShogiBoard):
            self.board = board.after(action)
        else:
            board.play(usi)

    def comment(self, text: str) -> None:
        """Add a line to the comment of the last move, if there is one."""
        if self.comments:
            self.comments[-1] = f"{self.comments[-1]} {text.strip()}".strip()

    def winner(self, verdict: str) -> str:
        """Return the winner of a `verdict`: the colour of "mover" or "opponent" in the current
        position, else the verdict itself."""
        mover, opponent = ("white", "black") if self.board.is_white else ("black", "white")
        return {"mover": mover, "opponent": opponent}.get(verdict, verdict)


def read_rating(row: str, ratings: Ratings) -> Ratings:
    """Return `ratings` with the one that a row gives, if it is a comment of floodgate with a
    rating."""
    match = _RATING.fullmatch(row)
    if not match:
        return ratings
    rating = float(match[2])
    return (rating, ratings[1]) if match[1] == "black" else (ratings[0], rating)
