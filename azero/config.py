"""Frozen, typed, validated settings; TOML overlays; dump, load and hash.

Every field says its unit and its source in the string below it; `--help` prints those strings. The
classes are where what they set is, in modules called `settings`; `azero.settings` puts them
together.
"""

import contextlib
import dataclasses
import difflib
import hashlib
import importlib
import json
import math
import numbers
import operator
import tomllib
import types
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

C = TypeVar("C")
"""A frozen dataclass of settings."""


def check(condition: bool, message: str) -> None:
    """Check a condition on settings.

    Raises:
      ValueError: it does not hold.
    """
    if not condition:
        raise ValueError(message)


def check_words(words: Sequence[str]) -> None:
    """Check that no word of a command line is empty, as a variable of the shell that is not set
    leaves it: as a path it would be the current directory.

    Raises:
      ValueError: one is; it is named.
    """
    for number, (before, word) in enumerate(zip(["", *words], words, strict=False), start=1):
        if not word or (word.startswith("--") and word.endswith("=")):
            name = word[:-1] or (before if before.startswith("--") else f"argument {number}")
            raise ValueError(f"{name} is empty (a variable that is not set?)")


LARGEST_INT = 2**31 - 1
LARGEST_FLOAT = 3.4e38
SMALLEST_FLOAT = 1.2e-38
"""Numbers of int32 and float32, in which the devices compute; smaller fractions are zero there."""


def check_range(
    settings: Any, table: str, names: str, low: float, high: float = math.inf, above: bool = False
) -> None:
    """Check that the settings `names` of a table, or of none (""), or the flags ("--") of these
    names, those that are not None and each of several numbers, lie in [low, high], with `above` in
    (low, high]; NaN lies nowhere, nor does what the devices have no number for: without `high` an
    integer has 31 bits, and a fraction is one of float32.

    Raises:
      ValueError: one does not; it is named with its value and what is allowed.
    """
    given = [
        (name, number) for name in names.split() for number in _numbers(getattr(settings, name))
    ]
    for name, value in given:
        largest = LARGEST_INT if isinstance(value, int) else LARGEST_FLOAT
        is_beyond = high == math.inf and low <= value and value > largest
        is_tiny = above and low < value < low + SMALLEST_FLOAT
        if low <= value <= high and not (above and value == low) and not (is_beyond or is_tiny):
            continue
        if high == math.inf:
            allowed = f"above {low}" if above else f"at least {low}"
            allowed += f" and at most {largest:.10g}" if is_beyond else ""
        else:
            allowed = f"above {low} and at most {high}" if above else f"from {low} to {high}"
        allowed += f" by at least {SMALLEST_FLOAT:g}" if is_tiny else ""
        place = table if table in ("", "--") else f"{table}."
        raise ValueError(f"{place}{name.replace('_', '-')} is {allowed}, not {value}")


def _numbers(value: Any) -> Iterator[Any]:
    """Yield the numbers of a setting: none of None, and all of those in tuples."""
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value


class Kind:
    """Base of settings that choose by `name` what is made: a game, a network, a search.

    A kind's class has the settings of that kind alone. `KINDS` of the family says which class a
    name means, `MAKER` of the class what `build` calls, both as "module:name", so that settings are
    read without importing what they are of.
    """

    KINDS: ClassVar[Mapping[str, str]]
    MAKER: ClassVar[str]
    LACKS: ClassVar[tuple[str, ...]] = ()
    """Settings of the class that this one extends which have no meaning here: they keep their
    defaults where another kind is changed into this one."""
    name: str

    def build(self, *arguments: Any, **options: Any) -> Any:
        """Make what these settings are of; the arguments are those of `MAKER` after the
        settings."""
        return find(self.MAKER)(self, *arguments, **options)

    @classmethod
    def kind(cls, name: Any) -> type[Self]:
        """Return the class of settings of the kind `name`, in which - is as _.

        Raises:
          ValueError: there is none of that name.
        """
        known = name.replace("-", "_") if isinstance(name, str) else ""
        if known not in cls.KINDS:
            raise ValueError(f"one of {', '.join(cls.KINDS)}, not {name!r}")
        return typing.cast(type[Self], find(cls.KINDS[known]))

    @classmethod
    def default(cls, name: str) -> Self:
        """Return the default settings of the kind `name`.

        Raises:
          ValueError: there is none of that name.
        """
        return typing.cast(Any, cls.kind(name))()

    def as_kind(self, name: Any, given: Collection[str] = ()) -> Self:
        """Return settings of the kind `name`: the values here of the settings that it has too, with
        the same type, and its defaults for the others and for those that are `given` afterwards.

        Raises:
          ValueError: there is none of that name, or a value here is not allowed there.
        """
        kind = self.kind(name)
        if kind is type(self):
            return self
        mine, its = _types_of_fields(type(self)), _types_of_fields(kind)
        others = ("name", *kind.LACKS, *given)
        shared = {
            setting: getattr(self, setting)
            for setting in its
            if setting not in others and mine.get(setting) == its[setting]
        }
        try:
            return kind(**shared)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error

    def replace(self, **changes: Any) -> Self:
        """Return the same settings with `changes`.

        Raises:
          ValueError: a value is not allowed.
          TypeError: there is no such setting.
        """
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def having(self, setting: str) -> list[str]:
        """Return the names of the kinds that have a setting."""
        kinds: dict[str, Any] = {name: self.kind(name) for name in self.KINDS}
        return [
            name
            for name, kind in kinds.items()
            if setting in {field.name for field in dataclasses.fields(kind)}
        ]

    def is_elsewhere(self, setting: str) -> bool:
        """Return whether a setting is one of other kinds and not of this one."""
        names = self.having(setting)
        return bool(names) and self.name not in names


