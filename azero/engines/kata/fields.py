"""The fields of a query of KataGo's analysis protocol, and of a request to the web server, read and
checked one by one. Every function raises QueryError where a field is missing or wrong."""

import json
from typing import Any

from azero.games.go import setup
from azero.games.go.text import parse_vertex


class QueryError(Exception):
    """A query cannot be carried out because of one of its fields."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def stones_of(fields: dict[str, Any], shape: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Return Black's and White's points of "initialStones", in ascending order."""
    stones: tuple[list[int], list[int]] = ([], [])
    for entry in list_of(fields, "initialStones"):
        colour, point = move_of(entry, "initialStones", shape)
        if point == shape[0] * shape[1]:
            raise QueryError("initialStones", "Stones cannot be placed on pass")
        stones[colour].append(point)
    try:
        setup.board_of(*stones, shape)
    except ValueError as error:
        raise QueryError("initialStones", str(error)) from error
    return sorted(stones[0]), sorted(stones[1])


def list_of(fields: dict[str, Any], name: str, needed: bool = False) -> list[Any]:
    """Return the array in field `name`; an empty one where it is missing and not `needed`."""
    value = fields.get(name, None if needed else [])
    if not isinstance(value, list):
        raise QueryError(
            name, "Must be an array" if name in fields else "Must be specified, as an array"
        )
    return value


def move_of(entry: Any, name: str, shape: tuple[int, int]) -> tuple[int, int]:
    """Return (colour, action) of a pair like ["b", "D4"]."""
    if not isinstance(entry, list) or len(entry) != 2:
        raise QueryError(
            name, 'Must be an array of pairs of the form: ["b" or "w", GTP board vertex]'
        )
    return colour_of(entry[0], name), location_of(entry[1], name, shape)


def colour_of(value: Any, name: str) -> int:
    """Return 0 for Black, 1 for White."""
    colours = {"b": 0, "black": 0, "w": 1, "white": 1}
    if not isinstance(value, str) or value.lower() not in colours:
        raise QueryError(name, f"Could not parse player: {json.dumps(value)[:40]}")
    return colours[value.lower()]


def location_of(value: Any, name: str, shape: tuple[int, int]) -> int:
    """Return the action of a vertex, or of coordinates "(column,row)" from the top left."""
    if isinstance(value, str) and value.startswith("(") and value.endswith(")"):
        parts = value[1:-1].split(",")
        if len(parts) == 2 and all(
            part.strip().isascii() and part.strip().isdigit() for part in parts
        ):
            column, row = (int(part[:6]) for part in parts)
            if column < shape[1] and row < shape[0]:
                return row * shape[1] + column
    elif isinstance(value, str) and len(value) < 20:
        try:
            return parse_vertex(value, shape)
        except ValueError:
            pass
    raise QueryError(name, f"Could not parse board location: {json.dumps(value)[:40]}")


def integer_of(fields: dict[str, Any], name: str, least: int, most: int) -> int:
    """Return the integer in field `name`, from `least` to `most`."""
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise QueryError(name, f"Must be an integer from {least} to {most}")
    return value


def number_of(value: Any, name: str, least: float, most: float) -> float:
    """Return a finite number from `least` to `most`; `name` is its field."""
    # The comparisons refuse NaN and infinity as well, and an integer that is too long for a
    # float.
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise QueryError(name, f"Must be a number from {least:g} to {most:g}")
    return float(value)


def boolean_of(fields: dict[str, Any], name: str) -> bool:
    """Return the boolean in field `name`."""
    value = fields[name]
    if not isinstance(value, bool):
        raise QueryError(name, "Must be a boolean")
    return value


def text_of(fields: dict[str, Any], name: str, most: int) -> str:
    """Return the text in field `name`, of at most `most` characters."""
    value = fields.get(name)
    if not isinstance(value, str) or len(value) > most:
        raise QueryError(name, f"Must be a text of at most {most} characters")
    return value


def optional_integer(fields: dict[str, Any], name: str, least: int, most: int) -> int | None:
    """Return the integer in field `name`; None if it is missing."""
    if fields.get(name) is None:
        return None
    return integer_of(fields, name, least, most)


def optional_number(fields: dict[str, Any], name: str, least: float, most: float) -> float | None:
    """Return the number in field `name`; None if it is missing."""
    value = fields.get(name)
    return None if value is None else number_of(value, name, least, most)


def flag_of(fields: dict[str, Any], name: str) -> bool:
    """Return the boolean in field `name`; False if it is missing."""
    return name in fields and boolean_of(fields, name)
