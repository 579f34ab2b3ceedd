"""The directory of a match: its settings, every finished game, the result. An interrupted match
continues from it.

match.json    the command and the players; the result so far
games.jsonl   one row per finished game (see `azero.match.games.MatchGame`)
gameN.sgf     the games of Go; those of chess as .pgn, of shogi as .csa
first/        the network of the first player, if its run may delete it; likewise second/
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from azero.config import convert
from azero.data.directory_lock import hold
from azero.data.rows import RowFile, read_rows, replace_text, to_plain
from azero.match.games import MatchGame, MatchSummary, summarise

MATCH = "match.json"
GAMES = "games.jsonl"
COPIES = ("first", "second")
"""Directories of the players' networks, where the match has copies of them."""
MAX_NAME_BYTES = 255
"""Longest name of a file (Linux's NAME_MAX)."""
_COMMAND = {
    **dict.fromkeys(("games", "temperature_moves"), int),
    **dict.fromkeys(("rules", "first_side"), str | None),
    "handicap": int | None,
    "clock": dict | None,
}
_PLAYER = {"name": str, "player": str, "iteration": int | None}
_SEARCH = {
    **dict.fromkeys(("visits", "search"), int | str | None),
    "from_here": str,
    "iterations": dict,
    "pb_c_init": float,
}
_RESULT = {
    **dict.fromkeys(("wins", "draws", "losses"), int),
    "score": float,
    "interval": tuple[float, float],
    "failures": dict,
}
_BY_COLOUR = {
    **dict.fromkeys(("as_first_mover", "as_second_mover"), dict),
    **dict.fromkeys(("different_as_first_mover", "different_as_second_mover"), dict),
    "repeated_games": int,
}
"""Types of the fields of match.json. Earlier versions did not write those of _COMMAND, _SEARCH and
_BY_COLOUR. Numbers are not negative."""


def directory_name(*players: str) -> str:
    """Return the name of a match's directory: the names of its players in lower case, a hyphen for
    anything that is neither letter nor digit, at most MAX_NAME_BYTES bytes."""
    name = "--".join(re.sub(r"[\W_]+", "-", player.lower()).strip("-") for player in players)
    if name.strip("-") and len(name.encode()) <= MAX_NAME_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name.encode()[: MAX_NAME_BYTES - 13].decode(errors="ignore") + f"-{digest}"


def with_relative_paths(directory: Path, player: str) -> str:
    """Return a player's name with the paths in it relative to `directory`: it stays the same where
    both are moved or copied together."""
    return _with_paths(player, Path(), lambda path: os.path.relpath(path, directory))


def with_resolved_paths(player: str, base: Path = Path()) -> str:
    """Return a player's name with the existing paths in it resolved from `base`; those in the
    working directory become relative to it."""
    here = Path.cwd()

    def spell(path: Path) -> str:
        path = path.resolve()
        return str(path.relative_to(here) if path.is_relative_to(here) else path)

    return _with_paths(player, base, spell)


def _with_paths(player: str, base: Path, spell: Callable[[Path], str]) -> str:
    """Return a player's name in which `spell` has rewritten the paths that exist, as seen from
    `base`."""
    return "".join(
        spell(base / word) if word and os.path.exists(base / word) else word
        for word in re.split("([:?&=])", player)
    )


def read_match(path: Path) -> dict[str, Any]:
    """Return what match.json says.

    Raises:
      ValueError: it is not there, or holds something else; the file and the place are named.
    """
    file = path / MATCH
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot read the match in {path}: {error}") from error
    players = facts.get("players") if isinstance(facts, dict) else None
    if not isinstance(players, list) or len(players) != 2:
        raise ValueError(f"{file} does not hold a match")
    _check_part(file, "command", facts.get("command"), {}, _COMMAND)
    if result := facts.get("result"):  # there is none without games
        _check_part(file, "result", result, _RESULT, _BY_COLOUR)
    for number, player in enumerate(players):
        _check_part(file, f"players[{number}]", player, _PLAYER, _SEARCH)
    return facts