def _types_of_fields(settings: type) -> dict[str, Any]:
    """Return the types of the settings of a class, without those of its class variables."""
    hints = typing.get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def find(path: str) -> Any:
    """Return what "module:name" or "module:Class.name" means."""
    module, _, name = path.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain dictionaries, lists and scalars."""
    return typing.cast(dict[str, Any], json.loads(json.dumps(dataclasses.asdict(config))))


def load_overlay(path: Path, base: C) -> C:
    """Return `base` with the keys of the TOML file at `path` replaced; its table [about] is for
    people.

    Raises:
      ValueError: there is no such file or overlay, it is not TOML, or names a key that does not
        exist.
    """
    data = _read_toml(path)
    data.pop("about", None)
    return overlay(data, base, str(path))


def overlay(data: dict[str, Any], base: C, source: str, is_stored: bool = False) -> C:
    """Return `base` with the keys of `data`, tables as in an overlay file, replaced. Where it
    `is_stored`, as `to_dict` writes it, settings that are no more, and those of another kind of
    game, network or search, which runs of former versions have, are left out.

    Raises:
      ValueError: a key is unknown (the nearest one is named) or a value is wrong; `source` and the
        key are quoted.
    """
    data = _without_retired(data) if is_stored else data
    return typing.cast(C, _overlay(base, data, "", source, is_stored))


OVERLAYS = next(
    (
        directory
        for directory in (Path(__file__).parent / "configs", Path(__file__).parents[1] / "configs")
        if directory.is_dir()
    ),
    Path("configs"),
)
"""Directory of azero's own overlays: in an installed package, or in a checkout."""
LARGEST_OVERLAY = 64 << 10
"""Bytes; those of configs/ have up to 2,000, and tomllib takes quadratic time over dotted keys."""


def find_overlay(path: Path) -> Path:
    """Return the overlay that `path` means: a file, or one of azero's own by its name, "cpu" or
    "configs/cpu.toml", from wherever the command is given."""
    own = OVERLAYS / f"{path.name.removesuffix('.toml')}.toml"
    is_name = path in (Path(own.stem), Path("configs") / own.name)
    return own if is_name and not path.is_file() and own.is_file() else path


def _read_toml(path: Path) -> dict[str, Any]:
    path = find_overlay(path)
    try:
        if path.stat().st_size > LARGEST_OVERLAY:
            raise ValueError(
                f"it has more than {LARGEST_OVERLAY >> 10} KiB, which no settings need"
            )
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        own = ", ".join(sorted(overlay.stem for overlay in OVERLAYS.glob("*.toml")))
        raise ValueError(
            f"cannot read the overlay {path}: {error.strerror}; azero's own are {own}"
        ) from error
    # not TOML, not UTF-8, or tables in tables without an end
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not valid TOML: {' '.join(str(error).split())[:300]}"
        ) from error


def config_hash(config: Any) -> str:
    """Return 12 hexadecimal digits that differ when any setting differs."""
    return hashlib.sha256(json.dumps(to_dict(config), sort_keys=True).encode()).hexdigest()[:12]


_RETIRED = {"selfplay.policy_slots": "policy targets hold every move that the search visits"}
"""Settings that were removed, and why."""


