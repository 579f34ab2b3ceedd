"""Minichess a second time, plain and slow: pieces as letters on a list of 25 squares from a1, moves
tried out one by one."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field

COMPASS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
JUMPS = [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)]
LINES = {"R": COMPASS[::2], "B": COMPASS[1::2], "Q": COMPASS, "K": COMPASS, "N": JUMPS}


@dataclass
class Referee:
    """One game."""

    pieces: list[str] = field(default_factory=lambda: list("RNBQKPPPPP.....ppppprnbqk"))
    white: bool = True
    clock: int = 0
    num_moves: int = 0
    seen: collections.Counter = field(default_factory=collections.Counter)

    def __post_init__(self) -> None:
        self.seen[self.place()] += 1

    def place(self) -> tuple:
        return "".join(self.pieces), self.white

    def forward(self) -> int:
        return 1 if self.white else -1

    def pseudo(self, pieces: list[str], white: bool) -> list[tuple[int, int, str]]:
        """Moves (start, end, promotion letter) that look at no check."""
        found = []
        for start, piece in enumerate(pieces):
            if piece == "." or piece.isupper() != white:
                continue
            x, y = start % 5, start // 5
            if piece.upper() == "P":
                y += 1 if white else -1
                for dx in (-1, 0, 1):
                    end = 5 * y + x + dx
                    if 0 <= x + dx < 5 and (
                        pieces[end] == "."
                        if dx == 0
                        else pieces[end] != "." and pieces[end].isupper() != white
                    ):
                        found += [(start, end, kind) for kind in ("QNBR" if y in (0, 4) else "-")]
                continue
            for dx, dy in LINES[piece.upper()]:
                for distance in range(1, 5 if piece.upper() in "RBQ" else 2):
                    cx, cy = x + dx * distance, y + dy * distance
                    if not (0 <= cx < 5 and 0 <= cy < 5) or (
                        pieces[5 * cy + cx] != "." and pieces[5 * cy + cx].isupper() == white
                    ):
                        break
                    found.append((start, 5 * cy + cx, "-"))
                    if pieces[5 * cy + cx] != ".":
                        break
        return found

    def after(self, move: tuple[int, int, str]) -> list[str]:
        start, end, kind = move
        pieces = list(self.pieces)
        piece = pieces[start] if kind == "-" else kind if self.white else kind.lower()
        pieces[start], pieces[end] = ".", piece
        return pieces

    def attacked(self, pieces: list[str], white: bool) -> bool:
        """The king of a side can be taken."""
        king = pieces.index("K" if white else "k")
        return any(end == king for _, end, _ in self.pseudo(pieces, not white))

    def moves(self) -> dict[int, tuple[int, int, str]]:
        """The legal moves by their actions."""
        return {
            self.action(move): move
            for move in self.pseudo(self.pieces, self.white)
            if not self.attacked(self.after(move), self.white)
        }

    def push(self, move: tuple[int, int, str]) -> None:
        is_progress = self.pieces[move[0]].upper() == "P" or self.pieces[move[1]] != "."
        self.pieces, self.white = self.after(move), not self.white
        self.clock = 0 if is_progress else self.clock + 1
        self.num_moves += 1
        self.seen[self.place()] += 1

    def ending(self) -> tuple[str, int]:
        """Why the game is over, empty if it goes on; and White's reward."""
        reason = self.reason()
        return reason, (reason == "checkmate") * (-1 if self.white else 1)

    def reason(self) -> str:
        if not self.moves():
            return "checkmate" if self.attacked(self.pieces, self.white) else "stalemate"
        rest = [(square, piece) for square, piece in enumerate(self.pieces) if piece not in ".Kk"]
        colours = {(square % 5 + square // 5) % 2 for square, _ in rest}
        kinds = {piece.upper() for _, piece in rest}
        if (
            not rest
            or (len(rest) == 1 and kinds <= {"N", "B"})
            or (kinds == {"B"} and len(colours) == 1)
        ):
            return "insufficient material"
        if self.clock >= 100:
            return "fifty moves"
        if self.seen[self.place()] >= 3:
            return "threefold repetition"
        return "move limit" if self.num_moves >= 256 else ""

    def action(self, move: tuple[int, int, str]) -> int:
        """The number of a move: 49 planes for each square, seen from the mover's side."""
        start, end, kind = move
        dx, dy = end % 5 - start % 5, (end // 5 - start // 5) * self.forward()
        if kind in "NBR":
            plane = 40 + 3 * (dx + 1) + "NBR".index(kind)
        elif (dx, dy) in JUMPS:
            plane = 32 + JUMPS.index((dx, dy))
        else:
            distance = max(abs(dx), abs(dy))
            plane = 4 * COMPASS.index((dx // distance, dy // distance)) + distance - 1
        return 49 * (5 * (start // 5 if self.white else 4 - start // 5) + start % 5) + plane
