"""Search, self-play and learning of a committed network compute the stored numbers: unoptimised, on
eight devices, and as users run them."""

import copy
import json
import os
import subprocess
import sys

import golden
import pytest

WANTED = json.loads(golden.STORED.read_text())


@pytest.mark.parametrize("devices", [1, 8])
def test_these_tests_flags(devices: int) -> None:
    assert not golden.differences(golden.compute(devices), WANTED)


def test_the_flags_of_users() -> None:
    environment = {**os.environ, "XLA_FLAGS": "", "JAX_NUM_CPU_DEVICES": "1"}
    done = subprocess.run(
        [sys.executable, str(golden.STORED.with_suffix(".py"))],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0
    assert not golden.differences(json.loads(done.stdout), WANTED)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("puct visits", "puct"),
        ("gumbel weights", "gumbel"),
        ("selfplay action", "selfplay"),
        ("train metrics", "train"),
        ("train changes", "train"),
    ],
)
def test_what_differs_is_found(name: str, part: str) -> None:
    other = copy.deepcopy(WANTED)
    for row in other[name][0]:
        row[0] += 1
    found = golden.differences(other, WANTED)
    assert [line.split(",")[0] for line in found] == [part]
    assert name in found[0]
    assert not golden.differences(WANTED, WANTED)
