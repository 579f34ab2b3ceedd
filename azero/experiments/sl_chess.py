"""Chess learned from records on two CPU cores, with the pooled network:

azero data import games.pgn --game chess --out data/chess
python -m azero.experiments.sl_chess --data data/chess
"""

import dataclasses

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.experiments import chess_efficient
from azero.games.chess.settings import ChessConfig
from azero.match.settings import EvaluationConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

_CHESS = chess_efficient.EXPERIMENT.config

EXPERIMENT = Experiment(
    name="sl_chess",
    title="Chess learned from records on two CPU cores: does a small network predict the moves?",
    config=Config(
        game=ChessConfig(history=1),
        network=_CHESS.network,
        # for playing with what was learned
        search=_CHESS.search.replace(num_simulations=24),
        replay=ReplayConfig(symmetries=False),  # chess has none
        learner=dataclasses.replace(
            _CHESS.learner,
            steps_per_iteration=200,
            # Lowered over the last two fifths of the run's 9,600 steps.
            learning_rate=((0, 2e-3), (5_800, 2e-3), (9_600, 1e-5)),
            warmup_steps=200,
            value_weight=0.25,  # between AGZ's 0.01 for records and the 1.5 of self-play
            reply_weight=0.0,  # records hold no searches
            surprise_share=0.0,
            lambda_return_share=0.0,
        ),
        evaluation=EvaluationConfig(gate=False, every=10, validation_positions=10_000),
        checkpoint=CheckpointConfig(every=5, keep=2),
        run=RunConfig(iterations=48),
    ),
    learns_from="records",
)

if __name__ == "__main__":
    main(EXPERIMENT)
