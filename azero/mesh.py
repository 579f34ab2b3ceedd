"""Start-up of one or many hosts, the device mesh, and who is the lead host."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib.version import __version_info__ as jaxlib_version

from azero.types import PyTree

MAX_CPU_DEVICES = 16
"""Most devices that one host's CPU is split into; games and batches must divide by them."""
THREADS_PER_CPU_DEVICE = 4
"""Threads of XLA's pool for each device of a CPU. One that waits for the other devices' share of a sum holds a thread; with no thread left to compute that share, a
run would stand still."""
STUCK_SECONDS = 3600
"""XLA ends the process when the devices of a CPU have waited so long for each other; its own 40 s are too few for a machine that is busy with other things."""
DATA_AXIS = "data"
"""The one mesh axis: games in self-play, positions in learning."""


def start(distributed: str = "auto") -> None:
    """Join the other hosts of a cluster, where there are any, and make a CPU as many devices as it has cores. Call before anything touches a device.

    Raises:
      ValueError: `distributed` is "on" and no cluster was found.
    """
    split_cpu()
    if distributed == "off" or jax.distributed.is_initialized():
        return
    if distributed == "auto" and not _in_cluster():
        return
    jax.distributed.initialize()


def split_cpu() -> None:
    """Make one device per core of the CPU (the largest power of two), unless the environment says how many.

    XLA runs most of a network on one core per device, so two devices on two cores evaluate almost twice as many positions.
    """
    chosen = "JAX_NUM_CPU_DEVICES" in os.environ or "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not chosen and not jax.distributed.is_initialized():
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with contextlib.suppress(RuntimeError):  # a backend is in use already: it keeps the devices it has
            count = 1 << (min(cores, MAX_CPU_DEVICES).bit_length() - 1)
            jax.config.update("jax_num_cpu_devices", count)
            os.environ.setdefault("PJRT_NPROC", str(THREADS_PER_CPU_DEVICE * count))
            if jaxlib_version >= (0, 9):  # older ones end the process at a flag they do not know
                os.environ["XLA_FLAGS"] = f"--xla_cpu_collective_call_terminate_timeout_seconds={STUCK_SECONDS} " + os.environ.get("XLA_FLAGS", "")


def _in_cluster() -> bool:
    """Whether the environment names several hosts (explicit coordinator, Slurm, Open MPI, or a multi-host TPU slice)."""
    environment = os.environ
    tpu_hosts = [host for host in environment.get("TPU_WORKER_HOSTNAMES", "").split(",") if host]
    return bool(
        environment.get("JAX_COORDINATOR_ADDRESS")
        or int(environment.get("SLURM_NTASKS", "1") or 1) > 1
        or int(environment.get("OMPI_COMM_WORLD_SIZE", "1") or 1) > 1
        or len(tpu_hosts) > 1
    )


def is_lead() -> bool:
    """Return whether this process is the one that logs and writes the small files."""
    return jax.process_index() == 0


def make_mesh(devices: list[Any] | None = None) -> Mesh:
    """Return the mesh of all devices (of all hosts) along the data axis."""
    devices = jax.devices() if devices is None else devices
    return Mesh(np.asarray(devices), (DATA_AXIS,), axis_types=(AxisType.Auto,))


def replicated(mesh: Mesh) -> NamedSharding:
    """Return the sharding of parameters: a copy on every device."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharded(mesh: Mesh) -> NamedSharding:
    """Return the sharding of games and positions: split over the devices along the first axis."""
    return NamedSharding(mesh, PartitionSpec(DATA_AXIS))


def put(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Place host or device arrays under `sharding` (every host passes the same global value)."""

    def place(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.device_put(leaf, sharding)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(place, tree)


def smallest(value: int) -> int:
    """Return the smallest of the hosts' values, so that all of them decide alike."""
    if jax.process_count() == 1:
        return value
    return int(multihost_utils.process_allgather(np.asarray(value)).min())


def check_divides(count: int, mesh: Mesh, setting: str) -> None:
    """Check that `count` splits evenly over the devices.

    Raises:
      ValueError: it does not; the message names the setting and both numbers.
    """
    if count % mesh.size:
        raise ValueError(
            f"{setting} = {count} does not divide over the {mesh.size} devices; the nearest that does is {max(mesh.size, count // mesh.size * mesh.size)}"
        )
