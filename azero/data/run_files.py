"""The small files of a working directory, which can be read at any time.

config.json      the resolved settings
run.json         experiment, start, machine, versions, commit
metrics.jsonl    one row per iteration
events.jsonl     evaluations, gates, checkpoints, resumptions: rows with a kind
samples/N.json   games of iteration N, to be drawn
boards/NxN/      the replay of another board size
first_network/   the network that the run started from, and where it came from
network.azero    an exported network (`azero.checkpoint.exported`)
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from azero.config import config_hash, to_dict
from azero.data.files import read_header
from azero.data.rows import Row, keep_rows, read_rows, replace_text, to_plain
from azero.settings import Config, from_dict

METRICS = "metrics.jsonl"
EVENTS = "events.jsonl"
CONFIG = "config.json"
RUN = "run.json"
EXPORTED = "network.azero"
EXPORTED_SCHEMA = 1
SAMPLES = "samples"
BOARDS = "boards"
FIRST_NETWORK = "first_network"
"""Directory of the network that the run started from, if not from random parameters."""
SOURCE = "source.txt"
"""In FIRST_NETWORK: the network as the command line named it."""
PACKAGES = ("azero", "jax", "jaxlib", "flax", "optax", "mctx", "orbax-checkpoint", "numpy")
"""Packages whose versions a run records."""


@dataclass(frozen=True)
class StoredGame:
    """A game to be drawn."""

    game: str
    """Name of the game in `GameConfig.KINDS`."""
    board: tuple[int, int]
    """Rows and columns."""
    actions: tuple[int, ...]
    rewards: tuple[float, float]
    """Of the first and the second mover."""
    ending: str = ""
    """How it ended: "two passes", "white resigns" ..."""
    values: tuple[float | None, ...] = ()
    """The search's value at each move, for the side to move; may be empty."""
    komi: float | None = None
    names: tuple[str, str] = ("self-play", "self-play")
    """Who played, first mover first, e.g. "iteration 40" and "GNU Go"."""
    start: str = ""
    """The start position, in FEN or SFEN, of stones as `azero.games.diagrams.format_stones` has it;
    empty for the game's usual one."""


@dataclass(frozen=True)
class RunData:
    """The contents of a working directory; what has not been written yet is empty."""

    workdir: Path
    config: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    metrics: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    samples: list[tuple[int, list[StoredGame]]] = field(default_factory=list)
    """(iteration, games), oldest first."""


def board_directory(workdir: Path, size: int) -> Path:
    """Return the directory of another board in a run's directory."""
    return workdir / BOARDS / f"{size}x{size}"


def board_directories(workdir: Path) -> dict[int | None, Path]:
    """Return the directories of all boards in a run's directory by size; None is the run's own,
    which is `workdir` itself."""
    others = sorted((workdir / BOARDS).glob("*x*"))
    sizes = ((re.fullmatch(r"(\d+)x\1", path.name), path) for path in others)
    return {None: workdir, **{int(size[1]): path for size, path in sizes if size}}


def read_config(directory: Path) -> Config:
    """Return the settings of the exported network or of the run in a directory. Unlike
    `azero.checkpoint` this needs no JAX, whose import takes seconds.

    Raises:
      ValueError: there are none, or they cannot be read.
    """
    exported = directory / EXPORTED
    if exported.exists():
        return exported_settings(exported, read_header(exported)[0]["facts"])[1]
    if not (settings := read_json(directory / CONFIG)):
        raise ValueError(f"{directory} has no settings ({CONFIG}): it is not a run")
    return from_dict(settings, source=str(directory / CONFIG))


def exported_settings(path: Path, facts: Mapping[str, Any]) -> tuple[int, Config]:
    """Return the iteration and the settings in the header of the exported network at `path`.

    Raises:
      ValueError: it is another kind of file, or of another version.
    """
    if facts.get("kind") != "network" or facts.get("schema") != EXPORTED_SCHEMA:
        raise ValueError(f"{path} is not a network that this version can read")
    return facts["iteration"], from_dict(facts["config"], source=str(path))


def write_config(workdir: Path, config: Any) -> None:
    """Write the resolved settings, a `Config` or those of another kind of experiment."""
    replace_text(workdir / CONFIG, json.dumps(to_dict(config), indent=2) + "\n")


