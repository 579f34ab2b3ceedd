"""7x7 Go from scratch: fair komi 9 (conjectured, Li Zhe 2015), overnight on a CPU or minutes on an
accelerator."""

import dataclasses

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.experiments import go5
from azero.games.go.settings import GoConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.selfplay.settings import SelfplayConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="go7",
    title="7x7 Go at komi 8.5: Black should learn to win, opening in the centre",
    config=dataclasses.replace(
        go5.EXPERIMENT.config,
        game=GoConfig(size=(7,), komi=8.5),
        network=ResNetConfig(blocks=6, filters=64, value_hidden=128),
        search=go5.EXPERIMENT.config.search.replace(num_simulations=32),
        selfplay=SelfplayConfig(
            num_games=512,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=0,
            resign=False,
        ),
        replay=ReplayConfig(window_games=30_000, min_positions=20_000),
        learner=dataclasses.replace(
            go5.EXPERIMENT.config.learner,
            learning_rate=((0, 2e-3), (20_000, 5e-4), (30_000, 1e-4)),
            batch_size=1024,
        ),
        evaluation=EvaluationConfig(gate=False, every=50, games=128, num_simulations=32),
        checkpoint=CheckpointConfig(every=25, keep=3, keep_every=100),
        run=RunConfig(iterations=1500),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
