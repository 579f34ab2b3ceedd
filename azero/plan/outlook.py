"""From what programs cost to what a run takes: moves, steps, games a day, days."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from azero.experiment import Experiment
from azero.plan.cost import ASSUMED_TURNS
from azero.plan.planning import Finding, PlannedPrograms
from azero.players.searches import match_settings
from azero.settings import Config
from azero.train.estimate import evaluation_flops, mean_simulations

PUBLISHED_GAMES = {"go19": 4.9e6, "go19_40b": 29e6, "go19_alphazero": 140e6, "chess": 44e6, "shogi": 24e6}
"""Games of the published runs (AGZ, 'Empirical analysis' and 'Final performance'; AZ Table S3)."""
_UNPUBLISHED_SHARE = 1 / 3
"""Moves of a game where no number of games is published, as a share of the most that a game may have (as in `azero doctor`)."""


@dataclass(frozen=True)
class Outlook:
    """What a run takes; None where an experiment does not play."""

    evaluation_flops: float
    """One evaluation of the network, by its layers."""
    step_seconds: float
    """A training step with the unpacking of its samples, at the roofline."""
    step_flops: float
    """Of one device, in the compiled program."""
    step_hand_flops: float
    """The same by the layers: three evaluations for each position, one forward and two back."""
    learner_share: float
    run_steps: float
    run_days: float
    run_games: float | None = None
    simulation_flops: float | None = None
    """Of the compiled program; the root's evaluation counts as a simulation."""
    simulation_bytes: float | None = None
    move_seconds: float | None = None
    """A move in all games at once, at the roofline."""
    positions_per_second: float | None = None
    """Of self-play, on all devices, at the assumed efficiency."""
    games_per_day: float | None = None
    """Of the whole run: self-play, learning and matches in turn, at the assumed efficiency."""
    assumptions: list[str] = field(default_factory=list)


def outlook(experiment: Experiment, config: Config, programs: PlannedPrograms, found: dict[str, Finding], efficiency: float) -> Outlook:
    """Draw the conclusions from what was found about the programs of `config`, an experiment's settings with what the user changed."""
    evaluation = evaluation_flops(programs.parameters, programs.game.board_shape)
    steps, train = config.learner.steps_per_iteration, found["train step"].cost
    step_seconds = train.seconds + found["unpack"].cost.seconds
    length = game_length(experiment)
    play_seconds = _play_seconds(config, found, length) if "self-play" in found else 0.0
    iteration = (play_seconds + steps * step_seconds) / efficiency
    learned = Outlook(
        evaluation_flops=evaluation,
        step_seconds=step_seconds,
        step_flops=train.flops,
        step_hand_flops=3 * evaluation * config.learner.batch_size / programs.mesh.size,
        learner_share=steps * step_seconds / efficiency / iteration,
        run_steps=config.run.iterations * steps,
        run_days=config.run.iterations * iteration / 86_400,
        assumptions=_assumptions(config, found, efficiency, length),
    )
    if "self-play" not in found:
        return learned
    play, moves = found["self-play"].cost, config.selfplay.moves_per_dispatch
    simulated = moves * (config.search.num_simulations + 1) * config.selfplay.num_games / programs.mesh.size
    positions = iteration_positions(config)
    return dataclasses.replace(
        learned,
        run_games=config.run.iterations * positions / length,
        simulation_flops=play.flops / simulated,
        simulation_bytes=play.hbm_bytes / simulated,
        move_seconds=_saving(config) * play.seconds / moves,
        positions_per_second=efficiency * moves * config.selfplay.num_games / (_saving(config) * play.seconds),
        games_per_day=positions / length / iteration * 86_400,
    )


def iteration_positions(config: Config) -> int:
    """Return the positions that self-play makes in an iteration."""
    return config.selfplay.num_games * config.selfplay.moves_per_dispatch * config.selfplay.dispatches_per_iteration


def game_length(experiment: Experiment) -> float:
    """Return the moves of a game: those by which the experiment's own settings come to the published number of games, else a share of the longest game."""
    config = experiment.config
    if experiment.name in PUBLISHED_GAMES:
        return config.run.iterations * iteration_positions(config) / PUBLISHED_GAMES[experiment.name]
    return config.game.build().max_moves * _UNPUBLISHED_SHARE


def _saving(config: Config) -> float:
    """Return the mean simulations of a move as a share of those of the full search, which is what the compiled program counts."""
    return mean_simulations(config) / config.search.num_simulations


def _play_seconds(config: Config, found: dict[str, Finding], length: float) -> float:
    """Return the seconds of self-play and of the share of a match in one iteration."""
    evaluation = config.evaluation
    play = config.selfplay.dispatches_per_iteration * _saving(config) * found["self-play"].cost.seconds
    games = evaluation.gate_games if evaluation.gate else evaluation.games
    match_positions = games * length / evaluation.every if evaluation.every else 0.0
    simulations = match_settings(config).num_simulations * match_positions / (mean_simulations(config) * iteration_positions(config))
    return found["fold"].cost.seconds + play * (1 + simulations)


def _assumptions(config: Config, found: dict[str, Finding], efficiency: float, length: float) -> list[str]:
    """Return what the times rest on, one sentence each."""
    lines = [
        "roofline: every instruction of the optimised program at the chip's peak bf16 rate or its full memory bandwidth, whichever takes longer, one after the "
        "other; loops count as often as the compiler knows them to run, float32 products at the highest precision as six of bf16",
        f"a real run reaches {100 * efficiency:.0f}% of it (--efficiency; not measured on a TPU)",
    ]
    if "self-play" in found:
        unknown = found["self-play"].cost.unknown_loops
        lines.append(f"{unknown} loops of self-play run until the data says so (descents, backups, floods) and count {ASSUMED_TURNS} times")
        lines.append(f"a game has {length:.0f} moves; self-play, learning and matches take turns on the same chips")
    if config.selfplay.fast_simulations is not None:
        lines.append("fast moves of playout-cap randomisation take their share of the simulations of a full one")
    return lines
