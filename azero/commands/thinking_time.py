"""Elo against thinking time (Silver et al. 2018, Figure 2): one network with increasing numbers of
simulations, each against half as many.

python -m azero.commands.thinking_time runs/go9 --visits 16 32 64 128 --games 200 --out thinking
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from azero.match.directory import read_players
from azero.match.elo import EloFit
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.report.ratings import rate

PLOT = "thinking.png"


def measure(
    player: str,
    visits: Sequence[int],
    games: int,
    out: Path,
    seed: int = 0,
    console: Console | None = None,
) -> EloFit:
    """Play matches of `games` games between neighbouring amounts of simulations and rate them; what
    is in `out` already is not played again. `visits` ascend, 0 is the policy alone; `player` is a
    network as in `azero match`, without visits. A run without an iteration plays all matches with
    the checkpoint that was the newest in the first one.

    Raises:
      ValueError: the amounts are not increasing, or a match cannot be played.
      CheckpointError: a checkpoint cannot be read.
    """
    if len(visits) < 2 or any(low >= high for low, high in itertools.pairwise(visits)):
        raise ValueError(
            f"--visits takes two or more increasing numbers, not {' '.join(map(str, visits))}"
        )
    separator = "&" if "?" in player else "?"
    names = [f"{count} simulations" if count else "policy alone" for count in visits]
    directories = [out / f"{low}-{high}" for low, high in itertools.pairwise(visits)]
    texts = [f"{player}{separator}visits={count}" for count in visits]
    for index, directory in enumerate(directories):
        facts = next(iter(read_players(directories).values()), None)  # all are one network
        play_match(
            MatchRequest(
                first=texts[index + 1],
                second=texts[index],
                games=games,
                temperature_moves=4,
                first_name=names[index + 1],
                second_name=names[index],
                seed=seed,
                out=directory,
            ),
            console,
            {} if facts is None else dict.fromkeys(texts, facts),
        )
    return rate(directories, {names[0]: 0.0}, plot=out / PLOT, console=console)


def main(arguments: list[str] | None = None) -> None:
    """Print the ratings and write them as a figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("player", help="the directory of a run, or a network as in azero match")
    parser.add_argument(
        "--visits",
        type=int,
        nargs="+",
        default=[16, 32, 64, 128],
        help="simulations per move, increasing",
    )
    parser.add_argument("--games", type=int, default=200, help="of each match")
    parser.add_argument(
        "--out", type=Path, required=True, help="directory for the matches and the figure"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    try:
        measure(options.player, options.visits, options.games, options.out, options.seed)
    except (ValueError, OSError) as error:
        print(f"azero: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
