"""Chess endings for training: random positions with given pieces, as a file for
`--game.start-positions`.

python -m azero.commands.endings --pieces KQk KRk --count 4000 --out endings.txt
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from azero.config import check_range
from azero.console.interrupts import end_in_one_line
from azero.console.tables import count_of
from azero.games.chess.text import board_of_fen, format_fen
from azero.games.diagrams import format_ranks

MAX_TRIES = 1000
"""Random placements tried for one position before giving up."""


@dataclass(frozen=True)
class EndingsRequest:
    """What positions to make."""

    out: Path
    """The file to write, one FEN per line."""
    pieces: tuple[str, ...] = ("KQk", "KRk")
    """The pieces of each ending, White's as capitals; colours are swapped in every other
    position."""
    count: int = 4000
    """Total number of positions, divided equally among the endings."""
    attacker_moves: Annotated[float, tyro.conf.arg(name="attacker-moves")] = 0.75
    """Share of the positions in which the side with capital letters is to move."""
    at_edge: Annotated[float, tyro.conf.arg(name="at-edge")] = 0.0
    """Share of the positions with the lower-case king at the edge and the other king two or three
    squares away. Mates are short there, so an untrained network finds them and then learns longer
    ones."""
    seed: int = 0
    """Random seed."""


def write_endings(request: EndingsRequest) -> int:
    """Write the file and return how many different positions it holds.

    Raises:
      ValueError: the pieces are not an ending of chess, or the file cannot be written; it is
        quoted.
    """
    for pieces in request.pieces:
        if (
            pieces.count("K") != 1
            or pieces.count("k") != 1
            or set(pieces) - set("KQRBNPkqrbnp")
            or len(pieces) > 32
        ):
            raise ValueError(
                f"{pieces!r} are not the pieces of an ending; they are one K, one k and "
                f"some of QRBNP and qrbnp, such as KQk"
            )
    check_range(request, "--", "attacker_moves at_edge", 0, 1)
    check_range(request, "--", "count", 1)
    rng = np.random.default_rng(request.seed)
    streams = [
        random_endings(pieces, rng, request.attacker_moves, request.at_edge)
        for pieces in request.pieces
    ]
    lines = list(
        dict.fromkeys(next(streams[number % len(streams)]) for number in range(request.count))
    )
    try:
        request.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {request.out}: {error.strerror}") from error
    return len(lines)


def random_endings(
    pieces: str, rng: np.random.Generator, attacker_moves: float, at_edge: float = 0.0
) -> Iterator[str]:
    """Yield random positions with these pieces, in which there is a legal move and the side that
    has moved is not in check, without end.

    Raises:
      ValueError: no position with these pieces is found.
    """
    is_exchanged = False
    while True:
        tries = (
            _playable(_place(pieces, rng, attacker_moves, at_edge, is_exchanged))
            for _ in range(MAX_TRIES)
        )
        fen = next(filter(None, tries), "")
        if not fen:
            raise ValueError(f"no position with the pieces {pieces} was found in {MAX_TRIES} tries")
        is_exchanged = not is_exchanged
        yield fen


def _playable(fen: str) -> str:
    """Return the FEN of the position as it is usually written, or nothing if the rules do not allow
    it or the side to move has no move."""
    try:
        board = board_of_fen(fen)
    except ValueError:
        return ""
    return format_fen(board) if board.actions else ""


def _place(
    pieces: str, rng: np.random.Generator, attacker_moves: float, at_edge: float, is_exchanged: bool
) -> str:
    """Return the FEN of the pieces on random squares, pawns on the second to seventh rank, kings
    together at the edge in a share of `at_edge`."""
    board, others = ["."] * 64, pieces
    if at_edge and rng.random() < at_edge:
        cornered, other = _kings_at_edge(rng)
        board[cornered], board[other] = ("K", "k") if is_exchanged else ("k", "K")
        others = pieces.replace("K", "").replace("k", "")
    for piece in sorted(others, key=lambda piece: piece not in "Pp"):
        free = [
            square
            for square, taken in enumerate(board)
            if taken == "." and (piece not in "Pp" or 8 <= square < 56)
        ]
        board[int(rng.choice(free))] = piece.swapcase() if is_exchanged else piece
    is_white = (rng.random() < attacker_moves) != is_exchanged
    return f"{format_ranks(board, 8)} {'w' if is_white else 'b'} - - 0 1"


def _kings_at_edge(rng: np.random.Generator) -> tuple[int, int]:
    """Return a square of the edge and another two or three steps of a king away."""
    edge = int(
        rng.choice(
            [square for square in range(64) if square % 8 in (0, 7) or square // 8 in (0, 7)]
        )
    )
    near = [
        square
        for square in range(64)
        if max(abs(square % 8 - edge % 8), abs(square // 8 - edge // 8)) in (2, 3)
    ]
    return edge, int(rng.choice(near))


def main(arguments: list[str] | None = None) -> None:
    """Write a file of endings as the command line says."""
    prog = "python -m azero.commands.endings"
    request = tyro.cli(EndingsRequest, prog=prog, description=__doc__, args=arguments)
    print(f"{request.out}: {count_of(write_endings(request), 'position')}")


if __name__ == "__main__":
    with end_in_one_line():
        main()
