"""A tournament: every pair of players in a match of its own, and one list of ratings."""

from __future__ import annotations

import itertools
import re

from rich.console import Console

from azero.console.terminal import make_console
from azero.match.directory import directory_name, read_players
from azero.match.elo import EloFit
from azero.match.matches import play_match
from azero.match.request import MatchRequest, TournamentRequest
from azero.match.sides import match_rules, read_sides
from azero.report.ratings import rate

_SHARED = (
    "games",
    "komi",
    "size",
    "suicide",
    "random_plies",
    "temperature_moves",
    "clock",
    "seed",
    "timeout",
    "workers",
)
"""Settings of each match."""


def play_tournament(request: TournamentRequest, console: Console | None = None) -> EloFit:
    """Play what is missing of all matches, print the ratings and return them. The rules of all
    matches are those of the first network, as in a match of all players.

    Each match is kept in a directory of `request.out` while it is played, so an interrupted
    tournament continues where it was. A run without an iteration plays all its matches with the
    checkpoint that was the newest in the first one.

    Raises:
      ValueError: a player is not understood, two have one name, or the directory holds other
        matches.
      CheckpointError: a checkpoint cannot be read.
      KeyboardInterrupt: it was stopped; the message says what is kept.
    """
    console = console or make_console()
    players = _players(request)
    if request.anchor is not None and request.anchor not in players:
        raise ValueError(f"--anchor {request.anchor}: the players are called {', '.join(players)}")
    pairs = list(itertools.combinations(players, 2))
    directories = [request.out / directory_name(first, second) for first, second in pairs]
    shared = {name: getattr(request, name) for name in _SHARED}
    matches = [
        MatchRequest(
            players[first],
            players[second],
            first_name=first,
            second_name=second,
            out=directory,
            **shared,
        )
        for (first, second), directory in zip(pairs, directories, strict=True)
    ]
    # One game for all, also for two programs; an error is reported before hours of games.
    rules = match_rules(matches[0], [side for match in matches for side in read_sides(match)])
    for match in matches:
        play_match(match, console, read_players(directories), rules)
    anchor = request.anchor or next(iter(players))
    return rate(directories, {anchor: 0.0}, console=console)


def _players(request: TournamentRequest) -> dict[str, str]:
    """Return the players by name; without a name of its own a player has that of its specification.

    Raises:
      ValueError: there are fewer than two, or two have one name.
    """
    players: dict[str, str] = {}
    for text in request.players:
        found = re.match(r"([^=:?/]+)=(.+)", text)
        name, player = found.groups() if found else (text, text)
        if directory_name(name) in map(directory_name, players):
            raise ValueError(f"two players are called {name!r}; name them: NAME=PLAYER")
        players[name] = player
    if len(players) < 2:
        raise ValueError(f"a tournament has at least two players, not {len(players)}")
    return players
