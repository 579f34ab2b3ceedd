"""The search of one position of Go as boards in one SVG: the panels of AG16 Figure 5."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from azero.games.go.rules import Go
from azero.games.position import Position
from azero.players.thinking import Analysis, Limits, MoveInfo, Thinker, win_rate
from azero.report.boards import CELL, MARGIN, draw_labels, draw_position

COLUMNS = 3
"""Boards in a row."""
TITLE = 22
"""Units of the SVG above a board, for its title."""
SMALLEST_SHARE = 0.001
"""A move with a smaller probability has no label (AG16 Figure 5d)."""
SHOWN_VALUES = 12
"""Best moves whose values are labels, so that the board can be read."""
STYLE = """
text { font-family: sans-serif; } .title { font-size: 11px; font-weight: 600; fill: #1d2327; }
.wood { fill: #e9c98f; } .lines { stroke: #4d3b1e; stroke-width: 1; fill: none; }
.star { fill: #4d3b1e; } .coordinate { font-size: 9px; fill: #59636b; text-anchor: middle; }
.stones circle { stroke: #00000066; stroke-width: .6; } .stones .black circle { fill: #1a1a1c; }
.stones text { text-anchor: middle; font-size: 10px; font-weight: 600; }
.stones .white circle { fill: #f7f6f2; } .black text { fill: #f4f4f4; }
.white text { fill: #1a1a1c; } .stones .last circle { stroke: #2f8f46; stroke-width: 2.4; }
.stones .label circle { fill: #dcebf2; stroke: none; } .label text { fill: #14405a; }
.stones .best circle { fill: #ffb37a; stroke: #b3392f; stroke-width: 1.6; }
"""
"""Colours of the boards, as on the pages, on white."""


@dataclass(frozen=True)
class SearchedPosition:
    """A position with what a player finds in it. Values are in [-1, 1] for the side to move."""

    position: Position
    analysis: Analysis
    successors: Mapping[int, float]
    """By move: the player's own evaluation of the position after it, without a search."""


def search_position(thinker: Thinker, position: Position, limits: Limits) -> SearchedPosition:
    """Search a position and evaluate all that can follow it.

    Raises:
      ValueError: the game is over.
    """
    if position.is_over:
        raise ValueError("the game is over there; choose an earlier move")
    analysis = thinker.think(position, limits)
    successors = {}
    for action in np.flatnonzero(position.legal).tolist():
        following = position.play(action)
        if not following.is_over:
            successors[action] = -thinker.evaluate(following)[1]
    return SearchedPosition(position, analysis, successors)


def draw_panels(found: SearchedPosition, title: str) -> str:
    """Return an SVG document of the panels: evaluations of all successors (AG16 Figure 5a) if there
    is a value network, action values by the value network alone (b) and by rollouts alone (c), or
    by the search where it does not tell them apart, probabilities of the policy network (d), shares
    of the visits (e), and the principal variation (f)."""
    boards = _boards(found)
    assert isinstance(found.position.game, Go)
    rows, columns = found.position.game.board_shape
    width, height = 2 * MARGIN + columns * CELL, 2 * MARGIN + rows * CELL + TITLE
    drawn = []
    for place, (name, board) in enumerate(boards):
        x, y = place % COLUMNS * width, TITLE + place // COLUMNS * height
        placed = board.replace("<svg", f'<svg y="{TITLE}" width="{width}" height="{height}"', 1)
        words = f'<text class="title" x="{MARGIN}" y="14">{html.escape(name)}</text>'
        drawn.append(f'<g transform="translate({x} {y})">{words}{placed}</g>')
    whole = COLUMNS * width, TITLE + -(-len(boards) // COLUMNS) * height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]}" '
        f'width="{whole[0]}" height="{whole[1]}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>'
        f'<text class="title" x="{MARGIN}" y="16">{html.escape(title)}</text>{"".join(drawn)}'
        "</svg>\n"
    )


def _boards(found: SearchedPosition) -> list[tuple[str, str]]:
    """Return the panels: titles and boards."""
    game, analysis = found.position.game, found.analysis
    assert isinstance(game, Go)
    board = game.board(found.position.state)
    moves, total = analysis.moves, max(1, sum(move.visits for move in analysis.moves))
    policy = {
        action: float(share)
        for action, share in enumerate(analysis.raw_policy)
        if share > SMALLEST_SHARE
    }
    panels = []
    if any(found.successors.values()):  # without a value network all are 0
        panels += [("a  value of each successor, %", _values(found.successors))]
    if any(move.network_value is not None for move in moves):
        panels += [
            ("b  action values, value network (lambda 0), %", _edge_values(moves, "network_value")),
            ("c  action values, rollouts (lambda 1), %", _edge_values(moves, "rollout_value")),
        ]
    else:
        panels += [("b  action values of the search, %", _edge_values(moves, "value"))]
    panels += [
        ("d  policy network, %", {action: 100 * share for action, share in policy.items()}),
        ("e  visits, %", {move.action: 100 * move.visits / total for move in moves}),
    ]
    line = moves[0].line if moves else ()
    return [
        *((name, draw_labels(board, labels, name)) for name, labels in panels),
        ("f  principal variation", draw_position(board, line, found.position.to_play, None)),
    ]


def _values(values: Mapping[int, float]) -> dict[int, float]:
    """Return the highest values as win rates."""
    best = sorted(values, key=lambda action: -values[action])[:SHOWN_VALUES]
    return {action: 100 * win_rate(values[action]) for action in best}


def _edge_values(moves: Sequence[MoveInfo], field: str) -> dict[int, float]:
    known = {move.action: getattr(move, field) for move in moves}
    return _values({action: value for action, value in known.items() if value is not None})
