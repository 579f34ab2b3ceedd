"""The directories of a run's checkpoints, and the per-process files.

Layout: `steps/N` is Orbax's checkpoint of iteration N (one item per part of the state, and the
record); `hosts/N.p000.host` is the state that only process 0 has; `damaged/` holds checkpoints that
failed their digests.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from azero.checkpoint.record import DamagedCheckpointError
from azero.data.files import (
    TEMPORARY_SUFFIX,
    DamagedFileError,
    read_arrays,
    read_header,
    sync_directory,
)
from azero.selfplay.trajectory import HostArray

_UNFINISHED = ".orbax-checkpoint-tmp"
"""In the name of a directory that Orbax is writing."""
_HOST = re.compile(rf"(\d+)\.p(\d+)\.host(?:{re.escape(TEMPORARY_SUFFIX)})?")
"""Names from `host_path`, whole or being written."""


def root_directory(workdir: Path) -> Path:
    """Return where a run keeps its checkpoints."""
    return Path(workdir).absolute() / "checkpoints"


def steps_directory(root: Path) -> Path:
    """Return where Orbax's checkpoints are."""
    return root / "steps"


def host_path(root: Path, iteration: int, process_index: int) -> Path:
    """Return the file of one process's own state."""
    return root / "hosts" / f"{iteration}.p{process_index:03d}.host"


def make_directories(root: Path) -> None:
    """Make the directories of the checkpoints, so that their names survive a power failure.

    Raises:
      OSError: the system refuses.
    """
    for part in (steps_directory(root), root / "hosts"):
        part.mkdir(parents=True, exist_ok=True)
    sync_directory(root)
    sync_directory(root.parent)


def list_hosts(root: Path) -> list[tuple[Path, str, int]]:
    """Return the files of the processes' own state, whole or being written.

    Returns:
      (file, iteration, process) of each.
    """
    found = []
    for path in (root / "hosts").glob("*.p*.host*"):
        # Copies under other names, such as synchronised folders make, do not count.
        if name := _HOST.fullmatch(path.name):
            found.append((path, name[1], int(name[2])))
    return found


def count_processes(root: Path, iteration: int) -> int:
    """Return how many processes wrote a checkpoint, judged by their files."""
    count = 0
    for path, number, process in list_hosts(root):
        if number == str(iteration) and path.suffix == ".host":
            count = max(count, process + 1)
    return count


def list_iterations(root: Path) -> list[int]:
    """Return the iterations that have a complete checkpoint, in order.

    Directories under another name (being written, left over) do not count.
    """
    directory = steps_directory(root)
    if not directory.is_dir():
        return []
    paths = [path for path in directory.iterdir() if path.name.isdecimal() and path.is_dir()]
    return sorted(int(path.name) for path in paths)


def remove_unfinished(root: Path) -> None:
    """Delete the checkpoints that a killed process was writing or deleting.

    (Orbax's own clean-up misses some.)
    """
    for path in steps_directory(root).iterdir():
        if _UNFINISHED in path.name:
            shutil.rmtree(path, ignore_errors=True)


def remove_checkpoints(root: Path, iterations: Iterable[int]) -> None:
    """Delete checkpoints, each of them whole or not at all.

    One that the system refuses to delete stays until the next time.
    """
    for iteration in iterations:
        path = steps_directory(root) / str(iteration)
        leaving = path.with_name(f"{iteration}{_UNFINISHED}-deleted")
        with contextlib.suppress(OSError):
            os.rename(path, leaving)
            shutil.rmtree(leaving, ignore_errors=True)


def discard(root: Path, iteration: int, process_index: int) -> None:
    """Remove what a failed save of one process left."""
    for path in steps_directory(root).glob(f"{iteration}.*"):
        shutil.rmtree(path, ignore_errors=True)
    if iteration not in list_iterations(root):
        host_path(root, iteration, process_index).unlink(missing_ok=True)


def set_aside(root: Path, iterations: Iterable[int]) -> None:
    """Move damaged checkpoints into `damaged/`, over earlier ones of the same iterations."""
    aside = root / "damaged"
    aside.mkdir(exist_ok=True)
    for iteration in iterations:
        shutil.rmtree(aside / str(iteration), ignore_errors=True)
        os.rename(steps_directory(root) / str(iteration), aside / str(iteration))


def read_host(
    root: Path, iteration: int, process_index: int, state: str
) -> tuple[dict[str, HostArray], dict[str, int]]:
    """Return the arrays and the cursor of one process, verified.

    Raises:
      DamagedCheckpointError: the file is missing, was changed, or belongs to another checkpoint
        than the one whose digest is `state`.
    """
    path = host_path(root, iteration, process_index)
    try:
        arrays, facts = read_arrays(path)
    except DamagedFileError as error:
        raise DamagedCheckpointError(str(error)) from error
    if facts["state"] != state:
        problem = f"{path} belongs to another checkpoint of iteration {iteration}"
        raise DamagedCheckpointError(problem)
    return arrays, facts["cursor"]


def read_cursor(root: Path, iteration: int, process_index: int) -> dict[str, int]:
    """Return the cursor of one process without reading its arrays.

    Raises:
      DamagedFileError: the file is missing or torn, or its header was changed.
    """
    header, _, _ = read_header(host_path(root, iteration, process_index))
    return header["facts"]["cursor"]


def sync_tree(directory: Path) -> None:
    """Make everything under `directory`, and its own name, survive a power failure.

    (Orbax renames, but promises no fsync.)
    """
    for folder, _, files in os.walk(directory):
        for name in files:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_directory(Path(folder))
    sync_directory(directory.parent)
