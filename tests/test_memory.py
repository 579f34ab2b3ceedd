"""The memory of a container, divided among the processes of a run; what is said where it does not
suffice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero import memory
from azero.data import replay as replay_module
from azero.data.replay import Replay
from azero.data.settings import ReplayConfig
from azero.distributed import join_cluster
from azero.games.table import make
from azero.memory import OutOfMemoryError, explain_exhaustion, memory_bytes, process_memory_bytes
from azero.train.settings import RunConfig
from azero.train.stopping import end_with_status

GIB = 1 << 30


def tree(root, own, limits):
    """Write a tree of control groups; returns the arguments of `memory_bytes`."""
    for name, text in limits.items():
        path = root / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "own").write_text(own)
    return root / "cgroup", root / "own"


@pytest.mark.parametrize(
    ("own", "limits", "wanted"),
    [
        ("0::/pod/run\n", {"pod/run/memory.max": f"{GIB}\n"}, GIB),
        ("0::/pod/run\n", {"pod/memory.max": f"{GIB}\n", "pod/run/memory.max": "max\n"}, GIB),
        (
            "0::/pod/run\n",
            {"pod/memory.max": f"{GIB}\n", "pod/run/memory.max": f"{2 * GIB}\n"},
            GIB,
        ),
        ("0::/\n", {"memory.max": f"{GIB}\n"}, GIB),
        # a container that sees its own group as the top
        ("0::/../../outside\n", {"memory.max": f"{GIB}\n"}, GIB),
        (
            "5:cpu,cpuacct:/x\n4:memory:/pod\n0::/\n",
            {"memory/pod/memory.limit_in_bytes": f"{GIB}\n"},
            GIB,
        ),
        ("4:memory:/docker/abc\n", {"memory/memory.limit_in_bytes": f"{GIB}\n"}, GIB),
        ("4:memory:/pod\n", {"memory/pod/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("0::/pod\n", {"pod/memory.max": "max\n"}, None),
        ("0::/pod\n", {}, None),
    ],
)
def test_the_memory_is_that_of_the_control_group(own, limits, wanted, tmp_path):
    physical = memory_bytes(tmp_path / "none", tmp_path / "none")
    assert physical > GIB
    assert memory_bytes(*tree(tmp_path, own, limits)) == (wanted or physical)


def test_processes_of_one_machine_share_its_memory(monkeypatch):
    whole = memory_bytes()
    assert process_memory_bytes() == whole
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    monkeypatch.setattr(
        memory.mesh_lib, "gather", lambda mine: np.array([mine, mine + np.uint32(1), mine])
    )
    assert process_memory_bytes() == whole // 2


def test_the_newest_positions_take_a_quarter_of_what_a_process_may(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "process_memory_bytes", lambda: 64 << 20)
    game = make("go", size=(5, 5))
    replay = Replay(tmp_path, game, ReplayConfig(), 48)
    assert replay._window._memory == 16 << 20


def exhaust_device():
    jnp.zeros(1 << 46, jnp.int8).block_until_ready()


def exhaust_host():
    np.zeros(1 << 52)


@pytest.mark.parametrize(
    ("exhaust", "message"),
    [
        (
            exhaust_device,
            r"azero: a device does not have enough memory \(70368744177664 bytes more "
            r"requested\); make smaller: selfplay.search-batch",
        ),
        (
            exhaust_host,
            r"azero: this machine does not have enough memory \(32.0 PiB more requested\); "
            r"make smaller: selfplay.num-games",
        ),
    ],
)
def test_a_refused_allocation_is_one_line_that_says_what_to_make_smaller(exhaust, message, capsys):
    with pytest.raises(SystemExit) as end:
        end_with_status(exhaust)
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(error)


def test_the_other_processes_of_a_run_hear_the_same_line(tmp_path):
    with (
        pytest.raises(OutOfMemoryError, match="make smaller"),
        join_cluster(RunConfig(distributed="off"), tmp_path),
    ):
        exhaust_device()


def test_other_errors_of_a_device_stay_what_they_are():
    with pytest.raises(jax.errors.JaxRuntimeError, match="INTERNAL"), explain_exhaustion():
        raise jax.errors.JaxRuntimeError("INTERNAL: a crash")
