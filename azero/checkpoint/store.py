"""The directories of a run's checkpoints, and reading them through Orbax.

Layout: `steps/N` is Orbax's checkpoint of iteration N (one item per part of the state, and the record); `hosts/N.p000.host` is what only process 0 knows;
`damaged/` holds checkpoints that failed their digests.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

from azero.checkpoint.record import DamagedCheckpointError, check_leaf, open_record
from azero.data.files import DamagedFileError, read_arrays, read_header, sync_directory
from azero.selfplay.trajectory import HostArray

_LATE_READS_S = 0.2
"""After one array could not be read, the reads of the others still end within about this time."""
_UNFINISHED = ".orbax-checkpoint-tmp"
"""In the name of a directory that Orbax is writing."""
RECORD = "record"
"""Item with the record (no part of a state may have this name)."""


def root_directory(workdir: Path) -> Path:
    """Return where a run keeps its checkpoints."""
    return Path(workdir).absolute() / "checkpoints"


def steps_directory(root: Path) -> Path:
    """Return where Orbax's checkpoints are."""
    return root / "steps"


def host_path(root: Path, iteration: int, process_index: int) -> Path:
    """Return the file of one process's own state."""
    return root / "hosts" / f"{iteration}.p{process_index:03d}.host"


def list_hosts(root: Path) -> list[tuple[Path, str, int]]:
    """Return the files of the processes' own state, whole or being written, with the iteration and the process that each belongs to."""
    found = []
    for path in (root / "hosts").glob("*.p*.host*"):
        iteration, process, *_ = path.name.split(".")
        found.append((path, iteration, int(process.removeprefix("p"))))
    return found


def count_processes(root: Path, iteration: int) -> int:
    """Return how many processes wrote the checkpoint of `iteration`, as far as their files are there."""
    return 1 + max((process for path, number, process in list_hosts(root) if number == str(iteration) and path.suffix == ".host"), default=-1)


def list_iterations(root: Path) -> list[int]:
    """Return the iterations that have a complete checkpoint, in order. Directories under another name (being written, left over) do not count."""
    directory = steps_directory(root)
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal() and path.is_dir()) if directory.is_dir() else []


def remove_unfinished(root: Path) -> None:
    """Delete the checkpoints that a killed process was writing (Orbax's own clean-up misses some) or deleting."""
    for path in steps_directory(root).iterdir():
        if _UNFINISHED in path.name:
            shutil.rmtree(path, ignore_errors=True)


def remove_checkpoints(root: Path, iterations: Iterable[int]) -> None:
    """Delete checkpoints, each of them whole or not at all: one that the system does not let go of stays for another time."""
    for iteration in iterations:
        path = steps_directory(root) / str(iteration)
        leaving = path.with_name(f"{iteration}{_UNFINISHED}-deleted")
        with contextlib.suppress(OSError):
            os.rename(path, leaving)
            shutil.rmtree(leaving, ignore_errors=True)


def read_record(root: Path, iteration: int) -> dict[str, Any]:
    """Return the record of a checkpoint.

    Raises:
      DamagedCheckpointError: it cannot be read or is not what was written.
      CheckpointError: it is of another version.
    """
    record = _restore(root, iteration, RECORD, ocp.handlers.JsonCheckpointHandler(), ocp.args.JsonRestore())
    return open_record(record)


def read_item(root: Path, iteration: int, item: str, entries: dict[str, Any]) -> dict[str, HostArray]:
    """Return the arrays of one item by path, compared with the digests in the record.

    Raises:
      DamagedCheckpointError: something is missing or was changed; the first such leaf is named.
    """
    empty = {path: np.zeros(entry["shape"], entry["dtype"]) for path, entry in entries.items() if 0 in entry["shape"]}
    shapes = {path: np.broadcast_to(np.zeros((), entry["dtype"]), entry["shape"]) for path, entry in entries.items() if path not in empty}
    arrays = _restore(root, iteration, item, ocp.handlers.StandardCheckpointHandler(), ocp.args.StandardRestore(shapes)) if shapes else {}
    arrays = {path: np.asarray(array) for path, array in arrays.items()} | empty
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda path: check_leaf(arrays[path], entries[path], f"{item}/{path}"), entries))
    return arrays


