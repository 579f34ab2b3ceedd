"""Settings of networks, a class for each family.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362); AG16 = Silver
et al. 2016 (Nature 529); KG = Wu 2019 (arXiv 1902.10565); KGM = KataGo's docs/KataGoMethods.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from azero.config import Kind, check, check_range, find


@dataclass(frozen=True)
class NetworkConfig(Kind):
    """A network; `build(game)` makes its `azero.networks.network.Network`."""

    KINDS: ClassVar[Mapping[str, str]] = {
        "alphago_zero": "azero.networks.settings:ResNetConfig",
        "pooled": "azero.networks.settings:PooledConfig",
        "policy2016": "azero.networks.settings:Policy2016Config",
        "value2016": "azero.networks.settings:Value2016Config",
        "rollout2016": "azero.networks.settings:Rollout2016Config",
        "tree2016": "azero.networks.settings:Tree2016Config",
    }
    """The table of networks."""
    FITS_ANY_BOARD: ClassVar[bool] = False
    """Whether the same parameters serve every board of the game."""
    HAS_DRAWS: ClassVar[bool] = False
    """Whether the value head has outputs for loss, draw and win, not one number."""
    HAS_POLICY_AND_VALUE: ClassVar[bool] = True
    """Whether it learns both, as self-play needs."""

    name: str

    def build(self, *arguments: Any, **options: Any) -> Any:
        """Make the network, as `Kind.build` does, and check that of a class outside this module.

        Raises:
          ValueError: its functions return something other than `Network` says.
        """
        network = super().build(*arguments, **options)
        if type(self).__module__ != __name__:
            find("azero.networks.network:check_network")(network, arguments[0])
        return network


@dataclass(frozen=True)
class ConvolutionalConfig(NetworkConfig):
    """Base of the settings of networks of 3x3 convolutions."""

    blocks: int = 20
    """Blocks of the tower; the first one is a single convolution, so "20 blocks" has 19 residual
    blocks, 39 convolutions (AGZ)."""
    filters: int = 256
    """Filters of every 3x3 convolution (AGZ: 256)."""
    value_hidden: int = 256
    """Units of the value head's hidden layer (AGZ: 256)."""
    train_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the tower in training; parameters, statistics and heads stay float32."""
    inference_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Compute type of the tower in self-play and evaluation."""
    convolution: Literal["auto", "xla", "dots", "winograd"] = "auto"
    """How 3x3 convolutions are computed: XLA's own, matrix products over rows (CPUs with
    matrix units), minimal filtering (other CPUs), or by kind of processor. A run keeps what it
    began with."""

    def __post_init__(self) -> None:
        check_range(self, "network", "blocks filters value_hidden", 1)


