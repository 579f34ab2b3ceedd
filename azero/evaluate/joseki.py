"""Corner sequences and openings: how often they occur in a set of games, and how that changes (AGZ,
Figure 5).

The moves in one quarter of the board, in the order of play, are that corner's sequence; moves
elsewhere in between do not count. Rotations, reflections and the exchange of colours are folded
together: a sequence is written for the upper right corner, its first player as Black, in the one of
its two reflections whose first move off the diagonal lies above it.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from azero.games.go.sgf import GameRecord
from azero.games.go.text import column_name, format_vertex, parse_vertex

CornerMove = tuple[int, int, int]
"""(0 the corner's first player, 1 the other; lines from the nearer side edge and from the top edge,
from 0)."""
Corner = tuple[CornerMove, ...]
CORNER_MOVES, OPENING_MOVES = 5, 3
"""Moves of the corner sequences and of the openings that a run counts; a choice."""


@dataclass(frozen=True)
class Frequency:
    """The frequency of a sequence."""

    sequence: str
    """As `parse_sequence` reads it."""
    corners: int
    games: int
    """Games with it in at least one corner."""
    shares: tuple[float, ...]
    """Share of the games of each part, oldest first."""


def corner_sequences(record: GameRecord, most_moves: int) -> list[Corner]:
    """Return the first moves of the (up to four) corners of a game that have any; set-up stones
    leave a corner out.

    Raises:
      ValueError: the board is not square.
    """
    size = record.size
    side = size // 2  # the middle lines of an odd board belong to no corner
    spoiled = {
        corner
        for point in (*record.black_points, *record.white_points)
        if (corner := _corner_of(point, size, side))
    }
    found: dict[tuple[bool, bool], list[CornerMove]] = {}
    for colour, action in record.moves:
        corner = _corner_of(action, size, side)
        if corner is None or corner in spoiled or len(found.setdefault(corner, [])) >= most_moves:
            continue
        row, column = divmod(action, size)
        found[corner].append(
            (
                colour,
                size - 1 - column if corner[1] else column,
                size - 1 - row if corner[0] else row,
            )
        )
    return [canonical(moves) for moves in found.values()]


def _corner_of(action: int, size: int, side: int) -> tuple[bool, bool] | None:
    """Return (below, right) of the corner that a point is in; None for the middle of the board and
    for a pass."""
    row, column = divmod(action, size)
    if row >= size or side <= row < size - side or side <= column < size - side:
        return None
    return row >= side, column >= side


def canonical(moves: Sequence[CornerMove]) -> Corner:
    """Return the form of a corner's moves that colours and the reflection at its diagonal do not
    change."""
    first = moves[0][0]
    mine = [(int(colour != first), side, top) for colour, side, top in moves]
    off = next(((side, top) for _, side, top in mine if side != top), (1, 0))
    return (
        tuple(mine) if off[0] > off[1] else tuple((colour, top, side) for colour, side, top in mine)
    )


def parse_sequence(text: str, size: int = 19) -> Corner:
    """Return the canonical form of a sequence written as vertices of one corner, players in turn:
    "Q16 O17 R14"; "-" is a player's move elsewhere.

    Raises:
      ValueError: a word is no vertex, lies in another corner than the first, or there is none.
    """
    moves = [
        (ply % 2, parse_vertex(word, (size, size)))
        for ply, word in enumerate(text.split())
        if word != "-"
    ]
    record = GameRecord(text, (size, size), None, tuple(moves))
    corners = corner_sequences(record, len(moves))
    if len(corners) != 1 or len(corners[0]) != len(moves):
        raise ValueError(
            f"{text!r} is not a corner sequence: it needs vertices of one quarter of a "
            f"{size}x{size} board, such as Q16 O17 R14"
        )
    return corners[0]


def format_sequence(corner: Corner, size: int = 19) -> str:
    """Return a sequence as vertices of the upper right corner; a player who moves twice in a row
    has "-" in between."""
    words: list[str] = []
    for colour, side, top in corner:
        if len(words) % 2 != colour:
            words.append("-")
        words.append(f"{column_name(size - 1 - side)}{size - top}")
    return " ".join(words)


def format_opening(record: GameRecord, moves: int = OPENING_MOVES) -> str:
    """Return the first moves of a game on a square board as vertices, of the eight equivalent
    orientations in that whose first moves are nearest to the upper edge, then to the right one; ""
    for a shorter game."""
    first = [action for _, action in record.moves[:moves]]
    if len(first) < moves:
        return ""
    size, last = record.size, record.size - 1
    points = [divmod(action, size) for action in first]

    def oriented(flip_rows: bool, flip_columns: bool, transpose: bool) -> list[tuple[int, int]]:
        found = []
        for row, column in points:
            if row < size:  # not a pass
                row, column = (
                    last - row if flip_rows else row,
                    last - column if flip_columns else column,
                )
                row, column = (column, row) if transpose else (row, column)
            found.append((row, -column))
        return found

    best = min(oriented(*which) for which in itertools.product((False, True), repeat=3))
    return " ".join(format_vertex(size * row - column, (size, size)) for row, column in best)


def count_openings(records: Iterable[GameRecord]) -> tuple[Counter[str], Counter[str]]:
    """Return the number of games with each corner sequence of CORNER_MOVES moves, and with each
    opening of OPENING_MOVES moves."""
    corners, openings = Counter[str](), Counter[str]()
    for record in records:
        found = corner_sequences(record, CORNER_MOVES)
        corners.update({format_sequence(c, record.size) for c in found if len(c) == CORNER_MOVES})
        openings.update(filter(None, [format_opening(record)]))
    return corners, openings


def count_sequences(
    parts: Sequence[Iterable[GameRecord]],
    wanted: Sequence[Corner] = (),
    length: int = 5,
    most: int = 20,
) -> list[Frequency]:
    """Count sequences over the parts of a set of games on square boards of one size, oldest part
    first: the `wanted` ones, or without any the `most` common ones of `length` moves."""
    lengths = {len(sequence) for sequence in wanted} or {length}
    corners: Counter[Corner] = Counter()
    in_games: list[Counter[Corner]] = []
    totals: list[int] = []
    size = 19
    for part in parts:
        in_games.append(Counter())
        totals.append(0)
        for record in part:
            size = record.size
            found = [
                corner[:moves]
                for corner in corner_sequences(record, max(lengths))
                for moves in lengths
                if len(corner) >= moves
            ]
            corners.update(found)
            in_games[-1].update(set(found))
            totals[-1] += 1
    chosen = list(wanted) or [sequence for sequence, _ in corners.most_common(most)]
    return [
        Frequency(
            format_sequence(sequence, size),
            corners[sequence],
            sum(games[sequence] for games in in_games),
            tuple(
                games[sequence] / total if total else 0.0
                for games, total in zip(in_games, totals, strict=True)
            ),
        )
        for sequence in chosen
    ]
