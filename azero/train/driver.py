"""The driver of every run: it starts, resumes, logs, saves and stops a `Stage`.

All input and output of a run is here; a stage is `state -> events`, with its own start-up and
metrics.
"""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shlex import quote

import jax
from rich.console import Console
from rich.text import Text

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer, CheckpointError, export_network
from azero.compilation_cache import use_compilation_cache
from azero.config import to_dict
from azero.console.progress import Progress, working
from azero.console.tables import count_of
from azero.console.terminal import make_console
from azero.data import run_files as files
from azero.data.files import describe_error
from azero.data.rows import Row
from azero.distributed import EXIT_INTERRUPTED, ProcessLinks, join_cluster
from azero.experiment import Experiment
from azero.learn.learner import check_state
from azero.report.metrics import MetricsWriter
from azero.report.page import write_report
from azero.report.weights_and_biases import WandbRun
from azero.settings import Config
from azero.train.events import Phase
from azero.train.going_back import explain_divergence, go_back
from azero.train.hosts import check_shared, describe_devices, hold_workdir, note
from azero.train.resolving import agree_on_settings, resolve_settings
from azero.train.saving import check_complete
from azero.train.stage import Iterate, MakeStage, S, Stage
from azero.train.stopping import StopRequest, stop_on_signals

EXPORT = "checkpoint"
"""Directory of the network alone, inside the working directory."""


def run_experiment(
    experiment: Experiment,
    config: Config,
    workdir: Path,
    make_stage: MakeStage[S],
    console: Console | None = None,
    from_checkpoint: int | None = None,
    command: str | None = None,
) -> int:
    """Join the other processes, where there are any, and run an experiment's stage; return its exit
    status. The run goes back to `from_checkpoint`, if one is given. `command` continues the run;
    None is that of the experiment with its own settings.

    Raises:
      ValueError: settings do not fit each other, the devices, the data, or what is in `workdir`.
      CheckpointError: no checkpoint can be read, or one cannot be written, or all are gone.
      StorageError: the disk is full or cannot be written to.
      FloatingPointError: the network's first variables are not finite, or learning has diverged;
        the text says what can be done.
      OSError: the system refuses a file or a directory.
    """
    with join_cluster(config.run, workdir) as links:
        console = console or make_console(quiet=not mesh_lib.is_lead())
        config = agree_on_settings(config, from_checkpoint)
        use_compilation_cache()
        console.print(Text.assemble((experiment.name, "bold"), f"  {experiment.title}"))
        console.print(f"devices: {describe_devices()}; working directory: {workdir}")
        command = command or f"azero train {experiment.name} --workdir {quote(str(workdir))}"
        return run_stage(
            experiment.name, config, workdir, make_stage, console, links, from_checkpoint, command
        )


def run_stage(
    name: str,
    config: Config,
    workdir: Path,
    make_stage: MakeStage[S],
    console: Console,
    links: ProcessLinks | None = None,
    from_checkpoint: int | None = None,
    command: str | None = None,
) -> int:
    """Start or continue the run of a stage of the experiment `name` in `workdir`; return its exit
    status. `links` are those to the other processes of the run, if there are any; `command`
    continues the run and takes --from-checkpoint, if there is one.

    Raises:
      The same as `run_experiment`.
    """
    warn = partial(console.print, style="yellow")
    with hold_workdir(workdir):
        with working("preparing the run", console):
            check_shared(workdir)
            check_complete(workdir)
            stage = make_stage(resolve_settings(config, workdir), workdir)
            # Last of what may refuse the settings: a refused start moves nothing.
            went = "" if from_checkpoint is None else go_back(workdir, from_checkpoint, config)
            checkpointer = Checkpointer(workdir, stage.config)
            state, warnings = stage.restore(checkpointer)
            if state.iteration == 0:
                check_state(state.train)  # later ones are checked before they are saved
        if stage.announcement is not None:
            console.print(stage.announcement)
        if went:
            warn(went)
        for text in checkpointer.take_warnings() + warnings:
            note(text, warn)
        if state.iteration:
            console.print(f"continuing after iteration {state.iteration} ({stage.count(state)})")
        if mesh_lib.is_lead():
            files.write_config(workdir, stage.config)
            files.write_run(workdir, name, stage.config)
        with (
            stop_on_signals(workdir, links, stage.owns_process) as stop,
            explain_divergence(workdir, command, stop),
        ):
            stop.is_saving = checkpointer.is_writing
            with _awaiting_save(checkpointer), stage.open(state, stop) as iterate:
                _run_iterations(stage, iterate, state, checkpointer, workdir, stop, console)
        return _conclude(stage, state, workdir, console)


