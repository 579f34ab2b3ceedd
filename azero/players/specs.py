"""Players by name: networks that ship, checkpoints of our runs, untrained networks, and other
programs."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

import jax

from azero.checkpoint import find_checkpoint, load_settings, load_variables
from azero.experiment import load
from azero.games.game import Game
from azero.games.settings import GameConfig
from azero.interop.leela import read_leela, read_leela_settings
from azero.interop.onnx_file import Backend, OnnxNetwork
from azero.models.naming import (
    NetworkName,
    check_directory,
    describe_unknown,
    parse_network_name,
    read_options,
)
from azero.models.registry import find_network
from azero.networks.network import Network
from azero.players.alphago2016 import FORM as APV_FORM
from azero.players.alphago2016 import ApvSpec, load_apv, parse_apv, resolve_apv
from azero.players.clock import NO_CLOCK, TimeControl
from azero.players.file_specs import FORMS as FILE_FORMS
from azero.players.file_specs import LeelaSpec, OnnxSpec, SearchOptions, load_onnx, make_game
from azero.players.head_estimates import network_heads
from azero.players.play_style import PlayStyle
from azero.players.program_specs import FORMS as PROGRAM_FORMS
from azero.players.program_specs import ProgramSpec, parse_program
from azero.players.random_moves import FORM as RANDOM_FORM
from azero.players.random_moves import RandomMovesSpec, load_random_moves, make_random_moves
from azero.players.searches import (
    ENGINE,
    SEARCHES,
    TRAINED,
    all_constants,
    check_time_constants,
    match_leaf,
    rule_name,
    search_settings,
    time_constants,
    tree_settings,
    with_eyes_last,
    with_symmetries,
)
from azero.players.tree_player import TreePlayer
from azero.search.batched.policy import make_policy
from azero.search.batched.reuse import NewTreesFn, make_new_trees
from azero.search.leaf import symmetry_network_leaf
from azero.search.search import SearchFn
from azero.search.single.evaluator import Symmetries
from azero.search.single.parallel import TreeSettings
from azero.settings import Config
from azero.types import PyTree

FORMS = (
    '"model:NAME?visits=64", "checkpoint:WORKDIR?visits=64&iteration=100&search=engine", '
    f'"random-net:EXPERIMENT?visits=64&seed=1&blocks=2&filters=32", {FILE_FORMS}, {RANDOM_FORM}, '
    f"{APV_FORM}, {PROGRAM_FORMS}"
)


@dataclass(frozen=True)
class CheckpointSpec(SearchOptions):
    """A checkpoint as a player."""

    workdir: Path
    iteration: int | None = None
    """None is the newest."""

    @property
    def name(self) -> str:
        """Its name in results."""
        iteration = [] if self.iteration is None else [f"iteration {self.iteration}"]
        return self.named(self.workdir.absolute().name, *iteration)


@dataclass(frozen=True)
class RandomNetSpec(SearchOptions):
    """The network of an experiment before it has learned anything, as a player: for testing
    programs."""

    experiment: str
    seed: int = 0
    """Seed of the initial weights."""
    blocks: int | None = None
    """Size, if not the experiment's, so that programs can be tested on a small machine."""
    filters: int | None = None

    @property
    def name(self) -> str:
        """Its name in results."""
        return self.named(f"random {self.experiment}")

    @property
    def config(self) -> Config:
        """The settings of the experiment, with the size of this network.

        Raises:
          ValueError: there is no such experiment, or no such network.
        """
        config = load(self.experiment).config
        sizes = {"blocks": self.blocks, "filters": self.filters}
        given = {name: size for name, size in sizes.items() if size is not None}
        return dataclasses.replace(config, network=config.network.replace(**given))


NetworkSpec = CheckpointSpec | RandomNetSpec | LeelaSpec
"""A player with a single network."""
BatchSpec = NetworkSpec | RandomMovesSpec
"""A player that can play many games at once."""
ThinkerSpec = NetworkSpec | OnnxSpec | RandomMovesSpec | ApvSpec
"""One of our players. With one tree for its game it thinks like an engine."""


@dataclass(frozen=True)
class ThinkerSettings:
    """How a network plays with one tree for its game."""

    tree: TreeSettings | None = None
    """None follows the search in the player's name (`tree_settings`), by default the engine
    search."""
    style: PlayStyle = field(default_factory=PlayStyle)
    """Visits in a player's name override those of `style.limits`."""
    seed: int = 0
    """Seed of all random draws."""
    clock: TimeControl = NO_CLOCK
    """Of each game; without visits in its name it alone limits a move."""


class Loaded(NamedTuple):
    """A player of many games at once."""

    config: Config
    game: Game
    search: SearchFn
    params: PyTree
    """Inference parameters."""
    new_trees: NewTreesFn | None
    """Makes the trees of a search that keeps them from move to move."""


