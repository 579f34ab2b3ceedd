"""Frozen, typed, validated settings; TOML overlays; dump, load and hash.

The string below a field gives its unit and source; `--help` prints these strings. Each package has
its own classes in a module `settings`; `azero.settings` combines them.
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
    """Check that no word of a command line is empty, as an unset variable of the shell leaves it:
    as a path it would be the current directory.

    Raises:
      ValueError: one is; the message names its flag or number.
    """
    for number, (before, word) in enumerate(zip(["", *words], words, strict=False), start=1):
        if not word or (word.startswith("--") and word.endswith("=")):
            name = word[:-1] or (before if before.startswith("--") else f"argument {number}")
            raise ValueError(f"{name} is empty (an unset variable?)")


LARGEST_INT = 2**31 - 1
LARGEST_FLOAT = 3.4e38
SMALLEST_FLOAT = 1.2e-38
"""Limits of int32 and float32, in which the devices compute; smaller fractions are zero there."""


def check_range(
    settings: Any, table: str, names: str, low: float, high: float = math.inf, above: bool = False
) -> None:
    """Check that the attributes `names` of `settings`, separated by blanks, lie in [low, high], or
    with `above` in (low, high].

    None passes; of a tuple every number is checked. NaN never passes. Without `high`, an integer
    must fit int32 and a fraction float32. The message calls an attribute a setting of `table`, a
    flag if that is "--", or gives its bare name if it is "".

    Raises:
      ValueError: a number is outside; the message has its name, its value and what is allowed.
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
    """Yield the numbers of a setting, also those in tuples; none for None."""
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif value is not None:
        yield value


class Kind:
    """Base of settings whose `name` chooses what is made: a game, a network, a search.

    The class of a kind has only the settings of that kind. `KINDS` of the family maps names to
    classes, `MAKER` of a class is what `build` calls; both are paths "module:name", so that
    settings can be read without importing what they make.
    """

    KINDS: ClassVar[Mapping[str, str]]
    MAKER: ClassVar[str]
    LACKS: ClassVar[tuple[str, ...]] = ()
    """Settings of the base class without a meaning here; `as_kind` keeps their defaults."""
    name: str

    def build(self, *arguments: Any, **options: Any) -> Any:
        """Make what these settings describe; the arguments follow the settings in the call of
        `MAKER`."""
        return find(self.MAKER)(self, *arguments, **options)

    @classmethod
    def kind(cls, name: Any) -> type[Self]:
        """Return the class of settings of the kind `name`; dashes count as underscores.

        Raises:
          ValueError: no kind has that name.
        """
        known = name.replace("-", "_") if isinstance(name, str) else ""
        if known not in cls.KINDS:
            raise ValueError(f"one of {', '.join(cls.KINDS)}, not {name!r}")
        return typing.cast(type[Self], find(cls.KINDS[known]))

    @classmethod
    def default(cls, name: str) -> Self:
        """Return the default settings of the kind `name`.

        Raises:
          ValueError: no kind has that name.
        """
        return typing.cast(Any, cls.kind(name))()

    def as_kind(self, name: Any, given: Collection[str] = ()) -> Self:
        """Return settings of the kind `name`, with the values of these for settings that both have
        with the same type, and defaults for the others and for those in `given`.

        Raises:
          ValueError: no kind has that name, or it does not allow one of the values.
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
        """Return whether only other kinds have a setting."""
        names = self.having(setting)
        return bool(names) and self.name not in names

    def check_has(self, setting: str, place: str) -> None:
        """Raise ValueError if only other kinds have `setting`; `place` is how it was given, as
        "--search.max-considered"."""
        if self.is_elsewhere(setting):
            kinds = ", ".join(self.having(setting))
            raise ValueError(f"{place} is not a setting of {self.name}, only of {kinds}")


def _types_of_fields(settings: type) -> dict[str, Any]:
    """Return the types of a class's settings by name, without its class variables."""
    hints = typing.get_type_hints(settings)
    return {field.name: hints[field.name] for field in dataclasses.fields(settings)}


def find(path: str) -> Any:
    """Return the object at "module:name" or "module:Class.name"."""
    module, _, name = path.partition(":")
    return operator.attrgetter(name)(importlib.import_module(module))


