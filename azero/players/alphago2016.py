"""AlphaGo of 2016 as a player: the directories of its four networks, and the search that uses
them."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import jax
import numpy as np

from azero.checkpoint import find_checkpoint, load_variables
from azero.games.game import Game
from azero.games.go.rollouts.rollouts import Rollouts, Starts
from azero.games.go.rules import Go
from azero.games.settings import GameConfig
from azero.models.naming import read_options
from azero.networks.network import Network
from azero.networks.rollout import NUM_GROUPS
from azero.networks.settings import Rollout2016Config
from azero.players.play_style import ALPHAGO2016
from azero.players.searches import eyes_last_leaf, visit_words
from azero.players.thinking import Limits, check_same_board
from azero.players.tree_player import TreePlayer
from azero.search.leaf import SymmetryLeafFn, symmetry_network_leaf
from azero.search.single.mixed import MixedEvaluator, MixSettings, RolloutFn, make_evaluate_fn
from azero.search.single.packed import PackedPosition, states_of, unpack_on_host
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import AlphaGo2016, FirstPlay
from azero.settings import Config
from azero.types import PyTree

FORM = (
    '"apv:DIR?visits=800&lambda=0.5&threshold=40&c-puct=5&beta=0.67'
    '&priors=network&fpu=zero&batch=16&policy-batch=16&replies=0&adaptive=0", '
    '"apv:POLICY_DIR?value=DIR&rollout=DIR&tree=DIR&visits=800"'
)
KINDS = {"policy": "policy2016", "value": "value2016", "rollout": "rollout2016", "tree": "tree2016"}
"""The kind of network of each part."""
Priors = Literal["network", "tree", "uniform"]
_VIRTUAL_LOSS = 3
"""n_vl (AG16: 3)."""
_BATCH = 16
"""Leaves evaluated together (AG16: 40 threads)."""
_SMALLEST = 2
"""Smallest batch: leaves rarely come alone, and the programs of the 48 planes take long to
compile."""
_EXPORTED = "checkpoint"
"""Name of a directory with only a network, which does not identify its run."""


@dataclass(frozen=True)
class ApvSpec:
    """AlphaGo of 2016 as a player."""

    policy: Path
    """Directory of the policy network: a run or an exported network. The same holds for the
    others."""
    value: Path | None = None
    """None evaluates positions by rollouts alone."""
    rollout: Path | None = None
    """None plays random rollouts that fill no own eyes."""
    tree: Path | None = None
    """The policy of a new node until the policy network has answered; None is the rollout
    policy."""
    visits: int | None = None
    """Rollouts from the root; None is the player's default."""
    mixing: float | None = None
    """lambda: the share of rollouts in a value; None is 0.5 with a value network
    (AG16), otherwise 1."""
    threshold: int | None = None
    """n_thr: an edge with more rollouts gets a node; None is AG16's 40."""
    c_puct: float | None = None
    """Exploration; None is AG16's 5, which is for many thousand rollouts."""
    beta: float | None = None
    """Exponent that softens the policy network's priors; None is AG16's 0.67."""
    priors: Priors | None = None
    """Where priors come from: "network" (None, AG16), the policy network; "tree", the tree policy
    alone (AG16 Extended Data Table 7: no policy network); "uniform", all moves alike."""
    fpu: FirstPlay | None = None
    """Q of an unvisited move: "zero" (None, AG16) or "parent", the mean of the others, for few
    rollouts."""
    batch: int | None = None
    """Descents evaluated together; None is the tree's default."""
    policy_batch: int | None = None
    """Positions evaluated by the policy network per batch of descents; None is the tree's
    default."""
    has_replies: bool = False
    """Rollouts repeat the reply of the last rollout that they won (see
    `azero.games.go.rollouts.replies`)."""
    is_adaptive: bool = False
    """n_thr follows the length of the policy network's queue (`MixSettings.is_adaptive`)."""
    label: str | None = None
    """Name of the player in results; None is the name of the policy's directory."""
    iterations: tuple[tuple[str, int], ...] = ()
    """The checkpoint of each part; the newest of parts that are not named."""

    def __post_init__(self) -> None:
        if self.visits is not None and self.visits < 1:
            raise ValueError(f"apv takes at least 1 visit, not {self.visits}")
        if self.mixing is not None and not 0.0 <= self.mixing <= 1.0:
            raise ValueError(f"lambda must be in [0, 1], not {self.mixing:g}")
        if self.value is None and self.mixing not in (None, 1.0):
            raise ValueError(
                f"lambda={self.mixing:g} needs a value network (value=DIR); without one only "
                "rollouts count, and lambda is 1"
            )

    @property
    def name(self) -> str:
        """Its name in results."""
        directory = self.policy.parent if self.policy.name == _EXPORTED else self.policy
        parts = [f"alphago2016 {self.label or directory.name}"]
        parts += visit_words(self.visits)
        parts += [] if self.mixing is None else [f"lambda {self.mixing:g}"]
        parts += [
            f"{name.replace('_', '-')} {getattr(self, name):g}"
            for name in ("c_puct", "beta")
            if getattr(self, name) is not None
        ]
        parts += [] if self.priors is None else [f"priors {self.priors}"]
        parts += [] if self.fpu is None else [f"fpu {self.fpu}"]
        parts += ["replies"] if self.has_replies else []
        parts += ["adaptive"] if self.is_adaptive else []
        return ", ".join(parts)

    @property
    def directories(self) -> dict[str, Path]:
        """The directories of the networks that there are, by part."""
        return {part: directory for part in KINDS if (directory := getattr(self, part)) is not None}

    @property
    def rule(self) -> AlphaGo2016:
        """How the tree chooses edges."""
        mixing = self.mixing
        if mixing is None:
            mixing = 1.0 if self.value is None else AlphaGo2016.mixing
        return AlphaGo2016(mixing=mixing, **self._given("c_puct", "fpu"))

    @property
    def tree_settings(self) -> TreeSettings:
        """How the tree searches."""
        batch = _BATCH if self.batch is None else self.batch
        return TreeSettings(batch=batch, rule=self.rule, virtual_loss=_VIRTUAL_LOSS)

    @property
    def mix_settings(self) -> MixSettings:
        """How leaves are evaluated."""
        given = self._given("threshold", "beta", "policy_batch")
        if self.priors in ("tree", "uniform"):
            given = {"beta": 1.0, **given}  # beta is the policy network's
        uses_values = self.rule.mixing < 1.0
        return MixSettings(uses_values=uses_values, is_adaptive=self.is_adaptive, **given)

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class _Part(NamedTuple):
    """A network with the game whose planes it reads."""

    game: Game
    network: Network
    params: PyTree
    """Inference parameters."""

    @property
    def leaf(self) -> SymmetryLeafFn:
        """The network alone."""
        return symmetry_network_leaf(self.game, self.network.infer)