def write_run(workdir: Path, experiment: str, config: Any) -> None:
    """Write what the run is and where it runs; a resumed run keeps its first start time, where the
    file is not damaged."""
    old: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        old = read_json(workdir / RUN)
    facts = {
        "experiment": experiment,
        "config_hash": config_hash(config),
        "started": old.get("started", time.time()),
        **describe_machine(),
    }
    with contextlib.suppress(OSError):  # a run from random parameters has no such file
        facts["from_network"] = (workdir / FIRST_NETWORK / SOURCE).read_text("utf-8").strip()
    replace_text(workdir / RUN, json.dumps(to_plain(facts), indent=2) + "\n")


def write_samples(workdir: Path, iteration: int, games: Sequence[StoredGame]) -> None:
    """Write the sample games of an iteration."""
    rows = [to_plain(dataclasses.asdict(game)) for game in games]
    replace_text(workdir / SAMPLES / f"{iteration}.json", json.dumps(rows, allow_nan=False) + "\n")


def forget_after(workdir: Path, iteration: int) -> list[str]:
    """Drop rows and sample games of iterations after `iteration`, which a resumed run repeats, and
    damaged rows; return notes about the latter, one line each."""
    notes = []
    for path in (workdir / METRICS, workdir / EVENTS):
        damaged = keep_rows(path, lambda row: row.get("iteration", 0) <= iteration)
        if damaged:
            notes.append(f"{path}: {damaged} damaged line{'s' * (damaged > 1)} removed")
    for number, path in _sample_paths(workdir):
        if number > iteration:
            path.unlink()
    return notes


def check_run(workdir: Path) -> None:
    """Check that there is a run in `workdir`, also one that has just begun.

    Raises:
      ValueError: there is no file of a run.
    """
    if not any((workdir / name).exists() for name in (CONFIG, RUN, METRICS, EVENTS, SAMPLES)):
        raise ValueError(
            f"there is no run in {workdir}: it has no {CONFIG}; give the directory that a run was "
            "started with (--workdir)"
        )


def load_run(workdir: Path) -> RunData:
    """Read a working directory, whether the run is finished, running or just started.

    Raises:
      ValueError: there is no such directory, or a file in it is damaged; the file is named.
    """
    if not workdir.is_dir():
        raise ValueError(
            f"no working directory {str(workdir)!r}; give the directory that a run was started "
            "with (--workdir)"
        )
    return RunData(
        workdir,
        read_json(workdir / CONFIG),
        read_json(workdir / RUN),
        read_rows(workdir / METRICS, "iteration"),
        read_rows(workdir / EVENTS, "iteration"),
        [(number, _read_samples(path)) for number, path in _sample_paths(workdir)],
    )


def describe_machine() -> dict[str, Any]:
    """Return the devices, the host, the versions and, from a checkout, the commit."""
    import jax  # not above: settings are read without it

    devices = jax.devices()
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "devices": f"{len(devices)} x {devices[0].device_kind}",
        "backend": jax.default_backend(),
        "hosts": jax.process_count(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": _commit(),
    }


def _processor() -> str:
    """Return the name of the processor from Linux, otherwise from Python's `platform`."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """Return the commit of the checkout that contains this package, with a plus if files are
    modified; None if there is no checkout."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def read_json(
    path: Path, advice: str = "; if you delete it, the run writes it again"
) -> dict[str, Any]:
    """Return the object in a JSON file; empty where there is no such file.

    Raises:
      ValueError: the file is damaged; it is named, and `advice` follows.
    """
    if not path.exists():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}{advice}") from error
    if not isinstance(data, dict):
        raise ValueError(f"{path} does not hold a JSON object{advice}")
    return data


def _sample_paths(workdir: Path) -> list[tuple[int, Path]]:
    return sorted(
        (int(path.stem), path) for path in (workdir / SAMPLES).glob("*.json") if path.stem.isdigit()
    )


def _read_samples(path: Path) -> list[StoredGame]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        fields: list[dict[str, Any]] = [
            {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
            for row in rows
        ]
        return [StoredGame(**values) for values in fields]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} does not hold sample games: {error}; if you delete it, the others are shown"
        ) from error
