"""Go in text: vertices (D4, pass) and board diagrams. Host side only."""

import numpy as np

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""Columns of a board from the left; there is no I (GTP version 2, section 2.11)."""


def column_name(column: int) -> str:
    """Return the letters of a column: A to Z without I, then AA, AB, ..."""
    return (
        LETTERS[column]
        if column < len(LETTERS)
        else LETTERS[column // len(LETTERS) - 1] + LETTERS[column % len(LETTERS)]
    )


def format_vertex(action: int, shape: tuple[int, int]) -> str:
    """Return the vertex of an action: a column letter and the row counted from the bottom, or
    "pass".

    Raises:
      ValueError: there is no such action on this board; it is quoted with what is allowed.
    """
    height, width = shape
    if not 0 <= action <= height * width:
        raise ValueError(
            f"action {action} is not on a {height}x{width} board: 0 to "
            f"{height * width - 1} are points, {height * width} is pass"
        )
    if action == height * width:
        return "pass"
    row, column = divmod(action, width)
    return f"{column_name(column)}{height - row}"


def parse_vertex(vertex: str, shape: tuple[int, int]) -> int:
    """Return the action of a vertex, upper or lower case.

    Raises:
      ValueError: it is not a vertex of this board; the text and the allowed range are quoted.
    """
    height, width = shape
    text = vertex.strip().upper()
    if text == "PASS":
        return height * width
    letters = text.rstrip("0123456789")
    names = [column_name(column) for column in range(width)]
    digits = text[len(letters) :]
    if letters not in names or not digits.isdecimal() or not 1 <= int(digits) <= height:
        raise ValueError(
            f"{vertex!r} is not a vertex of a {height}x{width} board: A1 to "
            f"{names[-1]}{height} without the letter I, or pass"
        )
    return (height - int(digits)) * width + names.index(letters)


def format_score(margin: float) -> str:
    """Return B+3.5, W+2.5 or 0 for Black's lead, as in GTP's final_score."""
    return "0" if margin == 0 else f"{'B' if margin > 0 else 'W'}+{abs(margin):g}"


def format_points(points: float) -> str:
    """Return a number of points in words: 1 point, 2.5 points."""
    return f"{points:g} point{'' if points == 1 else 's'}"


def format_diagram(board: np.ndarray, mark: int | None = None) -> str:
    """Return the diagram of a board int8[H, W] (1 Black X, -1 White O) with coordinates; the stone
    at point `mark`, the last move, is in brackets."""
    height, width = board.shape
    names = [column_name(column) for column in range(width)]
    lines = ["   " + " ".join(names)]
    for row in range(height):
        cells = ["X" if value > 0 else "O" if value < 0 else "." for value in board[row]]
        text = " " + " ".join(cells) + " "
        if mark is not None and mark // width == row:
            place = 2 * (mark % width)
            text = f"{text[:place]}({text[place + 1]}){text[place + 3 :]}"
        lines.append(f"{height - row:>2}{text}{height - row}")
    return "\n".join([*lines, lines[0]])
