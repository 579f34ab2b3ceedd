"""A directory that one process at a time may write to: a run's working directory, a data set.

Two things keep the others out. The system's lock on `.lock` works between the processes of one
machine, and of several where the file system passes locks on; some network file systems do not, or
have none at all. The file `.owner` works everywhere: it says who holds the directory, and is
written again every few seconds, so that the others see that its writer lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from azero.data.files import StorageError, write_atomic
from azero.distributed import say
from azero.heartbeat import beating
from azero.memory import BOOT

LOCK = ".lock"
"""The file that is locked, in the directory."""
OWNER = ".owner"
"""The file that names the process which holds the directory."""
BEAT_SECONDS = 15.0
"""The owner's file is written again so often."""
STALE_SECONDS = 75.0
"""An owner on another machine whose file has not changed for so long has ended: four beats, and NFS
shows a change within 60 s at most (acregmax of nfs(5))."""
_LOOK_SECONDS = 1.0
_EXIT_LOST = 2
"""Exit status of a process whose directory another one has taken."""


class Owner(NamedTuple):
    """What the owner's file says."""

    host: str
    boot: str
    """The start of the machine."""
    namespace: str
    """Within which `process` is a number of one process: containers count their own."""
    process: int
    start: str | None
    """When the process began, in the machine's ticks: its number may come again."""
    beat: int = 0
    """How often the file was written again."""


_UNKNOWN = Owner("an unknown machine", "", "", 0, None)
"""Stands for a file that is there and cannot be read."""


@contextlib.contextmanager
def hold(directory: Path, note: Callable[[str], None] = say) -> Iterator[None]:
    """Keep other processes from holding `directory`, which is there.

    A process that was killed holds nothing: on the same machine that is seen at once, on another
    one when its file has not changed for `STALE_SECONDS`. That is waited for, and what is taken
    over is told with `note`.

    Raises:
      ValueError: another process holds it.
      StorageError: the directory cannot be written to.
    """
    with (directory / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_locked = True
        except BlockingIOError:
            raise _in_use(directory, _read(directory)) from None
        except OSError:
            is_locked = False  # a file system without locks
        _await_end(directory, is_locked, note)
        mine = _this_process()
        _write(directory, mine)
        if not is_locked:
            _check_won(directory, mine)
        beats = itertools.count(1)
        try:
            with beating(lambda: _beat(directory, mine._replace(beat=next(beats))), BEAT_SECONDS):
                yield
        finally:
            if _is_same(_read(directory), mine):
                (directory / OWNER).unlink(missing_ok=True)


def _await_end(directory: Path, is_locked: bool, note: Callable[[str], None]) -> None:
    """Return when the process that `OWNER` names has ended; at once where there is none.

    Raises:
      ValueError: it lives.
    """
    owner = _read(directory)
    if owner is None:
        return
    here = _this_process()
    if owner.boot == here.boot and (is_locked or owner.namespace == here.namespace):
        # Within one machine a lock that could be had says that the other is gone; without locks,
        # the system's list of processes does.
        if not is_locked and owner.start is not None and _start_time(owner.process) == owner.start:
            raise _in_use(directory, owner)
    else:
        _await_silence(directory, owner, note)
    note(
        f"{directory} was held by {_name(owner)}, which ended without letting go of it; taken over"
    )


def _await_silence(directory: Path, owner: Owner, note: Callable[[str], None]) -> None:
    """Return when the owner's file has not changed for `STALE_SECONDS`, by the clock of the file
    server.

    Raises:
      ValueError: it has changed.
    """
    left = STALE_SECONDS - _age(directory)
    if left > 0:
        note(
            f"{directory} is held by {_name(owner)}, as it said less than "
            f"{STALE_SECONDS:.0f} s ago; waiting up to {left:.0f} s for a sign that it "
            f"still runs"
        )
    end = time.monotonic() + left
    while time.monotonic() < end:
        time.sleep(min(_LOOK_SECONDS, max(0.0, end - time.monotonic())))
        now = _read(directory)
        if now is None:
            return
        if now != owner:
            raise _in_use(directory, now)


def _age(directory: Path) -> float:
    """Return for how many seconds the owner's file has stood as it is; both times are the file
    server's."""
    probe = directory / f"{OWNER}.{os.getpid()}"
    try:
        probe.write_bytes(b"now")
        return probe.stat().st_mtime - (directory / OWNER).stat().st_mtime
    except FileNotFoundError:
        return STALE_SECONDS
    finally:
        probe.unlink(missing_ok=True)


def _check_won(directory: Path, mine: Owner) -> None:
    """Let the later of two processes that came at the same moment have the directory.

    Raises:
      ValueError: that is the other one.
    """
    time.sleep(_LOOK_SECONDS)
    owner = _read(directory)
    if not _is_same(owner, mine):
        raise _in_use(directory, owner)


def _beat(directory: Path, mine: Owner) -> None:
    """Write the owner's file again; a process that finds another's name there was taken for dead,
    and ends."""
    owner = _read(directory)
    if owner not in (None, _UNKNOWN) and not _is_same(owner, mine):
        say(
            f"azero: {directory} has been taken over by {_name(owner)}, to which this "
            f"process gave no sign of life; it ends, what was saved is whole"
        )
        os._exit(_EXIT_LOST)
    with contextlib.suppress(StorageError):  # a full disk; the run itself will say so
        _write(directory, mine)


def _this_process() -> Owner:
    namespace = Path("/proc/self/ns/pid")
    return Owner(
        host=platform.node(),
        boot=BOOT.read_text().strip() if BOOT.exists() else platform.node(),
        namespace=os.readlink(namespace) if namespace.exists() else "",
        process=os.getpid(),
        start=_start_time(os.getpid()),
    )


def _start_time(process: int) -> str | None:
    """Return when a process of this machine began, in ticks since the machine did (field 22 of
    proc(5)'s stat); None if there is no such process."""
    try:
        return (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[19]
        )
    except OSError:
        pass
    if not Path("/proc/self/stat").exists():  # not Linux
        with contextlib.suppress(OSError):
            os.kill(process, 0)
            return ""
    return None


def _read(directory: Path) -> Owner | None:
    """Return the owner's file; None where there is none."""
    try:
        return Owner(**json.loads((directory / OWNER).read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError):
        return _UNKNOWN


def _write(directory: Path, owner: Owner) -> None:
    write_atomic(directory / OWNER, [json.dumps(owner._asdict()).encode()])


def _is_same(owner: Owner | None, mine: Owner) -> bool:
    return owner is not None and owner._replace(beat=0) == mine._replace(beat=0)


def _name(owner: Owner) -> str:
    return f"process {owner.process} on {owner.host}"


def _in_use(directory: Path, owner: Owner | None) -> ValueError:
    return ValueError(
        f"{directory} is in use{f' by {_name(owner)}' if owner else ''}; two at once "
        f"would overwrite each other's files: wait for it or stop it, "
        "or take another directory"
    )
