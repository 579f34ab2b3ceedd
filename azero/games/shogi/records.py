"""Records of shogi games, in files of the formats CSA (`csa`) and KIF (`kif`). Host side only."""

from __future__ import annotations

from dataclasses import dataclass

from azero.games.shogi.sfen import START
from azero.games.shogi.text import ShogiBoard, board_of_sfen, format_sfen


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
    """why it ended, in the words of the format (%TORYO, 投了); empty if not given"""
    facts: tuple[tuple[str, str], ...] = ()
    """the event, place, times and opening, under their names in CSA (EVENT, SITE, START_TIME)"""
    comments: tuple[str, ...] = ()
    """of the moves, "" where there is none; those before the first move are left out"""


class MoveList:
    """The moves of a game that is being read."""

    def __init__(self, sfen: str = START) -> None:
        self.board: ShogiBoard = board_of_sfen(sfen)
        self.sfen = format_sfen(self.board)
        self.actions: list[int] = []
        self.comments: list[str] = []
        self.last_square = ""
        """destination of the last move, in USI"""

    def play(self, usi: str, place: str) -> None:
        """Play a move in USI.

        Raises:
          ValueError: it is not legal; `place` is quoted.
        """
        if usi not in self.board.usi:
            raise ValueError(f"{place} is not a legal move: {usi} after {len(self.actions)} moves")
        action = self.board.usi[usi]
        self.actions.append(action)
        self.comments.append("")
        self.last_square = usi[2:4]
        self.board = self.board.after(action)

    def comment(self, text: str) -> None:
        """Add a line to the comment of the last move, if there is one."""
        if self.comments:
            self.comments[-1] = f"{self.comments[-1]} {text.strip()}".strip()

    @property
    def mover(self) -> str:
        """Who is to move, black or white."""
        return "white" if self.board.is_white else "black"

    @property
    def opponent(self) -> str:
        """Who is not to move."""
        return "black" if self.board.is_white else "white"


def winner_of(verdict: str, line: MoveList) -> str:
    """Return the winner of a `verdict`: the colour of "mover" or "opponent" in the current
    position, else the verdict itself."""
    return {"mover": line.mover, "opponent": line.opponent}.get(verdict, verdict)
