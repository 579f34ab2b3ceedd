"""The AlphaGo Zero network learning from human games, as published (AGZ methods, 'Supervised
learning from human data', and Extended Data Table 3)."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import PuctConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="sl19",
    title="AlphaGo Zero's 20 blocks learning from records: 60.4% of held-out moves and a value "
    "error of 0.185 on KGS (AGZ, Extended Data Tables 1 and 2)",
    config=Config(
        game=GoConfig(size=(19,), komi=7.5),  # AGZ methods
        # AGZ Extended Data Table 1: the supervised 20-block network
        network=ResNetConfig(blocks=20, filters=256),
        search=PuctConfig(num_simulations=1600),  # for playing with what was learned (AGZ methods)
        # AGZ methods, 'Optimization': random reflections and rotations
        replay=ReplayConfig(symmetries=True),
        learner=LearnerConfig(
            batch_size=2048,  # AGZ methods, 'Optimization': 64 workers of 32
            steps_per_iteration=1000,
            optimiser="momentum",
            momentum=0.9,
            # AGZ Extended Data Table 3, supervised
            learning_rate=(
                (0, 1e-1),
                (200_000, 1e-2),
                (400_000, 1e-3),
                (600_000, 1e-4),
                (700_000, 1e-5),
            ),
            l2=1e-4,
            value_weight=0.01,  # AGZ methods: against overfitting to the results
        ),
        evaluation=EvaluationConfig(
            gate=False, every=10, validation_positions=20_000, sensible_moves=True
        ),
        checkpoint=CheckpointConfig(every=10, keep=3),
        # 800,000 steps (the table's last row for supervised learning)
        run=RunConfig(iterations=800),
    ),
    learns_from="records",
)

if __name__ == "__main__":
    main(EXPERIMENT)
