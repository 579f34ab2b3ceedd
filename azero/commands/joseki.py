"""`azero eval joseki`: corner sequences in sets of games, over time."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from azero.config import check_range
from azero.console.tables import Cell, count_of, make_table
from azero.console.terminal import make_console
from azero.data.records.requests import JosekiRequest
from azero.evaluate.joseki import Frequency, count_sequences, parse_sequence
from azero.games.archives import RecordError
from azero.games.go.sgf import GameRecord, read_games


def count_joseki(request: JosekiRequest) -> list[Frequency]:
    """Count sequences, print a table or JSON, and return the rows.

    Raises:
      ValueError: a file cannot be read, a sequence is invalid, or there is no game.
    """
    check_range(request, "--", "parts length top", 1)
    used, left_out = _select(request)
    size = used[0].size
    edges = np.linspace(0, len(used), request.parts + 1).astype(int)
    parts = [used[first:end] for first, end in itertools.pairwise(edges)]
    wanted = [parse_sequence(text, size) for text in request.sequence]
    rows = count_sequences(parts, wanted, request.length, request.top)
    if request.json:
        facts = {
            "games": len(used),
            "parts": [len(part) for part in parts],
            "dates": [_dates(part) for part in parts],
            "sequences": [asdict(row) for row in rows],
        }
        print(json.dumps(facts))
        return rows
    names = [
        _dates(part) if request.by_date else f"part {number} of {request.parts}"
        for number, part in enumerate(parts, start=1)
    ]
    columns = ("sequence", "corners", "games", *names)
    cells: list[tuple[Cell, ...]] = [
        (row.sequence, row.corners, row.games, *(f"{100 * share:.1f}%" for share in row.shares))
        for row in rows
    ]
    title = f"Corner sequences in {count_of(len(used), 'game')}: share of games with it"
    console = make_console()
    console.print(make_table(title, columns, cells))
    others = "".join(f"; {count} {reason}" for reason, count in left_out.items() if count)
    console.print(f"rotations, reflections and swapped colours merged{others}", soft_wrap=True)
    return rows


def _select(request: JosekiRequest) -> tuple[list[GameRecord], dict[str, int]]:
    """Read the games.

    Returns:
      Those of the first one's board, in order; and how many others were left out, by reason.
    """
    if not request.games:
        raise ValueError("give at least one file of records: azero eval joseki FILE ...")
    skipped: list[RecordError] = []
    records = [
        record
        for path in request.games
        for record in read_games(path, skipped)
        if request.only in record.name
    ]
    where = ", ".join(map(str, request.games))
    if not records:
        named = f" with {request.only!r} in its name" if request.only else ""
        unreadable = f"; not readable: {skipped[0]}" if skipped else ""
        raise ValueError(f"no games in {where}{named}{unreadable}")
    size = records[0].size
    used = [record for record in records if record.board_shape == (size, size)]
    left_out = {"of another board": len(records) - len(used), "not readable": len(skipped)}
    if request.by_date:
        left_out["without a date"] = sum(not record.date for record in used)
        used = sorted((record for record in used if record.date), key=lambda record: record.date)
        if not used:
            raise ValueError(f"no game in {where} has a date; omit --by-date")
    return used, left_out


def _dates(part: Sequence[GameRecord]) -> str:
    """Return the first and the last date of a part in order; empty where the games have none."""
    dates = [record.date for record in part if record.date]
    return f"{dates[0]} to {dates[-1]}" if dates else ""
