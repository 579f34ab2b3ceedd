"""The cores of this machine's CPU, how many devices JAX makes of them, and its failure to start
devices as one line. This needs no JAX."""

import contextlib
import os
import traceback
from collections.abc import Iterator

MAX_CPU_DEVICES = 16
"""Most devices that one host's CPU is split into; games and batches must divide by them."""
DEVICES_VARIABLE = "JAX_NUM_CPU_DEVICES"


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def num_cpu_devices() -> int:
    """Return the number of CPU devices: the largest power of two with at least one core each."""
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


@contextlib.contextmanager
def explain_devices() -> Iterator[None]:
    """Turn a failure of JAX to start its devices into one line.

    Raises:
      ValueError: it failed; the message has JAX's reason and the variables that choose devices.
    """
    try:
        yield
    except (RuntimeError, AssertionError) as error:
        if not traceback.extract_tb(error.__traceback__)[-1].filename.endswith("xla_bridge.py"):
            raise
        variables = ("JAX_PLATFORMS", DEVICES_VARIABLE)
        given = [f"{name}={os.environ[name]}" for name in variables if os.environ.get(name)]
        reason = " ".join(str(error).split()) or "there is no device of these platforms"
        raise ValueError(
            f"JAX cannot start its devices: {reason}"
            + (f"; the environment has {', '.join(given)}" if given else "")
        ) from error
