"""Ctrl-C is not lost where Python ignores exceptions."""

import gc
import signal
import subprocess
import sys
import time

import pytest

from azero.console import interrupts
from azero.console.interrupts import end_in_one_line, keep_interrupts


def test_an_interrupt_in_a_callback_of_the_garbage_collector_is_raised_afterwards(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    keep_interrupts()

    def callback(phase, info):
        gc.callbacks.remove(callback)
        signal.raise_signal(signal.SIGINT)

    gc.callbacks.append(callback)
    with pytest.raises(KeyboardInterrupt):
        gc.collect()
        time.sleep(10)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_in_an_import_is_raised_after_it(monkeypatch, tmp_path):
    """Modules in C that are interrupted while they initialise crash."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.syspath_prepend(tmp_path)
    slow = "import signal\nsignal.raise_signal(signal.SIGINT)\nfor _ in range(9): pass\n"
    (tmp_path / "interrupted.py").write_text(f"{slow}IS_COMPLETE = True\n")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    keep_interrupts()
    with pytest.raises(KeyboardInterrupt):
        import interrupted

        time.sleep(10)
    signal.signal(signal.SIGINT, before)
    assert interrupted.IS_COMPLETE


@pytest.mark.parametrize("error", [ValueError("a wrong value"), PermissionError("no permission")])
def test_an_error_of_the_user_is_one_line(error, monkeypatch, capsys):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(interrupts, "exit_at_once", sys.exit)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as ended, end_in_one_line():
        raise error
    signal.signal(signal.SIGINT, before)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"azero: {error}\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["publish", "go9", "{here}"], "no run.json in {here}: --run names"),
        (["endings", "--at-edge", "1.5", "--out", "{here}/out.txt"], "--at-edge is from 0 to 1"),
        (["thinking_time", "{here}", "--visits", "2", "4", "--out", "{here}"], ""),
        (["opening_counts", "{here}"], ""),
    ],
)
def test_a_tool_run_as_a_module_answers_a_mistake_in_one_line(words, reason, tmp_path):
    tool, *flags = [word.format(here=tmp_path) for word in words]
    command = [sys.executable, "-m", f"azero.commands.{tool}", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"azero: {reason.format(here=tmp_path)}")
