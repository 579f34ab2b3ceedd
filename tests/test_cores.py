"""The number of devices that a CPU is split into before JAX starts."""

import os

import pytest

from azero import cores


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
