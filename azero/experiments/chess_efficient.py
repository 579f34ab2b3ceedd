"""Full chess from scratch on two CPU cores, with the efficient set of `minichess_efficient`. Games
start from positions of few pieces up to the whole set, whose file experiments/chess makes:

python -m azero.experiments.chess_efficient --game.start-positions starts.txt
"""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import minichess, minichess_efficient
from azero.games.chess.settings import ChessConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_SMALL = minichess_efficient.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="chess_efficient",
    title="Chess from scratch on two CPU cores: the whole game",
    config=dataclasses.replace(
        _SMALL,
        game=ChessConfig(max_moves=200),  # longer games of beginners are drawn and teach little
        network=_SMALL.network.replace(blocks=4, filters=48),
        search=_SMALL.search.replace(num_simulations=16, edge_width=64),
        selfplay=dataclasses.replace(
            minichess.EXPERIMENT.config.selfplay, num_games=128, random_moves=8
        ),
        replay=dataclasses.replace(_SMALL.replay, window_games=4000),
        learner=dataclasses.replace(
            _SMALL.learner,
            steps_per_iteration=32,  # every new position twice on average
            # Lowered over the last two fifths of the run's 8,448 steps.
            learning_rate=((0, 2e-3), (5100, 2e-3), (8448, 1e-4)),
            lambda_return_share=0.9,  # few results: docs/training-efficiently.md
        ),
        evaluation=dataclasses.replace(_SMALL.evaluation, every=0),
        checkpoint=CheckpointConfig(every=6, keep=3, keep_every=66),  # quarters of the run
        run=RunConfig(iterations=264),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
