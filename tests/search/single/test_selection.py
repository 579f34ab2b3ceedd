"""One name, one search: the tree of one game visits what the search of many games visits, move by
move."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_toys import random_leaf, search_program
from tree_toys import ShownTree

from azero.games.position import Position
from azero.mesh import make_mesh
from azero.players.play_style import PlayStyle
from azero.players.thinking import Limits, ThinkOptions
from azero.players.tree_player import TreePlayer
from azero.search.leaf import ignore_symmetry
from azero.search.settings import (
    GumbelConfig,
    MctxGumbelConfig,
    MctxPuctConfig,
    PuctConfig,
    SearchConfig,
)
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import Gumbel, Puct, rule_of

SEEDS = 12
AGZ = {"name": "puct", "puct_form": "alphago_zero", "c_puct": 1.5, "num_simulations": 60}
AZ = {
    "name": "puct",
    "puct_form": "alphazero",
    "pb_c_base": 50.0,
    "pb_c_init": 1.25,
    "num_simulations": 60,
}
EXPLORING = {"dirichlet_fraction": 0.5, "root_temperature": 1.5, "forced_playouts": 2.0}
"""What a run's self-play does at the root, and a single tree never."""
GUMBEL = {"name": "gumbel", "max_considered": 5, "c_visit": 5.0, "num_simulations": 47}


def both_ways(game: Any, config: SearchConfig, batch: int) -> tuple[list[Any], Any]:
    """Return what one tree for each game says of the same positions as the search of all games at
    once, and what that says."""
    leaf = random_leaf(game)
    roots = jax.vmap(game.init)(jnp.arange(SEEDS))
    search = search_program(config.without_noise(), game, leaf)
    together = jax.device_get(search({}, jax.random.key(0), roots))
    rule = rule_of(config, game.num_actions)
    settings = TreeSettings(
        batch=batch,
        rule=rule,
        symmetry="none",
        cache_size=0,
        keeps_tree=False,
        edge_width=config.edge_width,
        max_depth=config.max_depth,
    )
    one_device = make_mesh([jax.local_devices()[0]])
    evaluator = settings.make_evaluator(game, ignore_symmetry(leaf), {}, mesh=one_device)
    thinker = TreePlayer(game, evaluator, settings=settings, style=PlayStyle(choice="visits"))
    limits = Limits(visits=config.num_simulations)
    positions = [
        Position.of_state(game, jax.tree.map(lambda array, i=i: array[i], roots))
        for i in range(SEEDS)
    ]
    alone = []
    for position in positions:
        analysis = thinker.think(position, limits)
        root = thinker._tree.root
        assert root is not None
        policy = np.zeros(game.num_actions)
        if isinstance(rule, Gumbel):
            policy[root.actions] = rule.improved_policy(root)
        alone.append((analysis, policy))
    return alone, together


@pytest.mark.parametrize(
    ("changes", "batch"),
    [
        (AGZ, 1),
        (AZ, 1),
        (AGZ | {"edge_width": 3}, 1),
        (AZ | {"max_depth": 3}, 1),
        (AGZ | {"first_play": "zero"}, 1),
        (AZ | {"first_play": "zero"}, 1),
        (AGZ | {"first_play": "parent"}, 1),
        (AZ | {"first_play": "parent"}, 1),
        (AGZ | {"first_play": "reduced"}, 1),
        (AZ | {"first_play": "reduced", "first_play_reduction": 0.35}, 1),
        (AGZ | {"variance_scale": 0.85}, 1),
        (AZ | {"variance_scale": 1.0, "stdev_prior": 0.3, "stdev_prior_weight": 1.0}, 1),
        (AZ | {"variance_scale": 0.85, "first_play": "reduced", "edge_width": 4}, 1),
        (AGZ | EXPLORING | {"first_play": "reduced", "variance_scale": 0.5}, 1),
        (GUMBEL, 1),
        (GUMBEL, 5),
        (GUMBEL, 2),
        (GUMBEL | {"max_considered": 16, "num_simulations": 64}, 16),
        (GUMBEL | {"edge_width": 3}, 4),
    ],
)
def test_one_tree_visits_what_many_at_once_visit(changes: dict[str, Any], batch: int) -> None:
    game = ShownTree(num_actions=7, extra_turns=True)
    name = changes.get("name", "puct")
    config = SearchConfig.default(name).without_noise().replace(**changes)
    alone, together = both_ways(game, config, batch)
    for i, (analysis, policy) in enumerate(alone):
        visits = np.zeros(game.num_actions, int)
        for move in analysis.moves:
            visits[move.action] = move.visits
        np.testing.assert_array_equal(visits, together.visits[i])
        assert analysis.moves[0].action == together.action[i]
        assert analysis.value == pytest.approx(together.value[i], abs=1e-5)
        if config.name == "gumbel":
            np.testing.assert_allclose(policy, together.weights[i], atol=1e-5)


