"""The legal moves of a position, as the squares that can be reached in each direction.

A square is reached by at most one piece per compass direction, the first one on the line behind it.
So eight sets of squares for the compass directions (of queens, rooks, bishops, kings, pawns, and
castling as two squares of the king) and eight for the knight's jumps hold every legal move, and no
move is played to test whether it leaves the king in check: pinned pieces stay on their line, and in
check a move must end between king and checker or on the checker.
"""

from typing import NamedTuple

import numpy as np

from azero.games.chess.position import KING, KNIGHT, PAWN, ChessPosition
from azero.games.chess.squares import KNIGHT_JUMPS, ChessSquares, constant, fill, step, steps
from azero.games.compass import (
    COMPASS,
    NE,
    NW,
    SE,
    SW,
    ChecksAndPins,
    E,
    KingLines,
    N,
    W,
    compute_once,
    find_checks_and_pins,
    opposite,
    spread,
    union,
)
from azero.types import Array

NUM_TARGETS = 16
"""Sets of reachable squares: the compass directions, then the knight's jumps."""

_NOTHING = constant(0)
_BOARD = constant((1 << 64) - 1)
_THIRD_RANK = constant(0xFF << 16)
_SHORT_PATH, _LONG_PATH = constant(0b01100000), constant(0b00001100)
_LONG_EMPTY = constant(0b00001110)


class ChessLegal(NamedTuple):
    """The legal moves of a position, and check."""

    targets: list[ChessSquares]
    """NUM_TARGETS sets of squares"""
    in_check: Array
    """bool"""
    can_move: Array
    """bool"""
    en_passant: Array
    """uint32: the file of the double step, if en passant is legal, else zero"""


def legal(position: ChessPosition) -> ChessLegal:
    """Return the legal moves of a position, whose en-passant file may be that of any double
    step."""
    lines = _lines(position)
    checks = _checks_and_pins(position, lines)
    targets, en_passant = _targets(position, lines, checks)
    targets = compute_once(*targets)
    return ChessLegal(targets, ~checks.checkers.is_empty(), ~union(targets).is_empty(), en_passant)


def in_check(position: ChessPosition) -> Array:
    """Return whether the king of the side to move is attacked, bool."""
    return ~_checks_and_pins(position, _lines(position)).checkers.is_empty()


def _sliders(position: ChessPosition, direction: int) -> ChessSquares:
    return position.diagonal_sliders if direction % 2 else position.straight_sliders


def _lines(position: ChessPosition) -> KingLines[ChessSquares]:
    king, empty = position.kind(KING) & position.own, ~position.occupied
    rays = [fill(king, empty, direction) for direction in COMPASS]
    slider_rays = [
        fill(_sliders(position, index) & position.other, empty | king, direction)
        for index, direction in enumerate(COMPASS)
    ]
    computed_once = compute_once(*rays, *slider_rays)
    king_rays = [
        step(ray, direction) for ray, direction in zip(computed_once[:8], COMPASS, strict=True)
    ]
    slider_attacks = [
        step(squares, direction)
        for squares, direction in zip(computed_once[8:], COMPASS, strict=True)
    ]
    return KingLines(king_rays, computed_once[8:], slider_attacks)


def _checks_and_pins(
    position: ChessPosition, lines: KingLines[ChessSquares]
) -> ChecksAndPins[ChessSquares]:
    king, other = position.kind(KING) & position.own, position.other
    pawns, knights = position.kind(PAWN) & other, position.kind(KNIGHT) & other
    near = steps(position.kind(KING) & other, COMPASS)
    attacks = union([near, steps(knights, KNIGHT_JUMPS), steps(pawns, (COMPASS[SE], COMPASS[SW]))])
    jumpers = (knights & steps(king, KNIGHT_JUMPS)) | (
        pawns & steps(king, (COMPASS[NE], COMPASS[NW]))
    )
    sliders = [_sliders(position, direction) & other for direction in range(8)]
    return find_checks_and_pins(position.own, lines, sliders, attacks, jumpers, _BOARD)


