"""Connect four as Pgx has it, from scratch, on two CPU cores in minutes. With best play the first
player wins (Allen 1988; Allis 1988)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import minichess
from azero.interop.settings import PgxConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_SMALL = minichess.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="connect_four",
    title="Connect four, a Pgx environment: beats random moves in 99% of games",
    config=dataclasses.replace(
        _SMALL,
        game=PgxConfig(id="connect_four"),
        network=_SMALL.network.replace(policy_filters=4),
        search=_SMALL.search.replace(max_considered=7, edge_width=None),
        selfplay=dataclasses.replace(
            _SMALL.selfplay,
            # Without random moves the network lost 8 of 400 games to a random mover, whose
            # positions self-play no longer visited.
            random_moves=42,
            random_share=0.08,
            value_before_random="search",
        ),
        learner=dataclasses.replace(
            _SMALL.learner,
            optimiser="muon",
            # Lowered over the last two fifths of the run's 2,880 steps.
            learning_rate=((0, 2e-3), (1730, 2e-3), (2880, 1e-4)),
            rate_between="linear",
            warmup_steps=100,
            l2=1e-2,
            clip_norm=10.0,
        ),
        evaluation=dataclasses.replace(
            _SMALL.evaluation, every=30, temperature_moves=0, random_plies=4
        ),
        checkpoint=CheckpointConfig(every=5, keep=3, keep_every=10),
        run=RunConfig(iterations=120),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
