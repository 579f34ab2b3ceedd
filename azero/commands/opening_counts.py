"""How often the self-play of a chess run reaches the twelve openings of AlphaZero's Table 2, over
the games still in its replay.

python -m azero.commands.opening_counts runs/chess
"""

import itertools
from pathlib import Path

import numpy as np
import tyro
from tyro.conf import Positional

from azero.console.interrupts import end_in_one_line
from azero.console.tables import Cell, make_table
from azero.console.terminal import make_console
from azero.data.run_files import read_config
from azero.data.shard import list_shards, read_replay
from azero.evaluate.chess_openings import OPENINGS, games_reaching

PARTS = 5
"""Number of columns: equal parts of the run, by shards."""


def count_openings(workdir: Positional[Path]) -> tuple[np.ndarray, np.ndarray]:
    """Count the games of a run that reach each opening.

    Returns:
      int64[P, 12] games that reach it and int64[P] games in all, for the stretches of the run,
        oldest first; P is PARTS, or fewer where there are few shards.

    Raises:
      ValueError: `workdir` is not a run of chess, or has no games.
      StorageError: a shard is damaged.
    """
    config = read_config(workdir)
    if config.game.name != "chess":
        raise ValueError(f"{workdir} is a run of {config.game.name}; the openings are for chess")
    count = len(list_shards(workdir / "replay"))
    if not count:
        raise ValueError(f"{workdir} has no games in its replay")
    parts = min(PARTS, count)
    reached, games = np.zeros((parts, len(OPENINGS)), np.int64), np.zeros(parts, np.int64)
    shards = read_replay(workdir, config.game.build(), config.learner.needs_auxiliary_targets)
    for part, chunk in enumerate(np.array_split(np.arange(count), parts)):
        for _, (rows, _), table in itertools.islice(shards, len(chunk)):
            number = np.repeat(np.arange(len(table)), table["length"])
            reached[part] += games_reaching(rows["frame"], number, len(table))
            games[part] += len(table)
    return reached, games


def main(arguments: list[str] | None = None) -> None:
    """Print the share of the games that reach each opening."""
    prog = "python -m azero.commands.opening_counts"
    reached, games = tyro.cli(count_openings, prog=prog, description=__doc__, args=arguments)
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
    with end_in_one_line():
        main()
