"""Settings of searches, a class for each algorithm.

Sources: AGZ = Silver et al. 2017 (Nature 550); AZ = Silver et al. 2018 (Science 362) and its
pseudocode; GUM = Danihelka et al. 2022 (ICLR); KG = Wu 2019 (arXiv 1902.10565); KGM = KataGo's
docs/KataGoMethods.md; KGC = KataGo's code, cpp/search and cpp/program/setup.cpp.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from azero.config import Kind, check, check_range

Search = Literal["trained", "engine", "alphago_zero", "alphazero", "gumbel"]
"""Values of `search` in the name of a network's player: that of its run's own matches, the tuned
one of engines, or a rule, which has the run's constants."""


@dataclass(frozen=True)
class SearchConfig(Kind):
    """A tree search; `build(game, leaf)` makes its `azero.search.search.SearchFn`."""

    KINDS: ClassVar[Mapping[str, str]] = {
        "puct": "azero.search.settings:PuctConfig",
        "gumbel": "azero.search.settings:GumbelConfig",
        "mctx_puct": "azero.search.settings:MctxPuctConfig",
        "mctx_gumbel": "azero.search.settings:MctxGumbelConfig",
    }
    """The table of searches."""
    TEACHES_VISITS: ClassVar[bool] = False
    """Whether the policy target is the distribution of the visits."""
    WITHOUT_NOISE: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Values in matches of the settings of noise and exploration at the root."""

    name: str
    num_simulations: int = 1600
    """Simulations per move (AGZ: 1600; AZ: 800; GUM: 16 to 400)."""
    random_symmetry: bool = True
    """Evaluate every leaf in a random symmetry (AGZ: yes; AZ: no)."""
    edge_width: int | None = None
    """Edges of a node, for the moves with the highest priors; mctx has all moves, whatever this
    is. None is as many as a position of the game can have, so that no move is left out."""
    max_depth: int | None = None
    """Longest path from the root; None is no limit other than the number of simulations."""

    @property
    def kept_room(self) -> int:
        """Most nodes of a tree that are kept after a move, including the root; 0 where every move
        starts with a new tree."""
        return 0

    def without_noise(self) -> Self:
        """Return the search of matches: no noise at the root (AGZ methods, 'Evaluator')."""
        return self.replace(**self.WITHOUT_NOISE)

    def fast(self, num_simulations: int) -> Self:
        """Return the search of the fast moves of playout-cap randomisation (KG section 3.1): fewer
        simulations, no exploration at the root."""
        return dataclasses.replace(self.without_noise(), num_simulations=num_simulations)

    def __post_init__(self) -> None:
        check_range(self, "search", "num_simulations edge_width max_depth", 1)


@dataclass(frozen=True)
class PuctConfig(SearchConfig):
    """PUCT in the form of AlphaGo Zero or of AlphaZero."""

    MAKER: ClassVar[str] = "azero.search.batched.puct:make_puct"
    TEACHES_VISITS: ClassVar[bool] = True
    WITHOUT_NOISE = MappingProxyType(
        {"dirichlet_fraction": 0.0, "root_temperature": 1.0, "forced_playouts": 0.0}
    )
    """No noise (AGZ methods, 'Evaluator'), no temperature, no forced visits (KG section 3.2)."""

    name: Literal["puct"] = "puct"
    """Which search: PUCT."""
    puct_form: Literal["alphago_zero", "alphazero"] = "alphago_zero"
    """alphago_zero: constant c_puct, unvisited moves count as a draw. alphazero: c grows with
    visits, unvisited moves count as a loss."""
    c_puct: float = 1.5
    """alphago_zero: the exploration constant, for values in [-1, 1] (unpublished; 1.5 as in ELF
    OpenGo)."""
    pb_c_base: float = 19652.0
    """alphazero: c = log((N + base + 1) / base) + init (AZ pseudocode)."""
    pb_c_init: float = 1.25
    """alphazero: see pb_c_base; for values in [0, 1] (AZ pseudocode)."""
    dirichlet_alpha: float = 0.03
    """Concentration of the root noise, over the legal moves (AGZ: 0.03 at 19x19, about 10 /
    moves)."""
    dirichlet_fraction: float = 0.25
    """Share of the noise in the root's prior (AGZ: 0.25; 0 is none)."""
    root_temperature: float = 1.0
    """Temperature that softens the root's prior before the noise (AGZ: none, which is 1; KGM: 1.25
    at the start of a game, falling to 1.1)."""
    forced_playouts: float = 0.0
    """k: a visited move of the root gets at least sqrt(k P N) visits, and those that it would not
    have had otherwise are left out of the policy target (KG section 3.2: 2; 0 is off)."""
    first_play: Literal["form", "zero", "parent", "reduced"] = "form"
    """Value of a move never visited. form: what puct_form says. zero: a draw. parent: the value of
    the position. reduced: that less first_play_reduction sqrt(P explored), without the reduction
    at a root with noise (KG section 3.2)."""
    first_play_reduction: float = 0.2
    """reduced: see first_play; for values in [-1, 1] (KG: 0.2)."""
    variance_scale: float = 0.0
    """How far c follows the spread of the values below a node: c (1 + variance_scale (s /
    stdev_prior - 1)), s their standard deviation (KGM, 'Dynamic Variance-Scaled cPUCT'; KGC: 0.85
    in matches; 0 is off)."""
    stdev_prior: float = 0.4
    """Prior for the standard deviation of the values, in [-1, 1] (KGC: 0.40)."""
    stdev_prior_weight: float = 2.0
    """Visits that this prior counts as (KGC: 2)."""
    reuse_tree: bool = False
    """Whether self-play, the run's matches and players with its search keep the subtree of the
    move played, with all its statistics, and add num_simulations new simulations to it (AGZ
    methods, 'Play': yes; AZ pseudocode: no). Gumbel has no such setting: sequential halving
    compares moves by equal numbers of visits that begin at zero."""
    kept_nodes: int | None = None
    """reuse_tree: most nodes of the subtree that are kept, those evaluated first; the others are
    evaluated again when they are visited (AGZ gives no limit). None is num_simulations."""

    @property
    def kept_room(self) -> int:
        """See `SearchConfig.kept_room`."""
        return (self.kept_nodes or self.num_simulations) if self.reuse_tree else 0

    def fast(self, num_simulations: int) -> Self:
        """See `SearchConfig.fast`; as many nodes are kept."""
        kept = self.kept_room or self.kept_nodes
        return dataclasses.replace(super().fast(num_simulations), kept_nodes=kept)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "search", "kept_nodes", 1)
        names = "c_puct pb_c_init forced_playouts first_play_reduction stdev_prior_weight"
        check_range(self, "search", names, 0)
        names = "pb_c_base dirichlet_alpha root_temperature stdev_prior"
        check_range(self, "search", names, 0, above=True)
        check_range(self, "search", "dirichlet_fraction variance_scale", 0, 1)


