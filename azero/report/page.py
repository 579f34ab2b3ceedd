"""The report of a run: one self-contained HTML page, at any time of the run."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from azero.console.tables import Cell, count_of, format_cell, format_count, format_duration
from azero.data.rows import Row, replace_text
from azero.data.run_files import RunData, StoredGame, check_run, load_run
from azero.games.table import side_names
from azero.match.arena import rate_checkpoints
from azero.report.boards import (
    CELL,
    DRAWN,
    MARGIN,
    draw_board,
    first_mover_begins,
    move_names,
    positions,
)
from azero.report.match_tables import ShownMatch, checkpoint_matches, program_matches
from azero.report.pieces import DIAGRAMS, DrawnGame, draw_pieces, follow
from azero.report.plots import SERIES_COLOURS, Chart, Series, line_chart
from azero.report.schema import METRICS
from azero.report.templates import load_template
from azero.selfplay.resignation import NEVER_RESIGN

REPORT = "report.html"
CHARTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Policy loss",
        (("policy_loss", "loss"), ("target_entropy", "entropy of the search's policy")),
    ),
    ("Value loss", (("value_loss", "loss"),)),
    ("Loss", (("loss", "loss"), ("l2", "L2 penalty"))),
    ("Entropy of the network's policy", (("entropy", "entropy"),)),
    (
        "Agreement with the move chosen by the search or played in the record",
        (("accuracy", "in training"), ("top1", "held out"), ("top5", "held out, top 5")),
    ),
    ("Held-out games: value error, scaled by 1/4", (("held_out_value_error", "error"),)),
    ("Moves per game", (("game_length", "moves"),)),
    ("Age of the network that started a game", (("network_age", "iterations"),)),
    (
        "Results of self-play",
        (("first_wins", "first mover wins"), ("draws", "draws"), ("resigned", "resigned")),
    ),
    (
        "Score against earlier policies",
        (("score", "the whole pool"), ("score_against_the_first", "the first one")),
    ),
    ("Positions per second", (("positions_per_second", "positions/s"),)),
    ("Simulations per second", (("simulations_per_second", "simulations/s"),)),
    (
        "Seconds per iteration",
        (
            ("seconds", "all"),
            ("selfplay_seconds", "self-play"),
            ("learn_seconds", "learning"),
            ("wait_seconds", "learner waiting"),
        ),
    ),
    ("Resignation threshold", (("resign_threshold", "threshold"),)),
    ("Resignation: wrongly resigned games", (("resign_false_positives", "share"),)),
)
"""Charts by title: keys of a metrics row and their labels. Other keys get their own charts, further
down."""
COUNTERS = (
    *("iteration", "time", "games", "positions", "steps"),
    *("window_games", "window_positions", "pool", "opponent"),
)
"""Counts: the first ones are shown as numbers; none is plotted."""
OPENING_CHARTS = {
    "openings": "Most common first three moves, % of games",
    "corner_sequences": "Most common corner sequences of five moves, % of games",
}
"""Titles of the charts of openings, by keys of a metrics row (AGZ, Figure 5)."""
OPENING_POINTS = 30
"""Points of a line in these charts; a point is the mean of a part of the iterations."""
MAX_SAMPLES = 12
"""Sample games on the page: the most recent iteration's, then one of each earlier one, evenly
spaced."""
SHOWN_MATCHES = 10
"""Most recent matches in the open table; the others are collapsed."""
SHOWN_SCORES = 2
"""Latest matches with other programs whose scores are large numbers at the top."""


def write_report(workdir: Path, out: Path | None = None) -> Path:
    """Write the report of the run in `workdir` to the file `out`, by default into the run's
    directory, and return its path.

    Raises:
      ValueError: there is no such directory or no run in it, or a file in it is damaged; the file
        is named.
    """
    data = load_run(workdir)
    check_run(workdir)
    matches = program_matches(workdir)
    template = load_template("page.html.j2")
    samples = [
        sample_view(index, iteration, game)
        for index, (iteration, game) in enumerate(_chosen_samples(data.samples))
    ]
    steps = [sample["steps"] for sample in samples]
    page = template.render(
        title=data.run.get("experiment", workdir.name),
        status=status(data),
        summary_numbers=[*summary_numbers(data), *_match_numbers(matches)],
        facts=_facts(data),
        elo=draw_charts(elo_series(data.events)),
        matches=checkpoint_matches(data.events),
        program_matches=matches,
        shown_matches=SHOWN_MATCHES,
        charts=draw_charts(chart_series(data.metrics) | opening_series(data.metrics)),
        other_charts=draw_charts(_other_series(data.metrics)),
        samples=samples,
        # JSON that is safe inside a <script> element
        sample_data=Markup(json.dumps(steps, separators=(",", ":")).replace("<", "\\u003c")),
        settings=_settings(data.config),
        written=time.strftime("%Y-%m-%d %H:%M:%S"),
        cell=CELL,
        margin=MARGIN,
    )
    path = report_path(workdir, out)
    replace_text(path, page)
    return path


def report_path(workdir: Path, out: Path | None) -> Path:
    """Return the file of the report: `out`, or report.html in the directory `out` or `workdir`."""
    if out is None or out.is_dir():
        return (out or workdir) / REPORT
    return out


def status(data: RunData) -> str:
    """Return a line on the progress of the run."""
    total = data.config.get("run", {}).get("iterations")
    if not data.metrics:
        return "nothing has been logged yet"
    done = data.metrics[-1]["iteration"]
    if total is not None and done >= total:
        return f"finished: {count_of(done, 'iteration')}"
    logged = data.metrics[-1].get("time")
    age = (
        f", last logged {format_duration(max(0.0, time.time() - logged))} before this page"
        if logged
        else ""
    )
    return f"iteration {done:,}" + (f" of {total:,}" if total is not None else "") + age


def summary_numbers(data: RunData) -> list[tuple[str, str]]:
    """Return the large numbers at the top: (name, value)."""
    if not data.metrics:
        return []
    last = data.metrics[-1]
    numbers = [
        (key, format_count(last[key]))
        for key in ("games", "positions", "steps")
        if last.get(key) is not None
    ]
    seconds = [row["seconds"] for row in data.metrics if row.get("seconds") is not None]
    if seconds:
        numbers.append(("time", format_duration(sum(seconds))))
    speeds = [
        row["positions_per_second"]
        for row in data.metrics[-20:]
        if row.get("positions_per_second") is not None
    ]
    if speeds:
        numbers.append(("positions/s", format_count(round(sum(speeds) / len(speeds)))))
    ratings = rate_checkpoints(data.events)
    if ratings:
        last_rating = ratings[-1][1]
        interval = f"95%: {last_rating.low:+z.0f} to {last_rating.high:+z.0f}"
        numbers.append((f"Elo since the start ({interval})", f"{last_rating.elo:+z.0f}"))
    return numbers


def _match_numbers(matches: Sequence[ShownMatch]) -> list[tuple[str, str]]:
    """Return the scores of the latest matches with other programs: (name, value)."""
    with_programs = [match for match in matches if match.has_program]
    return [
        (
            f"{match.first} against {match.second} (95%: {match.interval})"
            + (f"; {match.note}" if match.note else ""),
            f"{100 * match.score:.1f}%",
        )
        for match in with_programs[:SHOWN_SCORES]
    ]


def _facts(data: RunData) -> list[tuple[str, str]]:
    """Return what the run is and where it runs: (name, value)."""
    run, facts = data.run, dict[str, Cell]()
    if "started" in run:
        facts["started"] = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["started"]))
    facts["started from the network in"] = run.get("from_network")
    facts |= {name: run.get(name) for name in ("devices", "hosts", "processor", "cores")}
    if versions := run.get("versions"):
        named = {"Python": run.get("python", "?"), **versions}
        facts["versions"] = ", ".join(f"{name} {version}" for name, version in named.items())
    facts |= {"commit": run.get("commit"), "settings": run.get("config_hash")}
    return [(name, format_cell(value)) for name, value in facts.items() if value]


def elo_series(events: Sequence[Row]) -> dict[str, list[Series]]:
    """Return the chart of the checkpoints' ratings; none where fewer than two have played."""
    ratings = rate_checkpoints(events)
    if len(ratings) < 2:
        return {}
    x = [iteration for iteration, _ in ratings]
    elo = [rating.elo for _, rating in ratings]
    low, high = [rating.low for _, rating in ratings], [rating.high for _, rating in ratings]
    return {"Elo of the checkpoints": [Series("Elo", x, elo, low, high)]}


