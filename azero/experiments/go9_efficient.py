"""9x9 Go from scratch on two CPU cores, with techniques that need less compute: the network with
global pooling and its auxiliary heads, games of several komis, averaged weights."""

from azero.data.settings import ReplayConfig
from azero.experiment import Experiment
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import PooledConfig
from azero.search.settings import GumbelConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.main import main
from azero.train.settings import CheckpointConfig, RunConfig

EXPERIMENT = Experiment(
    name="go9_efficient",
    title="9x9 Go on two CPU cores: how strong does the fastest learner get?",
    config=Config(
        game=GoConfig(
            size=(9,),
            komi=7.0,  # the fair komi by strong engines' 9x9 books
            planes=19,  # with the komi
            selfplay_komis=(5.5, 6.5, 7.0, 7.0, 7.5, 8.5),
        ),
        network=PooledConfig(
            blocks=6, filters=64, value_hidden=64, train_dtype="float32", inference_dtype="float32"
        ),
        # As in configs/cpu.toml: learns from few simulations (Danihelka et al. 2022).
        search=GumbelConfig(num_simulations=16, max_considered=8),
        selfplay=SelfplayConfig(
            num_games=128,
            moves_per_dispatch=16,
            dispatches_per_iteration=1,
            temperature_moves=0,  # the Gumbel noise explores
            random_moves=16,
            random_share=0.1,
            resign=False,
        ),
        replay=ReplayConfig(window_games=4000, min_positions=4096),
        learner=LearnerConfig(
            batch_size=256,
            steps_per_iteration=24,  # every new position three times on average
            optimiser="muon",  # +53 Elo over AdamW at 5x5 (docs/training-efficiently.md)
            learning_rate=((0, 2e-3), (40_000, 1e-3), (80_000, 3e-4)),
            warmup_steps=200,
            l2=1e-2,
            clip_norm=10.0,
            value_weight=1.5,  # as the next three (KG, appendix B)
            ownership_weight=1.5,
            score_weight=0.02,
            reply_weight=0.15,
            short_value_weight=0.3,
            surprise_share=0.5,  # KataGoMethods.md
            average_decay=0.995,
        ),
        evaluation=EvaluationConfig(gate=False, every=0),
        checkpoint=CheckpointConfig(every=10, keep=3, keep_every=100),
        run=RunConfig(iterations=4000),
    ),
)

if __name__ == "__main__":
    main(EXPERIMENT)