@dataclass(frozen=True)
class MctxPuctConfig(PuctConfig):
    """PUCT through the library mctx."""

    MAKER: ClassVar[str] = "azero.search.batched.mctx_backend:make_mctx_puct"
    LACKS: ClassVar[tuple[str, ...]] = ("reuse_tree", "kept_nodes")

    name: Literal["mctx_puct"] = "mctx_puct"  # type: ignore[assignment]
    """Which search: PUCT through the library mctx."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            self.variance_scale == 0.0,
            f"search.variance-scale = {self.variance_scale}: the tree of mctx keeps no sums of "
            "squares; search.name puct does, and mctx_puct needs 0",
        )
        check(
            not self.reuse_tree,
            "search.reuse-tree: mctx begins every search with a new tree; search.name puct keeps "
            "them",
        )


@dataclass(frozen=True)
class GumbelConfig(SearchConfig):
    """Gumbel AlphaZero: sequential halving at the root, an improved policy below it."""

    MAKER: ClassVar[str] = "azero.search.batched.gumbel:make_gumbel"
    WITHOUT_NOISE = MappingProxyType({"gumbel_scale": 0.0})

    name: Literal["gumbel"] = "gumbel"
    """Which search: Gumbel AlphaZero."""
    max_considered: int = 16
    """Actions drawn without replacement at the root (GUM: 16). A position with fewer legal moves
    gets fewer simulations than num_simulations, except by mctx."""
    gumbel_scale: float = 1.0
    """Scale of the Gumbel noise at the root (GUM: 1 in self-play, 0 in evaluation)."""
    c_visit: float = 50.0
    """See c_scale (GUM: 50)."""
    c_scale: float = 1.0
    """Sigma(q) = (c_visit + max N) c_scale q with q in [0, 1] (GUM: 1.0 in Go and chess)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "search", "max_considered", 1)
        # Products of two are finite in float32, sums of visits included.
        check_range(self, "search", "gumbel_scale c_visit c_scale", 0, 10**9)


@dataclass(frozen=True)
class MctxGumbelConfig(GumbelConfig):
    """Gumbel AlphaZero through the library mctx."""

    MAKER: ClassVar[str] = "azero.search.batched.mctx_backend:make_mctx_gumbel"

    name: Literal["mctx_gumbel"] = "mctx_gumbel"  # type: ignore[assignment]
    """Which search: Gumbel AlphaZero through the library mctx."""
