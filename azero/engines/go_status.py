"""Which stones are dead when a game of Go is over, and the score without them.

Unconditional life (Benson) decides where it can: such stones live, and the other side's stones among them are dead. Everywhere else playouts decide: a chain
whose points its own side keeps in too few of them is dead. What is unsettled, because whoever moves first there wins, counts as alive, and so does a seki.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from azero.engines.go_playouts import count_ownership
from azero.games.go import setup
from azero.games.go.life import pass_alive

DEAD_BELOW = 0.4
"""A chain that its side keeps in a smaller share of the playouts is dead; chosen on the test positions."""
PLAYOUT_MOVES = 24_000
"""Work for one judgement: playouts times points of the board; 9x9 gets 256 playouts, 19x19 gets 64."""
FEWEST_PLAYOUTS, MOST_PLAYOUTS = 64, 256
SEKI_EYES = 2
"""A living group with fewer points of territory than this, beside points that are nobody's, is in seki."""


@dataclass(frozen=True)
class Status:
    """The judgement of a final position."""

    board: np.ndarray
    """int8[H, W]: the stones, 1 Black, -1 White."""
    dead: np.ndarray
    """bool[H, W]: dead stones."""
    seki: np.ndarray
    """bool[H, W]: living stones in seki."""
    area: np.ndarray
    """int8[H, W]: whose area each point is once the dead stones are gone; 0 nobody's."""

    @property
    def margin(self) -> int:
        """Black's area minus White's."""
        return int(self.area.sum(dtype=np.int64))

    def chains(self, which: str) -> list[list[tuple[int, int]]]:
        """Return the chains that are "alive", "dead" or "seki", each as sorted (row, column)."""
        masks = {"dead": self.dead, "seki": self.seki, "alive": ~self.dead & ~self.seki}
        return [sorted(chain) for chain, _ in setup.chains(np.where(masks[which], self.board, 0).astype(np.int8))]


def judge(board: np.ndarray, seed: int = 0) -> Status:
    """Judge a final position, board int8[H, W]; the same board and seed give the same judgement.

    On unsettled boards the result is what playouts make of them; the docstring of this module says what is decided how.
    """
    dead = _dead_stones(board, seed)
    area = area_of(np.where(dead, 0, board).astype(np.int8))
    return Status(board, dead, _seki(np.where(dead, 0, board).astype(np.int8), area), area)


def _dead_stones(board: np.ndarray, seed: int) -> np.ndarray:
    """Return bool[H, W]: the dead stones."""
    if not board.any():
        return np.zeros(board.shape, bool)
    dead, alive = np.zeros(board.shape, bool), np.zeros(board.shape, bool)
    for colour in (1, -1):
        stones, enclosed = pass_alive(board, colour)
        alive |= stones
        dead |= enclosed & (board == -colour)
    if ((board != 0) & ~alive & ~dead).any():
        ownership = count_ownership(board, _num_playouts(board.size), seed)
        for chain, _ in setup.chains(board):
            rows, columns = (list(axis) for axis in zip(*chain, strict=True))
            if not (alive | dead)[rows[0], columns[0]]:
                kept = (1 + board[rows[0], columns[0]] * ownership[rows, columns].mean()) / 2
                dead[rows, columns] = kept < DEAD_BELOW
    return dead


def _num_playouts(num_points: int) -> int:
    return int(np.clip(PLAYOUT_MOVES // num_points // 2 * 2, FEWEST_PLAYOUTS, MOST_PLAYOUTS))


def area_of(board: np.ndarray) -> np.ndarray:
    """Return int8[H, W]: stones, and empty regions that touch one colour only."""
    area = board.copy()
    for region, _ in setup.chains((board == 0).astype(np.int8)):
        colours = {int(board[point]) for point in _border(region, board.shape)}
        if len(colours) == 1:
            for point in region:
                area[point] = next(iter(colours))
    return area


def _seki(board: np.ndarray, area: np.ndarray) -> np.ndarray:
    """Return bool[H, W]: stones of groups (chains joined by their territory) that touch nobody's points and have fewer than two points of their own."""
    seki = np.zeros(board.shape, bool)
    for group, _ in setup.chains(area):
        touches_nobody = any(area[point] == 0 for point in _border(group, board.shape))
        if touches_nobody and sum(board[point] == 0 for point in group) < SEKI_EYES:
            for point in group:
                seki[point] = board[point] != 0
    return seki


def _border(points: set[tuple[int, int]], shape: tuple[int, ...]) -> set[tuple[int, int]]:
    """Return the points beside a set of points."""
    around = {(row + dr, column + dc) for row, column in points for dr, dc in ((-1, 0), (1, 0), (0, -1), (0, 1))}
    return {(row, column) for row, column in around - points if 0 <= row < shape[0] and 0 <= column < shape[1]}
