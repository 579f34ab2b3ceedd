"""AlphaZero's Go as published: 20 blocks of 256, 800 simulations, no gate, no symmetries, 700,000 steps of 4,096 positions (Silver et al. 2018)."""

from azero.config import (
    CheckpointConfig,
    Config,
    EvaluationConfig,
    GameConfig,
    LearnerConfig,
    NetworkConfig,
    ReplayConfig,
    RunConfig,
    SearchConfig,
    SelfplayConfig,
)
from azero.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    name="go19_alphazero",
    title="AlphaZero, Go: 140 million games, 700,000 steps of 4,096 positions (AZ, supplement, Table S3)",
    config=Config(
        game=GameConfig(name="go", size=(19,), komi=7.5, superko="positional", suicide=False, max_moves=722),  # AGZ methods; AZ pseudocode: max_moves
        network=NetworkConfig(
            blocks=20,  # AZ methods: a convolution and 19 residual blocks
            filters=256,  # AZ methods
            policy_filters=2,  # AGZ methods: a linear policy over 362 moves
            value_filters=1,  # AZ methods
            value_hidden=256,  # AZ methods
        ),
        search=SearchConfig(
            name="puct",
            num_simulations=800,  # AZ Table S3
            puct_form="alphazero",  # AZ pseudocode: values in [0, 1], unvisited moves count as a loss
            pb_c_base=19652.0,  # AZ pseudocode
            pb_c_init=1.25,  # AZ pseudocode, for values in [0, 1]
            dirichlet_alpha=0.03,  # AZ Table S3
            dirichlet_fraction=0.25,  # AZ pseudocode
            random_symmetry=False,  # AZ: unlike AlphaGo Zero, symmetries are not used
        ),
        selfplay=SelfplayConfig(
            num_games=4096,  # the paper's 5,000 actors played one each; a number that divides over chips
            search_batch=64,  # trees of 64 games on a chip at a time, whatever the number of chips
            moves_per_dispatch=8,
            dispatches_per_iteration=12,  # 393,216 positions for 10 steps: 2,000 games of about 200 moves, the published 140 million over 700,000 steps
            temperature_moves=30,  # AZ pseudocode: num_sampling_moves
            resign=False,  # the pseudocode plays games to the end
            policy_slots=64,  # moves that 800 simulations visit
        ),
        replay=ReplayConfig(window_games=1_000_000, min_positions=1_000_000, symmetries=False),  # AZ pseudocode: window_size; AZ: no augmentation
        learner=LearnerConfig(
            batch_size=4096,  # AZ Table S3
            steps_per_iteration=10,
            optimiser="momentum",
            momentum=0.9,  # AZ pseudocode
            learning_rate=((0, 2e-2), (300_000, 2e-3), (500_000, 2e-4)),  # AZ pseudocode, whose comment has Go begin with the second rate
            l2=1e-4,  # AZ pseudocode: weight_decay
        ),
        evaluation=EvaluationConfig(gate=False, every=100, games=0),  # AZ: the newest network always plays; one checkpoint per 1,000 steps
        checkpoint=CheckpointConfig(every=100, keep=3, keep_every=5000),  # AZ pseudocode: checkpoint_interval 1,000 steps
        run=RunConfig(iterations=70_000),  # 700,000 steps (AZ Table S3)
    ),
)

if __name__ == "__main__":
    from azero.experiments.run import main

    main(EXPERIMENT)
