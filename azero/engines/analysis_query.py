"""Queries of KataGo's analysis protocol: what they ask for, checked, and how a game is set up for them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from azero.engines.go_game import GoGame
from azero.engines.kata_rules import TERRITORY, Rules, parse_rules
from azero.games.go import setup
from azero.games.go.text import format_vertex, parse_vertex
from azero.play.player import Position

PERSPECTIVES = ("BLACK", "WHITE", "SIDETOMOVE")
_UNUSED = ("includeOwnership", "includeOwnershipStdev", "includeMovesOwnership", "includeMovesOwnershipStdev")
"""What needs an ownership head, which the networks of the AlphaGo papers do not have."""
_NOT_HERE = ("rootPolicyTemperature", "rootFpuReductionMax", "includePVVisits", "includeNoResultValue")
"""Fields that KataGo knows and this engine has no use for."""
_KNOWN_GAME = ("id", "moves", "initialStones", "initialPlayer", "rules", "komi", "whiteHandicapBonus", "boardXSize", "boardYSize", "analyzeTurns")
_KNOWN_SEARCH = ("maxVisits", "analysisPVLen", "includePolicy", "reportDuringSearchEvery", "allowMoves", "avoidMoves", "overrideSettings")
_KNOWN = frozenset((*_KNOWN_GAME, *_KNOWN_SEARCH, "priority", "priorities"))
LARGEST_KOMI = 150.0
"""Points, as in KataGo."""


class QueryError(Exception):
    """A query cannot be carried out because of one of its fields."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


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
    report_as: str = "BLACK"
    restrictions: list[tuple[str, int, set[int]]] = field(default_factory=list)
    """("allow" or "avoid", colour, actions)"""
    warnings: list[tuple[str, str]] = field(default_factory=list)
    """(field, message)"""

    def set_up(self, game: GoGame, number: int) -> None:
        """Set `game` to the position before move `number`; where it is only some moves further than it was, the search tree is kept.

        Raises:
          QueryError: a move is illegal.
        """
        black, white = self.stones
        handicap = len(black) if self.first_player == 1 and not white else 0
        wanted = self.moves[:number]
        same = (game.shape, game.komi, game.rules) == (self.shape, self.komi, self.rules) and game.first_to_play == self.first_player
        if not (same and game.is_from(black, white) and game.moves == wanted[: len(game.moves)]):
            game.clear(self.shape)
            game.set_rules(self.rules)
            game.set_komi(self.komi)
            if black or white or self.first_player:
                game.set_up(black, white, self.first_player, handicap)
        for index in range(len(game.moves), number):
            try:
                game.play(*wanted[index])
            except ValueError as error:
                raise QueryError("moves", f"Illegal move {index}: {_name_of(wanted[index], self.shape)}") from error

    def colour_to_move(self, number: int) -> int:
        """Return who is to move before move `number`: the one who does, or at the end the other than the last one."""
        if number < len(self.moves):
            return self.moves[number][0]
        return 1 - self.moves[-1][0] if self.moves else self.first_player

    def allowed(self, position: Position, colour: int) -> list[int] | None:
        """Return the legal moves that the restrictions leave for `colour`, None for all; all too if they leave none."""
        left = set(np.flatnonzero(position.legal).tolist())
        everything = set(left)
        for kind, player, actions in self.restrictions:
            if player == colour:
                left = left & actions if kind == "allow" else left - actions
        return None if left == everything or not left else sorted(left)


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
    shape = (_integer(fields, "boardYSize", 2, 25), _integer(fields, "boardXSize", 2, 25))
    try:
        game.check_shape(shape)
    except ValueError as error:
        raise QueryError("boardXSize", str(error)) from error
    stones = _stones(fields, shape)
    moves = [_move(entry, "moves", shape) for entry in _list(fields, "moves", needed=True)]
    warnings: list[tuple[str, str]] = []
    rules = _rules(fields, warnings)
    first = _colour(fields["initialPlayer"], "initialPlayer") if "initialPlayer" in fields else moves[0][0] if moves else int(bool(stones[0]) and not stones[1])
    query = Query(fields["id"], shape, stones, moves, first, _komi(fields), rules, warnings=warnings)
    _read_search(query, fields, defaults)
    _read_turns(query, fields)
    for name in fields:
        if name in _UNUSED and fields[name] is True:
            warnings.append((name, "The network has no ownership head; results come without ownership"))
        elif name in _NOT_HERE and fields[name] not in (False, None):
            warnings.append((name, "Not supported by this engine; ignored"))
        elif name not in _KNOWN and name not in _UNUSED and name not in _NOT_HERE:
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
        query.visits = _integer(fields, "maxVisits", 1, 10**9)
    if "analysisPVLen" in fields:
        query.pv_length = _integer(fields, "analysisPVLen", 1, 1000)
    if "reportDuringSearchEvery" in fields:
        query.report_seconds = _number(fields["reportDuringSearchEvery"], "reportDuringSearchEvery", 0.001, 1e6)
    if "includePolicy" in fields:
        query.includes_policy = _boolean(fields, "includePolicy")
    for kind in ("allow", "avoid"):
        _read_restrictions(query, fields, kind)


