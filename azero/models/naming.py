"""Which of our networks a player's name means. Nothing here needs JAX, so that engines answer
before it is loaded."""

import contextlib
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

from azero.data.run_files import EXPORTED, read_config
from azero.experiment import NAMES, load
from azero.models.registry import find_network, list_names

NETWORKS = ("checkpoint", "model", "random-net", "leela")
"""Prefixes of the names of networks that play by every search, also many games at once."""
KINDS = (*NETWORKS, "onnx", "random")
"""Prefixes of the names of our players with one network, or none."""
_SUFFIXES = {".onnx": "onnx", ".gz": "leela", ".txt": "leela"}
"""Kinds of networks by the suffixes of their files."""

PROTOCOL_GAMES = {"uci": "chess", "usi": "shogi"}
"""Games by the protocol of their programs."""


class NetworkName(NamedTuple):
    """The parts of a network's name."""

    kind: str
    """One of KINDS."""
    name: str
    """A directory, a network that ships, a file, or an experiment."""
    query: str
    """Options, the part after the question mark."""


def parse_network_name(text: str) -> NetworkName | None:
    """Return what a name means: "KIND:NAME?OPTIONS", or without its kind a network that ships, the
    directory of a run or of an exported network, its file, or a file of Leela Zero or ONNX. None if
    it is none of these.

    A directory with the name of a network that ships is given as "./NAME". Names of networks, as of
    games and experiments, may be written with _ or with - ("animal_shogi").
    """
    kind, _, rest = text.partition(":")
    name, _, query = rest.partition("?")
    if kind in KINDS:
        return NetworkName(kind, _canonical_name(kind, name), query) if name else None
    name, _, query = text.partition("?")
    path, shipped = Path(name), name.replace("_", "-")
    if shipped in list_names() and (name == shipped or not path.exists()):
        return NetworkName("model", shipped, query)
    if path.is_file() and path.name == EXPORTED:
        return NetworkName("checkpoint", str(path.parent), query)
    if path.is_file() and path.suffix in _SUFFIXES:
        return NetworkName(_SUFFIXES[path.suffix], name, query)
    return NetworkName("checkpoint", name, query) if name and path.is_dir() else None


def _canonical_name(kind: str, name: str) -> str:
    """Return the name of a network that ships with -, and that of an experiment with _."""
    known = name.replace("-", "_")
    is_experiment = known in NAMES and (known == name or not Path(name).exists())
    if kind == "model":
        return name.replace("_", "-")
    return known if kind in ("random-net", "random") and is_experiment else name


def read_options(query: str, text: str) -> list[tuple[str, str]]:
    """Return the options of the player's name `text`, which follow its question mark, in order. A +
    is a +, as in the path "runs/a+b", and not a blank, as it is in forms of the web.

    Raises:
      ValueError: one is given twice.
    """
    options = parse_qsl(query.replace("+", "%2B"), keep_blank_values=True)
    names = [name.replace("-", "_") for name, _ in options]
    for number, (name, _) in enumerate(options):
        if names[number] in names[:number]:
            raise ValueError(f"{name} is given twice in {text!r}")
    return options


def normalise_name(text: str) -> str:
    """Return the canonical form of a network's name, the same for all its spellings: a network that
    ships without its kind, any other with it, and the options in alphabetical order. Other names,
    such as those of programs and of directories that are gone, are returned as they are."""
    named = parse_network_name(text)
    if named is None:
        return text
    place = named.name if named.kind == "model" else f"{named.kind}:{named.name}"
    parts = [word.partition("=") for word in named.query.split("&") if word]
    options = sorted(f"{name.replace('_', '-')}{sign}{value}" for name, sign, value in parts)
    return "?".join([place, "&".join(options)] if options else [place])


def describe_unknown(name: str) -> str:
    """Return why `name`, without a kind, is not a network (`parse_network_name`)."""
    if Path(name).is_file():
        return f"{name!r} is a file, but not that of a network"
    what = "file" if Path(name).suffix in _SUFFIXES else "directory"
    return f"there is no {what} {name!r}, and the networks that ship are {', '.join(list_names())}"


def check_directory(workdir: Path) -> None:
    """Check that there is a directory `workdir`, of a run or an exported network.

    Raises:
      ValueError: there is none; the network that ships under this name is named, if there is one.
    """
    if workdir.is_dir():
        return
    if workdir.exists():
        raise ValueError(f"{workdir} is a file, not the directory of a run or a network")
    hint = f"; the network that ships is model:{workdir}" if str(workdir) in list_names() else ""
    raise ValueError(f"there is no directory {workdir}{hint}")


def find_directory(text: str) -> Path:
    """Return the directory of a network that ships or that of a run or of an exported network,
    whether it is there or not.

    Raises:
      ValueError: no network of that name ships, the player has no directory, or options follow
        its name, which are for players.
    """
    named = parse_network_name(text)
    if named is None:
        return Path(text)
    if named.kind not in ("checkpoint", "model"):
        raise ValueError(f"{text!r} is neither a network that ships nor the directory of one")
    if named.query:
        raise ValueError(f"{text!r} has options of a player; here {named.name} alone is a network")
    return find_network(named.name) if named.kind == "model" else Path(named.name)


def read_visits(text: str) -> int | None:
    """Return the visits in a network's name, None where it has none (or something other than a
    number, which reading the whole name refuses)."""
    named = parse_network_name(text)
    value = "" if named is None else dict(parse_qsl(named.query)).get("visits", "")
    return int(value) if value.isdecimal() else None


def is_network(text: str) -> bool:
    """Return whether a player's name is that of a single network, which may be gone by now; the
    names of all other players begin with their kind."""
    return text.partition(":")[0] in NETWORKS or ":" not in text


def has_draws(text: str) -> bool:
    """Return whether the network that a player's name means has outputs for loss, draw and win, and
    learned from results.

    False also where there is no such network: loading it says what is wrong.
    """
    named = parse_network_name(text)
    with contextlib.suppress(ValueError, OSError):
        if named is not None and named.kind == "random-net":
            config = load(named.name).config
        else:
            config = read_config(find_directory(text.partition("?")[0]))
        return config.network.HAS_DRAWS and config.learner.result_share > 0
    return False
