"""Rollouts by the fast policy, compiled by Numba: the weight of every move, kept up to date on a
`board.Board`, and draws.

A weight is the exponential of a move's logit, without the features that depend on the previous
move: these are multiplied into the weights before a draw, and taken out after it. For the cache on
disk see `board`.
"""

from typing import NamedTuple

import numpy as np

from azero.games.go.alphago2016.patterns import MOST_CAPTURED
from azero.games.go.rollouts.board import (
    DIAGONALS,
    EMPTY,
    OFF_BOARD,
    PATTERN_FACTORS,
    SIDES,
    Board,
    area_lead,
    clear,
    compile_function,
    place,
    point_of,
    set_up,
)

_IS_SAFE = 0b00011101
"""Cells that make a point next to them no suicide: empty, own with 2 or more liberties, the other
side's in atari. One bit for each value of a cell, as in the next two."""
_IS_OWN_OR_OFF = 0b10001110
_IS_OTHER = 0b01110000
_WORD = 0xFFFFFFFF


class Odds(NamedTuple):
    """The exponentials of a policy's weights."""

    save: float
    near: np.ndarray
    """float64[12]: of points around the last move, in the order of `patterns.DIAMOND`"""
    nakade: np.ndarray
    """float64[8192]"""
    response_pattern: np.ndarray
    """float64[2 ** bits]; the same holds for `pattern`"""
    response_shift: int
    """32 - bits; the same holds for `pattern_shift`"""
    pattern: np.ndarray
    pattern_shift: int


@compile_function
def play_out(
    shape: tuple[int, int],
    odds: Odds,
    table: np.ndarray,
    workspace: np.ndarray,
    draws: np.ndarray,
    boards: np.ndarray,
    to_play: np.ndarray,
    num_passes: np.ndarray,
    leads: np.ndarray,
    moves: np.ndarray,
) -> None:
    """Play B games to the end, but at most T moves.

    Args:
      shape: of the board.
      odds: of the policy.
      table: int32[2, N + 1], replies (`azero.games.go.rollouts.replies`).
      workspace: BOARD[1], for this call alone.
      draws: float64[B, T] in [0, 1), one for each move.
      boards: int64[B, 2, N], now and one move ago: BLACK, WHITE, EMPTY.
      to_play: int64[B].
      num_passes: int64[B], in a row.
      leads: int32[B], set to Black's area minus White's.
      moves: int32[B, 1 + T], set to the move before the game and its moves; N is a pass, none, and
        what is after the end.
    """
    board = workspace[0]
    for game in range(len(draws)):
        clear(board, shape)
        last, ko = set_up(board, boards[game, 0], boards[game, 1], to_play[game])
        refresh(board, odds)
        moves[game] = shape[0] * shape[1]
        _play(
            board, odds, table, draws[game], last, ko, to_play[game], num_passes[game], moves[game]
        )
        leads[game] = area_lead(board)


@compile_function
def _play(
    board: Board,
    odds: Odds,
    table: np.ndarray,
    draws: np.ndarray,
    last: int,
    ko: int,
    colour: int,
    num_passes: int,
    moves: np.ndarray,
) -> None:
    """Play one game; `last` and `ko` are -1 where there is none."""
    if last >= 0:
        moves[0] = board.points[last].number
    for ply in range(len(draws)):
        if num_passes >= 2:
            return
        point = -1
        reply = table[colour, moves[ply]] - 1
        if reply >= 0:
            point = point_of(board, reply)
            if point == ko or board.weights[colour, point] == 0.0:
                point = -1
        if point < 0:
            raise_weights(board, odds, colour, last, ko)
            point = _draw(board, colour, draws[ply])
            restore_weights(board, colour)
        if point < 0:
            num_passes, last, ko = num_passes + 1, -1, -1
            board.num_captured = 0
        else:
            num_passes, last = 0, point
            ko = place(board, colour, point)
            refresh(board, odds)
            moves[ply + 1] = board.points[point].number
        colour = 1 - colour


@compile_function
def refresh(board: Board, odds: Odds) -> None:
    """Compute the weights of the changed points."""
    for i in range(board.num_changed):
        point = board.changed[i]
        for viewer in range(2):
            weight = 0.0
            if board.points[point].colour == EMPTY and _is_allowed(board, viewer, point):
                weight = odds.pattern[_finish(board.codes[viewer, point]) >> odds.pattern_shift]
            if weight != board.weights[viewer, point]:
                board.weights[viewer, point] = weight
                board.is_stale[viewer, board.points[point].row] = 1


@compile_function
def _is_allowed(board: Board, viewer: int, point: int) -> bool:
    """Return whether a move at an empty point is neither suicide nor fills an own eye, as
    `features.eyes` defines it."""
    cells, offsets = board.cells[viewer], board.offsets
    seen = 0
    for i in SIDES:
        seen |= 1 << cells[point + offsets[i]]
    if not seen & _IS_SAFE:
        return False
    if seen & ~_IS_OWN_OR_OFF:
        return True
    num_others = 0
    for i in DIAGONALS:
        num_others += (_IS_OTHER >> cells[point + offsets[i]]) & 1
    return num_others > (0 if seen >> OFF_BOARD else 1)


