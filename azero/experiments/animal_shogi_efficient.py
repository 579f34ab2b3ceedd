"""Animal shogi with less compute: `animal_shogi` with the network, self-play and learner of
`minichess_efficient`."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import animal_shogi, minichess_efficient
from azero.games.animal_shogi.settings import AnimalShogiConfig
from azero.train.main import main

_PLAIN = animal_shogi.EXPERIMENT.config
_EFFICIENT = minichess_efficient.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="animal_shogi_efficient",
    title="Animal shogi with the efficient set and as many operations as `animal_shogi`",
    config=dataclasses.replace(
        _PLAIN,
        game=AnimalShogiConfig(max_moves=128, history=1),
        network=_EFFICIENT.network.replace(blocks=5, filters=48),
        # Fewer simulations than `animal_shogi` has pay for 28 more iterations.
        search=_PLAIN.search.replace(num_simulations=24),
        selfplay=_EFFICIENT.selfplay,
        # The games are shorter than those of `animal_shogi`: a third more positions.
        replay=dataclasses.replace(_PLAIN.replay, window_games=9000),
        learner=dataclasses.replace(
            _EFFICIENT.learner,
            # Lowered over the last two fifths of the run's 8,856 steps.
            learning_rate=((0, 2e-3), (5300, 2e-3), (8900, 1e-4)),
        ),
        run=dataclasses.replace(_PLAIN.run, iterations=124),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
