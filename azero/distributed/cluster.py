"""Joining the other processes of a run through JAX's multi-controller runtime."""

import contextlib
import json
import os
import secrets
import signal
import threading
import time
import traceback
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

from azero import mesh as mesh_lib
from azero.console.standard_output import say
from azero.cores import explain_devices
from azero.distributed import rendezvous
from azero.distributed.links import EXIT_INTERRUPTED, ProcessLinks, end_process, progress
from azero.distributed.token import load_or_create_token, wait_for_token
from azero.memory import explain_exhaustion
from azero.train.settings import RunConfig

_EXPLAINED = (ValueError, FloatingPointError, OSError, KeyboardInterrupt)
"""Exceptions whose text is enough for the user; others are printed with a traceback."""
_METADATA_SECONDS = 2.0
"""Google's metadata server answers within milliseconds; elsewhere its name does not exist."""
_CONNECT_SECONDS = 30.0
"""Processes that JAX has joined connect to process 0 within this time, or run without the
connection."""
_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
)
"""Variables of Open MPI and Slurm: number of processes, index of this one, its index on the
host."""


@contextlib.contextmanager
def join_cluster(settings: RunConfig, workdir: Path) -> Iterator[ProcessLinks]:
    """Join the other processes of the run, if there are any, and end with them: when one fails or
    dies, all report it and stop. Call this before anything touches a device.

    Raises:
      ValueError: the processes cannot be joined; the text says why.
    """
    links = join(settings, workdir)
    links.watch()
    try:
        with explain_devices(), explain_exhaustion():
            yield links
    except BaseException as error:
        links.wait_for_failure_notice()
        is_stopped = isinstance(error, KeyboardInterrupt)
        reason = " ".join(str(error).split()) or type(error).__name__
        links.broadcast_failure(
            "it was stopped" if is_stopped else reason, EXIT_INTERRUPTED if is_stopped else 2
        )
        if not isinstance(error, _EXPLAINED) and jax.distributed.is_initialized():
            traceback.print_exc()
            end_process(1)
        raise
    links.leave()


def join(settings: RunConfig, workdir: Path) -> ProcessLinks:
    """Join the other processes of the run; a run of one process gets links without connections.
    The token is in `workdir`, if not in the environment.

    Raises:
      ValueError: they cannot be joined: settings that do not fit each other, a wrong address, a
        process that does not come or comes twice.
    """
    mesh_lib.split_cpu()
    needs_coordinator = {
        settings.coordinator_bind,
        settings.num_processes,
        settings.process_id,
    } != {None}
    if jax.distributed.is_initialized():
        return ProcessLinks(jax.process_index(), {}, {})
    if settings.distributed == "off":
        if needs_coordinator or settings.coordinator is not None:
            raise ValueError(
                "run.coordinator, run.coordinator-bind, run.num-processes and run.process-id need "
                "run.distributed auto or on"
            )
        return ProcessLinks(0, {}, {})
    if settings.coordinator is not None:
        return _join_at(settings, settings.coordinator, workdir)
    if needs_coordinator:
        raise ValueError(
            "run.coordinator-bind, run.num-processes and run.process-id need run.coordinator, the "
            "HOST:PORT of process 0"
        )
    if settings.distributed == "auto" and not in_cluster(os.environ):
        return ProcessLinks(0, {}, {})
    return _join_detected(settings)


def _join_at(settings: RunConfig, coordinator: str, workdir: Path) -> ProcessLinks:
    """Join at the address in the settings: the rendezvous first, then JAX's runtime on the same
    port."""
    host, port = _parse_address(coordinator)
    bind = settings.coordinator_bind or host
    count, process, local = _find_numbers(settings, os.environ)
    began = time.monotonic()
    seconds = settings.join_seconds
    if process == 0:
        token = load_or_create_token(workdir)
        listener = rendezvous.listen(bind, port)
        links = rendezvous.wait_for_processes(listener, count, seconds, token)
    else:
        links = rendezvous.connect(
            (host, port), process, count, seconds, lambda: wait_for_token(workdir, process)
        )
    left = max(10, int(seconds - (time.monotonic() - began)))
    _initialize(
        left,
        coordinator_address=coordinator,
        coordinator_bind_address=f"[{bind}]:{port}" if ":" in bind else f"{bind}:{port}",
        num_processes=count,
        process_id=process,
        local_device_ids=local,
        cluster_detection_method="deactivate",
    )
    return links


