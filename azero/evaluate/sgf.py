"""Go games as SGF text (FF[4], red-bean.com/sgf)."""

from __future__ import annotations

import string
from collections.abc import Sequence

LETTERS = string.ascii_lowercase + string.ascii_uppercase
"""Coordinates from the top left, column first; the format has no more than 52."""


def format_sgf(actions: Sequence[int], shape: tuple[int, int], komi: float, names: tuple[str, str], result: str, comments: Sequence[str | None] = ()) -> str:
    """Return a game from the empty board as SGF text.

    Args:
      actions: the moves, Black first: points row by row from the top left, then pass.
      shape: rows and columns.
      komi: points added to White's area.
      names: of Black and White.
      result: as the format has it: "B+", "W+3.5", "B+R", "0" (see `format_result`).
      comments: for each move, or None; may be shorter than the game.

    Raises:
      ValueError: the board is too large for the format.
    """
    rows, columns = shape
    if max(shape) > len(LETTERS):
        raise ValueError(f"SGF has no coordinates for a {rows}x{columns} board; the largest is {len(LETTERS)}x{len(LETTERS)}")
    size = str(rows) if rows == columns else f"{columns}:{rows}"
    head = f"(;GM[1]FF[4]CA[UTF-8]AP[azero]SZ[{size}]KM[{komi:g}]PB[{_escape(names[0])}]PW[{_escape(names[1])}]RE[{_escape(result)}]"
    nodes = []
    for ply, action in enumerate(actions):
        row, column = divmod(action, columns)
        point = LETTERS[column] + LETTERS[row] if action < rows * columns else ""
        comment = comments[ply] if ply < len(comments) else None
        nodes.append(f";{'BW'[ply % 2]}[{point}]" + (f"C[{_escape(comment)}]" if comment else ""))
    return head + "\n" + "".join(node + ("\n" if ply % 10 == 9 else "") for ply, node in enumerate(nodes)) + ")\n"


def format_result(rewards: tuple[float, float], reason: str = "") -> str:
    """Return the result property: B+, W+ or 0 for a draw; `reason` is "R" for a resignation, "F" for a forfeit, or a margin."""
    if rewards[0] == rewards[1]:
        return "0"
    return ("B+" if rewards[0] > rewards[1] else "W+") + reason


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