def _check_part(
    file: Path, place: str, part: Any, needed: dict[str, Any], further: dict[str, Any]
) -> None:
    """Check the fields of a part of match.json.

    Raises:
      ValueError: one is missing, or of another type; it is named.
    """
    if not isinstance(part, dict):
        raise ValueError(f"{file} does not hold a match: {place} is {part!r}")
    if missing := [name for name in needed if name not in part]:
        raise ValueError(f"{file}: {place} has no {missing[0]}")
    for name, hint in (needed | further).items():
        value, key = part.get(name), f"{place}.{name}"
        numbers = [*value.values()] if isinstance(value, dict) else value
        for number in numbers if isinstance(numbers, list) else [numbers]:
            if isinstance(number, int | float) and not 0 <= number < 2**31:
                raise ValueError(f"{file}: {key} is {number}")
            if isinstance(value, dict):
                convert(number, float | None, key, str(file))
        if name in part:
            convert(value, hint, key, str(file))


def read_match_result(path: Path) -> dict[str, Any]:
    """Return the result of a match as in match.json, so far if it has not ended; empty without
    games.

    Raises:
      ValueError: a file is damaged; it is named.
    """
    facts = read_match(path)
    if facts.get("result"):
        return dict(facts["result"])
    games = read_match_games(path)
    return _result(summarise(games), None) if games else {}


def read_match_games(path: Path) -> list[MatchGame]:
    """Return the finished games of a match.

    Raises:
      ValueError: a row is damaged, or holds no game of this match; the file is named.
    """
    command = read_match(path)["command"] if (path / MATCH).exists() else {}
    games: dict[int, MatchGame] = {}
    for number, row in enumerate(read_rows(path / GAMES), start=1):
        try:
            game = MatchGame.from_row(row)
            if game.number in games:
                raise ValueError(f"holds game {game.number} again")
            _check_place(game, command)
        except ValueError as error:
            raise ValueError(f"{path / GAMES}, row {number} {error}") from error
        games[game.number] = game
    return list(games.values())


def _check_place(game: MatchGame, command: dict[str, Any]) -> None:
    """Check that the number and the colours of a game belong to the match of `command`.

    Raises:
      ValueError: they do not.
    """
    last = command.get("games", game.number)
    if not 1 <= game.number <= last:
        raise ValueError(f"holds game {game.number}, and {MATCH} a match of {last} games")
    is_black = game.number % 2 == 1 and not command.get("handicap")
    if not command.get("first_side") and game.first_is_black != is_black:
        raise ValueError(
            f"holds game {game.number} with first_is_black {game.first_is_black}, unlike {MATCH}"
        )


