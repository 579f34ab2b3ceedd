"""A board of Go for one rollout after another, compiled by Numba: it keeps chains, the cells of
patterns and their codes up to date.

Points have numbers on a board with a margin (`BOARD`) in here, and 0 to H W - 1 outside. What a
move changes is little: codes around stones whose chain got another number of liberties, of 1, 2 or
more.

The first run compiles for some seconds; the result is kept on disk (`azero.native`).
"""

from pathlib import Path
from typing import Any

import numpy as np

from azero import native
from azero.games.go.alphago2016 import patterns
from azero.games.go.alphago2016.patterns import DIAMOND, FACTORS

BLACK, WHITE, EMPTY, _MARGIN = range(4)
POINT = np.dtype(  # what is passed on is 64 bits wide, so that every function is compiled once
    [
        ("colour", "i8"),  # BLACK, WHITE, EMPTY, _MARGIN
        ("level", "i1"),  # of a chain's first stone: its liberties, at most 3
        ("row", "i2"),
        ("number", "i2"),  # outside
        ("chain", "i8"),  # the first stone of the stone's chain
        ("next", "i2"),  # stone of the chain, in a circle
        ("num_stones", "i2"),  # of a chain's first stone, like the next two
        ("liberties", "i2"),
        ("place", "i2"),  # in the list `atari`, where the level is 1
        ("changed", "i4"),  # the time when last noted in the list `changed`
        ("taken", "i4"),  # the time when a stone was last captured here
        ("saves", "i4"),  # the draw before which a move here last saved stones
    ],
    align=True,
)
_MOST_ROWS = 31
_MOST = (_MOST_ROWS + 4) * (_MOST_ROWS + 2)
"""Points of the largest board, with its margin."""
OFF_BOARD = 7
_UP, _LEFT, _RIGHT, _DOWN = (DIAMOND.index(side) for side in ((-1, 0), (0, -1), (0, 1), (1, 0)))
SIDES = (_UP, _LEFT, _RIGHT, _DOWN)
DIAGONALS = tuple(DIAMOND.index(side) for side in ((-1, -1), (-1, 1), (1, -1), (1, 1)))
_ROWS, _COLUMNS = (np.array([side[axis] for side in DIAMOND]) for axis in (0, 1))
PATTERN_FACTORS = np.array(FACTORS, np.int64)
BOARD = np.dtype(
    [
        ("height", "i8"),
        ("width", "i8"),
        ("offsets", "i8", (len(DIAMOND),)),  # from a point to those of `patterns.DIAMOND`
        ("time", "i8"),  # counts moves
        ("num_changed", "i8"),
        ("num_captured", "i8"),
        ("num_raised", "i8"),
        ("num_draws", "i8"),
        ("num_atari", "i8", (2,)),
        ("points", POINT, (_MOST,)),
        ("cells", "i8", (2, _MOST)),  # by viewer, Black and White: see `patterns`
        # by viewer: the sum of the cells around a point times `patterns.FACTORS`
        ("codes", "i8", (2, _MOST)),
        # by side to move: the odds of a move, zero where it is not allowed
        ("weights", "f8", (2, _MOST)),
        ("sums", "f8", (2, _MOST_ROWS)),  # the weights of a row, where it is not stale
        ("is_stale", "i8", (2, _MOST_ROWS)),  # 1 or 0
        ("atari", "i8", (2, _MOST)),  # first stones of a side's chains with one liberty
        ("changed", "i8", (_MOST,)),  # points with a new cell on or around them
        ("captured", "i8", (_MOST,)),  # the stones that the last move captured
        # points whose weight is raised for one draw, and may be more than once; their weights
        # before, and the sums of their rows
        ("raised", "i8", (3 * _MOST,)),
        ("before", "f8", (3 * _MOST, 2)),
    ],
    align=True,
)
"""A board of (H + 4) (W + 2) points, with two free rows above and below it, and two free columns
between a row and the next.

It is one record, because Numba counts references to arrays, which took half of the time."""
Board = Any
"""A record of BOARD."""


compile_function = native.compiler(
    [*sorted(Path(__file__).parent.glob("*.py")), patterns.__file__], error_model="numpy"
)


