"""AlphaZero's chess as published (Silver et al. 2018); the settings are those of `alphazero`, and
below."""

from azero.experiment import Experiment
from azero.experiments.alphazero import published
from azero.games.chess.settings import ChessConfig
from azero.train.main import main

EXPERIMENT = Experiment(
    name="chess",
    title="AlphaZero, chess: 44 million games, 700,000 steps of 4,096 positions (AZ, "
    "supplement, Table S3)",
    config=published(
        ChessConfig(max_moves=512),  # AZ pseudocode: longer games are drawn
        dirichlet_alpha=0.3,  # AZ Table S3
        policy_head="planes",
        policy_filters=256,  # AZ supplement: one more convolution like the tower's
        search_batch=256,
        # 65,536 positions for 10 steps: 630 games if one has 100 moves, the published 44 million
        # over 700,000 steps
        dispatches_per_iteration=2,
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