def _targets(
    position: ChessPosition, lines: KingLines[ChessSquares], checks: ChecksAndPins[ChessSquares]
) -> tuple[list[ChessSquares], Array]:
    own, empty = position.own, ~position.occupied
    king, pawns = position.kind(KING) & own, position.kind(PAWN) & own
    unpinned = checks.unpinned
    may_go = ~own & checks.check_mask
    targets = []
    for index, direction in enumerate(COMPASS):
        movable = unpinned | checks.pinned[index % 4]
        reached = (
            step(fill(_sliders(position, index) & own & movable, empty, direction), direction)
            & may_go
        )
        if index == N:
            reached = reached | _pushes(pawns & movable, empty) & checks.check_mask
        elif index in (NE, NW):
            reached = reached | (
                step(pawns & movable, direction) & position.other & checks.check_mask
            )
        elif index in (E, W):
            reached = reached | _castling(position, checks, is_short=index == E)
        targets.append(reached | (step(king, direction) & ~own & ~checks.attacked))
    for jump in KNIGHT_JUMPS:
        targets.append(step(position.kind(KNIGHT) & own & unpinned, jump) & may_go)
    en_passant = _NOTHING
    for index in (NE, NW):
        taking = _en_passant(
            position, lines, checks, pawns & (unpinned | checks.pinned[index % 4]), index
        )
        targets[index], en_passant = targets[index] | taking, en_passant | taking
    return targets, en_passant.high >> 8


def _pushes(pawns: ChessSquares, empty: ChessSquares) -> ChessSquares:
    """Return where pawns go by single and double steps."""
    single = step(pawns, COMPASS[N]) & empty
    return single | (step(single & _THIRD_RANK, COMPASS[N]) & empty)


def _castling(
    position: ChessPosition, checks: ChecksAndPins[ChessSquares], is_short: bool
) -> ChessSquares:
    """Return the king's square after castling, if it may: it is not in check and crosses no
    attacked square, and nothing stands between it and the rook."""
    path, between = (_SHORT_PATH, _SHORT_PATH) if is_short else (_LONG_PATH, _LONG_EMPTY)
    blocked = (position.occupied & between) | (checks.attacked & path) | checks.checkers
    has_right = position.castling & np.uint32(1 if is_short else 2)
    allowed = spread(blocked.is_empty() & (has_right != 0))
    return constant(1 << (6 if is_short else 2)).when(allowed)


def _en_passant(
    position: ChessPosition,
    lines: KingLines[ChessSquares],
    checks: ChecksAndPins[ChessSquares],
    pawns: ChessSquares,
    direction: int,
) -> ChessSquares:
    """Return the square on rank 6 where one of `pawns`, moving in `direction`, may capture en
    passant.

    Two pieces leave their lines at once. A pinned capturing pawn stays on its pin line. The
    captured pawn may shield the king on a diagonal, or both pawns together on their rank: then the
    king's ray ends on one of the two, and so does a rook's or queen's from the other side.
    """
    files = position.en_passant
    file_word = files << 8
    end, taken = (
        ChessSquares(files & np.uint32(0), file_word),
        ChessSquares(files & np.uint32(0), files),
    )
    taker = step(end, COMPASS[opposite(direction)]) & pawns
    pair = taker | taken
    diagonal = (
        union(lines.king_rays[d] & lines.slider_attacks[opposite(d)] for d in range(1, 8, 2))
        & taken
    )
    on_rank = [
        ~(lines.king_rays[d] & pair).is_empty()
        & ~(lines.slider_attacks[opposite(d)] & pair).is_empty()
        for d in (E, W)
    ]
    ends_check = ~(checks.check_mask & (end | taken)).is_empty()
    return end.when(
        spread(~taker.is_empty() & diagonal.is_empty() & ~on_rank[0] & ~on_rank[1] & ends_check)
    )
