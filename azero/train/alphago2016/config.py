"""The stages of AlphaGo of 2016 in order, with their dependencies and settings (Silver et al. 2016,
AG16).

Every stage that learns is an ordinary run of the one learner: `stage_config` gives its settings.
Its data and its driver are in `azero.train.alphago2016.stages`.
"""

import dataclasses
import zlib
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from azero.config import check_range
from azero.data.settings import ReplayConfig
from azero.games.go.settings import GoConfig
from azero.learn.settings import LearnerConfig
from azero.match.settings import EvaluationConfig
from azero.networks.settings import LinearConfig, NetworkConfig
from azero.search.settings import PuctConfig
from azero.selfplay.settings import SelfplayConfig
from azero.settings import Config
from azero.train.settings import CheckpointConfig, RunConfig

PAPER_LAST_RANDOM_MOVE, PAPER_POINTS = 450, 361
"""AG16: U is drawn from 1 to 450 on 19x19."""


def _check_even(settings: object, table: str, names: str) -> None:
    """Check that the settings `names` of a table are numbers of games of a match.

    Raises:
      ValueError: one is odd, or below 2.
    """
    check_range(settings, table, names, 2)
    for name in names.split():
        if (games := getattr(settings, name)) % 2:
            place = f"{table}.{name.replace('_', '-')}"
            raise ValueError(f"{place} is even, half of the games with each colour, not {games}")


@dataclass(frozen=True)
class ValueDataConfig:
    """Games of self-play for the value network (AG16 methods, 'Value network: training')."""

    positions: int = 30_000_000
    """Positions to generate, including those for validation and test (AG16: over 30 million)."""
    last_random_move: int | None = None
    """The largest U; None scales AG16's 450 for 19x19 by the number of points."""
    num_games: int = 1024
    """Games played side by side over all devices (the paper does not say)."""
    games_per_shard: int = 8192
    """Games per shard, a multiple of num-games. Games are sorted by U within a shard, so larger
    shards need fewer evaluations of both policies."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_range(self, "", "positions last_random_move num_games games_per_shard", 1)
        if self.games_per_shard % self.num_games:
            raise ValueError(
                f"games-per-shard = {self.games_per_shard} is not a multiple of num-games "
                f"= {self.num_games}"
            )

    def latest(self, num_points: int) -> int:
        """Return the largest U on a board with this number of points."""
        return self.last_random_move or max(
            1, round(PAPER_LAST_RANDOM_MOVE * num_points / PAPER_POINTS)
        )


@dataclass(frozen=True)
class StageConfig:
    """A network that learns from a data set."""

    planes: int
    """Input planes; see `game.planes` of other experiments."""
    iterations: int
    """Iterations of learner.steps-per-iteration steps."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)

    def __post_init__(self) -> None:
        check_range(self, "a stage", "iterations", 1)


@dataclass(frozen=True)
class ReinforceConfig:
    """The policy of reinforcement learning (AG16 methods, 'Policy network: reinforcement
    learning')."""

    iterations: int = 10_000
    """Mini-batches of games, each one step (AG16: 10,000)."""
    num_games: int = 128
    """n: games per mini-batch, half with each colour (AG16: 128)."""
    pool_every: int = 500
    """Iterations between additions of the policy to the pool of opponents (AG16: 500)."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """batch-size: positions learned from at a time; all those of a mini-batch make one step.
    steps-per-iteration is not read."""

    def __post_init__(self) -> None:
        check_range(self, "reinforce", "iterations num_games pool_every", 1)


@dataclass(frozen=True)
class MatchesConfig:
    """Sizes of the evaluation matches."""

    games: int = 400
    """Between raw policies, every move sampled from the network's policy (AG16)."""
    search_games: int = 100
    """Games of each pair in the round robin over lambda."""
    visits: int = 800
    """Rollouts a move in the round robin (AG16: 5 s a move)."""
    threshold: int = 40
    """n_thr there: an edge with more rollouts gets a node (AG16: 40; few rollouts a move want
    fewer)."""
    workers: int = 2
    """Games of the round robin played at once."""

    def __post_init__(self) -> None:
        check_range(self, "matches", "visits threshold workers", 1)
        _check_even(self, "matches", "games search_games")


