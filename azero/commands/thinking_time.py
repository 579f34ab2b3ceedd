"""Elo against thinking time (Silver et al. 2018, Figure 2): one network with increasing numbers of
simulations, each against half as many.

python -m azero.commands.thinking_time runs/go9 --visits 16 32 64 128 --games 200 --out thinking
"""

import itertools
from dataclasses import dataclass
from pathlib import Path

import tyro
from tyro.conf import Positional

from azero.console.interrupts import end_in_one_line
from azero.match.directory import read_players
from azero.match.elo import EloFit
from azero.match.matches import play_match
from azero.match.request import MatchRequest
from azero.report.ratings import rate

PLOT = "thinking.png"


@dataclass(frozen=True)
class ThinkingTimeRequest:
    """Matches of a network against itself with the next smaller number of simulations."""

    player: Positional[str]
    """The directory of a run, or a network as in azero match, without visits."""
    out: Path
    """Directory for the matches and the figure; what is in it is not played again."""
    visits: tuple[int, ...] = (16, 32, 64, 128)
    """Simulations per move, increasing; 0 is the policy alone."""
    games: int = 200
    """Games of each match."""
    seed: int = 0
    """Random seed."""


def measure_thinking_time(request: ThinkingTimeRequest) -> EloFit:
    """Play the matches and rate them. A run without an iteration plays all matches with the
    checkpoint that was the newest in the first one.

    Raises:
      ValueError: the numbers of simulations do not increase, or a match cannot be played.
      CheckpointError: a checkpoint cannot be read.
    """
    pairs = list(itertools.pairwise(request.visits))
    if not pairs or any(low >= high for low, high in pairs):
        given = " ".join(map(str, request.visits))
        raise ValueError(f"--visits takes two or more increasing numbers, not {given}")
    separator = "&" if "?" in request.player else "?"
    names = {count: f"{count} simulations" if count else "policy alone" for count in request.visits}
    texts = {count: f"{request.player}{separator}visits={count}" for count in request.visits}
    directories = [request.out / f"{low}-{high}" for low, high in pairs]
    for (low, high), directory in zip(pairs, directories, strict=True):
        facts = next(iter(read_players(directories).values()), None)  # all are one network
        match = MatchRequest(
            first=texts[high],
            second=texts[low],
            games=request.games,
            temperature_moves=4,
            first_name=names[high],
            second_name=names[low],
            seed=request.seed,
            out=directory,
        )
        known = {} if facts is None else dict.fromkeys(texts.values(), facts)
        play_match(match, known=known)
    return rate(directories, {names[request.visits[0]]: 0.0}, plot=request.out / PLOT)


def main(arguments: list[str] | None = None) -> None:
    """Print the ratings and write them as a figure."""
    prog = "python -m azero.commands.thinking_time"
    request = tyro.cli(ThinkingTimeRequest, prog=prog, description=__doc__, args=arguments)
    measure_thinking_time(request)


if __name__ == "__main__":
    with end_in_one_line():
        main()
