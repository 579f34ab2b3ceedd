"""The legal moves of a position, as the squares that can be reached in each direction and those
where pieces may be dropped.

A square is reached by at most one piece per compass direction, the first one on the line behind it.
So eight sets of squares for the compass directions and two for the knight's jumps hold every move
on the board, and no move is played to test whether it leaves the king in check: pinned pieces stay
on their line, and in check a move must end between king and checker or on the checker. Two more
sets hold the drops: of pawns, and of other pieces (still including their last ranks).
"""

from typing import NamedTuple

from azero.games.compass import (
    COMPASS,
    ChecksAndPins,
    KingLines,
    compute_once,
    find_checks_and_pins,
    opposite,
    spread,
    union,
)
from azero.games.shogi.pawn_mate import mating_square
from azero.games.shogi.position import HAND_KINDS, KNIGHT, LANCE, PAWN, ShogiPosition, hand_count
from azero.games.shogi.reach import Pieces, lines_of, near_attackers, near_attacks, pieces_of
from azero.games.shogi.squares import KNIGHT_JUMPS, ShogiSquares, fill, ranks, step, whole_files
from azero.types import Array

NUM_TARGETS = 12
"""Sets of squares: reached in the compass directions, by a knight's jump to the right, to the left,
open to pawns, open to other pieces."""
PAWN_DROPS, OTHER_DROPS = 10, 11
FREE_RANKS = {PAWN: 8, LANCE: 8, KNIGHT: 7}
"""Number of ranks, from the mover's side, from which a piece can still move; all nine for the other
kinds."""


class ShogiLegal(NamedTuple):
    """The legal moves of a position, and check."""

    targets: list[ShogiSquares]
    """NUM_TARGETS sets of squares; those for drops do not depend on the pieces in hand"""
    in_check: Array
    """bool"""
    can_move: Array
    """bool"""


def legal(position: ShogiPosition) -> ShogiLegal:
    """Return the legal moves of a position."""
    pieces = compute_once(position.own, position.other, *position.kinds)
    position = position._replace(own=pieces[0], other=pieces[1], kinds=tuple(pieces[2:]))
    own, other = pieces_of(position, is_own=True), pieces_of(position, is_own=False)
    lines = lines_of(position, own, other)
    checks = _checks_and_pins(position, own, other, lines.of_king)
    mate = mating_square(position, own, other, lines)
    targets = compute_once(*_moves(position, own, checks), *_drops(position, checks, mate))
    every = [*targets[:PAWN_DROPS], *drops_by_kind(position.own_hand, targets)]
    return ShogiLegal(targets, ~checks.checkers.is_empty(), ~union(every).is_empty())


def drops_by_kind(hand: Array, targets: list[ShogiSquares]) -> list[ShogiSquares]:
    """Return the squares where each of HAND_KINDS may be dropped from `hand` uint32."""
    drops = []
    for code in HAND_KINDS:
        open_squares = targets[PAWN_DROPS if code == PAWN else OTHER_DROPS]
        if code in FREE_RANKS:
            open_squares = open_squares & ranks(0, FREE_RANKS[code] - 1)
        drops.append(open_squares.when(spread(hand_count(hand, code) != 0)))
    return drops


def _checks_and_pins(
    position: ShogiPosition, own: Pieces, other: Pieces, lines: KingLines[ShogiSquares]
) -> ChecksAndPins[ShogiSquares]:
    sliders = [other.sliders[opposite(direction)] for direction in range(8)]
    return find_checks_and_pins(
        position.own, lines, sliders, near_attacks(other), near_attackers(own.king, other), ranks(0)
    )


def _moves(
    position: ShogiPosition, own: Pieces, checks: ChecksAndPins[ShogiSquares]
) -> list[ShogiSquares]:
    """Return the squares reached in the compass directions and by knights."""
    empty = ~position.occupied
    may_go = ~position.own & checks.check_mask
    king_may_go = ~position.own & ~checks.attacked
    targets = []
    for index, direction in enumerate(COMPASS):
        movable = checks.unpinned | checks.pinned[index % 4]
        passed = fill(own.sliders[index] & movable, empty, direction) | (
            own.steppers[index] & movable
        )
        targets.append(
            (step(passed, direction) & may_go) | (step(own.king, direction) & king_may_go)
        )
    return targets + [step(own.knights & checks.unpinned, jump) & may_go for jump in KNIGHT_JUMPS]


def _drops(
    position: ShogiPosition, checks: ChecksAndPins[ShogiSquares], mate: ShogiSquares
) -> list[ShogiSquares]:
    """Return the squares open to pawns (one unpromoted pawn of a side on a file, no drop-pawn mate)
    and to other pieces."""
    open_squares = ~position.occupied & checks.check_mask
    pawns = position.kind(PAWN) & position.own
    return [
        open_squares & ~whole_files(pawns) & ~mate & ranks(0, FREE_RANKS[PAWN] - 1),
        open_squares,
    ]
