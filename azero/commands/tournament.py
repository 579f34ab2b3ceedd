"""A tournament: every pair of players in a match of its own, and one list of ratings."""

import itertools
import re
from pathlib import Path

from rich.console import Console

from azero.console.terminal import make_console
from azero.match.directory import directory_name, read_players, with_resolved_paths
from azero.match.elo import EloFit
from azero.match.matches import AbsentPlayerError, check_match_directory, play_match
from azero.match.request import TournamentRequest, match_of
from azero.match.sides import match_rules, read_sides
from azero.models.naming import normalise_name
from azero.report.ratings import rate


def play_tournament(request: TournamentRequest, console: Console | None = None) -> EloFit:
    """Play what is missing of all matches, print the ratings and return them. The rules of all
    matches are those of the first network, as in a match of all players.

    A player that never makes a move in a match does not take part in the matches after it. Each
    match is kept in a directory of `request.out` while it is played, so an interrupted tournament
    continues where it was. A run without an iteration plays all its matches with the
    checkpoint that was the newest in the first one.

    Raises:
      ValueError: a player is not understood, two have one name, the directory holds other matches,
        or fewer than two players, or not the anchor, have made a move.
      CheckpointError: a checkpoint cannot be read.
      KeyboardInterrupt: it was stopped; the message says what is kept.
    """
    console = console or make_console()
    players = _players(request)
    if request.anchor is not None and request.anchor not in players:
        raise ValueError(f"--anchor {request.anchor}: the players are called {', '.join(players)}")
    # Players may be named in another order than where the tournament began.
    pairs = [
        pair[::-1] if (request.out / directory_name(*pair[::-1])).exists() else pair
        for pair in itertools.combinations(players, 2)
    ]
    directories = [request.out / directory_name(first, second) for first, second in pairs]
    matches = [
        match_of(
            request,
            players[first],
            players[second],
            first_name=first,
            second_name=second,
            out=directory,
        )
        for (first, second), directory in zip(pairs, directories, strict=True)
    ]
    # One game for all, also for two programs; an error is reported before hours of games.
    known = read_players(directories)
    sides = [read_sides(match, known) for match in matches]
    rules = match_rules(matches[0], list(itertools.chain(*sides)))
    for match, both in zip(matches, sides, strict=True):
        check_match_directory(match, both, rules)
    played: list[Path] = []
    absent: dict[str, str] = {}
    for pair, match, directory in zip(pairs, matches, directories, strict=True):
        if absent.keys() & set(pair):
            continue
        try:
            play_match(match, console, read_players(directories), rules)
        except AbsentPlayerError as error:
            absent[error.side.name] = str(error)
            note = f"{error}; the tournament continues without it"
            console.print(note, style="yellow", soft_wrap=True, highlight=False)
        else:
            played.append(directory)
    left = [name for name in players if name not in absent]
    if len(left) < 2 or request.anchor in absent:
        raise ValueError(f"no ratings: {'; '.join(absent.values())}")
    return rate(played, {request.anchor or left[0]: 0.0}, console=console)


def _players(request: TournamentRequest) -> dict[str, str]:
    """Return the players by name; a player without a name has its specification as its name.

    Raises:
      ValueError: there are fewer than two, or two have one name, or are one player without a name.
    """
    players: dict[str, str] = {}
    taken = set[str]()
    for text in request.players:
        found = re.match(r"([^=:?/]+)=(.+)", text)
        name, player = found.groups() if found else (text, text)
        spellings = [name] if found else [text, normalise_name(with_resolved_paths(player))]
        names = set(map(directory_name, spellings))
        if names & taken:
            raise ValueError(f"two players are called {name!r}; name them: NAME=PLAYER")
        taken |= names
        players[name] = player
    if len(players) < 2:
        raise ValueError(f"a tournament has at least two players, not {len(players)}")
    return players
