"""Real signals to small processes: an iteration that is given up waits for the save under way, and
what is said to be lost is what is lost."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from azero.data import files
from azero.distributed import EXIT_INTERRUPTED
from azero.games.chess.settings import ChessConfig
from azero.networks.settings import ResNetConfig
from azero.settings import Config
from azero.train.hosts import hold_workdir
from azero.train.loop import START_POSITIONS
from azero.train.resolving import resolve_settings

BEGIN = """
    import pathlib, sys, threading, time
    from azero.train import stopping
    workdir = pathlib.Path(sys.argv[1])
    stopping.GRACE_SECONDS = 0.2
    save = workdir / "checkpoints" / "steps" / "3"
    def write():
        time.sleep(0.6)
        save.mkdir(parents=True)
"""


def signalled(workdir: Path, script: str, *numbers: int) -> tuple[int, str, str]:
    """Run a script, send it the signals one after another once it has printed a line, and return
    its status, output and errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BEGIN) + textwrap.dedent(script), str(workdir)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    errors = ""
    for number in numbers:
        process.send_signal(number)
        errors += "".join(process.stderr.readline() for _ in range(2))
    output, rest = process.communicate(timeout=60)
    return process.returncode, output, errors + rest


def test_an_iteration_that_is_given_up_waits_for_the_save_under_way(tmp_path):
    script = """
        with stopping.stop_on_signals(workdir) as stop:
            stop.doing = "iteration 4"
            stop.is_saving = lambda: not save.exists()
            threading.Thread(target=write).start()
            print("here", flush=True)
            time.sleep(60)
    """
    status, _, errors = signalled(tmp_path, script, signal.SIGTERM)
    assert status == EXIT_INTERRUPTED
    assert (
        f"iteration 4 did not end within 0 s and is lost; checkpoint 3 in {tmp_path} is "
        "complete, and the same command continues from there" in errors
    )


def test_a_run_that_has_stopped_is_not_cut_off_while_it_saves(tmp_path):
    script = """
        with stopping.stop_on_signals(workdir) as stop:
            print("here", flush=True)
            while not stop.agree():
                time.sleep(0.01)
            write()
        print("saved", flush=True)
    """
    status, output, errors = signalled(tmp_path, script, signal.SIGTERM)
    assert (status, output) == (0, "saved\n")
    assert "lost" not in errors


def test_a_second_signal_ends_at_once_and_says_what_is_lost(tmp_path):
    script = """
        with stopping.stop_on_signals(workdir) as stop:
            stop.doing = "iteration 1"
            stop.is_saving = lambda: True
            print("here", flush=True)
            time.sleep(60)
    """
    status, _, errors = signalled(tmp_path, script, signal.SIGINT, signal.SIGTERM)
    assert status == EXIT_INTERRUPTED
    assert (
        f"iteration 1 was ended by a second signal and is lost; no checkpoint in "
        f"{tmp_path} yet; the same command starts over" in errors
    )


def test_ctrl_c_in_a_callers_process_waits_for_the_iteration(tmp_path):
    script = """
        with stopping.stop_on_signals(workdir, owns_process=False) as stop:
            print("here", flush=True)
            while not stop.is_set:
                time.sleep(0.01)
            time.sleep(3 * stopping.GRACE_SECONDS)
        print("finished", flush=True)
    """
    assert signalled(tmp_path, script, signal.SIGINT)[:2] == (0, "finished\n")


def test_a_second_ctrl_c_in_a_callers_process_is_a_keyboard_interrupt(tmp_path):
    script = """
        try:
            with stopping.stop_on_signals(workdir, owns_process=False) as stop:
                stop.doing = "iteration 4"
                print("here", flush=True)
                time.sleep(60)
        except KeyboardInterrupt as error:
            print(error, flush=True)
            sys.exit("the caller goes on")
    """
    status, output, errors = signalled(tmp_path, script, signal.SIGINT, signal.SIGINT)
    assert (status, "the caller goes on" in errors) == (1, True)
    assert output == (
        f"iteration 4 is lost; no checkpoint in {tmp_path} yet; the same command starts over\n"
    )


def test_a_signal_is_heard_while_the_main_thread_is_in_a_library(tmp_path):
    """Python calls handlers between two of its own instructions only, and XLA compiles and computes
    for minutes; another thread takes the signal here."""
    script = """
        import ctypes, signal
        with stopping.end_on_sigterm():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # of this thread: the library's sleep goes on
            print("here", flush=True)
            ctypes.CDLL(None).sleep(60)
    """
    status, _, errors = signalled(tmp_path, script, signal.SIGTERM)
    assert status == EXIT_INTERRUPTED
    assert "SIGTERM: ended at once, outside of the iterations; what was saved is kept" in errors


def test_handlers_are_those_of_before_when_the_run_is_over(tmp_path):
    from azero.train.stopping import end_on_sigterm, stop_on_signals

    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with end_on_sigterm(), stop_on_signals(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_start_positions_are_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    given, workdir = tmp_path / "given.txt", tmp_path / "run"
    given.write_text("4k3/8/8/8/8/8/8/4K2R w K - 0 1\n" * 1000)
    workdir.mkdir()
    config = Config(
        game=ChessConfig(start_positions=str(given)),
        network=ResNetConfig(blocks=1, filters=4, convolution="xla"),
    )

    def end(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", end)  # the process ends while the file is being written
        with pytest.raises(KeyboardInterrupt):
            resolve_settings(config, workdir)
    assert not (workdir / START_POSITIONS).exists()
    resolve_settings(config, workdir)
    assert (workdir / START_POSITIONS).read_bytes() == given.read_bytes()


def test_checkpoints_are_not_removed_after_an_error_where_the_settings_are_gone(tmp_path):
    saved = tmp_path / "runs" / "a" / "checkpoints" / "steps" / "3"
    with pytest.raises(OSError, match="disk is full"), hold_workdir(tmp_path / "runs" / "a"):
        saved.mkdir(parents=True)
        raise OSError("the disk is full")
    assert saved.exists()
    with pytest.raises(ValueError, match="refused"), hold_workdir(tmp_path / "new" / "b"):
        raise ValueError("refused")
    assert not (tmp_path / "new").exists()
