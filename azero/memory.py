"""The memory that this process may take, and what to make smaller if there is not enough."""

import contextlib
import ctypes
import os
import platform
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from azero import mesh as mesh_lib

BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Linux's identifier of this boot of this machine; containers of one machine share it."""
_HIERARCHIES = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
_SIZE = re.compile(r"allocat\w+ (\d[\d.]*\s?(?:bytes|[KMGTPE]i?B?\b))")
"""The size in "Out of memory allocating 1024 bytes", "Attempting to allocate 1.50G", "Unable to
allocate 64.0 GiB" (XLA's and NumPy's words)."""


class OutOfMemoryError(ValueError):
    """A device or the host refused an allocation; the message says what to make smaller."""


def memory_bytes(hierarchies: Path = _HIERARCHIES, own_groups: Path = _OWN_GROUPS) -> int:
    """Return the bytes of memory that the processes of this container may take together: those of
    the machine, or a control group's limit below that. `hierarchies` are where the control groups
    are mounted, of version 2 or (in `memory` below it) of version 1; `own_groups` is the file that
    says which groups this process is in."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(hierarchies, own_groups)])


def _limits(hierarchies: Path, own_groups: Path) -> Iterator[int]:
    """Yield the limits of this process's control groups and of those around them (man 7 cgroups;
    kernel: admin-guide/cgroup-v2, cgroup-v1/memory)."""
    try:
        lines = own_groups.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            top, name = hierarchies, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = hierarchies / "memory", "memory.limit_in_bytes"
        else:
            continue
        # A container sees its own group as the top, though the path may be the one outside of it: a
        # file that is missing sets no limit.
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            with contextlib.suppress(OSError, ValueError):  # "max" is no number: no limit
                yield int(top.joinpath(*parts[:depth], name).read_text())


def give_back_freed() -> None:
    """Return memory that is free in this process to the system. XLA frees what compiling took, but
    glibc keeps it: 0.7 of 2.4 GB after ten networks (measured)."""
    # Other C libraries have no such function.
    with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def process_memory_bytes() -> int:
    """Return this process's part of `memory_bytes`, which all processes of a run on one machine
    share; all of them call it."""
    return memory_bytes() // _processes_here()


def _processes_here() -> int:
    """Return how many processes of the run are on this machine."""
    if jax.process_count() == 1:
        return 1
    try:
        machine = BOOT.read_text()
    except OSError:
        machine = platform.node()
    mine = zlib.crc32(machine.encode())
    return int((mesh_lib.gather(np.asarray(mine, np.uint32)) == mine).sum())


@contextlib.contextmanager
def explain_exhaustion() -> Iterator[None]:
    """Turn a refused allocation, of a device or of the host, into one line that says what to make
    smaller.

    Raises:
      OutOfMemoryError: an allocation was refused.
    """
    try:
        yield
    except MemoryError as error:
        raise OutOfMemoryError(
            f"this machine does not have enough memory{_amount(error)}; make smaller: "
            "selfplay.num-games, learner.batch-size, replay.window-games, "
            "or start fewer processes on it"
        ) from error
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise OutOfMemoryError(
            f"a device does not have enough memory{_amount(error)}; make smaller: "
            "selfplay.search-batch or selfplay.num-games for self-play, learner.batch-size for "
            "learning, evaluation.games for matches, network.filters; azero doctor EXPERIMENT "
            "shows what each program needs"
        ) from error


def _amount(error: BaseException) -> str:
    found = _SIZE.search(str(error))
    return f" ({found[1]} more requested)" if found else ""
