"""A run as a notebook has it: in a process of its own, shown while it goes on, stopped, continued,
one at a time; and the game against it."""

import time
from pathlib import Path

import pytest

from azero.commands import notebook
from azero.data.run_files import load_run
from azero.distributed import EXIT_INTERRUPTED
from azero.report.live import live_view

SMALL = ("--config", str(Path(__file__).parents[2] / "configs" / "smoke.toml"))


@pytest.fixture(autouse=True)
def in_a_notebook(monkeypatch):
    """One device is enough, and what is shown is kept; Jupyter sets FORCE_COLOR."""
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(notebook, "SHOWN_SECONDS", 2.0)


def iterations(workdir) -> list[int]:
    return [row["iteration"] for row in load_run(workdir).metrics]


def wait_for_iteration(iteration: int, training: notebook.Training) -> None:
    """Wait until a run has finished an iteration; before its first one it may not have learned to
    stop when asked."""
    while training.is_running and iteration not in iterations(training.workdir):
        time.sleep(0.1)
    assert training.is_running, training.log


def test_a_run_is_shown_stopped_and_continued(tmp_path, monkeypatch, capsys):
    workdir = tmp_path / "run"
    first = notebook.Training(
        "tictactoe", workdir, *SMALL, "--run.iterations", "100000", "--checkpoint.every", "100000"
    )
    with pytest.raises(ValueError, match=r"is already in progress; to save and stop it: !kill \d+"):
        notebook.Training("tictactoe", workdir, *SMALL)
    wait_for_iteration(1, first)
    assert (
        first.follow(seconds=1.0) == EXIT_INTERRUPTED
        and "stopped; run this cell again" in capsys.readouterr().out
    )
    second = notebook.Training(
        "tictactoe", workdir, *SMALL, "--run.iterations", "100000", "--checkpoint.every", "100000"
    )
    wait_for_iteration(iterations(workdir)[-1] + 1, second)
    # The button that stops a cell raises this in whatever is being waited for.
    monkeypatch.setattr(second._process, "wait", interrupted_once(second._process.wait))
    assert second.follow() == EXIT_INTERRUPTED
    done = iterations(workdir)[-1]
    again = notebook.Training("tictactoe", workdir, *SMALL, "--run.iterations", done + 1)
    assert again.follow() == 0 and "finished" in capsys.readouterr().out
    assert iterations(workdir) == list(range(1, done + 2))
    assert "\x1b" not in "".join(again.log), again.log
    page = live_view(workdir)
    assert (
        "Policy loss" in page
        and f"finished: {done + 1:,} iterations" in page
        and 'class="board"' in page
    )
    board = notebook.play(workdir, visits=2)
    board.points[4].click()
    assert board.points[4].description and (
        "I play" in board.messages or "I resign" in board.messages
    ), board.messages
    typed = iter(["b2"])
    monkeypatch.setattr(notebook, "_widgets", lambda: None)
    monkeypatch.setattr("builtins.input", lambda prompt="": next(typed, "quit"))
    assert notebook.play(workdir, visits=2) is None and "Goodbye" in capsys.readouterr().out


def test_a_run_that_ends_without_saving_is_not_said_to_be_saved(tmp_path, capsys):
    training = notebook.Training("tictactoe", tmp_path, *SMALL)
    while training.is_running and not any("preparing" in line for line in training.log):
        time.sleep(0.05)
    assert training.follow(seconds=0.0) == EXIT_INTERRUPTED and not iterations(tmp_path)
    assert "stopped; run this cell again to continue" in capsys.readouterr().out


def interrupted_once(wait):
    """Return a `wait` that is interrupted the first time."""
    pending = [KeyboardInterrupt]

    def waits(*arguments):
        if pending:
            raise pending.pop()
        return wait(*arguments)

    return waits


def test_a_mistake_shows_the_last_lines(tmp_path, capsys):
    assert notebook.Training("tictactoe", tmp_path, "--search.num-simulations", "0").follow() == 2
    assert "search.num-simulations is at least 1" in capsys.readouterr().out
    with pytest.raises(ValueError, match="unknown experiment"):
        notebook.Training("go4", tmp_path)
