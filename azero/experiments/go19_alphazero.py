"""AlphaZero's Go as published (Silver et al. 2018); the settings are those of `alphazero`, and
below."""

from azero.experiment import Experiment
from azero.experiments.alphazero import published
from azero.games.go.settings import GoConfig
from azero.train.main import main

EXPERIMENT = Experiment(
    name="go19_alphazero",
    title="AlphaZero, Go: 140 million games, 700,000 steps of 4,096 positions (AZ, supplement, "
    "Table S3)",
    config=published(
        # AGZ methods; AZ pseudocode: max_moves
        GoConfig(size=(19,), komi=7.5, superko="positional", suicide=False, max_moves=722),
        dirichlet_alpha=0.03,  # AZ Table S3
        policy_head="linear",
        policy_filters=2,  # AGZ methods: a linear policy over 362 moves
        search_batch=128,
        # 393,216 positions for 10 steps: 2,000 games of about 200 moves, the published 140 million
        # over 700,000 steps
        dispatches_per_iteration=12,
        # AZ pseudocode, whose comment has Go begin with the second rate
        learning_rate=((0, 2e-2), (300_000, 2e-3), (500_000, 2e-4)),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
