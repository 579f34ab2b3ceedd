"""AlphaGo Zero as published: 19x19, 20 blocks of 256, 1,600 simulations, gated self-play (Silver et
al. 2017; the three-day run)."""

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
    name="go19",
    title="AlphaGo Zero, 20 blocks: 4.9 million games, 700,000 steps of 2,048 positions (AGZ, "
    "'Empirical analysis')",
    config=Config(
        # AGZ methods: Tromp-Taylor, 19 x 19 x 2 moves
        game=GoConfig(size=(19,), komi=7.5, superko="positional", suicide=False, max_moves=722),
        network=ResNetConfig(
            blocks=20,
            filters=256,
            policy_filters=2,
            value_filters=1,
            value_hidden=256,  # AGZ methods, 'Neural network architecture'
            train_loop="unrolled",  # a long run: minutes of compiling for two fifths of a step
        ),
        search=PuctConfig(
            num_simulations=1600,  # AGZ methods, 'Self-play'
            puct_form="alphago_zero",
            c_puct=1.5,  # not published; ELF OpenGo's value
            dirichlet_alpha=0.03,  # AGZ methods, 'Self-play'
            dirichlet_fraction=0.25,  # the same
            random_symmetry=True,  # AGZ methods, 'Search algorithm'
            reuse_tree=True,  # AGZ methods, 'Play'
        ),
        selfplay=SelfplayConfig(
            num_games=2048,  # not published; as many as eight chips of 16 GB keep the trees of
            search_batch=128,  # games of a chip searched at a time; all trees are kept, 19 MB each
            moves_per_dispatch=8,
            # 2,048 x 8 x 10 positions per 100 steps: about 700 games, the published 4.9 million
            # over 700,000 steps
            dispatches_per_iteration=10,
            temperature_moves=30,  # AGZ methods, 'Self-play'
            resign_false_positives=0.05,  # the same
            resign_disabled=0.10,  # the same
        ),
        # AGZ methods, 'Optimization'
        replay=ReplayConfig(window_games=500_000, min_positions=1_000_000),
        learner=LearnerConfig(
            batch_size=2048,  # AGZ methods, 'Optimization': 64 workers of 32
            steps_per_iteration=100,
            optimiser="momentum",
            momentum=0.9,  # AGZ methods, 'Optimization'
            # AGZ Extended Data Table 3
            learning_rate=((0, 1e-2), (400_000, 1e-3), (600_000, 1e-4)),
            l2=1e-4,  # AGZ methods, 'Optimization'
        ),
        # AGZ methods, 'Evaluator': a checkpoint every 1,000 steps
        evaluation=EvaluationConfig(gate=True, gate_games=400, gate_win_rate=0.55, every=10),
        checkpoint=CheckpointConfig(every=10, keep=3, keep_every=500),
        run=RunConfig(iterations=7000),  # 700,000 steps (AGZ Figure 3)
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
