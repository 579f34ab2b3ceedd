"""The legal moves of a position, as the squares that can be reached in each direction and those
where pieces may be dropped.

Every piece moves one step, so no piece can block a check: the lion moves away or the checking piece
is captured.
"""

from typing import NamedTuple

import numpy as np

from azero.games.animal_shogi.position import (
    CHICK,
    ELEPHANT,
    GIRAFFE,
    HAND_KINDS,
    HEN,
    LION,
    AnimalShogiPosition,
    hand_count,
)
from azero.games.animal_shogi.squares import BOARD, has_several, step
from azero.games.compass import COMPASS, spread, union
from azero.types import Array

NUM_TARGETS = 9
"""Sets of squares: reached in the compass directions, open to drops."""


class AnimalShogiLegal(NamedTuple):
    """The legal moves of a position, and check."""

    targets: list[Array]
    """NUM_TARGETS words; the last one does not depend on the pieces in hand"""
    in_check: Array
    """bool"""
    can_move: Array
    """bool"""


def legal(position: AnimalShogiPosition) -> AnimalShogiLegal:
    """Return the legal moves of a position."""
    own, other = position.own, position.other
    lion = position.kind(LION)
    movers, enemies = _by_direction(position), _by_direction(position, opposite=True)
    attacked = union(
        step(enemies[index] & other, direction) for index, direction in enumerate(COMPASS)
    )
    checkers = union(
        step(lion & own, direction) & enemies[(index + 4) % 8] & other
        for index, direction in enumerate(COMPASS)
    )
    in_check = checkers != 0
    check_mask = (checkers & ~spread(has_several(checkers))) | ~spread(in_check)
    targets = []
    for index, direction in enumerate(COMPASS):
        pieces = step(movers[index] & own & ~lion, direction) & check_mask
        targets.append((pieces | (step(lion & own, direction) & ~attacked)) & ~own)
    targets.append(~(own | other) & BOARD & ~spread(in_check))
    drops = drops_by_kind(position.own_hand, targets[8])
    return AnimalShogiLegal(targets, in_check, union([*targets[:8], *drops]) != 0)


def drops_by_kind(hand: Array, open_squares: Array) -> list[Array]:
    """Return the squares where each of HAND_KINDS may be dropped from `hand`. A chick may be
    dropped on any empty square."""
    return [open_squares & spread(hand_count(hand, code) != 0) for code in HAND_KINDS]


def _by_direction(position: AnimalShogiPosition, opposite: bool = False) -> list[Array]:
    """Return the pieces that can step in each compass direction, if they are the mover's, or with
    `opposite` if they are the other side's."""
    elephants, lions = position.kind(ELEPHANT), position.kind(LION)
    hens = position.kind(HEN)
    straight, back = position.kind(GIRAFFE) | lions | hens, elephants | lions
    ahead, flank = straight | position.kind(CHICK), back | hens
    pieces = [ahead, flank, straight, back, straight, back, straight, flank]
    return pieces[4:] + pieces[:4] if opposite else pieces


def wins_by_trying(position: AnimalShogiPosition) -> Array:
    """Return bool: the lion of the side that is not to move is on its far rank, the mover's first
    one. The move there was legal, so it is not attacked."""
    return (position.kind(LION) & position.other & np.uint32(0o7)) != 0
