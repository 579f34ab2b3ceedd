"""Boards of Go drawn in tests."""

from collections.abc import Sequence

import numpy as np


def parse_diagram(lines: Sequence[str]) -> np.ndarray:
    """Return the board int8[H, W] of rows of X (Black), O (White) and dots; blanks do not matter."""
    values = {"X": 1, "O": -1, ".": 0, "+": 0}
    rows = ["".join(line.split()).upper() for line in lines]
    return np.array([[values[letter] for letter in row] for row in rows], np.int8)
