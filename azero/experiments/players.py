"""Players by name: checkpoints of our runs, networks that have learned nothing, and other programs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl

import jax

from azero.checkpoint import load_settings, load_variables
from azero.config import Config, GameConfig
from azero.experiments.alphago2016 import FORM as APV_FORM
from azero.experiments.alphago2016 import ApvSpec, apv_config, load_apv, parse_apv
from azero.experiments.experiment import load
from azero.experiments.programs import FORMS as PROGRAM_FORMS
from azero.experiments.programs import ProgramSpec, parse_program
from azero.games import Game, make
from azero.networks import Network, make_network
from azero.pipelines.programs import match_leaf, match_settings, sparing_eyes
from azero.play.apv_player import ApvPlayer
from azero.play.tree_player import PlayStyle, TreePlayer
from azero.search import SearchFn, make_search
from azero.search.evaluator import Symmetries
from azero.search.leaf import turned_network_leaf
from azero.search.parallel import TreeSettings
from azero.search.policy import make_policy
from azero.types import PyTree

FORMS = f'"checkpoint:WORKDIR?visits=64&iteration=100", "random-net:EXPERIMENT?visits=64&seed=1&blocks=2&filters=32", {APV_FORM}, {PROGRAM_FORMS}'


@dataclass(frozen=True)
class CheckpointSpec:
    """A checkpoint as a player."""

    workdir: Path
    iteration: int | None = None
    """None is the newest."""
    visits: int | None = None
    """Simulations per move; 0 is the raw policy, None is as in the run's matches."""

    @property
    def name(self) -> str:
        """How results call it."""
        parts = [self.workdir.name]
        parts += [] if self.iteration is None else [f"iteration {self.iteration}"]
        parts += [] if self.visits is None else [f"{self.visits} visits"]
        return ", ".join(parts)


@dataclass(frozen=True)
class RandomNetSpec:
    """The network of an experiment before it has learned anything, as a player: for trying programs out."""

    experiment: str
    seed: int = 0
    """Of the initial weights."""
    visits: int | None = None
    """As in `CheckpointSpec`."""
    blocks: int | None = None
    """Another size than the experiment's, so that programs can be tried out on a small machine."""
    filters: int | None = None

    @property
    def name(self) -> str:
        """How results call it."""
        return f"random {self.experiment}" + ("" if self.visits is None else f", {self.visits} visits")

    @property
    def config(self) -> Config:
        """The settings of the experiment, with the size of this network.

        Raises:
          ValueError: there is no such experiment, or no such network.
        """
        config = load(self.experiment).config
        sizes = {name: size for name in ("blocks", "filters") if (size := getattr(self, name)) is not None}
        return dataclasses.replace(config, network=dataclasses.replace(config.network, **sizes))


NetworkSpec = CheckpointSpec | RandomNetSpec
"""A player with a network of ours."""
ThinkerSpec = NetworkSpec | ApvSpec
"""A player of ours: with one tree for its game it thinks as engines do; a single network also plays many games at once."""


@dataclass(frozen=True)
class ThinkerSettings:
    """How a network plays with one tree for its game."""

    tree: TreeSettings | None = None
    """None is the default, looking at leaves in a random symmetry if the network was trained so, else as they are."""
    style: PlayStyle = field(default_factory=PlayStyle)
    """The visits of a player's name come before those of `style.limits`."""
    seed: int = 0
    """Of all random draws."""


class Loaded(NamedTuple):
    """A network ready to play."""

    config: Config
    game: Game
    search: SearchFn
    params: PyTree
    """Inference parameters."""


def parse_player(text: str) -> ThinkerSpec | ProgramSpec:
    """Return the player that `text` names.

    Raises:
      ValueError: it is not of one of the forms.
    """
    if (program := parse_program(text)) is not None:
        return program
    if (apv := parse_apv(text)) is not None:
        return apv
    kind, _, rest = text.partition(":")
    name, _, query = rest.partition("?")
    if not name or kind not in ("checkpoint", "random-net"):
        raise ValueError(f"{text!r} is not a player; a player is {FORMS}")
    if kind == "checkpoint":
        return CheckpointSpec(Path(name), **_numbers(text, query, ("visits", "iteration")))
    return RandomNetSpec(name, **_numbers(text, query, ("visits", "seed", "blocks", "filters")))


def _numbers(text: str, query: str, allowed: tuple[str, ...]) -> dict[str, int]:
    """Return the numbers in the query of the player's name `text`."""
    numbers: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in allowed or not value.isdigit():
            wanted = " and ".join(f"{known}=NUMBER" for known in allowed)
            raise ValueError(f"{name}={value} in {text!r} is not understood; a {text.partition(':')[0]} takes {wanted}")
        numbers[name] = int(value)
    return numbers


