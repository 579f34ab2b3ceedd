"""Starts the processes of a run, each a program of its own with one CPU device, as the hosts of a
cluster would be."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

FLAGS = {
    "network.blocks": 2,
    "network.filters": 4,
    "network.convolution": "xla",
    "search.num-simulations": 2,
    "selfplay.num-games": 8,
    "selfplay.moves-per-dispatch": 4,
    "selfplay.dispatches-per-iteration": 2,
    "selfplay.resign-min-games": 2,
    "replay.min-positions": 1,
    "learner.batch-size": 8,
    "learner.steps-per-iteration": 2,
    "evaluation.every": 0,
    "checkpoint.every": 1,
    "run.iterations": 4,
    "run.join-seconds": 60,
}
"""A run of tic-tac-toe whose iterations take a moment."""

LIFETIME_SECONDS = 120.0
"""No process of a test lives longer: one that waits for ever fails its test."""


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def command(workdir: Path, *extra: str, experiment: str = "tictactoe") -> list[str]:
    """Return the command of a small run; flags in `extra` come last, so they count."""
    flags = [word for name, value in FLAGS.items() for word in (f"--{name}", str(value))]
    return [
        sys.executable,
        "-m",
        f"azero.experiments.{experiment}",
        "--workdir",
        str(workdir),
        *flags,
        *extra,
    ]


def launch(program: Sequence[str], devices: int = 1, **environment: str) -> subprocess.Popen[str]:
    """Start a program with so many CPU devices; it is killed when its time is over."""
    merged = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_NUM_CPU_DEVICES": str(devices),
        **environment,
    }
    process = subprocess.Popen(
        list(program), env=merged, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    end = threading.Timer(LIFETIME_SECONDS, process.kill)
    end.daemon = True
    end.start()
    return process


def launch_all(*programs: Sequence[str]) -> list[subprocess.Popen[str]]:
    """Start programs as the processes of one run."""
    where = [
        "--run.coordinator",
        f"127.0.0.1:{free_port()}",
        "--run.num-processes",
        str(len(programs)),
    ]
    return [
        launch([*program, *where, "--run.process-id", str(process)])
        for process, program in enumerate(programs)
    ]


def finish(
    processes: Sequence[subprocess.Popen[str]], seconds: float = 110.0
) -> list[tuple[int, str, str]]:
    """Wait for the processes; return exit status, output and error output of each. Those that do
    not end are killed."""
    end = time.monotonic() + seconds
    try:
        results = []
        for process in processes:
            output, error = process.communicate(timeout=max(1.0, end - time.monotonic()))
            results.append((process.returncode, output, error))
        return results
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)


def wait_for(
    condition: Callable[[], bool], processes: Sequence[subprocess.Popen[str]], seconds: float = 90.0
) -> None:
    """Wait until `condition` holds while the processes run."""
    end = time.monotonic() + seconds
    while not condition():
        ended = [process for process in processes if process.poll() is not None]
        assert not ended, ended[0].communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
