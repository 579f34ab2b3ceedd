"""Search output of a UCI or USI engine: scores in the units of the protocols, and `info` lines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from azero.players.thinking import Analysis, MoveInfo

if TYPE_CHECKING:
    from azero.players.notation import LineNames

PV_MOVES = 20
"""Longest variation that is sent."""
_LARGEST_CP = 30_000
"""Centipawns of a certain win in shogi (dlshogi, UctSearch.cpp)."""
_SHOGI_SCALE = 756.0864962951762
"""Centipawns over which the odds of winning grow by e (dlshogi, UctSearch.cpp)."""


def chess_centipawns(value: float) -> int:
    """Return a value in [-1, 1] as centipawns: 90 tan(1.5637541897 value), Leela Chess Zero's score
    type "centipawn" (search.cc); 12,780 for a certain win."""
    return round(90.0 * math.tan(1.5637541897 * min(1.0, max(-1.0, value))))


def shogi_centipawns(value: float) -> int:
    """Return a value in [-1, 1] as centipawns of shogi: 756.09 ln(p / (1 - p)) for the win rate p =
    (1 + value) / 2, as dlshogi does; at most 30,000."""
    rate = (1.0 + value) / 2.0
    if not 0.0 < rate < 1.0:
        return _LARGEST_CP if value > 0 else -_LARGEST_CP
    return max(-_LARGEST_CP, min(_LARGEST_CP, round(_SHOGI_SCALE * math.log(rate / (1.0 - rate)))))


def win_draw_loss(value: float, draw: float) -> tuple[int, int, int]:
    """Return thousandths of wins, draws and losses, which sum to 1,000.

    Wins less losses are the search's `value` in [-1, 1]. Draws are the network's `draw` in [0, 1],
    or what that value leaves: a position that is won can hardly be drawn.
    """
    value = min(1.0, max(-1.0, value))
    draws = round(1000.0 * min(draw, 1.0 - abs(value)))
    wins = round((1000 - draws + 1000.0 * value) / 2)
    return wins, draws, 1000 - wins - draws


def format_info(names: LineNames, analysis: Analysis, order: int, score: str) -> str:
    """Return the line about the move in place `order` (from 1) of an analysis; `score` is its score
    in the protocol's words.

    As in Leela Chess Zero, the depth is the mean length of the search's descents and the selective
    depth the longest; nodes are the root's visits, those kept from earlier moves included, and only
    new ones count for the speed.
    """
    info: MoveInfo = analysis.moves[order - 1]
    milliseconds = round(1000 * analysis.seconds)
    speed = round(analysis.playouts / max(analysis.seconds, 1e-3))
    line = " ".join(names(info.line[:PV_MOVES]))
    return (
        f"info depth {max(1, round(analysis.depth))} seldepth {max(1, analysis.deepest)} multipv "
        f"{order} score {score} nodes {analysis.visits} nps {speed} time {milliseconds} pv {line}"
    )