def read_players(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return the players of all matches in directories as match.json has them, by what names them
    in commands (`match_players`); of a player in several matches what the first one says.

    Raises:
      ValueError: a file is damaged; it is named.
    """
    sides = [side for path in paths if (path / MATCH).exists() for side in match_players(path)]
    return {side["player"]: side for side in reversed(sides)}


def match_players(path: Path) -> list[dict[str, Any]]:
    """Return both players of a match as match.json has them, each with the path "copy" where the
    match may keep its network.

    Raises:
      ValueError: match.json is damaged; it is named.
    """
    players = read_match(path)["players"]
    return [side | {"copy": path / name} for name, side in zip(COPIES, players, strict=True)]


class MatchDirectory:
    """The files of one match, open for further games."""

    def __init__(
        self, path: Path, command: dict[str, Any], players: Sequence[dict[str, Any]]
    ) -> None:
        """Open the directory for the match that `command` describes. `players` are its players now;
        those of an earlier start are kept, also where the directory has been moved together with
        theirs.

        A match may be extended: its games are kept, and further ones are played. One without games
        may become another match.

        Raises:
          ValueError: it holds another match (both commands are named), a result without its games
            or games without their match, or a match that is running.
          OSError: it cannot be made or written to.
        """
        self.path = path
        self.command = to_plain(command)
        self.players: list[dict[str, Any]] = [
            {**side, "from_here": with_relative_paths(path, side["player"])} for side in players
        ]
        self.games: list[MatchGame] = []
        self._is_outdated = False
        """Whether the result or the number of games in match.json is that before the next game."""
        path.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as holding:
            holding.enter_context(hold(path))
            self._open()
            self._held = holding.pop_all()

    def _open(self) -> None:
        """Read the match that is in the directory, or begin it."""
        path = self.path
        if (path / MATCH).exists():
            facts = read_match(path)
            # earlier versions did not record the rules
            there = {"rules": self.command.get("rules")} | facts["command"]
            self.games = read_match_games(path)
            if facts.get("result") and not self.games:
                raise ValueError(
                    f"{path} holds the result of a match without its games ({GAMES}), which cannot "
                    "be continued; choose another directory"
                )
            has_moved = self._follow(facts["players"], there)
            is_longer = there.get("games", 0) < self.command["games"]
            games = {"games": self.command["games"]} if is_longer else {}
            differences = _differences(there | games, self.command)
            if differences and self.games:
                raise ValueError(
                    f"{path} holds another match ({differences}); choose another directory, or "
                    "move this one away"
                )
            if not differences:
                self.players = facts["players"]
            self._is_outdated = is_longer or bool(facts.get("result"))
            if differences:
                self._write({})
            elif has_moved and not is_longer:
                self._write(facts.get("result", {}))
        elif read_match_games(path):
            raise ValueError(
                f"{path} holds the games of a match without its settings ({MATCH}), which cannot "
                "be continued; choose another directory"
            )
        else:
            self._write({})
        self._rows = RowFile(path / GAMES)

    def _follow(self, players: Sequence[dict[str, Any]], command: dict[str, Any]) -> bool:
        """Give the players of an earlier start, and their command, the present names where they are
        the same relative to the directory; return whether a name has changed."""
        has_moved = False
        for side, then, now in zip(("first", "second"), players, self.players, strict=False):
            is_same = then.get("from_here") == now["from_here"]
            if is_same and then["player"] != now["player"] == self.command[side]:
                command[side] = then["player"] = now["player"]
                has_moved = True
        return has_moved

    def add(self, game: MatchGame, record: tuple[str, str] | None) -> None:
        """Keep a finished game; `record` is the suffix and the text of its file, if it has one."""
        if record is not None:
            suffix, text = record
            replace_text(self.path / f"game{game.number:04d}{suffix}", text)
        if self._is_outdated:
            self._write({})  # the result of all games so far is in their rows
            self._is_outdated = False
        self._rows.append(game.row())
        self.games.append(game)

    def finish(self, summary: MatchSummary, verdict: str | None) -> None:
        """Write the result so far."""
        self._write(_result(summary, verdict))

    def close(self) -> None:
        """Close the files and release the directory."""
        self._rows.close()
        self._held.close()

    def _write(self, result: dict[str, Any]) -> None:
        facts = {"command": self.command, "players": self.players, "result": result}
        replace_text(self.path / MATCH, json.dumps(to_plain(facts), indent=2) + "\n")


def _result(summary: MatchSummary, verdict: str | None) -> dict[str, Any]:
    return {
        **dataclasses.asdict(summary.result.total),
        "score": summary.score.score,
        "interval": [summary.score.low, summary.score.high],
        "independent_groups": summary.score.groups,
        "as_first_mover": dataclasses.asdict(summary.result.first),
        "as_second_mover": dataclasses.asdict(summary.result.second),
        "failures": summary.failures,
        "score_disagreements": summary.disagreements,
        "repeated_games": summary.repeats,
        "different_games": dataclasses.asdict(summary.different.total),
        "different_as_first_mover": dataclasses.asdict(summary.different.first),
        "different_as_second_mover": dataclasses.asdict(summary.different.second),
        "sprt": verdict,
    }


def _differences(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return how two commands differ: the match in the directory first, then this one; a missing
    setting is None. Empty if they are equal."""
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    if len(names) > 1 and "rules" in names:
        names.remove("rules")  # they follow from the others
    if not names:
        return ""
    there, here = (
        ", ".join(f"{name}: {command.get(name)}" for name in names) for command in (old, new)
    )
    return f"there {there}; here {here}"
