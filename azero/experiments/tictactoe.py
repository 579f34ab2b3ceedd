"""Tic-tac-toe from scratch in a minute: the smoke run. Perfect play draws."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.tictactoe.settings import TicTacToeConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="tictactoe",
    title="Tic-tac-toe: the whole loop in a minute",
    config=Config(
        game=TicTacToeConfig(),
        network=ResNetConfig(
            blocks=2, filters=16, value_hidden=16, train_dtype="float32", inference_dtype="float32"
        ),
        search=GumbelConfig(num_simulations=16, max_considered=9),
        selfplay=SelfplayConfig(
            num_games=64,
            moves_per_dispatch=8,
            dispatches_per_iteration=2,
            temperature_moves=0,
            resign=False,
        ),
        replay=ReplayConfig(window_games=4000, min_positions=512),
        learner=LearnerConfig(
            batch_size=128,
            steps_per_iteration=16,
            optimiser="adamw",
            learning_rate=((0, 3e-3), (800, 1e-3)),
        ),
        evaluation=EvaluationConfig(gate=False, every=20, games=64, num_simulations=16),
        checkpoint=CheckpointConfig(every=20, keep=2, keep_every=20),
        run=RunConfig(iterations=60),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
