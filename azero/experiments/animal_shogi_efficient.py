"""Animal shogi with what learns from less compute: as `animal_shogi`, with the network and the
learner of `minichess_efficient`."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import animal_shogi, minichess_efficient

_EFFICIENT = minichess_efficient.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="animal_shogi_efficient",
    title="Animal shogi with the efficient set and as many operations as `animal_shogi`",
    config=dataclasses.replace(
        animal_shogi.EXPERIMENT.config,
        network=_EFFICIENT.network.replace(blocks=4, filters=48),
        learner=dataclasses.replace(
            _EFFICIENT.learner,
            steps_per_iteration=48,  # as many positions as `animal_shogi`
            # Lowered over the last two fifths of the run's 4,512 steps.
            learning_rate=((0, 2e-3), (2700, 2e-3), (4512, 1e-4)),
        ),
    ),
)

if __name__ == "__main__":
    from azero.train.main import main

    main(EXPERIMENT)
