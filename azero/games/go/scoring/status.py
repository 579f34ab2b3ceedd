"""Dead stones at the end of a game of Go, and the score without them.

Unconditional life (Benson) decides where it can: such stones live, and the other side's stones
inside their territory are dead. Elsewhere playouts decide: a chain whose points its own side keeps
in too few of them is dead. Unsettled groups, where the side to move wins, count as alive, and so
does a seki. Small eye spaces are searched exhaustively, because random games seldom find the vital
points of a nakade.
"""

from dataclasses import dataclass

import numpy as np

from azero.games.go import setup
from azero.games.go.scoring.life import pass_alive
from azero.games.go.scoring.nakade import MOST_POINTS, EyeSpace
from azero.games.go.setup import Point

DEAD_BELOW = 0.5
"""A chain that its side keeps in a smaller share of the playouts is dead. Of 150 counted games of
19x19 (Tygem, 9 dan) 9 were then scored differently from the players (by more than two points), 16
with 0.4 and 18 with 0.6; some of these records break off before the end."""
UNSURE_BELOW = 0.7
"""A chain next to a large neutral region is dead below this share if it is the weakest one there:
8 of the 150 games are scored differently then, and of 56 that were scored differently before, 22
instead of 33."""
SHARED_POINTS = 7
"""Largest empty region that may be neutral in a finished game, as in a seki; one above a quarter of
the board means that the game is not finished."""
PLAYOUT_MOVES = 24_000
"""Work for one judgement: playouts times points of the board; 9x9 gets 256 playouts, 19x19 gets
64."""
FEWEST_PLAYOUTS, MOST_PLAYOUTS = 64, 256
SAFE_TERRITORY = 6
"""Points of territory that make a group safe enough to fill the liberties of a chain it surrounds:
no seki on the test positions has as many; a choice."""
SHARED_LIBERTIES = 2
"""Largest empty region outside a chain that the surrounding stones are assumed to fill before the
owner makes an eye there."""
SEKI_EYES = 2
"""A living group with fewer points of territory than this, next to neutral points, is in seki."""


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
    """int8[H, W]: owner of each point after removing dead stones; 0 is neutral."""

    @property
    def margin(self) -> int:
        """Black's area minus White's."""
        return int(self.area.sum(dtype=np.int64))

    def chains(self, which: str) -> list[list[tuple[int, int]]]:
        """Return the chains that are "alive", "dead" or "seki", each as sorted (row, column)."""
        masks = {"dead": self.dead, "seki": self.seki, "alive": ~self.dead & ~self.seki}
        return [sorted(chain) for chain, _ in setup.chains(self.board * masks[which])]


def prepare(shape: tuple[int, int]) -> None:
    """Compile what `judge` needs for boards of this shape."""
    owners_of(np.zeros(shape, np.int8))


