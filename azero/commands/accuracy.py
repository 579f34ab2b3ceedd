"""`azero eval accuracy`: how well networks predict recorded games, compared with the published
figures."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import CheckpointError, list_checkpoints, load_settings
from azero.compilation_cache import use_compilation_cache
from azero.console.progress import working
from azero.console.tables import count_of, make_table
from azero.console.terminal import make_console
from azero.data.records.filters import GAMES
from azero.data.records.recorded import ImportTally, pack_file
from azero.data.records.requests import AccuracyRequest
from azero.data.rows import to_plain
from azero.evaluate.accuracy import Accuracy, Mean, predict_positions, summarise_by_move
from azero.models.naming import find_directory
from azero.report.paper import format_mean, prediction_table
from azero.report.plots import Chart, Series, save_charts
from azero.settings import Config


def evaluate_accuracy(request: AccuracyRequest) -> dict[str, list[Accuracy]]:
    """Evaluate networks on one set of games and print the results; returns them by network, that
    over all moves first.

    Raises:
      ValueError: there is no game to evaluate, their number is below 0, or the networks are of
        different games or boards.
      CheckpointError: a network cannot be read.
    """
    if request.number < 0:
        raise ValueError(f"--number is the number of games, 0 for all, not {request.number}")
    networks = _networks(request)
    mesh_lib.split_cpu()
    use_compilation_cache()
    console = make_console(file=sys.stderr) if request.json else make_console()
    config = _common_settings([path for path, _ in networks.values()])
    tally = ImportTally()
    with working("reading and replaying games", console):
        rows = pack_file(request.games, config.game, tally, request.number)
    for line in tally.unreadable:
        console.print(line, style="yellow", soft_wrap=True)
    results: dict[str, list[Accuracy]] = {}
    for name, (path, iteration) in networks.items():
        try:
            outcomes = predict_positions(
                path, rows, np.arange(len(rows)), console, request.symmetries, iteration
            )
        except CheckpointError as error:
            if not request.every_checkpoint:
                raise
            console.print(f"{error}; it is left out", style="yellow", soft_wrap=True)
        else:
            results[name] = summarise_by_move(outcomes)
    if not results:
        raise ValueError(f"{request.checkpoint[0]} has no checkpoint that is whole")
    if request.plot is not None:
        iterations = [number for name in results if (number := networks[name][1]) is not None]
        _plot(request.plot, iterations, [rows[0] for rows in results.values()])
    if request.json:
        print(json.dumps(to_plain(_as_json(request, tally, results))))
    else:
        _print_tables(request, tally, results, console)
    return results


def _networks(request: AccuracyRequest) -> dict[str, tuple[Path, int | None]]:
    """Return the networks by name: directories and iterations, None for the newest.

    Raises:
      ValueError: checkpoints are chosen of no run or of several, or there is nothing to plot.
    """
    chosen = request.iteration
    if request.every_checkpoint or chosen:
        if len(request.checkpoint) != 1 or (request.every_checkpoint and chosen):
            raise ValueError("give one run, and --iteration or --every-checkpoint")
        path = find_directory(request.checkpoint[0])
        kept = chosen or tuple(row.iteration for row in list_checkpoints(path))
        if not kept:
            raise ValueError(f"{path} keeps no checkpoints; is it a run?")
        return {f"{path}, iteration {iteration}": (path, iteration) for iteration in kept}
    if request.plot is not None:
        raise ValueError("--plot needs --iteration or --every-checkpoint")
    return {name: (find_directory(name), None) for name in request.checkpoint}


def _plot(path: Path, iterations: Sequence[int], rows: Sequence[Accuracy]) -> None:
    """Write an image of the accuracy and the value error over the iterations."""

    def series(label: str, means: Sequence[Mean], scale: float) -> Series:
        values, low, high = (
            [scale * getattr(mean, name) for mean in means] for name in ("value", "low", "high")
        )
        return Series(label, list(iterations), values, low, high)

    accuracy = [
        series("top-1", [row.top1 for row in rows], 100),
        series("top-5", [row.top5 for row in rows], 100),
    ]
    error = [series("error", [row.value_error for row in rows], 1)]
    save_charts(path, [Chart("Moves predicted, %", accuracy), Chart("(z - v)^2 / 4", error)])


def _common_settings(checkpoints: Sequence[Path]) -> Config:
    """Return the settings of the first network; all play on its board."""
    if not checkpoints:
        raise ValueError("give at least one checkpoint")
    settings = {path: load_settings(path)[1] for path in checkpoints}
    first = settings[checkpoints[0]]
    if first.game.name not in GAMES:
        raise ValueError(
            f"{checkpoints[0]} plays {first.game.name}; records are of {', '.join(GAMES)}"
        )
    board = first.game.build().board_shape
    for path, other in settings.items():
        if (other.game.name, other.game.build().board_shape) != (first.game.name, board):
            raise ValueError(f"{path} and {checkpoints[0]} have different games or board sizes")
    return first


def _as_json(
    request: AccuracyRequest, tally: ImportTally, results: dict[str, list[Accuracy]]
) -> dict[str, object]:
    networks = [
        {"checkpoint": name, **rows[0].row(), "by_move": [row.row() for row in rows[1:]]}
        for name, rows in results.items()
    ]
    facts = {
        "games_read": tally.read,
        "left_out": dict(tally.left_out),
        "symmetries": request.symmetries,
    }
    return {
        **facts,
        **(networks[0] if len(networks) == 1 else {}),
        "networks": networks,
        "games_file": str(request.games),
    }


def _print_tables(
    request: AccuracyRequest,
    tally: ImportTally,
    results: dict[str, list[Accuracy]],
    console: Console,
) -> None:
    columns = ("moves", "positions", "games", "top-1 % (95%)", "top-5 % (95%)", "value error (95%)")
    for name, rows in results.items():
        cells = [
            (
                row.moves,
                row.positions,
                row.games,
                format_mean(row.top1, 100, 1),
                format_mean(row.top5, 100, 1),
                format_mean(row.value_error, 1, 3),
            )
            for row in rows
        ]
        console.print(make_table(name, columns, cells))
    if request.paper:
        console.print(prediction_table({name: rows[0] for name, rows in results.items()}))
    left_out = "".join(f"; {count} left out: {reason}" for reason, count in tally.left_out.items())
    console.print(f"{count_of(tally.read, 'game')} in {request.games}{left_out}", soft_wrap=True)
