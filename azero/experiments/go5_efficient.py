"""5x5 Go from nothing, on two CPU cores in three minutes: `azero demo`. `go5` with what is known to
learn from fewer positions (docs/training-efficiently.md)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import go5, go9_efficient

EXPERIMENT = Experiment(
    name="go5_efficient",
    title="5x5 Go: from random play to beating GNU Go in three minutes on a CPU",
    config=dataclasses.replace(
        go5.EXPERIMENT.config,
        game=go5.EXPERIMENT.config.game.replace(planes=19),  # with the komi
        network=go9_efficient.EXPERIMENT.config.network.replace(
            blocks=4, filters=32, value_hidden=32, convolution="winograd"
        ),
        learner=dataclasses.replace(
            go9_efficient.EXPERIMENT.config.learner,
            batch_size=512,
            steps_per_iteration=24,  # every new position one and a half times on average
            learning_rate=((0, 2e-3), (670, 1e-3), (850, 3e-4)),  # as go5, for 40 iterations
            warmup_steps=50,
            average_decay=0.99,
        ),
        # The first match, against the network that knew nothing, is a sign of learning.
        evaluation=dataclasses.replace(go5.EXPERIMENT.config.evaluation, every=8, games=32),
        checkpoint=dataclasses.replace(go5.EXPERIMENT.config.checkpoint, every=8, keep_every=None),
        run=dataclasses.replace(go5.EXPERIMENT.config.run, iterations=40),
    ),
)

if __name__ == "__main__":
    from azero.train.main import main

    main(EXPERIMENT)
