"""The 146 input planes of animal shogi, after those of AlphaZero's shogi (see
`azero.games.shogi.encoding`).

Planes [rank, file, C] from the side to move (P1): rank 0 is its own first rank, file 0 at its left
hand. For each of the eight newest positions, newest first, 18 planes; zeros before the start of the
game:
    0-4    P1's chicks, elephants, giraffes, lion, hens
    5-9    P2's
    10-11  how often the position has occurred so far: once, twice (one-hot; a third time ends the
           game)
    12-14  P1's pieces in hand: chicks, elephants, giraffes, divided by two
    15-17  P2's
then, of the newest position:
    144    colour: ones when the first player is to move
    145    total move count, of both sides, divided by 256
"""

import jax.numpy as jnp

from azero.games.animal_shogi.position import (
    FRAME_WORDS,
    HAND_KINDS,
    KINDS,
    SET_SIZE,
    hand_count,
    occurrences,
    plies,
    unpack,
)
from azero.games.animal_shogi.squares import FILES, NUM_SQUARES, RANKS
from azero.games.compass import spread
from azero.types import Array

PLANES_PER_FRAME = 18
ENDS = 2
"""Planes of the newest position alone."""
TOTAL_SCALE = 256.0


def planes_from_frames(frames: Array, to_play: Array) -> Array:
    """Return the planes float32[4, 3, 18 H + 2] of frames uint32[H, 3], newest first, as seen by
    the side to move int32[]."""
    second = spread(jnp.asarray(to_play) != 0)
    columns = [frames[:, index] for index in range(FRAME_WORDS)]
    position, times = unpack(columns, second), occurrences(columns[2])
    words = jnp.stack(
        [position.kind(code) & side for side in (position.own, position.other) for code in KINDS],
        axis=1,
    )
    pieces = (
        (words[None] >> jnp.arange(NUM_SQUARES, dtype=jnp.uint32).reshape(-1, 1, 1)) & 1
    ).astype(jnp.float32)
    hands = [
        hand_count(hand, code).astype(jnp.float32) / SET_SIZE
        for hand in (position.own_hand, position.other_hand)
        for code in HAND_KINDS
    ]
    constants = jnp.stack(
        [(times == 1).astype(jnp.float32), (times >= 2).astype(jnp.float32), *hands], axis=1
    )
    constants = jnp.broadcast_to(constants, (NUM_SQUARES, *constants.shape))
    history = jnp.concatenate([pieces, constants], axis=2).reshape(NUM_SQUARES, -1)
    ends = jnp.stack(
        [(second == 0).astype(jnp.float32), plies(columns[2])[0].astype(jnp.float32) / TOTAL_SCALE]
    )
    return jnp.concatenate([history, jnp.broadcast_to(ends, (NUM_SQUARES, ENDS))], axis=1).reshape(
        RANKS, FILES, -1
    )