def draw_charts(charts: Mapping[str, Sequence[Series]]) -> list[Markup]:
    """Draw charts, by their titles, each as a <figure>. Those of seconds are clipped: the first
    iteration compiles."""
    return [
        Markup('<figure class="chart"><figcaption>{}</figcaption>{}</figure>').format(
            title, Markup(line_chart(Chart(title, series), clip="seconds" in title.lower()))
        )
        for title, series in charts.items()
    ]


def chart_series(
    metrics: Sequence[Row], titles: Sequence[str] | None = None
) -> dict[str, list[Series]]:
    """Return the charts of `CHARTS` for which there are numbers, those of `titles` or all."""
    wanted = {title: keys for title, keys in CHARTS if titles is None or title in titles}
    charts = {title: _lines(metrics, keys) for title, keys in wanted.items()}
    return {title: lines for title, lines in charts.items() if lines}


def opening_series(metrics: Sequence[Row]) -> dict[str, list[Series]]:
    """Return the charts of OPENING_CHARTS for which there are numbers: the shares of the sequences
    that were the most common in some part of the run, over at most OPENING_POINTS parts; a
    sequence counts as absent where it was not listed."""
    charts = {}
    for key, title in OPENING_CHARTS.items():
        rows = [row for row in metrics if row.get(key)]
        parts = [
            [rows[place] for place in part]
            for part in np.array_split(np.arange(len(rows)), min(OPENING_POINTS, len(rows)) or 1)
        ]
        names = dict.fromkeys(name for row in rows for name in row[key])
        shares = {
            name: [100 * sum(row[key].get(name, 0.0) for row in part) / len(part) for part in parts]
            for name in names
        }
        shown = sorted(shares, key=lambda name: -max(shares[name]))[: len(SERIES_COLOURS)]
        x = [part[-1]["iteration"] for part in parts if part]
        if shown:
            charts[title] = [Series(name, x, shares[name]) for name in shown]
    return charts


