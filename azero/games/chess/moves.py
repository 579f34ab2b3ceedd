"""The 8 x 8 x 73 code of moves (AZ, supplement, 'Representation', Table S2).

action = 73 * square + plane. The square is where the man stands, from the mover's side: 8 * rank + file, so that 0 is White's a1 and Black's a8. Planes:
    0-55   queen's moves: 7 * direction + distance - 1, the directions N NE E SE S SW W NW, the distances 1 to 7
    56-63  knight's jumps, clockwise from north-north-east
    64-72  underpromotions: 64 + 3 * direction + kind, the directions NW N NE, the kinds knight, bishop, rook
North is forward for the mover. A pawn that goes to the last rank by a queen's move becomes a queen; castling is the king's move by two squares. (The paper names
the planes; their order here is that of its list.)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.chess.legal import Targets
from azero.games.chess.position import KNIGHT, PAWN, Move, Position
from azero.games.chess.squares import COMPASS, KNIGHT_JUMPS, NE, NW, Direction, N, Squares, constant, opposite, settle, spread, step
from azero.types import Array

NUM_PLANES = 73
NUM_ACTIONS = 64 * NUM_PLANES
KNIGHT_PLANES, UNDERPROMOTION_PLANES = 56, 64
UNDERPROMOTION_DIRECTIONS = (NW, N, NE)
MAX_LEGAL_MOVES = 218
"""Most legal moves of any reachable position known (R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1)."""

_BEFORE_LAST_RANK = constant(0xFF << 48)


def plane_of(direction: Direction, distance: int = 1) -> int:
    """Return the plane of a queen's move or a knight's jump."""
    if direction in KNIGHT_JUMPS:
        return KNIGHT_PLANES + KNIGHT_JUMPS.index(direction)
    return 7 * COMPASS.index(direction) + distance - 1


def plane_moves() -> list[tuple[int, int, int]]:
    """Return for each plane how many files and ranks a man moves, and the code of the kind for an underpromotion, else 0."""
    queens = [(files * distance, ranks * distance, 0) for files, ranks in COMPASS for distance in range(1, 8)]
    jumps = [(files, ranks, 0) for files, ranks in KNIGHT_JUMPS]
    promotions = [(*COMPASS[direction], code) for direction in UNDERPROMOTION_DIRECTIONS for code in (2, 3, 4)]
    return queens + jumps + promotions


def decode(action: Array) -> Move:
    """Return the move of actions uint32, from the mover's side. The end of a move that would leave the board is some other square."""
    square, plane = action // np.uint32(NUM_PLANES), action % np.uint32(NUM_PLANES)
    line, distance = plane // np.uint32(7), plane % np.uint32(7) + np.uint32(1)
    offset = plane & np.uint32(0)
    for index, (files, ranks) in enumerate(COMPASS):
        offset = offset | (spread(line == index) & (distance * _offset(files, ranks)))
    for index, (files, ranks) in enumerate(KNIGHT_JUMPS):
        offset = offset | (spread(plane == KNIGHT_PLANES + index) & _offset(files, ranks))
    under = plane - np.uint32(UNDERPROMOTION_PLANES)
    is_under = spread(plane >= UNDERPROMOTION_PLANES)
    # NW, N, NE are 7, 8 and 9 squares on.
    offset = (offset & ~is_under) | ((under // np.uint32(3) + np.uint32(7)) & is_under)
    kind = (under % np.uint32(3) + np.uint32(2)) & is_under
    return Move(square, (square + offset) & np.uint32(63), kind)


def _offset(files: int, ranks: int) -> np.uint32:
    return np.uint32((8 * ranks + files) % (1 << 32))


def start_squares(position: Position, targets: Targets) -> list[Array]:
    """Return the squares from which the legal moves of each plane start: pairs of words (low, high), uint32[2, 4, B] for each distance of queen's moves.

    The seven distances are followed by the knight's jumps and by the pawns that may be promoted, in three of the eight directions.
    """
    own, empty = settle(position.own, ~position.occupied)
    reached, back = targets.compass, opposite(COMPASS)
    words: list[Array] = []
    for _ in range(7):
        (passed,) = settle(step(reached, back))
        words += passed & own
        reached = passed & empty
    words += step(targets.jumps, opposite(KNIGHT_JUMPS)) & own & position.kind(KNIGHT)
    return [*words, *(Squares(words[0], words[1]) & position.kind(PAWN) & _BEFORE_LAST_RANK)]


def plane_words(words: Sequence[Array]) -> Array:
    """Return uint32[2, 73, B], (low, high) of each plane, of the words of `start_squares`."""
    queens, jumps, promotions = words[:14], words[14:16], words[16:]
    xp = jnp if isinstance(words[0], jax.Array) else np
    halves = []
    for half in range(2):
        moves_of_queens = xp.stack(queens[half::2], axis=2).reshape(KNIGHT_PLANES, -1)
        promotion = promotions[half].reshape(8, -1)
        under = [promotion[direction] for direction in UNDERPROMOTION_DIRECTIONS for _ in range(3)]
        halves.append(xp.concatenate([moves_of_queens, jumps[half].reshape(8, -1), xp.stack(under)]))
    return xp.stack(halves)


def action_mask(words: Sequence[Array], is_over: Array) -> Array:
    """Return bool[B, 4672] of the words of `start_squares`; all True where `is_over` bool[B]."""
    planes = jax.lax.optimization_barrier(plane_words(words)) | spread(is_over)
    halves = jax.lax.optimization_barrier(jnp.moveaxis(planes, -1, 0))[:, :, None, :]
    bits = (halves >> jnp.arange(32, dtype=jnp.uint32).reshape(1, 1, 32, 1)) & 1
    return bits.reshape(-1, NUM_ACTIONS) != 0


def host_actions(words: Sequence[Array]) -> list[int]:
    """Return the legal actions, in rising order, of the words of `start_squares` of one position in numpy."""
    planes = np.asarray(plane_words(words))[:, :, 0]
    bits = (planes[:, None, :] >> np.arange(32, dtype=np.uint32)[None, :, None]) & 1
    return np.flatnonzero(bits.reshape(-1)).tolist()
