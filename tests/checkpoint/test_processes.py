"""Checkpoints when the process dies, when the disk is full, and when there are two processes."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import saver
from needs import not_here

from azero.checkpoint import Checkpointer, CheckpointError, list_checkpoints

HERE = Path(__file__).parent


def test_killed_while_saving(tmp_path: Path, seed: int) -> None:
    """Whatever the moment, the last checkpoint that was reported done, or a later one, is whole."""
    for round_number in range(2):
        process = subprocess.Popen(
            [sys.executable, str(HERE / "saver.py"), str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        lines: list[str] = []
        while len(lines) < 5:
            lines.append(process.stdout.readline())
            assert lines[-1], "the program that saves has ended by itself"
        time.sleep(random.Random(seed + round_number).uniform(0, 0.12))
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.wait()
        done = max(int(line.split()[1]) for line in lines if line.startswith("done"))
        checkpointer = Checkpointer(tmp_path, saver.CONFIG)
        restored = checkpointer.restore(saver.make_arrays(0))
        assert restored is not None and restored.iteration in (done, done + 1)
        assert checkpointer.take_warnings() == []
        np.testing.assert_array_equal(
            restored.arrays["train"]["a"], saver.make_arrays(restored.iteration)["train"]["a"]
        )
        assert (restored.host["x"][0], restored.cursor["first_shard"]) == (
            restored.iteration,
            restored.iteration,
        )
        leftovers = [
            path.name
            for path in (tmp_path / "checkpoints" / "steps").iterdir()
            if not path.name.isdecimal()
        ]
        assert leftovers == []


def test_full_disk(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A tiny file system of memory has room for one checkpoint, not for two."""
    if (
        os.geteuid() != 0
        or os.system(f"mount -t tmpfs -o size=6m tmpfs {tmp_path} 2>/dev/null") != 0
    ):
        not_here("mounting a small file system needs root")
    try:
        noise = np.random.default_rng(0).integers(0, 256, 4_000_000, np.uint8)
        checkpointer = Checkpointer(tmp_path, saver.CONFIG)
        checkpointer.save(1, {"train": {"a": noise}}, {})
        checkpointer.wait()
        checkpointer.save(2, {"train": {"a": noise}}, {})
        with pytest.raises(
            CheckpointError,
            match=r"cannot save checkpoint 2 in .*: No space left on device; what was saved "
            r"before is untouched",
        ):
            checkpointer.wait()
        assert "Traceback" not in capfd.readouterr().err
        assert [row.iteration for row in list_checkpoints(tmp_path)] == [1]
        restored = checkpointer.restore({"train": {"a": noise}})
        assert restored is not None
        np.testing.assert_array_equal(restored.arrays["train"]["a"], noise)
        checkpointer.save(2, {"train": {"a": noise[:100_000]}}, {})
        checkpointer.close()
        assert [row.problem for row in list_checkpoints(tmp_path)] == ["", ""]
    finally:
        os.system(f"umount {tmp_path}")


@pytest.mark.parametrize(("options", "iteration"), [([], 2), (["damage"], 1)])
def test_two_processes(tmp_path: Path, options: list[str], iteration: int) -> None:
    """Each process gets its own state back; if one cannot, both go back to the checkpoint
    before."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = [
        [
            sys.executable,
            str(HERE / "two_processes.py"),
            str(process),
            str(port),
            str(tmp_path),
            *options,
        ]
        for process in range(2)
    ]
    programs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process, program in enumerate(programs):
        out, err = program.communicate(timeout=120)
        assert program.returncode == 0, err
        [line] = [line for line in out.splitlines() if "RESULT" in line]
        assert line.endswith(
            f"RESULT {iteration} {[10 * process + iteration] * 3} {{'shard': {process}}}"
        )
