"""`azero data import` and `azero data show`: make and show data sets of recorded games."""

import time
from pathlib import Path

import numpy as np
from rich.console import Console

from azero.config import check_range
from azero.console.progress import Progress
from azero.console.tables import count_of, format_bytes, format_count, format_duration, make_table
from azero.console.terminal import make_console
from azero.data.directory_lock import hold
from azero.data.files import missing_directories, remove_made
from azero.data.records.dataset import Dataset
from azero.data.records.filters import SPLITS
from azero.data.records.formats import format_of
from azero.data.records.human import LEFT_OUT, find_records, import_games
from azero.data.records.recorded import SLOTS, ImportTally
from azero.data.records.requests import ImportRequest, ShowRequest
from azero.data.shard import read_shard, shard_path

SHOWN_PROBLEMS = 20
"""Most unreadable games and files that are printed; `left-out.tsv` names all."""


def run_import(request: ImportRequest, console: Console | None = None) -> ImportTally:
    """Import games, show progress, and print the outcome. If no game is taken, no new data set is
    left behind.

    Raises:
      ValueError: a setting is invalid, the existing data set has other settings, another import is
        running, or there is no game to import.
      StorageError: the disk is full or cannot be written to.
      KeyboardInterrupt: it was stopped; the message says what is kept.
    """
    console = console or make_console()
    tally = ImportTally()
    form = format_of(request.filters.game)
    paths = find_records(request.paths, form.suffixes, tally)
    if not paths:
        raise ValueError("; ".join(tally.unreadable) or "no files of recorded games were named")
    made = missing_directories(request.out)
    dataset = Dataset.create(request.out, request.filters, request.fractions)
    began = time.monotonic()
    total = max(1, sum(map(form.estimate, paths)))
    with (
        hold(dataset.directory),
        Progress(total, console=console, unit="game") as progress,
        progress.working("reading and replaying games"),
    ):
        try:
            for _ in import_games(paths, dataset, tally):
                positions = tally.positions.total()
                speed = round(positions / (time.monotonic() - began))
                row = {"iteration": tally.read, "positions": positions}
                progress.update({**row, "positions_per_second": speed})
        except KeyboardInterrupt:
            kept = sum(shard.games for split in SPLITS for shard in dataset.shards(split))
            games = count_of(kept, "imported game")
            raise KeyboardInterrupt(
                f"stopped; {request.out} has {games}, and the same command continues the import"
            ) from None
        is_empty = not any(dataset.shards(split) for split in SPLITS)
        listed = None if made and is_empty else request.out / LEFT_OUT
        if listed is None:
            remove_made(made)
    _print_outcome(tally, time.monotonic() - began, console, listed)
    if is_empty:
        why = f"{listed} says why" if listed else f"see above; {request.out} is not made"
        raise ValueError(f"of {count_of(tally.read, 'game')} none was taken; {why}")
    return tally


def show(request: ShowRequest, console: Console | None = None) -> None:
    """Print a summary of a data set and some of its positions.

    Raises:
      ValueError: there is no such data set, or a number of the request is below 0.
      DamagedFileError: a shard is missing or damaged.
    """
    check_range(request, "--", "positions seed", 0)
    console = console or make_console()
    dataset = Dataset.open(request.directory)
    rows = []
    for split in SPLITS:
        shards = dataset.shards(split)
        size = sum((dataset.directory / split / shard.file).stat().st_size for shard in shards)
        rows.append(
            (
                split,
                sum(shard.games for shard in shards),
                sum(shard.positions for shard in shards) // dataset.rows_per_position,
                len(shards),
                format_bytes(size),
            )
        )
    columns = ("split", "games", "positions", "shards", "size")
    console.print(make_table(f"{request.directory}", columns, rows))
    for warning in dataset.warnings:
        console.print(warning, style="yellow", soft_wrap=True)
    filters = [
        f"{name.replace('_', '-')} {value}"
        for name, value in vars(dataset.filters).items()
        if value not in (None, ()) and name not in dataset.filters.foreign()
    ]
    console.print(f"taken: {', '.join(filters)}", soft_wrap=True, highlight=False)
    random = np.random.default_rng(request.seed)
    for _ in range(request.positions if dataset.shards(request.split) else 0):
        drawn = draw_position(dataset, request.split, random)
        console.print(f"\n{drawn}", highlight=False)


def draw_position(dataset: Dataset, split: str, random: np.random.Generator) -> str:
    """Return a random position of a split as text: source, move number, diagram, the move played
    and the result."""
    shards, game = dataset.shards(split), dataset.game()
    weights = np.asarray([shard.positions for shard in shards], float)
    record = shards[int(random.choice(len(shards), p=weights / weights.sum()))]
    path = shard_path(dataset.directory / split, 0, record.shard)
    (rows, _), games = read_shard(path, record.sha256, game.name, game.frame_words, SLOTS)
    place = int(random.choice(dataset.positions(rows)))
    row, number = rows[place], int(np.searchsorted(np.cumsum(games["length"]), place, side="right"))
    form = format_of(dataset.filters.game)
    diagram, move = form.describe(game, rows, place)
    colour = form.sides[int(row["to_play"])]
    if row["action"] >= 0:
        played = f"{colour} played {move} as move {row['ply'] + 1} of {games['length'][number]}"
    else:
        played = f"{colour}, to play after {count_of(row['ply'], 'move')},"
    reward = games["result"][number, row["to_play"]]  # may count points (game.margin-weight)
    result = {1: "won", -1: "lost", 0: "no winner"}[int(np.sign(reward))]
    source = dataset.sources(split, record.shard)[number]
    return f"{source}: {played} and {result}\n{diagram}"


def _print_outcome(
    tally: ImportTally, seconds: float, console: Console, listed: Path | None
) -> None:
    """Print what was added and left out; `listed` is the file of all that was left out, if it is
    kept."""
    for line in tally.unreadable[:SHOWN_PROBLEMS]:
        console.print(line, style="yellow", soft_wrap=True)
    if len(tally.unreadable) > SHOWN_PROBLEMS:
        more = len(tally.unreadable) - SHOWN_PROBLEMS
        text = f"... and {more} more" + (f": {listed}" if listed else "")
        console.print(text, style="yellow", soft_wrap=True)
    if tally.left_out:
        console.print(make_table("Left out", ("reason", "games"), tally.left_out.most_common()))
    added = ", ".join(
        f"{split} {count_of(tally.games[split], 'game')} with "
        f"{count_of(tally.positions[split], 'position')}"
        for split in SPLITS
    )
    before = f"; there before: {count_of(tally.already, 'game')}" if tally.already else ""
    read = f"{count_of(tally.read, 'game')} read from {count_of(tally.files, 'file')}"
    console.print(f"{read}; added: {added}{before}", soft_wrap=True)
    speed = format_count(round(tally.positions.total() / max(seconds, 1e-9)))
    console.print(f"{format_duration(seconds)}, {speed} positions/s", soft_wrap=True)
