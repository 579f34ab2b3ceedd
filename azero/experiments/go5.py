"""5x5 Go from scratch, on two CPU cores in minutes. Black wins the whole board by
opening in the centre (van der Werf 2002)."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="go5",
    title="5x5 Go: from random play to the centre opening in minutes on a CPU",
    config=Config(
        # With best play White loses by 25 points. With the result as the only reward all its moves
        # are equally bad; half of the reward in points teaches it to resist
        # (experiments/go5-margin: 10, with another seed 6, instead of 0 of 10 games as White
        # against GNU Go).
        game=GoConfig(size=(5,), komi=0.5, margin_weight=0.5),
        # A fixed convolution, so that machines with and without bf16 units give the same network.
        network=ResNetConfig(
            blocks=4,
            filters=32,
            value_hidden=64,
            train_dtype="float32",
            inference_dtype="float32",
            convolution="winograd",
        ),
        search=GumbelConfig(num_simulations=16, max_considered=16),
        selfplay=SelfplayConfig(
            num_games=256,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=0,  # the Gumbel noise explores
            # White loses every game between good players: exploratory moves show it positions that
            # can be won (experiments/go5-settings)
            random_moves=12,
            random_share=0.15,
            resign=False,  # games are short
        ),
        # Most of a run. With 2,500 games and 4e-3 the losses fall faster, but one of two such
        # networks lost all games to GNU Go as Black (experiments/go5-settings).
        replay=ReplayConfig(window_games=8000, min_positions=8192),
        learner=LearnerConfig(
            batch_size=512,
            steps_per_iteration=24,  # every new position one and a half times on average
            optimiser="adamw",
            learning_rate=((0, 2e-3), (1700, 1e-3), (2150, 3e-4)),
        ),
        # One network won 10 of 32 games as White against GNU Go with random symmetries, and 20 of
        # 20 (of one line) with their mean.
        evaluation=EvaluationConfig(
            gate=False,
            every=20,
            games=64,
            num_simulations=16,
            temperature_moves=4,
            average_symmetries=True,
        ),
        checkpoint=CheckpointConfig(every=10, keep=3, keep_every=20),
        run=RunConfig(iterations=100),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