def _override(query: Query, name: str, value: Any) -> None:
    if name == "maxVisits":
        query.visits = int(_number(value, "overrideSettings", 1, 1e9))
    elif name == "maxPlayouts":
        query.playouts = int(_number(value, "overrideSettings", 1, 1e9))
    elif name == "maxTime":
        query.seconds = _number(value, "overrideSettings", 0, 1e9)
    elif name == "analysisPVLen":
        query.pv_length = int(_number(value, "overrideSettings", 1, 1000))
    elif name == "reportAnalysisWinratesAs":
        if str(value).upper() not in PERSPECTIVES:
            raise QueryError("overrideSettings", f"reportAnalysisWinratesAs is one of {', '.join(PERSPECTIVES)}")
        query.report_as = str(value).upper()
    else:
        query.warnings.append(("overrideSettings", f"Unknown or unused setting: {name[:80]}"))


def _read_restrictions(query: Query, fields: dict[str, Any], kind: str) -> None:
    name = f"{kind}Moves"
    entries = _list(fields, name)
    if kind == "allow" and len(entries) > 1:
        raise QueryError(name, "Currently the allowMoves array must be of length one")
    for entry in entries:
        if not isinstance(entry, dict) or not {"player", "moves", "untilDepth"} <= set(entry):
            raise QueryError(name, "Must be a list of dicts with the fields player, moves and untilDepth")
        if not isinstance(entry["moves"], list):
            raise QueryError(name, "moves must be an array of locations")
        actions = {_location(word, name, query.shape) for word in entry["moves"]}
        query.restrictions.append((kind, _colour(entry["player"], name), actions))
        if _number(entry["untilDepth"], name, 1, 1e9) > 1:
            query.warnings.append((name, "Only the first move of the search is restricted, whatever untilDepth says"))
    if kind == "avoid" and entries and "allowMoves" in fields:
        raise QueryError(name, "Cannot specify both allowMoves and avoidMoves")


def _read_turns(query: Query, fields: dict[str, Any]) -> None:
    numbers = _list(fields, "analyzeTurns") if "analyzeTurns" in fields else [len(query.moves)]
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= len(query.moves):
            raise QueryError("analyzeTurns", f"Invalid turn number: {json.dumps(number)[:40]}")
    if "priorities" in fields and "priority" in fields:
        raise QueryError("priorities", "Cannot specify both priority and priorities")
    if "priorities" in fields:
        priorities = [int(_number(value, "priorities", -(2**31), 2**31)) for value in _list(fields, "priorities")]
        if "analyzeTurns" not in fields or len(priorities) != len(numbers):
            raise QueryError("priorities", "Must be of the same length as analyzeTurns")
    else:
        priorities = [int(_number(fields.get("priority", 0), "priority", -(2**31), 2**31))] * len(numbers)
    ordered = dict(zip(numbers, priorities, strict=True))
    query.turns = [Turn(query, number, ordered[number]) for number in sorted(ordered)]


