"""The legal moves of a position, as the squares that can be reached in each direction.

A man reaches a square in at most one way per compass direction: whoever stands first on the line behind it. So eight sets of squares for the compass
directions (of queens, rooks, bishops, kings, pawns, and castling as two squares of the king) and eight for the knight's jumps hold every legal move, and no
move is made to see whether it leaves the king in check: pinned men keep to their line, and in check a move has to end between king and checker or on it.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from azero.games.chess.position import KING, KNIGHT, PAWN, Position
from azero.games.chess.squares import (
    COMPASS,
    KNIGHT_JUMPS,
    NE,
    NW,
    SE,
    SW,
    E,
    N,
    Squares,
    W,
    choose,
    constant,
    fill,
    opposite,
    pick,
    settle,
    spread,
    step,
    union_of_directions,
)
from azero.types import Array

TARGET_WORDS = 32
"""Words of all sets of reachable squares."""

_BACK = opposite(COMPASS)
_THIRD_RANK = constant(0xFF << 16)
_SHORT_PATH, _LONG_PATH, _LONG_EMPTY = constant(0b01100000), constant(0b00001100), constant(0b00001110)
_SHORT_END, _LONG_END = constant(1 << 6), constant(1 << 2)


class Targets(NamedTuple):
    """The squares that the mover's men can legally reach, words [2, 4, B] for eight directions each."""

    compass: Squares
    jumps: Squares


class Legal(NamedTuple):
    """What the rules say about a position."""

    targets: Targets
    in_check: Array
    """bool"""
    can_move: Array
    """bool"""
    en_passant: Array
    """uint32: the file of the double step, if taking in passing is legal, else zero"""


class _Lines(NamedTuple):
    """The eight lines from the king, words [2, 4, B]."""

    sight: Squares
    """what the king sees, up to and with the first man"""
    hits: Squares
    """what the enemy's sliders attack towards the king's side, the king not in the way"""
    between: Squares
    """the squares from the king to a slider that checks it, with the slider"""


class _Guard(NamedTuple):
    """What restricts the mover's men, words [B]."""

    attacked: Squares
    """squares where the king would stand in check"""
    unpinned: Squares
    """squares without a man that shields the king"""
    answers: Squares
    """where a man other than the king may go: everywhere, or where it ends a check"""
    checkers: Squares


def legal(position: Position) -> Legal:
    """Return the legal moves of a position, words [B], whose en-passant file may be that of any double step."""
    lines = _lines(position)
    guard = _guard(position, lines)
    movable = guard.unpinned | _shields_by_line(position, lines)
    pawns = position.kind(PAWN) & position.own
    taking, passing = _passing(position, lines, guard, pawns & movable)
    reached = _slides(position, guard, movable) | _king_steps(position, guard) | _pawn_moves(position, guard, pawns, movable) | taking
    jumps = step(position.kind(KNIGHT) & position.own & guard.unpinned, KNIGHT_JUMPS) & ~position.own & guard.answers
    targets = Targets(*settle(reached, jumps))
    anything = union_of_directions(targets.compass | targets.jumps)
    return Legal(targets, ~guard.checkers.is_empty(), ~anything.is_empty(), passing)


@functools.cache
def _gate(*directions: int) -> Array:
    """Return words [2, 4, 1], ones in the given directions, zeros in the others."""
    chosen = np.isin(np.arange(8), directions).reshape(2, 4, 1)
    return np.where(chosen, np.uint32(0xFFFFFFFF), np.uint32(0))  # type: ignore[return-value]


def _sliders(position: Position) -> Squares:
    """Return the men of both sides that slide in each direction, words [2, 4, B]."""
    return choose(_gate(NE, SE, SW, NW), position.diagonal_sliders, position.straight_sliders)


def _lines(position: Position) -> _Lines:
    king, empty = position.kind(KING) & position.own, ~position.occupied
    rays = fill(king, empty, COMPASS)
    fire = fill(_sliders(position) & position.other, empty | king, _BACK)
    rays, fire = settle(rays, fire)
    sight = step(rays, COMPASS)
    return _Lines(*settle(sight, step(fire, _BACK), sight & fire))


def _shields_by_line(position: Position, lines: _Lines) -> Squares:
    """Return for each direction the men that shield the king on that line, words [2, 4, B]."""
    pinned = lines.sight & lines.hits & position.own
    return Squares(*(half[:1] | half[1:] for half in pinned))


