"""The cores of this machine's CPU, and how many devices JAX makes of them. This needs no JAX."""

from __future__ import annotations

import os

MAX_CPU_DEVICES = 16
"""Most devices that one host's CPU is split into; games and batches must divide by them."""
DEVICES_VARIABLE = "JAX_NUM_CPU_DEVICES"


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def num_cpu_devices() -> int:
    """Return one device per core, the largest power of two."""
    return 1 << (min(num_cores(), MAX_CPU_DEVICES).bit_length() - 1)


def is_cpu_split_chosen() -> bool:
    """Return whether the environment says how many devices a CPU has."""
    return DEVICES_VARIABLE in os.environ or "xla_force_host_platform_device_count" in (
        os.environ.get("XLA_FLAGS", "")
    )


def split_cpu_at_start() -> None:
    """Make one device per core of the CPU when JAX starts, unless the environment says how many.

    Engines evaluate a part of a batch on every device; see `azero.mesh.split_cpu`, which does the
    same when JAX has been imported.
    """
    if not is_cpu_split_chosen():
        os.environ[DEVICES_VARIABLE] = str(num_cpu_devices())
