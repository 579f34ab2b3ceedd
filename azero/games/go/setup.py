"""Positions that are set up: fixed handicap stones and free set-ups. Host side only."""

import itertools
from collections.abc import Sequence

import numpy as np

from azero.games.go.text import format_vertex

Point = tuple[int, int]
"""(row, column)"""
_SHOWN = 8
"""Most points of a chain that an error lists."""


def board_of(
    black_points: Sequence[int], white_points: Sequence[int], shape: tuple[int, int]
) -> np.ndarray:
    """Return the board int8[H, W] (1 Black, -1 White) with stones at the given points.

    Raises:
      ValueError: a point is off the board or used twice, or a chain has no liberty; it is quoted.
    """
    height, width = shape
    board = np.zeros(height * width, np.int8)
    for colour, points in ((1, black_points), (-1, white_points)):
        for point in points:
            if not 0 <= point < board.size:
                raise ValueError(
                    f"set-up point {point} is not on a {height}x{width} board (0 to "
                    f"{board.size - 1})"
                )
            if board[point]:
                raise ValueError(f"two stones are set up at {format_vertex(point, shape)}")
            board[point] = colour
    board = board.reshape(shape)
    for chain, liberties in chains(board):
        if not liberties:
            points = sorted(row * width + column for row, column in chain)
            shown = [format_vertex(point, shape) for point in points[:_SHOWN]]
            shown += ["..."] if len(points) > _SHOWN else []
            raise ValueError(f"the chain that is set up at {' '.join(shown)} has no liberty")
    return board


def atari_of(board: np.ndarray) -> np.ndarray:
    """Return bool[H, W]: the stones whose chain has exactly one liberty."""
    atari = np.zeros(board.shape, bool)
    for chain, liberties in chains(board):
        for row, column in chain if len(liberties) == 1 else ():
            atari[row, column] = True
    return atari


def chains(board: np.ndarray) -> list[tuple[set[Point], set[Point]]]:
    """Return all chains of a board int8[H, W], each with its liberties."""
    found: list[tuple[set[Point], set[Point]]] = []
    seen: set[Point] = set()
    for row, column in zip(*np.nonzero(board), strict=True):
        start = (int(row), int(column))
        if start in seen:
            continue
        chain, liberties, todo = {start}, set(), [start]
        while todo:
            for point in neighbours(todo.pop(), board.shape):
                if board[point] == 0:
                    liberties.add(point)
                elif board[point] == board[start] and point not in chain:
                    chain.add(point)
                    todo.append(point)
        seen |= chain
        found.append((chain, liberties))
    return found


def neighbours(point: Point, shape: tuple[int, ...]) -> list[Point]:
    """Return the neighbours of a point on the board."""
    row, column = point
    candidates = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
    return [(r, c) for r, c in candidates if 0 <= r < shape[0] and 0 <= c < shape[1]]


def count_handicap(
    black_points: Sequence[int],
    white_points: Sequence[int],
    moves: Sequence[tuple[int, int]],
    num_points: int,
) -> int:
    """Return how many stones Black has before White's first, if at least two: those set up, unless
    White has some, too, and those played, also if White passes between them.

    As in KataGo (boardhistory.cpp), two moves of White in a row there set up a position: then moves
    do not count.
    """
    if white_points:
        return 0
    played = 0
    for (colour, action), (following, _) in itertools.pairwise([*moves, (0, 0)]):
        if colour == following == 1:
            played = 0
            break
        if action < num_points:
            if colour == 1:
                break
            played += 1
    count = len(black_points) + played
    return count if count >= 2 else 0


def handicap_points(count: int, shape: tuple[int, int]) -> list[int]:
    """Return the points of `count` fixed handicap stones, in the order in which they are added (GTP
    version 2, section 4.1.1).

    Raises:
      ValueError: the board or the count has no fixed handicap; what is allowed is named.
    """
    height, width = shape
    if height != width or height < 7:
        raise ValueError(
            f"there is no fixed handicap on a {height}x{width} board: it needs a square "
            f"one of at least 7x7"
        )
    most = 9 if height % 2 and height >= 9 else 4
    if not 2 <= count <= most:
        raise ValueError(
            f"{count} fixed handicap stones on {height}x{width}: 2 to {most} are allowed"
        )
    edge = 3 if height >= 13 else 2
    low, high, middle = edge, height - 1 - edge, height // 2
    corners = [(high, low), (low, high), (low, low), (high, high)]
    sides = [(middle, low), (middle, high), (low, middle), (high, middle)]
    chosen = corners[: min(count, 4)] + sides[: {6: 2, 7: 2, 8: 4, 9: 4}.get(count, 0)]
    if count in (5, 7, 9):
        chosen.append((middle, middle))
    return [row * width + column for row, column in chosen]


def star_points(shape: tuple[int, int]) -> list[int]:
    """Return the points that a drawing of a board marks: nine fixed handicap points, five on boards
    of 9x9 to 13x13, four where there are no more, none on a board without any."""
    height, width = shape
    if height != width or height < 7:
        return []
    return handicap_points(4 if height < 9 or height % 2 == 0 else 5 if height < 15 else 9, shape)
