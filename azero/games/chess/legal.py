"""The legal moves of a position, as the squares that can be reached in each direction.

A piece reaches a square in at most one way per compass direction: that of the first piece on the
line behind it. So eight sets of squares for the compass directions (of queens, rooks, bishops,
kings, pawns, and castling as two squares of the king) and eight for the knight's jumps hold every
legal move, and no move is made to see whether it leaves the king in check: pinned pieces keep to
their line, and in check a move has to end between king and checker or on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from azero.games.chess.position import KING, KNIGHT, PAWN, ChessPosition
from azero.games.chess.squares import (
    KNIGHT_JUMPS,
    ChessSquares,
    compute_once,
    constant,
    fill,
    step,
    steps,
)
from azero.games.compass import (
    COMPASS,
    NE,
    NW,
    SE,
    SW,
    E,
    Guard,
    N,
    W,
    guard_of,
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
    """What the rules say about a position."""

    targets: list[ChessSquares]
    """NUM_TARGETS sets of squares"""
    in_check: Array
    """bool"""
    can_move: Array
    """bool"""
    en_passant: Array
    """uint32: the file of the double step, if taking in passing is legal, else zero"""


class _Lines(NamedTuple):
    """The eight lines through the king, one entry per compass direction."""

    sight: list[ChessSquares]
    """what the king sees, up to and with the first piece"""
    fire: list[ChessSquares]
    """the enemy's sliders of that direction and the empty squares they pass, the king not in the
    way"""
    hits: list[ChessSquares]
    """the squares that they attack"""


def legal(position: ChessPosition) -> ChessLegal:
    """Return the legal moves of a position, whose en-passant file may be that of any double
    step."""
    lines = _lines(position)
    guard = _guard(position, lines)
    targets, passing = _targets(position, lines, guard)
    targets = compute_once(*targets)
    return ChessLegal(targets, ~guard.checkers.is_empty(), ~union(targets).is_empty(), passing)


def _sliders(position: ChessPosition, direction: int) -> ChessSquares:
    return position.diagonal_sliders if direction % 2 else position.straight_sliders


def _lines(position: ChessPosition) -> _Lines:
    king, empty = position.kind(KING) & position.own, ~position.occupied
    rays = [fill(king, empty, direction) for direction in COMPASS]
    fire = [
        fill(_sliders(position, index) & position.other, empty | king, direction)
        for index, direction in enumerate(COMPASS)
    ]
    computed_once = compute_once(*rays, *fire)
    sight = [
        step(ray, direction) for ray, direction in zip(computed_once[:8], COMPASS, strict=True)
    ]
    hits = [
        step(squares, direction)
        for squares, direction in zip(computed_once[8:], COMPASS, strict=True)
    ]
    return _Lines(sight, computed_once[8:], hits)


def _guard(position: ChessPosition, lines: _Lines) -> Guard[ChessSquares]:
    king, other = position.kind(KING) & position.own, position.other
    pawns, knights = position.kind(PAWN) & other, position.kind(KNIGHT) & other
    near = steps(position.kind(KING) & other, COMPASS)
    attacks = union([near, steps(knights, KNIGHT_JUMPS), steps(pawns, (COMPASS[SE], COMPASS[SW]))])
    jumpers = (knights & steps(king, KNIGHT_JUMPS)) | (
        pawns & steps(king, (COMPASS[NE], COMPASS[NW]))
    )
    runners = [_sliders(position, direction) & other for direction in range(8)]
    return guard_of(position.own, lines, runners, attacks, jumpers, _BOARD, compute_once)


def _targets(
    position: ChessPosition, lines: _Lines, guard: Guard[ChessSquares]
) -> tuple[list[ChessSquares], Array]:
    own, empty = position.own, ~position.occupied
    king, pawns = position.kind(KING) & own, position.kind(PAWN) & own
    unpinned = guard.unpinned
    may_go = ~own & guard.answers
    targets = []
    for index, direction in enumerate(COMPASS):
        movable = unpinned | guard.pinned[index % 4]
        reached = (
            step(fill(_sliders(position, index) & own & movable, empty, direction), direction)
            & may_go
        )
        if index == N:
            reached = reached | _pushes(pawns & movable, empty) & guard.answers
        elif index in (NE, NW):
            reached = reached | (step(pawns & movable, direction) & position.other & guard.answers)
        elif index in (E, W):
            reached = reached | _castling(position, guard, is_short=index == E)
        targets.append(reached | (step(king, direction) & ~own & ~guard.attacked))
    for jump in KNIGHT_JUMPS:
        targets.append(step(position.kind(KNIGHT) & own & unpinned, jump) & may_go)
    passing = _NOTHING
    for index in (NE, NW):
        taking = _passing(
            position, lines, guard, pawns & (unpinned | guard.pinned[index % 4]), index
        )
        targets[index], passing = targets[index] | taking, passing | taking
    return targets, passing.high >> 8


def _pushes(pawns: ChessSquares, empty: ChessSquares) -> ChessSquares:
    """Return where pawns go by single and double steps."""
    single = step(pawns, COMPASS[N]) & empty
    return single | (step(single & _THIRD_RANK, COMPASS[N]) & empty)


def _castling(position: ChessPosition, guard: Guard[ChessSquares], is_short: bool) -> ChessSquares:
    """Return the king's square after castling, if it may: it is not in check and crosses no
    attacked square, and nothing stands between it and the rook."""
    path, between = (_SHORT_PATH, _SHORT_PATH) if is_short else (_LONG_PATH, _LONG_EMPTY)
    blocked = (position.occupied & between) | (guard.attacked & path) | guard.checkers
    has_right = position.castling & np.uint32(1 if is_short else 2)
    allowed = spread(blocked.is_empty() & (has_right != 0))
    return constant(1 << (6 if is_short else 2)).when(allowed)


def _passing(
    position: ChessPosition,
    lines: _Lines,
    guard: Guard[ChessSquares],
    pawns: ChessSquares,
    direction: int,
) -> ChessSquares:
    """Return the square on rank 6 where one of `pawns`, moving in `direction`, may take in passing.

    Two pieces leave lines at once. The taker keeps to its pin like any piece. The taken pawn may
    shield the king on a diagonal, or both together on their rank: then the king's view ends on one
    of the two, and so does a rook's or queen's from the other side.
    """
    files = position.en_passant
    file_word = files << 8
    end, taken = (
        ChessSquares(files & np.uint32(0), file_word),
        ChessSquares(files & np.uint32(0), files),
    )
    taker = step(end, COMPASS[opposite(direction)]) & pawns
    pair = taker | taken
    diagonal = union(lines.sight[d] & lines.hits[opposite(d)] for d in range(1, 8, 2)) & taken
    on_rank = [
        ~(lines.sight[d] & pair).is_empty() & ~(lines.hits[opposite(d)] & pair).is_empty()
        for d in (E, W)
    ]
    answers = ~(guard.answers & (end | taken)).is_empty()
    return end.when(
        spread(~taker.is_empty() & diagonal.is_empty() & ~on_rank[0] & ~on_rank[1] & answers)
    )
