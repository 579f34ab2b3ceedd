"""A directory that one process at a time may write to: a run's working directory, a data set."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"
"""The file that is locked, in the directory; it holds the number of the process that locked it last."""


@contextlib.contextmanager
def hold(directory: Path) -> Iterator[None]:
    """Keep other processes from holding `directory`, which is there; the system lets go when the process ends, however it ends.

    Where the file system has no locks nothing is kept.

    Raises:
      ValueError: another process holds it.
    """
    with (directory / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip()
            raise ValueError(
                f"{directory} is in use{f' by process {holder}' if holder else ''}; two at once would overwrite each other's files: wait for it or stop it, "
                "or take another directory"
            ) from None
        except OSError:
            pass  # a network drive without locks
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
