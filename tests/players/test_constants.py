"""Settings of a search in a player's name."""

import pytest

from azero.experiment import load
from azero.match.request import MatchRequest
from azero.match.sides import read_sides
from azero.players.clock import TimeControl
from azero.players.searches import search_settings, tree_settings
from azero.players.specs import load_thinker, parse_player, with_search
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import ENGINE

CONFIG = load("go5").config


def test_the_engine_search_is_one_of_settings():
    plain = tree_settings(CONFIG, "engine", 26)
    assert plain.rule == ENGINE and plain.batch == TreeSettings.batch
    tuned = tree_settings(CONFIG, "engine", 26, (("batch", 4.0), ("pb_c_init", 2.0)))
    assert tuned.batch == 4 and tuned.rule.c_init == 2.0 and tuned.rule != ENGINE


def test_a_name_says_the_settings_and_the_search_has_them():
    spec = parse_player("random-net:go5?visits=8&search=alphazero&pb-c-init=2&variance_scale=0")
    assert spec.constants == (("pb_c_init", 2.0), ("variance_scale", 0.0))
    assert "pb-c-init 2" in spec.name and "variance-scale 0" in spec.name
    settings = search_settings(CONFIG, "alphazero", spec.constants)
    assert settings.pb_c_init == 2.0 and settings.num_simulations
    gumbel = parse_player("random-net:go5?search=gumbel&max-considered=4")
    assert search_settings(CONFIG, "gumbel", gumbel.constants).max_considered == 4
    clock = parse_player("random-net:go5?search=engine&own-moves=20&lag-seconds=0.1")
    assert search_settings(CONFIG, "engine", clock.constants) == search_settings(CONFIG, "engine")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "search=engine&c-visit=3",
            "c-visit is not a setting of the search engine; it has .*pb-c-init",
        ),
        ("search=gumbel&pb-c-init=1", "pb-c-init is not a setting of the search gumbel"),
        (
            "search=engine&c-puct=3",
            "c-puct is not a setting of the search engine; it has pb-c-base",
        ),
        (
            "search=alphago_zero&pb-c-init=1",
            "pb-c-init is not a setting of the search alphago_zero",
        ),
        ("search=alphazero&first-play-reduction=0.5", "first-play-reduction is not a setting"),
        ("search=engine&stdev-prior=0.5", "stdev-prior is not a setting"),
        ("search=gumbel&gumbel-scale=1", "its search's settings"),
        ("search=alphazero&dirichlet-alpha=1", "dirichlet-alpha is not a setting"),
        ("search=gumbel&max-considered=1.5", "max-considered=1.5 .* is not a whole number"),
        ("search=gumbel&batch=4", "batch is not a setting of the search gumbel"),
        ("search=engine&batch=1.5", "batch=1.5 .* is not a whole number"),
        ("search=engine&pb-c-init=x", "pb-c-init=x .* is not a number"),
        ("search=engine&pb-c-init=-1", "pb-c-init"),
        ("search=engine&nothing=1", "its search's settings"),
        ("search=engine&batch=0", "batch is at least 1, not 0"),
        ("search=engine&virtual-loss=-1", "virtual-loss is at least 0, not -1"),
        ("search=gumbel&own-moves=0", "own-moves is above 0, not 0"),
        ("search=gumbel&lag-seconds=nan", "lag-seconds is at least 0, not nan"),
    ],
)
def test_what_a_search_does_not_have_is_named(query, message):
    with pytest.raises(ValueError, match=message):
        with_search(parse_player(f"random-net:go5?{query}"), CONFIG, "engine")


def test_settings_of_a_clock_are_refused_where_they_have_no_effect():
    player = "random-net:go5?blocks=1&filters=4&visits=1&own-moves=20"
    with pytest.raises(ValueError, match=r"lag-seconds in .*: it is for matches with a clock"):
        load_thinker(parse_player(f"{player}&lag-seconds=0.1"))
    for clock in (TimeControl(), TimeControl(seconds_per_move=1.0)):
        with pytest.raises(ValueError, match=r"own-moves in .* for matches with main-time"):
            read_sides(MatchRequest(player, "random:go5", clock=clock))
    read_sides(MatchRequest(player, "random:go5", clock=TimeControl(main_time=10.0)))


def test_variance_has_settings_where_it_is_given():
    constants = (("stdev_prior", 0.5), ("variance_scale", 0.0))
    assert search_settings(CONFIG, "engine", constants).stdev_prior == 0.5
