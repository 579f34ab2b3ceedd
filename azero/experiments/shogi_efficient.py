"""Full shogi from scratch on two CPU cores, with the settings of `chess_efficient`. The script in
experiments/shogi makes the file of positions that games start from:

python -m azero.experiments.shogi_efficient --game.start-positions starts.txt
"""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import chess_efficient
from azero.games.shogi.settings import ShogiConfig
from azero.train.main import main
from azero.train.settings import RunConfig

_CHESS = chess_efficient.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="shogi_efficient",
    title="Shogi from scratch on two CPU cores: the whole game",
    config=dataclasses.replace(
        _CHESS,
        game=ShogiConfig(max_moves=200, history=1),
        network=_CHESS.network.replace(filters=32),
        learner=dataclasses.replace(
            _CHESS.learner,
            # Lowered over the last two fifths of the run's 4,448 steps.
            learning_rate=((0, 2e-3), (2670, 2e-3), (4448, 1e-4)),
        ),
        checkpoint=dataclasses.replace(_CHESS.checkpoint, keep_every=35),  # quarters of the run
        run=RunConfig(iterations=140),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