def _other_series(metrics: Sequence[Row]) -> dict[str, list[Series]]:
    """Return one chart for every number that no chart of `CHARTS` names."""
    known = {key for _, keys in CHARTS for key, _ in keys} | set(COUNTERS) | set(OPENING_CHARTS)
    others = dict.fromkeys(key for row in metrics for key in row if key not in known)
    charts = {METRICS.get(key, key): _lines(metrics, [(key, key)]) for key in others}
    return {key: lines for key, lines in charts.items() if lines}


def _lines(metrics: Sequence[Row], keys: Sequence[tuple[str, str]]) -> list[Series]:
    """Return the lines of the keys that have numbers, over the rows with these keys; gaps where
    the value is none."""
    rows = {key: [row for row in metrics if key in row] for key, _ in keys}
    lines = [
        Series(label, [row["iteration"] for row in rows[key]], _numbers(rows[key], key))
        for key, label in keys
    ]
    return [line for line in lines if not np.isnan(line.y).all()]


def _numbers(metrics: Sequence[Row], key: str) -> list[float]:
    """Return the values of a metric, NaN where there is none; "nobody resigns" counts as none."""
    values = [_number(row.get(key)) for row in metrics]
    lowest = NEVER_RESIGN if key == "resign_threshold" else -math.inf
    return [value if value > lowest else math.nan for value in values]


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else math.nan


