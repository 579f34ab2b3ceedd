"""The drop-pawn mate (uchifuzume): a pawn may not be dropped to give mate.

Only one square matters, the one in front of the other king. A pawn dropped there mates unless
another piece can capture it or the king can move, capturing the pawn included; no piece can be put
between.
"""

from azero.games.compass import COMPASS, N, S, opposite, spread, union
from azero.games.shogi.position import ShogiPosition
from azero.games.shogi.reach import Lines, Pieces, near_attackers, near_attacks
from azero.games.shogi.squares import ShogiSquares, step, steps


def mating_square(
    position: ShogiPosition, own: Pieces, other: Pieces, lines: Lines
) -> ShogiSquares:
    """Return the empty square in front of the other king if a pawn dropped there would give mate,
    else no square.

    The mover's king may stand anywhere, but the other king must not be in check before the drop, as
    in every legal position.
    """
    can_be_taken = ~(_takers(position, other, lines)).is_empty()
    can_flee = ~(steps(other.king, COMPASS) & ~position.other & ~_attacked(own, lines)).is_empty()
    return lines.front.when(spread(~(can_be_taken | can_flee)))


def _attacked(own: Pieces, lines: Lines) -> ShogiSquares:
    """Return the squares round the other king that the mover attacks after the drop. The pawn
    blocks the lines of attack through its square.

    The other king is not in check and so blocks no line of attack: its leaving opens none.
    """
    sliding = (
        attacks & ~step(attacks & lines.front, direction)
        for attacks, direction in zip(lines.own_slider_attacks, COMPASS, strict=True)
    )
    return union([*sliding, near_attacks(own)])


def _takers(position: ShogiPosition, other: Pieces, lines: Lines) -> ShogiSquares:
    """Return the pieces of the other side, without the king, that can capture the pawn. A piece
    pinned on the king's file can, because it stays on the file."""
    pinned = (
        union(
            lines.other_king_rays[d] & lines.own_slider_attacks[opposite(d)]
            for d in range(8)
            if d not in (N, S)
        )
        & position.other
    )
    sliders = union(lines.front_rays[d] & other.sliders[opposite(d)] for d in range(8))
    return (sliders | near_attackers(lines.front, other)) & ~pinned
