"""A ladder: one player against fixed opponents at fixed settings, the weakest first."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from azero.console.tables import count_of, make_table
from azero.console.terminal import make_console
from azero.match.directory import directory_name, read_match_games, read_players
from azero.match.elo import format_elo_difference
from azero.match.games import summarise
from azero.match.matches import AbsentPlayerError, check_match_directory, play_match
from azero.match.request import LadderRequest, MatchRequest, match_of
from azero.match.sides import match_rules, read_sides
from azero.players.program import find_program
from azero.players.program_specs import ProgramSpec
from azero.players.specs import parse_player, settings_of


class Rung(NamedTuple):
    """An opponent of the ladder."""

    name: str
    player: str
    """As `azero match` takes it. Programs of Go are set to play until dead stones are captured,
    because games are scored by area as they stand."""


KOMI = 7.0
"""Komi of ladders of Go."""
RANDOM_PLIES = 4
"""Random moves at the start of every pair of games of other games' ladders."""
_PACHI = "gtp:pachi -t ={playouts} -r chinese threads=1,pondering=0,pass_all_alive=1"
_GARDNER = "uci:fairy-stockfish?option.UCI_Variant=gardner&nodes="
RUNGS = {
    "go": (
        Rung(
            "GNU Go level 10",
            "gtp:gnugo --mode gtp --level 10 --chinese-rules --positional-superko "
            "--capture-all-dead",
        ),
        Rung("Pachi 500 playouts", _PACHI.format(playouts=500)),
        Rung("Pachi 5,000 playouts", _PACHI.format(playouts=5000)),
    ),
    "chess": (
        Rung("Fairy-Stockfish 5 nodes", "uci:fairy-stockfish?nodes=5"),
        Rung("Stockfish 5 nodes", "uci:stockfish?nodes=5"),
        Rung("Stockfish 100 nodes", "uci:stockfish?nodes=100"),
        Rung("Stockfish 1,000 nodes", "uci:stockfish?nodes=1000"),
    ),
    "minichess": (
        Rung("Fairy-Stockfish 100 nodes", f"{_GARDNER}100"),
        Rung("Fairy-Stockfish 1,000 nodes", f"{_GARDNER}1000"),
    ),
    "shogi": (
        Rung("Fairy-Stockfish 5 nodes", "usi:fairy-stockfish?nodes=5"),
        Rung("GNU Shogi depth 1", "gnushogi:gnushogi?depth=1"),
        Rung("Fairy-Stockfish 100 nodes", "usi:fairy-stockfish?nodes=100"),
        Rung("Fairy-Stockfish 1,000 nodes", "usi:fairy-stockfish?nodes=1000"),
    ),
}
"""By the game, in ascending order of strength, in Go on 9x9 (docs/matches.md says how to get the
programs)."""


def play_ladder(request: LadderRequest, console: Console | None = None) -> list[tuple[str, ...]]:
    """Play all matches whose programs are installed and answer; print and return a row for each
    opponent.

    Raises:
      ValueError: an opponent is not understood, or there is none for the player's game, or none is
        installed.
    """
    console = console or make_console()
    spec = parse_player(request.player)
    game = spec.game if isinstance(spec, ProgramSpec) else settings_of(spec).game.name
    if game == "go":
        request = dataclasses.replace(request, komi=KOMI if request.komi is None else request.komi)
    elif request.random_plies is None:
        request = dataclasses.replace(request, random_plies=RANDOM_PLIES)
    rungs = [(rung, _missing(rung.player)) for rung in _rungs(request, game)]
    matches = {rung: _match(request, rung) for rung, problem in rungs if problem is None}
    directories = [request.out / directory_name(rung.name) for rung in matches]
    known = read_players(directories)
    for match in matches.values():  # an error in the last one is reported before hours of games
        sides = read_sides(match, known)
        check_match_directory(match, sides, match_rules(match, sides))
    rows: list[tuple[str, ...]] = []
    for rung, problem in rungs:
        if problem is not None:
            rows.append((rung.name, f"not played: {problem}", "", "", ""))
            continue
        console.print(f"{rung.name}: {rung.player}", style="bold", soft_wrap=True, highlight=False)
        try:
            play_match(matches[rung], console, read_players(directories))
        except AbsentPlayerError as error:
            if error.side.text != rung.player:
                raise
            console.print(str(error), soft_wrap=True, highlight=False)
            rows.append((rung.name, f"not played: {error.ending}", "", "", ""))
        else:
            rows.append((rung.name, *_result(request.out / directory_name(rung.name))))
    columns = ("opponent", "won, drawn, lost", "score", "95%", "Elo")
    console.print(make_table(_title(request), columns, rows))
    return rows


def _match(request: LadderRequest, rung: Rung) -> MatchRequest:
    out = request.out / directory_name(rung.name)
    return match_of(request, request.player, rung.player, second_name=rung.name, out=out)


def _rungs(request: LadderRequest, game: str) -> list[Rung]:
    rungs = [*RUNGS.get(game, ())]
    for text in request.opponents:
        name, _, player = text.partition("=")
        if not player or not name.strip() or ":" in name:
            raise ValueError(f"--opponents {text}: an opponent is NAME=PLAYER")
        rungs.append(Rung(name, player))
    if not rungs:
        raise ValueError(
            f"there are no public opponents of {game}; name your own with --opponents NAME=PLAYER"
        )
    names = ", ".join(rung.name for rung in rungs)
    rungs = [rung for rung in rungs if (request.only or "").lower() in rung.name.lower()]
    if not rungs:
        raise ValueError(
            f"--only {request.only}: no opponent has that in its name; there are {names}"
        )
    for rung in rungs:
        if sum(directory_name(rung.name) == directory_name(other.name) for other in rungs) > 1:
            raise ValueError(f"two opponents are called {rung.name!r}; give them different names")
    return rungs


def _missing(player: str) -> str | None:
    """Return why the program of a player cannot be started; None if it can, or for a network."""
    spec = parse_player(player)
    if isinstance(spec, ProgramSpec):
        try:
            find_program(spec.command[0])
        except ValueError as error:
            return str(error)
    return None


def _title(request: LadderRequest) -> str:
    words = [request.player, *([] if request.size is None else [f"{request.size}x{request.size}"])]
    words += [] if request.komi is None else [f"komi {request.komi:g}, area scoring"]
    words += (
        [f"first {count_of(request.random_plies, 'move')} random"] if request.random_plies else []
    )
    if request.temperature_moves > (request.random_plies or 0):  # which count random moves, too
        words.append(f"first {count_of(request.temperature_moves, 'move')} sampled")
    return ", ".join(words)


def _result(directory: Path) -> tuple[str, str, str, str]:
    """Return the counts, the score, its interval and the Elo difference of a match, as text."""
    summary = summarise(read_match_games(directory))
    total, score = summary.result.total, summary.score
    counts = f"{total.wins}, {total.draws}, {total.losses}"
    if score.groups < 2:
        return counts, f"{100 * score.score:.1f}%", "-", "-"
    return (
        counts,
        f"{100 * score.score:.1f}%",
        f"{100 * score.low:.1f} to {100 * score.high:.1f}",
        format_elo_difference(score.score, score.low, score.high),
    )
