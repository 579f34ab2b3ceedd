"""An exclusive lock on a directory, such as a run's working directory or a data set.

There are two mechanisms. The system's lock on `.lock` works between the processes of one machine,
and of several where the file system supports that; some network file systems do not, or have no
locks. The file `.owner` works everywhere: it says who holds the directory, and is rewritten every
few seconds as a heartbeat.
"""

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

from azero.console.standard_output import say
from azero.data.files import StorageError, write_atomic
from azero.heartbeat import repeating
from azero.memory import BOOT

LOCK = ".lock"
"""The file that is locked, in the directory."""
OWNER = ".owner"
"""The file that names the process which holds the directory."""
BEAT_SECONDS = 15.0
"""Seconds between two writes of the owner's file."""
STALE_SECONDS = 75.0
"""An owner on another machine counts as ended if its file has not changed for this time: more than
four heartbeats, and NFS shows a change within 60 s (acregmax of nfs(5))."""
_LOOK_SECONDS = 1.0
_EXIT_LOST = 2
"""Exit status of a process whose directory another one has taken."""


class Owner(NamedTuple):
    """The content of the owner's file."""

    host: str
    boot: str
    """Boot id of the machine."""
    namespace: str
    """PID namespace of `process`: containers have their own."""
    process: int
    start: str | None
    """When the process started, in ticks since the boot: process ids are reused."""
    beat: int = 0
    """How often the file was rewritten."""


_UNKNOWN = Owner("an unknown machine", "", "", 0, None)
"""The owner where the file exists but cannot be read."""


@contextlib.contextmanager
def hold(directory: Path, note: Callable[[str], None] = say) -> Iterator[None]:
    """Keep other processes from holding `directory`, which must exist.

    A killed process holds nothing: on the same machine that is noticed at once, on another one
    after `STALE_SECONDS` without a change of its file. This function waits for that, and reports
    with `note` that it takes the directory over.

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
        _wait_for_end(directory, is_locked, note)
        mine = _this_process()
        _write(directory, mine)
        if not is_locked:
            _check_won(directory, mine)
        beats = itertools.count(1)
        try:
            with repeating(lambda: _beat(directory, mine._replace(beat=next(beats))), BEAT_SECONDS):
                yield
        finally:
            if _is_same(_read(directory), mine):
                (directory / OWNER).unlink(missing_ok=True)


def _wait_for_end(directory: Path, is_locked: bool, note: Callable[[str], None]) -> None:
    """Return when the process named in `OWNER` has ended; at once without such a file.

    Raises:
      ValueError: it is still running.
    """
    owner = _read(directory)
    if owner is None:
        return
    here = _this_process()
    if owner.boot == here.boot and (is_locked or owner.namespace == here.namespace):
        # On one machine, getting the lock shows that the other process has ended; without locks,
        # the process table does.
        if not is_locked and owner.start is not None and _start_time(owner.process) == owner.start:
            raise _in_use(directory, owner)
    else:
        _wait_until_stale(directory, owner, note)
    note(f"{directory} was held by {_name(owner)}, which ended without releasing it; taken over")


def _wait_until_stale(directory: Path, owner: Owner, note: Callable[[str], None]) -> None:
    """Return when the owner's file has not changed for `STALE_SECONDS`, by the clock of the file
    server.

    Raises:
      ValueError: it has changed.
    """
    left = STALE_SECONDS - max(0.0, _age(directory))
    if left > 0:
        note(
            f"{directory} is held by {_name(owner)}, whose last heartbeat is less than "
            f"{STALE_SECONDS:.0f} s old; waiting up to {left:.0f} s for another one"
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
    """Return the seconds since the owner's file changed; both times are the file server's, whose
    clock may have been set back in between."""
    probe = directory / f"{OWNER}.{os.getpid()}"
    try:
        probe.write_bytes(b"now")
        return probe.stat().st_mtime - (directory / OWNER).stat().st_mtime
    except FileNotFoundError:
        return STALE_SECONDS
    finally:
        probe.unlink(missing_ok=True)


def _check_won(directory: Path, mine: Owner) -> None:
    """Decide between two processes that wrote at the same time: the later one gets the directory.

    Raises:
      ValueError: the other process got it.
    """
    time.sleep(_LOOK_SECONDS)
    owner = _read(directory)
    if not _is_same(owner, mine):
        raise _in_use(directory, owner)


def _beat(directory: Path, mine: Owner) -> None:
    """Rewrite the owner's file; exit if another process has taken the directory over."""
    owner = _read(directory)
    if owner not in (None, _UNKNOWN) and not _is_same(owner, mine):
        say(
            f"azero: {directory} has been taken over by {_name(owner)}, which saw no heartbeat of "
            "this process; it ends now, and everything saved is intact"
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
    """Return when a process of this machine started, in ticks since the boot (field 22 of proc(5)'s
    stat); None if there is no such process."""
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
    """Return the content of the owner's file; None without one."""
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
        f"{directory} is in use{f' by {_name(owner)}' if owner else ''}; two processes would "
        "overwrite each other's files: wait for it, stop it, or use another directory"
    )
