"""Leela Zero's own program as a referee: the raw outputs of a network for positions of games."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from needs import require_program

from azero.games.go.text import format_vertex


class Raw(NamedTuple):
    """What `heatmap 0` prints: the network's outputs under the identity symmetry."""

    policy: np.ndarray
    """int[362] thousandths, rounded down; 0 where a stone stands."""
    winrate: float
    """Of the side to move."""


def raw_outputs(network: Path, games: Sequence[Sequence[tuple[int, int]]]) -> list[Raw]:
    """Return the outputs for the position before every move of `games`, (colour, action)."""
    lines = []
    for game in games:
        lines.append("clear_board")
        for colour, action in game:
            lines += ["heatmap 0", f"play {'bw'[colour]} {format_vertex(action, (19, 19))}"]
    program = require_program("leelaz")
    command = [program, "--gtp", "--cpu-only", "--noponder", "-t", "1", "-w", str(network)]
    done = subprocess.run(
        command, input="\n".join([*lines, "quit\n"]), capture_output=True, text=True, timeout=1800
    )
    assert "?" not in done.stdout, done.stdout[-1000:]
    number = r" *\d+"
    maps = re.findall(
        rf"((?:{number}){{361}})\s*pass: (\d+)\s*winrate: ([\d.]+)", done.stderr.replace("\n", " ")
    )
    return [
        Raw(np.array([*_from_top(points), int(passing)]), float(winrate))
        for points, passing, winrate in maps
    ]


def _from_top(points: str) -> np.ndarray:
    """Return the points in reading order, as they are printed."""
    return np.array(points.split(), int)
