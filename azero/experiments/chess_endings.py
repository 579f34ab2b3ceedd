"""King and queen, and king and rook, against a king: chess from given positions, on two CPU cores in minutes.

python -m azero.experiments.endings --count 4000 --at-edge 0.8 --attacker-moves 0.9 --out endings.txt
python -m azero.experiments.chess_endings --game.start-positions endings.txt
"""

import dataclasses

from azero.config import CheckpointConfig, EvaluationConfig, GameConfig, RunConfig
from azero.experiments import minichess
from azero.experiments.experiment import Experiment

_SMALL = minichess.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="chess_endings",
    title="Chess from king and queen or rook against king: does it learn to mate? (with --game.start-positions FILE)",
    config=dataclasses.replace(
        _SMALL,
        game=GameConfig(name="chess", max_moves=64),  # the longest mate with a rook takes 31 moves of both sides, with a queen 19
        network=dataclasses.replace(_SMALL.network, policy_filters=4),
        search=dataclasses.replace(_SMALL.search, num_simulations=32, max_considered=16),  # queen and king have 35 moves at most, which the edges hold
        replay=dataclasses.replace(_SMALL.replay, window_games=4000),
        learner=dataclasses.replace(_SMALL.learner, learning_rate=((0, 3e-3), (1900, 1e-3), (2600, 3e-4))),
        evaluation=EvaluationConfig(gate=False, every=0, games=0),  # matches of a run begin with the whole set of men
        checkpoint=CheckpointConfig(every=8, keep=3, keep_every=32),
        run=RunConfig(iterations=128),
    ),
)

if __name__ == "__main__":
    from azero.experiments.run import main

    main(EXPERIMENT)
