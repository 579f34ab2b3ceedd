"""How the pieces of shogi move: one step, a slide along a line, or a knight's jump; and the lines
from which the legal moves are computed.

Directions are those of the mover's side of the board (COMPASS), for the pieces of both sides: what
is forward for the mover is backward for the other side.
"""

from typing import NamedTuple

from azero.games.compass import (
    COMPASS,
    NE,
    Direction,
    E,
    KingLines,
    N,
    S,
    compute_once,
    opposite,
    union,
)
from azero.games.shogi.position import GOLD, KING, KNIGHT, LANCE, PAWN, SILVER, ShogiPosition
from azero.games.shogi.squares import KNIGHT_JUMPS, ShogiSquares, fill, layer, step, steps


class Pieces(NamedTuple):
    """The pieces of one side by how they move."""

    steppers: list[ShogiSquares]
    """pieces other than the king that can go one step, by compass direction"""
    sliders: list[ShogiSquares]
    """sliding pieces, by compass direction"""
    knights: ShogiSquares
    king: ShogiSquares
    jumps: tuple[Direction, ...]
    """of this side's knights"""


class Lines(NamedTuple):
    """Rays along the eight compass directions, one entry each. A ray holds the empty squares up to
    and with the first piece."""

    of_king: KingLines[ShogiSquares]
    """through the mover's king"""
    own_slider_attacks: list[ShogiSquares]
    """the squares that the mover's sliders of that direction attack"""
    other_king_rays: list[ShogiSquares]
    """from the other king"""
    front_rays: list[ShogiSquares]
    """from `front`"""
    front: ShogiSquares
    """the square in front of the other king, if it is empty"""


def pieces_of(position: ShogiPosition, is_own: bool) -> Pieces:
    """Return the pieces of the mover, or of the other side."""
    bits = position.kinds
    side = position.own if is_own else position.other
    pawns, lances, knights, silvers = (
        position.kind(code) & side for code in (PAWN, LANCE, KNIGHT, SILVER)
    )
    king, plain_golds = position.kind(KING) & side, position.kind(GOLD) & side
    straight, diagonal = bits[1] & bits[2] & ~bits[0] & side, bits[0] & bits[2] & ~bits[1] & side
    dragons, horses = straight & bits[3], diagonal & bits[3]
    # The kinds 9 to 12 are promoted pawns, lances, knights and silvers, which move like golds.
    golds = plain_golds | (bits[3] & side & ~(king | dragons | horses))
    stepping = (
        pawns | silvers | golds | horses,
        silvers | golds | dragons,
        golds | horses,
        silvers | dragons,
    )
    ahead, aside, flank, back, lances, straight, diagonal, knights, king = compute_once(
        *stepping, straight | lances, straight, diagonal, knights, king
    )
    steppers = [ahead, aside, flank, back, flank, back, flank, aside]
    sliders = [lances, *(diagonal if direction % 2 else straight for direction in range(1, 8))]
    if is_own:
        return Pieces(steppers, sliders, knights, king, KNIGHT_JUMPS)
    jumps = tuple((files, -forward) for files, forward in KNIGHT_JUMPS)
    return Pieces(steppers[4:] + steppers[:4], sliders[4:] + sliders[:4], knights, king, jumps)


def lines_of(position: ShogiPosition, own: Pieces, other: Pieces) -> Lines:
    """Return the lines of a position. The five fills of a direction are computed as one."""
    empty = ~position.occupied
    front = step(other.king, COMPASS[S]) & empty
    seeds = [[own.king, other.sliders[d], own.sliders[d], other.king, front] for d in (N, NE, E, S)]
    *layers, free = layer(
        [
            squares
            for group in (*seeds, [empty, empty | own.king, empty, empty, empty])
            for squares in group
        ],
        5,
    )
    # Only lances distinguish between directions, forwards for one side and backwards for the other.
    by_direction = [layers[(0, 1, 2, 1, 3, 1, 2, 1)[d]] for d in range(8)]
    filled = compute_once(
        *(
            fill(squares, free, direction)
            for squares, direction in zip(by_direction, COMPASS, strict=True)
        )
    )
    seen = [step(squares, direction) for squares, direction in zip(filled, COMPASS, strict=True)]

    def row(sets: list[ShogiSquares], index: int) -> list[ShogiSquares]:
        return [ShogiSquares(*(word[index] for word in squares)) for squares in sets]

    return Lines(
        of_king=KingLines(row(seen, 0), row(filled, 1), row(seen, 1)),
        own_slider_attacks=row(seen, 2),
        other_king_rays=row(seen, 3),
        front_rays=row(seen, 4),
        front=front,
    )


def near_attacks(pieces: Pieces) -> ShogiSquares:
    """Return the squares that pieces attack by a step or a jump, the king's too."""
    stepped = (
        step(pieces.steppers[index] | pieces.king, direction)
        for index, direction in enumerate(COMPASS)
    )
    return union([*stepped, steps(pieces.knights, pieces.jumps)])


def near_attackers(square: ShogiSquares, pieces: Pieces) -> ShogiSquares:
    """Return the pieces other than the king that attack `square`, a set of one or none, by a step
    or a jump."""
    stepped = (
        step(square, direction) & pieces.steppers[opposite(index)]
        for index, direction in enumerate(COMPASS)
    )
    jumped = steps(square, [(-files, -forward) for files, forward in pieces.jumps]) & pieces.knights
    return union([*stepped, jumped])
