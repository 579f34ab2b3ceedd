"""The page of a reviewed game: win rates, the largest mistakes, and the better moves on boards;
leads and ownership where the network predicts them."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, MultipleLocator, PercentFormatter, StrMethodFormatter

from azero.data.rows import replace_text
from azero.evaluate.review import Review, ReviewedMove
from azero.games.go.rules import Go
from azero.players.thinking import win_rate
from azero.report.boards import draw_ownership, draw_position
from azero.report.pieces import Choice, draw_choice
from azero.report.plots import INK, SERIES_COLOURS, STYLE, style_axes, svg_element
from azero.report.templates import load_template

SHOWN_MISTAKES = 12
SMALLEST_MISTAKE = 0.02
"""In value: one percent of the win rate; less is within the noise of a short search."""
COLOURS = {"Black": "#1a1a1c", "White": "#f7f6f2"}
"""Colours of the sides' moves."""
MISTAKE = "#b3392f"
"""Colour of the ring around a mistake."""
SHOWN_LINE = 6
"""Moves of the better line shown on a board."""


def write_review(path: Path, review: Review, reviewer: str, note: str = "") -> None:
    """Write the page of a review to `path`.

    `reviewer` names the player that analysed the game; `note` is shown with the facts.
    """
    template = load_template("review.html.j2")
    facts = [
        *review.game.facts,
        ("moves", str(len(review.game.record.moves))),
        ("reviewed by", reviewer),
        ("note", " ".join(part for part in (review.stopped, note) if part)),
    ]
    mistakes = review.mistakes(SHOWN_MISTAKES, SMALLEST_MISTAKE)
    page = template.render(
        title=_title(review),
        first=review.sides[0],
        rate=_rate(review),
        in_go=isinstance(review.final_position.game, Go),
        facts=[(name, value) for name, value in facts if value],
        graph=Markup(_graph(review, mistakes)),
        players=[_player(review, colour) for colour in range(2)],
        has_leads=review.moves[0].black_lead is not None,
        ownership=_ownership(review),
        mistakes=[_mistake(review, move) for move in mistakes],
        moves=[_row(review, move) for move in review.moves],
        written=time.strftime("%Y-%m-%d %H:%M"),
    )
    replace_text(path, page)


def _name(review: Review, colour: int) -> str:
    """Return a player's name with rank and colour, as far as the record has them."""
    name, side = review.game.players[colour], review.sides[colour]
    return f"{name} ({side})" if name else side


def _title(review: Review) -> str:
    """Return who played whom; the record's file where it names neither."""
    title = " against ".join(_name(review, colour) for colour in range(2))
    named = any(review.game.players)
    return title if named else f"{Path(review.game.record.name).name}: {title}"


def _rate(review: Review) -> str:
    """Return what a value is called: in chess, where many games are drawn, the expected score."""
    is_chess = review.final_position.game.name == "chess"
    return "expected score" if is_chess else "win rate"


def _graph(review: Review, mistakes: Sequence[ReviewedMove]) -> str:
    """Draw the first mover's win rate over the game, and below it Black's lead where it is known.

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
            for axes, name in zip(charts, (_rate(review), "lead in points"), strict=True):
                axes.set_ylabel(name, color=INK)
        for axes in charts:
            style_axes(axes)
    label = f"{review.sides[0]}'s {_rate(review)}"
    return svg_element(figure, f"{label}{' and lead' if leads else ''}")


def _draw_win_rate(axes: Axes, review: Review, mistakes: Sequence[ReviewedMove]) -> None:
    before = {move.number: 100 * win_rate(move.first_value) for move in review.moves}
    numbers = [*(number - 1 for number in before), review.moves[-1].number]
    rates = [*before.values(), 100 * win_rate(review.final_value)]
    axes.plot(numbers, rates, color=SERIES_COLOURS[0])
    axes.scatter(
        [move.number - 1 for move in mistakes],
        [before[move.number] for move in mistakes],
        c=[COLOURS[review.sides[move.colour]] for move in mistakes],
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
    rules = review.final_position.game
    if review.final_ownership is None or not isinstance(rules, Go):
        return None
    return Markup(draw_ownership(rules.board(review.final_position.state), review.final_ownership))


def _player(review: Review, colour: int) -> dict[str, Any]:
    own = [move for move in review.moves if move.colour == colour]
    count = max(1, len(own))
    return {
        "name": _name(review, colour),
        "moves": len(own),
        "agreement": 100 * sum(move.action == move.best for move in own) / count,
        "loss": 50 * sum(move.loss for move in own) / count,
        "mistakes": sum(50 * move.loss >= 5 for move in own),
    }


def _mistake(review: Review, move: ReviewedMove) -> dict[str, Any]:
    rules = move.position.game
    if isinstance(rules, Go):
        stones = rules.board(move.position.state)
        board = draw_position(stones, move.line[:SHOWN_LINE], move.colour, move.action)
        choice = Choice(board)
    else:
        choice = draw_choice(move.position, move.action, move.best)
    return _row(review, move) | choice._asdict() | {"board": Markup(choice.board)}


def _row(review: Review, move: ReviewedMove) -> dict[str, Any]:
    return {
        "number": move.number,
        "written_number": move.written_number,
        "heading": move.heading,
        "colour": review.sides[move.colour],
        "played": move.name,
        "line": " ".join(move.line_names),
        "before": 100 * win_rate(move.value),
        "after": 100 * win_rate(move.value_after),
        "loss": 50 * move.loss,
        "visits": move.visits,
        "lead": move.black_lead,
    }
