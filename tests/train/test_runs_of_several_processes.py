"""Runs of several processes, each a real program: they learn what one process learns, stop
together, and go on as another number of processes."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from host_processes import command, finish, launch, launch_all, wait_for

from azero.checkpoint import list_checkpoints, orbax_io, store
from azero.data.records.dataset import Dataset
from azero.data.records.filters import Filters, Fractions
from azero.data.records.human import find_records, import_games
from azero.data.records.recorded import ImportTally
from azero.data.rows import read_rows
from azero.distributed import EXIT_INTERRUPTED
from azero.games.go.sgf import SUFFIXES

EXPERT = Path(__file__).parents[1] / "data" / "records" / "expert9.sgf"
"""24 games of 9x9 Go."""
START_SECONDS = 30.0
"""Two processes have joined and are ready for their first iteration within this time."""


def rows(workdir: Path) -> list[dict[str, Any]]:
    """Return the metrics of a run."""
    return read_rows(workdir / "metrics.jsonl")


def record(workdir: Path) -> dict[str, Any]:
    """Return the record of a run's newest checkpoint."""
    root = store.root_directory(workdir)
    return orbax_io.read_record(root, store.list_iterations(root)[-1])


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, tally = (
        Dataset.create(
            tmp_path_factory.mktemp("data") / "set",
            Filters(size=(9,), suicide=True),
            Fractions(validation=0.25, test=0.25),
        ),
        ImportTally(),
    )
    assert all(True for _ in import_games(find_records([EXPERT], SUFFIXES, tally), data, tally))
    return data.directory


def learn_from(dataset: Path, workdir: Path) -> list[str]:
    """Return the command of a small supervised run."""
    types = [
        "--network.train-dtype",
        "float32",
        "--network.inference-dtype",
        "float32",
        "--learner.batch-size",
        "32",
        "--learner.steps-per-iteration",
        "5",
    ]
    length = [
        "--run.iterations",
        "2",
        "--evaluation.every",
        "2",
        "--evaluation.validation-positions",
        "64",
    ]
    return command(workdir, "--data", str(dataset), *types, *length, experiment="sl9")


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_several_processes_learn_what_one_learns(count: int, dataset: Path, tmp_path: Path) -> None:
    """They learn it from one batch, of which each takes its rows; one process with as many devices
    adds up in the same order."""
    [(status, _, error)] = finish([launch(learn_from(dataset, tmp_path / "one"), devices=count)])
    assert status == 0, error
    workdir = tmp_path / "several"
    results = finish(launch_all(*[learn_from(dataset, workdir)] * count))
    assert [status for status, _, _ in results] == [0] * count, results
    learned, learned_by_one = rows(workdir), rows(tmp_path / "one")
    assert [row["steps"] for row in learned] == [5, 10]
    for name in ("loss", "policy_loss", "value_loss", "gradient_norm"):
        assert [row[name] for row in learned] == pytest.approx(
            [row[name] for row in learned_by_one], abs=1e-5
        ), name
    for name in ("top1", "top5", "held_out_policy_loss", "held_out_value_error"):
        assert learned[-1][name] == pytest.approx(learned_by_one[-1][name], abs=1e-5), name
    assert (workdir / "checkpoint").is_dir() and (workdir / "report.html").exists()


def test_processes_with_different_data_stop_with_a_line(dataset: Path, tmp_path: Path) -> None:
    """Each draws its rows of a batch from its own copy."""
    other = tmp_path / "other"
    shutil.copytree(dataset, other)
    (other / "train").rename(other / "was-train")
    shutil.copytree(dataset / "validation", other / "train")
    workdir = tmp_path / "run"
    results = finish(launch_all(learn_from(dataset, workdir), learn_from(other, workdir)))
    assert [status for status, _, _ in results] == [2, 2], results
    assert "process 1 has other games there than process 0" in results[1][2]


def test_two_processes_play_what_one_process_with_two_devices_plays(tmp_path: Path) -> None:
    """Every device has random numbers of its own, whichever process has the device; before the
    first step of learning all runs are the same."""
    unready = ["--replay.min-positions", "1000000", "--run.iterations", "2", "--selfplay.resign"]
    [(status, _, error)] = finish([launch(command(tmp_path / "one", *unready), devices=2)])
    assert status == 0, error
    results = finish(launch_all(*[command(tmp_path / "two", *unready)] * 2))
    assert [status for status, _, _ in results] == [0, 0], results
    one, two = record(tmp_path / "one"), record(tmp_path / "two")
    assert one["leaves"]["carry"] == two["leaves"]["carry"] and one["meta"] == two["meta"]
    names = (
        "games",
        "positions",
        "window_games",
        "window_positions",
        "first_wins",
        "draws",
        "game_length",
        "resign_threshold",
        "resign_false_positives",
    )
    for row, same in zip(rows(tmp_path / "one"), rows(tmp_path / "two"), strict=True):
        assert [row[name] for name in names] == [same[name] for name in names]
    (_, spoken, _), (_, silent, _) = results
    assert "2 x cpu in 2 processes" in spoken and "finished: 2 iterations" in spoken
    assert [line for line in silent.splitlines() if "Gloo" not in line] == [], (
        "the lead alone speaks"
    )


