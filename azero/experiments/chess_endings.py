"""King and queen, and king and rook, against a king: chess from given positions, on two CPU cores in minutes.

python -m azero.experiments.endings --count 4000 --out endings.txt
python -m azero.experiments.chess_endings --game.start-positions endings.txt
"""

from azero.config import (
    CheckpointConfig,
    Config,
    EvaluationConfig,
    GameConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfplayConfig,
)
from azero.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    name="chess_endings",
    title="Chess from king and queen or rook against king: does it learn to mate? (with --game.start-positions FILE)",
    config=Config(
        game=GameConfig(name="chess", max_moves=64),  # the longest mate with a rook takes 31 moves of both sides, with a queen 19
        network=NetworkConfig(blocks=4, filters=32, policy_filters=4, value_hidden=64, train_dtype="float32", inference_dtype="float32"),
        search=SearchConfig(name="gumbel", num_simulations=32, max_considered=16, random_symmetry=False, edge_width=40),  # queen and king have 35 moves at most
        selfplay=SelfplayConfig(
            num_games=256,
            search_batch=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=0,  # the Gumbel noise explores
            resign=False,
        ),
        replay=ReplayConfig(window_games=4000, min_positions=8192, symmetries=False),
        learner=LearnerConfig(
            batch_size=512,
            steps_per_iteration=24,  # every new position one and a half times on average, as in go5
            optimiser="adamw",
            learning_rate=((0, 3e-3), (1900, 1e-3), (2600, 3e-4)),
        ),
        evaluation=EvaluationConfig(gate=False, every=0, games=0),  # matches of a run begin with the whole set of men
        checkpoint=CheckpointConfig(every=8, keep=3, keep_every=32),
        run=RunConfig(iterations=128),
    ),
)

if __name__ == "__main__":
    from azero.experiments.run import main

    main(EXPERIMENT)