def resolve(spec: ThinkerSpec) -> tuple[ThinkerSpec, Config]:
    """Return the player with the number of its checkpoint filled in, and the settings that it was made with. No arrays are read.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment.
    """
    if isinstance(spec, ApvSpec):
        return spec, apv_config(spec)
    if not isinstance(spec, CheckpointSpec):
        return spec, spec.config
    if not spec.workdir.is_dir():
        raise ValueError(f"there is no directory {spec.workdir}")
    iteration, config = load_settings(spec.workdir, spec.iteration)
    return dataclasses.replace(spec, iteration=iteration), config


def load_player(spec: NetworkSpec, rules: GameConfig | None = None) -> Loaded:
    """Load a network as a player of its own game, or of `rules` (another komi), that searches many games at once.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment, or `rules` is of another game or board.
    """
    config, game, network, params = _load(spec, rules)
    leaf = match_leaf(config, game, network)
    settings = match_settings(config)
    if spec.visits == 0:
        search = make_policy(game, leaf)
    else:
        search = make_search(settings if spec.visits is None else dataclasses.replace(settings, num_simulations=spec.visits), game, leaf)
    return Loaded(config, game, search, params)


def load_any_thinker(spec: ThinkerSpec, rules: GameConfig | None = None, settings: ThinkerSettings = ThinkerSettings()) -> TreePlayer | ApvPlayer:
    """Load a player of ours with one tree for its game; arguments and errors as of `load_thinker`. AlphaGo of 2016 takes only the seed from `settings`."""
    return load_apv(spec, rules, settings.seed) if isinstance(spec, ApvSpec) else load_thinker(spec, rules, settings)


def load_thinker(spec: NetworkSpec, rules: GameConfig | None = None, settings: ThinkerSettings = ThinkerSettings()) -> TreePlayer:
    """Load a network as a player with one tree for its game, over all devices of this host.

    Args:
      spec: the network; its number of visits, if it names one, is the limit of every move.
      rules: what is played; komi, superko, suicide and the longest game may differ from the training's, the board may not. None is the training's.
      settings: of search and play.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment, or `rules` is of another game or board.
    """
    config, game, network, params = _load(spec, rules)
    tree = settings.tree or TreeSettings(symmetry=_symmetry(config))
    style = settings.style
    if spec.visits is not None:
        style = dataclasses.replace(style, limits=dataclasses.replace(style.limits, visits=spec.visits))
    leaf = sparing_eyes(config, game, turned_network_leaf(game, network.infer))
    return TreePlayer(game, leaf, params, settings=tree, style=style, name=spec.name, seed=settings.seed)


def _symmetry(config: Config) -> Symmetries:
    """Return how a player with one tree looks at positions: as in the run's matches."""
    if config.evaluation.average_symmetries:
        return "average"
    return "random" if config.search.random_symmetry else "none"


def _load(spec: NetworkSpec, rules: GameConfig | None) -> tuple[Config, Game, Network, PyTree]:
    """Return the settings that a network was made with, the game of `rules` on its board, the network and its inference parameters."""
    variables, config = _read_variables(spec)
    game = _make_game(spec, config, rules)
    network = make_network(config.network, game.board_shape, game.num_planes, game.num_actions)
    return config, game, network, jax.jit(network.fold)(variables)


def _read_variables(spec: NetworkSpec) -> tuple[PyTree, Config]:
    """Return the variables of a network and the settings that it was made with."""
    if isinstance(spec, CheckpointSpec):
        if not spec.workdir.is_dir():
            raise ValueError(f"there is no directory {spec.workdir}")
        return load_variables(spec.workdir, spec.iteration)
    config = spec.config
    game = make(config.game.name, **config.game.options())
    network = make_network(config.network, game.board_shape, game.num_planes, game.num_actions)
    return jax.jit(network.init)(jax.random.key(spec.seed)), config


def _make_game(spec: NetworkSpec, config: Config, rules: GameConfig | None) -> Game:
    """Return the game of `rules`, on the board that the network knows."""
    trained = make(config.game.name, **config.game.options())
    if rules is None:
        return trained
    game = make(rules.name, **dataclasses.replace(rules, planes=config.game.planes, margin_weight=config.game.margin_weight).options())
    if (game.name, game.board_shape) != (trained.name, trained.board_shape):
        raise ValueError(f"{spec.name} knows {_label(trained)} and cannot play {_label(game)}: its network has one output for each move")
    return game


def _label(game: Game) -> str:
    return f"{game.name} on {game.board_shape[0]}x{game.board_shape[1]}"
