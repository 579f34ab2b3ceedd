"""Animal shogi a second time, plain and slow: pieces as letters on a list of twelve squares from
a1, the lion really taken."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field

COMPASS = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]
STEPS = {
    "C": [(0, 1)],
    "E": [(1, 1), (1, -1), (-1, -1), (-1, 1)],
    "G": [(0, 1), (1, 0), (0, -1), (-1, 0)],
    "L": COMPASS,
    "H": [(0, 1), (1, 1), (1, 0), (0, -1), (-1, 0), (-1, 1)],
}


@dataclass
class Referee:
    """One game. A move is (start, end, ""), a drop (-1, end, letter)."""

    pieces: list[str] = field(default_factory=lambda: list("ELG.C..c.gle"))
    hands: dict[bool, list[str]] = field(default_factory=lambda: {True: [], False: []})
    first: bool = True
    num_moves: int = 0
    seen: collections.Counter = field(default_factory=collections.Counter)

    def __post_init__(self) -> None:
        self.seen[self.place()] += 1

    def place(self) -> tuple:
        return (
            "".join(self.pieces),
            "".join(sorted(self.hands[True])),
            "".join(sorted(self.hands[False])),
            self.first,
        )

    def walks(self, pieces: list[str], first: bool) -> list[tuple[int, int, str]]:
        found = []
        for start, piece in enumerate(pieces):
            if piece == "." or piece.isupper() != first:
                continue
            for dx, dy in STEPS[piece.upper()]:
                x, y = start % 3 + dx, start // 3 + (dy if first else -dy)
                if (
                    0 <= x < 3
                    and 0 <= y < 4
                    and (pieces[3 * y + x] == "." or pieces[3 * y + x].isupper() != first)
                ):
                    found.append((start, 3 * y + x, ""))
        return found

    def after(self, move: tuple[int, int, str]) -> list[str]:
        start, end, letter = move
        pieces = list(self.pieces)
        piece = letter if letter else pieces[start].upper()
        if start >= 0:
            pieces[start] = "."
            piece = "H" if piece == "C" and end // 3 == (3 if self.first else 0) else piece
        pieces[end] = piece if self.first else piece.lower()
        return pieces

    def loses_lion(self, pieces: list[str], first: bool) -> bool:
        """The other side can take the lion at once."""
        lion = pieces.index("L" if first else "l")
        return any(end == lion for _, end, _ in self.walks(pieces, not first))

    def moves(self) -> dict[int, tuple[int, int, str]]:
        """The legal moves by their actions."""
        drops = [
            (-1, end, letter)
            for letter in set(self.hands[self.first])
            for end, piece in enumerate(self.pieces)
            if piece == "."
        ]
        return {
            self.action(move): move
            for move in self.walks(self.pieces, self.first) + drops
            if not self.loses_lion(self.after(move), self.first)
        }

    def push(self, move: tuple[int, int, str]) -> None:
        _, end, letter = move
        if letter:
            self.hands[self.first].remove(letter)
        elif self.pieces[end] != ".":
            taken = self.pieces[end].upper()
            self.hands[self.first].append("C" if taken == "H" else taken)
        self.pieces, self.first = self.after(move), not self.first
        self.num_moves += 1
        self.seen[self.place()] += 1

    def ending(self) -> tuple[str, int]:
        """Why the game is over, empty if it goes on; and the first player's reward."""
        reason = self.reason()
        is_lost = reason in ("catch", "no safe move", "try")
        return reason, is_lost * (-1 if self.first else 1)

    def reason(self) -> str:
        lion = self.pieces.index("l" if self.first else "L")
        if lion // 3 == (0 if self.first else 3):
            return "try"
        if not self.moves():
            return "catch" if self.loses_lion(self.pieces, self.first) else "no safe move"
        if self.seen[self.place()] >= 3:
            return "threefold repetition"
        return "move limit" if self.num_moves >= 256 else ""

    def action(self, move: tuple[int, int, str]) -> int:
        """The number of a move: 11 planes for each square, seen from the mover's side."""
        start, end, letter = move
        if letter:
            return 11 * (end if self.first else 11 - end) + 8 + "CEG".index(letter)
        sign = 1 if self.first else -1
        step = (end % 3 - start % 3) * sign, (end // 3 - start // 3) * sign
        return 11 * (start if self.first else 11 - start) + COMPASS.index(step)
