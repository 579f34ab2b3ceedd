"""Reading the checkpoints of a run from another program."""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from flax.traverse_util import unflatten_dict

from azero.checkpoint import orbax_io, store
from azero.checkpoint.exported import (
    exported_path,
    read_exported,
    read_exported_settings,
    write_exported,
)
from azero.checkpoint.record import CheckpointError, DamagedCheckpointError, digest_json
from azero.console.standard_output import say
from azero.data.files import DamagedFileError, read_header
from azero.networks.settings import ConvolutionalConfig
from azero.settings import Config, from_dict
from azero.types import PyTree

T = TypeVar("T")


class CheckpointRow(NamedTuple):
    """The facts of a checkpoint that need no arrays."""

    iteration: int
    games: int | None
    steps: int | None
    """Training steps."""
    num_bytes: int
    age_s: float
    """Seconds since it was saved."""
    digest: str
    """12 digits of the digest of the whole state: arrays, counters, games in flight, replay cursor.

    Equal states have equal digests.
    """
    problem: str
    """Why it cannot be used; empty if it can."""


def list_checkpoints(workdir: Path) -> list[CheckpointRow]:
    """Return the checkpoints of the run in `workdir`, oldest first, without those that the run
    deletes meanwhile.

    Only their records are read and verified, not their arrays.
    """
    root, rows = store.root_directory(workdir), []
    for iteration in store.list_iterations(root):
        with contextlib.suppress(FileNotFoundError):
            rows.append(_row(root, iteration))
    return rows


def load_variables(workdir: Path, iteration: int | None = None) -> tuple[PyTree, Config]:
    """Return the variables and the settings of `load_network`."""
    variables, _, config = load_network(workdir, iteration)
    return variables, config


def load_network(workdir: Path, iteration: int | None = None) -> tuple[PyTree, int, Config]:
    """Return the player of a checkpoint, digests verified: the one that passed the gate, or without
    a gate the newest.

    Args:
      workdir: the run's directory, or one with an exported network (`export_network`).
      iteration: which checkpoint; None is the newest that is whole, and a line on standard error
        names those passed over.

    Returns:
      (network variables {"params": ..., "batch_stats": ...} as numpy arrays, the checkpoint's
      iteration, settings of its run with `network.convolution` "auto": a run keeps that of the
      machine where it began, and its network may be used on another one).

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged; the existing ones are named.
    """
    if _is_exported(workdir, iteration):
        variables, config = read_exported(workdir)
        found, _ = read_exported_settings(workdir)
    else:
        found, (variables, config) = _newest_whole(workdir, iteration, _load, say)
    return variables, found, _for_any_machine(config)


def find_checkpoint(workdir: Path, iteration: int | None = None) -> tuple[int, Config]:
    """Return the iteration and the settings of `load_network`.

    The arrays of a run are read to see whether they are whole, so that whoever keeps the number can
    load that checkpoint later; those passed over are named, as there.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged; the existing ones are named.
    """
    if _is_exported(workdir, iteration):
        return load_settings(workdir, iteration)
    _, found, config = load_network(workdir, iteration)
    return found, config


def load_settings(workdir: Path, iteration: int | None = None) -> tuple[int, Config]:
    """Return the settings of a checkpoint, and which it is: None is the newest with a whole record.

    No arrays are read: `load_network` may find them damaged, go back further and say so.

    Raises:
      CheckpointError: there is no such checkpoint, or its record is damaged; the existing ones are
        named.
    """
    if _is_exported(workdir, iteration):
        found, config = read_exported_settings(workdir)
    else:
        found, config = _newest_whole(workdir, iteration, _read_settings, lambda line: None)
    return found, _for_any_machine(config)


def export_network(
    workdir: Path, directory: Path, iteration: int | None = None, half: bool = False
) -> Path:
    """Write the network of a checkpoint, None the newest that is whole, as one small file into
    `directory`, where `load_variables` finds it; return the file. With `half` its filters and
    matrices are float16.

    Raises:
      CheckpointError: there is no such checkpoint, it is damaged, or `directory` is that of a run,
        whose checkpoints the file would hide.
      StorageError: the file cannot be written.
    """
    return write_exported(directory, *load_network(workdir, iteration), half)


def _for_any_machine(config: Config) -> Config:
    if not isinstance(config.network, ConvolutionalConfig):
        return config
    network = dataclasses.replace(config.network, convolution="auto")
    return dataclasses.replace(config, network=network)