def parse_player(text: str) -> ThinkerSpec | ProgramSpec:
    """Return the player that `text` names.

    Raises:
      ValueError: it is not of one of the forms.
    """
    if (program := parse_program(text)) is not None:
        return program
    if (apv := parse_apv(text)) is not None:
        return apv
    named = parse_network_name(text)
    if named is None:
        raise ValueError(f"{text!r} is not a player: {_problem(text)}")
    kind = _KINDS[named.kind]
    return kind.spec(kind.place(named.name), **_options(text, named))


def parse_thinker(text: str) -> ThinkerSpec:
    """Return the player of azero's own that `text` names.

    Raises:
      ValueError: it is not understood, or it is another program.
    """
    spec = parse_player(text)
    if not isinstance(spec, ThinkerSpec):
        raise ValueError(f"{text!r} is a program with its own protocol; give one of our players")
    return spec


class _Kind(NamedTuple):
    """The options that the name of a network may have, by the kind of the name."""

    spec: Callable[..., ThinkerSpec]
    """Makes the player of a location and the options."""
    place: Callable[[str], Any]
    """Returns the location that a name refers to."""
    numbers: tuple[str, ...]
    """Options with a number."""
    has_search: bool = True
    """Whether it has a choice of searches."""
    words: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Options with a word, and the words."""


_SYMMETRIES = {"symmetries": get_args(Symmetries)}
_KINDS = {
    "checkpoint": _Kind(CheckpointSpec, Path, ("visits", "iteration"), words=_SYMMETRIES),
    "model": _Kind(CheckpointSpec, find_network, ("visits",), words=_SYMMETRIES),
    "leela": _Kind(LeelaSpec, Path, ("visits",), words=_SYMMETRIES),
    "onnx": _Kind(
        OnnxSpec, Path, ("visits",), has_search=False, words={"backend": get_args(Backend)}
    ),
    "random-net": _Kind(
        RandomNetSpec, str, ("visits", "seed", "blocks", "filters"), words=_SYMMETRIES
    ),
    "random": _Kind(RandomMovesSpec, str, (), has_search=False),
}
"""By the kind of the network's name."""


def _problem(text: str) -> str:
    """Return why a text does not name a network, and what does."""
    if ":" in text:
        return f"it is of none of the forms {FORMS}"
    programs = 'a program for matches begins with "gtp:", "uci:" or "usi:" (docs/networks.md)'
    return f"{describe_unknown(text.partition('?')[0])}; {programs}"


def _options(text: str, named: NetworkName) -> dict[str, Any]:
    """Return the options in the query of the player's name `text`."""
    _, _, numbers, has_search, words = _KINDS[named.kind]
    query, options = named.query, dict[str, Any]()
    constants = dict[str, float]()
    for name, value in read_options(query, text):
        if has_search and name == "search" and value in SEARCHES:
            options[name] = value
        elif name in numbers and re.fullmatch(r"[0-9]{1,9}", value):
            options[name] = int(value)
        elif value in words.get(name, ()):
            options[name] = value
        elif has_search and (constant := name.replace("-", "_")) in all_constants():
            constants[constant] = _number(text, name, value)
        else:
            known = [f"{number}=NUMBER" for number in numbers] or ["no options"]
            known += [f"{word}={'|'.join(allowed)}" for word, allowed in words.items()]
            known += [f"search={'|'.join(SEARCHES)}", "its search's settings"] if has_search else []
            raise ValueError(
                f"{name}={value} in {text!r} is not understood; a {named.kind} takes "
                f"{', '.join(known)}"
            )
    return options | ({"constants": tuple(sorted(constants.items()))} if constants else {})


def _number(text: str, name: str, value: str) -> float:
    """Return a setting of the search in the player's name `text`."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"{name}={value} in {text!r} is not a number") from None
    if all_constants()[name.replace("-", "_")] is int and not number.is_integer():
        raise ValueError(f"{name}={value} in {text!r} is not a whole number")
    return number


def resolve(spec: ThinkerSpec) -> tuple[ThinkerSpec, Config]:
    """Return the player with the number of its checkpoint filled in, and the settings that it was
    made with. The checkpoint has been read and is whole.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment, or a network's file is damaged.
    """
    if isinstance(spec, ApvSpec):
        return resolve_apv(spec)
    if isinstance(spec, OnnxSpec):
        return spec, OnnxNetwork(spec.file, spec.backend).config
    if isinstance(spec, RandomMovesSpec):
        return spec, spec.config
    if isinstance(spec, LeelaSpec):
        config = read_leela_settings(spec.file)
    elif isinstance(spec, RandomNetSpec):
        config = spec.config
    else:
        check_directory(spec.workdir)
        iteration, config = find_checkpoint(spec.workdir, spec.iteration)
        spec = dataclasses.replace(spec, iteration=iteration)
    return spec, with_symmetries(config, spec.symmetries)


def settings_of(spec: ThinkerSpec) -> Config:
    """Return the settings that a player was made with. Unlike `resolve` this reads no arrays of a
    run, which take long; its newest checkpoint may be damaged, and loading then goes back further.

    Raises:
      CheckpointError, ValueError: as `resolve`.
    """
    if not isinstance(spec, CheckpointSpec):
        return resolve(spec)[1]
    check_directory(spec.workdir)
    _, config = load_settings(spec.workdir, spec.iteration)
    return with_symmetries(config, spec.symmetries)


def with_search(spec: ThinkerSpec, config: Config, default: str) -> ThinkerSpec:
    """Return the player, which was made with `config`, with its search named, or `default`: by its
    rule where it is the run's own. Only single networks have a choice."""
    if not isinstance(spec, NetworkSpec):
        return spec
    search = spec.search or default
    search_settings(config, search, spec.constants)  # raises for constants that it does not have
    search = rule_name(config.search) if search == TRAINED else search
    return dataclasses.replace(spec, search=search)


