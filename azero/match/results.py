"""Results of matches and runs, read from their directories."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from azero.data.rows import read_rows
from azero.data.run_files import EVENTS
from azero.match.arena import EVALUATION, row_result
from azero.match.directory import GAMES, MATCH, read_match, read_match_games, with_resolved_paths
from azero.match.games import absent_player, different_games, group_results, summarise
from azero.match.score import MatchResult, Tally
from azero.models.naming import is_network, normalise_name


class MatchOutcome(NamedTuple):
    """The result of one match between two named players."""

    names: tuple[str, str]
    players: tuple[str, str]
    """Full descriptions of the players."""
    result: MatchResult
    interval: tuple[float, float]
    """The 95% interval of the first player's score."""
    groups: tuple[MatchResult, ...] = ()
    """The results of the groups of games that depend on each other; empty where the games are not
    recorded, which then count as independent."""
    board: str | None = None
    """The game, its size and its komi; None where they are not recorded."""
    is_named: tuple[bool, bool] = (True, True)
    """Whether the players' names were chosen; others are their commands, as in tournaments, or what
    describes them."""


class NotRatedError(ValueError):
    """A match or a run has no result that can be rated; the message names it and says why."""


def read_results(
    directories: Iterable[Path], left_out: list[str] | None = None
) -> list[MatchOutcome]:
    """Return the matches in directories each of which is a match or a run, or holds such
    directories; one that is named twice, as by itself and within another, counts once. What cannot
    be rated is left out, and why is appended to `left_out`; without the list it raises.

    Raises:
      NotRatedError: a match or a run cannot be rated.
      ValueError: there is no such directory, it holds neither, or a file is damaged.
    """
    found = {path.resolve(): path for path in itertools.chain(*map(_matches_and_runs, directories))}
    outcomes: list[MatchOutcome] = []
    for path in found.values():
        try:
            outcomes += [_match_outcome(path)] if (path / MATCH).exists() else _run_outcomes(path)
        except NotRatedError as error:
            if left_out is None:
                raise
            left_out.append(str(error))
    return outcomes


def _matches_and_runs(directory: Path) -> list[Path]:
    """Return the directory itself if it is a match or a run, otherwise those in it."""
    if not directory.is_dir():
        raise ValueError(f"there is no directory {directory}")
    if any((directory / name).exists() for name in (MATCH, EVENTS)):
        return [directory]
    inner = {path.parent for name in (MATCH, EVENTS) for path in directory.glob(f"*/{name}")}
    if not inner:
        raise ValueError(
            f"{directory} is neither a match ({MATCH}) nor a run ({EVENTS}), and contains none"
        )
    return sorted(inner)


def _match_outcome(directory: Path) -> MatchOutcome:
    match = read_match(directory)
    if match["command"].get("first_side"):
        raise NotRatedError(
            f"{directory}: one player always had the {match['command']['first_side']} side, so its "
            "score does not compare the players"
        )
    first, second = match["players"]
    players = [_identity(side, match, directory) for side in (first, second)]
    # Where moves are drawn, games that happen to be the same are still as many games; without that
    # they are one game.
    counts_repeats = bool(match["command"].get("temperature_moves", 1))
    games = read_match_games(directory)
    if (absent := absent_player(games)) is not None:
        raise NotRatedError(f"{directory}: {absent} never played a move")
    groups: tuple[MatchResult, ...] = ()
    if games:
        counted = games if counts_repeats else different_games(games)
        summary, groups = summarise(counted), tuple(group_results(counted))
        result, interval = summary.result, (summary.score.low, summary.score.high)
    else:
        result, interval = _counted(directory, match.get("result") or {}, counts_repeats)
    handicap = match["command"].get("handicap")
    free = f", {handicap} free moves" if handicap else ""
    players[1] += free
    names = (first["name"], second["name"].removesuffix(free) + free)
    board = _board(match["command"].get("rules"))
    is_named = (_is_chosen("first_name", first, match), _is_chosen("second_name", second, match))
    if players[0] == players[1]:  # the names alone tell them apart
        is_named = (True, True)
    return MatchOutcome(names, (players[0], players[1]), result, interval, groups, board, is_named)


def _is_chosen(setting: str, side: dict[str, Any], match: dict[str, Any]) -> bool:
    """Return whether a player's name was chosen; earlier versions did not record that."""
    return match["command"].get(setting, side["name"]) not in (None, side["player"])


