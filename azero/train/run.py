"""Running an experiment: start or resume, log, save, stop. All input and output of a run is here."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jax
from jax.sharding import Mesh
from rich.console import Console
from rich.text import Text

from azero import mesh as mesh_lib
from azero.compilation_cache import use_compilation_cache
from azero.console.progress import Progress, working
from azero.console.tables import format_bytes, format_duration
from azero.console.terminal import make_console
from azero.data import run_files as files
from azero.data.files import describe_system_error
from azero.distributed import EXIT_INTERRUPTED, Line, together
from azero.experiment import Experiment
from azero.match.arena import evaluation_row
from azero.report.metrics import MetricsWriter
from azero.report.page import write_report
from azero.report.pieces import start_of
from azero.settings import Config
from azero.train.estimate import LIFETIME_SECONDS, estimate, mean_simulations
from azero.train.events import Evaluated, Event, IterationDone, MatchSkipped, Phase, Played, SampleGame, Trained
from azero.train.going_back import explain_divergence, go_back
from azero.train.hosts import agree_on_settings, check_shared, describe_devices, hold_workdir, note
from azero.train.loop import Loop, RunState
from azero.train.saving import Saver, settle
from azero.train.stopping import StopRequest, stop_on_signals


def run(
    experiment: Experiment,
    config: Config,
    workdir: Path,
    console: Console | None = None,
    conduct: Conduct | None = None,
    from_checkpoint: int | None = None,
) -> int:
    """Start or continue the run in `workdir`; return its exit status.

    Args:
      experiment: its name and title.
      config: its settings.
      workdir: the run's directory.
      console: where to say what happens; None is the standard output.
      conduct: how iterations come about; None is `Loop.iterate`, all in this process.
      from_checkpoint: the checkpoint to go back to; None is the newest.

    Raises:
      ValueError: settings do not fit each other, the devices, or what is in `workdir`.
      CheckpointError: no checkpoint can be read, or one cannot be written.
      StorageError: the disk is full or cannot be written to.
      FloatingPointError: learning has diverged; the text says what can be done.
      OSError: the system refuses a file or a directory.
    """
    with together(config.run, workdir) as line:
        console = console or make_console(quiet=not mesh_lib.is_lead())
        return _run(experiment, agree_on_settings(config), workdir, line, console, conduct, from_checkpoint)


def _run(experiment: Experiment, config: Config, workdir: Path, line: Line, console: Console, conduct: Conduct | None, from_checkpoint: int | None) -> int:
    if conduct is not None and jax.process_count() > 1:
        raise ValueError("--cluster hires workers for one process, and this run has several; start one, or leave --cluster out")
    use_compilation_cache()
    mesh = mesh_lib.make_mesh()
    _announce(experiment, config, workdir, console)
    with hold_workdir(workdir):
        if from_checkpoint is not None:
            console.print(go_back(workdir, from_checkpoint, config), style="yellow", markup=False)
        return _run_in(experiment, config, workdir, mesh, line, console, conduct)


def _run_in(experiment: Experiment, config: Config, workdir: Path, mesh: Mesh, line: Line, console: Console, conduct: Conduct | None) -> int:
    """Run in a working directory that is there, and this run's alone."""
    with working("preparing the run", console):
        check_shared(workdir)
        config = settle(config, workdir)
        loop = Loop(config, mesh, workdir)
        saver = Saver(workdir, config)
        state = saver.restore(loop)
        loop.programs.trace_match()
    for text in saver.take_notes() + state.replay.take_warnings():
        note(text, functools.partial(console.print, style="yellow"))
    if state.iteration:
        console.print(f"continuing after iteration {state.iteration} ({state.games:,} games, {int(state.train.step):,} steps)")
    if mesh_lib.is_lead():
        files.write_config(workdir, loop.config)
        files.write_run(workdir, experiment.name, loop.config)
    with stop_on_signals(workdir, line) as stop, contextlib.ExitStack() as crew:
        crew.enter_context(explain_divergence(workdir, f"azero train {experiment.name} --workdir {workdir}", stop))
        # Nothing writes to the directory any more when another process may take it.
        crew.callback(saver.finish)
        crew.callback(state.replay.close)
        iterate = loop.iterate if conduct is None else crew.enter_context(conduct(loop, state, stop))
        finished = _iterate(loop, iterate, state, saver, workdir, stop, console)
    return _conclude(finished, state, workdir, console)


def _announce(experiment: Experiment, config: Config, workdir: Path, console: Console) -> None:
    """Say what will run, where, and what it would take."""
    devices = jax.devices()
    console.print(Text.assemble((experiment.name, "bold"), f"  {experiment.title}"))
    console.print(f"devices: {describe_devices()}; working directory: {workdir}")
    cost = estimate(config)
    if cost.seconds < LIFETIME_SECONDS:
        return
    small = "cpu" if devices[0].platform == "cpu" else "one_gpu"
    console.print(
        f"The whole run would take about {format_duration(cost.seconds)} on this machine (by arithmetic alone: {cost.flops:.2g} operations at "
        f"{cost.flops_per_second / 1e9:,.0f} GFLOP/s; trees of {format_bytes(cost.tree_bytes)}). It starts all the same, and can be stopped and continued at "
        f"any time. To see it learn here, take a smaller one: --config configs/{small}.toml, or python -m azero.experiments.go5",
        style="yellow",
    )


Iterate = Callable[[RunState], Iterator[Event]]
"""Runs one iteration on a state, in place."""
Conduct = Callable[[Loop, RunState, StopRequest], AbstractContextManager[Iterate]]
"""Readies what iterations need besides the loop (workers elsewhere), and lets go of it when the run ends."""


