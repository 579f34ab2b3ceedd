"""Elastic self-play on Ray: workers as actors, wherever Ray has resources. Ray is an extra: only
this module and `workers` import it, and only --cluster them."""

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import jax
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from azero.console.progress import working
from azero.console.terminal import make_console
from azero.train.arguments import ClusterOptions
from azero.train.cluster.elastic import Elastic, Worker
from azero.train.cluster.workers import WorkerPool, last_line
from azero.train.estimate import positions_per_iteration
from azero.train.loop import Loop, RunState
from azero.train.selfplay_run import WorkerBackend
from azero.train.stage import Iterate
from azero.train.stopping import StopRequest

LOCAL = "ray"
"""The value of --cluster that starts Ray on this machine."""
AUTO = "auto"
"""The value of --cluster for the cluster that this machine is part of."""
_ANSWER_SECONDS = 10.0
"""Seconds that a cluster's head may take to answer."""
_OBJECT_STORE_BYTES = 1 << 30
"""Shared memory of a Ray started here: some copies of the largest network (AGZ's 40 blocks: 190 MB)
and the games in flight; allocated only as used."""
_SHARE_OF_GPU = 0.9
"""Share of its part of a GPU that a worker preallocates; the rest is for CUDA (JAX takes 0.75 of a
whole GPU)."""


@contextlib.contextmanager
def open_cluster(options: ClusterOptions) -> Iterator[WorkerBackend]:
    """Connect to Ray, or start it here; yield how iterations are run with its workers. Call it
    before anything touches a device.

    Raises:
      ValueError: there is no Ray at the address, or no such GPUs for the learner.
    """
    address = options.cluster or LOCAL
    with working(
        "starting Ray" if address == LOCAL else f"connecting to Ray at {address}", make_console()
    ):
        _connect(address, options.cluster_without_token)

    @contextlib.contextmanager
    def start_workers(
        loop: Loop, state: RunState, stop: StopRequest
    ) -> Iterator[Iterate[RunState]]:
        pool = WorkerPool(
            _worker_starter(options, loop, state.iteration),
            options.workers,
            max_waiting=positions_per_iteration(loop.config),
        )
        with contextlib.closing(pool):
            try:
                yield Elastic(loop, pool, lambda: stop.is_set).iterate
            except RayError as error:  # such as a full object store
                problem = f"--cluster {address}: Ray has failed: {last_line(error)}"
                raise ValueError(f"{problem}; the same command continues the run") from error

    try:
        if options.learner_gpus:
            # the GPUs are the learner's for as long as this actor is referred to
            reserved = _reserve_gpus(options.learner_gpus)
            os.environ["CUDA_VISIBLE_DEVICES"] = ray.get(reserved.gpus.remote())
        yield start_workers
    finally:
        ray.shutdown()


def _connect(address: str, takes_any: bool) -> None:
    if address.startswith("ray://"):
        raise ValueError(
            f"--cluster {address}: the learner must be part of the cluster, not a client, or it "
            "would lose all workers with its connection; run the command on one of the cluster's "
            "machines, with --cluster auto"
        )
    has_token = os.environ.get("RAY_AUTH_MODE") == "token"
    if address == LOCAL and not has_token:
        raise ValueError(
            "--cluster ray: Ray was imported before, without a token, so its ports would be open "
            "to everybody; start the run in a separate process"
        )
    # no usage statistics from a Ray started here
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address == LOCAL:
            ray.init(
                "local", include_dashboard=False, object_store_memory=_OBJECT_STORE_BYTES, **quiet
            )
        else:
            if address != AUTO:
                _check_answers(address)
            if not (has_token or takes_any):
                raise ValueError(
                    "anyone who can reach the ports of a Ray without a token can run any program "
                    "on its machines; start every part of it, and this, with RAY_AUTH_MODE=token "
                    "and one RAY_AUTH_TOKEN, or, if nobody else is on the network, add "
                    "--cluster-without-token"
                )
            ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise ValueError(f"--cluster {address}: {last_line(error)}") from error


def _check_answers(address: str) -> None:
    """Raise ValueError or OSError unless something answers at HOST:PORT: Ray itself tries for
    minutes."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise ValueError(
            f"an address is HOST:PORT, or {AUTO} on a machine of the cluster; {LOCAL} "
            f"starts Ray here"
        )
    socket.create_connection((host, int(port)), _ANSWER_SECONDS).close()


class GpuHolder:
    """Reserves GPUs of the learner's machine, so that Ray gives them to no worker."""

    def gpus(self) -> str:
        """Return their numbers as CUDA_VISIBLE_DEVICES has them."""
        return ",".join(ray.get_runtime_context().get_accelerator_ids()["GPU"])


def _reserve_gpus(count: int) -> Any:
    """Reserve `count` GPUs of this machine; return the actor that holds them.

    Raises:
      ValueError: this machine has fewer, as far as Ray knows.
    """
    node = ray.get_runtime_context().get_node_id()
    there = next(row["Resources"].get("GPU", 0) for row in ray.nodes() if row["NodeID"] == node)
    if there < count:
        raise ValueError(f"--learner-gpus {count}: Ray has {there:g} GPUs on this machine")
    here = NodeAffinitySchedulingStrategy(node, soft=False)
    return (
        ray.remote(GpuHolder).options(num_cpus=0, num_gpus=count, scheduling_strategy=here).remote()
    )


def _worker_starter(options: ClusterOptions, loop: Loop, iteration: int) -> Callable[[int], Any]:
    """Return the function that starts the actor of worker number n."""
    resources = {"TPU": options.worker_tpus} if options.worker_tpus else None
    actor = ray.remote(Worker).options(
        num_cpus=options.worker_cpus,
        num_gpus=options.worker_gpus,
        resources=resources,
        max_restarts=0,
        runtime_env={"env_vars": _environment(options)},
    )
    config, starts = ray.put(loop.config), ray.put(jax.device_get(loop.starts))
    return lambda number: actor.remote(config, starts, jax.default_backend(), iteration, number)


def _environment(options: ClusterOptions) -> dict[str, str]:
    """Return the environment of a worker's process, which limits it to its own devices."""
    # a power of two, by which games divide
    environment = {"JAX_NUM_CPU_DEVICES": str(1 << (options.worker_cpus.bit_length() - 1))}
    if not options.worker_gpus and not options.worker_tpus:
        environment["JAX_PLATFORMS"] = "cpu"
    if 0 < options.worker_gpus < 1:
        environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{_SHARE_OF_GPU * options.worker_gpus:.2f}"
    return environment
