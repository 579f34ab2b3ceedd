"""The contract of a stage: `state -> events`, with its start-up, checkpoints and metrics."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.text import Text

from azero.checkpoint import Checkpointer
from azero.console.progress import Progress
from azero.data.rows import Row
from azero.evaluate.accuracy import Accuracy
from azero.learn.learner import TrainState
from azero.report.metrics import MetricsWriter
from azero.report.paper import format_mean
from azero.settings import Config
from azero.train.stopping import StopRequest


class State(Protocol):
    """The part of a state that every run has."""

    train: TrainState
    iteration: int


S = TypeVar("S", bound=State)
Iterate = Callable[[S], Iterator[Any]]
"""Runs one iteration on a state, in place: a generator of events (`azero.train.events`), after
which the state may be saved."""


@dataclass(frozen=True)
class Stage(Generic[S]):
    """One way to learn: everything that distinguishes a run from other runs."""

    config: Config
    """The fully resolved settings."""
    restore: Callable[[Checkpointer], tuple[S, list[str]]]
    """Returns the newest complete state, or the initial one, with notes about it."""
    save: Callable[[Checkpointer, S], None]
    """Starts writing a state in the background."""
    open: Callable[[S, StopRequest], AbstractContextManager[Iterate[S]]]
    """Acquires what iterations need, and releases it when the run ends."""
    count: Callable[[S], str]
    """Returns what has been done so far, such as "12 games, 30 steps"."""
    report: Callable[[Any, MetricsWriter, Progress], Row] = lambda event, metrics, progress: Row()
    """Returns the metrics that an event of this stage's own adds to the iteration's row."""
    announcement: Text | None = None
    """Lines printed once the run is prepared."""
    is_risky: Callable[[S], bool] = lambda state: False
    """Whether the next iteration must wait for a first checkpoint on disk."""
    on_metrics: Callable[[Row], None] = lambda row: None
    """Called with the row of metrics of every iteration, once it is written."""
    owns_process: bool = True
    """Whether Ctrl-C may end the process; otherwise a second one raises KeyboardInterrupt."""
    exports_network: bool = False
    """Whether the network alone is also written when the run ends."""


MakeStage = Callable[[Config, Path], Stage[S]]
"""Makes the stage for fully resolved settings, in an existing working directory."""


def report_accuracy(accuracy: Accuracy, progress: Progress, predicts_moves: bool = True) -> Row:
    """Note how well held-out games are predicted, and return the metrics of it; a value network
    predicts no moves."""
    error = accuracy.value_error.value
    counts = f"{accuracy.positions:,} positions of {accuracy.games:,} games"
    top1, top5 = format_mean(accuracy.top1, 100, 1, "%"), 100 * accuracy.top5.value
    moves = f"top-1 {top1}, top-5 {top5:.1f}%, " if predicts_moves else ""
    progress.note(f"held-out games: {moves}value error {error:.3f} ({counts})")
    value = {"held_out_value_error": error}
    if not predicts_moves:
        return value
    return {
        "top1": accuracy.top1.value,
        "top5": accuracy.top5.value,
        "held_out_policy_loss": accuracy.policy_loss.value,
        **value,
    }
