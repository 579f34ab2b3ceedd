"""Elastic runs on a real Ray of this machine: a node joins, a worker is killed, what is learned is
what the one program learns; the command line."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from needs import require_module
from small_run import check_whole, small, stored

from azero import mesh as mesh_lib
from azero.checkpoint import list_checkpoints
from azero.data.sample import Batch, unpack
from azero.distributed import EXIT_INTERRUPTED
from azero.games.go.settings import GoConfig
from azero.learn.learner import place_samples, prediction_loss
from azero.train.arguments import ClusterOptions
from azero.train.events import Event, IterationDone
from azero.train.loop import Loop, RunState
from azero.train.stopping import StopRequest
from azero.types import PyTree

ray = require_module("ray")

OBJECT_STORE = 80 << 20
"""Bytes of shared memory of a node; Ray takes no less than 75 MiB."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray with one node, with room for one worker; tests may add nodes."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "object_store_memory": OBJECT_STORE,
            "include_dashboard": False,
        },
    )
    yield cluster
    cluster.shutdown()


class Watched:
    """An elastic run, an iteration at a time."""

    def __init__(self, iterate: Callable[[RunState], Iterator[Event]], state: RunState) -> None:
        self.iterate = iterate
        self.state = state
        self.notes: list[str] = []

    def step(self) -> None:
        for event in self.iterate(self.state):
            if isinstance(event, IterationDone):
                self.notes += event.warnings

    def until(self, text: str) -> str:
        """Go on until a note has `text`; return the note."""
        deadline = time.monotonic() + 300
        while not (found := [note for note in self.notes if text in note]):
            assert time.monotonic() < deadline, f"{text!r} does not come; the notes: {self.notes}"
            self.step()
        return found[0]


COMPARED = 80
"""Iterations after which what was learned is compared."""


def loss_on(loop: Loop, variables: PyTree, batch: Batch) -> float:
    """Return the loss of a network on `batch`, with the batch's own statistics."""
    outputs, _ = loop.network.train_apply(variables, batch.planes)
    losses = prediction_loss(loop.config.learner, outputs, batch)
    return float(losses.policy + losses.value)


def test_nodes_join_workers_are_killed_and_the_run_learns_what_the_one_program_learns(
    cluster, tmp_path
):
    from azero.train.cluster.ray import open_cluster

    config = small()
    loop = Loop(config, mesh_lib.make_mesh(), tmp_path / "elastic")
    with open_cluster(
        ClusterOptions(cluster=cluster.address, cluster_without_token=True, workers=2)
    ) as start_workers:
        state = loop.make_state(loop.fresh_arrays())
        with start_workers(loop, state, StopRequest()) as iterate:
            watched = Watched(iterate, state)
            # either may come first
            first = re.fullmatch(
                r"worker (\d) is ready: .*process (\d+),.*", watched.until("is ready")
            )
            watched.step()
            assert len([note for note in watched.notes if "is ready" in note]) == 1, (
                "there is room for one worker"
            )
            cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE)
            watched.until(f"worker {1 - int(first[1])} is ready")
            watched.step()
            os.kill(int(first[2]), signal.SIGKILL)
            watched.until(f"worker {first[1]} was lost with its unfinished games")
            watched.until("worker 2 is ready")
            while state.iteration < COMPARED:
                watched.step()
    rows, games = stored(state.replay, loop.game)
    check_whole(rows, games)
    assert games["number"][-1] == state.games - 1
    assert games["network"].min() >= 0
    assert (np.diff(games["network"], axis=1) >= 0).all()
    assert games["network"].max() <= state.iteration
    assert int(state.train.step) == config.learner.steps_per_iteration * state.iteration

    loop.workdir = tmp_path / "alone"
    alone = Watched(loop.iterate, loop.make_state(loop.fresh_arrays()))
    for _ in range(COMPARED):
        alone.step()
    # The losses of two runs on their own games cannot be compared: at 30 iterations those of 10 seeds
    # spread by 0.11 (standard deviation). On the same positions it can be said what each has gained.
    batch = unpack(
        loop.game,
        place_samples(loop.mesh, alone.state.replay.sample(seed=1, step=1, batch_size=2048)),
    )
    fresh, elastic, own = (
        loss_on(loop, train.variables, batch)
        for train in (loop.fresh_arrays()["train"], state.train, alone.state.train)
    )
    print(
        f"loss of the untrained network {fresh:.3f}, elastic {elastic:.3f}, one program {own:.3f}"
    )
    assert own < fresh - 0.5, "the one program learns"
    assert fresh - elastic > (fresh - own) / 3


