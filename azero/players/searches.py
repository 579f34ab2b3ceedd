"""The searches of a network player: that of its run's matches, the tuned engine search, or a
paper's rule, each with one name against every opponent."""

import dataclasses
import functools
import typing
from collections.abc import Iterable
from typing import Any, get_args

import jax

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.sensible import own_eyes
from azero.networks.network import Network
from azero.networks.settings import Policy2016Config
from azero.players.clock import TimeControl
from azero.players.play_style import PlayStyle
from azero.search.leaf import AnyLeafFn, averaged_network_leaf, last_resort_leaf, network_leaf
from azero.search.search import LeafFn
from azero.search.settings import PuctConfig, Search, SearchConfig
from azero.search.single.evaluator import Symmetries
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import ENGINE as ENGINE_RULE
from azero.search.single.selection import IN_ONE_TREE, Gumbel, rule_of
from azero.settings import Config

Constants = tuple[tuple[str, float], ...]
"""Names and values of settings that replace the search's own."""
TREE_CONSTANTS = ("batch", "virtual_loss")
"""Settings of the tree of ENGINE (`TreeSettings`) that a player's name may give."""
TIME_CONSTANTS = ("own_moves", "lag_seconds")
"""Settings of a player's use of its clock (`azero.players.play_style.PlayStyle`), likewise."""
ENGINE: Search = "engine"
TRAINED: Search = "trained"
SEARCHES: tuple[str, ...] = get_args(Search)


def visit_words(visits: int | None) -> list[str]:
    """Return the words of a player's name for its visits, if it has a number of its own."""
    return [] if visits is None else [f"{visits} visit" if visits == 1 else f"{visits} visits"]


def match_settings(config: Config) -> SearchConfig:
    """Return the search settings of matches: no noise, no exploration (AGZ methods,
    'Evaluator')."""
    simulations = config.evaluation.num_simulations or config.search.num_simulations
    return dataclasses.replace(config.search, num_simulations=simulations).without_noise()


def match_leaf(config: Config, game: Game, network: Network) -> LeafFn:
    """Return how positions are evaluated in matches."""
    if config.evaluation.average_symmetries:
        leaf = averaged_network_leaf(game, network.infer)
    else:
        leaf = network_leaf(game, network.infer, config.search.random_symmetry)
    return with_eyes_last(config, game, leaf)


def with_eyes_last(config: Config, game: Game, leaf: AnyLeafFn) -> AnyLeafFn:
    """Return `leaf` with own eyes as its last resort where the settings ask for sensible moves, or
    for a network of AlphaGo 2016, which passes only where no other move is left."""
    if not isinstance(game, Go) or not (
        config.evaluation.sensible_moves or isinstance(config.network, Policy2016Config)
    ):
        return leaf
    return eyes_last_leaf(game, leaf)


def eyes_last_leaf(game: Go, leaf: AnyLeafFn) -> AnyLeafFn:
    """Return `leaf` with own eyes as its last resort."""
    return last_resort_leaf(leaf, functools.partial(own_eyes, game))


def rule_name(config: SearchConfig) -> str:
    """Return the name of a run's own search in results: that of its rule, if a paper has it."""
    if not isinstance(config, PuctConfig) or config.MAKER not in IN_ONE_TREE:
        return config.name
    is_published = config.first_play == "form" and config.variance_scale == 0.0
    return config.puct_form if is_published else TRAINED


def constants_of(kind: type[SearchConfig]) -> dict[str, type]:
    """Return the settings of a search that a player's name may give, each with its type: the
    numbers among its own settings, except those of noise."""
    hints = typing.get_type_hints(kind)
    others = {*kind.WITHOUT_NOISE, *(field.name for field in dataclasses.fields(SearchConfig))}
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(kind)
        if hints[field.name] in (int, float) and field.name not in others
    }


def all_constants() -> dict[str, type]:
    """Return what a player's name may give, each with its type: the settings of all searches, of
    ENGINE's tree, and of the use of a clock."""
    found: dict[str, type] = {
        **dict.fromkeys(TREE_CONSTANTS, int),
        **dict.fromkeys(TIME_CONSTANTS, float),
    }
    for name in SearchConfig.KINDS:
        found |= constants_of(SearchConfig.kind(name))
    return found