def _iterate(loop: Loop, iterate: Iterate, state: RunState, saver: Saver, workdir: Path, stop: StopRequest, console: Console) -> bool:
    """Run iterations until the last one or a request to stop; return whether the run is finished."""
    total = loop.config.run.iterations
    with MetricsWriter(workdir, state.iteration) as metrics, Progress(total, state.iteration, console) as progress:
        stopping, is_saved = False, state.iteration > 0
        stop.is_saving = saver.is_writing
        while state.iteration < total and not stopping:
            stop.doing = f"iteration {state.iteration + 1}"
            with _profiled(loop.config, state.iteration + 1, workdir):
                _one_iteration(loop, iterate, state, metrics, progress)
            stopping = stop.agree()
            # What goes wrong in a match goes wrong in it again: without a checkpoint before the first one, every start would repeat all that led to it.
            before_match = not is_saved and state.iteration < total and loop.match_is_due(state)
            if state.iteration % loop.config.checkpoint.every == 0 or state.iteration == total or stopping or before_match:
                with progress.working("saving"):
                    saver.save(state)
                    if before_match:
                        saver.wait()
                is_saved = True
                metrics.event("checkpoint", state.iteration)
        with progress.working("waiting for the last checkpoint"):
            saver.close()
    return state.iteration >= total


def _one_iteration(loop: Loop, iterate: Iterate, state: RunState, metrics: MetricsWriter, progress: Progress) -> None:
    """Run one iteration, showing and recording its events."""
    started = time.monotonic()
    losses: dict[str, float] = {}
    with contextlib.ExitStack() as phase:
        for event in iterate(state):
            match event:
                case Phase(text):
                    phase.close()
                    phase.enter_context(progress.working(text if state.iteration > 0 else f"{text} (compiling at first)"))
                case Played():
                    pass
                case Trained(metrics=losses):
                    pass
                case Evaluated(iteration, opponent, result, promoted):
                    metrics.event_row(evaluation_row(iteration, opponent, result, promoted))
                    progress.note(f"iteration {iteration} against iteration {opponent}: {result}{_verdict(promoted)}")
                case MatchSkipped(iteration, opponent, reason):
                    metrics.event("match skipped", iteration, opponent_iteration=opponent, reason=reason)
                    progress.note(f"iteration {iteration} does not play iteration {opponent}: {reason}")
                case IterationDone():
                    row = _row(loop.config, event, losses, time.monotonic() - started)
                    metrics.write(row)
                    progress.update(row)
                    if event.samples:
                        metrics.samples(event.iteration, [_sample(loop, event.iteration, game) for game in event.samples])
                    for warning in event.warnings + metrics.take_warnings():
                        note(warning, progress.note)


def _verdict(promoted: bool | None) -> str:
    return {None: "", True: "; it is the new best player", False: "; the best player stays"}[promoted]


def _row(config: Config, event: IterationDone, losses: dict[str, float], seconds: float) -> dict[str, Any]:
    """Return the metrics row of an iteration."""
    games = max(event.new_games, 1)
    speed = event.new_positions / event.selfplay_seconds
    return {
        "iteration": event.iteration,
        "games": event.games,
        "positions": event.positions,
        "steps": event.steps,
        "window_games": event.window_games,
        "window_positions": event.window_positions,
        "first_wins": event.first_wins / games,
        "draws": event.draws / games,
        "game_length": event.mean_length,
        "network_age": event.network_age,
        "seconds": seconds,
        "selfplay_seconds": event.selfplay_seconds,
        "learn_seconds": event.learner_seconds,
        "wait_seconds": event.learner_wait_seconds,
        "positions_per_second": speed,
        "simulations_per_second": speed * mean_simulations(config),
        **(_resignation(event, games) if config.selfplay.resign else {}),
        **losses,
    }


def _resignation(event: IterationDone, games: int) -> dict[str, float]:
    """Return what of the metrics row is about resignation."""
    return {
        "resigned": event.resigned / games,
        "resign_threshold": event.resign_threshold,
        "resign_false_positives": event.resign_false_positives,
    }


def _sample(loop: Loop, iteration: int, game: SampleGame) -> files.SampleGame:
    ending = "resignation" if game.resigned else "played out"
    return files.SampleGame(
        game=loop.config.game.name,
        board=loop.game.board_shape,
        actions=tuple(game.actions),
        rewards=(game.result, -game.result),
        ending=ending,
        values=tuple(game.values[: len(game.actions)]),
        komi=getattr(loop.config.game, "komi", None),
        names=(f"iteration {iteration}", f"iteration {iteration}"),
        start="" if loop.starts is None else start_of(loop.config.game.name, game.frame),
    )


@contextlib.contextmanager
def _profiled(config: Config, iteration: int, workdir: Path) -> Iterator[None]:
    """Write a profiler trace of the iteration that the settings name."""
    if config.run.profile_iteration != iteration:
        yield
        return
    with jax.profiler.trace(str(workdir / "profile")):
        yield


def _conclude(finished: bool, state: RunState, workdir: Path, console: Console) -> int:
    """Write the report and say how the run ended."""
    show_report(workdir, console)
    if finished:
        console.print(f"finished: {state.iteration} iterations, {state.games:,} games, {state.positions:,} positions, {int(state.train.step):,} steps")
        return 0
    console.print(f"stopped and saved after iteration {state.iteration}; the same command continues the run", style="yellow")
    return EXIT_INTERRUPTED


def show_report(workdir: Path, console: Console) -> None:
    """Write the report and say where it is, or why it could not be written, which ends no run."""
    if not mesh_lib.is_lead():
        return
    try:
        console.print(f"report: {write_report(workdir)}")
    except (ValueError, OSError) as error:
        reason = describe_system_error(error) if isinstance(error, OSError) else error
        console.print(f"the report cannot be written: {reason}; azero report {workdir} writes it later", style="yellow", markup=False)
