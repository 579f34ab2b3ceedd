"""How often the self-play of a chess run reaches the twelve openings of AlphaZero's Table 2, over
the games still in its replay.

python -m azero.commands.opening_counts runs/chess
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from azero.console.tables import Cell, make_table
from azero.console.terminal import make_console
from azero.data.files import StorageError
from azero.data.run_files import CONFIG
from azero.data.shard import parse_shard_path, read_shard
from azero.evaluate.chess_openings import OPENINGS, games_reaching
from azero.games.table import make
from azero.selfplay.targets import policy_room
from azero.settings import Config, from_dict

PARTS = 5
"""Number of columns: equal parts of the run, by shards."""


def count_openings(workdir: Path) -> tuple[np.ndarray, np.ndarray]:
    """Count the games of a run that reach each opening.

    Returns:
      int64[P, 12] games that reach it and int64[P] games in all, for the stretches of the run,
        oldest first; P is PARTS, or fewer where there are few shards.

    Raises:
      ValueError: `workdir` is not a run of chess, or has no games.
      StorageError: a shard is damaged.
    """
    try:
        settings = json.loads((workdir / CONFIG).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(
            f"{workdir} is not the directory of a run: {error.strerror}: {error.filename}"
        ) from error
    config = from_dict(settings, Config(), str(workdir / CONFIG))
    if config.game.name != "chess":
        raise ValueError(f"{workdir} is a run of {config.game.name}; the openings are for chess")
    paths = sorted(
        (workdir / "replay").glob("games-p*.shard"), key=lambda path: parse_shard_path(path)[::-1]
    )
    if not paths:
        raise ValueError(f"{workdir} has no games in its replay")
    game = make("chess")
    chunks = np.array_split(np.arange(len(paths)), min(PARTS, len(paths)))
    reached, games = (
        np.zeros((len(chunks), len(OPENINGS)), np.int64),
        np.zeros(len(chunks), np.int64),
    )
    for part, chunk in enumerate(chunks):
        for index in chunk:
            (rows, _), table = read_shard(
                paths[index], None, "chess", game.frame_words, policy_room(game)
            )
            number = np.repeat(np.arange(len(table)), table["length"])
            reached[part] += games_reaching(rows["frame"], number, len(table))
            games[part] += len(table)
    return reached, games


def main(arguments: list[str] | None = None) -> None:
    """Print the share of the games that reach each opening."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workdir", type=Path)
    options = parser.parse_args(arguments)
    try:
        reached, games = count_openings(options.workdir)
    except (ValueError, StorageError) as error:
        print(f"azero: {error}", file=sys.stderr)
        sys.exit(2)
    columns = ("", "opening", "moves", *(f"{count:,} games" for count in games))
    rows: list[tuple[Cell, ...]] = [
        (
            opening.eco,
            opening.name,
            " ".join(opening.moves),
            *(f"{100 * share:.2f}%" for share in reached[:, index] / np.maximum(games, 1)),
        )
        for index, opening in enumerate(OPENINGS)
    ]
    make_console().print(
        make_table(
            "self-play games that reach the openings of Table 2, oldest games first", columns, rows
        )
    )


if __name__ == "__main__":
    main()
