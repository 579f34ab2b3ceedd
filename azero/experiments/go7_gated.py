"""AlphaGo Zero in small: 7x7 with everything that `go19` does (PUCT, noise, symmetries, gate, resignation and its calibration, a window), in an hour on a CPU."""

import dataclasses

from azero.config import CheckpointConfig, GameConfig, NetworkConfig, ReplayConfig, RunConfig, SelfplayConfig
from azero.experiments import go19
from azero.experiments.experiment import Experiment

_PUBLISHED = go19.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="go7_gated",
    title="AlphaGo Zero in small: 7x7 with the published search, gate and resignation",
    config=dataclasses.replace(
        _PUBLISHED,
        game=GameConfig(name="go", size=(7,), komi=8.5),  # half a point below the fair komi, as in go7
        network=NetworkConfig(blocks=4, filters=32, value_hidden=64),
        search=dataclasses.replace(_PUBLISHED.search, num_simulations=64, dirichlet_alpha=0.22),  # 0.03 x 361 / 49 points (AZ: in proportion to the moves)
        selfplay=SelfplayConfig(
            num_games=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=4,
            temperature_moves=12,  # 30 of 361 points scale to about 12 of 49 by side
        ),
        replay=ReplayConfig(window_games=8000, min_positions=16_384),
        learner=dataclasses.replace(
            _PUBLISHED.learner,
            batch_size=512,
            steps_per_iteration=32,  # every new position twice on average
            learning_rate=((0, 2e-2), (2000, 2e-3)),
        ),
        # The published match of 400 games, its share of 55% and a random symmetry for every leaf.
        evaluation=dataclasses.replace(_PUBLISHED.evaluation, every=5),
        checkpoint=CheckpointConfig(every=5, keep=2, keep_every=20),
        run=RunConfig(iterations=80),
    ),
)

if __name__ == "__main__":
    from azero.experiments.run import main

    main(EXPERIMENT)
