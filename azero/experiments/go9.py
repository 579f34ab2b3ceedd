"""9x9 Go from scratch with the search of AlphaZero's pseudocode; sized for one accelerator,
`configs/cpu.toml` for a laptop."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import PuctConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="go9",
    title="9x9 Go with PUCT: does a network of 6 blocks improve steadily?",
    config=Config(
        # the fair komi by strong engines' 9x9 books; draws count 0
        game=GoConfig(size=(9,), komi=7.0),
        network=ResNetConfig(blocks=6, filters=128),  # the size of Pgx's AlphaZero example
        search=PuctConfig(
            num_simulations=200,  # MiniZero's 9x9 setting for AlphaZero
            puct_form="alphazero",  # Minigo: counting unvisited moves as losses was a large gain
            dirichlet_alpha=0.13,  # 10 / 81 points (AZ: in proportion to the number of moves)
        ),
        # 30 of 361 points scale to about 16 of 81 by side
        selfplay=SelfplayConfig(
            num_games=1024, moves_per_dispatch=16, dispatches_per_iteration=4, temperature_moves=16
        ),
        # MiniZero: 20 iterations of 2,000 games
        replay=ReplayConfig(window_games=40_000, min_positions=50_000),
        learner=LearnerConfig(
            batch_size=1024,  # MiniZero
            steps_per_iteration=128,  # every new position twice on average
            # MiniZero's first rate; steps in AGZ's proportions
            learning_rate=((0, 2e-2), (60_000, 2e-3), (100_000, 2e-4)),
        ),
        evaluation=EvaluationConfig(gate=False, every=20, games=256, num_simulations=64),
        checkpoint=CheckpointConfig(every=20, keep=3, keep_every=100),
        run=RunConfig(iterations=1000),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
