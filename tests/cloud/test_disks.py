"""What `azero tpu setup` does with disks: image files and stand-ins of the system's programs
everywhere, real loop devices where root may make them."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from needs import NOT_HERE, not_here

from azero.cloud import scripts
from azero.cloud.requests import Storage

MIB = 1 << 20


class Machine:
    """A machine with disks: programs of the same name stand before the system's own, and write down
    that they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("bin", "by-id", "runs"):
            (folder / name).mkdir()
        self.program("sudo", 'exec "$@"')
        self.program("mountpoint", "exit 1")
        self.program("mount", "exit 0")
        self.program("wipefs", "exit 0")
        self.program("lsblk", f'[ "$1" = -dnpo ] && echo "{folder}/disk disk" || echo disk')
        self.program("mkfs.ext4", "exit 0")
        self.program("blkid", "exit 2")

    def program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(
            f'#!/bin/bash\necho "{name} $*" >> {shlex.quote(str(self.folder))}/calls\n{script}\n'
        )
        path.chmod(0o755)

    def disk(self, content: bytes = b"", name: str = "google-runs") -> Path:
        """Attach a disk of 32 MiB that begins with `content`."""
        path = self.folder / "disk"
        with path.open("wb") as file:
            file.write(content)
            file.truncate(32 * MIB)
        (self.folder / "by-id" / name).symlink_to(path)
        return path

    def setup(self, storage: Storage) -> tuple[int, str]:
        """Run the part of the script that concerns the disk; return its exit status and what it
        said."""
        script = scripts.setup(storage).partition("mkdir -p ~/azero ")[0]
        script = script.replace("/dev/disk/by-id", str(self.folder / "by-id")).replace(
            scripts.RUNS, str(self.folder / "runs")
        )
        environment = {
            **os.environ,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}/usr/sbin{os.pathsep}/sbin{os.pathsep}{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr

    def called(self, name: str) -> bool:
        return any(
            line.startswith(f"{name} ") for line in (self.folder / "calls").read_text().splitlines()
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


BLANK = Storage(disk="runs", format_disk=True)


@pytest.mark.parametrize("status", [1, 4, 8, 127])
@pytest.mark.parametrize("storage", [Storage(disk="runs"), BLANK])
def test_a_disk_that_blkid_cannot_tell_of_is_not_formatted(machine, storage, status):
    machine.disk(b"the runs of a year")
    machine.program("blkid", f"exit {status}")
    code, output = machine.setup(storage)
    assert not machine.called("mkfs.ext4") and not machine.called("mount")
    assert (
        code == 1
        and f"blkid cannot tell what is on {machine.folder}/disk (status {status})" in output
        and output.startswith("ERROR: ")
    )


def test_a_disk_is_found_by_its_name_alone(machine):
    machine.disk(name="google-somebody-elses")
    code, output = machine.setup(BLANK)
    assert (
        code == 1
        and "no disk is attached as runs or persistent-disk-1 (google-somebody-elses )" in output
        and not machine.called("mkfs.ext4")
    )
    assert machine.setup(Storage(disk="runs", device_name="somebody-elses", format_disk=True)) == (
        0,
        "",
    )


@pytest.mark.parametrize("name", ["google-runs", "google-persistent-disk-1"])
def test_a_blank_disk_is_formatted_where_that_is_asked_for(machine, name):
    machine.disk(name=name)
    code, output = machine.setup(Storage(disk="runs"))
    assert code == 1 and "--format-disk" in output and not machine.called("mkfs.ext4")
    assert (
        machine.setup(BLANK) == (0, "") and machine.called("mkfs.ext4") and machine.called("mount")
    )


@pytest.mark.parametrize(
    ("program", "script", "content", "says"),
    [
        ("wipefs", "echo 0x438 ext4", b"", "wipefs finds something"),
        ("wipefs", "exit 1", b"", "cannot read it"),
        ("lsblk", "echo disk; echo disk1", b"", "has partitions"),
        ("blkid", "exit 2", b"\0" * (5 * MIB) + b"x", "is not blank"),
        ("mount", "exit 32", b"", "cannot be mounted"),
    ],
)
def test_a_disk_with_anything_on_it_is_never_formatted(machine, program, script, content, says):
    machine.disk(content)
    machine.program(program, script)
    if program == "mount":
        machine.program("blkid", 'echo TYPE="crypto_LUKS"')
    code, output = machine.setup(BLANK)
    assert code == 1 and says in output and not machine.called("mkfs.ext4")


def test_a_file_system_is_mounted_as_it_is(machine):
    machine.disk(b"ext4")
    machine.program("blkid", 'echo TYPE="ext4"')
    assert (
        machine.setup(BLANK) == (0, "")
        and machine.called("mount")
        and not machine.called("mkfs.ext4")
    )


def _loop_devices() -> bool:
    return (
        os.geteuid() == 0
        and subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(
    not _loop_devices(), reason=f"{NOT_HERE}loop devices need root and the kernel's module"
)
def test_real_block_devices(machine):
    """A loop device is formatted once, mounted with what is on it from then on, and left alone
    where its file system is unknown."""
    image = machine.disk()
    for name in ("blkid", "wipefs", "mkfs.ext4", "mount", "lsblk", "mountpoint"):
        (machine.folder / "bin" / name).unlink()
    runs = machine.folder / "runs"
    attached = subprocess.run(
        ["losetup", "--find", "--show", image], capture_output=True, text=True, check=False
    )
    if attached.returncode:
        not_here(f"no loop device: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    link = machine.folder / "by-id" / "google-runs"
    link.unlink()
    link.symlink_to(device)
    try:
        assert machine.setup(Storage(disk="runs"))[0] == 1
        assert image.read_bytes().count(0) == 32 * MIB
        code, output = machine.setup(BLANK)
        assert code == 0, output
        (runs / "checkpoint").write_text("of a year")
        assert machine.setup(BLANK) == (0, ""), "it is mounted already"
        subprocess.run(["umount", runs], check=True)
        assert machine.setup(BLANK) == (0, "") and (runs / "checkpoint").read_text() == "of a year"
        subprocess.run(["umount", runs], check=True)
        subprocess.run(
            ["dd", "if=/dev/urandom", f"of={device}", "bs=1M", "count=1", "conv=notrunc"],
            check=True,
            capture_output=True,
        )
        code, output = machine.setup(BLANK)
        assert code == 1 and "is not" in output and "formatted" in output
    finally:
        subprocess.run(["umount", runs], check=False, capture_output=True)
        subprocess.run(["losetup", "--detach", device], check=True)
