"""The fields of a visitor's request, in addition to those of the analysis protocol (`kata.fields`).
Every function raises QueryError where a field is wrong."""

from typing import Any

from azero.engines.kata.fields import QueryError, boolean_of, integer_of, number_of


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