def _chosen_samples(
    samples: Sequence[tuple[int, list[StoredGame]]],
) -> list[tuple[int, StoredGame]]:
    """Return the newest iteration's games, at most half of the page's, then first games of earlier
    iterations, newest first."""
    if not samples:
        return []
    newest, games = samples[-1]
    chosen = [(newest, game) for game in games[: MAX_SAMPLES // 2]]
    earlier = [(iteration, games[0]) for iteration, games in samples[:-1] if games][::-1]
    room = MAX_SAMPLES - len(chosen)
    step = max(1, -(-len(earlier) // room))
    return chosen + earlier[::step]


def sample_view(index: int, iteration: int, game: StoredGame) -> dict[str, Any]:
    """Return what the page shows of a game, and the steps for its script."""
    how = DIAGRAMS.get(game.game)
    first, second = ("Black", "White") if how is None else side_names(game.game)
    is_first = first_mover_begins(game)
    # those for the side to move, as seen by the first mover
    values = [
        None if value is None else round(value if (ply % 2 == 0) == is_first else -value, 3)
        for ply, value in enumerate(game.values)
    ]
    board, shown = _shown(game)
    winner = (
        "draw"
        if game.rewards[0] == game.rewards[1]
        else f"{(first if game.rewards[0] > 0 else second).removeprefix('the ')} wins"
    )
    details = [
        winner,
        game.ending,
        count_of(len(game.actions), "move"),
        f"komi {game.komi:g}" if game.komi is not None else "",
    ]
    movers = [first, second] if is_first else [second, first]
    return {
        "index": index,
        "heading": f"Iteration {iteration:,}"
        + (
            f": {game.names[0]} ({first}), {game.names[1]} ({second})"
            if game.names[0] != game.names[1]
            else ""
        ),
        "details": ", ".join(detail for detail in details if detail),
        "board": board,
        "names": shown.names,
        "has_stones": how is None,
        "strip": _value_strip(values, first),
        "steps": {
            "columns": game.board[1],
            "boards": shown.boards,
            "actions": list(game.actions),
            "names": shown.names,
            "values": values,
            "movers": movers,
            "first": first,
            "glyphs": {} if how is None else how.glyphs,
            "turned": how is not None and how.is_turned,
            "hands": shown.hands,
        },
    }


def _shown(game: StoredGame) -> tuple[Markup | None, DrawnGame]:
    """Return the drawing of a game, if there is one, and its positions and names of moves."""
    if game.game in DIAGRAMS:
        drawn = follow(game)
        return Markup(draw_pieces(game, drawn.boards)), drawn
    if game.game in DRAWN:
        boards = positions(game)
        return Markup(draw_board(game, boards)), DrawnGame(boards, move_names(game), [])
    return None, DrawnGame([], [str(action) for action in game.actions], [])


def _value_strip(values: Sequence[float | None], first: str) -> Markup | None:
    """Draw the value for the first mover, called `first`, over the game as a small curve; None
    where no values are known."""
    known = [(ply, value) for ply, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    scale = 100 / max(1, len(values))
    points = " ".join(f"{(ply + 1) * scale:.2f},{15 - 14 * value:.2f}" for ply, value in known)
    return Markup(
        f'<svg class="values" viewBox="0 0 100 30" preserveAspectRatio="none" role="img" '
        f'aria-label="value for {first} over the game">'
        f'<path class="zero" d="M0 15H100"/><polyline points="{points}"/><path '
        f'class="cursor" d="M100 0V30"/></svg>'
    )


def _settings(config: dict[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the settings by section: (section, [(name, value)])."""
    return [
        (section, [(name, _setting(value)) for name, value in values.items()])
        for section, values in config.items()
        if isinstance(values, dict)
    ]


def _setting(value: Any) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else format_cell(value)
