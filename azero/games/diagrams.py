"""Boards of pieces in text: the ranks of FEN and SFEN, diagrams, and positions of stones. Host side
only.

Pieces are given as letters, square by square from the first mover's own rank on; a dot or nothing
is an empty square.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence


def letters_of(
    first: int, kinds: Sequence[int], squares: Iterable[int], letters: Sequence[str]
) -> list[str]:
    """Return the letter of the piece on each of `squares`, in lower case unless it is among
    `first`, the first mover's pieces. `kinds` are the bit planes of the pieces' codes, which are
    indices of `letters`. Sets of squares are integers: bit s is square s."""
    found = []
    for square in squares:
        letter = letters[sum((plane >> square & 1) << bit for bit, plane in enumerate(kinds))]
        found.append(letter if first >> square & 1 else letter.lower())
    return found


def sets_of(pieces: Sequence[str], letters: str) -> list[int]:
    """Return the sets of squares, as `letters_of` takes them, of pieces by square: the first
    mover's, the second mover's, and three bit planes of the codes, which are indices of
    `letters`."""
    codes = [letters.index(piece.upper()) for piece in pieces]
    wanted = [
        [piece.isupper() for piece in pieces],
        [piece.islower() for piece in pieces],
        *([code >> bit & 1 == 1 for code in codes] for bit in range(3)),
    ]
    return [sum(one << square for square, one in enumerate(row)) for row in wanted]


def format_ranks(pieces: Sequence[str], files: int) -> str:
    """Return the pieces as in FEN and SFEN: the far rank first, a run of empty squares as its
    length."""
    rows = []
    for begin in range(len(pieces) - files, -1, -files):
        runs = itertools.groupby(
            pieces[begin : begin + files], key=lambda piece: piece in ("", ".")
        )
        rows.append(
            "".join(str(len(list(run))) if is_empty else "".join(run) for is_empty, run in runs)
        )
    return "/".join(rows)


def parse_ranks(text: str, ranks: int, files: int, letters: str) -> list[str]:
    """Return the pieces that `format_ranks` wrote as one of `letters` each, a dot for an empty
    square.

    Raises:
      ValueError: it is not a board of this size with these pieces.
    """
    rows = text.split("/")
    if len(rows) != ranks:
        raise ValueError(f"there are {len(rows)} ranks, not {ranks}")
    pieces: list[str] = []
    for number, row in zip(range(ranks, 0, -1), rows, strict=True):
        squares = "".join("." * int(one) if one in "12345678"[:files] else one for one in row)
        if wrong := set(squares) - {*letters, *letters.lower(), "."}:
            raise ValueError(
                f"rank {number} has {min(wrong)!r}; pieces are {letters} and {letters.lower()}, "
                f"numbers 1 to {files}"
            )
        if len(squares) != files:
            raise ValueError(f"rank {number} has {len(squares)} squares, not {files}")
        pieces = [*squares, *pieces]
    return pieces


def diagram_rows(pieces: Sequence[str], files: int) -> list[str]:
    """Return the rows of a diagram, the far rank first, each after its number, and the letters of
    the files below them."""
    rows = [
        f"{begin // files + 1} {' '.join(pieces[begin : begin + files])}"
        for begin in range(len(pieces) - files, -1, -files)
    ]
    return [*rows, "  " + " ".join("abcdefgh"[:files])]


def format_held(hand: Mapping[str, int]) -> str:
    """Return the pieces in hand, by letter, for a diagram: "P2 G1", or "-" for none."""
    return " ".join(f"{letter}{count}" for letter, count in hand.items() if count) or "-"


def format_stones(stones: Sequence[int], to_play: int) -> str:
    """Return a position of stones (1 the first mover's, -1 the second's, 0 none) and the side to
    move as text: "X.O...... O"; empty for an empty board with the first mover to move."""
    if not any(stones) and not to_play:
        return ""
    return f"{''.join('.XO'[stone] for stone in stones)} {'XO'[to_play]}"


def parse_stones(text: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return the points of the first and of the second mover's stones, and the side to move, of a
    text of `format_stones`."""
    marks, _, mover = text.partition(" ")
    first, second = (
        tuple(point for point, mark in enumerate(marks) if mark == own) for own in "XO"
    )
    return first, second, int(mover == "O")