def search_settings(config: Config, search: str, constants: Constants = ()) -> SearchConfig:
    """Return the settings of a search: those of the run's matches, of the rule named `search`, or
    of ENGINE, with `constants` in place of theirs.

    Raises:
      ValueError: no such constant has an effect on the search, or the value is out of range.
    """
    settings = match_settings(config)
    if search == ENGINE:
        settings = PuctConfig(
            puct_form="alphazero", first_play="reduced", pb_c_init=ENGINE_RULE.c_init
        ).without_noise()
    elif search == "gumbel" and search != rule_name(settings):
        settings = settings.as_kind("gumbel").without_noise()
    elif search not in (TRAINED, rule_name(settings)):
        published = {"puct_form": search, "first_play": "form", "variance_scale": 0.0}
        settings = settings.as_kind("puct").without_noise().replace(**published)
    given = {name: value for name, value in constants if name not in TIME_CONSTANTS}
    kinds = constants_of(type(settings))
    known = [name for name in kinds if _has_effect(settings, name, given)]
    known += TREE_CONSTANTS if search == ENGINE else ()
    if unknown := [name for name in given if name not in known]:
        raise ValueError(
            f"{unknown[0].replace('_', '-')} is not a setting of the search {search}; it has "
            f"{', '.join(known).replace('_', '-')}"
        )
    TreeSettings(**tree_constants(constants))
    PlayStyle(**time_constants(constants))
    return settings.replace(
        **{name: kinds[name](value) for name, value in given.items() if name in kinds}
    )


def tree_constants(constants: Constants) -> dict[str, Any]:
    """Return the constants of the tree of ENGINE, as arguments of `TreeSettings`."""
    return {name: int(value) for name, value in constants if name in TREE_CONSTANTS}


def time_constants(constants: Constants) -> dict[str, Any]:
    """Return the constants of the use of a clock, as arguments of `PlayStyle`."""
    return {name: value for name, value in constants if name in TIME_CONSTANTS}


def check_time_constants(name: str, constants: Constants, clock: TimeControl) -> None:
    """Check that the constants of the use of a clock in a player's name have an effect in games
    with this clock.

    Raises:
      ValueError: one has none.
    """
    for constant in time_constants(constants):
        needs = "main-time" if constant == "own_moves" else "a clock"
        if not clock.is_set or (constant == "own_moves" and clock.main_time is None):
            raise ValueError(
                f"{constant.replace('_', '-')} in {name!r} has no effect here: it is for matches "
                f"with {needs}"
            )


def _has_effect(settings: SearchConfig, name: str, given: Iterable[str]) -> bool:
    """Return whether a search depends on the constant `name`, if the constants `given` are set."""
    if not isinstance(settings, PuctConfig):
        return True
    grows = settings.puct_form == "alphazero"
    varies = settings.variance_scale > 0.0 or "variance_scale" in given
    conditions = {
        "c_puct": not grows,
        "pb_c_base": grows,
        "pb_c_init": grows,
        "dirichlet_alpha": settings.dirichlet_fraction > 0.0,
        "first_play_reduction": settings.first_play == "reduced",
        "stdev_prior": varies,
        "stdev_prior_weight": varies,
    }
    return conditions.get(name, True)


def tree_settings(
    config: Config, search: str, num_actions: int, constants: Constants = ()
) -> TreeSettings:
    """Return the settings of one tree for `search`, with `constants` in place of theirs: those of
    the engine, or those with which one tree searches as batched games do.

    Raises:
      ValueError: the search is for batched games alone, or has no such constant.
    """
    symmetry = symmetry_of(config)
    settings = search_settings(config, search, constants)
    tree = tree_constants(constants)
    rule = rule_of(settings, num_actions)
    if search == ENGINE:
        # An accelerator evaluates one batch while the host gathers the next; on a CPU both compete.
        overlaps = jax.default_backend() != "cpu" and tree.get("virtual_loss", 0) <= 1
        return TreeSettings(rule=rule, symmetry=symmetry, overlaps=overlaps, **tree)
    return TreeSettings(
        # The considered moves have subtrees of their own.
        batch=rule.max_considered if isinstance(rule, Gumbel) else 1,
        rule=rule,
        symmetry=symmetry,
        # With random symmetries every leaf has its own.
        cache_size=0 if symmetry == "random" else TreeSettings.cache_size,
        keeps_tree=settings.kept_room > 0,
        edge_width=settings.edge_width,
        max_depth=settings.max_depth,
    )


def with_symmetries(config: Config, symmetries: Symmetries | None) -> Config:
    """Return settings whose matches evaluate positions under these symmetries: "average" of all,
    a "random" one, or "none"; None changes nothing."""
    if symmetries is None:
        return config
    averages = symmetries == "average"
    return dataclasses.replace(
        config,
        search=config.search.replace(random_symmetry=symmetries == "random"),
        evaluation=dataclasses.replace(config.evaluation, average_symmetries=averages),
    )


def symmetry_of(config: Config) -> Symmetries:
    """Return the symmetries under which the run's matches evaluate positions."""
    if config.evaluation.average_symmetries:
        return "average"
    return "random" if config.search.random_symmetry else "none"