@dataclass(frozen=True)
class ResidualConfig(ConvolutionalConfig):
    """Base of the settings of towers of residual blocks."""

    train_loop: Literal["auto", "scan", "unrolled"] = "auto"
    """How a training step goes through the tower's blocks. scan: in a loop, which compiles one
    block. unrolled: one after the other, which takes minutes to compile and on a TPU is faster and
    takes less memory, because a loop keeps every activation in one large array. auto: unrolled for
    small networks on CPUs and TPUs, else scan. The parameters are the same."""
    batch_norm_momentum: float = 0.95
    """Share of the old running statistics kept at each training step (the papers give none)."""
    batch_norm_epsilon: float = 1e-5
    """Added to the variance (the papers give none)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "network", "batch_norm_momentum", 0, 1)
        check_range(self, "network", "batch_norm_epsilon", 0, above=True)


@dataclass(frozen=True)
class ResNetConfig(ResidualConfig):
    """The tower and its heads (AGZ methods, 'Neural network architecture')."""

    MAKER: ClassVar[str] = "azero.networks.make:make_resnet"

    name: Literal["alphago_zero"] = "alphago_zero"
    """Which network: AlphaGo Zero's."""
    tower: Literal["res", "conv", "plain"] = "res"
    """res: residual blocks of two convolutions (AGZ). conv: the same without their skip
    connections. plain: a convolution a block; the networks without residual blocks of AGZ Figure 4
    have 12 of them."""
    heads: Literal["dual", "sep"] = "dual"
    """One tower for both heads, or a tower each (AGZ Figure 4)."""
    policy_head: Literal["linear", "planes"] = "linear"
    """linear: a 1x1 convolution and a linear layer over all moves (AGZ; AZ in Go). planes: a 3x3
    convolution and then one logit for each square and plane of the code of moves (AZ: 73 planes in
    chess, 139 in shogi), for games whose moves are coded so."""
    policy_filters: int = 2
    """Filters of the policy head's convolution (AGZ: 2; AZ in chess and shogi: those of the tower,
    256)."""
    policy_init: Literal["random", "identity"] = "random"
    """Initial weights of the policy head's linear layer (the paper gives none): random, or every
    point's move from that point's own features alone, which learns faster from few positions."""
    value_filters: int = 1
    """Filters of the value head's 1x1 convolution (AGZ: 1)."""
    colour_plane: int | None = None
    """Input plane whose ones say that the first mover is to move, for a network whose value head
    gives the first mover's result (ELF OpenGo); None: the head gives that of the side to move."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "network", "policy_filters value_filters", 1)
        check_range(self, "network", "colour_plane", 0)


@dataclass(frozen=True)
class PooledConfig(ResidualConfig):
    """A tower with global pooling and more heads, for boards of any size (KG)."""

    MAKER: ClassVar[str] = "azero.networks.make:make_pooled"
    FITS_ANY_BOARD: ClassVar[bool] = True
    HAS_DRAWS: ClassVar[bool] = True

    name: Literal["pooled"] = "pooled"
    """Which network: the one with global pooling."""
    norm: Literal["batch", "fixed"] = "batch"
    """batch: batch norms everywhere. fixed: scales and biases that begin so that the variance stays
    what it is, and one batch norm at the end of the tower (KGM)."""
    pool_every: int = 2
    """Period of the residual blocks that pool over the board (KG: 2 or 3 blocks of the tower in
    all)."""
    pool_filters: int | None = None
    """Channels of a pooling block's first convolution that are pooled; by default a quarter of
    the convolution's (KG: 64 of 256)."""
    inner_blocks: int = 0
    """Nested bottlenecks: every block is a 1x1 convolution to half of `filters`, so many residual
    blocks there, and a 1x1 convolution back (KGM; its networks "nbt" have 2). 0: plain blocks."""
    head_filters: int = 32
    """Filters of the heads' 1x1 convolutions (KG: 32 with a tower of 96 or 128)."""
    score_hidden: int = 32
    """Hidden units before the logit of a score, in games of points and a pass."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "network", "filters", 2)
        check_range(self, "network", "pool_every pool_filters head_filters score_hidden", 1)
        check_range(self, "network", "inner_blocks", 0)
        check(
            self.inner_blocks == 0 or (self.filters % 2 == 0 and self.filters > 2),
            f"network.filters is even and at least 4 with network.inner-blocks, not {self.filters}",
        )
        check(
            self.pooled_filters < self.block_filters,
            "network.pool-filters is below the filters of a 3x3 convolution, "
            f"{self.block_filters}, not {self.pool_filters}",
        )

    @property
    def block_filters(self) -> int:
        """Return the filters of the 3x3 convolutions of the blocks."""
        return self.filters // 2 if self.inner_blocks else self.filters

    @property
    def pooled_filters(self) -> int:
        """Return `pool_filters` or what it is by default."""
        return max(1, self.block_filters // 4) if self.pool_filters is None else self.pool_filters


@dataclass(frozen=True)
class Policy2016Config(ConvolutionalConfig):
    """The policy network of AlphaGo in 2016 (AG16: 12 layers after the first, 192 filters)."""

    MAKER: ClassVar[str] = "azero.networks.make:make_alphago2016"
    HAS_POLICY_AND_VALUE: ClassVar[bool] = False

    name: Literal["policy2016"] = "policy2016"
    """Which network: AlphaGo's policy network of 2016."""


@dataclass(frozen=True)
class Value2016Config(ConvolutionalConfig):
    """The value network of AlphaGo in 2016."""

    MAKER: ClassVar[str] = "azero.networks.make:make_alphago2016"
    HAS_POLICY_AND_VALUE: ClassVar[bool] = False

    name: Literal["value2016"] = "value2016"
    """Which network: AlphaGo's value network of 2016."""


@dataclass(frozen=True)
class LinearConfig(NetworkConfig):
    """Base of the settings of the linear policies of AlphaGo (2016)."""

    MAKER: ClassVar[str] = "azero.networks.rollout:linear_network"
    HAS_POLICY_AND_VALUE: ClassVar[bool] = False

    pattern_bits: int = 16
    """The table of patterns has 2 to this power weights (AG16: 69,338 and 32,207 weights)."""

    def __post_init__(self) -> None:
        check_range(self, "network", "pattern_bits", 4, 24)


@dataclass(frozen=True)
class Rollout2016Config(LinearConfig):
    """The rollout policy of AlphaGo in 2016."""

    name: Literal["rollout2016"] = "rollout2016"
    """Which network: AlphaGo's rollout policy of 2016."""


@dataclass(frozen=True)
class Tree2016Config(LinearConfig):
    """The tree policy of AlphaGo in 2016."""

    name: Literal["tree2016"] = "tree2016"
    """Which network: AlphaGo's tree policy of 2016."""
