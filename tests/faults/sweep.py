"""A fault at every file operation of a short run: self-play, replay, checkpoints, a match,
resuming, export.

    python tests/faults/sweep.py --kinds KILL ENOSPC EIO --stride 1

The short run is iterations 1 and 2 of tic-tac-toe, and then, started again, iteration 3. For each
of its file operations (or for every so many) the run is made with that one failing or killing the
process (`faults.c`), and once more without a fault. That must end like the undisturbed run: equal
digests of all checkpoints and of the exported network, every row of metrics once, equal shards in
the replay. What a failing process says must be one line. One JSON line per fault is appended to
`--out`; the exit status is 0 if nothing was lost.

To be fast, one process makes many of these runs, with the same compiled programs and without
drawing charts; what a kill at each tried operation leaves on the disk is copied in the course of one
undisturbed run, and equal copies are tried once. With `--processes` every run has a process of its
own, and is really killed.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import ctypes
import dataclasses
import functools
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from azero.settings import Config
from azero.train.settings import RunConfig

HERE = Path(__file__).parent
KINDS = {"ENOSPC": 1, "EIO": 2, "KILL": 3}
COPY = 4
NEVER = 1 << 40
STAGES = {"begin": 2, "resume": 3}
"""Iterations at whose end each part of the run is over; the second begins with the directory that
the first has left."""
SECONDS = 900.0
"""A process that has not ended by then hangs; the first one compiles, on a busy machine for
minutes."""
SETTINGS = {
    "network.blocks": 1,
    "network.filters": 4,
    "network.value-hidden": 8,
    "network.convolution": "xla",
    "search.num-simulations": 2,
    "selfplay.num-games": 8,
    "selfplay.moves-per-dispatch": 8,
    "selfplay.dispatches-per-iteration": 1,
    "replay.window-games": 12,
    "replay.min-positions": 1,
    "learner.batch-size": 8,
    "learner.steps-per-iteration": 2,
    "evaluation.every": 2,
    "evaluation.games": 8,
    "evaluation.num-simulations": 2,
    "checkpoint.every": 1,
    "checkpoint.keep": 2,
    "run.iterations": max(STAGES.values()),
}
EXPORT = "exported"
RECORD = ("rows", "losses", "events")
WITHOUT_RECORD = "cannot be written: "
"""In the warning of a run whose metrics, events or sample games the disk has refused."""
CHART = f"<svg>{'chart ' * 2000}</svg>"


def build_library(directory: Path) -> Path:
    """Compile the preload library into `directory`; return it."""
    library = directory / "faults.so"
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            "-O1",
            "-o",
            str(library),
            str(HERE / "faults.c"),
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )
    return library


def main(argv: Sequence[str] | None = None) -> int:
    """Sweep over the faults that the command line names; return how many ended badly."""
    parser = argparse.ArgumentParser(description="A fault at every file operation of a short run")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--stride", type=int, default=1, help="take every so many-th operation")
    parser.add_argument("--first", type=int, default=1, help="the first operation")
    parser.add_argument(
        "--processes", action="store_true", help="every run in a process of its own"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="a file of JSON lines, one per fault; those in it already are not repeated",
    )
    options = parser.parse_args(argv)
    if "AZERO_FAULTS" not in os.environ:
        return _restart_with_library(argv)
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:
        return Sweep(Path(directory).resolve(), options.out, options.processes).run(
            options.stages, options.kinds, options.first, options.stride
        )


def _restart_with_library(argv: Sequence[str] | None) -> int:
    """Run this file in a process that has the library loaded before all others; return its
    status."""
    with tempfile.TemporaryDirectory(prefix="faults-library-") as directory:
        library = str(build_library(Path(directory)))
        environment = {
            **os.environ,
            "AZERO_FAULTS": library,
            "LD_PRELOAD": library,
            "JAX_PLATFORMS": "cpu",
            "JAX_NUM_CPU_DEVICES": "1",
            "OPENBLAS_NUM_THREADS": "1",  # its threads would not survive a fork
            "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
        }
        return subprocess.run(
            [sys.executable, __file__, *(sys.argv[1:] if argv is None else argv)],
            env=environment,
            check=False,
        ).returncode


class Sweep:
    """Runs in directories below one temporary one."""

    def __init__(self, directory: Path, out: Path | None, has_processes: bool) -> None:
        self.directory = directory
        self.out = out
        self.known = (
            [json.loads(line) for line in out.read_text().splitlines()]
            if out is not None and out.exists()
            else []
        )
        self.has_processes = has_processes
        self.runner = Runner(directory, has_processes)

    def run(self, stages: Sequence[str], kinds: Sequence[str], first: int, stride: int) -> int:
        """Sweep; return 0 if nothing was lost, else 1."""
        wanted: dict[str, Any] = {}
        counts: dict[str, int] = {}
        copied: dict[str, list[str]] = {}
        start = self.directory / "start"
        start.mkdir()
        for stage, iterations in STAGES.items():
            shutil.copytree(start, self.directory / f"before-{stage}")
            copies = self.directory / f"copies-{stage}"
            copies.mkdir()
            shutil.copytree(start, counted := self.directory / f"counted-{stage}")
            status, text, counts[stage] = self._ask(
                "play", counted, iterations, NEVER, KINDS["EIO"], copies
            )
            if status == 0 and "KILL" in kinds and not self.has_processes:
                status, text, _ = self._ask("play", start, iterations, first, COPY, copies, stride)
                copied[stage] = Path(f"{copies}.operations").read_text().splitlines()
            else:
                shutil.rmtree(start)
                counted.rename(start)
            if status != 0:
                raise RuntimeError(f"the undisturbed run ended with {status}: {text}")
            wanted[stage] = self._ask("look", start)
            print(
                f"{stage}: {counts[stage]} operations ({len(copied.get(stage, []))} where "
                f"copies are made); {wanted[stage]['digests']}",
                flush=True,
            )
        bad = Counter[str]()
        for kind in kinds:
            for stage in stages:
                done = {
                    row["at"] for row in self.known if (row["stage"], row["kind"]) == (stage, kind)
                }
                tried: dict[str, int] = {}
                names = copied.get(stage, []) if kind == "KILL" else []
                last = len(names) or counts[stage]
                for at in range(first, last + 1, stride):
                    row = {"stage": stage, "kind": kind, "at": at, "of": last}
                    if names:
                        row["operation"] = names[at - 1]
                        twin = tried.setdefault(
                            _digest(self.directory / f"copies-{stage}" / str(at)), at
                        )
                        if twin != at:
                            row |= {"outcome": "same", "as": twin}
                    if at not in done:
                        row |= {} if "outcome" in row else self._one(stage, kind, at, wanted[stage])
                        bad[row["outcome"]] += 1
                        self._keep(row)
        self.runner.end()
        print(f"{dict(bad)}\n{bad['lost']} lost, {bad['untidy']} untidy", flush=True)
        return int(bad["lost"] + bad["untidy"] > 0)

    def _keep(self, row: dict[str, Any]) -> None:
        if self.out is not None:
            with self.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if row["outcome"] not in ("resumed", "same"):
            print(json.dumps(row), flush=True)

    def _ask(self, *work: Any) -> Any:
        if self.has_processes:
            self.runner.end()
        return self.runner.ask(*work)

    def _one(self, stage: str, kind: str, at: int, wanted: dict[str, Any]) -> dict[str, Any]:
        """Return what came of one fault."""
        workdir, hit, iterations = (
            self.directory / f"{stage}-{kind}-{at}",
            self.directory / "hit",
            STAGES[stage],
        )
        began = time.monotonic()
        row: dict[str, Any] = {}
        problem = text = ""
        hit.unlink(missing_ok=True)
        if kind == "KILL" and not self.has_processes:
            shutil.copytree(self.directory / f"copies-{stage}" / str(at), workdir, symlinks=True)
        else:
            shutil.copytree(self.directory / f"before-{stage}", workdir)
            status, text, _ = self._ask("play", workdir, iterations, at, KINDS[kind], hit)
            row = {
                "operation": hit.read_text().strip() if hit.exists() else "not reached",
                "status": status,
                "said": _complaint(text),
            }
            problem = _judge_end(status, text, kind, hit.exists())
        again, text_again, _ = self._ask("play", workdir, iterations, 0, 0, hit)
        outcome = "resumed"
        if again != 0:
            outcome = (
                "refused"
                if again == 2 and len(_complaint(text_again).splitlines()) == 1
                else "lost"
            )
            row["again"] = _complaint(text_again) or text_again[-2000:]
        else:
            found = self._ask("look", workdir)
            differs = {
                name: (wanted.get(name), value)
                for name, value in found.items()
                if wanted.get(name) != value
            }
            if kind != "KILL" and WITHOUT_RECORD in text:
                # The record goes on without what the disk refused, and says so.
                row["left out"] = [name for name in RECORD if differs.pop(name, None)]
            if differs:
                outcome, row["differs"] = "lost", differs
        if problem and outcome != "lost":
            outcome, row["problem"] = "untidy", problem
        if problem:
            row["text"] = text[-3000:]
        shutil.rmtree(workdir)
        return {"outcome": outcome, **row, "seconds": round(time.monotonic() - began, 1)}


class Runner:
    """A process that makes runs, one after the other; when it hangs or dies, the next one takes its
    place."""

    def __init__(self, directory: Path, has_processes: bool) -> None:
        # Everything is imported before the first fork, and JAX is not started.
        from azero.experiment import load

        self.experiment = load("tictactoe")
        self.library = ctypes.CDLL(os.environ["AZERO_FAULTS"])
        self.has_processes = has_processes
        self.output = directory / "output"
        self.process: int | None = None
        self.connection: Connection

    def ask(self, *work: Any) -> Any:
        """Let the process do one piece of work: `play` returns its status (negative: the signal
        that ended it), what it printed and its file operations, `look` what it found."""
        if self.process is None:
            self._start()
        self.connection.send(work)
        with contextlib.suppress(EOFError):
            if self.connection.poll(SECONDS):
                return self.connection.recv()
            os.kill(self.process or 0, signal.SIGABRT)
        assert self.process is not None
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        self.process = None
        text = self.output.read_text(errors="replace")
        return (
            (code, f"{text}\nthe process ended or hung", 0)
            if work[0] == "play"
            else {"digests": {}, "dead": text}
        )

    def end(self) -> None:
        """Let go of the process."""
        if self.process is not None:
            self.connection.close()
            os.waitpid(self.process, 0)
            self.process = None

    def _start(self) -> None:
        self.connection, other = Pipe()
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            self.connection.close()
            try:
                self._serve(other)
            finally:
                os._exit(0)
        other.close()

    @functools.cache  # noqa: B019 - there is one runner
    def settings(self, iterations: int) -> Config:
        """Return the settings of a run of so many iterations."""
        from azero.train.arguments import parse_arguments

        flags = [
            word
            for name, value in {**SETTINGS, "run.iterations": iterations}.items()
            for word in (f"--{name}", str(value))
        ]
        return parse_arguments(self.experiment, ["--workdir", "runs", *flags]).settings

    def _serve(self, connection: Connection) -> None:
        import azero.report.page as page
        import azero.train.selfplay_run as running

        make = functools.cache(running.Loop)

        def loop_of(config: Any, mesh: Any, workdir: Path) -> Any:
            """Return a loop with programs that have been compiled before."""
            loop = copy.copy(make(dataclasses.replace(config, run=RunConfig()), mesh, self.output))
            loop.config, loop.workdir = config, workdir
            return loop

        if not self.has_processes:
            running.Loop = loop_of
            running._warn_of_cost = lambda config: None
            page.line_chart = lambda *arguments, **names: (
                CHART
            )  # drawing takes most of a run's time and writes nothing
        while True:
            try:
                name, *arguments = connection.recv()
            except EOFError:
                return
            descriptor = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            os.close(descriptor)
            if name == "look":
                connection.send(_look(*arguments))
            else:
                status = self._play(*arguments)
                sys.stdout.flush()
                connection.send(
                    (status, self.output.read_text(errors="replace"), self.library.count_faults())
                )

    def _play(
        self, workdir: Path, iterations: int, at: int, kind: int, record: Path, stride: int = 1
    ) -> int:
        """Run and export; return the status that the process would end with."""
        from azero.checkpoint import export_network
        from azero.train.driver import run_experiment
        from azero.train.selfplay_run import make_selfplay_stage
        from azero.train.stopping import end_with_status

        def start() -> int:
            status = run_experiment(
                self.experiment, self.settings(iterations), workdir, make_selfplay_stage
            )
            export_network(workdir, workdir / EXPORT)
            return status

        if kind:
            self.library.arm_faults(
                str(workdir).encode(),
                ctypes.c_long(at),
                kind,
                str(record).encode(),
                ctypes.c_long(stride),
            )
        try:
            end_with_status(start)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 70
        except BaseException:
            traceback.print_exc()
        finally:
            self.library.disarm_faults()
            _await_threads()
        return 70


def _await_threads() -> None:
    """Wait for what a failed run still writes, as the end of its process would."""
    gc.collect()
    end = time.monotonic() + SECONDS / 2
    while (
        any(thread.name.startswith(("checkpoint", "shards")) for thread in threading.enumerate())
        and time.monotonic() < end
    ):
        time.sleep(0.01)


def _look(workdir: Path) -> dict[str, Any]:
    """Return what must be equal: digests of checkpoints and network, rows of metrics, the files of
    the replay."""
    from azero.checkpoint import list_checkpoints
    from azero.checkpoint.exported import exported_path, read_exported
    from azero.data.rows import read_rows

    try:
        read_exported(workdir / EXPORT)
        rows = read_rows(workdir / "metrics.jsonl")
        return {
            "digests": {
                row.iteration: row.digest or row.problem for row in list_checkpoints(workdir)
            },
            "rows": [row["iteration"] for row in rows],
            "losses": [row.get("loss") for row in rows],
            "network": hashlib.sha256(exported_path(workdir / EXPORT).read_bytes()).hexdigest(),
            "shards": {
                path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted((workdir / "replay").glob("*.shard"))
            },
            "hosts": sorted(path.name for path in (workdir / "checkpoints" / "hosts").iterdir()),
            "events": [
                (row["kind"], row["iteration"])
                for row in read_rows(workdir / "events.jsonl")
                if row["kind"] == "evaluation"
            ],
            "report": (workdir / "report.html").stat().st_size > 10_000,
        }
    except (OSError, ValueError):
        return {"digests": {}, "error": traceback.format_exc()}


def _digest(directory: Path) -> str:
    """Return a digest of the names and contents below a directory."""
    whole = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        whole.update(
            f"{path.relative_to(directory)}\0".encode()
            + (path.read_bytes() if path.is_file() else b"")
        )
    return whole.hexdigest()


def _complaint(text: str) -> str:
    """Return the lines that a process has printed as its error."""
    return "\n".join(line for line in text.splitlines() if line.startswith("azero: "))


def _judge_end(status: int, text: str, kind: str, was_hit: bool) -> str:
    """Return what is wrong with how a disturbed process ended; empty where nothing is."""
    if "Traceback" in text or "terminate called" in text:
        return "it printed a traceback"
    if not was_hit:
        return "" if status == 0 else f"it was not hit and ended with {status}"
    if kind == "KILL":
        return "" if status == -signal.SIGKILL else f"it was not killed but ended with {status}"
    if status == 2 and len(_complaint(text).splitlines()) == 1:
        return ""
    return "" if status == 0 else f"it ended with {status}"


if __name__ == "__main__":
    sys.exit(main())
