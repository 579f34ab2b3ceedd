"""The page of a reviewed game: win rates, the largest mistakes, and the better moves on boards;
leads and ownership where the network predicts them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator, PercentFormatter, StrMethodFormatter

from azero.data.rows import write_atomically
from azero.evaluate.review import Review, ReviewedMove
from azero.games.go.sgf import GameRecord
from azero.games.go.text import format_vertex
from azero.players.thinking import win_rate
from azero.report.boards import draw_ownership, draw_position
from azero.report.plots import INK, SERIES_COLOURS, STYLE, style_axes, svg_element
from azero.report.templates import load_template

SHOWN_MISTAKES = 12
SMALLEST_MISTAKE = 0.02
"""In value: one percent of the win rate; less is within the noise of a short search."""
COLOURS = ("Black", "White")
STONES = ("#1a1a1c", "#f7f6f2")
"""Colours of Black's and White's moves."""
MISTAKE = "#b3392f"
"""Colour of the ring around a mistake."""
SHOWN_LINE = 6
"""Moves of the better line shown on a board."""


def write_review(path: Path, review: Review, reviewer: str, note: str = "") -> None:
    """Write the page of a review to `path`.

    `reviewer` names the player that analysed the game; `note` is shown with the facts.
    """
    template = load_template("review.html.j2")
    record = review.record
    players = [_name(record, colour) for colour in range(2)]
    facts = [
        ("result", record.result),
        ("date", record.date),
        ("rules", record.rules),
        ("komi", "" if record.komi is None else f"{record.komi:g}"),
        ("moves", str(len(record.moves))),
        ("reviewed by", reviewer),
        ("note", " ".join(part for part in (review.stopped, note) if part)),
    ]
    mistakes = review.mistakes(SHOWN_MISTAKES, SMALLEST_MISTAKE)
    page = template.render(
        title=_title(record),
        facts=[(name, value) for name, value in facts if value],
        graph=Markup(_graph(review, mistakes)),
        players=[_player(review, name, colour) for colour, name in enumerate(players)],
        has_leads=review.moves[0].black_lead is not None,
        ownership=_ownership(review),
        mistakes=[_mistake(review, move) for move in mistakes],
        moves=[_row(review, move) for move in review.moves],
        written=time.strftime("%Y-%m-%d %H:%M"),
    )
    write_atomically(path, page)


def _name(record: GameRecord, colour: int) -> str:
    """Return a player's name with rank and colour, as far as the record has them."""
    words = [record.players[colour], record.ranks[colour]] if record.players[colour] else []
    name = " ".join(word for word in words if word)
    return f"{name} ({COLOURS[colour]})" if name else COLOURS[colour]


def _title(record: GameRecord) -> str:
    """Return who played whom; the record's file where it names neither."""
    title = " against ".join(_name(record, colour) for colour in range(2))
    return title if any(record.players) else f"{Path(record.name).name}: {title}"


def _graph(review: Review, mistakes: Sequence[ReviewedMove]) -> str:
    """Draw Black's win rate over the game, and below it Black's lead where it is known.

    `mistakes` are dots in their player's colour that link to the boards.
    """
    leads = {move.number: move.black_lead for move in review.moves if move.black_lead is not None}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(8.8, 4.6 if leads else 2.6), layout="constrained")
        charts = figure.subplots(2 if leads else 1, sharex=True, squeeze=False)[:, 0]
        _draw_win_rate(charts[0], review, mistakes)
        if leads:
            charts[1].axhline(0, color=INK, linewidth=0.6)
            charts[1].plot(list(leads), list(leads.values()), color=SERIES_COLOURS[1])
            charts[1].yaxis.set_major_formatter(StrMethodFormatter("{x:+g}"))
            for axes, name in zip(charts, ("win rate", "lead in points"), strict=True):
                axes.set_ylabel(name, color=INK)
        for axes in charts:
            style_axes(axes)
    return svg_element(figure, f"Black's win rate{' and lead' if leads else ''}")


def _draw_win_rate(axes: Axes, review: Review, mistakes: Sequence[ReviewedMove]) -> None:
    before = {move.number: 100 * win_rate(move.black_value) for move in review.moves}
    numbers = [*(number - 1 for number in before), review.moves[-1].number]
    rates = [*before.values(), 100 * win_rate(review.final_black_value)]
    axes.plot(numbers, rates, color=SERIES_COLOURS[0])
    axes.scatter(
        [move.number - 1 for move in mistakes],
        [before[move.number] for move in mistakes],
        c=[STONES[move.colour] for move in mistakes],
        edgecolors=MISTAKE,
        urls=[f"#move-{move.number}" for move in mistakes],
        zorder=3,
    )
    axes.set_ylim(0, 100)
    axes.yaxis.set_major_locator(MultipleLocator(25))
    axes.yaxis.set_major_formatter(PercentFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(nbins=12, integer=True))


def _ownership(review: Review) -> Markup | None:
    """Draw the final position with its expected owners, where the network predicts them."""
    if review.final_ownership is None:
        return None
    return Markup(draw_ownership(review.final_board, review.final_ownership))


def _player(review: Review, name: str, colour: int) -> dict[str, Any]:
    own = [move for move in review.moves if move.colour == colour]
    count = max(1, len(own))
    return {
        "name": name,
        "moves": len(own),
        "agreement": 100 * sum(move.action == move.best for move in own) / count,
        "loss": 50 * sum(move.loss for move in own) / count,
        "mistakes": sum(50 * move.loss >= 5 for move in own),
    }


def _mistake(review: Review, move: ReviewedMove) -> dict[str, Any]:
    board = draw_position(move.board, move.line[:SHOWN_LINE], move.colour, move.action)
    return _row(review, move) | {"board": Markup(board)}


def _row(review: Review, move: ReviewedMove) -> dict[str, Any]:
    shape = review.record.board_shape
    return {
        "number": move.number,
        "colour": COLOURS[move.colour],
        "played": format_vertex(move.action, shape),
        "best": format_vertex(move.best, shape),
        "line": " ".join(format_vertex(action, shape) for action in move.line),
        "before": 100 * win_rate(move.value),
        "after": 100 * win_rate(move.value_after),
        "loss": 50 * move.loss,
        "visits": move.visits,
        "lead": move.black_lead,
    }
