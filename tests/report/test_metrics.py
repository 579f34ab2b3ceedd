"""The record of a run: rows, TensorBoard files, and what a resumed run forgets."""

import contextlib
import io
import json
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from needs import not_here
from tensorboardX import record_writer

from azero.data.rows import read_rows, replace_text
from azero.data.run_files import StoredGame, describe_machine, load_run, write_run, write_samples
from azero.learn.losses import LOSSES
from azero.report.metrics import MetricsWriter
from azero.report.page import CHARTS, COUNTERS
from azero.report.schema import EVENTS, METRICS
from azero.settings import Config


def test_rows_of_any_number_type_come_back(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        writer.write(
            {
                "iteration": 1,
                "loss": jnp.float32(0.5),
                "steps": np.int64(7),
                "bad": float("inf"),
                "name": "x",
                "flag": True,
                "list": [1, 2],
            }
        )
        row = load_run(tmp_path).metrics[0]  # while the writer is still open
    assert {key: row[key] for key in row if key != "time"} == {
        "iteration": 1,
        "loss": 0.5,
        "steps": 7,
        "bad": None,
        "name": "x",
        "flag": True,
        "list": [1, 2],
    }
    assert row["time"] > 1.7e9
    events = list((tmp_path / "tensorboard").glob("events.out.tfevents.*"))
    assert len(events) == 1 and b"loss" in events[0].read_bytes()


def test_starts_in_one_second_keep_their_curves(tmp_path: Path) -> None:
    for iteration in range(1, 6):
        with MetricsWriter(tmp_path, iteration - 1) as writer:
            writer.write({"iteration": iteration, f"loss_{iteration}": 0.5})
    files = sorted((tmp_path / "tensorboard").iterdir())  # as TensorBoard reads them
    assert len(files) == 5
    for iteration, file in enumerate(files, start=1):
        assert f"loss_{iteration}".encode() in file.read_bytes()


def test_a_resumed_run_forgets_what_it_will_play_again(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for iteration in range(1, 8):
            writer.write({"iteration": iteration})
            writer.event("checkpoint", iteration)
            write_samples(tmp_path, iteration, [StoredGame("go", (3, 3), (4,), (1.0, -1.0))])
    with (tmp_path / "metrics.jsonl").open("a") as torn:
        torn.write('{"iteration": 8, "lo')
    with MetricsWriter(tmp_path, resume_iteration=5) as writer:
        writer.write({"iteration": 6, "again": 1})
    data = load_run(tmp_path)
    assert [row["iteration"] for row in data.metrics] == [1, 2, 3, 4, 5, 6] and data.metrics[-1][
        "again"
    ] == 1
    assert [row["iteration"] for row in data.events] == [1, 2, 3, 4, 5]
    assert [iteration for iteration, _ in data.samples] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("damaged", [b"\0" * 40, b"[1]", b"[" * 100_000])
def test_damaged_rows_end_no_run_that_continues(damaged: bytes, tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for iteration in (1, 2, 3):
            writer.event("checkpoint", iteration)
    events = tmp_path / "events.jsonl"
    lines = events.read_bytes().splitlines()
    events.write_bytes(b"\n".join([lines[0], damaged, *lines[2:], b""]))
    with MetricsWriter(tmp_path, resume_iteration=3) as writer:
        assert writer.take_warnings() == [f"{events}: 1 damaged line removed"]
        writer.event("checkpoint", 4)
    assert [row["iteration"] for row in load_run(tmp_path).events] == [1, 3, 4]


@pytest.mark.parametrize("damaged", ["", "[]", '{"started":'])
def test_a_damaged_description_ends_no_run_that_continues(damaged: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(damaged)
    write_run(tmp_path, "go5", Config())
    assert load_run(tmp_path).run["experiment"] == "go5"


def test_the_machine_is_described_and_the_start_stays(tmp_path: Path) -> None:
    facts = describe_machine()
    assert (
        facts["backend"] == "cpu"
        and facts["devices"].endswith("cpu")
        and "jax" in facts["versions"]
    )
    write_run(tmp_path, "go5", Config())
    run = json.loads((tmp_path / "run.json").read_text())
    run["started"] = 1.0
    (tmp_path / "run.json").write_text(json.dumps(run))
    write_run(tmp_path, "go5", Config())
    assert (
        load_run(tmp_path).run["started"] == 1.0 and load_run(tmp_path).run["experiment"] == "go5"
    )


def test_only_the_lead_host_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.process_index", lambda: 1)
    with MetricsWriter(tmp_path) as writer:
        writer.write({"iteration": 1})
        writer.event("checkpoint", 1)
    assert list(tmp_path.iterdir()) == []


@contextlib.contextmanager
def full_disk(directory: Path) -> Iterator[None]:
    """Make `directory` and let it take 64 KB."""
    directory.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(directory)], capture_output=True
    ).returncode:
        not_here("only root may mount a file system")
    try:
        yield
    finally:
        subprocess.run(["umount", str(directory)], check=True)


@contextlib.contextmanager
def short_files(directory: Path) -> Iterator[None]:
    """Make `directory` and let no file of this process grow beyond 32 KB: no right of root is
    needed."""
    directory.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_error_names_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 255)  # with the suffix of a temporary file too long
    with pytest.raises(OSError, match="name too long") as caught:
        replace_text(path, "text")
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("limited", [full_disk, short_files])
def test_a_full_disk_ends_no_run_and_is_told_once(limited, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """Twenty numbers an iteration: the threads of tensorboardX waited for ever here. What fits is
    whole, and rows come again when there is room again. Python 3.13 prints a traceback for a file
    that is let go of without being closed."""
    files: list[io.BufferedWriter] = []

    def opened(path: str) -> io.BufferedWriter:
        files.append(Path(path).open("wb"))  # noqa: SIM115 - the writer closes it
        return files[-1]

    monkeypatch.setattr(record_writer, "open_file", opened)
    workdir = tmp_path / "small"
    numbers = {f"number {index}": 0.5 for index in range(20)}
    with limited(workdir):
        with MetricsWriter(workdir) as writer:
            for iteration in range(1, 201):
                writer.write({"iteration": iteration, **numbers})
                writer.event("checkpoint", iteration)
                writer.samples(iteration, [StoredGame("go", (3, 3), (4,) * 500, (1.0, -1.0))])
            (warning,) = writer.take_warnings()
            assert str(workdir) in warning and "The run continues" in warning
            data = load_run(workdir)
            assert 10 < len(data.metrics) < 200
            assert [row["iteration"] for row in data.metrics] == list(
                range(1, len(data.metrics) + 1)
            )
            shutil.rmtree(workdir / "samples")
            if limited is full_disk:
                writer.write({"iteration": 201})
                assert load_run(workdir).metrics[-1]["iteration"] == 201
        assert not writer.take_warnings()
        with MetricsWriter(workdir, resume_iteration=5) as writer:
            writer.write({"iteration": 6})
        assert [row["iteration"] for row in load_run(workdir).metrics][:6] == [1, 2, 3, 4, 5, 6]
    assert len(files) == 2 and all(file.closed for file in files)


def test_the_schema_names_what_runs_write() -> None:
    runs = Path(__file__).parents[2] / "experiments"
    for path in runs.rglob("metrics.jsonl"):
        assert {key for row in read_rows(path) for key in row} <= set(METRICS), path
    for path in runs.rglob("events.jsonl"):
        assert {row["kind"] for row in read_rows(path)} <= set(EVENTS), path
    drawn = {key for _, keys in CHARTS for key, _ in keys} | set(COUNTERS)
    assert drawn <= set(METRICS)
    assert {f"{name}_loss" for name in LOSSES} <= set(METRICS)
