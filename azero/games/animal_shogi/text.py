"""Animal shogi in text: SFEN of four ranks, moves, diagrams. Host side only, with numpy instead of
JAX.

Squares are a1 to c4, a at the first player's left, 1 at its own first rank. Pieces are C, E, G, L
and H (chick, elephant, giraffe, lion, hen), in lower case for the second player's. Moves are b2b3,
with a + where a chick becomes a hen, and drops C@b2, as Fairy-Stockfish writes them.
"""

import functools
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from azero.console.tables import count_of
from azero.games.animal_shogi import legal, moves
from azero.games.animal_shogi import position as positions
from azero.games.animal_shogi.position import AnimalShogiPosition
from azero.games.animal_shogi.squares import FILES, NUM_SQUARES, RANKS, turn
from azero.games.compass import COMPASS
from azero.games.diagrams import (
    diagram_rows,
    format_held,
    format_ranks,
    letters_of,
    parse_ranks,
    sets_of,
)
from azero.games.positions import word
from azero.games.quoting import quoting
from azero.types import Array

START = "gle/1c1/1C1/ELG b - 1"
"""The opening position."""
LETTERS = ".CEGLH"
"""Kinds by their codes; the first player's in upper case."""
MAX_MOVE_NUMBER = 100_000
"""Largest move number of a start position."""


class ParsedAnimalSfen(NamedTuple):
    """The contents of an SFEN; numpy words uint32[1]."""

    position: AnimalShogiPosition
    """from the mover's side"""
    plies: Array


def parse_sfen(sfen: str) -> ParsedAnimalSfen:
    """Read an SFEN of four ranks: pieces, side to move (b moves first), pieces in hand, move
    number, which may be missing.

    Raises:
      ValueError: it is not the position of an unfinished game; the SFEN is quoted, with what is
        wrong.
    """
    with quoting(sfen, "a position of animal shogi in SFEN"):
        return _parse(sfen)


def _parse(sfen: str) -> ParsedAnimalSfen:
    fields = sfen.split()
    if not 3 <= len(fields) <= 4:
        raise ValueError(
            f"it has {count_of(len(fields), 'field')}; 3 are needed (pieces, side, hands), "
            f"and a move number may follow"
        )
    pieces, (side, hands) = _parse_pieces(fields[0]), fields[1:3]
    if side not in ("b", "w"):
        raise ValueError(f"the side to move is b or w, not {side!r}")
    number = fields[3] if len(fields) == 4 else "1" if side == "b" else "2"
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= MAX_MOVE_NUMBER):
        raise ValueError(f"the move number is 1 to {MAX_MOVE_NUMBER}, not {number!r}")
    if (int(number) % 2 == 1) != (side == "b"):
        raise ValueError(
            f"b is to move at odd move numbers and w at even ones, not {side!r} at {number}"
        )
    held = _parse_hands(hands)
    _check_set(pieces, held)
    own_hand, other_hand = (
        sum(held[letter] << 2 * index for index, letter in enumerate(letters))
        for letters in ("CEG", "ceg")
    )
    first, second, *kinds = map(word, sets_of(pieces, LETTERS))
    seen = AnimalShogiPosition(
        first, second, (kinds[0], kinds[1], kinds[2]), word(own_hand), word(other_hand)
    )
    seen = _turned(seen) if side == "w" else seen
    _check_lions(seen)
    return ParsedAnimalSfen(seen, word(int(number) - 1))


def _parse_pieces(board: str) -> list[str]:
    """Return the letters of the twelve squares from a1, a dot for an empty one."""
    board = board.replace("+C", "H").replace("+c", "h")
    pieces = parse_ranks(board, RANKS, FILES, "CEGLH")
    for name, lion in (("the first", "L"), ("the second", "l")):
        if pieces.count(lion) != 1:
            raise ValueError(f"{name} player has {pieces.count(lion)} lions, not one")
    return pieces


def _parse_hands(hands: str) -> Counter[str]:
    """Return how many pieces of each letter are in hand; the second player's letters are lower
    case."""
    if hands != "-" and not re.fullmatch(r"(2?[CEGceg])+", hands):
        raise ValueError(
            f"pieces in hand are '-' or some of CEG and ceg, with a 2 before two of a "
            f"kind, not {hands!r}"
        )
    held: Counter[str] = Counter()
    for count, letter in re.findall(r"(2?)([CEGceg])", hands):
        held[letter] += int(count or 1)
    return held


def _check_set(pieces: list[str], held: Counter[str]) -> None:
    """Raise a ValueError if there are more pieces of a kind than in a set."""
    for letter in "CEG":
        board = sum(piece.upper() in (letter, "H" if letter == "C" else letter) for piece in pieces)
        count = board + held[letter] + held[letter.lower()]
        if count > positions.SET_SIZE:
            raise ValueError(
                f"there are {count} pieces of the kind {letter}; a set has {positions.SET_SIZE}"
            )


def _turned(seen: AnimalShogiPosition) -> AnimalShogiPosition:
    """Return the position as the other side sees it."""
    ones, twos, fours = map(turn, seen.kinds)
    return AnimalShogiPosition(
        turn(seen.other), turn(seen.own), (ones, twos, fours), seen.other_hand, seen.own_hand
    )