def owners_of(board: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return float32[H, W]: the mean owner of each point at the end of random games, 1 Black to -1
    White."""
    # loads JAX, which the other commands of a GTP engine need not wait for
    from azero.games.go.scoring.playouts import count_ownership

    playouts = np.clip(PLAYOUT_MOVES // board.size // 2 * 2, FEWEST_PLAYOUTS, MOST_PLAYOUTS)
    return count_ownership(board, int(playouts), seed)


def judge(board: np.ndarray, seed: int = 0) -> Status:
    """Judge a final position, board int8[H, W]; the same board and seed give the same judgement.

    On unsettled boards the result depends on playouts; see the docstring of this module.
    """
    dead = _dead_stones(board, seed)
    alive = board * ~dead
    area = area_of(alive)
    return Status(board, dead, _seki(alive, area), area)


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
        kept = np.where(alive, 1.0, _kept_shares(board, owners_of(board, seed)))
        dead |= (board != 0) & (kept < DEAD_BELOW)
        _divide_large_regions(board, kept, dead)
        _kill_by_nakade(board, dead, alive)
    return dead


def _kept_shares(board: np.ndarray, ownership: np.ndarray) -> np.ndarray:
    """Return float64[H, W]: the share of the playouts in which its side keeps the points of each
    stone's chain; 0 where there is no stone."""
    kept = np.zeros(board.shape)
    for chain, _ in setup.chains(board):
        points = tuple(zip(*chain, strict=True))
        kept[points] = (1 + (board[points] * ownership[points]).mean()) / 2
    return kept


def _divide_large_regions(board: np.ndarray, kept: np.ndarray, dead: np.ndarray) -> None:
    """Mark in `dead` the weakest chains next to large neutral regions: one such stone would
    otherwise cost a side its whole territory."""
    chain_of = {point: chain for chain, _ in setup.chains(board) for point in chain}
    while (weakest := _weakest_next_to_neutral(board * ~dead, kept)) is not None:
        for point in chain_of[weakest]:
            dead[point] = True


def _weakest_next_to_neutral(board: np.ndarray, kept: np.ndarray) -> Point | None:
    """Return the stone next to a large region bordered by both colours that its side keeps least
    often; None where all are kept often enough."""
    for region, _ in setup.chains((board == 0).astype(np.int8)):
        border = _border(region, board.shape)
        if (
            SHARED_POINTS < len(region) <= board.size // 4
            and len({int(board[point]) for point in border}) > 1
        ):
            weakest = min(border, key=lambda point: (kept[point], point))
            if kept[weakest] < UNSURE_BELOW:
                return weakest
    return None


def _kill_by_nakade(board: np.ndarray, dead: np.ndarray, alive: np.ndarray) -> None:
    """Mark in `dead` the chains that seem alive but are killed inside their eye space; the stones
    that kill them live."""
    area = area_of(board * ~dead)
    safe = alive.copy()
    for group, _ in setup.chains(area):
        if sum(board[point] == 0 for point in group) >= SAFE_TERRITORY:
            safe[tuple(zip(*group, strict=True))] = True
    safe &= ~dead
    for chain, _ in setup.chains(board):
        first = next(iter(chain))
        if alive[first] or dead[first]:
            continue
        regions = [region for region, _ in setup.chains(_without(chain, board.shape))]
        within = {point for region in regions if len(region) <= MOST_POINTS for point in region}
        if not 0 < len(within) <= MOST_POINTS or not _is_surrounded(board, chain, within, safe):
            continue
        stones = [
            {point for point in within if board[point] == colour}
            for colour in (board[first], -board[first])
        ]
        if EyeSpace(within, board.shape, chain).is_dead(*stones):
            for point in chain | stones[0]:
                dead[point] = True
            for point in stones[1]:
                dead[point] = False


def _without(chain: set[Point], shape: tuple[int, ...]) -> np.ndarray:
    """Return int8[H, W]: 1 at the points outside the chain."""
    rest = np.ones(shape, np.int8)
    rest[tuple(zip(*chain, strict=True))] = 0
    return rest


def _is_surrounded(
    board: np.ndarray, chain: set[Point], within: set[Point], safe: np.ndarray
) -> bool:
    """Return whether a chain with the eye space `within` is surrounded by safe stones of the other
    side and liberties that these can fill."""
    colour = board[next(iter(chain))]
    outside = _border(chain, board.shape) - within
    for region, _ in setup.chains((board == 0).astype(np.int8)):
        if not region.isdisjoint(outside):
            if len(region) > SHARED_LIBERTIES:
                return False
            outside |= _border(region, board.shape) - chain
            outside -= region
    return all(board[point] == -colour and safe[point] for point in outside)


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
    """Return bool[H, W]: stones of groups (chains joined by their territory) that touch neutral
    points and have fewer than two points of territory."""
    seki = np.zeros(board.shape, bool)
    for group, _ in setup.chains(area):
        touches_neutral = any(area[point] == 0 for point in _border(group, board.shape))
        if touches_neutral and sum(board[point] == 0 for point in group) < SEKI_EYES:
            for point in group:
                seki[point] = board[point] != 0
    return seki


def _border(points: set[Point], shape: tuple[int, ...]) -> set[Point]:
    """Return the neighbours of a set of points."""
    return {other for point in points for other in setup.neighbours(point, shape)} - points
