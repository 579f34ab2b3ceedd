"""Products with reductions compute what numpy computes, in the programs that users run: XLA's
default optimisation, and the flags that `import azero` sets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import programs
import pytest

SCRIPT = Path(programs.__file__)


@pytest.fixture(scope="module")
def wrong() -> dict[str, str]:
    """What is wrong with each program, from one process for all; those behind one that ended the
    process are missing."""
    environment = {
        **os.environ,
        "XLA_FLAGS": "",
        "JAX_NUM_CPU_DEVICES": "1",
        "PYTHONPATH": os.pathsep.join([str(SCRIPT.parents[2]), *sys.path[1:]]),
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=600,
    )
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    missing = [name for name in programs.programs() if name not in found]
    return (
        found
        if not missing
        else {**found, missing[0]: f"the process ended with status {done.returncode}"}
    )


@pytest.mark.parametrize("name", programs.programs())
def test_program(name: str, wrong: dict[str, str]) -> None:
    assert name in wrong, "not reached"
    assert not wrong[name], wrong[name]
