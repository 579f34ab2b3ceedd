"""From the cost of programs to the time of a run: moves, steps, games a day, days."""

import dataclasses
from dataclasses import dataclass, field

from azero.experiment import Experiment
from azero.plan.compiled import ProgramCost
from azero.plan.cost import ASSUMED_TURNS
from azero.plan.programs import PlannedPrograms
from azero.players.searches import match_settings
from azero.settings import Config
from azero.train.estimate import (
    TRAINING_PASSES,
    evaluation_flops,
    full_simulations,
    mean_length,
    mean_simulations,
    of_all_games,
    positions_per_iteration,
)

PUBLISHED_GAMES = {
    "go19": 4.9e6,
    "go19_40b": 29e6,
    "go19_alphazero": 140e6,
    "chess": 44e6,
    "shogi": 24e6,
}
"""Games of the published runs (AGZ, 'Empirical analysis' and 'Final performance'; AZ Table S3)."""


@dataclass(frozen=True)
class RunCost:
    """The time and work of a run; fields are None for an experiment without self-play."""

    evaluation_flops: float
    """Cost of one evaluation of the network, from its layers."""
    step_seconds: float
    """A training step with the unpacking of its samples, at the roofline."""
    step_flops: float
    """FLOPs of one device, in the compiled program."""
    step_hand_flops: float
    """The same from the layers: three evaluations per position, one forward and two backward."""
    learner_share: float
    run_steps: float
    run_days: float
    run_games: float | None = None
    simulation_flops: float | None = None
    """Of the compiled program; the root's evaluation counts as a simulation."""
    simulation_bytes: float | None = None
    move_seconds: float | None = None
    """Seconds of one move in all games, at the roofline."""
    positions_per_second: float | None = None
    """Of self-play, on all devices, at the assumed efficiency."""
    games_per_day: float | None = None
    """Of the whole run: self-play, learning and matches in turn, at the assumed efficiency."""
    assumptions: list[str] = field(default_factory=list)


def run_cost(
    experiment: Experiment,
    programs: PlannedPrograms,
    costs: dict[str, ProgramCost],
    efficiency: float,
) -> RunCost:
    """Return what a run of `experiment` takes, with the settings that `programs` were made of.

    `efficiency` is the share of the roofline that the run is taken to reach.
    """
    config = programs.config
    evaluation = evaluation_flops(config.network, programs.game)
    steps, train = config.learner.steps_per_iteration, costs["train step"].work
    step_seconds = train.seconds + costs["unpack"].work.seconds
    length = game_length(experiment)
    play_seconds = _play_seconds(config, costs, length) if "self-play" in costs else 0.0
    iteration = (play_seconds + steps * step_seconds) / efficiency
    learned = TRAINING_PASSES * config.learner.batch_size / programs.mesh.size
    cost = RunCost(
        evaluation_flops=evaluation,
        step_seconds=step_seconds,
        step_flops=train.flops,
        step_hand_flops=learned * evaluation,
        learner_share=steps * step_seconds / efficiency / iteration,
        run_steps=config.run.iterations * steps,
        run_days=config.run.iterations * iteration / 86_400,
        assumptions=_assumptions(config, costs, efficiency, length),
    )
    if "self-play" not in costs:
        return cost
    play, moves = costs["self-play"].work, config.selfplay.moves_per_dispatch
    local_positions = moves * config.selfplay.num_slots / programs.mesh.size
    simulated = (_compiled_simulations(config) + 1) * local_positions
    move_seconds = _simulated_share(config) * play.seconds / moves
    positions = positions_per_iteration(config)
    return dataclasses.replace(
        cost,
        run_games=config.run.iterations * positions / length,
        simulation_flops=play.flops / simulated,
        simulation_bytes=play.hbm_bytes / simulated,
        move_seconds=move_seconds,
        positions_per_second=efficiency * config.selfplay.num_slots / move_seconds,
        games_per_day=positions / length / iteration * 86_400,
    )


def game_length(experiment: Experiment) -> float:
    """Return the moves of a game on average.

    They are those by which the experiment's own settings come to the published number of games, a
    planning figure where none was published.
    """
    config = experiment.config
    if experiment.name in PUBLISHED_GAMES:
        positions = config.run.iterations * positions_per_iteration(config)
        return positions / PUBLISHED_GAMES[experiment.name]
    return mean_length(config.game.build())


def _simulated_share(config: Config) -> float:
    """Return the mean simulations of a move as a share of those that are compiled."""
    return mean_simulations(config) / _compiled_simulations(config)


def _compiled_simulations(config: Config) -> float:
    """Return the mean simulations of a move if all searches are the last iteration's full ones."""
    return of_all_games(config, full_simulations(config, config.run.iterations - 1))


def _play_seconds(config: Config, costs: dict[str, ProgramCost], length: float) -> float:
    """Return the seconds of self-play and of the share of a match in one iteration."""
    evaluation, dispatches = config.evaluation, config.selfplay.dispatches_per_iteration
    play = dispatches * _simulated_share(config) * costs["self-play"].work.seconds
    games = evaluation.gate_games if evaluation.gate else evaluation.games
    match_positions = games * length / evaluation.every if evaluation.every else 0.0
    match_simulations = match_settings(config).num_simulations * match_positions
    simulations = mean_simulations(config) * positions_per_iteration(config)
    return costs["fold"].work.seconds + play * (1 + match_simulations / simulations)


def _assumptions(
    config: Config, costs: dict[str, ProgramCost], efficiency: float, length: float
) -> list[str]:
    """Return the assumptions behind the times, one sentence each."""
    lines = [
        "roofline: every instruction of the optimised program at the chip's peak bf16 rate or its "
        "full memory bandwidth, whichever takes longer, in sequence; loops with their known trip "
        "counts, float32 products at the highest precision as six of bf16",
        f"a real run reaches {100 * efficiency:.0f}% of it (--efficiency; not measured on a TPU)",
    ]
    if "self-play" in costs:
        unknown = costs["self-play"].work.unknown_loops
        turns = f"(descents, backups, floods) and count {ASSUMED_TURNS} times"
        lines.append(f"{unknown} loops of self-play have data-dependent lengths {turns}")
        rest = "self-play, learning and matches take turns on the same chips"
        lines.append(f"a game has {length:.0f} moves; {rest}")
    if config.selfplay.fast_simulations is not None:
        share = "their share of the simulations of a full one"
        lines.append(f"fast moves of playout-cap randomisation take {share}")
    return lines