GATE = [
    "--evaluation.every",
    "1",
    "--evaluation.gate",
    "--evaluation.gate-games",
    "8",
    "--evaluation.num-simulations",
    "2",
]


@pytest.mark.slow
@pytest.mark.parametrize("gate", [[], GATE], ids=["without-matches", "with-matches"])
def test_a_life_of_a_run(gate: list[str], tmp_path: Path) -> None:
    """One process is killed, then one is asked to stop, then the run goes on in one process, and in
    two again."""
    endless = [*gate, "--run.iterations", "100000"]
    began = time.monotonic()
    processes = launch_all(*[command(tmp_path, *endless)] * 2)
    output = processes[0].stdout
    assert output is not None
    while "preparing the run:" not in (line := output.readline()):
        assert line, processes[0].communicate()
    seconds = time.monotonic() - began
    print(f"two processes were ready after {seconds:.1f} s")
    assert seconds < START_SECONDS

    wait_for(lambda: len(rows(tmp_path)) >= 2, processes)
    processes[1].kill()
    (status, _, error), _ = finish(processes, 60)
    assert status == EXIT_INTERRUPTED
    assert "azero: process 1 (" in error and "the same command continues the run" in error.lower()
    assert "Traceback" not in error

    reached = len(rows(tmp_path))
    processes = launch_all(*[command(tmp_path, *endless)] * 2)
    wait_for(lambda: len(rows(tmp_path)) >= reached + 2, processes)
    processes[1].send_signal(signal.SIGTERM)
    results = finish(processes, 60)
    assert [status for status, _, _ in results] == [EXIT_INTERRUPTED] * 2, results
    assert "stopped and saved after iteration" in results[0][1]
    last = rows(tmp_path)[-1]["iteration"]
    assert list_checkpoints(tmp_path)[-1].iteration == last

    before = rows(tmp_path)[-1]
    [(status, spoken, error)] = finish(
        [launch(command(tmp_path, *gate, "--run.iterations", str(last + 1)))]
    )
    assert status == 0, error
    assert "the run had 2 processes, now it has 1" in " ".join(spoken.split())
    after = rows(tmp_path)[-1]
    assert after["window_games"] == before["window_games"] + after["games"] - before["games"], (
        "no game of either process is lost"
    )

    results = finish(launch_all(*[command(tmp_path, *gate, "--run.iterations", str(last + 4))] * 2))
    assert [status for status, _, _ in results] == [0, 0], results
    assert "the run had 1 process, now it has 2" in " ".join(results[0][1].split())
    again = rows(tmp_path)[-1]
    assert again["window_games"] == after["window_games"] + again["games"] - after["games"]
    assert record(tmp_path)["num_processes"] == 2
    assert [row["iteration"] for row in rows(tmp_path)] == list(range(1, last + 5))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--workdir", "OTHER"],
            "is not the same directory on all hosts: process 1 does not see what process 0 writes",
        ),
        pytest.param(
            ["--learner.batch-size", "16"],
            "learner.batch-size = 8 in process 0, 16 in process 1",
            marks=pytest.mark.slow,
        ),
        (["--from-checkpoint", "2"], "from-checkpoint = null in process 0, 2 in process 1"),
    ],
)
def test_processes_that_do_not_fit_each_other_stop_with_a_line(
    flags: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZERO_TOKEN", "what they have in common")
    flags = [str(tmp_path / "other") if flag == "OTHER" else flag for flag in flags]
    # They look for a moment, not for the seconds that a network file system may need.
    start = (
        "import runpy, azero.train.hosts as hosts; hosts._SEEN_SECONDS = 0.5; "
        "runpy.run_module('azero.experiments.tictactoe', run_name='__main__')"
    )
    one, other = (
        [sys.executable, "-c", start, *words[3:]]
        for words in (command(tmp_path / "run"), command(tmp_path / "run", *flags))
    )
    for status, output, error in finish(launch_all(one, other), 60):
        assert status == 2
        assert "Traceback" not in error + output
        assert any(line.startswith("azero: ") and words in line for line in error.splitlines()), (
            error
        )
