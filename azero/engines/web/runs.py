"""A run as the page shows it: its progress, its curves, its newest games."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from azero.data.rows import Row
from azero.data.run_files import RunData, StoredGame, load_run
from azero.engines.web.guard import Refusal
from azero.engines.web.records import Record
from azero.games.chess.pgn import RESULTS
from azero.games.diagrams import parse_stones
from azero.games.go.sgf import GameRecord
from azero.games.go.sgf_write import format_result
from azero.report.page import chart_series, draw_charts, elo_series, status, summary_numbers

SHOWN_GAMES = 12
"""Newest games of a run that the page offers."""


def describe_run(workdir: Path) -> dict[str, Any]:
    """Return the state of the run in `workdir`, its charts as SVG, and its newest games.

    Raises:
      ValueError: a file of the run is damaged; it is named.
    """
    data = load_run(workdir)
    return {
        "title": data.run.get("experiment", workdir.name),
        "status": status(data),
        "iteration": data.metrics[-1]["iteration"] if data.metrics else 0,
        "numbers": summary_numbers(data),
        "charts": _charts(workdir, _stamp(data.metrics), _stamp(data.events)),
        "games": [
            {
                "iteration": iteration,
                "number": number,
                "moves": len(game.actions),
                "ending": game.ending,
                "names": game.names,
            }
            for iteration, number, game in newest_games(data)
        ],
    }


def _stamp(rows: Sequence[Row]) -> tuple[int, float | None]:
    """Return what differs after new rows: their number and the time of the last one, which differs
    where a run was resumed or begun again."""
    return len(rows), rows[-1].get("time") if rows else None


@functools.lru_cache(maxsize=4)
def _charts(workdir: Path, *stamps: tuple[int, float | None]) -> list[str]:
    """Draw the charts; they stay the same until there are new rows."""
    data = load_run(workdir)
    return [
        str(chart) for chart in draw_charts(elo_series(data.events) | chart_series(data.metrics))
    ]


def sample_record(workdir: Path, iteration: int, number: int) -> Record:
    """Return one of the newest games of a run as a record.

    Raises:
      Refusal: there is no such game.
      ValueError: a file of the run is damaged; it is named.
    """
    for found, place, game in newest_games(load_run(workdir)):
        if (found, place) == (iteration, number):
            go = None
            if game.game == "go":
                black, white, mover = parse_stones(game.start)
                moves = tuple((ply % 2, action) for ply, action in enumerate(game.actions, mover))
                go = GameRecord("sample", game.board, game.komi, moves, black, white, mover)
            result = _resignation(game) if "resign" in game.ending else ""
            return Record(game.game, game.board, game.names, go, game.actions, game.start, result)
    raise Refusal(404, f"there is no game {number} of iteration {iteration} any more")


def _resignation(game: StoredGame) -> str:
    """Return the result of a game that was resigned, as the game's format has it."""
    first, second = game.rewards
    if game.game == "go":
        return format_result(game.rewards, "R")
    return "%TORYO" if game.game == "shogi" else RESULTS[int(first), int(second)]


def newest_games(data: RunData) -> list[tuple[int, int, StoredGame]]:
    """Return the newest sample games of a run: iteration, number among its games, game."""
    games = [
        (iteration, number, game)
        for iteration, samples in reversed(data.samples)
        for number, game in enumerate(samples)
    ]
    return games[:SHOWN_GAMES]