def _is_exported(workdir: Path, iteration: int | None) -> bool:
    """Return whether `workdir` holds an exported network, that of `iteration`.

    Raises:
      CheckpointError: it is that of another iteration.
    """
    if not exported_path(workdir).exists():
        return False
    present, _ = read_exported_settings(workdir)
    if iteration not in (None, present):
        problem = f"the network of iteration {present}, not of {iteration}"
        raise CheckpointError(f"{exported_path(workdir)} is {problem}")
    return True


def _newest_whole(
    workdir: Path,
    iteration: int | None,
    load: Callable[[Path, int], T],
    tell: Callable[[str], None],
) -> tuple[int, T]:
    """Return a checkpoint, the one that is named or the newest that `load` can read, and what it
    makes of it. If it goes back to an older one, `tell` gets one line that says so.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
    """
    root = store.root_directory(workdir)
    present = store.list_iterations(root)
    if not present:
        if not workdir.is_dir():
            raise CheckpointError(f"there is no directory {workdir}")
        networks = [path for path in sorted(workdir.iterdir()) if exported_path(path).exists()]
        hint = f"; exported networks: {', '.join(map(str, networks))}" if networks else ""
        raise CheckpointError(f"{workdir} has no checkpoint{hint}")
    if iteration is not None:
        if iteration not in present:
            listed = ", ".join(map(str, present))
            raise CheckpointError(
                f"{workdir} has no checkpoint {iteration}; it has {listed} (a run deletes older "
                "ones: checkpoint.keep-every, or azero checkpoint --export, keeps a network)"
            )
        try:
            return iteration, load(root, iteration)
        except DamagedCheckpointError as error:
            problem = f"checkpoint {iteration} of {workdir} is damaged: {error}"
            raise DamagedCheckpointError(problem) from error
    tried: set[int] = set()
    damaged: dict[int, str] = {}
    while left := [number for number in present if number not in tried]:
        candidate = left[-1]
        tried.add(candidate)
        try:
            found = load(root, candidate)
        except DamagedCheckpointError as error:
            present = store.list_iterations(root)  # a run may have saved and deleted meanwhile
            if candidate in present:
                damaged[candidate] = f"checkpoint {candidate} is damaged: {error}"
            continue
        if damaged:
            tell(f"{workdir}: {'; '.join(damaged.values())}; checkpoint {candidate} is used")
        return candidate, found
    reasons = "; ".join(damaged.values()) or f"it has {', '.join(map(str, present))}"
    raise CheckpointError(f"no checkpoint in {root} is complete: {reasons}")


def _read_settings(root: Path, iteration: int) -> Config:
    record = orbax_io.read_record(root, iteration)
    return from_dict(record["config"], source=f"checkpoint {iteration}")


def _load(root: Path, iteration: int) -> tuple[PyTree, Config]:
    record = orbax_io.read_record(root, iteration)
    leaves = record["leaves"]
    part = "best" if "best" in leaves else "train"
    state = unflatten_dict(orbax_io.read_item(root, iteration, part, leaves[part]), sep="/")
    places = {"params": "average" if "average" in state else "params", "batch_stats": "batch_stats"}
    variables = {name: state[place] for name, place in places.items() if place in state}
    return variables, from_dict(record["config"], source=f"checkpoint {iteration}")


def _seconds_since(saved_at: float) -> float:
    """Return the seconds since a time, which another machine's clock or one that was set back may
    have put into the future."""
    return max(0.0, time.time() - saved_at)


def _row(root: Path, iteration: int) -> CheckpointRow:
    folder = store.steps_directory(root) / str(iteration)
    hosts = store.host_path(root, iteration, 0).parent.glob(f"{iteration}.p*.host")
    files = [path for path in folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in [*hosts, *files])
    try:
        record = orbax_io.read_record(root, iteration)
        paths = [store.host_path(root, iteration, p) for p in range(record["num_processes"])]
        digests = [read_header(path)[2] for path in paths]
    except (CheckpointError, DamagedFileError) as error:
        age = _seconds_since(folder.stat().st_mtime)
        return CheckpointRow(iteration, None, None, size, age, "", str(error))
    meta, age = record["meta"], _seconds_since(record["info"]["saved_at"])
    digest = digest_json([record["state"], *digests])[:12]
    return CheckpointRow(iteration, meta.get("games"), meta.get("steps"), size, age, digest, "")
