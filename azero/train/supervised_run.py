"""The stage that learns from recorded games."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path

from rich.text import Text

from azero import mesh as mesh_lib
from azero.console.progress import Progress
from azero.data.records.dataset import Dataset
from azero.data.rows import Row
from azero.evaluate.accuracy import Accuracy
from azero.report.metrics import MetricsWriter
from azero.report.paper import format_mean
from azero.settings import Config
from azero.train.events import LearnedFromRecords, SupervisedEvent, Validated
from azero.train.saving import restore_learner, save_learner
from azero.train.stage import Stage
from azero.train.supervised import COUNTS, Supervised, SupervisedState


def make_supervised_stage(data: Path, config: Config, workdir: Path) -> Stage[SupervisedState]:
    """Return the stage on the data set in `data`; its programs are not compiled yet.

    Raises:
      ValueError: settings do not fit each other, the devices or the data.
    """
    loop = Supervised(config, mesh_lib.make_mesh(), Dataset.open(data))
    games, positions = loop.replay.count_games(), loop.replay.count_positions()
    return Stage(
        config=config,
        restore=lambda checkpointer: (
            restore_learner(checkpointer, loop.fresh_state(), COUNTS),
            loop.replay.take_warnings(),
        ),
        save=partial(save_learner, games=games, counts=COUNTS),
        open=lambda state, stop: contextlib.nullcontext(loop.iterate),
        report=partial(_report, config),
        count=lambda state: f"{int(state.train.step):,} steps",
        announcement=Text(f"{games:,} games, {positions:,} positions to learn from"),
        exports_network=True,
    )


def _report(
    config: Config, event: SupervisedEvent, metrics: MetricsWriter, progress: Progress
) -> Row:
    """Return an event's part of the iteration's row of metrics."""
    predicts_moves = config.network.name != "value2016"
    match event:
        case Validated(accuracy):
            progress.note(f"held-out games: {_describe(accuracy, predicts_moves)}")
            return _held_out_row(accuracy, predicts_moves)
        case LearnedFromRecords():
            learned = config.learner.steps_per_iteration * config.learner.batch_size
            return {
                "games": event.games,
                "positions": event.samples,
                "learn_seconds": event.seconds,
                "wait_seconds": event.wait_seconds,
                "positions_per_second": learned / event.seconds,
            }
    raise TypeError(f"unknown event {event}")


def _describe(accuracy: Accuracy, predicts_moves: bool) -> str:
    """Return the results as one line; a value network predicts no moves."""
    top1, top5 = format_mean(accuracy.top1, 100, 1, "%"), 100 * accuracy.top5.value
    moves = f"top-1 {top1}, top-5 {top5:.1f}%, " if predicts_moves else ""
    counts = f"({accuracy.positions:,} positions of {accuracy.games:,} games)"
    return f"{moves}value error {accuracy.value_error.value:.3f} {counts}"


def _held_out_row(accuracy: Accuracy, predicts_moves: bool) -> Row:
    value = {"held_out_value_error": accuracy.value_error.value}
    if not predicts_moves:
        return value
    return {
        "top1": accuracy.top1.value,
        "top5": accuracy.top5.value,
        "held_out_policy_loss": accuracy.policy_loss.value,
        **value,
    }
