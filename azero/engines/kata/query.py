"""Queries of KataGo's analysis protocol: parsing, checks, and setting up the game."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from azero.engines.kata.fields import (
    QueryError,
    boolean_of,
    colour_of,
    integer_of,
    list_of,
    location_of,
    move_of,
    number_of,
    stones_of,
)
from azero.games.go.rule_names import Rules, format_rules, parse_rules, read_rules
from azero.games.go.text import format_vertex
from azero.players.thinking import Restriction

if TYPE_CHECKING:
    from azero.engines.go_game import GoGame
    from azero.games.position import Position

PERSPECTIVES = ("BLACK", "WHITE", "SIDETOMOVE")
_UNSUPPORTED = (
    "includeOwnershipStdev",
    "includeMovesOwnershipStdev",
    "rootPolicyTemperature",
    "rootFpuReductionMax",
    "includeNoResultValue",
)
"""KataGo's fields that this engine does not support."""
_FLAGS = {
    "includePolicy": "includes_policy",
    "includeOwnership": "includes_ownership",
    "includeMovesOwnership": "includes_moves_ownership",
    "includePVVisits": "includes_line_visits",
}
"""Boolean fields, and what a `Query` calls them."""
_KNOWN = {
    *("id", "moves", "initialStones", "initialPlayer", "rules", "komi", "whiteHandicapBonus"),
    *("boardXSize", "boardYSize", "analyzeTurns", "maxVisits", "analysisPVLen"),
    *("reportDuringSearchEvery", "allowMoves", "avoidMoves", "overrideSettings"),
    *("priority", "priorities", *_FLAGS),
}
LARGEST_KOMI = 150.0
"""Points, as in KataGo."""
LARGEST_PRIORITY = 2**62 - 1
"""As in KataGo (analysis.cpp); a time in nanoseconds makes the newest query the first."""


@dataclass
class Query:
    """One query: a game and which of its positions to analyse."""

    name: str
    """Its id."""
    shape: tuple[int, int]
    stones: tuple[list[int], list[int]]
    """Black's and White's points before the first move."""
    moves: list[tuple[int, int]]
    first_player: int
    komi: float
    rules: Rules
    turns: list[Turn] = field(default_factory=list)
    visits: int | None = None
    playouts: int | None = None
    seconds: float | None = None
    report_seconds: float | None = None
    pv_length: int = 15
    includes_policy: bool = False
    includes_ownership: bool = False
    includes_moves_ownership: bool = False
    includes_line_visits: bool = False
    report_as: str = "BLACK"
    restriction: Restriction | None = None
    """From allowMoves and avoidMoves."""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    """(field, message)"""
    is_checked: bool = False
    """All moves are known to be legal."""

    def set_up(self, game: GoGame, number: int) -> None:
        """Set `game` to the position before move `number`; the search tree is kept if it follows
        from the last position.

        Raises:
          QueryError: a move is illegal.
        """
        wanted = self.moves[:number]
        there = (game.shape, game.komi, game.rules, game.first_to_play, game.first_stones)
        same = there == (self.shape, self.komi, self.rules, self.first_player, self.stones)
        if not (same and game.moves == wanted[: len(game.moves)]):
            game.clear(self.shape)
            game.set_rules(self.rules)
            game.set_komi(self.komi)
            game.set_up(*self.stones, self.first_player)
        for index in range(len(game.moves), number):
            colour, action = wanted[index]
            try:
                game.play(colour, action)
            except ValueError as error:
                name = f"{'BW'[colour]} {format_vertex(action, self.shape)}"
                raise QueryError("moves", f"Illegal move {index}: {name}") from error

    def colour_to_move(self, number: int) -> int:
        """Return who is to move before move `number`: the other side than that of the last move,
        whoever plays the next one."""
        return 1 - self.moves[number - 1][0] if number else self.first_player

    def restriction_of(self, position: Position) -> Restriction | None:
        """Return the restriction of a search of `position`; None without one, or if it would leave
        no first move."""
        restriction = self.restriction
        leaves_any = restriction is not None and restriction.first_moves(position).any()
        return restriction if leaves_any else None


@dataclass(eq=False)
class Turn:
    """One position of a query."""

    query: Query
    number: int
    priority: int
    is_terminated: bool = False


def parse_query(fields: dict[str, Any], game: GoGame, defaults: Mapping[str, Any]) -> Query:
    """Return the query in `fields`, which has an id; `game` says which boards there are.

    Raises:
      QueryError: a field is missing or wrong.
    """
    shape = (integer_of(fields, "boardYSize", 2, 25), integer_of(fields, "boardXSize", 2, 25))
    try:
        game.check_shape(shape)
    except ValueError as error:
        raise QueryError("boardXSize", str(error)) from error
    stones = stones_of(fields, shape)
    moves = [move_of(entry, "moves", shape) for entry in list_of(fields, "moves", needed=True)]
    warnings: list[tuple[str, str]] = []
    rules = _rules(fields, warnings)
    first = (
        colour_of(fields["initialPlayer"], "initialPlayer")
        if "initialPlayer" in fields
        else moves[0][0]
        if moves
        else int(len(stones[0]) > 1 and not stones[1])
    )
    query = Query(
        fields["id"], shape, stones, moves, first, _komi(fields), rules, warnings=warnings
    )
    _read_search(query, fields, defaults)
    _read_turns(query, fields)
    for name in fields:
        if name in _UNSUPPORTED and fields[name] not in (False, None):
            warnings.append((name, "Not supported by this engine; ignored"))
        elif name not in _KNOWN and name not in _UNSUPPORTED:
            warnings.append((name, "Unexpected or unused field"))
    return query


