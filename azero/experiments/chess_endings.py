"""King and queen, and king and rook, against a king: chess from given positions, on two CPU cores
in an hour.

python -m azero.commands.endings --count 8000 --at-edge 0.85 --attacker-moves 0.9 --out endings.txt
python -m azero.experiments.chess_endings --game.start-positions endings.txt
"""

import dataclasses

from azero.experiment import Experiment
from azero.experiments import minichess
from azero.games.chess.settings import ChessConfig
from azero.match.settings import EvaluationConfig
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_SMALL = minichess.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="chess_endings",
    title="Chess from king and queen or rook against king: does it learn to mate? (with "
    "--game.start-positions FILE)",
    config=dataclasses.replace(
        _SMALL,
        # the longest mate with a rook takes 31 moves of both sides, with a queen 19
        game=ChessConfig(max_moves=64),
        # The head of planes shares what it learns between squares: after 8 iterations the policy
        # was 0.43 nats from the search's, with minichess's layer and steps 0.77.
        network=_SMALL.network.replace(
            policy_head="planes", policy_filters=32, value_filters=4, value_hidden=128
        ),
        # queen and king have 35 moves at most, which the edges hold
        search=_SMALL.search.replace(num_simulations=32, max_considered=16),
        replay=dataclasses.replace(_SMALL.replay, window_games=4000),
        learner=dataclasses.replace(
            _SMALL.learner,
            steps_per_iteration=40,
            learning_rate=((0, 3e-3), (1600, 1e-3), (2200, 3e-4)),
        ),
        # matches of a run begin with the whole set of pieces
        evaluation=EvaluationConfig(gate=False, every=0, games=0),
        checkpoint=CheckpointConfig(every=8, keep=3, keep_every=32),
        run=RunConfig(iterations=64),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
