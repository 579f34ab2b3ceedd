"""The 9 x 9 x 139 encoding of moves (AZ, supplement, 'Representation', Table S2).

action = 139 * square + plane. The square is where the piece stands or is dropped, from the mover's
side: 9 * rank + file, so that 0 is 9i for Black and 1a for White (see `squares`). Planes:
    0-63     queen's moves: 8 * direction + distance - 1, the directions N NE E SE S SW W NW, the
             distances 1 to 8
    64-65    knight's moves, to the right, to the left
    66-131   the same moves with promotion
    132-138  drops of a pawn, lance, knight, silver, bishop, rook, gold
North is forward for the mover. (The paper names the planes; their order here is that of its list.)
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.games.bits import batch_first
from azero.games.compass import COMPASS, Direction, compute_once, spread
from azero.games.shogi.legal import FREE_RANKS, drops_by_kind
from azero.games.shogi.position import KNIGHT, LANCE, PAWN, ShogiMove, ShogiPosition
from azero.games.shogi.squares import (
    KNIGHT_JUMPS,
    NUM_SQUARES,
    SIZE,
    ShogiSquares,
    layer,
    ranks,
    step,
)
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
    """Return how many files to the right and ranks forward a piece moves, for the 66 planes without
    promotion."""
    queens = [
        (files * distance, forward * distance)
        for files, forward in COMPASS
        for distance in range(1, DISTANCES + 1)
    ]
    return queens + list(KNIGHT_JUMPS)


def decode(action: Array) -> ShogiMove:
    """Return the move of actions uint32, from the mover's side. The end of a move that would leave
    the board is arbitrary."""
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
    return ShogiMove(square, end, promotes, (plane - np.uint32(DROP_PLANES - 1)) & is_drop)


def _offset(move: Direction) -> np.uint32:
    """Return what a move adds to a square's number, modulo 81."""
    files, forward = move
    return np.uint32((SIZE * forward + files) % NUM_SQUARES)


def start_squares(position: ShogiPosition, targets: Sequence[ShogiSquares]) -> ShogiSquares:
    """Return for each of the 139 planes the squares from which a legal move of that plane starts,
    words uint32[139, ...] (`targets` of `legal.legal`)."""
    own, kinds = position.own, position.kinds
    # Of the codes without the promotion bit, only that of gold has all other bits set; the king's
    # code has that bit.
    movers = [own, ~position.occupied, own & ~(kinds[3] | (kinds[0] & kinds[1] & kinds[2]))]
    movers += [(position.kind(PAWN) | position.kind(LANCE)) & own, position.kind(KNIGHT) & own]
    own, empty, promotable, sliders, knights = compute_once(*movers)
    reached, passed = list(targets[:8]), []
    for _ in range(DISTANCES):
        passed += compute_once(
            *(
                step(squares, (-files, -forward))
                for squares, (files, forward) in zip(reached, COMPASS, strict=True)
            )
        )
        reached = [squares & empty for squares in passed[-8:]]
    own, promotable, sliders = (
        ShogiSquares(*(word[None] for word in squares)) for squares in (own, promotable, sliders)
    )
    starts = (
        layer(
            [
                passed[8 * distance + direction]
                for direction in range(8)
                for distance in range(DISTANCES)
            ],
            1,
        )[0]
        & own
    )
    jumps = [
        step(squares, (-files, -forward)) & knights
        for squares, (files, forward) in zip(targets[8:10], KNIGHT_JUMPS, strict=True)
    ]
    rest = [squares & ranks(0, FREE_RANKS[KNIGHT] - 3) for squares in jumps] + [
        squares & ranks(ZONE - 2) for squares in jumps
    ]
    others = layer([*rest, *drops_by_kind(position.own_hand, list(targets))], 1)[0]
    stuck, zone = (
        _forward_ranks(own, FREE_RANKS[PAWN], is_forward_only=True),
        _forward_ranks(own, ZONE, is_forward_only=False),
    )
    plain, promoting = starts & ~(stuck & sliders), starts & promotable & zone
    return ShogiSquares(*map(_join_planes, plain, promoting, others))


def _forward_ranks(like: ShogiSquares, rank: int, is_forward_only: bool) -> ShogiSquares:
    """Return for each of the 64 queen's moves the squares from which it reaches `rank` or beyond,
    or starts there: words uint32[64, 1...] with the axes of `like`, words [1, ...].

    With `is_forward_only`, only moves straight forward have any.
    """
    moves = plane_moves()[:KNIGHT_PLANES]
    sets = [
        ranks(rank - max(forward, 0))
        if forward > 0 == files or not is_forward_only
        else ranks(SIZE)
        for files, forward in moves
    ]
    shape = (KNIGHT_PLANES, *(1 for _ in np.shape(like.near)[1:]))
    return ShogiSquares(
        *(np.array(words, np.uint32).reshape(shape) for words in zip(*sets, strict=True))  # type: ignore[arg-type]
    )


def _join_planes(plain: Array, promoting: Array, others: Array) -> Array:
    """Return words uint32[139, ...] in the order of the planes: `others` are knights without
    promotion, knights with it, and drops."""
    parts = [plain, others[:2], promoting, others[2:]]
    return jnp.concatenate(parts) if isinstance(plain, jax.Array) else np.concatenate(parts)


def action_mask(starts: ShogiSquares) -> Array:
    """Return bool[B, 11259] of the 139 sets of `start_squares`, words uint32[139, B]."""
    words = batch_first(jax.lax.optimization_barrier(jnp.concatenate(starts)))
    # Nine ranks are unpacked one by one: XLA does not fuse their concatenation with the uses of the
    # mask, and vectorises both.
    chunks = []
    for rank in range(SIZE):
        third = words[:, None, NUM_PLANES * (rank // 3) : NUM_PLANES * (rank // 3 + 1)]
        shifts = jnp.arange(SIZE, dtype=jnp.uint32).reshape(1, SIZE, 1) + np.uint32(
            SIZE * (rank % 3)
        )
        chunks.append((third >> shifts).astype(jnp.uint8) & 1 != 0)
    return jax.lax.optimization_barrier(jnp.concatenate(chunks, axis=1)).reshape(-1, NUM_ACTIONS)


def host_actions(starts: ShogiSquares) -> list[int]:
    """Return the legal actions, in ascending order, of the 139 sets of one position, words numpy
    uint32[139, 1]."""
    words = np.concatenate([np.asarray(word) for word in starts], axis=1)
    bits = (words[:, :, None] >> np.arange(27, dtype=np.uint32)) & 1
    return np.flatnonzero(bits.reshape(NUM_PLANES, NUM_SQUARES).T.reshape(-1)).tolist()
