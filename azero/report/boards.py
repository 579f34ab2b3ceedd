"""Games drawn as boards: the position after every move, and an SVG with numbered stones.

Stones are only placed and captured; legality is not checked, because the games come from our own
rules.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from azero.console.tables import count_of
from azero.data.run_files import StoredGame
from azero.games.go.host import Geometry, geometry_of
from azero.games.go.setup import star_points
from azero.games.go.text import column_name, format_vertex

DRAWN = ("go", "tictactoe")
"""Games whose boards can be drawn; of others the report lists the moves."""
CELL = 24
"""Units of the SVG between two lines."""
MARGIN = 20
"""Units around the board, for the coordinates."""
LARGEST_SQUARE = 0.5
"""Side of the square of a certain owner, in cells; the stone under it stays visible."""


def first_mover_begins(game: StoredGame) -> bool:
    """Return whether the game's first mover makes the first move; not so where the game begins with
    a position of the other side."""
    mover = {"chess": "w", "minichess": "w", "shogi": "b", "animal_shogi": "b"}.get(game.game, "X")
    return not game.start or game.start.split()[1] == mover


def positions(game: StoredGame) -> list[str]:
    """Return the board after 0, 1, 2 ... moves: one letter per point row by row from the top left,
    X for the first mover, O for the second, a dot for empty."""
    points = range(math.prod(game.board))
    start = game.start.partition(" ")[0] or "." * len(points)
    sides = [sum(1 << point for point in points if start[point] == side) for side in "XO"]
    boards = [start]
    for ply, action in enumerate(game.actions, int(not first_mover_begins(game))):
        if action in points:
            sides[ply % 2] |= 1 << action
            if game.game == "go":
                _capture(geometry_of(game.board), sides, action, ply % 2)
        first, second = sides
        letters = ("X" if first >> p & 1 else "O" if second >> p & 1 else "." for p in points)
        boards.append("".join(letters))
    return boards


def _capture(board: Geometry, sides: list[int], point: int, mover: int) -> None:
    """Remove the opponent's chains that the stone at `point` left without a liberty, then its own
    chain if that has none; `sides` are the stones of both."""
    stone = 1 << point
    for side, seeds in ((1 - mover, board.neighbours(stone)), (mover, stone)):
        empty = board.full & ~(sides[0] | sides[1])
        for chain in board.chains(seeds, sides[side]):
            if not board.neighbours(chain) & empty:
                sides[side] &= ~chain


def move_names(game: StoredGame) -> list[str]:
    """Return the moves as people write them: D4, pass."""
    return [format_vertex(action, game.board) for action in game.actions]


def centre(columns: int, point: int) -> tuple[int, int]:
    """Return the SVG coordinates (x, y) of a point or square, row by row from the top left."""
    row, column = divmod(point, columns)
    return MARGIN + CELL // 2 + column * CELL, MARGIN + CELL // 2 + row * CELL


def draw_board(game: StoredGame, boards: Sequence[str] | None = None) -> str:
    """Return the final position as an SVG: every stone with the number of its move, the last one
    marked.

    The group of class `stones` holds one group per stone, which the report's stepper redraws for
    other positions.
    """
    rows, columns = game.board
    boards = positions(game) if boards is None else boards
    numbers = {
        action: ply + 1 for ply, action in enumerate(game.actions) if action < rows * columns
    }
    last = next((action for action in reversed(game.actions) if action < rows * columns), None)
    stones = [
        _draw_stone(game, point, colour, numbers.get(point), point == last)
        for point, colour in enumerate(boards[-1])
        if colour != "."
    ]
    return _frame(game, f"position after {count_of(len(game.actions), 'move')}", stones)


def _set_up(board: np.ndarray) -> tuple[StoredGame, list[str]]:
    """Return a game without moves on a board int8[H, W], and the board's stones as SVG."""
    rows, columns = board.shape
    game = StoredGame("go", (rows, columns), (), (0.0, 0.0))
    return game, [
        _draw_stone(game, point, "X" if value > 0 else "O", None, False)
        for point, value in enumerate(board.reshape(-1).tolist())
        if value
    ]


def draw_position(
    board: np.ndarray, moves: Sequence[int], first_colour: int, played: int | None
) -> str:
    """Return a position of Go as an SVG with a line of play on it and the move that was played
    instead.

    Args:
      board: int8[H, W], 1 for Black's stones, -1 for White's.
      moves: the line, as actions; its stones are numbered from 1, passes and points that are taken
        by then are left out.
      first_colour: 0 if Black begins it, else 1.
      played: the move that was played, marked with a cross; None or a pass marks nothing.
    """
    game, stones = _set_up(board)
    shown = set(np.flatnonzero(board).tolist())
    for step, action in enumerate(moves):
        if action < board.size and action not in shown:
            shown.add(action)
            stones.append(
                _draw_stone(game, action, "XO"[(first_colour + step) % 2], step + 1, step == 0)
            )
    if played is not None and played < board.size:
        x, y = centre(game.board[1], played)
        arm = CELL * 0.26
        stones.append(
            f'<path class="cross" d="M{x - arm:.1f} {y - arm:.1f}L{x + arm:.1f} '
            f'{y + arm:.1f}M{x - arm:.1f} {y + arm:.1f}L{x + arm:.1f} {y - arm:.1f}"/>'
        )
    return _frame(game, "position with a better line", stones)


