"""The 362 input planes of AlphaZero's shogi (AZ, supplement, Table S1).

Planes [rank, file, C] from the side to move (P1): rank 0 is its own first rank, file 0 is at its
left hand (9 for Black, 1 for White). For each of the eight newest positions, newest first, 45
planes; zeros before the start of the game (fewer with a shorter `history`, and what follows comes
earlier):
    0-13   P1's pawns, lances, knights, silvers, bishops, rooks, golds, king, promoted pawns,
           lances, knights, silvers, bishops (horses), rooks (dragons)
    14-27  P2's
    28-30  how often the position has occurred so far: once, twice, three times (one-hot; a fourth
           time ends the game)
    31-37  P1's pieces in hand: pawns, lances, knights, silvers, bishops, rooks, golds
    38-44  P2's
then, of the newest position:
    360    colour: ones when Black (sente) is to move
    361    total move count, of both sides
The paper has counts as one real number a plane and gives neither a scale nor the order of the
kinds. Here pieces in hand are divided by the pieces of their kind in a set (18 pawns, 4 lances,
..., 2 rooks) and the total by 512, the longest game.
"""

import jax.numpy as jnp
import numpy as np

from azero.games.compass import spread
from azero.games.shogi.position import (
    FRAME_WORDS,
    HAND_KINDS,
    KINDS,
    SET_SIZES,
    ShogiFacts,
    ShogiPosition,
    facts,
    hand_count,
    unpack,
)
from azero.games.shogi.squares import NUM_SQUARES, SIZE, layer
from azero.types import Array

PLANES_PER_FRAME = 45
ENDS = 2
"""Planes of the newest position alone."""
TOTAL_SCALE = 512.0


def planes_from_frames(frames: Array, to_play: Array) -> Array:
    """Return the planes float32[9, 9, 45 H + 2] of frames uint32[H, 18], newest first, as seen by
    the side to move int32[]."""
    white = spread(jnp.asarray(to_play) != 0)
    columns = [frames[:, index] for index in range(FRAME_WORDS)]
    position, known = unpack(columns, white), facts(columns[-1])
    shape = (NUM_SQUARES, frames.shape[0])
    pieces, constants = (
        _pieces(position),
        jnp.broadcast_to(_constants(position, known), (*shape, PLANES_PER_FRAME - 2 * len(KINDS))),
    )
    history = jnp.concatenate([pieces, constants], axis=2).reshape(NUM_SQUARES, -1)
    ends = jnp.stack(
        [(white == 0).astype(jnp.float32), known.plies[0].astype(jnp.float32) / TOTAL_SCALE]
    )
    return jnp.concatenate([history, jnp.broadcast_to(ends, (NUM_SQUARES, ENDS))], axis=1).reshape(
        SIZE, SIZE, -1
    )


def _pieces(position: ShogiPosition) -> Array:
    """Return the planes float32[81, H, 28] of the pieces."""
    sides = (position.own, position.other)
    (sets,) = layer([position.kind(code) & side for side in sides for code in KINDS], 1)
    words = jnp.stack([word.T for word in sets])
    bits = (words[:, None] >> jnp.arange(27, dtype=jnp.uint32).reshape(1, 27, 1, 1)) & 1
    return bits.astype(jnp.float32).reshape(NUM_SQUARES, -1, 2 * len(KINDS))


def _constants(position: ShogiPosition, known: ShogiFacts) -> Array:
    """Return float32[H, 17], the planes that are the same on every square: occurrences and pieces
    in hand."""
    occurrences = [
        (known.occurrences == times) | ((known.occurrences > times) & (times == 3))
        for times in (1, 2, 3)
    ]
    hands = [
        hand_count(hand, code)
        for hand in (position.own_hand, position.other_hand)
        for code in HAND_KINDS
    ]
    sizes = np.array([1, 1, 1, *(SET_SIZES[code] for code in HAND_KINDS * 2)], np.float32)
    return (
        jnp.stack([value.astype(jnp.float32) for value in (*occurrences, *hands)], axis=1)
        / sizes[None]
    )
