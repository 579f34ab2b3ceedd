"""A board of Go for one rollout after another, compiled by Numba: it keeps chains, the cells of
patterns and their codes up to date.

Points have numbers on a board with a margin (`Board`) in here, and 0 to H W - 1 outside. What a
move changes is little: codes around stones whose chain got another number of liberties, of 1, 2 or
more.

The first run compiles for some seconds; Numba keeps the result on disk until the file of a function
changes (not where another does: then remove `__pycache__`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit

from azero.games.go.alphago2016.patterns import DIAMOND, FACTORS

F = TypeVar("F", bound=Callable[..., Any])

BLACK, WHITE, EMPTY, _MARGIN = range(4)
POINT = np.dtype(  # what is passed on is 64 bits wide, so that every function is compiled once
    [
        ("colour", "i8"),
        ("level", "i1"),  # of a chain's first stone: its liberties, at most 3
        ("row", "i2"),
        ("number", "i2"),  # outside
        ("chain", "i8"),  # the first stone of the stone's chain
        ("next", "i2"),  # stone of the chain, in a circle
        ("num_stones", "i2"),  # of a chain's first stone, like the next two
        ("liberties", "i2"),
        ("place", "i2"),  # in `Board.atari`, where the level is 1
        ("changed", "i4"),  # the time when last noted in `Board.changed`
        ("taken", "i4"),  # the time when a stone was last captured here
        ("saves", "i4"),  # the draw before which a move here last saved stones
    ]
)
TIME, NUM_CHANGED, NUM_CAPTURED, NUM_RAISED, NUM_DRAWS, NUM_ATARI = range(6)
"""Indices into `Board.counts`; Black's and White's number of chains in atari are the last two."""
OFF_BOARD = 7
_UP, _LEFT, _RIGHT, _DOWN = (DIAMOND.index(side) for side in ((-1, 0), (0, -1), (0, 1), (1, 0)))
SIDES = (_UP, _LEFT, _RIGHT, _DOWN)
DIAGONALS = tuple(DIAMOND.index(side) for side in ((-1, -1), (-1, 1), (1, -1), (1, 1)))
_ROWS, _COLUMNS = (np.array([side[axis] for side in DIAMOND]) for axis in (0, 1))
_FACTORS = np.array(FACTORS, np.int64)


class Board(NamedTuple):
    """A board of S = (H + 4) (W + 2) points, with two free rows above and below it, and two free
    columns between a row and the next; viewers are Black and White."""

    height: int
    width: int
    points: np.ndarray
    """POINT[S]"""
    cells: np.ndarray
    """int32[2, S], by viewer: see `patterns`"""
    codes: np.ndarray
    """int64[2, S], by viewer: the sum of the cells around a point times `patterns.FACTORS`"""
    weights: np.ndarray
    """float64[2, S], by side to move: the odds of a move there, zero where it is not allowed"""
    sums: np.ndarray
    """float64[2, H]: the weights of a row, where it is not stale"""
    is_stale: np.ndarray
    """bool[2, H]"""
    atari: np.ndarray
    """int64[2, H W]: the first stones of a side's chains with one liberty"""
    changed: np.ndarray
    """int64[S]: the points with another cell, or other cells around them, since the last move"""
    captured: np.ndarray
    """int64[H W]: the stones that the last move captured"""
    raised: np.ndarray
    """int64[3 H W + 1]: points whose weight is raised for one draw, and may be more than once"""
    before: np.ndarray
    """float64[3 H W + 1]: their weights before"""
    offsets: np.ndarray
    """int64[12]: from a point to the points of `patterns.DIAMOND`"""
    factors: np.ndarray
    """int64[13]: `patterns.FACTORS`"""
    counts: np.ndarray
    """int64[7]"""


def compile_function(function: F) -> F:
    """Compile a function at its first call, unless that is on disk already."""
    return cast(F, njit(function, cache=True, nogil=True, error_model="numpy"))