def to_dict(config: Any) -> dict[str, Any]:
    """Return the settings as plain dictionaries, lists and scalars."""
    return typing.cast(dict[str, Any], json.loads(json.dumps(dataclasses.asdict(config))))


def load_overlay(path: Path, base: C) -> C:
    """Return `base` with the keys of the TOML file at `path` replaced, without its table [about].

    Raises:
      ValueError: there is no such file or overlay, it is not TOML, or it has an unknown key; the
        message names the experiments that the overlay is for, if [about] does.
    """
    data = _read_toml(path)
    about = data.pop("about", None)
    try:
        return overlay(data, base, str(path))
    except ValueError as error:
        names = about.get("experiments") if isinstance(about, dict) else None
        if not isinstance(names, list):
            raise
        raise ValueError(f"{error}; the overlay is for {', '.join(map(str, names))}") from error


def overlay(data: dict[str, Any], base: C, source: str, is_stored: bool = False) -> C:
    """Return `base` with the keys of `data`, tables as in an overlay file, replaced. If it
    `is_stored`, as `to_dict` writes it, settings that were removed and those of another kind of
    game, network or search, which runs of earlier versions have, are ignored.

    Raises:
      ValueError: a key is unknown or a value is wrong; the message has `source`, the key and the
        closest known key.
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
"""Directory of azero's overlays: in an installed package, or in a checkout."""
LARGEST_OVERLAY = 64 << 10
"""Bytes; those of configs/ have up to 2,000, and tomllib takes quadratic time over dotted keys."""


def find_overlay(path: Path) -> Path:
    """Return the file of an overlay: `path` itself, or one of azero's overlays by its name,
    "cpu" or "configs/cpu.toml", from any directory."""
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
    # not TOML, not UTF-8, or tables nested too deeply
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
                f"{_RETIRED[f'{prefix}{name}']}; remove the line"
            )
        if isinstance(base, Kind):
            base.check_has(name, f"{source}: {prefix}{key}")
        if name not in hints:
            nearest = _nearest_key(base, name)
            raise ValueError(
                f"{source}: unknown key {prefix}{key}; the nearest one is {prefix}{nearest}"
            )
        if name in changes:
            raise ValueError(f"{source}: {prefix}{name} is given twice, with _ and with -")
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


def _nearest_key(base: Any, name: str) -> str:
    """Return the key of the settings `base` that is nearest to `name`, with its table if that is
    missing: "search.num_simulations" for "num_simulations"."""
    keys = list(_types_of_fields(type(base)))
    for key in keys:
        table = getattr(base, key)
        if dataclasses.is_dataclass(table) and name in _types_of_fields(type(table)):
            return f"{key}.{name}"
    return difflib.get_close_matches(name.lower(), keys, n=1, cutoff=0.0)[0]


def _kind_of(base: Kind, data: dict[str, Any], prefix: str, source: str) -> Kind:
    try:
        given = [key.replace("-", "_") for key in data]
        return base.as_kind(data.get("name", base.name), given)
    except ValueError as error:
        raise ValueError(f"{source}: {prefix}name is {error}") from error


def convert(value: Any, hint: Any, key: str, source: str) -> Any:
    """Return `value` as the type `hint`: lists become tuples, integers floats where needed, numbers
    of numpy Python's, and "None" becomes None where that is allowed, as on the command line,
    because TOML has no null.

    Raises:
      ValueError: it has another type; the message has `source` and the key.
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
    """Return an integer of Python, NumPy or JAX as int; None for anything else, bool included."""
    with contextlib.suppress(TypeError):
        return None if isinstance(value, bool) else operator.index(value)
    return None


def _format_type(hint: Any) -> str:
    """Return a type as an overlay writes it: int, [[int, float], ...], int or [int, int]."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        choices = [choice for choice in typing.get_args(hint) if choice is not types.NoneType]
        return " or ".join(map(_format_type, choices))
    if typing.get_origin(hint) is not tuple:
        return str(getattr(hint, "__name__", hint))
    items = ["..." if item is Ellipsis else _format_type(item) for item in typing.get_args(hint)]
    return f"[{', '.join(items)}]"