@compile_function
def clear(board: Board, shape: tuple[int, int]) -> None:
    """Make `board` an empty one; its weights are not computed."""
    height, width = shape
    stride = width + 2
    board.height, board.width = height, width
    for i in range(len(_ROWS)):
        board.offsets[i] = _ROWS[i] * stride + _COLUMNS[i]
    board.time = board.num_changed = board.num_captured = board.num_raised = board.num_draws = 0
    board.num_atari[:] = 0
    for point in range((height + 4) * stride):
        place = board.points[point]
        place.colour, place.changed, place.taken, place.saves = _MARGIN, 0, 0, 0
        board.cells[:, point] = OFF_BOARD
        board.weights[:, point] = 0.0
    board.is_stale[:, :height] = 1
    for number in range(height * width):
        point = point_of(board, number)
        place = board.points[point]
        place.colour, place.row, place.number = EMPTY, number // width, number
        board.cells[:, point] = 0
    for number in range(height * width):
        point, code = point_of(board, number), 0
        for i in range(8):
            code += board.cells[0, point + board.offsets[i]] * PATTERN_FACTORS[i]
        board.codes[:, point] = code


@compile_function
def point_of(board: Board, number: int) -> int:
    """Return the point that is `number` outside."""
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
    board.time += 1
    board.num_changed = board.num_captured = 0
    for number in range(len(now)):
        point = point_of(board, number)
        board.changed[number] = point
        if now[number] == 1 - to_play and before[number] != 1 - to_play:
            last, num_new = point, num_new + 1
        if before[number] == to_play and now[number] != to_play:
            board.captured[board.num_captured] = point
            board.points[point].taken = board.time
            board.num_captured += 1
    board.num_changed = len(now)
    if num_new != 1:  # a pass, the start, or stones that were set up
        board.num_captured = 0
        return -1, -1
    return last, _ko_point(board, last)


@compile_function
def _ko_point(board: Board, last: int) -> int:
    """Return the point of a single stone that was captured by one that could be recaptured, else
    -1."""
    chain = board.points[board.points[last].chain]
    is_ko = board.num_captured == 1 and chain.num_stones == 1 and chain.liberties == 1
    return board.captured[0] if is_ko else -1


@compile_function
def place(board: Board, colour: int, point: int) -> int:
    """Place a stone where that is no suicide, capture, and return the ko point or -1."""
    points = board.points
    board.time += 1
    board.num_changed = board.num_captured = 0
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
    _update_level(board, first)
    for i in SIDES:
        if points[point + board.offsets[i]].colour == 1 - colour:
            _update_level(board, points[point + board.offsets[i]].chain)
    for i in range(board.num_captured):
        for j in SIDES:
            side = points[board.captured[i] + board.offsets[j]]
            if side.colour == colour:
                _update_level(board, side.chain)
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
    points = board.points
    if points[first].level == 1:
        _leave_atari(board, first)
    colour, point = points[first].colour, first
    for _ in range(points[first].num_stones):
        board.captured[board.num_captured] = point
        board.num_captured += 1
        stone = points[point]
        stone.colour, stone.taken = EMPTY, board.time
        _write(board, point, colour, 0)
        for i in SIDES:
            side = points[point + board.offsets[i]]
            if side.colour == 1 - colour and _is_first(board, point, i):
                points[side.chain].liberties += 1
        point = stone.next


@compile_function
def _update_level(board: Board, first: int) -> None:
    """Write the liberties of a chain into the cells of its stones, where they changed."""
    chain = board.points[first]
    level = min(chain.liberties, 3)
    if level == chain.level:
        return
    if chain.level == 1:
        _leave_atari(board, first)
    if level == 1:
        count = board.num_atari[chain.colour]
        board.atari[chain.colour, count], chain.place = first, count
        board.num_atari[chain.colour] += 1
    chain.level = level
    point = first
    for _ in range(chain.num_stones):
        _write(board, point, chain.colour, level)
        point = board.points[point].next


@compile_function
def _leave_atari(board: Board, first: int) -> None:
    chain = board.points[first]
    board.num_atari[chain.colour] -= 1
    last = board.atari[chain.colour, board.num_atari[chain.colour]]
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
            board.codes[viewer, point - board.offsets[i]] += change * PATTERN_FACTORS[i]
    _note_change(board, point)
    for i in range(8):
        _note_change(board, point + board.offsets[i])


@compile_function
def _note_change(board: Board, point: int) -> None:
    place = board.points[point]
    if place.changed != board.time and place.colour != _MARGIN:
        place.changed = board.time
        board.changed[board.num_changed] = point
        board.num_changed += 1


@compile_function
def area_lead(board: Board) -> int:
    """Return Black's area minus White's: stones, and empty points that reach only them."""
    points, stack = board.points, board.raised
    lead = 0
    board.time += 1
    time = board.time
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
