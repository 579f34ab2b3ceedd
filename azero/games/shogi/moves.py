"""The 9 x 9 x 139 code of moves (AZ, supplement, 'Representation', Table S2).

action = 139 * square + plane. The square is where the man stands or is dropped, from the mover's side: 9 * rank + file, so that 0 is 9i for Black and 1a for
White (see `squares`). Planes:
    0-63     queen's moves: 8 * direction + distance - 1, the directions N NE E SE S SW W NW, the distances 1 to 8
    64-65    knight's jumps, to the right, to the left
    66-131   the same moves with promotion
    132-138  drops of a pawn, lance, knight, silver, bishop, rook, gold
North is forward for the mover. (The paper names the planes; their order here is that of its list.)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.shogi.legal import FREE_RANKS, drops_by_kind
from azero.games.shogi.position import HAND_KINDS, KNIGHT, LANCE, PAWN, Move, Position
from azero.games.shogi.squares import COMPASS, KNIGHT_JUMPS, NUM_SQUARES, SIZE, Direction, Squares, ranks, settle, spread, step
from azero.types import Array

NUM_PLANES = 139
NUM_ACTIONS = NUM_SQUARES * NUM_PLANES
DISTANCES = SIZE - 1
KNIGHT_PLANES, PROMOTING_PLANES, DROP_PLANES = 64, 66, 132
ZONE = 6
"""First rank of the promotion zone."""
MAX_LEGAL_MOVES = 593
"""Most legal moves of any position (R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1)."""


def plane_moves() -> list[Direction]:
    """Return how many files to the right and ranks forward a man moves, for the 66 planes without promotion."""
    queens = [(files * distance, forward * distance) for files, forward in COMPASS for distance in range(1, DISTANCES + 1)]
    return queens + list(KNIGHT_JUMPS)


def decode(action: Array) -> Move:
    """Return the move of actions uint32, from the mover's side. The end of a move that would leave the board is some other square."""
    square, plane = action // np.uint32(NUM_PLANES), action % np.uint32(NUM_PLANES)
    is_drop = spread(plane >= DROP_PLANES)
    promotes = (plane >= PROMOTING_PLANES).astype(np.uint32) & ~is_drop
    plane = plane - promotes * np.uint32(PROMOTING_PLANES)
    direction, distance = plane // np.uint32(DISTANCES), plane % np.uint32(DISTANCES) + np.uint32(1)
    offset = plane & np.uint32(0)
    for index, move in enumerate(COMPASS):
        offset = offset | (spread(direction == index) & (distance * _offset(move)))
    for index, move in enumerate(KNIGHT_JUMPS):
        offset = offset | (spread(plane == KNIGHT_PLANES + index) & _offset(move))
    end = (square + (offset & ~is_drop)) % np.uint32(NUM_SQUARES)
    return Move(square, end, promotes, (plane - np.uint32(DROP_PLANES - 1)) & is_drop)


def _offset(move: Direction) -> np.uint32:
    """Return what a move adds to a square's number, as a number that is not negative and the same modulo 81."""
    files, forward = move
    return np.uint32((SIZE * forward + files) % NUM_SQUARES)


def start_squares(position: Position, targets: Sequence[Squares]) -> list[Squares]:
    """Return for each of the 139 planes the squares from which a legal move of that plane starts (`targets` of `legal.legal`)."""
    own, kinds = position.own, position.kinds
    # Of the codes without the bit for promotion, gold alone has all others set; the king has that bit.
    movers = [own, ~position.occupied, own & ~(kinds[3] | (kinds[0] & kinds[1] & kinds[2]))]
    movers += [position.kind(code) & own for code in (PAWN, LANCE, KNIGHT)]
    own, empty, promotable, pawns, lances, knights = settle(*movers)
    plain, promoting = [], []
    for index, (files, forward) in enumerate(COMPASS):
        reached = targets[index]
        for distance in range(1, DISTANCES + 1):
            passed = step(reached, (-files, -forward))
            start = passed & own
            plain.append(start & ~_stuck(pawns, lances, distance) if forward > 0 and files == 0 else start)
            promoting.append(start & promotable & ranks(ZONE - max(forward, 0) * distance))
            reached = passed & empty
    for (files, forward), reached in zip(KNIGHT_JUMPS, targets[8:10], strict=True):
        start = step(reached, (-files, -forward)) & own & knights
        plain.append(start & ranks(0, FREE_RANKS[KNIGHT] - 1 - forward))
        promoting.append(start & ranks(ZONE - forward))
    return plain + promoting + drops_by_kind(position.own_hand, list(targets))


def _stuck(pawns: Squares, lances: Squares, distance: int) -> Squares:
    """Return the pawns and lances that could not go on after `distance` squares forward, and so have to promote."""
    return (pawns & ranks(FREE_RANKS[PAWN] - distance)) | (lances & ranks(FREE_RANKS[LANCE] - distance))


def action_mask(planes: Sequence[Squares]) -> Array:
    """Return bool[B, 11259] of the 139 sets of `start_squares`, words uint32[B]."""
    words = jnp.stack([squares[index] for index in range(3) for squares in planes])
    words = jax.lax.optimization_barrier(jax.lax.optimization_barrier(words).T)
    # Nine ranks are unpacked one by one: XLA keeps their joining apart from what is done with the mask, and vectorises both.
    pieces = []
    for rank in range(SIZE):
        third = words[:, None, NUM_PLANES * (rank // 3) : NUM_PLANES * (rank // 3 + 1)]
        shifts = jnp.arange(SIZE, dtype=jnp.uint32).reshape(1, SIZE, 1) + np.uint32(SIZE * (rank % 3))
        pieces.append((third >> shifts).astype(jnp.uint8) & 1 != 0)
    return jax.lax.optimization_barrier(jnp.concatenate(pieces, axis=1)).reshape(-1, NUM_ACTIONS)


def host_actions(planes: Sequence[Squares]) -> list[int]:
    """Return the legal actions, in rising order, of the 139 sets of one position, words numpy uint32[1]."""
    words = np.array([[int(word[0]) for word in squares] for squares in planes], np.uint32)
    bits = (words[:, :, None] >> np.arange(27, dtype=np.uint32)) & 1
    return np.flatnonzero(bits.reshape(NUM_PLANES, NUM_SQUARES).T.reshape(-1)).tolist()