@dataclass(frozen=True)
class ByMoveConfig:
    """Rollouts against the value network by the stage of the game (AG16 Figure 2b)."""

    positions: int = 2000
    """Positions of the records' test split, evenly spaced (the paper does not say how many)."""
    rollouts: int = 100
    """Rollouts of each position with each policy (AG16: 100); the variance of their mean is
    subtracted from the errors, so that fewer give the same figure."""
    moves_per_band: int = 30
    """Moves that share a point of the figure."""

    def __post_init__(self) -> None:
        check_range(self, "by-move", "positions moves_per_band", 1)
        check_range(self, "by-move", "rollouts", 2)


@dataclass(frozen=True)
class LeeConfig:
    """Value networks from games of the whole player, as of AlphaGo Lee (AGZ methods, 'AlphaGo
    versions')."""

    iterations: int = 3
    """Value networks, each from games with the one before (the paper: several)."""
    games: int = 1000
    """Games for each, even; visits and threshold are those of `matches`."""
    random_plies: int = 4
    """Random moves at the start of every pair of games, so that games differ."""

    def __post_init__(self) -> None:
        check_range(self, "lee", "iterations random_plies", 1)
        _check_even(self, "lee", "games")


@dataclass(frozen=True)
class SizesConfig:
    """Size and precision of the networks."""

    blocks: int = 20
    """Convolutions of the policy and the value network before the last one (AG16: 12)."""
    filters: int = 256
    """Filters of every convolution (AG16: 192)."""
    value_hidden: int = 256
    """Units of the value head's hidden layer (AG16: 256)."""
    train_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the convolutions in training."""
    inference_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the convolutions in play."""
    convolution: Literal["auto", "xla", "dots", "winograd"] = "auto"
    """How 3x3 convolutions are computed; see `network.convolution` of other experiments."""
    pattern_bits: int = 16
    """The table of patterns of the linear policies has 2 to this power weights (AG16: 69,338 and
    32,207 weights)."""

    def of(self, name: str) -> NetworkConfig:
        """Return the settings of the network `name`."""
        kind = NetworkConfig.kind(name)
        known = {field.name for field in dataclasses.fields(kind)}
        return kind(name, **{key: value for key, value in vars(self).items() if key in known})


@dataclass(frozen=True)
class AlphaGoConfig:
    """All settings of AlphaGo of 2016."""

    rollout: StageConfig
    tree: StageConfig
    policy: StageConfig
    value: StageConfig
    reinforce: ReinforceConfig = field(default_factory=ReinforceConfig)
    value_data: ValueDataConfig = field(default_factory=ValueDataConfig)
    matches: MatchesConfig = field(default_factory=MatchesConfig)
    by_move: ByMoveConfig = field(default_factory=ByMoveConfig)
    lee: LeeConfig = field(default_factory=LeeConfig)
    filters: tuple[int, ...] = (128, 192, 256)
    """Policy networks of the stage `filters` (AG16 Extended Data Table 3)."""
    game: GoConfig = field(default_factory=GoConfig)
    """For all networks; `planes` is set by each stage."""
    network: SizesConfig = field(default_factory=lambda: SizesConfig())
    """Size and arithmetic of all networks."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    seed: int = 0
    """Seed of every random draw except those of the value network's games."""

    def __post_init__(self) -> None:
        check_range(self, "", "filters", 1)


_Network = Literal["policy2016", "value2016", "rollout2016", "tree2016"]
NETWORKS: dict[str, _Network] = {
    "rollout": "rollout2016",
    "tree": "tree2016",
    "policy": "policy2016",
    "value": "value2016",
    "reinforce": "policy2016",
}
"""The network of each stage that learns."""


class StageInfo(NamedTuple):
    """One stage."""

    title: str
    needs: tuple[str, ...] = ()
    """Stages whose results it needs."""
    records: tuple[str, ...] = ()
    """Splits of the recorded games that it learns from, or whose moves or results it predicts."""


