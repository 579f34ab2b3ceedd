"""The stage that learns from self-play: AlphaGo Zero and AlphaZero."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import jax
from rich.text import Text

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer
from azero.console.progress import Progress
from azero.console.tables import count_of, format_bytes, format_duration
from azero.data import run_files as files
from azero.data.rows import Row
from azero.evaluate.accuracy import Accuracy
from azero.games.go.rules import Go
from azero.match.arena import evaluation_row
from azero.report.metrics import MetricsWriter
from azero.report.pieces import start_of
from azero.settings import Config
from azero.train.boards import on_other_boards
from azero.train.estimate import LIFETIME_SECONDS, estimate, mean_simulations
from azero.train.events import Evaluated, Event, IterationDone, MatchSkipped, SampleGame
from azero.train.hosts import note
from azero.train.loop import Loop, RunState
from azero.train.saving import keep_first_network, restore_selfplay, save_selfplay
from azero.train.stage import Iterate, Stage, report_accuracy
from azero.train.stopping import StopRequest

WorkerBackend = Callable[[Loop, RunState, StopRequest], AbstractContextManager[Iterate[RunState]]]
"""Starts workers elsewhere for the iterations of a run, and stops them when it ends."""


def make_selfplay_stage(
    config: Config,
    workdir: Path,
    backend: WorkerBackend | None = None,
    from_network: Path | None = None,
) -> Stage[RunState]:
    """Return the stage; its programs are not compiled yet. Games and matches are played by
    `backend`, or in this process, and a new run starts from the network in `from_network`, or from
    random parameters.

    Raises:
      ValueError: settings do not fit each other or the devices; no recorded game can be read.
      CheckpointError: the network that the run starts from cannot be read.
    """
    if backend is not None and on_other_boards(config):
        raise ValueError("game.selfplay-sizes: with --cluster a run has one board size")
    if backend is not None and jax.process_count() > 1:
        problem = "--cluster needs a learner of one process, and this run has several"
        raise ValueError(f"{problem}; start one, or omit --cluster")
    if not config.network.HAS_POLICY_AND_VALUE:
        raise ValueError(
            f"network.name {config.network.name} has no policy or no value, and self-play needs "
            "both: use another; azero train alphago9 learns the networks of 2016"
        )
    notes = _warn_of_gate(config)
    notes += keep_first_network(from_network, workdir)
    loop = Loop(config, mesh_lib.make_mesh(), workdir)
    loop.programs.trace_match()
    loop.read_records()

    def restore(checkpointer: Checkpointer) -> tuple[RunState, list[str]]:
        state, others = restore_selfplay(checkpointer, loop)
        return state, notes + others

    return Stage(
        config=config,
        restore=restore,
        save=save_selfplay,
        open=partial(_open, loop, backend),
        report=partial(_report, loop),
        count=_count,
        announcement=_warn_of_cost(config),
        # An error in a match would occur again after a restart.
        is_risky=loop.match_is_due,
    )


def _warn_of_cost(config: Config) -> Text | None:
    """Return a warning if the run would take longer than LIFETIME_SECONDS."""
    cost = estimate(config)
    if cost.seconds < LIFETIME_SECONDS:
        return None
    small = "cpu" if jax.devices()[0].platform == "cpu" else "one_gpu"
    return Text(
        f"The whole run would take about {format_duration(cost.seconds)} on this machine (by "
        f"arithmetic alone: {cost.flops:.2g} operations at {cost.flops_per_second / 1e9:,.0f} "
        f"GFLOP/s; trees of {format_bytes(cost.tree_bytes)}). It starts anyway, and can be stopped "
        f"and continued at any time. A smaller one learns here: --config {small}, or "
        "python -m azero.experiments.go5",
        style="yellow",
    )


def _warn_of_gate(config: Config) -> list[str]:
    """Return a warning if the run ends before the first match of its gate."""
    first = max(2, config.evaluation.every)  # the first iteration has no match
    if not config.evaluation.gate or first <= config.run.iterations:
        return []
    return [
        f"the gate's first match is after iteration {first}, and the run ends after "
        f"{config.run.iterations}: all its games are those of its first network "
        "(evaluation.every, evaluation.gate)"
    ]


@contextlib.contextmanager
def _open(
    loop: Loop, backend: WorkerBackend | None, state: RunState, stop: StopRequest
) -> Iterator[Iterate[RunState]]:
    """Start the workers, if there are any; close them and the replay at the end."""
    with contextlib.ExitStack() as workers:
        for board in state.every_board:
            workers.enter_context(contextlib.closing(board.replay))
        if backend is None:
            yield loop.iterate
        else:
            yield workers.enter_context(backend(loop, state, stop))


def _count(state: RunState) -> str:
    counts = [(state.games, "game"), (state.positions, "position"), (int(state.train.step), "step")]
    return ", ".join(count_of(count, noun) for count, noun in counts)


def _report(loop: Loop, event: Event, metrics: MetricsWriter, progress: Progress) -> Row:
    """Record an event; return its part of the iteration's row of metrics."""
    match event:
        case Evaluated(iteration, opponent, result, promoted):
            metrics.event(**evaluation_row(iteration, opponent, result, promoted))
            verdict = _VERDICTS[promoted]
            progress.note(f"iteration {iteration} against iteration {opponent}: {result}{verdict}")
        case MatchSkipped(iteration, opponent, reason):
            metrics.event("match skipped", iteration, opponent_iteration=opponent, reason=reason)
            progress.note(f"iteration {iteration} does not play iteration {opponent}: {reason}")
        case Accuracy():
            return report_accuracy(event, progress)
        case IterationDone():
            if event.tally.samples:
                played = loop if event.board_size is None else loop.others[event.board_size]
                games = [_sample(played, event.iteration, game) for game in event.tally.samples]
                metrics.samples(event.iteration, games)
            for warning in event.warnings:
                note(warning, progress.note)
            return _row(loop.config, event)
    return {}