def _read_search(query: Query, fields: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    query.visits = defaults["maxVisits"]
    query.report_as = defaults["reportAnalysisWinratesAs"]
    overrides = fields.get("overrideSettings", {})
    if not isinstance(overrides, dict):
        raise QueryError("overrideSettings", "Must be a json object")
    for name, value in overrides.items():
        _override(query, name, value)
    if "maxVisits" in fields:
        query.visits = integer_of(fields, "maxVisits", 1, 10**9)
    if "analysisPVLen" in fields:
        query.pv_length = integer_of(fields, "analysisPVLen", 1, 1000)
    if "reportDuringSearchEvery" in fields:
        query.report_seconds = number_of(
            fields["reportDuringSearchEvery"], "reportDuringSearchEvery", 0.001, 1e6
        )
    for name in _FLAGS.keys() & fields:
        setattr(query, _FLAGS[name], boolean_of(fields, name))
    for kind in ("allow", "avoid"):
        _read_restrictions(query, fields, kind)


def _override(query: Query, name: str, value: Any) -> None:
    def number(least: float, most: float) -> float:
        given = value
        if isinstance(value, str):  # KataGo reads every value as text
            with contextlib.suppress(ValueError):
                given = float(value)
        try:
            return number_of(given, name, least, most)
        except QueryError as error:
            raise QueryError("overrideSettings", f"{name}: {error}") from error

    if name == "maxVisits":
        query.visits = int(number(1, 1e9))
    elif name == "maxPlayouts":
        query.playouts = int(number(1, 1e9))
    elif name == "maxTime":
        query.seconds = number(0, 1e9)
    elif name == "analysisPVLen":
        query.pv_length = int(number(1, 1000))
    elif name == "reportAnalysisWinratesAs":
        if str(value).upper() not in PERSPECTIVES:
            raise QueryError(
                "overrideSettings", f"reportAnalysisWinratesAs is one of {', '.join(PERSPECTIVES)}"
            )
        query.report_as = str(value).upper()
    else:
        query.warnings.append(("overrideSettings", f"Unknown or unused setting: {name[:80]}"))


def _read_restrictions(query: Query, fields: dict[str, Any], kind: str) -> None:
    name = f"{kind}Moves"
    entries = list_of(fields, name)
    if kind == "allow" and len(entries) > 1:
        raise QueryError(name, "Currently the allowMoves array must be of length one")
    for entry in entries:
        if not isinstance(entry, dict) or not {"player", "moves", "untilDepth"} <= set(entry):
            raise QueryError(
                name, "Must be a list of dicts with the fields player, moves and untilDepth"
            )
        if not isinstance(entry["moves"], list):
            raise QueryError(name, "moves must be an array of locations")
        actions = {location_of(word, name, query.shape) for word in entry["moves"]}
        player = colour_of(entry["player"], name)
        depth = int(number_of(entry["untilDepth"], name, 1, 1e9))
        known = query.restriction or Restriction.none(query.shape[0] * query.shape[1] + 1)
        restrict = known.allowing if kind == "allow" else known.avoiding
        query.restriction = restrict(player, actions, depth)
    if kind == "avoid" and entries and "allowMoves" in fields:
        raise QueryError(name, "Cannot specify both allowMoves and avoidMoves")


def _read_turns(query: Query, fields: dict[str, Any]) -> None:
    numbers = list_of(fields, "analyzeTurns") if "analyzeTurns" in fields else [len(query.moves)]
    for number in numbers:
        if (
            not isinstance(number, int)
            or isinstance(number, bool)
            or not 0 <= number <= len(query.moves)
        ):
            raise QueryError("analyzeTurns", f"Invalid turn number: {json.dumps(number)[:40]}")
    if "priorities" in fields and "priority" in fields:
        raise QueryError("priorities", "Cannot specify both priority and priorities")
    if "priorities" in fields:
        priorities = [_priority(value, "priorities") for value in list_of(fields, "priorities")]
        if "analyzeTurns" not in fields or len(priorities) != len(numbers):
            raise QueryError("priorities", "Must be of the same length as analyzeTurns")
    else:
        priorities = [_priority(fields.get("priority", 0), "priority")] * len(numbers)
    ordered = dict(zip(numbers, priorities, strict=True))
    query.turns = [Turn(query, number, ordered[number]) for number in sorted(ordered)]


def _priority(value: Any, name: str) -> int:
    number_of(value, name, -LARGEST_PRIORITY, LARGEST_PRIORITY)
    return int(value)


def _rules(fields: dict[str, Any], warnings: list[tuple[str, str]]) -> Rules:
    given = fields.get("rules")
    if not isinstance(given, str | dict):
        raise QueryError(
            "rules", "Must specify rules, either as a string shorthand or a json object"
        )
    bonus = {name: fields[name] for name in ("whiteHandicapBonus",) if name in fields}
    try:
        wanted = read_rules(given, Rules(suicide=True))
    except ValueError as error:
        raise QueryError("rules", f"Could not parse rules: {error}") from error
    rules = wanted.rules
    if wanted.missing:
        missing = ", ".join(wanted.missing)
        warnings.append(
            ("rules", f"Not supported: {missing}; {format_rules(rules)} is used instead")
        )
    try:
        return parse_rules(bonus, rules)
    except ValueError as error:
        raise QueryError("whiteHandicapBonus", "Must be 0, N or N-1") from error


def _komi(fields: dict[str, Any]) -> float:
    komi = number_of(fields.get("komi", 7.5), "komi", -LARGEST_KOMI, LARGEST_KOMI)
    if (2 * komi) % 1:
        raise QueryError("komi", "Must be an integer or half-integer from -150 to 150")
    return komi
