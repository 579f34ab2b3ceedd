"""Running a loop that learns without a replay of its own: start or resume, log, save, stop. What `run.py` is for self-play."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import jax
from rich.console import Console

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer, export_network
from azero.console.progress import Progress
from azero.data import run_files as files
from azero.data.rows import Row
from azero.distributed import EXIT_INTERRUPTED, Line
from azero.learn.learner import TrainState, check_state
from azero.report.metrics import MetricsWriter
from azero.settings import Config
from azero.train.events import Phase, Trained
from azero.train.going_back import explain_divergence, go_back
from azero.train.hosts import hold_workdir, note
from azero.train.run import show_report
from azero.train.stopping import StopRequest, stop_on_signals

EXPORT = "checkpoint"
"""Directory of the network alone, inside the working directory."""


class LearningState(Protocol):
    """What every such run has in its checkpoints."""

    train: TrainState
    iteration: int


S = TypeVar("S", bound=LearningState)


class LearningLoop(Protocol[S]):
    """The programs of one configuration, and the loop over them: a generator of events for every iteration."""

    config: Config

    def fresh_state(self) -> S:
        """Return the state before the first iteration."""
        ...

    def iterate(self, state: S) -> Iterator[Any]:
        """Run one iteration on `state`, in place."""
        ...


def learn(
    loop: LearningLoop[S],
    name: str,
    workdir: Path,
    console: Console,
    show: Callable[[Any, Progress], Row],
    *,
    resume: Callable[[S], None] = lambda state: None,
    keep: Callable[[S], None] = lambda state: None,
    meta: Callable[[S], dict[str, Any]] = lambda state: {},
    line: Line | None = None,
    from_checkpoint: int | None = None,
    command: str | None = None,
) -> int:
    """Start or continue the run of `loop` in `workdir`; return its exit status.

    Args:
      loop: what learns.
      name: of the experiment.
      workdir: the run's directory.
      console: where progress is shown.
      show: turns the loop's own events into a part of the iteration's row of metrics, and may tell a person of them.
      resume: puts back what of a restored state is not in its checkpoint.
      keep: puts that on disk, before every checkpoint.
      meta: facts for the checkpoint besides the number of steps.
      line: to the other processes of the run, where there are any.
      from_checkpoint: the checkpoint to go back to; None is the newest.
      command: that continues the run, to be told with --from-checkpoint where learning diverges; None where there is none.

    Raises:
      ValueError: another run is under way in `workdir`.
      CheckpointError: no checkpoint can be read, or one cannot be written.
      FloatingPointError: learning has diverged; the text says what can be done.
    """
    with hold_workdir(workdir):
        if from_checkpoint is not None:
            console.print(go_back(workdir, from_checkpoint, loop.config), style="yellow", markup=False)
        checkpointer = Checkpointer(workdir, loop.config)
        state = _restore(loop, checkpointer, console, resume)
        if mesh_lib.is_lead():
            files.write_config(workdir, loop.config)
            files.write_run(workdir, name, loop.config)

        def save() -> None:
            check_state(state.train)
            keep(state)
            facts = {**meta(state), "steps": int(state.train.step)}
            checkpointer.save(state.iteration, {"train": state.train}, facts, info={"devices": jax.device_count()})

        with stop_on_signals(workdir, line) as stop, explain_divergence(workdir, command, stop):
            stop.is_saving = checkpointer.is_writing
            _iterate(loop, state, workdir, console, show, save, stop)
            checkpointer.close()
        return _conclude(loop.config, state, workdir, console)


def _restore(loop: LearningLoop[S], checkpointer: Checkpointer, console: Console, resume: Callable[[S], None]) -> S:
    """Return the newest state that is whole, or a fresh one, and say what a person should know of it."""
    state = loop.fresh_state()
    restored = checkpointer.restore({"train": state.train})
    notes = checkpointer.take_warnings()
    if restored is not None:
        state.train, state.iteration = restored.arrays["train"], restored.iteration
        resume(state)
        if restored.changed:
            notes.append(f"settings that differ from those of the checkpoint: {'; '.join(restored.changed)}")
    for text in notes:
        note(text, functools.partial(console.print, style="yellow", markup=False))
    if state.iteration:
        console.print(f"continuing after iteration {state.iteration} ({int(state.train.step):,} steps)")
    return state


def _iterate(
    loop: LearningLoop[S], state: S, workdir: Path, console: Console, show: Callable[[Any, Progress], Row], save: Callable[[], None], stop: StopRequest
) -> None:
    """Run iterations until the last one or a request to stop."""
    total = loop.config.run.iterations
    with MetricsWriter(workdir, state.iteration) as metrics, Progress(total, state.iteration, console) as progress:
        stopping = False
        while state.iteration < total and not stopping:
            stop.doing = f"iteration {state.iteration + 1}"
            row = _one_iteration(loop, state, progress, show)
            metrics.write(row)
            progress.update(row)
            for warning in metrics.take_warnings():
                note(warning, progress.note)
            stopping = stop.agree()
            if state.iteration % loop.config.checkpoint.every == 0 or state.iteration == total or stopping:
                with progress.working("saving"):
                    save()
                metrics.event("checkpoint", state.iteration)


def _one_iteration(loop: LearningLoop[S], state: S, progress: Progress, show: Callable[[Any, Progress], Row]) -> Row:
    """Run one iteration, showing its events; returns its row of metrics."""
    started, is_first, row = time.monotonic(), state.iteration == 0, Row()
    with contextlib.ExitStack() as phase:
        for event in loop.iterate(state):
            match event:
                case Phase(text):
                    phase.close()
                    phase.enter_context(progress.working(f"{text} (compiling at first)" if is_first else text))
                case Trained(metrics=losses):
                    row |= losses
                case _:
                    row |= show(event, progress)
    return {"iteration": state.iteration, "steps": int(state.train.step), **row, "seconds": time.monotonic() - started}


def _conclude(config: Config, state: LearningState, workdir: Path, console: Console) -> int:
    """Write the network alone and the report, and say how the run ended."""
    if mesh_lib.is_lead():
        exported = export_network(workdir, workdir / EXPORT)
        show_report(workdir, console)
        console.print(f"network: {exported}")
    if state.iteration >= config.run.iterations:
        console.print(f"finished: {state.iteration} iterations, {int(state.train.step):,} steps")
        return 0
    console.print(f"stopped and saved after iteration {state.iteration}; the same command continues the run", style="yellow")
    return EXIT_INTERRUPTED