def _board(rules: str | None) -> str | None:
    """Return the part of a match's rules (`describe_rules`) on which ratings depend."""
    if rules is None:
        return None
    board, *words = rules.split(", ")
    return ", ".join([board, *(word for word in words if word.startswith("komi "))])


def _counted(
    directory: Path, result: dict[str, Any], counts_repeats: bool
) -> tuple[MatchResult, tuple[float, float]]:
    """Return the result of a match without its games, as match.json counts it, and the interval of
    its score; that of independent games where match.json has none of the games that count."""
    if not result:
        raise NotRatedError(f"{directory}: no game has ended ({GAMES}, {MATCH})")
    prefix = "" if counts_repeats or not result.get("repeated_games") else "different_"
    keys = [f"{prefix}as_{mover}_mover" for mover in ("first", "second")]
    if prefix and keys[0] not in result:
        raise NotRatedError(
            f"{directory}: {result['repeated_games']} of its games repeat others and do not count, "
            f"and {GAMES}, which says whose they are, is missing"
        )
    try:
        counted = MatchResult(*(Tally(**result[key]) for key in keys))
        wilson = counted.total.interval
        low, high = wilson if prefix else result.get("interval", wilson)
        return counted, (low, high)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{directory / MATCH} does not hold a result by colour") from error


def _identity(side: dict[str, Any], match: dict[str, Any], directory: Path) -> str:
    """Return what identifies a player of a match: its command, its checkpoint, its clock and its
    search.

    Matches of former versions do not record the search. Between two networks it was the run's own,
    in many games at once; in all others it was an engine's. Without visits there is none. The
    engine's exploration is recorded since it is no longer AlphaZero's.
    """
    from_there = side.get("from_here", "")  # earlier versions did not record it
    name = with_resolved_paths(from_there, directory)
    # the players may be gone, or elsewhere
    name = name if name != from_there else with_resolved_paths(side["player"])
    words = [normalise_name(name), side["iteration"]]
    clock = match["command"].get("clock")
    words += [f"{name} {value:g}" for name, value in (clock or {}).items() if value]
    if side.get("search") is not None:
        words += [f"{side['visits']} visits", side["search"]]
        words += [f"pb-c-init {side['pb_c_init']}"] if "pb_c_init" in side else []
    elif not clock and is_network(side["player"]) and "visits=0" not in side["player"]:
        networks = all(is_network(other["player"]) for other in match["players"])
        at_once = networks and not match["command"].get("start_positions")
        how = "many games at once" if at_once else "one tree for each game"
        words.append(f"(search not recorded: {how})")
    return " ".join(str(word) for word in words if word is not None)


def _run_outcomes(directory: Path) -> list[MatchOutcome]:
    outcomes = []
    for row in read_rows(directory / EVENTS):
        if row.get("kind") == EVALUATION and row["iteration"] != row["opponent_iteration"]:
            a, b = row["iteration"], row["opponent_iteration"]
            name = directory.absolute().name  # of "." too
            names = (f"{name}, iteration {a}", f"{name}, iteration {b}")
            players = (f"{directory.resolve()} {a}", f"{directory.resolve()} {b}")
            result = row_result(row)
            outcomes.append(MatchOutcome(names, players, result, result.total.interval))
    if not outcomes:
        raise NotRatedError(f"{directory}: no match between its checkpoints has been played")
    return outcomes


def disambiguate_names(matches: Sequence[MatchOutcome]) -> list[MatchOutcome]:
    """Replace ambiguous player names by full descriptions: two levels of one program are two
    players. One that played on several boards, or with several komis, is a player on each, and its
    name says which. One whose names nobody chose keeps the first of them."""
    spelled: dict[str, str] = {}

    def called(match: MatchOutcome, side: int) -> str:
        name = match.names[side]
        return name if match.is_named[side] else spelled.setdefault(match.players[side], name)

    matches = [match._replace(names=(called(match, 0), called(match, 1))) for match in matches]
    meanings, boards = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for match in matches:
        for name, player in zip(match.names, match.players, strict=True):
            meanings[name].add(player)

    def clear(name: str, player: str) -> str:
        return name if len(meanings[name]) == 1 else player

    for match in matches:
        for side in zip(match.names, match.players, strict=True):
            boards[clear(*side)].update([match.board] if match.board else [])

    def describe(match: MatchOutcome, side: int) -> str:
        shown = clear(match.names[side], match.players[side])
        board = match.board or "board not recorded"
        return shown if len(boards[shown]) < 2 else f"{shown} ({board})"

    return [match._replace(names=(describe(match, 0), describe(match, 1))) for match in matches]
