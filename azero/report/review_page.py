"""The page of a reviewed game: the win rate over the game, the largest mistakes, and the better moves on boards."""

from __future__ import annotations

import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from azero.data.rows import write_atomically
from azero.evaluate.review import Review, ReviewedMove, win_rate
from azero.games.go.text import format_vertex
from azero.report.boards import draw_position

SHOWN_MISTAKES = 12
SMALLEST_MISTAKE = 0.02
"""In value: one percent of the win rate; less is within what a short search says by chance."""
SHOWN_LINE = 6
"""Moves of the better line on a board."""


def write_review(path: Path, review: Review, reviewer: str, remark: str = "") -> None:
    """Write the page of a review to `path`; `reviewer` says who thought, `remark` what a reader should know of it."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("azero.report").joinpath("review.html.j2").read_text(encoding="utf-8"))
    record = review.record
    black, white = (name or colour for name, colour in zip(record.players, ("Black", "White"), strict=True))
    facts = [("result", record.result), ("date", record.date), ("rules", record.rules), ("komi", "" if record.komi is None else f"{record.komi:g}")]
    facts += [("moves", str(len(record.moves))), ("reviewed by", reviewer), ("note", " ".join(part for part in (review.stopped, remark) if part))]
    page = template.render(
        title=f"{black} (Black) against {white} (White)",
        facts=[(name, value) for name, value in facts if value],
        graph=Markup(_graph(review)),
        players=[_player(review, name, colour) for colour, name in enumerate((black, white))],
        mistakes=[_mistake(review, move) for move in review.mistakes(SHOWN_MISTAKES, SMALLEST_MISTAKE)],
        moves=[_row(review, move) for move in review.moves],
        written=time.strftime("%Y-%m-%d %H:%M"),
    )
    write_atomically(path, page)


def _graph(review: Review) -> str:
    """Draw Black's win rate over the game; mistakes are dots in the colour of whoever made them."""
    numbers = [move.number - 1 for move in review.moves] + [review.moves[-1].number]
    rates = [win_rate(move.black_value) for move in review.moves] + [win_rate(review.final_black_value)]
    width, height, left = 700, 200, 34
    span = max(1, numbers[-1])
    places = [(left + (width - left) * number / span, height - height * rate / 100) for number, rate in zip(numbers, rates, strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    grid = "".join(
        f'<path class="grid" d="M{left} {height * (100 - rate) / 100:.0f}H{width}"/><text x="{left - 6}" y="{height * (100 - rate) / 100 + 4:.0f}">{rate}%</text>'
        for rate in (0, 25, 50, 75, 100)
    )
    ticks = "".join(
        f'<text class="tick" x="{left + (width - left) * number / span:.0f}" y="{height + 18}">{number}</text>' for number in range(0, span + 1, _step(span))
    )
    dots = "".join(
        f'<a href="#move-{move.number}"><circle class="{("black", "white")[move.colour]}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"><title>move {move.number}: '
        f"{format_vertex(move.action, review.record.board_shape)} loses {50 * move.loss:.1f}%</title></circle></a>"
        for move in review.mistakes(SHOWN_MISTAKES, SMALLEST_MISTAKE)
        for x, y in [places[move.number - review.moves[0].number + 1]]
    )
    label = "Black's win rate over the game"
    return f'<svg class="graph" viewBox="0 -8 {width + 10} {height + 34}" role="img" aria-label="{label}">{grid}{ticks}<polyline points="{line}"/>{dots}</svg>'


def _step(span: int) -> int:
    """Return a round distance between the numbers under the graph."""
    return next((step for step in (1, 2, 5, 10, 20, 50, 100) if span / step <= 12), 200)


def _player(review: Review, name: str, colour: int) -> dict[str, Any]:
    own = [move for move in review.moves if move.colour == colour]
    count = max(1, len(own))
    return {
        "name": f"{name} ({('Black', 'White')[colour]})",
        "moves": len(own),
        "agreement": 100 * sum(move.action == move.best for move in own) / count,
        "loss": 50 * sum(move.loss for move in own) / count,
        "mistakes": sum(50 * move.loss >= 5 for move in own),
    }


def _mistake(review: Review, move: ReviewedMove) -> dict[str, Any]:
    shape = review.record.board_shape
    return _row(review, move) | {"board": Markup(draw_position(shape, move.board, move.line[:SHOWN_LINE], move.colour, move.action))}


def _row(review: Review, move: ReviewedMove) -> dict[str, Any]:
    shape = review.record.board_shape
    return {
        "number": move.number,
        "colour": ("Black", "White")[move.colour],
        "played": format_vertex(move.action, shape),
        "best": format_vertex(move.best, shape),
        "line": " ".join(format_vertex(action, shape) for action in move.line),
        "before": win_rate(move.value),
        "after": win_rate(move.value_after),
        "loss": 50 * move.loss,
        "visits": move.visits,
    }