def _join_detected(settings: RunConfig) -> ProcessLinks:
    """Join through JAX's own cluster detection, then open the connections, at an address and with a
    token that the lead sends through JAX."""
    with progress("joining the other processes that JAX finds"):
        _initialize(settings.join_seconds)
    count = jax.process_count()
    if count == 1:
        return ProcessLinks(0, {}, {})
    try:
        if mesh_lib.is_lead():
            token = secrets.token_hex(32)
            try:
                listener = rendezvous.listen(rendezvous.own_address(), 0)
            except ValueError:
                mesh_lib.from_lead("[]")
                raise
            mesh_lib.from_lead(json.dumps([token, *listener.getsockname()[:2]]))
            return rendezvous.wait_for_processes(listener, count, _CONNECT_SECONDS, token)
        answer = json.loads(mesh_lib.from_lead(""))
        if not answer:
            raise ValueError("process 0 cannot listen for the others")
        token, host, port = answer
        return rendezvous.connect(
            (host, port), jax.process_index(), count, _CONNECT_SECONDS, lambda: token
        )
    except ValueError as error:
        say(
            f"azero: {error}. The run continues, but only JAX will detect the end of a process, "
            "after a minute or more"
        )
        return ProcessLinks(jax.process_index(), {}, {})


def _initialize(seconds: int, **arguments: Any) -> None:
    """Start JAX's runtime.

    Raises:
      ValueError: it does not start in time.
    """
    before = signal.getsignal(signal.SIGTERM)
    try:
        jax.distributed.initialize(initialization_timeout=seconds, **arguments)
    except (ValueError, RuntimeError, OSError) as error:
        reason = " ".join(str(error).split())
        if "must be defined" in reason or "should be defined" in reason:
            reason = (
                "JAX finds no cluster here; give the address of process 0: run.coordinator "
                "HOST:PORT, run.num-processes, run.process-id"
            )
        alone = "" if arguments else "; for a run of this process alone: run.distributed off"
        raise ValueError(f"cannot join the other processes: {reason[:300]}{alone}") from error
    # JAX installs a SIGTERM handler for its own preemption notice; ours is
    # `azero.train.stopping`.
    if before is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _parse_address(text: str) -> rendezvous.Address:
    """Return the host, without the brackets of IPv6, and the port of HOST:PORT.

    Raises:
      ValueError: the text is not such an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(
            f"run.coordinator = {text!r} is not HOST:PORT, the host of process 0 and a free port "
            "on it"
        )
    return host.strip("[]"), int(port)


def _find_numbers(
    settings: RunConfig, environment: Mapping[str, str]
) -> tuple[int, int, list[int] | None]:
    """Return the number of processes, the index of this one, and the devices of its host that it
    uses (None: all of them).

    Raises:
      ValueError: neither the settings nor a launcher give them, or they do not fit each other.
    """
    count, process, local = settings.num_processes, settings.process_id, None
    for size, rank, local_rank in _LAUNCHERS:
        if count is None and process is None and size in environment and rank in environment:
            count, process = int(environment[size]), int(environment[rank])
            local = [int(environment[local_rank])] if local_rank in environment else None
    if count is None or process is None:
        raise ValueError(
            "run.coordinator also needs run.num-processes and run.process-id, unless a launcher "
            "(Slurm, Open MPI) sets them"
        )
    if not 0 <= process < count:
        raise ValueError(
            f"run.process-id = {process} is not one of the {count} processes, which count from 0"
        )
    return count, process, local


def in_cluster(environment: Mapping[str, str]) -> bool:
    """Return whether the environment names several processes: Slurm, Open MPI, or a TPU slice of
    several hosts (GKE, multislice, Cloud TPU VM)."""

    def number(name: str) -> int:
        return int(environment.get(name) or 1)

    counts = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "MEGASCALE_NUM_SLICES")
    lists = ("TPU_PROCESS_ADDRESSES", "TPU_WORKER_HOSTNAMES")
    hosts = next((environment[name] for name in lists if environment.get(name)), "")
    return bool(
        environment.get("JAX_COORDINATOR_ADDRESS")
        or any(number(name) > 1 for name in counts)
        or len([host for host in hosts.split(",") if host]) > 1
        or (_has_tpu(environment) and _tpu_vm_hosts(environment) > 1)
    )


def _has_tpu(environment: Mapping[str, str]) -> bool:
    """Return whether this may be a Cloud TPU VM, judged by its device files."""
    platforms = environment.get("JAX_PLATFORMS", "")
    devices = Path("/dev")
    return (
        platforms in ("", "tpu")
        and "TPU_SKIP_MDS_QUERY" not in environment
        and any((*devices.glob("accel[0-9]*"), *devices.glob("vfio/[0-9]*")))
    )


def _tpu_vm_hosts(environment: Mapping[str, str]) -> int:
    """Return the number of hosts of this Cloud TPU VM's slice from Google's metadata server; 1
    without such a server."""
    server = environment.get("GCE_METADATA_IP", "metadata.google.internal")
    address = f"http://{server}/computeMetadata/v1/instance/attributes/worker-network-endpoints"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers={"Metadata-Flavor": "Google"}),
            timeout=_METADATA_SECONDS,
        ) as answer:
            return len(answer.read().decode().split(","))
    except OSError:
        return 1
