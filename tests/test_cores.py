"""What is set up before JAX starts: the devices of a CPU, the directory of compiled programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from azero import cores
from azero.commands import main
from azero.compilation_cache import cache_directory


@pytest.mark.parametrize(("found", "devices"), [(1, 1), (2, 2), (6, 4), (64, 16)])
def test_a_device_of_every_core(monkeypatch: pytest.MonkeyPatch, found: int, devices: int) -> None:
    monkeypatch.setenv(cores.DEVICES_VARIABLE, "")  # so that it is undone afterwards
    monkeypatch.delenv(cores.DEVICES_VARIABLE)
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(cores, "num_cores", lambda: found)
    cores.split_cpu_at_start()
    assert os.environ[cores.DEVICES_VARIABLE] == str(devices)
    monkeypatch.setenv(cores.DEVICES_VARIABLE, "3")
    cores.split_cpu_at_start()
    assert os.environ[cores.DEVICES_VARIABLE] == "3"


def test_the_users_own_number_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cores.DEVICES_VARIABLE, raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=5")
    cores.split_cpu_at_start()
    assert cores.DEVICES_VARIABLE not in os.environ


def test_an_empty_variable_of_the_cache_directory_counts_as_unset(monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_directory() == Path.home() / ".cache" / "azero"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch, capsys) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", fail)
    monkeypatch.setattr(main, "use_compilation_cache", cache_directory)
    monkeypatch.setattr(sys, "argv", ["azero", "play", "tictactoe"])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    assert "no home directory; set HOME, XDG_CACHE_HOME or" in capsys.readouterr().err


def run_with(changes: dict[str, str], program: list[str]) -> tuple[int, str]:
    answer = subprocess.run(
        [sys.executable, *program], env=os.environ | changes, capture_output=True, text=True
    )
    return answer.returncode, answer.stderr.strip()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({cores.DEVICES_VARIABLE: "x"}, 'Invalid value "x" for JAX flag jax_num_cpu_devices'),
        (
            {cores.DEVICES_VARIABLE: "0"},
            f"the environment has JAX_PLATFORMS=cpu, {cores.DEVICES_VARIABLE}=0",
        ),
        ({"JAX_PLATFORMS": "none"}, "Unable to initialize backend 'none'"),
    ],
)
def test_devices_that_jax_cannot_start_are_one_line(changes, message, tmp_path) -> None:
    changes = {"JAX_PLATFORMS": "cpu"} | changes
    experiment = ["-m", "azero.experiments.tictactoe", "--workdir", str(tmp_path / "run")]
    stages = ["-m", "azero.experiments.alphago9", "--workdir", str(tmp_path / "stages")]
    for program in (experiment, stages, ["-m", "azero", "doctor", "tictactoe"]):
        status, printed = run_with(changes, program)
        assert status == 2 and printed.startswith("azero: ") and message in printed
        assert "\n" not in printed


def test_an_interrupt_while_an_experiment_loads_ends_it_with_one_line(tmp_path) -> None:
    program = """
import signal, sys
class Interrupts:
    def find_spec(self, name, *_):
        if name == "azero.train.start":
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupts())
from azero.experiments.tictactoe import EXPERIMENT
from azero.train.main import main
main(EXPERIMENT, ["--workdir", sys.argv[1]])
"""
    status, printed = run_with({"JAX_PLATFORMS": "cpu"}, ["-c", program, str(tmp_path / "run")])
    assert status in (75, 130)  # 75 where the modules were there when it arrived
    assert printed.startswith("azero: stopped") and "\n" not in printed