@compile_function
def new_board(shape: tuple[int, int]) -> Board:
    """Return an empty board; its weights are not computed."""
    height, width = shape
    stride, num_points = width + 2, height * width
    size = (height + 4) * stride
    board = Board(
        height,
        width,
        np.zeros(size, POINT),
        np.full((2, size), OFF_BOARD, np.int32),
        np.zeros((2, size), np.int64),
        np.zeros((2, size)),
        np.zeros((2, height)),
        np.ones((2, height), np.bool_),
        np.empty((2, num_points), np.int64),
        np.empty(size, np.int64),
        np.empty(num_points, np.int64),
        np.empty(3 * num_points + 1, np.int64),
        np.empty(3 * num_points + 1),
        _ROWS * stride + _COLUMNS,
        _FACTORS.copy(),
        np.zeros(7, np.int64),
    )
    board.points["colour"][:] = _MARGIN
    for row in range(height):
        for column in range(width):
            number = row * width + column
            place = board.points[point_of(board, number)]
            place.colour, place.row, place.number = EMPTY, row, number
            board.cells[:, point_of(board, number)] = 0
    for number in range(num_points):
        point, code = point_of(board, number), 0
        for i in range(8):
            code += board.cells[0, point + board.offsets[i]] * board.factors[i]
        board.codes[:, point] = code
    return board


@compile_function
def point_of(board: Board, number: int) -> int:
    row, column = divmod(number, board.width)
    return (row + 2) * (board.width + 2) + column


@compile_function
def set_up(board: Board, now: np.ndarray, before: np.ndarray, to_play: int) -> tuple[int, int]:
    """Place the stones int64[N] on an empty board, and note what the last move captured; return the
    last move and the ko point, -1 where there is none. Every point counts as changed."""
    for number in range(len(now)):  # a point of a chain to be is empty: nothing is captured
        if now[number] != EMPTY:
            place(board, now[number], point_of(board, number))
    last, num_new = -1, 0
    counts = board.counts
    counts[TIME] += 1
    counts[NUM_CHANGED] = counts[NUM_CAPTURED] = 0
    for number in range(len(now)):
        point = point_of(board, number)
        board.changed[number] = point
        if now[number] == 1 - to_play and before[number] != 1 - to_play:
            last, num_new = point, num_new + 1
        if before[number] == to_play and now[number] != to_play:
            board.captured[counts[NUM_CAPTURED]] = point
            board.points[point].taken = counts[TIME]
            counts[NUM_CAPTURED] += 1
    counts[NUM_CHANGED] = len(now)
    if num_new != 1:  # a pass, the start, or stones that were set up
        counts[NUM_CAPTURED] = 0
        return -1, -1
    return last, _ko_point(board, last)


@compile_function
def _ko_point(board: Board, last: int) -> int:
    """Return the point of a single stone that was captured by one that could be recaptured, else
    -1."""
    chain = board.points[board.points[last].chain]
    is_ko = board.counts[NUM_CAPTURED] == 1 and chain.num_stones == 1 and chain.liberties == 1
    return board.captured[0] if is_ko else -1


@compile_function
def place(board: Board, colour: int, point: int) -> int:
    """Place a stone where that is no suicide, capture, and return the ko point or -1."""
    points, counts = board.points, board.counts
    counts[TIME] += 1
    counts[NUM_CHANGED] = counts[NUM_CAPTURED] = 0
    first = point
    for i in SIDES:
        side = points[point + board.offsets[i]]
        if side.colour <= WHITE and _is_first(board, point, i):
            chain = points[side.chain]
            chain.liberties -= 1
            if side.colour == colour and (
                first == point or chain.num_stones > points[first].num_stones
            ):
                first = side.chain
    if first == point:
        new = points[point]
        new.next, new.num_stones, new.liberties, new.level = point, 0, 0, 0
    _join(board, colour, point, first)
    for i in SIDES:
        side = points[point + board.offsets[i]]
        if side.colour == colour and side.chain != first:
            _absorb(board, side.chain, first)
        elif side.colour == 1 - colour and points[side.chain].liberties == 0:
            _capture(board, side.chain)
    _set_level(board, first)
    for i in SIDES:
        if points[point + board.offsets[i]].colour == 1 - colour:
            _set_level(board, points[point + board.offsets[i]].chain)
    for i in range(counts[NUM_CAPTURED]):
        for j in SIDES:
            side = points[board.captured[i] + board.offsets[j]]
            if side.colour == colour:
                _set_level(board, side.chain)
    return _ko_point(board, point)


@compile_function
def _is_first(board: Board, point: int, index: int) -> bool:
    """Return whether no earlier side of `point` has a stone of the same chain as side `index`."""
    chain = board.points[point + board.offsets[index]].chain
    for i in SIDES:
        if i == index:
            return True
        other = board.points[point + board.offsets[i]]
        if other.colour <= WHITE and other.chain == chain:
            return False
    return True