LISTED_OPENINGS = 10
"""Openings and corner sequences in a row of metrics: the most common ones of the iteration."""
_VERDICTS = {None: "", True: "; it is the new best player", False: "; the best player is kept"}
"""Text after a match, by whether the player was promoted."""


def _row(config: Config, event: IterationDone) -> Row:
    """Return an iteration's row of metrics."""
    tally = event.tally

    def mean(total: int) -> float | None:
        return total / tally.games if tally.games else None

    speed = tally.positions / event.selfplay_seconds
    resignation = {
        "resigned": mean(tally.resigned),
        "resign_threshold": event.resign_threshold,
        "resign_false_positives": event.resign_false_positives,
    }
    openings = {
        name: {
            text: round(count / tally.opened, 4)
            for text, count in counts.most_common(LISTED_OPENINGS)
        }
        for name, counts in (("corner_sequences", tally.corners), ("openings", tally.openings))
        if counts and event.board_size is None
    }
    return {
        "games": event.games,
        "positions": event.positions,
        "window_games": event.window_games,
        "window_positions": event.window_positions,
        "first_wins": mean(tally.first_wins),
        "draws": mean(tally.draws),
        "game_length": mean(tally.plies),
        "network_age": mean(tally.ages),
        "selfplay_seconds": event.selfplay_seconds,
        "learn_seconds": event.learner_seconds,
        "wait_seconds": event.learner_wait_seconds,
        "positions_per_second": speed,
        "simulations_per_second": speed * mean_simulations(config, event.iteration - 1),
        **(resignation if config.selfplay.resign else {}),
        **openings,
        **({} if event.board_size is None else {"board_size": event.board_size}),
    }


def _sample(loop: Loop, iteration: int, game: SampleGame) -> files.StoredGame:
    """Return a game of self-play as it is stored for the report."""
    settings, player = loop.config.game, f"iteration {iteration}"
    return files.StoredGame(
        game=settings.name,
        board=loop.game.board_shape,
        actions=tuple(game.actions),
        rewards=(game.result, -game.result),
        ending="resignation" if game.resigned else "played out",
        values=tuple(game.values[: len(game.actions)]),
        komi=loop.game.komi_of(game.frame) if isinstance(loop.game, Go) else None,
        names=(player, player),
        start=start_of(
            settings.name, loop.game.board_shape, game.frame, game.to_play, *game.actions[:1]
        ),
    )