def test_the_largest_scale_of_q_leaves_finite_weights() -> None:
    """One tree once divided by zero where every move was tried and one was far ahead."""
    game = ShownTree(num_actions=7, extra_turns=True)
    largest = {"c_visit": 1e9, "c_scale": 1e9, "gumbel_scale": 1e9}
    config = GumbelConfig(**GUMBEL | largest)
    alone, together = both_ways(game, config, 1)
    np.testing.assert_allclose([policy.sum() for _, policy in alone], 1.0, atol=1e-5)
    np.testing.assert_allclose(together.weights.sum(-1), 1.0, atol=1e-5)


def test_a_search_without_a_number_of_visits_goes_on_after_its_plan() -> None:
    game: Any = ShownTree(num_actions=7, extra_turns=True)
    rule = Gumbel(num_simulations=16, max_considered=4)
    settings = TreeSettings(batch=4, rule=rule, symmetry="none", keeps_tree=False)
    leaf, one_device = ignore_symmetry(random_leaf(game)), make_mesh([jax.local_devices()[0]])
    thinker = TreePlayer(
        game, settings.make_evaluator(game, leaf, {}, mesh=one_device), settings=settings
    )
    visits: list[int] = []
    position = Position.of_state(game, game.init(3))
    thinker.think(
        position,
        Limits(),
        ThinkOptions(
            should_stop=lambda: len(visits) > 8,
            on_progress=lambda seen: visits.append(seen.visits),
            progress_seconds=0.0,
        ),
    )
    assert visits[-1] > 16 and visits == sorted(visits)


@dataclasses.dataclass(frozen=True)
class OwnConfig(PuctConfig):
    """Settings of PUCT, another search."""

    MAKER: ClassVar[str] = "own:make_own"
    name: Literal["own"] = "own"  # type: ignore[assignment]


def test_settings_become_rules() -> None:
    assert rule_of(PuctConfig(c_puct=2.0), 9) == Puct("alphago_zero", c_puct=2.0, unvisited="draw")
    assert rule_of(MctxPuctConfig(puct_form="alphazero", pb_c_base=7.0), 9) == Puct(
        "alphazero", c_base=7.0, unvisited="loss"
    )
    assert rule_of(PuctConfig(first_play="parent"), 9) == Puct(
        "alphago_zero", unvisited="reduction", reduction=0.0
    )
    assert rule_of(PuctConfig(first_play="reduced", variance_scale=0.85), 9) == Puct(
        "alphago_zero", unvisited="reduction", reduction=0.2, variance_scale=0.85
    )
    assert rule_of(GumbelConfig(num_simulations=24), 9) == Gumbel(24, max_considered=9)
    with pytest.raises(ValueError, match="mctx_gumbel searches many games at once"):
        rule_of(MctxGumbelConfig(), 9)
    with pytest.raises(ValueError, match=r"search.name own searches many games at once"):
        rule_of(OwnConfig(), 9)
    with pytest.raises(ValueError, match="starts over"):
        TreeSettings(rule=Gumbel(8))
