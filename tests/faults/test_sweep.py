"""A fault at a file operation of a short run: the same command ends it like an undisturbed run.
`sweep.py` says how."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None,
    reason="the library that makes file operations fail needs Linux and a C compiler",
)


def sweep(*arguments: str) -> None:
    command = [sys.executable, str(Path(__file__).with_name("sweep.py")), *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.endswith("\n0 lost, 0 untidy\n"), done.stdout


def test_a_fault_at_some_operations():
    sweep("--first", "170", "--stride", "260")


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
def test_a_fault_at_every_operation():
    sweep()


@pytest.mark.slow
def test_a_fault_in_processes_that_are_really_killed():
    sweep("--processes", "--first", "40", "--stride", "150")
