"""One process at a time holds a directory, also where the file system has no locks."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from azero.data import directory_lock
from azero.data.directory_lock import OWNER, hold

HOLDER = """
import errno, fcntl, sys, time
from pathlib import Path
from azero.data import directory_lock

def refuse(file, how):
    raise OSError(int(sys.argv[2]), "no locks here")

if int(sys.argv[2]):
    fcntl.flock = refuse
try:
    with directory_lock.hold(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.readline()
except ValueError as error:
    print(error, flush=True)
"""
NO_LOCKS = [errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS]


def start_holder(directory, number):
    """Start a process that holds `directory`, and whose locks fail with error `number` (0: they
    work); returns it and its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory), str(number)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


@pytest.fixture
def no_locks(monkeypatch):
    def refuse(file, how):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(directory_lock, "_LOOK_SECONDS", 0.01)


def write_owner(directory, **changes):
    """Leave the file of an owner that was killed."""
    owner = {**directory_lock._this_process()._asdict(), **changes}
    (directory / OWNER).write_text(json.dumps(owner))
    return owner


@pytest.mark.parametrize("number", NO_LOCKS)
def test_without_locks_a_second_process_of_the_machine_is_refused(number, tmp_path, monkeypatch):
    def refuse(file, how):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(directory_lock, "_LOOK_SECONDS", 0.01)
    with (
        hold(tmp_path),
        pytest.raises(
            ValueError,
            match=rf"is in use by process {os.getpid()} on .*; two processes would overwrite",
        ),
        hold(tmp_path),
    ):
        pass
    with hold(tmp_path):
        pass
    assert not (tmp_path / OWNER).exists()


def test_two_processes_without_locks_and_a_third_after_a_kill(tmp_path, no_locks):
    first, output = start_holder(tmp_path, errno.ENOLCK)
    assert output == "held"
    second, output = start_holder(tmp_path, errno.ENOLCK)
    assert f"is in use by process {first.pid} on" in output
    second.communicate()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    notes = []
    with hold(tmp_path, notes.append):
        pass
    assert (
        len(notes) == 1
        and f"was held by process {first.pid}" in notes[0]
        and "taken over" in notes[0]
    )


def test_a_killed_process_that_had_the_lock_is_taken_over_with_a_note(tmp_path):
    first, output = start_holder(tmp_path, 0)
    assert output == "held"
    with pytest.raises(ValueError, match=rf"is in use by process {first.pid} on"), hold(tmp_path):
        pass
    first.send_signal(signal.SIGKILL)
    first.communicate()
    notes = []
    with hold(tmp_path, notes.append):
        pass
    assert len(notes) == 1 and "taken over" in notes[0]


def test_a_process_number_that_was_given_anew_holds_nothing(tmp_path, no_locks):
    write_owner(tmp_path, start="1")
    with hold(tmp_path, lambda text: None):
        pass


def test_an_owner_on_another_machine_that_is_silent_is_taken_over(tmp_path, no_locks, monkeypatch):
    monkeypatch.setattr(directory_lock, "STALE_SECONDS", 0.2)
    write_owner(tmp_path, boot="another", host="far")
    notes = []
    began = time.monotonic()
    with hold(tmp_path, notes.append):
        pass
    assert time.monotonic() - began > 0.1
    assert ["waiting" in text for text in notes] == [True, False] and "on far" in notes[1]
    os.utime(tmp_path / write_and_name(tmp_path), (0, 0))
    notes.clear()
    with hold(tmp_path, notes.append):
        pass
    assert len(notes) == 1, "one that has been silent for long is not waited for"


def test_a_clock_that_was_set_back_does_not_make_the_wait_longer(tmp_path, no_locks, monkeypatch):
    monkeypatch.setattr(directory_lock, "STALE_SECONDS", 0.2)
    later = time.time() + 5
    os.utime(tmp_path / write_and_name(tmp_path), (later, later))
    began = time.monotonic()
    with hold(tmp_path, lambda text: None):
        pass
    assert time.monotonic() - began < 4


def write_and_name(directory):
    write_owner(directory, boot="another", host="far")
    return OWNER


@pytest.mark.parametrize("locks", [False, True])
def test_an_owner_on_another_machine_that_beats_is_refused_whatever_the_lock_says(
    locks, tmp_path, monkeypatch, request
):
    if not locks:
        request.getfixturevalue("no_locks")
    monkeypatch.setattr(directory_lock, "_LOOK_SECONDS", 0.01)
    owner = write_owner(tmp_path, boot="another", host="far")

    def wait(text):
        (tmp_path / OWNER).write_text(json.dumps({**owner, "beat": 1}))

    with pytest.raises(ValueError, match=r"is in use by process .* on far"), hold(tmp_path, wait):
        pass


def test_the_owner_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(directory_lock, "BEAT_SECONDS", 0.01)
    with hold(tmp_path):
        end = time.monotonic() + 10
        while json.loads((tmp_path / OWNER).read_text())["beat"] < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert json.loads((tmp_path / OWNER).read_text())["beat"] >= 2


def test_a_process_whose_directory_was_taken_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "_exit", lambda status: (_ for _ in ()).throw(SystemExit(status)))
    other = write_owner(tmp_path, boot="another", host="far")
    with pytest.raises(SystemExit):
        directory_lock._beat(tmp_path, directory_lock._this_process())
    assert "taken over by process" in capsys.readouterr().err
    assert json.loads((tmp_path / OWNER).read_text()) == other


def test_an_owner_file_that_cannot_be_read_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(directory_lock, "STALE_SECONDS", 0.1)
    monkeypatch.setattr(directory_lock, "_LOOK_SECONDS", 0.01)
    (tmp_path / OWNER).write_text("{")
    notes = []
    with hold(tmp_path, notes.append):
        pass
    assert "waiting" in notes[0] and "taken over" in notes[1]
