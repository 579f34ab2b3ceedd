"""The searches of a network player: that of its run's matches, the tuned engine search, or a
paper's rule, each with one name against every opponent.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import get_args

from azero.games.game import Game
from azero.games.go.rules import Go
from azero.games.go.sensible import own_eyes
from azero.networks.network import Network
from azero.networks.settings import Policy2016Config
from azero.search.leaf import AnyLeafFn, averaged_network_leaf, last_resort_leaf, network_leaf
from azero.search.search import LeafFn
from azero.search.settings import PuctConfig, Search, SearchConfig
from azero.search.single.evaluator import Symmetries
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import Gumbel, rule_of
from azero.settings import Config

ENGINE: Search = "engine"
TRAINED: Search = "trained"
SEARCHES: tuple[str, ...] = get_args(Search)


def match_settings(config: Config) -> SearchConfig:
    """Return the search settings of matches: no noise, no exploration (AGZ methods,
    'Evaluator')."""
    simulations = config.evaluation.num_simulations or config.search.num_simulations
    return dataclasses.replace(config.search, num_simulations=simulations).without_noise()


def match_leaf(config: Config, game: Game, network: Network) -> LeafFn:
    """Return how positions are evaluated in matches."""
    if config.evaluation.average_symmetries:
        return with_eyes_last(config, game, averaged_network_leaf(game, network.infer))
    return with_eyes_last(
        config, game, network_leaf(game, network.infer, config.search.random_symmetry)
    )


def with_eyes_last(config: Config, game: Game, leaf: AnyLeafFn) -> AnyLeafFn:
    """Return `leaf` with own eyes as its last resort where the settings want sensible moves, or the
    network (of 2016) has no pass but that where nothing else is left."""
    if not isinstance(game, Go) or not (
        config.evaluation.sensible_moves or isinstance(config.network, Policy2016Config)
    ):
        return leaf
    return eyes_last_leaf(game, leaf)


def eyes_last_leaf(game: Go, leaf: AnyLeafFn) -> AnyLeafFn:
    """Return `leaf` with own eyes as its last resort."""
    return last_resort_leaf(leaf, functools.partial(own_eyes, game))


def rule_name(config: SearchConfig) -> str:
    """Return what results call a run's own search: by its rule if it is one of a paper."""
    if not isinstance(config, PuctConfig):
        return config.name
    is_published = config.first_play == "form" and config.variance_scale == 0.0
    return config.puct_form if is_published else TRAINED


def search_settings(config: Config, search: str) -> SearchConfig:
    """Return the settings of a search other than ENGINE: the run's in matches, by the rule that
    `search` names."""
    settings = match_settings(config)
    if search in (TRAINED, rule_name(settings)):
        return settings
    if search == "gumbel":
        return settings.as_kind("gumbel").without_noise()
    published = {"puct_form": search, "first_play": "form", "variance_scale": 0.0}
    return settings.as_kind("puct").without_noise().replace(**published)


def tree_settings(config: Config, search: str, num_actions: int) -> TreeSettings:
    """Return how one tree searches as `search` says: as an engine, or as the search of many games
    at once does.

    Raises:
      ValueError: the search plays many games at once and no single one.
    """
    symmetry = symmetry_of(config)
    if search == ENGINE:
        return TreeSettings(symmetry=symmetry)
    settings = search_settings(config, search)
    rule = rule_of(settings, num_actions)
    return TreeSettings(
        batch=rule.max_considered
        if isinstance(rule, Gumbel)
        else 1,  # the considered moves have subtrees of their own
        rule=rule,
        symmetry=symmetry,
        cache_size=0
        if symmetry == "random"
        else TreeSettings.cache_size,  # every leaf has a symmetry of its own
        keeps_tree=settings.kept_room > 0,
        edge_width=settings.edge_width,
        max_depth=settings.max_depth,
    )


def symmetry_of(config: Config) -> Symmetries:
    """Return how a player with one tree looks at positions: as in the run's matches."""
    if config.evaluation.average_symmetries:
        return "average"
    return "random" if config.search.random_symmetry else "none"
