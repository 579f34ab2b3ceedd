"""Gardner's 5x5 minichess with less compute: `minichess` with the pooled
network, one position in the planes, the opponent's reply, Muon, surprise weighting, starts from
earlier positions and resignation (docs/training-efficiently.md)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import minichess
from azero.games.minichess.settings import MinichessConfig
from azero.networks.settings import PooledConfig
from azero.train.main import main

_PLAIN = minichess.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="minichess_efficient",
    title="5x5 minichess with the efficient set and as many operations as `minichess`",
    config=dataclasses.replace(
        _PLAIN,
        game=MinichessConfig(max_moves=100, history=1),
        network=PooledConfig(
            blocks=6, filters=32, value_hidden=64, train_dtype="float32", inference_dtype="float32"
        ),
        # 22 simulations instead of 24 pay for 72 learning steps: 98% of the operations in all.
        search=_PLAIN.search.replace(num_simulations=22),
        selfplay=dataclasses.replace(
            _PLAIN.selfplay,
            random_moves=6,
            random_share=0.3,
            archive="searches",
            resign=True,
            resign_disabled=0.2,
        ),
        # The games are shorter than those of `minichess`: about as many positions.
        replay=dataclasses.replace(_PLAIN.replay, window_games=4500),
        learner=dataclasses.replace(
            _PLAIN.learner,
            batch_size=256,
            steps_per_iteration=72,  # every new position two and a quarter times on average
            optimiser="muon",
            # Lowered over the last two fifths of the run's 6,840 steps.
            learning_rate=((0, 2e-3), (4000, 2e-3), (6768, 1e-4)),
            rate_between="linear",
            warmup_steps=100,
            l2=1e-2,
            clip_norm=10.0,
            value_weight=1.5,
            reply_weight=0.15,
            surprise_share=0.5,
        ),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
