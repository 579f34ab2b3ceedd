"""AlphaZero as published, the same for its three games: 20 blocks of 256, 800 simulations, no gate,
700,000 steps of 4,096 positions (Silver et al. 2018)."""

from typing import Literal

from azero.data.settings import ReplayConfig
from azero.games.settings import GameConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import ResNetConfig
from azero.search.settings import PuctConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.settings import CheckpointConfig, RunConfig

# AZ pseudocode
CHESS_AND_SHOGI_RATES = ((0, 2e-1), (100_000, 2e-2), (300_000, 2e-3), (500_000, 2e-4))
"""Steps and learning rates."""


def published(
    game: GameConfig,
    *,
    dirichlet_alpha: float,
    policy_head: Literal["linear", "planes"],
    policy_filters: int,
    search_batch: int,
    dispatches_per_iteration: int,
    learning_rate: tuple[tuple[int, float], ...] = CHESS_AND_SHOGI_RATES,
) -> Config:
    """Return AlphaZero's settings for a game; the arguments are what differs between the games.

    Args:
      game: the rules.
      dirichlet_alpha: of the noise at the root (AZ Table S3).
      policy_head: a linear policy (Go), or a convolution to the planes of the code of moves (chess
        and shogi).
      policy_filters: filters before it.
      search_batch: games of a chip whose trees are in memory at a time.
      dispatches_per_iteration: calls of self-play, 32,768 positions each, for 10 steps: so that
        700,000 steps take the published number of games.
      learning_rate: steps and rates.
    """
    return Config(
        game=game,
        network=ResNetConfig(
            blocks=20,  # AZ methods: a convolution and 19 residual blocks
            filters=256,  # AZ methods
            policy_head=policy_head,
            policy_filters=policy_filters,
            value_filters=1,  # AZ methods
            value_hidden=256,  # AZ methods
            train_loop="unrolled",  # a long run: minutes of compiling for two fifths of a step
        ),
        search=PuctConfig(
            num_simulations=800,  # AZ Table S3
            # AZ pseudocode: values in [0, 1], unvisited moves count as a loss
            puct_form="alphazero",
            pb_c_base=19652.0,  # AZ pseudocode
            pb_c_init=1.25,  # AZ pseudocode, for values in [0, 1]
            dirichlet_alpha=dirichlet_alpha,
            dirichlet_fraction=0.25,  # AZ pseudocode
            # AZ: chess and shogi have none, and unlike AlphaGo Zero those of Go are not used
            random_symmetry=False,
        ),
        selfplay=SelfplayConfig(
            # the paper's 5,000 actors played one each; a number that divides over chips
            num_games=4096,
            search_batch=search_batch,
            moves_per_dispatch=8,
            dispatches_per_iteration=dispatches_per_iteration,
            temperature_moves=30,  # AZ pseudocode: num_sampling_moves
            resign=False,  # the pseudocode plays games to the end
        ),
        # AZ pseudocode: window_size; AZ: no augmentation
        replay=ReplayConfig(window_games=1_000_000, min_positions=1_000_000, symmetries=False),
        learner=LearnerConfig(
            batch_size=4096,  # AZ Table S3
            steps_per_iteration=10,
            optimiser="momentum",
            momentum=0.9,  # AZ pseudocode
            learning_rate=learning_rate,
            l2=1e-4,  # c of AGZ, which AZ keeps; docs/papers.md has the pseudocode's
        ),
        # AZ: the newest network always plays; one checkpoint per 1,000 steps
        evaluation=EvaluationConfig(gate=False, every=100, games=0),
        # AZ pseudocode: checkpoint_interval 1,000 steps
        checkpoint=CheckpointConfig(every=100, keep=3, keep_every=5000),
        run=RunConfig(iterations=70_000),  # 700,000 steps (AZ Table S3)
    )