@contextlib.contextmanager
def _awaiting_save(checkpointer: Checkpointer) -> Iterator[None]:
    """Wait at the end, also after an error, until no checkpoint is being written.

    After an error of the run, a failed save is not reported as well.
    """
    try:
        yield
    finally:
        with contextlib.suppress(CheckpointError):
            checkpointer.wait()


def _run_iterations(
    stage: Stage[S],
    iterate: Iterate[S],
    state: S,
    checkpointer: Checkpointer,
    workdir: Path,
    stop: StopRequest,
    console: Console,
) -> None:
    """Run iterations until the last one or a request to stop."""
    total, is_due = stage.config.run.iterations, stage.config.checkpoint.is_due
    wandb, settings = stage.config.run.wandb, to_dict(stage.config)
    open_wandb = None if wandb is None else partial(WandbRun, workdir, wandb, settings)
    with (
        MetricsWriter(workdir, state.iteration, open_wandb) as metrics,
        Progress(total, state.iteration, console) as progress,
    ):
        stopping, is_saved = False, state.iteration > 0
        while state.iteration < total and not stopping:
            stop.doing = f"iteration {state.iteration + 1}"
            with _profiled(stage.config, state.iteration + 1, workdir):
                _run_iteration(stage, iterate, state, metrics, progress)
            stopping = stop.agree()
            # Without a checkpoint before a failure, every restart would repeat everything.
            is_risky = not is_saved and state.iteration < total and stage.is_risky(state)
            if is_due(state.iteration) or state.iteration == total or stopping or is_risky:
                with progress.working("saving"):
                    checkpointer.wait()
                    check_state(state.train)
                    stage.save(checkpointer, state)
                    if is_risky:
                        checkpointer.wait()
                is_saved = True
                metrics.event("checkpoint", state.iteration)
        with progress.working("waiting for the last checkpoint"):
            checkpointer.close()


def _run_iteration(
    stage: Stage[S], iterate: Iterate[S], state: S, metrics: MetricsWriter, progress: Progress
) -> None:
    """Run one iteration, showing its events and recording its row of metrics."""
    started, is_first, row = time.monotonic(), state.iteration == 0, Row()
    with contextlib.ExitStack() as phase:
        for event in iterate(state):
            match event:
                case Phase(text):
                    phase.close()
                    shown = f"{text} (compiling at first)" if is_first else text
                    phase.enter_context(progress.working(shown))
                case dict():
                    row |= event
                case _:
                    row |= stage.report(event, metrics, progress)
    counts = {"iteration": state.iteration, "steps": int(state.train.step)}
    row = {**counts, **row, "seconds": time.monotonic() - started}
    metrics.write(row)
    stage.on_metrics(Row(row))
    progress.update(row)
    for warning in metrics.take_warnings():
        note(warning, progress.note)


@contextlib.contextmanager
def _profiled(config: Config, iteration: int, workdir: Path) -> Iterator[None]:
    """Write a profiler trace of the iteration that the settings name."""
    if config.run.profile_iteration != iteration:
        yield
        return
    with jax.profiler.trace(str(workdir / "profile")):
        yield


def _conclude(stage: Stage[S], state: S, workdir: Path, console: Console) -> int:
    """Write the report and the exported network, and print how the run ended."""
    if mesh_lib.is_lead():
        exported = export_network(workdir, workdir / EXPORT) if stage.exports_network else None
        _write_report(workdir, console)
        if exported is not None:
            console.print(f"network: {exported}")
    if state.iteration >= stage.config.run.iterations:
        console.print(f"finished: {count_of(state.iteration, 'iteration')}, {stage.count(state)}")
        return 0
    console.print(
        f"stopped and saved after iteration {state.iteration}; the same command continues the run",
        style="yellow",
    )
    return EXIT_INTERRUPTED


def _write_report(workdir: Path, console: Console) -> None:
    """Write the report and print its path; an error is printed and does not end the run."""
    try:
        console.print(f"report: {write_report(workdir)}")
    except (ValueError, OSError) as error:
        console.print(
            f"the report cannot be written: {describe_error(error)}; azero report "
            f"{quote(str(workdir))} writes it later",
            style="yellow",
        )
