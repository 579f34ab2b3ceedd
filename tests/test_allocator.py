import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource
from azero.allocator import keep_freed_memory

keep_freed_memory()
c = ctypes.CDLL(None)
c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
c.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
for round in range(5):
    if round == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = c.malloc(100 << 20)
    c.memset(block, 1, 100 << 20)
    c.free(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
@pytest.mark.parametrize(
    ("variables", "is_kept"),
    [
        ({}, True),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}, True),
        ({"MALLOC_ARENA_MAX": "8"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.arena_max=8:glibc.malloc.hugetlb=0"}, False),
    ],
)
def test_blocks_that_are_freed_are_used_again(variables, is_kept):
    """Linux clears each of the 25,600 pages of such a block when it is used for the first time."""
    allocation = ("MALLOC_", "GLIBC_TUNABLES")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(allocation)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=rest | variables, check=True, capture_output=True
    )
    faults = int(done.stdout)
    assert faults < 100 if is_kept else faults > 1000