def load_player(spec: BatchSpec, rules: GameConfig | None = None) -> Loaded:
    """Load a player of its own game, or of `rules` (another komi), that searches many
    games at once.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment, or `rules` is of another game or board.
    """
    if isinstance(spec, RandomMovesSpec):
        game = spec.make_game(rules)
        return Loaded(spec.config, game, make_random_moves(game), {}, None)
    config, game, network, params = _load(spec, rules)
    leaf = match_leaf(config, game, network)
    settings = search_settings(config, spec.search or TRAINED, spec.constants)
    if spec.visits is not None:
        settings = dataclasses.replace(settings, num_simulations=max(1, spec.visits))
    search = make_policy(game, leaf) if spec.visits == 0 else settings.build(game, leaf)
    new_trees = (
        None if spec.visits == 0 else make_new_trees(settings, game, settings.num_simulations)
    )
    return Loaded(config, game, search, params, new_trees)


def load_thinker(
    spec: ThinkerSpec,
    rules: GameConfig | None = None,
    settings: ThinkerSettings = ThinkerSettings(),
) -> TreePlayer:
    """Load a player of ours with one tree for its game, over all devices of this host.

    Args:
      spec: the player; its number of visits, if it names one, is the limit of every move.
      rules: what is played; komi, superko, suicide and the longest game may differ from the
        training's, the board may not. None is the training's.
      settings: of search and play; AlphaGo of 2016 takes only the seed and the clock.

    Raises:
      CheckpointError: there is no such checkpoint, or it is damaged.
      ValueError: there is no such directory or experiment, or `rules` is of another game or board.
    """
    if isinstance(spec, ApvSpec):
        return load_apv(spec, rules, settings.seed, settings.clock.is_set)
    if isinstance(spec, OnnxSpec):
        return load_onnx(spec, rules, settings.tree, settings.style, settings.seed)
    if isinstance(spec, RandomMovesSpec):
        return load_random_moves(spec, rules, settings.seed)
    check_time_constants(spec.name, spec.constants, settings.clock)
    config, game, network, params = _load(spec, rules)
    search = spec.search or ENGINE
    tree = settings.tree or tree_settings(config, search, game.num_actions, spec.constants)
    style = settings.style
    if search != ENGINE:
        style = dataclasses.replace(style, choice="visits")
    style = dataclasses.replace(style, **time_constants(spec.constants))
    if spec.visits is not None:
        # The searches of runs count new simulations where they keep trees, the engine search all.
        counts_new = search != ENGINE and tree.keeps_tree
        style = style.with_visits(spec.visits, counts_new)
    leaf = with_eyes_last(config, game, symmetry_network_leaf(game, network.infer))
    evaluator = tree.make_evaluator(game, leaf, params, settings.seed)
    return TreePlayer(
        game,
        evaluator,
        settings=tree,
        style=style,
        name=with_search(spec, config, ENGINE).name,
        seed=settings.seed,
        heads=network_heads(network, params).learned_with(config.learner),
    )


def _load(spec: NetworkSpec, rules: GameConfig | None) -> tuple[Config, Game, Network, PyTree]:
    """Return the settings that a network was made with, the game of `rules` on its board, the
    network and its inference parameters."""
    variables, config = _read_variables(spec)
    config = with_symmetries(config, spec.symmetries)
    game = make_game(spec.name, config, rules)
    network = config.network.build(game)
    return config, game, network, jax.jit(network.fold)(variables)


def _read_variables(spec: NetworkSpec) -> tuple[PyTree, Config]:
    """Return the variables of a network and the settings that it was made with."""
    if isinstance(spec, CheckpointSpec):
        check_directory(spec.workdir)
        return load_variables(spec.workdir, spec.iteration)
    if isinstance(spec, LeelaSpec):
        return read_leela(spec.file)
    config = spec.config
    game = config.game.build()
    network = config.network.build(game)
    return jax.jit(network.init)(jax.random.key(spec.seed)), config