def read_host(root: Path, iteration: int, process_index: int, state: str) -> tuple[dict[str, HostArray], dict[str, int]]:
    """Return the arrays and the cursor of one process, verified, of the checkpoint whose digest is `state`.

    Raises:
      DamagedCheckpointError: the file is missing, was changed, or belongs to another checkpoint.
    """
    path = host_path(root, iteration, process_index)
    try:
        arrays, facts = read_arrays(path)
    except DamagedFileError as error:
        raise DamagedCheckpointError(str(error)) from error
    if facts["state"] != state:
        raise DamagedCheckpointError(f"{path} belongs to another checkpoint of iteration {iteration}")
    return arrays, facts["cursor"]


def read_cursor(root: Path, iteration: int, process_index: int) -> dict[str, int]:
    """Return the cursor of one process without reading its arrays.

    Raises:
      DamagedFileError: the file is missing or torn, or its header was changed.
    """
    header, _, _ = read_header(host_path(root, iteration, process_index))
    cursor: dict[str, int] = header["facts"]["cursor"]
    return cursor


def sync_tree(directory: Path) -> None:
    """Make everything under `directory`, and its own name, survive a power failure (Orbax renames, but promises no fsync)."""
    for folder, _, files in os.walk(directory):
        for name in files:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(folder))
    sync_directory(directory.parent)


def one_line(error: BaseException) -> str:
    """Return the reason of a failure as one line: a system error's own words where the text has them, else its beginning."""
    text = " ".join(str(error).split())
    for code in ("No space left on device", "Permission denied", "Read-only file system", "Input/output error", "Disk quota exceeded"):
        if code in text:
            return code
    return text[:300] or type(error).__name__


def hush_late_tasks() -> None:
    """Keep asyncio from printing, long after a save has failed and been reported, the traceback of every other write of Orbax's that failed with it."""
    logging.getLogger("asyncio").addFilter(_is_news)  # the same filter is added once


def _is_news(record: logging.LogRecord) -> bool:
    if record.exc_info is None or "exception was never retrieved" not in record.getMessage():
        return True
    frames = traceback.extract_tb(record.exc_info[2]) if record.exc_info[2] is not None else []
    return not any("orbax" in frame.filename for frame in frames)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Orbax's threads from printing what it also raises here, where it becomes one line."""
    absl = logging.getLogger("absl")
    hook = sys.unraisablehook

    def is_ours(record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR or "orbax" not in record.pathname

    def drop_late_reads(unraisable: Any) -> None:
        if str(unraisable.exc_value) != "Event loop is closed":
            hook(unraisable)

    absl.addFilter(is_ours)
    sys.unraisablehook = drop_late_reads
    try:
        yield
    except Exception:
        time.sleep(_LATE_READS_S)
        raise
    finally:
        sys.unraisablehook = hook
        absl.removeFilter(is_ours)


def _restore(root: Path, iteration: int, item: str, handler: Any, args: Any) -> Any:
    path = steps_directory(root) / str(iteration) / item
    if not path.is_dir():
        raise DamagedCheckpointError(f"{path} is missing")
    # Any process may read at any time, also alone: without this, Orbax would end every read with a program that all processes of the run have to start.
    alone = ocp.options.MultiprocessingOptions(active_processes={jax.process_index()})
    try:
        with quiet(), ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            return checkpointer.restore(path, args=args)
    except Exception as error:  # Orbax and its storage raise many types; every one means that this item cannot be read.
        raise DamagedCheckpointError(f"{path} cannot be read: {one_line(error)}") from error
