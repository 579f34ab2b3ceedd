"""Writing and reading a checkpoint's items through Orbax. No other module imports it, and this one
only when it is used: an engine that reads a network from one file starts without it."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from azero.checkpoint.leaves import Flat, check_leaf
from azero.checkpoint.record import DamagedCheckpointError, open_record
from azero.checkpoint.store import steps_directory
from azero.selfplay.trajectory import HostArray

if TYPE_CHECKING:
    import orbax.checkpoint as ocp

RECORD = "record"
"""Item with the record (no part of a state may have this name)."""

_LATE_READS_S = 0.2
"""After a failed read of one array, the other reads end within about this time."""
_REASONS = (
    "No space left on device",
    "Permission denied",
    "Read-only file system",
    "Input/output error",
    "Disk quota exceeded",
)
"""Error texts of the operating system."""


def make_manager(directory: Path) -> ocp.CheckpointManager:
    """Return Orbax's manager.

    It saves in the calling thread (ours), and its barriers are not device collectives, which would
    mix with the run's own. It deletes nothing (its default): it would do so before the new
    checkpoint is safely on disk, and a process that is killed meanwhile would leave a part of the
    old one.
    """
    import orbax.checkpoint as ocp

    processes = ocp.options.MultiprocessingOptions(
        primary_host=0, active_processes=set(range(jax.process_count()))
    )
    options = ocp.CheckpointManagerOptions(
        create=False, enable_async_checkpointing=False, multiprocessing_options=processes
    )
    return ocp.CheckpointManager(directory, options=options)


def save_args(arrays: Flat, record: dict[str, Any]) -> ocp.args.Composite:
    """Return what Orbax writes: the parts of the state without empty arrays, and the record."""
    import orbax.checkpoint as ocp

    items: dict[str, Any] = {}
    for item, part in arrays.items():
        stored = {path: array for path, array in part.items() if array.size}
        if stored:
            items[item] = ocp.args.StandardSave(stored)
    return ocp.args.Composite(**items, **{RECORD: ocp.args.JsonSave(record)})


def read_record(root: Path, iteration: int) -> dict[str, Any]:
    """Return the record of a checkpoint.

    Raises:
      DamagedCheckpointError: it cannot be read or is not what was written.
      CheckpointError: it is of another version.
    """
    import orbax.checkpoint as ocp

    handler = ocp.handlers.JsonCheckpointHandler()
    return open_record(_restore(root, iteration, RECORD, handler, ocp.args.JsonRestore()))


def read_item(
    root: Path, iteration: int, item: str, entries: dict[str, Any]
) -> dict[str, HostArray]:
    """Return the arrays of one item by path, compared with the digests in the record.

    Raises:
      DamagedCheckpointError: something is missing or was changed; the first such leaf is named.
    """
    import orbax.checkpoint as ocp

    arrays: dict[str, HostArray] = {}
    shapes: dict[str, HostArray] = {}
    for path, entry in entries.items():
        if 0 in entry["shape"]:
            arrays[path] = np.zeros(entry["shape"], entry["dtype"])
        else:
            shapes[path] = np.broadcast_to(np.zeros((), entry["dtype"]), entry["shape"])
    if shapes:
        handler = ocp.handlers.StandardCheckpointHandler()
        read = _restore(root, iteration, item, handler, ocp.args.StandardRestore(shapes))
        arrays |= {path: np.asarray(array) for path, array in read.items()}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        names = [f"{item}/{path}" for path in entries]
        found = [arrays[path] for path in entries]
        list(pool.map(check_leaf, found, entries.values(), names))
    return arrays


def one_line(error: BaseException) -> str:
    """Return the reason of a failure as one line: the system's message, otherwise its beginning."""
    text = " ".join(str(error).split())
    for reason in _REASONS:
        if reason in text:
            return reason
    return text[:300] or type(error).__name__


def silence_late_tasks() -> None:
    """Keep asyncio from printing the failures of Orbax's other writes.

    They come long after a save has failed and been reported, each with its traceback.
    """
    logging.getLogger("asyncio").addFilter(_should_log)  # the same filter is added once


def _should_log(record: logging.LogRecord) -> bool:
    if record.exc_info is None or "exception was never retrieved" not in record.getMessage():
        return True
    frames = traceback.extract_tb(record.exc_info[2]) if record.exc_info[2] is not None else []
    return not any("orbax" in frame.filename for frame in frames)


@contextlib.contextmanager
def silence() -> Iterator[None]:
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
    """Return one item of a checkpoint as Orbax reads it.

    Raises:
      DamagedCheckpointError: it cannot be read.
    """
    import orbax.checkpoint as ocp

    path = steps_directory(root) / str(iteration) / item
    if not path.is_dir():
        raise DamagedCheckpointError(f"{path} is missing")
    # Any process may read at any time, also alone: without this, Orbax would end every read with a
    # program that all processes of the run have to start.
    alone = ocp.options.MultiprocessingOptions(active_processes={jax.process_index()})
    try:
        with silence(), ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer:
            return checkpointer.restore(path, args=args)
    except Exception as error:
        # Orbax and its storage raise many types; every one means that this item cannot be read.
        raise DamagedCheckpointError(f"{path} cannot be read: {one_line(error)}") from error
