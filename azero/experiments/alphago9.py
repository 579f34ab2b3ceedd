"""AlphaGo of 2016 on 9x9, from games of a strong engine, at a size for two CPU cores."""

from azero.data.settings import ReplayConfig
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.train.alphago2016.config import (
    AlphaGoConfig,
    AlphaGoExperiment,
    ByMoveConfig,
    MatchesConfig,
    ReinforceConfig,
    SizesConfig,
    StageConfig,
    ValueDataConfig,
)
from azero.train.main import main_of_stages
from azero.train.settings import CheckpointConfig


def _learner(steps: int, rate: float, last: int, **changes: object) -> LearnerConfig:
    """Return AdamW (AG16: plain gradient descent at 0.003 for hundreds of millions of steps) with a
    rate that falls on half a cosine wave to step `last`."""
    settings = {
        "batch_size": 128,
        "optimiser": "adamw",
        "learning_rate": ((0, rate), (last, rate / 100)),
        "rate_between": "cosine",
    } | changes
    return LearnerConfig(steps_per_iteration=steps, **settings)  # type: ignore[arg-type]


EXPERIMENT = AlphaGoExperiment(
    name="alphago9",
    title="AlphaGo of 2016 on 9x9: four networks from games of an expert and self-play, and its "
    "search",
    config=AlphaGoConfig(
        # the rules of the expert's games: Tromp-Taylor
        game=GoConfig(size=(9,), komi=7.0, suicide=True),
        network=SizesConfig(
            blocks=4,
            filters=32,
            value_hidden=64,
            pattern_bits=16,
            train_dtype="float32",
            inference_dtype="float32",
        ),
        rollout=StageConfig(planes=6, iterations=10, learner=_learner(100, 1e-2, 1000)),
        tree=StageConfig(planes=10, iterations=10, learner=_learner(100, 1e-2, 1000)),
        policy=StageConfig(planes=48, iterations=50, learner=_learner(100, 2e-3, 5000)),
        reinforce=ReinforceConfig(
            iterations=500,
            num_games=64,
            pool_every=25,  # a twentieth of the run, as in the paper
            learner=LearnerConfig(
                batch_size=256, optimiser="adamw", learning_rate=((0, 1e-4),), l2=0.0
            ),
        ),
        value_data=ValueDataConfig(positions=100_000, num_games=128, games_per_shard=1024),
        value=StageConfig(
            planes=49, iterations=40, learner=_learner(100, 1e-3, 4000, value_weight=1.0)
        ),
        matches=MatchesConfig(games=400, search_games=40, visits=64, threshold=4, workers=2),
        by_move=ByMoveConfig(positions=1000, moves_per_band=10),
        filters=(16, 32, 64),
        replay=ReplayConfig(symmetries=True),
        evaluation=EvaluationConfig(gate=False, every=5, validation_positions=4_000),
        checkpoint=CheckpointConfig(every=5, keep=2),
    ),
)

if __name__ == "__main__":
    main_of_stages(EXPERIMENT)