def _guard(position: Position, lines: _Lines) -> _Guard:
    king, other = position.kind(KING) & position.own, position.other
    pawns, knights = position.kind(PAWN) & other, position.kind(KNIGHT) & other
    near = step(position.kind(KING) & other, COMPASS) | step(knights, KNIGHT_JUMPS) | step(pawns, COMPASS).when(_gate(SE, SW))
    attacks = lines.hits | near
    checks = lines.between & _sliders(position) & other
    jumpers = (knights & step(king, KNIGHT_JUMPS)) | (pawns & step(king, COMPASS).when(_gate(NE, NW)))
    attacks, checks, ways, pinned = settle(attacks, checks | jumpers, lines.between | jumpers, lines.sight & lines.hits & position.own)
    attacked, checkers, between, shields = map(union_of_directions, (attacks, checks, ways, pinned))
    free, one = spread(checkers.is_empty()), spread(~checkers.has_several())
    return _Guard(*settle(attacked, ~shields, between.when(one) | Squares(free, free), checkers))


def _slides(position: Position, guard: _Guard, movable: Squares) -> Squares:
    """Return where queens, rooks and bishops go, words [2, 4, B]."""
    reached = fill(_sliders(position) & position.own & movable, ~position.occupied, COMPASS)
    return step(reached, COMPASS) & ~position.own & guard.answers


def _king_steps(position: Position, guard: _Guard) -> Squares:
    """Return where the king goes, words [2, 4, B], with castling."""
    steps = step(position.kind(KING) & position.own, COMPASS) & ~position.own & ~guard.attacked
    short = _castling(position, guard, 1, _SHORT_PATH, _SHORT_PATH)
    long = _castling(position, guard, 2, _LONG_PATH, _LONG_EMPTY)
    return steps | _SHORT_END.when(short & _gate(E)) | _LONG_END.when(long & _gate(W))


def _castling(position: Position, guard: _Guard, right: int, path: Squares, between: Squares) -> Array:
    """Return words of ones where the king may castle: it is not in check and crosses no attacked square, and nothing stands between it and the rook."""
    blocked = (position.occupied & between) | (guard.attacked & path) | guard.checkers
    return spread(blocked.is_empty() & ((position.castling & np.uint32(right)) != 0))


def _pawn_moves(position: Position, guard: _Guard, pawns: Squares, movable: Squares) -> Squares:
    """Return where pawns go, words [2, 4, B], except in passing."""
    empty = ~position.occupied
    takes = step(pawns & movable, COMPASS) & position.other & guard.answers
    single = _forward(pawns & pick(movable, N)) & empty
    double = _forward(single & _THIRD_RANK) & empty
    return takes.when(_gate(NE, NW)) | ((single | double) & guard.answers).when(_gate(N))


def _forward(squares: Squares) -> Squares:
    """Return the set moved one rank forward."""
    return Squares(squares.low << 8, (squares.high << 8) | (squares.low >> 24))


def _passing(position: Position, lines: _Lines, guard: _Guard, pawns: Squares) -> tuple[Squares, Array]:
    """Return where pawns take in passing, words [2, 4, B], and the file of the taken pawn if any of them may, uint32[B].

    Two men leave lines at once. The taker keeps to its pin like any man. The taken pawn may shield the king on a diagonal, or both together on their rank: then
    the king's view ends on one of the two, and so does a rook's or queen's from the other side.
    """
    file = position.en_passant
    nothing = file & np.uint32(0)
    end, taken = Squares(nothing, file << 8), Squares(nothing, file)
    taker = step(end, _BACK) & pawns.when(_gate(NE, NW))
    diagonal = union_of_directions((lines.sight & lines.hits).when(_gate(NE, SE, SW, NW))) & taken
    answers = ~(guard.answers & (end | taken)).is_empty()
    allowed = ~taker.is_empty() & diagonal.is_empty() & answers
    for direction in (E, W):
        seen, hit = pick(lines.sight, direction), pick(lines.hits, direction)
        pair = taker | taken
        allowed = allowed & ((seen & pair).is_empty() | (hit & pair).is_empty())
    (taking,) = settle(end.when(spread(allowed)))
    return taking, union_of_directions(taking).high >> 8
