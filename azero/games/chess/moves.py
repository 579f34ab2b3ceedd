"""The 8 x 8 x 73 encoding of moves (AZ, supplement, 'Representation', Table S2).

action = 73 * square + plane. The square is where the piece stands, from the mover's side:
8 * rank + file, so that 0 is White's a1 and Black's a8. Planes:
    0-55   queen's moves: 7 * direction + distance - 1, the directions N NE E SE S SW W NW, the
           distances 1 to 7
    56-63  knight's moves, clockwise from north-north-east
    64-72  underpromotions: 64 + 3 * direction + kind, the directions NW N NE, the kinds knight,
           bishop, rook
North is forward for the mover. A pawn that goes to the last rank by a queen's move becomes a queen;
castling is the king's move by two squares. (The paper names the planes; their order here is that of
its list.)
"""

from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.bits import batch_first, unpack_host
from azero.games.chess.position import KNIGHT, PAWN, ChessMove, ChessPosition
from azero.games.chess.squares import KNIGHT_JUMPS, ChessSquares, constant, step
from azero.games.compass import COMPASS, NE, NW, N, compute_once, spread
from azero.types import Array

NUM_PLANES = 73
NUM_ACTIONS = 64 * NUM_PLANES
KNIGHT_PLANES, UNDERPROMOTION_PLANES = 56, 64
UNDERPROMOTION_DIRECTIONS = (NW, N, NE)
MAX_LEGAL_MOVES = 218
"""Most legal moves of any reachable position known (R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w -
- 0 1)."""

_BEFORE_LAST_RANK = constant(0xFF << 48)


def plane_moves() -> list[tuple[int, int, int]]:
    """Return for each plane how many files and ranks a piece moves, and the code of the kind for an
    underpromotion, else 0."""
    queens = [
        (files * distance, ranks * distance, 0)
        for files, ranks in COMPASS
        for distance in range(1, 8)
    ]
    jumps = [(files, ranks, 0) for files, ranks in KNIGHT_JUMPS]
    promotions = [
        (*COMPASS[direction], code) for direction in UNDERPROMOTION_DIRECTIONS for code in (2, 3, 4)
    ]
    return queens + jumps + promotions


def decode(action: Array) -> ChessMove:
    """Return the move of actions uint32, from the mover's side. The end of a move that would leave
    the board is arbitrary."""
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
    return ChessMove(square, (square + offset) & np.uint32(63), kind)


def _offset(files: int, ranks: int) -> np.uint32:
    return np.uint32((8 * ranks + files) % (1 << 32))


def start_squares(position: ChessPosition, targets: Sequence[ChessSquares]) -> list[ChessSquares]:
    """Return for each of the 73 planes the squares from which a legal move of that plane starts
    (`targets` of `legal.legal`)."""
    pieces = (
        position.own,
        ~position.occupied,
        position.kind(PAWN) & _BEFORE_LAST_RANK,
        position.kind(KNIGHT),
    )
    own, empty, pawns, knights, *targets = compute_once(*pieces, *targets)
    reached, passed = targets[:8], []
    for _ in range(7):
        passed += compute_once(
            *(
                step(squares, (-files, -ranks))
                for squares, (files, ranks) in zip(reached, COMPASS, strict=True)
            )
        )
        reached = [squares & empty for squares in passed[-8:]]
    planes = [
        passed[8 * distance + direction] & own for direction in range(8) for distance in range(7)
    ]
    for squares, (files, ranks) in zip(targets[8:], KNIGHT_JUMPS, strict=True):
        planes.append(step(squares, (-files, -ranks)) & own & knights)
    for direction in UNDERPROMOTION_DIRECTIONS:
        planes += [planes[7 * direction] & pawns] * 3
    return planes


def action_mask(
    planes: Sequence[ChessSquares], firsts: Iterable[int] = range(0, 64, 4), width: int = 4
) -> Array:
    """Return bool[B, A] of the sets of `start_squares`, words uint32[B], for `width` squares from
    each of `firsts` on: all 64 by default, which are 4,672 actions."""
    words = jnp.stack([squares.low for squares in planes] + [squares.high for squares in planes])
    words = batch_first(jax.lax.optimization_barrier(words))
    # Sixteen half ranks are unpacked one by one: XLA does not fuse their concatenation with the
    # uses of the mask, and vectorises both.
    chunks, count = [], len(planes)
    for first in firsts:
        half = words[:, None, count * (first // 32) : count * (first // 32 + 1)]
        shifts = jnp.arange(width, dtype=jnp.uint32).reshape(1, width, 1) + np.uint32(first % 32)
        chunks.append((half >> shifts).astype(jnp.uint8) & 1 != 0)
    mask = jax.lax.optimization_barrier(jnp.concatenate(chunks, axis=1))
    return mask.reshape(len(mask), -1)


def host_actions(planes: Sequence[ChessSquares], squares: Sequence[int] = range(64)) -> list[int]:
    """Return the legal actions, in ascending order, of the sets of one position, words numpy
    uint32[1], with the moves from `squares`."""
    words = np.array([[int(held.low[0]), int(held.high[0])] for held in planes], np.uint32)
    return np.flatnonzero(unpack_host(words, 64)[:, squares].T).tolist()