def _rules(fields: dict[str, Any], warnings: list[tuple[str, str]]) -> Rules:
    given = fields.get("rules")
    if not isinstance(given, str | dict):
        raise QueryError("rules", "Must specify rules, either as a string shorthand or a json object")
    bonus = {} if "whiteHandicapBonus" not in fields else {"whiteHandicapBonus": fields["whiteHandicapBonus"]}
    territory = isinstance(given, str) and given.strip().lower() in TERRITORY
    territory |= isinstance(given, dict) and (given.get("scoring", given.get("scoringRule")) == "TERRITORY" or given.get("tax", "NONE") != "NONE")
    if territory:
        warnings.append(("rules", "This engine counts area only; area scoring with simple ko is used instead"))
        given = {"ko": "SIMPLE", "suicide": False}
    try:
        rules = parse_rules(given, Rules(suicide=True))
    except ValueError as error:
        raise QueryError("rules", f"Could not parse rules: {error}") from error
    try:
        return parse_rules(bonus, rules)
    except ValueError as error:
        raise QueryError("whiteHandicapBonus", "Must be 0, N or N-1") from error


def _komi(fields: dict[str, Any]) -> float:
    komi = _number(fields.get("komi", 7.5), "komi", -LARGEST_KOMI, LARGEST_KOMI)
    if (2 * komi) % 1:
        raise QueryError("komi", "Must be an integer or half-integer from -150 to 150")
    return komi


def _stones(fields: dict[str, Any], shape: tuple[int, int]) -> tuple[list[int], list[int]]:
    stones: tuple[list[int], list[int]] = ([], [])
    for entry in _list(fields, "initialStones"):
        colour, point = _move(entry, "initialStones", shape)
        if point == shape[0] * shape[1]:
            raise QueryError("initialStones", "Stones cannot be placed on pass")
        stones[colour].append(point)
    try:
        setup.board_of(*stones, shape)
    except ValueError as error:
        raise QueryError("initialStones", str(error)) from error
    return sorted(stones[0]), sorted(stones[1])


def _list(fields: dict[str, Any], name: str, needed: bool = False) -> list[Any]:
    value = fields.get(name, None if needed else [])
    if not isinstance(value, list):
        raise QueryError(name, "Must be an array" if name in fields else "Must be specified, as an array")
    return value


def _move(entry: Any, name: str, shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(entry, list) or len(entry) != 2:
        raise QueryError(name, 'Must be an array of pairs of the form: ["b" or "w", GTP board vertex]')
    return _colour(entry[0], name), _location(entry[1], name, shape)


def _colour(value: Any, name: str) -> int:
    colours = {"b": 0, "black": 0, "w": 1, "white": 1}
    if not isinstance(value, str) or value.lower() not in colours:
        raise QueryError(name, f"Could not parse player: {json.dumps(value)[:40]}")
    return colours[value.lower()]


def _location(value: Any, name: str, shape: tuple[int, int]) -> int:
    """Return the action of a vertex, or of coordinates "(column,row)" from the top left."""
    if isinstance(value, str) and value.startswith("(") and value.endswith(")"):
        parts = value[1:-1].split(",")
        if len(parts) == 2 and all(part.strip().isascii() and part.strip().isdigit() for part in parts):
            column, row = (int(part[:6]) for part in parts)
            if column < shape[1] and row < shape[0]:
                return row * shape[1] + column
    elif isinstance(value, str) and len(value) < 20:
        try:
            return parse_vertex(value, shape)
        except ValueError:
            pass
    raise QueryError(name, f"Could not parse board location: {json.dumps(value)[:40]}")


def _name_of(move: tuple[int, int], shape: tuple[int, int]) -> str:
    return f"{'BW'[move[0]]} {format_vertex(move[1], shape)}"


def _integer(fields: dict[str, Any], name: str, least: int, most: int) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise QueryError(name, f"Must be an integer from {least} to {most}")
    return value


def _number(value: Any, name: str, least: float, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value) or not least <= value <= most:
        raise QueryError(name, f"Must be a number from {least:g} to {most:g}")
    return float(value)


def _boolean(fields: dict[str, Any], name: str) -> bool:
    value = fields[name]
    if not isinstance(value, bool):
        raise QueryError(name, "Must be a boolean")
    return value
