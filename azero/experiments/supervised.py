"""Running an experiment that learns from records: start or resume, log, save, stop."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import jax
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer, export_network
from azero.config import Config
from azero.data.dataset import Dataset
from azero.evaluate.accuracy import Accuracy
from azero.evaluate.rows import Row
from azero.experiments.arguments import Arguments
from azero.experiments.experiment import Experiment
from azero.experiments.run import EXIT_INTERRUPTED, StopRequest, end_with_status, stop_on_signals, use_compilation_cache
from azero.experiments.saving import settle
from azero.pipelines.events import LearnedFromRecords, Phase, Trained, Validated
from azero.pipelines.supervised import Supervised, SupervisedState
from azero.report import files
from azero.report.metrics import MetricsWriter
from azero.report.page import write_report
from azero.report.progress import Progress, working

EXPORT = "checkpoint"
"""Directory of the network alone, inside the working directory."""


def main(experiment: Experiment, argv: Sequence[str] | None = None) -> None:
    """Run `experiment` with the flags in `argv` (default: the command line) and end the process with its status."""

    def start(arguments: Arguments) -> int:
        assert arguments.workdir is not None
        if arguments.elastic.cluster is not None:
            raise ValueError(f"--cluster {arguments.elastic.cluster}: {experiment.name} learns from records and plays no games")
        if arguments.data is None:
            raise ValueError(f"{experiment.name} learns from records: --data DIR names a data set (azero data import PATHS --out DIR makes one)")
        return run(experiment, arguments.settings, arguments.workdir, arguments.data)

    end_with_status(experiment, start, argv)


def run(experiment: Experiment, config: Config, workdir: Path, data: Path, console: Console | None = None) -> int:
    """Start or continue the run in `workdir` on the data set in `data`; return its exit status.

    Raises:
      ValueError: settings do not fit each other, the devices, the data, or what is in `workdir`.
      CheckpointError: no checkpoint can be read, or one cannot be written.
      FloatingPointError: the loss is no longer finite.
    """
    mesh_lib.start(config.run.distributed)
    use_compilation_cache()
    console = console or Console()
    mesh = mesh_lib.make_mesh()
    console.print(f"[bold]{experiment.name}[/bold]  {experiment.title}")
    console.print(f"devices: {len(jax.devices())} x {jax.devices()[0].device_kind}; working directory: {workdir}")
    with working("preparing the run", console):
        dataset = Dataset.open(data)
        workdir.mkdir(parents=True, exist_ok=True)
        config = settle(config, workdir)
        loop = Supervised(config, mesh, dataset)
        checkpointer = Checkpointer(workdir, config)
        state, notes = _restore(loop, checkpointer)
    for line in notes + loop.replay.take_warnings():
        console.print(line, style="yellow", markup=False)
    if state.iteration:
        console.print(f"continuing after iteration {state.iteration} ({int(state.train.step):,} steps)")
    console.print(f"{loop.replay.num_games:,} games, {loop.replay.num_positions:,} positions to learn from")
    files.write_config(workdir, config)
    files.write_run(workdir, experiment.name, config)
    with stop_on_signals(workdir) as stop:
        _iterate(loop, state, checkpointer, workdir, stop, console)
    return _conclude(config, state, workdir, console)


def _restore(loop: Supervised, checkpointer: Checkpointer) -> tuple[SupervisedState, list[str]]:
    """Return the newest state that is whole, or a fresh one, and what a person should know of it."""
    state = loop.fresh_state()
    restored = checkpointer.restore({"train": state.train})
    notes = checkpointer.take_warnings()
    if restored is None:
        return state, notes
    if restored.changed:
        notes.append(f"settings that differ from those of the checkpoint: {'; '.join(restored.changed)}")
    return SupervisedState(restored.arrays["train"], restored.iteration), notes


def _iterate(loop: Supervised, state: SupervisedState, checkpointer: Checkpointer, workdir: Path, stop: StopRequest, console: Console) -> None:
    """Run iterations until the last one or a request to stop."""
    total = loop.config.run.iterations
    with MetricsWriter(workdir, state.iteration) as metrics, Progress(total, state.iteration, console) as progress:
        stopping = False
        while state.iteration < total and not stopping:
            _one_iteration(loop, state, metrics, progress)
            stopping = stop.agree()
            if state.iteration % loop.config.checkpoint.every == 0 or state.iteration == total or stopping:
                with progress.working("saving"):
                    meta = {"games": loop.replay.num_games, "steps": int(state.train.step)}
                    checkpointer.save(state.iteration, {"train": state.train}, meta, info={"devices": jax.device_count()})
                metrics.event("checkpoint", state.iteration)
        with progress.working("waiting for the last checkpoint"):
            checkpointer.close()


def _one_iteration(loop: Supervised, state: SupervisedState, metrics: MetricsWriter, progress: Progress) -> None:
    """Run one iteration, showing and recording its events."""
    started = time.monotonic()
    losses: Row = {}
    held_out: Row = {}
    with contextlib.ExitStack() as phase:
        for event in loop.iterate(state):
            match event:
                case Phase(text):
                    phase.close()
                    phase.enter_context(progress.working(text if state.iteration > 0 else f"{text} (compiling at first)"))
                case Trained(metrics=losses):
                    pass
                case Validated(accuracy):
                    held_out = _held_out_row(accuracy)
                    progress.note(f"held-out games: {describe(accuracy)}")
                case LearnedFromRecords():
                    row = _row(loop.config, event, time.monotonic() - started) | losses | held_out
                    metrics.write(row)
                    progress.update(row)


def describe(accuracy: Accuracy) -> str:
    """Return the results as a line for a person."""
    top1, top5, error = accuracy.top1, accuracy.top5, accuracy.value_error
    return (
        f"top-1 {100 * top1.value:.1f}% ({100 * top1.low:.1f} to {100 * top1.high:.1f}), top-5 {100 * top5.value:.1f}%, "
        f"value error {error.value:.3f} ({accuracy.positions:,} positions of {accuracy.games:,} games)"
    )


def _held_out_row(accuracy: Accuracy) -> Row:
    return {
        "top1": accuracy.top1.value,
        "top5": accuracy.top5.value,
        "held_out_policy_loss": accuracy.policy_loss.value,
        "held_out_value_error": accuracy.value_error.value,
    }


def _row(config: Config, event: LearnedFromRecords, seconds: float) -> Row:
    learned = config.learner.steps_per_iteration * config.learner.batch_size
    return {
        "iteration": event.iteration,
        "games": event.games,
        "positions": event.samples,
        "steps": event.steps,
        "seconds": seconds,
        "learn_seconds": event.seconds,
        "wait_seconds": event.wait_seconds,
        "positions_per_second": learned / event.seconds,
    }


def _conclude(config: Config, state: SupervisedState, workdir: Path, console: Console) -> int:
    """Write the network alone and the report, and say how the run ended."""
    exported = export_network(workdir, workdir / EXPORT)
    console.print(f"report: {write_report(workdir)}")
    console.print(f"network: {exported}")
    if state.iteration >= config.run.iterations:
        console.print(f"finished: {state.iteration} iterations, {int(state.train.step):,} steps")
        return 0
    console.print(f"stopped and saved after iteration {state.iteration}; the same command continues the run", style="yellow")
    return EXIT_INTERRUPTED
