"""Search output of a UCI or USI engine: scores in the units of the protocols, and `info` lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from azero.players.thinking import Analysis, MoveInfo

if TYPE_CHECKING:
    from azero.players.notation import LineNames

PV_MOVES = 20
"""Longest variation that is sent."""


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
