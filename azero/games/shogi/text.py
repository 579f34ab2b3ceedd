"""Shogi in text: SFEN, moves in USI, diagrams. Host side only, with numpy instead of JAX."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from azero.games.diagrams import format_held, format_ranks, letters_of
from azero.games.shogi import legal, moves
from azero.games.shogi import position as positions
from azero.games.shogi.sfen import LETTERS, format_hands, parse_sfen, parse_square, square_name
from azero.games.shogi.squares import SIZE
from azero.types import Array

_LAST = 80
"""Number of the last square, 1a for Black."""


@dataclass(frozen=True)
class ShogiBoard:
    """One position, for display and notation: made from a state (`board_of_state`) or an SFEN
    (`board_of_sfen`); its moves are actions of `moves`."""

    frame: tuple[Array, ...]
    """18 numpy words uint32[1]"""

    @property
    def is_white(self) -> bool:
        """White is to move."""
        return bool(int(self.frame[-1][0]) >> positions.WHITE_BIT & 1)

    @property
    def plies(self) -> int:
        """Moves of the whole game, from the move number of the SFEN."""
        return int(self.frame[-1][0]) >> positions.PLIES_BIT

    @functools.cached_property
    def pieces(self) -> list[str]:
        """The pieces of the 81 squares from 9i, seen from Black's side, as in SFEN (P, +p); empty
        for an empty square."""
        black, *planes = (
            sum(int(word[0]) << 27 * index for index, word in enumerate(squares))
            for squares in positions.board_sets(self.frame)
        )
        return letters_of(black, planes, range(_LAST + 1), LETTERS)

    @property
    def hands(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many pieces of each letter Black and White have in hand."""
        black, white = (
            {
                LETTERS[code]: int(positions.hand_count(self.frame[index], code)[0])
                for code in positions.HAND_KINDS
            }
            for index in (15, 16)
        )
        return black, white

    def view(self, square: int) -> int:
        """Convert a square's number between counting from Black's side and from the mover's
        side."""
        return _LAST - square if self.is_white else square

    @functools.cached_property
    def rules(self) -> legal.ShogiLegal:
        """The legal moves of the position, and check."""
        return legal.legal(self.position)

    @property
    def position(self) -> positions.ShogiPosition:
        """The position from the mover's side."""
        return positions.unpack(self.frame, positions.facts(self.frame[-1]).white)

    @property
    def is_check(self) -> bool:
        """The side to move is in check."""
        return bool(self.rules.in_check[0])

    @functools.cached_property
    def actions(self) -> tuple[int, ...]:
        """The legal actions in ascending order."""
        return tuple(moves.host_actions(moves.start_squares(self.position, self.rules.targets)))

    @functools.cached_property
    def names(self) -> dict[str, int]:
        """The legal actions by their names in USI."""
        return {format_usi(self, action): action for action in self.actions}

    def after(self, action: int) -> "ShogiBoard":
        """Return the board after a legal action."""
        return ShogiBoard(
            tuple(positions.play(self.frame, moves.decode(np.array([action], np.uint32))))  # type: ignore[arg-type]
        )


def board_of_sfen(sfen: str) -> ShogiBoard:
    """Return the board that an SFEN describes.

    Raises:
      ValueError: it is not a position of shogi; what is wrong is named.
    """
    return ShogiBoard(tuple(parse_sfen(sfen).frame))


def board_of_state(state: Any) -> ShogiBoard:
    """Return the board of one `ShogiState`."""
    return board_of_frame(np.asarray(state.frames)[0])


def board_of_frame(frame: np.ndarray) -> ShogiBoard:
    """Return the board of frame uint32[18]."""
    return ShogiBoard(tuple(frame.reshape(-1, 1)))


def format_sfen(board: ShogiBoard) -> str:
    """Return the SFEN."""
    return (
        f"{format_ranks(board.pieces, SIZE)} {'w' if board.is_white else 'b'} "
        f"{format_hands(*board.hands)} {board.plies + 1}"
    )


def format_usi(board: ShogiBoard, action: int) -> str:
    """Return a move in USI notation: 7g7f, 8h2b+, P*5e. An action that would leave the board is "9i
    by -1+2" (files to the mover's right, ranks), with "+" at its end for a promotion.

    Raises:
      ValueError: there is no such action.
    """
    if not 0 <= action < moves.NUM_ACTIONS:
        raise ValueError(f"action {action} is not one of shogi: 0 to {moves.NUM_ACTIONS - 1}")
    square, plane = divmod(action, moves.NUM_PLANES)
    start = square_name(board.view(square))
    if plane >= moves.DROP_PLANES:
        return f"{LETTERS[positions.HAND_KINDS[plane - moves.DROP_PLANES]]}*{start}"
    files, forward = moves.plane_moves()[plane % moves.PROMOTING_PLANES]
    promotion = "+" if plane >= moves.PROMOTING_PLANES else ""
    if not (0 <= square % SIZE + files < SIZE and 0 <= square // SIZE + forward < SIZE):
        return f"{start} by {files:+d}{forward:+d}{promotion}"
    return start + square_name(board.view(square + SIZE * forward + files)) + promotion


@functools.lru_cache(maxsize=1 << 16)
def encode_usi(usi: str, is_white: bool) -> int | None:
    """Return the action of a move in USI of either side, legal or not; None if no piece moves like
    that."""
    if len(usi) < 4:
        return None
    end = parse_square(usi[2:4])
    end = _LAST - end if is_white else end
    if usi[1] == "*":
        kind = positions.HAND_KINDS.index(LETTERS.index(usi[0]))
        return moves.NUM_PLANES * end + moves.DROP_PLANES + kind
    start = parse_square(usi[:2])
    start = _LAST - start if is_white else start
    planes = moves.plane_moves()
    direction = end % SIZE - start % SIZE, end // SIZE - start // SIZE
    if direction not in planes:
        return None
    promotion = moves.PROMOTING_PLANES if usi.endswith("+") else 0
    return moves.NUM_PLANES * start + planes.index(direction) + promotion


def format_diagram(board: ShogiBoard) -> str:
    """Return the board from Black's side with coordinates, the pieces in hand of both, and the SFEN
    below it."""
    black, white = map(format_held, board.hands)
    rows = [
        "".join(f"{piece or '.':>3}" for piece in board.pieces[SIZE * rank : SIZE * rank + SIZE])
        + f"  {'ihgfedcba'[rank]}"
        for rank in range(8, -1, -1)
    ]
    return "\n".join(
        [
            f"White in hand: {white}",
            "  9  8  7  6  5  4  3  2  1",
            *rows,
            f"Black in hand: {black}",
            format_sfen(board),
        ]
    )
