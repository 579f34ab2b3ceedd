"""AlphaZero's shogi as published (Silver et al. 2018); the settings are those of `alphazero`, and
below."""

from azero.experiment import Experiment
from azero.experiments.alphazero import published
from azero.games.shogi.settings import ShogiConfig
from azero.train.main import main

EXPERIMENT = Experiment(
    name="shogi",
    title="AlphaZero, shogi: 24 million games, 700,000 steps of 4,096 positions (AZ, "
    "supplement, Table S3)",
    config=published(
        # AZ pseudocode: longer games are drawn. No rule of AlphaZero's names an entering king, and
        # Elmo played with EnteringKingRule NoEnteringKing (AZ).
        ShogiConfig(max_moves=512, entering_king=False),
        dirichlet_alpha=0.15,  # AZ Table S3
        policy_head="planes",
        policy_filters=256,  # AZ supplement: one more convolution like the tower's
        search_batch=256,
        # 32,768 positions for 10 steps: 340 games if one has 96 moves, the published 24 million
        # over 700,000 steps
        dispatches_per_iteration=1,
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
