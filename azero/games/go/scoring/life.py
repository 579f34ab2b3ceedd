"""Unconditional life (Benson 1976, Information Sciences 10): chains that no sequence of moves can
capture even if their owner always passes. Host side."""

import numpy as np

from azero.games.go import setup
from azero.games.go.setup import Point


def pass_alive(board: np.ndarray, colour: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unconditionally alive stones of `colour` (1 or -1) on board int8[H, W], and their
    unconditional territory, both bool[H, W].

    A region is a connected set of points without a stone of `colour`. It is vital to a chain if
    every empty point of it is a liberty of the chain. Chains with fewer than two vital regions, and
    regions adjacent to such chains, are removed until nothing changes; the chains left are alive.
    The territory is the regions surrounded by living chains only, in which the other side cannot
    make an eye: all their empty points are liberties of living chains.
    """
    chains = [chain for chain, _ in setup.chains(np.where(board == colour, board, 0))]
    owner = {point: index for index, chain in enumerate(chains) for point in chain}
    regions = [
        _Region(points, board, owner)
        for points, _ in setup.chains((board != colour).astype(np.int8))
    ]
    alive = set(range(len(chains)))
    while True:
        healthy = [region for region in regions if region.adjacent_chains <= alive]
        kept = {
            chain for chain in alive if sum(chain in region.vital_to for region in healthy) >= 2
        }
        if kept == alive:
            break
        alive = kept
    stones, enclosed = np.zeros(board.shape, bool), np.zeros(board.shape, bool)
    for index in alive:
        stones[tuple(zip(*chains[index], strict=True))] = True
    for region in regions:
        if region.adjacent_chains and region.adjacent_chains <= alive and region.is_covered:
            enclosed[tuple(zip(*region.points, strict=True))] = True
    return stones, enclosed


class _Region:
    """A connected set of points without stones of one colour."""

    def __init__(self, points: set[Point], board: np.ndarray, owner: dict[Point, int]) -> None:
        self.points = points
        adjacent = {
            point: {
                owner[other] for other in setup.neighbours(point, board.shape) if other in owner
            }
            for point in points
        }
        self.adjacent_chains: set[int] = set().union(*adjacent.values())
        empty = [adjacent[point] for point in points if board[point] == 0]
        self.vital_to: set[int] = set.intersection(*empty) if empty else set()
        self.is_covered = all(empty)
