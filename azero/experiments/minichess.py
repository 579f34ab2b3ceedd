"""Gardner's 5x5 minichess from scratch, on two CPU cores in minutes. With best play it is a draw
(Mhalla and Prost 2013)."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.minichess.settings import MinichessConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="minichess",
    title="5x5 minichess: AlphaZero's chess at small scale, in minutes on a CPU",
    config=Config(
        game=MinichessConfig(
            max_moves=100
            # shorter than the game's own limit: at first few games are decided, and draws by length
            # teach little
        ),
        network=ResNetConfig(
            blocks=4,
            filters=32,
            policy_filters=8,
            value_hidden=64,
            train_dtype="float32",
            inference_dtype="float32",
        ),
        search=GumbelConfig(
            num_simulations=24, max_considered=8, random_symmetry=False, edge_width=40
        ),
        selfplay=SelfplayConfig(
            num_games=256,
            search_batch=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=0,  # the Gumbel noise explores
            resign=False,
        ),
        replay=ReplayConfig(window_games=2500, min_positions=8192, symmetries=False),
        learner=LearnerConfig(
            batch_size=512,
            steps_per_iteration=24,  # every new position one and a half times on average, as in go5
            optimiser="adamw",
            learning_rate=((0, 3e-3), (1400, 1e-3), (2000, 3e-4)),
        ),
        evaluation=EvaluationConfig(
            gate=False, every=24, games=64, num_simulations=24, temperature_moves=4
        ),
        checkpoint=CheckpointConfig(every=8, keep=3, keep_every=24),
        run=RunConfig(iterations=96),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