def test_a_worker_that_cannot_start_ends_the_run_with_its_reason(cluster, tmp_path):
    from azero.train.cluster.ray import open_cluster

    loop = Loop(small(), mesh_lib.make_mesh(), tmp_path)
    with open_cluster(
        ClusterOptions(cluster=cluster.address, cluster_without_token=True, workers=1)
    ) as start_workers:
        state = loop.make_state(loop.fresh_arrays())
        # as a machine with another version would see it
        loop.config = dataclasses.replace(loop.config, game=GoConfig(planes=13))
        with (
            start_workers(loop, state, StopRequest()) as iterate,
            pytest.raises(
                ValueError, match=r"self-play has ended: .*num_planes is one of .*not 13"
            ),
        ):
            for _ in iterate(state):
                pass


def test_a_failure_of_ray_ends_the_run_in_one_line(monkeypatch):
    from azero.train.cluster import ray as elastic

    class FullPool:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            pass

        def publish(self, *orders: Any) -> None:
            raise ray.exceptions.ObjectStoreFullError("Failed to put an object")

        def close(self) -> None:
            pass

    monkeypatch.setattr(elastic, "_connect", lambda *arguments: None)
    monkeypatch.setattr(elastic, "_worker_starter", lambda *arguments: None)
    monkeypatch.setattr(elastic, "positions_per_iteration", lambda config: 1)
    monkeypatch.setattr(elastic, "WorkerPool", FullPool)
    monkeypatch.setattr(elastic.ray, "shutdown", lambda: None)
    loop, state = mock.MagicMock(), mock.MagicMock()
    with (
        pytest.raises(ValueError, match=r"--cluster ray: Ray has failed: .*continues the run"),
        elastic.open_cluster(ClusterOptions(cluster="ray")) as start_workers,
        start_workers(loop, state, StopRequest()) as iterate,
    ):
        for _ in iterate(state):
            pass


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("localhost:1", "--cluster localhost:1: .*[Rr]efused"),
        (
            "auto",
            "--cluster auto: anyone who can reach the ports of a Ray without a token can run "
            "any program on its machines; .*--cluster-without-token",
        ),
        ("here", "--cluster here: an address is HOST:PORT"),
        (
            "ray://localhost:10001",
            "--cluster ray://localhost:10001: the learner must be part of the cluster",
        ),
    ],
)
def test_a_wrong_address_is_refused_at_once(address, message):
    from azero.train.cluster.ray import open_cluster

    with pytest.raises(ValueError, match=message), open_cluster(ClusterOptions(cluster=address)):
        pass


def command(workdir: Path, iterations: int) -> subprocess.Popen:
    flags = [
        "--cluster",
        "ray",
        "--workers",
        "1",
        "--run.iterations",
        str(iterations),
        "--evaluation.every",
        "3",
        "--checkpoint.every",
        "1",
    ]
    flags += [
        "--network.blocks",
        "1",
        "--network.convolution",
        "xla",
        "--search.num-simulations",
        "4",
        "--selfplay.num-games",
        "16",
    ]
    words = [sys.executable, "-m", "azero.experiments.tictactoe", "--workdir", str(workdir), *flags]
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "1"}
    return subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def wait_for_rows(workdir: Path, process: subprocess.Popen, count: int) -> None:
    metrics = workdir / "metrics.jsonl"
    deadline = time.monotonic() + 300
    while not (metrics.exists() and metrics.read_bytes().count(b"\n") >= count):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, "the run does not come on"
        time.sleep(0.1)


def is_alive(session: int) -> bool:
    """Whether a process of the session is still there."""
    return (
        subprocess.run(
            ["ps", "-s", str(session), "-o", "pid="], capture_output=True, text=True, check=False
        ).stdout.strip()
        != ""
    )


@pytest.mark.slow
def test_the_command_is_stopped_killed_and_continued(tmp_path):
    """SIGINT to the whole group, as a terminal sends it; SIGTERM; SIGKILL; then the end. No process
    of the run outlives it."""
    rows = 0
    for number, status in (
        (signal.SIGINT, EXIT_INTERRUPTED),
        (signal.SIGTERM, EXIT_INTERRUPTED),
        (signal.SIGKILL, -signal.SIGKILL),
    ):
        process = command(tmp_path, 100_000)
        rows += 3
        wait_for_rows(tmp_path, process, rows)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == status, output
        assert "Traceback" not in output
        # After a SIGKILL Ray's agents look for their dead server for a minute (Ray 2.60).
        deadline = time.monotonic() + 180
        while is_alive(process.pid):
            assert time.monotonic() < deadline, "processes of the run are left"
            time.sleep(0.5)
        rows = list_checkpoints(tmp_path)[-1].iteration
    process = command(tmp_path, rows + 3)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert f"continuing after iteration {rows}" in output
    assert list_checkpoints(tmp_path)[-1].iteration == rows + 3
