"""Connect four as Pgx has it, from nothing, on two CPU cores in minutes. With best play the first
player wins (Allen 1988; Allis 1988)."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.interop.settings import PgxConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="connect_four",
    title="Connect four, a Pgx environment: beats random moves in 99% of games",
    config=Config(
        game=PgxConfig(id="connect_four"),
        network=ResNetConfig(
            blocks=4,
            filters=32,
            policy_filters=4,
            value_hidden=64,
            train_dtype="float32",
            inference_dtype="float32",
        ),
        search=GumbelConfig(num_simulations=24, max_considered=7, random_symmetry=False),
        selfplay=SelfplayConfig(
            num_games=256,
            search_batch=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=2,
            temperature_moves=0,  # the Gumbel noise explores
            # Without random moves the network lost 8 of 400 games to a random mover, whose
            # positions self-play no longer visited.
            random_moves=42,
            random_share=0.08,
            value_before_random="search",
            resign=False,
        ),
        replay=ReplayConfig(window_games=2500, min_positions=8192, symmetries=False),
        learner=LearnerConfig(
            batch_size=512,
            steps_per_iteration=24,  # every new position one and a half times, as in minichess
            optimiser="muon",
            # Lowered over the last two fifths of the run's 2,880 steps.
            learning_rate=((0, 2e-3), (1730, 2e-3), (2880, 1e-4)),
            rate_between="linear",
            warmup_steps=100,
            l2=1e-2,
            clip_norm=10.0,
        ),
        evaluation=EvaluationConfig(
            gate=False, every=30, games=64, num_simulations=24, random_plies=4
        ),
        checkpoint=CheckpointConfig(every=5, keep=3, keep_every=10),
        run=RunConfig(iterations=120),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