@compile_function
def _join(board: Board, colour: int, point: int, first: int) -> None:
    """Make a stone one of the chain of `first`; its new liberties are those of the stone that have
    no stone of the chain next to them yet."""
    points, chain = board.points, board.points[first]
    for i in SIDES:
        free = point + board.offsets[i]
        if points[free].colour != EMPTY:
            continue
        is_new = True
        for j in SIDES:
            side = points[free + board.offsets[j]]
            if side.colour <= WHITE and side.chain == first:
                is_new = False
        chain.liberties += is_new
    stone = points[point]
    stone.colour, stone.chain = colour, first
    if point != first:
        stone.next, chain.next = chain.next, point
    chain.num_stones += 1
    if chain.level:
        _write(board, point, colour, chain.level)


@compile_function
def _absorb(board: Board, other: int, first: int) -> None:
    """Make the stones of the chain of `other` stones of the chain of `first`."""
    points = board.points
    colour = points[other].colour
    if points[other].level == 1:
        _leave_atari(board, other)
    point, size = other, points[other].num_stones
    for _ in range(size):
        following = points[point].next
        _join(board, colour, point, first)
        point = following


@compile_function
def _capture(board: Board, first: int) -> None:
    """Take a chain off the board, and give its neighbours their liberties."""
    points, counts = board.points, board.counts
    if points[first].level == 1:
        _leave_atari(board, first)
    colour, point = points[first].colour, first
    for _ in range(points[first].num_stones):
        board.captured[counts[NUM_CAPTURED]] = point
        counts[NUM_CAPTURED] += 1
        stone = points[point]
        stone.colour, stone.taken = EMPTY, counts[TIME]
        _write(board, point, colour, 0)
        for i in SIDES:
            side = points[point + board.offsets[i]]
            if side.colour == 1 - colour and _is_first(board, point, i):
                points[side.chain].liberties += 1
        point = stone.next


@compile_function
def _set_level(board: Board, first: int) -> None:
    """Write the liberties of a chain into the cells of its stones, where they changed."""
    chain = board.points[first]
    level = min(chain.liberties, 3)
    if level == chain.level:
        return
    if chain.level == 1:
        _leave_atari(board, first)
    if level == 1:
        count = board.counts[NUM_ATARI + chain.colour]
        board.atari[chain.colour, count], chain.place = first, count
        board.counts[NUM_ATARI + chain.colour] += 1
    chain.level = level
    point = first
    for _ in range(chain.num_stones):
        _write(board, point, chain.colour, level)
        point = board.points[point].next


@compile_function
def _leave_atari(board: Board, first: int) -> None:
    chain = board.points[first]
    board.counts[NUM_ATARI + chain.colour] -= 1
    last = board.atari[chain.colour, board.counts[NUM_ATARI + chain.colour]]
    board.atari[chain.colour, chain.place] = last
    board.points[last].place = chain.place


@compile_function
def _write(board: Board, point: int, colour: int, level: int) -> None:
    """Write the cell of a stone with `level` liberties, or 0 of an empty point, into the codes of
    the points around it."""
    for viewer in range(2):
        cell = 0 if level == 0 else level + 3 * (viewer != colour)
        change = cell - board.cells[viewer, point]
        board.cells[viewer, point] = cell
        for i in range(8):
            board.codes[viewer, point - board.offsets[i]] += change * board.factors[i]
    _note_change(board, point)
    for i in range(8):
        _note_change(board, point + board.offsets[i])


@compile_function
def _note_change(board: Board, point: int) -> None:
    place, counts = board.points[point], board.counts
    if place.changed != counts[TIME] and place.colour != _MARGIN:
        place.changed = counts[TIME]
        board.changed[counts[NUM_CHANGED]] = point
        counts[NUM_CHANGED] += 1


@compile_function
def area_lead(board: Board) -> int:
    """Return Black's area minus White's: stones, and empty points that reach only them."""
    points, stack = board.points, board.raised
    lead = 0
    board.counts[TIME] += 1
    time = board.counts[TIME]
    for number in range(board.height * board.width):
        start = point_of(board, number)
        if points[start].colour != EMPTY:
            lead += 1 if points[start].colour == BLACK else -1
            continue
        if points[start].changed == time:
            continue
        points[start].changed = time
        stack[0], count, size, reached = start, 1, 0, 0
        while count:
            count, size = count - 1, size + 1
            point = stack[count]
            for i in SIDES:
                side = points[point + board.offsets[i]]
                if side.colour <= WHITE:
                    reached |= 1 << side.colour
                elif side.colour == EMPTY and side.changed != time:
                    side.changed = time
                    stack[count], count = point + board.offsets[i], count + 1
        if reached == 1 << BLACK:
            lead += size
        elif reached == 1 << WHITE:
            lead -= size
    return lead
