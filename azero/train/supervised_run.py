"""Running an experiment that learns from records."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from azero import mesh as mesh_lib
from azero.compilation_cache import use_compilation_cache
from azero.console.progress import Progress, working
from azero.console.terminal import make_console
from azero.data.records.dataset import Dataset
from azero.data.rows import Row
from azero.distributed import Line, together
from azero.evaluate.accuracy import Accuracy
from azero.experiment import Experiment
from azero.report.paper import format_mean
from azero.settings import Config
from azero.train.driver import learn
from azero.train.events import LearnedFromRecords, Validated
from azero.train.hosts import agree_on_settings, check_shared, describe_devices, note
from azero.train.saving import settle
from azero.train.supervised import Supervised


def run(experiment: Experiment, config: Config, workdir: Path, data: Path, console: Console | None = None, from_checkpoint: int | None = None) -> int:
    """Start or continue the run in `workdir` on the data set in `data`, from the newest checkpoint or an earlier one; return its exit status.

    Raises:
      ValueError: settings do not fit each other, the devices, the data, or what is in `workdir`.
      CheckpointError: no checkpoint can be read, or one cannot be written.
      FloatingPointError: learning has diverged; the text says what can be done.
    """
    with together(config.run, workdir) as line:
        return _run(experiment, agree_on_settings(config), workdir, data, line, console or make_console(quiet=not mesh_lib.is_lead()), from_checkpoint)


def _run(experiment: Experiment, config: Config, workdir: Path, data: Path, line: Line, console: Console, from_checkpoint: int | None) -> int:
    use_compilation_cache()
    console.print(Text.assemble((experiment.name, "bold"), f"  {experiment.title}"))
    console.print(f"devices: {describe_devices()}; working directory: {workdir}")
    command = f"azero train {experiment.name} --workdir {workdir} --data {data}"
    return learn_from_records(experiment.name, config, workdir, data, console, line, from_checkpoint, command)


def learn_from_records(
    name: str,
    config: Config,
    workdir: Path,
    data: Path,
    console: Console,
    line: Line | None = None,
    from_checkpoint: int | None = None,
    command: str | None = None,
) -> int:
    """Start or continue the run `name` in `workdir`, as `run` does once the devices are there."""
    with working("preparing the run", console):
        dataset = Dataset.open(data)
        workdir.mkdir(parents=True, exist_ok=True)
        check_shared(workdir)
        config = settle(config, workdir)
        loop = Supervised(config, mesh_lib.make_mesh(), dataset)
    for text in loop.replay.take_warnings():
        note(text, functools.partial(console.print, style="yellow", markup=False))
    console.print(f"{loop.replay.num_games:,} games, {loop.replay.num_positions:,} positions to learn from")
    predicts_moves = config.network.name != "value2016"

    def show(event: Any, progress: Progress) -> Row:
        match event:
            case Validated(accuracy):
                progress.note(f"held-out games: {describe(accuracy, predicts_moves)}")
                return _held_out_row(accuracy, predicts_moves)
            case LearnedFromRecords():
                return _row(config, event)
        raise TypeError(f"unknown event {event}")

    meta = {"games": loop.replay.num_games}
    return learn(loop, name, workdir, console, show, meta=lambda state: meta, line=line, from_checkpoint=from_checkpoint, command=command)


def describe(accuracy: Accuracy, predicts_moves: bool = True) -> str:
    """Return the results as a line for a person; a value network predicts no moves."""
    moves = f"top-1 {format_mean(accuracy.top1, 100, 1, '%')}, top-5 {100 * accuracy.top5.value:.1f}%, " if predicts_moves else ""
    return f"{moves}value error {accuracy.value_error.value:.3f} ({accuracy.positions:,} positions of {accuracy.games:,} games)"


def _held_out_row(accuracy: Accuracy, predicts_moves: bool) -> Row:
    moves = {"top1": accuracy.top1.value, "top5": accuracy.top5.value, "held_out_policy_loss": accuracy.policy_loss.value}
    return {**(moves if predicts_moves else {}), "held_out_value_error": accuracy.value_error.value}


def _row(config: Config, event: LearnedFromRecords) -> Row:
    learned = config.learner.steps_per_iteration * config.learner.batch_size
    return {
        "games": event.games,
        "positions": event.samples,
        "learn_seconds": event.seconds,
        "wait_seconds": event.wait_seconds,
        "positions_per_second": learned / event.seconds,
    }