@compile_function
def _finish(code: int) -> int:
    """Return the hash `patterns._finish` of a sum."""
    code &= _WORD
    code = ((code ^ (code >> 16)) * 0x85EBCA6B) & _WORD
    code = ((code ^ (code >> 13)) * 0xC2B2AE35) & _WORD
    return code ^ (code >> 16)


@compile_function
def raise_weights(board: Board, odds: Odds, colour: int, last: int, ko: int) -> None:
    """Multiply into the weights what depends on the last move and on chains in atari, and forbid
    the ko point; until `restore_weights`."""
    _add_up(board, colour)
    board.num_raised = 0
    board.num_draws += 1
    if ko >= 0:
        _raise(board, colour, ko, 0.0)
    _raise_saves(board, odds, colour)
    size = min(board.num_captured, MOST_CAPTURED)
    for i in range(board.num_captured if size >= 2 else 0):
        point, around = board.captured[i], 0
        for j in range(8):
            if board.points[point + board.offsets[j]].taken == board.time:
                around |= 1 << j
        _raise(board, colour, point, odds.nakade[around + 256 * (size - 1)])
    if last < 0:
        return
    context = 0
    for i in range(len(board.offsets)):
        context += board.cells[colour, last + board.offsets[i]] * PATTERN_FACTORS[i]
    for i in range(len(board.offsets)):
        point = last + board.offsets[i]
        if board.weights[colour, point] > 0.0:
            code = _finish(context + (i + 1) * PATTERN_FACTORS[-1])
            factor = odds.near[i] * odds.response_pattern[code >> odds.response_shift]
            _raise(board, colour, point, factor)


@compile_function
def _raise_saves(board: Board, odds: Odds, colour: int) -> None:
    """Raise the moves of `patterns.saves`."""
    points = board.points
    for i in range(board.num_atari[colour]):
        first = board.atari[colour, i]
        point, liberty = first, -1
        for _ in range(points[first].num_stones):
            for j in SIDES:
                side = points[point + board.offsets[j]]
                if side.colour == EMPTY:
                    liberty = point + board.offsets[j]
                elif side.colour == 1 - colour and points[side.chain].level == 1:
                    _raise_save(board, odds, colour, _liberty(board, side.chain))
            point = points[point].next
        num_empty = most = 0
        for j in SIDES:
            side = points[liberty + board.offsets[j]]
            num_empty += side.colour == EMPTY
            if side.colour == colour:
                most = max(most, points[side.chain].level)
        if num_empty >= 2 or most == 3 or (num_empty == 1 and most == 2):
            _raise_save(board, odds, colour, liberty)


@compile_function
def _liberty(board: Board, first: int) -> int:
    """Return a liberty of a chain."""
    point = first
    while True:
        for i in SIDES:
            if board.points[point + board.offsets[i]].colour == EMPTY:
                return point + board.offsets[i]
        point = board.points[point].next


@compile_function
def _raise_save(board: Board, odds: Odds, colour: int, point: int) -> None:
    if board.points[point].saves != board.num_draws:
        board.points[point].saves = board.num_draws
        _raise(board, colour, point, odds.save)


@compile_function
def _raise(board: Board, colour: int, point: int, factor: float) -> None:
    weight = board.weights[colour, point]
    if weight == 0.0 or factor == 1.0:
        return
    count, row = board.num_raised, board.points[point].row
    board.raised[count] = point
    board.before[count, 0], board.before[count, 1] = weight, board.sums[colour, row]
    board.num_raised += 1
    board.weights[colour, point] = weight * factor
    board.sums[colour, row] += weight * factor - weight


@compile_function
def restore_weights(board: Board, colour: int) -> None:
    """Undo `raise_weights`."""
    for i in range(board.num_raised - 1, -1, -1):
        point = board.raised[i]
        board.weights[colour, point] = board.before[i, 0]
        board.sums[colour, board.points[point].row] = board.before[i, 1]


@compile_function
def _add_up(board: Board, colour: int) -> None:
    """Add up the weights of rows where one changed; so errors of rounding do not grow."""
    for row in range(board.height):
        if board.is_stale[colour, row]:
            board.is_stale[colour, row] = 0
            first, total = (row + 2) * (board.width + 2), 0.0
            for point in range(first, first + board.width):
                total += board.weights[colour, point]
            board.sums[colour, row] = total


@compile_function
def _draw(board: Board, colour: int, uniform: float) -> int:
    """Return a point, drawn with its weight's share of all, or -1 where no move is allowed."""
    weights, sums = board.weights[colour], board.sums[colour]
    rest, chosen = uniform * sums[: board.height].sum(), -1
    for row in range(board.height):
        if sums[row] > 0.0:
            chosen = row
            if rest < sums[row]:
                break
            rest -= sums[row]
    if chosen < 0:
        return -1
    first, found = (chosen + 2) * (board.width + 2), -1
    for point in range(first, first + board.width):
        if weights[point] > 0.0:
            found = point
            if rest < weights[point]:
                break
            rest -= weights[point]
    return found