def _check_lions(seen: AnimalShogiPosition) -> None:
    """Raise a ValueError if the lion of the side that has moved can be captured, or that of the
    side to move is already on the far rank."""
    opponent = _turned(seen)
    if legal.legal(opponent).in_check[0]:
        raise ValueError("the side that is not to move is in check")
    if legal.wins_by_trying(opponent)[0]:
        raise ValueError(
            "the lion of the side to move is on its far rank: the game is already over"
        )


@dataclass(frozen=True)
class AnimalShogiBoard:
    """One position, for display and notation: made from a state (`board_of_state`) or an SFEN
    (`board_of_sfen`); its moves are actions of `moves`."""

    position: AnimalShogiPosition
    """from the mover's side; numpy words uint32[1]"""
    plies: int

    @property
    def is_second(self) -> bool:
        """The second player is to move."""
        return self.plies % 2 == 1

    @functools.cached_property
    def rules(self) -> legal.AnimalShogiLegal:
        """The legal moves of the position, and check."""
        return legal.legal(self.position)

    @functools.cached_property
    def pieces(self) -> str:
        """The letters of the twelve squares from a1, seen from the first player's side; a dot for
        an empty one."""
        seen = _turned(self.position) if self.is_second else self.position
        first, *kinds = (int(word[0]) for word in (seen.own, *seen.kinds))
        return "".join(letters_of(first, kinds, range(NUM_SQUARES), LETTERS))

    @property
    def hands(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many pieces of each letter the first and the second player have in hand."""
        pair = (self.position.own_hand, self.position.other_hand)
        first, second = (
            {
                LETTERS[code]: int(positions.hand_count(hand, code)[0])
                for code in positions.HAND_KINDS
            }
            for hand in pair
        )
        return (second, first) if self.is_second else (first, second)

    def view(self, square: int) -> int:
        """Convert a square's number between counting from a1 and counting from the mover's side."""
        return NUM_SQUARES - 1 - square if self.is_second else square

    @functools.cached_property
    def actions(self) -> tuple[int, ...]:
        """The legal actions in ascending order; an earlier successful try is not considered."""
        return tuple(moves.host_actions(moves.start_squares(self.position, self.rules.targets)))

    @functools.cached_property
    def names(self) -> dict[str, int]:
        """The legal actions by their names."""
        return {format_move(self, action): action for action in self.actions}

    def after(self, action: int) -> "AnimalShogiBoard":
        """Return the board after a legal action."""
        return AnimalShogiBoard(
            positions.play(self.position, moves.decode(np.array([action], np.uint32))),  # type: ignore[arg-type]
            self.plies + 1,
        )


def board_of_sfen(sfen: str) -> AnimalShogiBoard:
    """Return the board that an SFEN describes.

    Raises:
      ValueError: it is not a position of animal shogi; what is wrong is named.
    """
    parsed = parse_sfen(sfen)
    return AnimalShogiBoard(parsed.position, int(parsed.plies[0]))


def board_of_state(state: Any) -> AnimalShogiBoard:
    """Return the board of one `AnimalShogiState`."""
    frame = list(np.asarray(state.frames)[0].reshape(-1, 1))
    return AnimalShogiBoard(
        positions.unpack(frame, positions.is_second(frame[2])), int(positions.plies(frame[2])[0])
    )


def format_sfen(board: AnimalShogiBoard) -> str:
    """Return the SFEN."""
    first, second = board.hands
    pairs = [*first.items(), *((letter.lower(), count) for letter, count in second.items())]
    hands = "".join(("2" if count == 2 else "") + letter for letter, count in pairs if count)
    return (
        f"{format_ranks(board.pieces, FILES)} {'w' if board.is_second else 'b'} {hands or '-'} "
        f"{board.plies + 1}"
    )


def format_move(board: AnimalShogiBoard, action: int) -> str:
    """Return a move: b2b3, a3a4+, C@b2. An action that would leave the board is "a1 by -1+1" (files
    to the mover's right, ranks).

    Raises:
      ValueError: there is no such action.
    """
    if not 0 <= action < moves.NUM_ACTIONS:
        raise ValueError(
            f"action {action} is not one of animal shogi: 0 to {moves.NUM_ACTIONS - 1}"
        )
    square, plane = divmod(action, moves.NUM_PLANES)
    start = _name(board.view(square))
    if plane >= moves.DROP_PLANES:
        return f"{LETTERS[positions.HAND_KINDS[plane - moves.DROP_PLANES]]}@{start}"
    files, forward = COMPASS[plane]
    if not (0 <= square % FILES + files < FILES and 0 <= square // FILES + forward < RANKS):
        return f"{start} by {files:+d}{forward:+d}"
    promotes = (
        board.pieces[board.view(square)].upper() == "C" and square // FILES + forward == RANKS - 1
    )
    return start + _name(board.view(square + FILES * forward + files)) + ("+" if promotes else "")


def _name(square: int) -> str:
    return "abc"[square % FILES] + str(square // FILES + 1)


def format_diagram(board: AnimalShogiBoard) -> str:
    """Return the board from the first player's side with coordinates, the pieces in hand of both,
    and the SFEN below it."""
    first, second = map(format_held, board.hands)
    return "\n".join(
        [
            f"second player in hand: {second}",
            *diagram_rows(board.pieces, FILES),
            f"first player in hand: {first}",
            format_sfen(board),
        ]
    )
