"""The 4 x 3 x 11 encoding of moves, after that of AlphaZero's shogi (see
`azero.games.shogi.moves`).

action = 11 * square + plane. The square is where the piece stands or is dropped, from the mover's
side: 3 * rank + file. Planes:
    0-7   one step N NE E SE S SW W NW; north is forward for the mover
    8-10  drops of a chick, elephant, giraffe
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from azero.games.animal_shogi.legal import drops_by_kind
from azero.games.animal_shogi.position import AnimalShogiMove, AnimalShogiPosition
from azero.games.animal_shogi.squares import NUM_SQUARES, step
from azero.games.compass import COMPASS, spread
from azero.types import Array

NUM_PLANES = 11
NUM_ACTIONS = NUM_SQUARES * NUM_PLANES
DROP_PLANES = 8
MAX_LEGAL_MOVES = 43
"""No position has more. With b pieces besides the lions on the board and k kinds in hand there are
at most 8 + w + k (10 - b) moves, w those of the b pieces (a hen has 6, an elephant and a giraffe
4); that is largest for k = 3 and one of each on the board."""


def decode(action: Array) -> AnimalShogiMove:
    """Return the move of actions uint32. A move that would leave the board has no end square."""
    square, plane = action // np.uint32(NUM_PLANES), action % np.uint32(NUM_PLANES)
    start = np.uint32(1) << square
    is_drop = spread(plane >= DROP_PLANES)
    end = start & is_drop
    for index, direction in enumerate(COMPASS):
        end = end | (step(start, direction) & spread(plane == index))
    return AnimalShogiMove(start, end, (plane - np.uint32(DROP_PLANES - 1)) & is_drop)


def start_squares(position: AnimalShogiPosition, targets: Sequence[Array]) -> list[Array]:
    """Return for each of the 11 planes the squares from which a legal move of that plane starts
    (`targets` of `legal.legal`)."""
    steps = [
        step(squares, (-files, -forward)) & position.own
        for squares, (files, forward) in zip(targets[:8], COMPASS, strict=True)
    ]
    return steps + drops_by_kind(position.own_hand, targets[8])


def action_mask(planes: Sequence[Array]) -> Array:
    """Return bool[132] of the 11 sets of `start_squares`, words uint32[]."""
    words = jnp.stack(list(planes))
    bits = (words[None, :] >> jnp.arange(NUM_SQUARES, dtype=jnp.uint32)[:, None]) & 1
    return (bits != 0).reshape(NUM_ACTIONS)


def host_actions(planes: Sequence[Array]) -> list[int]:
    """Return the legal actions, in ascending order, of the 11 sets of one position, words numpy
    uint32[1]."""
    words = np.array([int(word[0]) for word in planes], np.uint32)
    bits = (words[None, :] >> np.arange(NUM_SQUARES, dtype=np.uint32)[:, None]) & 1
    return np.flatnonzero(bits.reshape(-1)).tolist()