def _without_retired(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    kept = {key: value for key, value in data.items() if f"{prefix}{key}" not in _RETIRED}
    return {
        key: _without_retired(value, f"{prefix}{key}.") if isinstance(value, dict) else value
        for key, value in kept.items()
    }


def _overlay(base: Any, data: dict[str, Any], prefix: str, source: str, is_stored: bool) -> Any:
    if isinstance(base, Kind):
        base = _kind_of(base, data, prefix, source)
        data = {key: value for key, value in data.items() if key != "name"}
        if is_stored:
            data = {
                key: value
                for key, value in data.items()
                if not base.is_elsewhere(key.replace("-", "_"))
            }
    hints = _types_of_fields(type(base))
    changes: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in hints and f"{prefix}{name}" in _RETIRED:
            raise ValueError(
                f"{source}: the setting {prefix}{key} was removed because "
                f"{_RETIRED[f'{prefix}{name}']}; take the line out"
            )
        if isinstance(base, Kind) and base.is_elsewhere(name):
            raise ValueError(
                f"{source}: {prefix}{key} is not a setting of {base.name}, only of "
                f"{', '.join(base.having(name))}"
            )
        if name not in hints:
            nearest = difflib.get_close_matches(name.lower(), hints, n=1, cutoff=0.0)[0]
            raise ValueError(
                f"{source}: unknown key {prefix}{key}; the nearest one is {prefix}{nearest}"
            )
        if name in changes:
            raise ValueError(f"{source}: {prefix}{name} is there twice, with _ and with -")
        current = getattr(base, name)
        if dataclasses.is_dataclass(current):
            if not isinstance(value, dict):
                raise ValueError(f"{source}: {prefix}{key} is a table of settings, not {value!r}")
            changes[name] = _overlay(current, value, f"{prefix}{key}.", source, is_stored)
        else:
            changes[name] = convert(value, hints[name], f"{prefix}{key}", source)
    try:
        return dataclasses.replace(base, **changes)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _kind_of(base: Kind, data: dict[str, Any], prefix: str, source: str) -> Kind:
    try:
        given = [key.replace("-", "_") for key in data]
        return base.as_kind(data.get("name", base.name), given)
    except ValueError as error:
        raise ValueError(f"{source}: {prefix}name is {error}") from error


def convert(value: Any, hint: Any, key: str, source: str) -> Any:
    """Return `value` as the type `hint`: lists become tuples, integers become floats where these
    are wanted, numbers of numpy become Python's, and "None" is None where that is allowed, as on
    the command line, because TOML has no word for it.

    Raises:
      ValueError: it is of another type; `source` and the key are quoted.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if isinstance(value, str) and value == "None" and types.NoneType in arguments:
            return None
        for choice in arguments:
            with contextlib.suppress(ValueError):
                return convert(value, choice, key, source)
        choices = [choice for choice in arguments if choice is not types.NoneType]
        if len(choices) == 1:
            return convert(value, choices[0], key, source)
    if origin is Literal:
        if value in arguments:
            return value
        raise ValueError(
            f"{source}: {key} is one of {', '.join(map(str, arguments))}, not {value!r}"
        )
    if origin is tuple and isinstance(value, list | tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(convert(item, arguments[0], key, source) for item in value)
        if len(arguments) == len(value):
            return tuple(
                convert(item, a, key, source) for item, a in zip(value, arguments, strict=True)
            )
    if hint is int and (number := as_integer(value)) is not None:
        return number
    if hint is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    if hint not in (int, float) and isinstance(hint, type) and isinstance(value, hint):
        return value
    raise ValueError(f"{source}: {key} is of type {_format_type(hint)}, not {value!r}")


def as_integer(value: Any) -> int | None:
    """Return an integer of Python, NumPy or JAX as Python's; None if it is none, or a bool."""
    with contextlib.suppress(TypeError):
        return None if isinstance(value, bool) else operator.index(value)
    return None


def _format_type(hint: Any) -> str:
    """Return a type as an overlay has it: int, [[int, float], ...], int or [int, int]."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        choices = [choice for choice in typing.get_args(hint) if choice is not types.NoneType]
        return " or ".join(map(_format_type, choices))
    if typing.get_origin(hint) is not tuple:
        return str(getattr(hint, "__name__", hint))
    items = ["..." if item is Ellipsis else _format_type(item) for item in typing.get_args(hint)]
    return f"[{', '.join(items)}]"
