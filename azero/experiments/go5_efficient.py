"""5x5 Go from scratch, on two CPU cores in minutes: `make demo`. As `go5`, with the network
and the losses of `go9_efficient`. Black wins the whole board by opening in the centre (van der Werf
2002)."""

import dataclasses

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.experiments import go5, go9_efficient
from azero.networks.settings import PooledConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="go5_efficient",
    title="5x5 Go: from random play to the centre opening in minutes on two CPU cores",
    config=dataclasses.replace(
        go5.EXPERIMENT.config,
        # A fixed convolution, so that machines with and without bf16 units give the same network.
        network=PooledConfig(
            blocks=4,
            filters=32,
            value_hidden=32,
            score_hidden=32,
            train_dtype="float32",
            inference_dtype="float32",
            convolution="winograd",
        ),
        replay=ReplayConfig(window_games=5000, min_positions=8192),
        learner=dataclasses.replace(
            go9_efficient.EXPERIMENT.config.learner,
            batch_size=256,
            steps_per_iteration=64,  # every new position twice on average
            # Lowered over the last two fifths of the run's 3,008 steps.
            learning_rate=((0, 2e-3), (1800, 2e-3), (3008, 1e-4)),
            rate_between="linear",
            warmup_steps=50,
            average_decay=None,  # the falling learning rate does the same in so short a run
        ),
        # Small matches, and the first one soon: it is the first sign of learning.
        evaluation=dataclasses.replace(
            go5.EXPERIMENT.config.evaluation, every=4, games=24, temperature_moves=0, random_plies=4
        ),
        checkpoint=CheckpointConfig(every=4, keep=3, keep_every=12),
        run=RunConfig(iterations=48),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
