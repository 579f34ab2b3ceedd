"""The AlphaGo Zero network learning from 9x9 games of a strong engine: the supervised comparison
where 19x19 is out of reach."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import sl19
from azero.games.go.settings import GoConfig
from azero.networks.settings import ResNetConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_PUBLISHED = sl19.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="sl9",
    title="A network of 4 blocks learning from 9x9 games of an expert: dual|sep x res|conv|plain "
    "on one data set (--network.heads, --network.tower)",
    config=dataclasses.replace(
        _PUBLISHED,
        game=GoConfig(size=(9,), komi=7.0, suicide=True),  # the rules of the games: Tromp-Taylor
        network=ResNetConfig(blocks=4, filters=32, value_hidden=64),
        # for playing with what was learned, as in go9
        search=_PUBLISHED.search.replace(num_simulations=200, puct_form="alphazero"),
        learner=dataclasses.replace(
            _PUBLISHED.learner,
            batch_size=128,
            steps_per_iteration=100,
            # the first three rates of AGZ Extended Data Table 3, supervised, in 2,000 steps
            learning_rate=((0, 1e-1), (1000, 1e-2), (1600, 1e-3)),
        ),
        evaluation=dataclasses.replace(_PUBLISHED.evaluation, every=5, validation_positions=5_000),
        checkpoint=CheckpointConfig(every=5, keep=2),
        run=RunConfig(iterations=20),
    ),
    learns_from="records",
)

if __name__ == "__main__":
    main(EXPERIMENT)
