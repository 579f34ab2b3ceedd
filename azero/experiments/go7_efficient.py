"""7x7 Go from scratch on two CPU cores: one network for every komi. The first player wins by 9
points (Li Zhe 2015)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import go9_efficient
from azero.games.go.settings import GoConfig
from azero.train.main import main
from azero.train.settings import RunConfig

EXPERIMENT = Experiment(
    name="go7_efficient",
    title="7x7 Go on two CPU cores: does one network learn that Black wins by 9?",
    config=dataclasses.replace(
        go9_efficient.EXPERIMENT.config,
        game=GoConfig(
            size=(7,), komi=9.0, planes=19, selfplay_komis=(7.5, 8.5, 8.5, 9.0, 9.5, 9.5, 10.5)
        ),
        network=go9_efficient.EXPERIMENT.config.network.replace(blocks=5, filters=48),
        # the rates of go9_efficient, in half as many steps
        learner=dataclasses.replace(
            go9_efficient.EXPERIMENT.config.learner,
            learning_rate=((0, 2e-3), (20_000, 1e-3), (40_000, 3e-4)),
        ),
        run=RunConfig(iterations=2000),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
