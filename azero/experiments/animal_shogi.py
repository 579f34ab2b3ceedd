"""Animal shogi (dobutsu shogi) from scratch, on two CPU cores in minutes. With best play the second
player wins, in 78 moves (Tanaka 2009)."""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import minichess
from azero.games.animal_shogi.settings import AnimalShogiConfig
from azero.train.main import main

_SMALL = minichess.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="animal_shogi",
    title="Animal shogi: AlphaZero's shogi at small scale, in minutes on a CPU",
    config=dataclasses.replace(
        _SMALL,
        game=AnimalShogiConfig(
            max_moves=128
            # shorter than the game's own limit, so that few moves are spent on games that nobody
            # wins
        ),
        network=_SMALL.network.replace(filters=48),
        search=_SMALL.search.replace(num_simulations=32, edge_width=None),
        replay=dataclasses.replace(_SMALL.replay, window_games=4000),
        evaluation=dataclasses.replace(_SMALL.evaluation, num_simulations=32),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