def parse_apv(text: str) -> ApvSpec | None:
    """Return the player that `text` names; None if it has not this form.

    Raises:
      ValueError: it has, but is not understood.
    """
    kind, _, rest = text.partition(":")
    name, _, query = rest.partition("?")
    if kind != "apv" or not name:
        return None
    settings: dict[str, Any] = {}
    for key, value in read_options(query, text):
        try:
            settings |= _setting(key, value)
        except (KeyError, ValueError):
            raise ValueError(
                f"{key}={value} in {text!r} is not understood; the form is {FORM}"
            ) from None
    try:
        return ApvSpec(**{**_networks_in(Path(name)), **settings})
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from None


def _networks_in(directory: Path) -> dict[str, Any]:
    """Return the directories of the networks of an experiment of stages (alphago9); any other
    directory holds the policy alone."""
    if not (directory / "policy").is_dir():
        return {"policy": directory}
    networks = {part: directory / part for part in KINDS if (directory / part).is_dir()}
    return {"label": directory.name, **networks}


_SETTINGS: dict[str, tuple[str, Callable[[str], Any]]] = {
    **{part: (part, Path) for part in ("value", "rollout", "tree")},
    **{
        name: (name.replace("-", "_"), int)
        for name in ("visits", "threshold", "batch", "policy-batch")
    },
    "c-puct": ("c_puct", float),
    "beta": ("beta", float),
    "lambda": ("mixing", float),
    "priors": ("priors", str),
    "fpu": ("fpu", str),
    **{
        name: (field, lambda value: {"0": False, "1": True}[value])
        for name, field in (("replies", "has_replies"), ("adaptive", "is_adaptive"))
    },
}
"""By the key in a player's name: the field of an `ApvSpec`, and the function that reads its
value."""


def _setting(key: str, value: str) -> dict[str, Any]:
    """Return one setting of an `ApvSpec`.

    Raises:
      ValueError, KeyError: there is no such setting, or no such value.
    """
    name, read = _SETTINGS[key]
    words = {"fpu": FirstPlay, "priors": Priors}
    if not value or (key in words and value not in get_args(words[key])):
        raise ValueError(value)
    if read is int and not value.isdigit():
        raise ValueError(value)
    return {name: read(value)}


def resolve_apv(spec: ApvSpec) -> tuple[ApvSpec, Config]:
    """Return the player with the numbers of its checkpoints filled in, and the settings of the
    policy network; those of the others are checked.

    Raises:
      CheckpointError: a directory holds no network, or a damaged one, or not that checkpoint.
      ValueError: a directory holds another kind of network, or boards differ.
    """
    wanted = dict(spec.iterations)
    found = {
        part: find_checkpoint(path, wanted.get(part)) for part, path in spec.directories.items()
    }
    board = cast(Game, make_go(found["policy"][1].game))
    for part, (_, config) in found.items():
        directory, network = spec.directories[part], config.network.name
        if network != KINDS[part]:
            raise ValueError(
                f"{directory} holds a network {network}; the {part} of apv is {KINDS[part]}"
            )
        check_same_board(str(directory), cast(Game, make_go(config.game)), board)
    iterations = tuple((part, iteration) for part, (iteration, _) in found.items())
    return dataclasses.replace(spec, iterations=iterations), found["policy"][1]


