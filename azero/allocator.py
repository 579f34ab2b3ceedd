"""What the C library does with memory that is freed. This needs no JAX."""

import contextlib
import ctypes
import os
import sys

_MMAP_MAX, _TRIM_THRESHOLD = -4, -1
"""Parameters of mallopt(3); /usr/include/malloc.h."""


def is_allocation_chosen() -> bool:
    """Return whether the environment says how glibc allocates; large pages do not matter here."""
    tunables = os.environ.get("GLIBC_TUNABLES", "").replace("glibc.malloc.hugetlb", "")
    return "glibc.malloc." in tunables or any(name.startswith("MALLOC_") for name in os.environ)


def keep_freed_memory() -> None:
    """Have glibc keep freed memory in the process, unless the environment says how it allocates.

    On a CPU a training step allocates some hundred MB and frees them again. glibc returns blocks of
    that size to Linux, which clears every page again for the next step: a quarter of the time of a
    step. Called before JAX is imported. Threads keep their own arenas: with one for all, processes
    that had compiled their programs were half as fast (docs/speed-changes.md).
    """
    if sys.platform != "linux" or is_allocation_chosen():
        return
    with contextlib.suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1)):
            mallopt(parameter, value)
