"""AlphaGo as published in 2016 (Silver et al., Nature 529; AG16): from records of strong players to
a player, stage by stage."""

from azero.data.settings import ReplayConfig
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.train.alphago2016.config import (
    AlphaGoConfig,
    AlphaGoExperiment,
    MatchesConfig,
    ReinforceConfig,
    SizesConfig,
    StageConfig,
    ValueDataConfig,
)
from azero.train.main import main_of_stages
from azero.train.settings import CheckpointConfig

_HALVED = tuple((80_000_000 * times, 0.003 / 2**times) for times in range(5))
"""The rate of AG16's networks: 0.003, halved every 80 million steps."""


def _learner(batch_size: int, **changes: object) -> LearnerConfig:
    """Return plain gradient descent (AG16 methods: no momentum, no weight decay)."""
    settings = {
        "steps_per_iteration": 10_000,
        "momentum": 0.0,
        "l2": 0.0,
        "learning_rate": _HALVED,
        "value_weight": 0.0,
    } | changes
    return LearnerConfig(batch_size=batch_size, **settings)  # type: ignore[arg-type]


EXPERIMENT = AlphaGoExperiment(
    name="alphago19",
    title="AlphaGo of 2016 as published: four networks from records and self-play, and its "
    "search; 99.8% of 495 games against other programs",
    config=AlphaGoConfig(
        game=GoConfig(size=(19,), komi=7.5),
        # AG16 Extended Data Tables 3 and 4
        network=SizesConfig(blocks=12, filters=192, value_hidden=256, pattern_bits=16),
        # 8 million positions (AG16); the rate is that of the other networks
        rollout=StageConfig(planes=6, iterations=50, learner=_learner(16)),
        tree=StageConfig(planes=10, iterations=50, learner=_learner(16)),  # the paper does not say
        # 340 million steps of 16
        policy=StageConfig(planes=48, iterations=34_000, learner=_learner(16)),
        reinforce=ReinforceConfig(
            iterations=10_000,
            num_games=128,
            pool_every=500,
            learner=_learner(
                512,
                learning_rate=((0, 0.003),),
                # the paper gives no rate: the supervised one; positions at a time for the memory's
                # sake
            ),
        ),
        value_data=ValueDataConfig(positions=30_000_000, last_random_move=450),
        # 50 million steps of 32
        value=StageConfig(
            planes=49,
            iterations=5_000,
            learner=_learner(32, value_weight=0.5),  # AG16 equation 3: the step is (z - v) dv
        ),
        matches=MatchesConfig(games=400, search_games=100, visits=1600, workers=2),
        filters=(128, 192, 256),  # AG16 Extended Data Table 3
        replay=ReplayConfig(symmetries=True),  # AG16: all eight reflections and rotations
        evaluation=EvaluationConfig(gate=False, every=50, validation_positions=20_000),
        checkpoint=CheckpointConfig(every=50, keep=3),
    ),
)

if __name__ == "__main__":
    main_of_stages(EXPERIMENT)