def load_apv(
    spec: ApvSpec, rules: GameConfig | None = None, seed: int = 0, by_clock: bool = False
) -> TreePlayer:
    """Load the networks as a player with one tree for its game; `rules` are what is played, on the
    networks' board, by default as in training. Without visits in its name and `by_clock`, the
    player's clock alone limits a move.

    Raises:
      CheckpointError: a directory holds no network, or a damaged one.
      ValueError: a directory holds another kind of network, or boards differ.
    """
    spec, config = resolve_apv(spec)
    trained = config.game
    game = make_go(trained if rules is None else rules)
    check_same_board(spec.name, cast(Game, make_go(trained)), cast(Game, game))
    usual = Limits() if by_clock else ALPHAGO2016.limits
    limits = usual if spec.visits is None else Limits(visits=spec.visits)
    return TreePlayer(
        cast(Game, game),
        _load_evaluator(spec, game, trained, seed),
        settings=spec.tree_settings,
        style=dataclasses.replace(ALPHAGO2016, limits=limits),
        name=spec.name,
        seed=seed,
    )


def _load_evaluator(spec: ApvSpec, game: Go, trained: GameConfig, seed: int) -> MixedEvaluator:
    """Load the networks as the evaluator of a tree of `game`."""
    iterations = dict(spec.iterations)
    parts = {part: _load(path, iterations[part]) for part, path in spec.directories.items()}
    settings, batch = spec.mix_settings, spec.tree_settings.batch
    rollouts = parts["rollout"] if "rollout" in parts else _untrained_rollouts(trained)
    tree = parts.get("tree", rollouts)
    if spec.priors == "uniform":
        tree = _untrained_rollouts(trained)
    asks_network = spec.priors not in ("tree", "uniform")
    policy = parts["policy"] if asks_network else tree
    leaf = eyes_last_leaf(game, policy.leaf)  # the networks of 2016 have no pass
    # Without a value network nothing asks for values in the search; the policy network's, which
    # are 0, stand for them elsewhere.
    value = parts.get("value", parts["policy"])
    value_leaf = value.leaf if "value" in parts else eyes_last_leaf(game, value.leaf)
    tree_leaf = eyes_last_leaf(game, tree.leaf)
    return MixedEvaluator(
        make_evaluate_fn(
            policy.game,
            leaf,
            policy.params,
            batch=settings.policy_batch,
            seed=seed,
            random_symmetry=asks_network,
        ),
        make_evaluate_fn(
            value.game, value_leaf, value.params, batch=batch, seed=seed + 1, smallest=_SMALLEST
        ),
        make_evaluate_fn(
            tree.game,
            tree_leaf,
            tree.params,
            batch=batch,
            seed=seed,
            smallest=_SMALLEST,
            random_symmetry=False,
        ),
        make_rollouts(game, rollouts.params, spec.has_replies, seed + 2),
        settings,
        batch,
    )


def make_go(config: GameConfig) -> Go:
    """Make the game of `config`.

    Raises:
      ValueError: it is not Go.
    """
    game = config.build()
    if not isinstance(game, Go):
        raise ValueError(f"AlphaGo of 2016 plays go, not {game.name}")
    return game


def _load(directory: Path, iteration: int) -> _Part:
    variables, config = load_variables(directory, iteration)
    game = make_go(config.game)
    network = config.network.build(game)
    return _Part(cast(Game, game), network, jax.jit(network.fold)(variables))


def _untrained_rollouts(trained: GameConfig) -> _Part:
    """Return the rollout policy that draws its moves uniformly."""
    game = make_go(trained.replace(planes=NUM_GROUPS["rollout2016"]))
    network = Rollout2016Config(pattern_bits=4).build(game)
    return _Part(cast(Game, game), network, network.fold(network.init(jax.random.key(0))))


def make_rollouts(game: Go, params: PyTree, has_replies: bool, seed: int) -> RolloutFn:
    """Return the function that plays rollouts by the policy with the parameters `params`.

    Raises:
      ValueError: they are too large, or not numbers.
    """
    komi = game.komi if has_replies else None
    rollouts = Rollouts(game.board_shape, params, reply_komi=komi, seed=seed)

    def begin(positions: Sequence[PackedPosition]) -> Callable[[], np.ndarray]:
        states = unpack_on_host(game, states_of(positions))
        played = rollouts.begin(Starts.of(states, game.num_points))
        return lambda: played().leads

    return begin
