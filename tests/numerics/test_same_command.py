"""The same command with the same seed makes the same network, whatever else the machine does."""

import contextlib
import dataclasses
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from azero.checkpoint import list_checkpoints
from azero.experiment import load
from azero.train.resolving import resolve_settings

SETTINGS = {
    "network.convolution": "auto",
    "network.blocks": 2,
    "network.filters": 8,
    "search.num-simulations": 4,
    "selfplay.num-games": 8,
    "selfplay.moves-per-dispatch": 4,
    "replay.min-positions": 1,
    "learner.batch-size": 8,
    "learner.steps-per-iteration": 4,
    "evaluation.every": 0,
    "checkpoint.every": 1,
    "run.iterations": 3,
}


def digests(workdir: Path) -> list[str]:
    """Run the command with XLA's default flags and return the digests of its checkpoints, oldest
    first."""
    environment = {**os.environ, "XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": "2"}
    environment.pop("JAX_COMPILATION_CACHE_DIR")  # the second run compiles for itself
    environment["XDG_CACHE_HOME"] = str(workdir) + "-cache"
    command = [sys.executable, "-m", "azero.experiments.tictactoe", "--workdir", str(workdir)]
    command += [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout
    return [found.digest for found in list_checkpoints(workdir)]


def spin() -> None:
    while True:
        pass


@contextlib.contextmanager
def every_core_busy() -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    spinners = [context.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for spinner in spinners:
        spinner.start()
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()


@pytest.mark.slow
def test_the_same_command_twice_once_on_a_busy_machine(tmp_path: Path) -> None:
    calm = digests(tmp_path / "calm")
    with every_core_busy():
        assert digests(tmp_path / "busy") == calm
    assert calm


def test_nothing_is_run_to_settle_the_convolution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a program is run, and so perhaps timed")

    monkeypatch.setattr(jax, "block_until_ready", refuse)
    config = load("tictactoe").config
    assert config.network.convolution == "auto"
    settled = [resolve_settings(config, tmp_path).network for _ in range(2)]
    assert settled[0] == settled[1]
    assert settled[0].convolution != "auto"
    assert (
        dataclasses.replace(
            settled[0], convolution="auto", train_dtype="float32", inference_dtype="float32"
        )
        == config.network
    )
