"""AlphaGo Zero at small scale: 5x5 with everything that `go19` does (PUCT, noise, symmetries, gate,
resignation and its calibration, a window), on a CPU."""

import dataclasses

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.experiments import go5, go19
from azero.games.go.settings import GoConfig
from azero.selfplay.settings import SelfplayConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_PUBLISHED = go19.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="go5_gated",
    title="AlphaGo Zero at small scale: 5x5 with the published search, gate and resignation",
    config=dataclasses.replace(
        _PUBLISHED,
        game=GoConfig(size=(5,), komi=0.5),  # as in go5, without its reward for points
        network=go5.EXPERIMENT.config.network,
        # 0.03 x 361 / 25 points (AZ: in proportion to the moves)
        search=_PUBLISHED.search.replace(num_simulations=32, dirichlet_alpha=0.43),
        selfplay=SelfplayConfig(
            num_games=256,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=8,  # 30 of 361 points scale to about 8 of 25 by side
        ),
        replay=ReplayConfig(window_games=8000, min_positions=16_384),
        learner=dataclasses.replace(
            _PUBLISHED.learner,
            batch_size=512,
            steps_per_iteration=32,  # every new position twice on average
            learning_rate=((0, 2e-2), (1440, 2e-3)),
        ),
        # The published match of 400 games, its share of 55% and a random symmetry for every leaf.
        evaluation=dataclasses.replace(_PUBLISHED.evaluation, every=5),
        checkpoint=CheckpointConfig(every=5, keep=2, keep_every=20),
        run=RunConfig(iterations=60),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
