"""AlphaGo Zero's large run: 40 blocks, 29 million games, 3.1 million steps over 40 days (Silver et
al. 2017, 'Final performance')."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import go19
from azero.train.main import main

EXPERIMENT = Experiment(
    name="go19_40b",
    title="AlphaGo Zero, 40 blocks: 29 million games, 3.1 million steps of 2,048 positions "
    "(AGZ, 'Final performance')",
    config=dataclasses.replace(
        go19.EXPERIMENT.config,
        network=go19.EXPERIMENT.config.network.replace(blocks=40),
        # 29 million games over 31,000 iterations: 935 games each, at about 235 positions a game
        selfplay=dataclasses.replace(
            go19.EXPERIMENT.config.selfplay, moves_per_dispatch=9, dispatches_per_iteration=12
        ),
        run=dataclasses.replace(go19.EXPERIMENT.config.run, iterations=31_000),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