def draw_labels(board: np.ndarray, labels: Mapping[int, float], label: str) -> str:
    """Return a position int8[H, W] of Go as an SVG with whole numbers on points, the largest one
    marked; `labels` are by action; a pass and numbers below one half are left out. `label` is the
    image's text for screen readers."""
    rows, columns = board.shape
    game, drawn = _set_up(board)
    best = max(labels, key=lambda action: labels[action], default=None)
    for action, number in labels.items():
        if action >= rows * columns or number < 0.5:
            continue
        x, y = centre(columns, action)
        kind = "label best" if action == best else "label"
        drawn.append(
            f'<g class="{kind}"><circle cx="{x}" cy="{y}" r="{CELL * 0.42:.1f}"/>'
            f'<text x="{x}" y="{y}" dy=".35em">{number:.0f}</text></g>'
        )
    return _frame(game, label, drawn)


def draw_ownership(board: np.ndarray, ownership: np.ndarray) -> str:
    """Return a position int8[H, W] of Go as an SVG with a square on every point in the colour of
    its expected owner, float[H, W] from 1 for Black to -1 for White; the area of a square grows
    with its certainty."""
    game, drawn = _set_up(board)
    for point, owner in enumerate(ownership.reshape(-1).tolist()):
        (x, y), side = centre(game.board[1], point), CELL * LARGEST_SQUARE * abs(owner) ** 0.5
        drawn.append(
            f'<rect class="owner {"black" if owner > 0 else "white"}" x="{x - side / 2:.1f}" '
            f'y="{y - side / 2:.1f}" width="{side:.1f}" height="{side:.1f}"/>'
        )
    return _frame(game, "expected owners of the points", drawn)


def _frame(game: StoredGame, label: str, stones: Sequence[str]) -> str:
    """Return the board of a game with stones on it."""
    rows, columns = game.board
    width, height = 2 * MARGIN + columns * CELL, 2 * MARGIN + rows * CELL
    return (
        f'<svg class="board" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">'
        f'<rect class="wood" x="{MARGIN - 4}" y="{MARGIN - 4}" '
        f'width="{columns * CELL + 8}" height="{rows * CELL + 8}" rx="6"/>'
        f'<path class="lines" '
        f'd="{_lines(game)}"/>{_star_points(game)}{_coordinates(game)}<g '
        f'class="stones">{"".join(stones)}</g></svg>'
    )


def _draw_stone(
    game: StoredGame, point: int, colour: str, number: int | None, is_last: bool
) -> str:
    x, y = centre(game.board[1], point)
    kind = ("black" if colour == "X" else "white") + (" last" if is_last else "")
    label = "" if number is None else f'<text x="{x}" y="{y}" dy=".35em">{number}</text>'
    return f'<g class="{kind}"><circle cx="{x}" cy="{y}" r="{CELL * 0.46:.1f}"/>{label}</g>'


def _lines(game: StoredGame) -> str:
    rows, columns = game.board
    (left, top), (right, bottom) = centre(columns, 0), centre(columns, rows * columns - 1)
    if game.game != "go":  # squares, not points
        left, top, right, bottom = (
            left - CELL // 2,
            top - CELL // 2,
            right + CELL // 2,
            bottom + CELL // 2,
        )
        rows, columns = rows + 1, columns + 1
    across = [f"M{left} {top + row * CELL}H{right}" for row in range(rows)]
    down = [f"M{left + column * CELL} {top}V{bottom}" for column in range(columns)]
    return "".join(across + down)


def _star_points(game: StoredGame) -> str:
    points = star_points(game.board) if game.game == "go" else []
    centres = [centre(game.board[1], point) for point in points]
    return "".join(f'<circle class="star" cx="{x}" cy="{y}" r="2.5"/>' for x, y in centres)


def _coordinates(game: StoredGame) -> str:
    rows, columns = game.board
    texts = []
    for column in range(columns):
        x, _ = centre(columns, column)
        texts.append(
            f'<text class="coordinate" x="{x}" y="{MARGIN - 9}">{column_name(column)}</text>'
        )
    for row in range(rows):
        _, y = centre(columns, row * columns)
        texts.append(
            f'<text class="coordinate" x="{MARGIN - 11}" y="{y}" dy=".35em">{rows - row}</text>'
        )
    return "".join(texts)
