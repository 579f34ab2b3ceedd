"""Chess learned from records on two CPU cores, with the pooled network:

azero data import games.pgn --game chess --out data/chess
python -m azero.experiments.sl_chess --data data/chess
"""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.chess.settings import ChessConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import PooledConfig
from azero.search.settings import GumbelConfig
from azero.settings import Config
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="sl_chess",
    title="chess learned from records on two CPU cores: does a small network predict the moves?",
    config=Config(
        game=ChessConfig(history=1),
        network=PooledConfig(
            blocks=4,
            filters=48,
            value_hidden=64,
            train_dtype="float32",
            inference_dtype="float32",
        ),
        # for playing with what was learned, as in chess_efficient
        search=GumbelConfig(
            num_simulations=24, max_considered=8, edge_width=64, random_symmetry=False
        ),
        replay=ReplayConfig(symmetries=False),  # chess has none
        learner=LearnerConfig(
            batch_size=256,
            steps_per_iteration=200,
            optimiser="muon",
            # Lowered over the last two fifths of the run's 9,600 steps.
            learning_rate=((0, 2e-3), (5_800, 2e-3), (9_600, 1e-5)),
            rate_between="linear",
            warmup_steps=200,
            l2=1e-2,
            clip_norm=10.0,
            value_weight=0.25,  # between AGZ's 0.01 for records and the 1.5 of the efficient set
        ),
        evaluation=EvaluationConfig(gate=False, every=10, validation_positions=10_000),
        checkpoint=CheckpointConfig(every=5, keep=2),
        run=RunConfig(iterations=48),
    ),
    learns_from="records",
)

if __name__ == "__main__":
    from azero.train.main import main

    main(EXPERIMENT)
