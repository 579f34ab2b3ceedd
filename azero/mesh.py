"""The devices of one or many hosts as a mesh, arrays on it, and exchanges between the processes."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib.version import __version_info__ as jaxlib_version

from azero.cores import is_cpu_split_chosen, num_cpu_devices
from azero.types import PyTree

STUCK_SECONDS = 600
"""XLA ends the process when the devices of a CPU have waited this long for each other; its default
of 40 s is too short for a busy machine."""
DATA_AXIS = "data"
"""The one mesh axis: games in self-play, positions in learning."""


def split_cpu() -> None:
    """Make one device per core of the CPU (the largest power of two), unless the environment says
    how many.

    XLA runs most of a network on one core per device, so two devices on two cores evaluate almost
    twice as many positions.
    """
    if not is_cpu_split_chosen() and not jax.distributed.is_initialized():
        # a backend is in use already: it keeps the devices it has
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", num_cpu_devices())
            if jaxlib_version >= (0, 9):  # older ones end the process at a flag they do not know
                os.environ["XLA_FLAGS"] = (
                    f"--xla_cpu_collective_call_terminate_timeout_seconds={STUCK_SECONDS} "
                    + os.environ.get("XLA_FLAGS", "")
                )


def is_lead() -> bool:
    """Return whether this process is the one that logs and writes the small files."""
    return jax.process_index() == 0


def make_mesh(devices: list[Any] | None = None) -> Mesh:
    """Return the mesh of all devices (of all hosts) along the data axis; those of a process are
    neighbours, so that it has one range of games and positions.

    Raises:
      ValueError: the processes have different numbers of devices.
    """
    if devices is None:
        devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
        counts = Counter(device.process_index for device in devices)
        if len(set(counts.values())) > 1:
            listed = ", ".join(
                f"process {process} has {count}" for process, count in sorted(counts.items())
            )
            raise ValueError(f"every process needs the same number of devices, but {listed}")
    return Mesh(np.asarray(devices), (DATA_AXIS,), axis_types=(AxisType.Auto,))


def platform_dependent(
    *arguments: Any, default: Callable[..., Any], **branches: Callable[..., Any]
) -> Any:
    """Call the branch of the platform ("cpu", "tpu") that the program is for, else `default`; all
    of them compute the same.

    The devices of a `jax.shard_map` say which one while the program is traced, and the others are
    not traced, which halves the time of tracing (docs/speed-changes.md). Elsewhere
    `jax.lax.platform_dependent` traces all of them and chooses when the program is lowered.
    """
    device = getattr(jax.sharding.get_abstract_mesh(), "abstract_device", None)
    if device is None:  # no shard_map
        return jax.lax.platform_dependent(*arguments, default=default, **branches)
    kind = device.device_kind.lower()  # "cpu", "TPU v5 lite", "NVIDIA H200"
    branch = next((branches[name] for name in branches if kind.startswith(name)), default)
    return branch(*arguments)


def replicated(mesh: Mesh) -> NamedSharding:
    """Return the sharding of parameters: a copy on every device."""
    return NamedSharding(mesh, PartitionSpec())


def batch_sharded(mesh: Mesh) -> NamedSharding:
    """Return the sharding of games and positions: split over the devices along the first axis."""
    return NamedSharding(mesh, PartitionSpec(DATA_AXIS))


def shapes(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Return the shapes of arrays with the sharding `sharding`."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding), tree
    )


def put(tree: PyTree, sharding: NamedSharding) -> PyTree:
    """Place host or device arrays under `sharding` (every host passes the same global value)."""

    def place(leaf: Any) -> Any:
        if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.device_put(leaf, sharding)
        host = np.asarray(leaf)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(place, tree)


def process_slice(count: int) -> slice:
    """Return which rows of a batch of `count` are this process's own."""
    size = count // jax.process_count()
    return slice(jax.process_index() * size, (jax.process_index() + 1) * size)


def fetch(leaf: Any) -> np.ndarray:
    """Return a copy of the whole array in this host's memory; if it is sharded over several
    processes, all of them call this."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        leaf = (
            leaf.addressable_data(0)
            if leaf.is_fully_replicated
            else multihost_utils.process_allgather(leaf, tiled=True)
        )
    return np.array(leaf)


def gather(values: np.ndarray) -> np.ndarray:
    """Return the arrays [...] of all P processes, which have one shape, as [P, ...] in every
    process."""
    return (
        np.asarray(values)[None]
        if jax.process_count() == 1
        else np.asarray(multihost_utils.process_allgather(values))
    )


def gather_rows(rows: np.ndarray) -> np.ndarray:
    """Return the rows [N, ...] of all processes, concatenated; N may differ between processes."""
    if jax.process_count() == 1:
        return rows
    counts = gather(np.asarray(len(rows), np.int32))
    # A power of two, so that the program that gathers is compiled for few shapes.
    padded = np.zeros((1 << int(counts.max(initial=0)).bit_length(), *rows.shape[1:]), rows.dtype)
    padded[: len(rows)] = rows
    return np.concatenate(
        [part[:count] for part, count in zip(gather(padded), counts, strict=True)]
    )


def from_lead(text: str) -> str:
    """Return the lead's `text` in every process; what the others pass is ignored."""
    if jax.process_count() == 1:
        return text
    content = np.frombuffer(text.encode(), np.uint8) if is_lead() else np.zeros(0, np.uint8)
    size = int(multihost_utils.broadcast_one_to_all(np.asarray(len(content), np.int32)))
    padded = np.zeros(1 << size.bit_length(), np.uint8)
    padded[: len(content)] = content
    return bytes(np.asarray(multihost_utils.broadcast_one_to_all(padded), np.uint8)[:size]).decode()


def min_of_processes(value: int) -> int:
    """Return the minimum of all processes' values, so that all of them decide alike."""
    return int(gather(np.asarray(value)).min())


def check_divides(count: int, mesh: Mesh, setting: str) -> None:
    """Check that `count` splits evenly over the devices.

    Raises:
      ValueError: it does not; the message names the setting and both numbers.
    """
    if count % mesh.size:
        raise ValueError(
            f"{setting} = {count} is not divisible by the {mesh.size} devices; the "
            f"nearest multiple is {max(mesh.size, count // mesh.size * mesh.size)}"
        )