STAGES = {
    "rollout": StageInfo(
        "Rollout policy: a linear softmax over patterns learns from the records", records=("train",)
    ),
    "tree": StageInfo("Tree policy: the same with more patterns", records=("train",)),
    "policy": StageInfo("Policy network: learns the moves of the records", records=("train",)),
    "reinforce": StageInfo(
        "Reinforced policy network: games against earlier versions of itself", ("policy",)
    ),
    "value-data": StageInfo(
        "Positions for the value network: one per self-play game", ("policy", "reinforce")
    ),
    "value": StageInfo("Value network: learns the results", ("value-data",)),
    "prediction": StageInfo(
        "Move prediction accuracy", ("rollout", "tree", "policy"), records=("test",)
    ),
    "rl-match": StageInfo(
        "Reinforcement learning against supervised learning, no search", ("policy", "reinforce")
    ),
    "value-error": StageInfo("Value network error on unseen games", ("value-data", "value")),
    "mixing": StageInfo(
        "Rollouts, values, or both: a round robin over lambda",
        ("rollout", "tree", "policy", "value"),
    ),
    "planes": StageInfo("Policy networks with fewer planes", records=("train", "test")),
    "filters": StageInfo("Policy networks of other widths", records=("train", "test")),
    "overfitting": StageInfo(
        "Value networks that learn from all positions of their games",
        ("policy", "reinforce", "value-data", "value"),
        records=("train", "test"),
    ),
    "second-pass": StageInfo(
        "Reinforcement learning with the value network as baseline",
        ("policy", "reinforce", "value"),
    ),
    "strength": StageInfo(
        "Win rate by the accuracy of the policy network",
        ("rollout", "tree", "policy", "value", "planes", "filters"),
        records=("test",),
    ),
    "value-by-move": StageInfo(
        "Value error by the stage of the game: rollouts of four policies, and the value network",
        ("rollout", "policy", "reinforce", "value"),
        records=("test",),
    ),
    "lee": StageInfo(
        "Value networks that learn from games of the whole player, one after another",
        ("rollout", "tree", "policy", "value"),
    ),
}
"""All stages, in the order in which they run."""
OPTIONAL = ("planes", "filters", "overfitting", "second-pass", "strength", "value-by-move", "lee")
"""Stages that run only on request: comparisons, which the player does not need."""
DEFAULT = tuple(name for name in STAGES if name not in OPTIONAL)


@dataclass(frozen=True)
class AlphaGoExperiment:
    """All stages of AlphaGo of 2016 as one experiment."""

    name: str
    title: str
    """One line: what is learned, and the result."""
    config: AlphaGoConfig


def ordered(names: tuple[str, ...]) -> list[str]:
    """Return stages in the order in which they run, each once.

    Raises:
      ValueError: there is no such stage.
    """
    for name in names:
        if name not in STAGES:
            raise ValueError(f"unknown stage {name!r}; the stages are: {', '.join(STAGES)}")
    return [name for name in STAGES if name in names]


def stage_config(settings: AlphaGoConfig, name: str) -> Config:
    """Return the settings of the run of stage `name`: rollout, tree, policy, value or reinforce."""
    stage: StageConfig | ReinforceConfig = getattr(settings, name)
    planes = settings.policy.planes if isinstance(stage, ReinforceConfig) else stage.planes
    network = settings.network.of(NETWORKS[name])
    turns = not isinstance(network, LinearConfig)  # pattern indices have no symmetries
    return Config(
        game=dataclasses.replace(settings.game, planes=planes),
        network=network,
        # the search of a single network used as a player
        search=PuctConfig(puct_form="alphazero", random_symmetry=turns),
        selfplay=SelfplayConfig(num_games=settings.reinforce.num_games),
        replay=dataclasses.replace(
            settings.replay, symmetries=settings.replay.symmetries and turns
        ),
        learner=stage.learner,
        evaluation=settings.evaluation,
        checkpoint=settings.checkpoint,
        run=RunConfig(iterations=stage.iterations, seed=stage_seed(settings.seed, name)),
    )


def stage_seed(seed: int, stage: str) -> int:
    """Return the seed of a stage, below 2**31. Stages number their iterations, shards and batches
    in the same way, so with one seed they would draw the same numbers."""
    import numpy as np  # the settings of experiments are read without it

    return int(np.random.default_rng([seed, zlib.crc32(stage.encode())]).integers(2**31))
