"""What KataGo added to PUCT, against a plain Python search written from its formulas: forced
playouts and pruned targets, the root's temperature, first play, c scaled by the spread of the
values."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_toys import (
    Bandit,
    Node,
    RandomTree,
    Reference,
    best,
    by_game,
    constant_leaf,
    random_leaf,
    search_program,
)

from azero.search.batched.evaluation import ILLEGAL
from azero.search.batched.puct import mix_dirichlet, unforced_visits
from azero.search.batched.tree import Edges
from azero.search.search import SearchOutput
from azero.search.settings import PuctConfig

SEEDS, SIMULATIONS = 6, 90


def config(**changes: Any) -> PuctConfig:
    plain = {"dirichlet_fraction": 0.0, "num_simulations": SIMULATIONS, "pb_c_base": 40.0}
    return PuctConfig(**{**plain, **changes})


def run(game: Any, leaf: Any, settings: PuctConfig, roots: Any, seed: int = 0) -> SearchOutput:
    search = search_program(settings, game, leaf)
    out: SearchOutput = jax.device_get(search({}, jax.random.key(seed), roots))
    return out._replace(tree=by_game(out.tree))


class Oracle:
    """PUCT of one position in plain Python, with the settings of KataGo, term by term."""

    def __init__(self, game: Any, leaf: Any, settings: PuctConfig) -> None:
        self.reference = Reference(game, leaf)
        self.settings = settings

    def search(self, state: Any, root_priors: dict[int, float]) -> Node:
        root = self.reference.node(state)
        self.root, self.root_priors = root, root_priors
        for _ in range(self.settings.num_simulations):
            self.reference.simulate(root, self.rule)
        return root

    def rule(self, node: Node) -> int:
        scores = {action: self.score(node, action) for action in self.priors(node)}
        if node is self.root and self.settings.forced_playouts:
            for action, count in node.visits.items():
                if count < self.forced(action):
                    scores[action] = math.inf
        return best(scores)

    def priors(self, node: Node) -> dict[int, float]:
        return self.root_priors if node is self.root else node.priors()

    def forced(self, action: int) -> float:
        total = sum(self.root.visits.values())
        return math.sqrt(self.settings.forced_playouts * self.root_priors[action] * total)

    def score(self, node: Node, action: int, count: int | None = None) -> float:
        """Return the move's score, with `count` in the place of its visits."""
        if count is None:
            count = node.visits.get(action, 0)
        value = node.q(action) if action in node.visits else self.fresh(node)
        scale = self.scale(node)
        if self.settings.puct_form == "alphazero":
            value = (value + 1) / 2
        return value + scale * self.priors(node)[action] / (1 + count)

    def fresh(self, node: Node) -> float:
        values = values_of(node)
        mean = sum(values) / len(values)
        way = self.settings.first_play
        if way == "reduced":
            if node is self.root and self.settings.dirichlet_fraction:
                return mean
            explored = sum(self.priors(node)[action] for action in node.visits)
            return mean - self.settings.first_play_reduction * math.sqrt(explored)
        of_form = {"alphago_zero": 0.0, "alphazero": -1.0}[self.settings.puct_form]
        return {"form": of_form, "zero": 0.0, "parent": mean}[way]

    def scale(self, node: Node) -> float:
        settings, total = self.settings, sum(node.visits.values())
        if settings.puct_form == "alphago_zero":
            scale = settings.c_puct * math.sqrt(max(1, total))
        else:
            base = settings.pb_c_base
            c = math.log((1 + total + base + 1) / base) + settings.pb_c_init
            scale = c * math.sqrt(1 + total)
        return scale * (1 + settings.variance_scale * (self.stdev(node) / settings.stdev_prior - 1))

    def stdev(self, node: Node) -> float:
        values, prior, weight = (
            values_of(node),
            self.settings.stdev_prior,
            self.settings.stdev_prior_weight,
        )
        if len(values) == 1:
            return prior
        mean = sum(values) / len(values)
        squares = sum(value**2 for value in values)
        spread = ((mean**2 + prior**2) * weight + squares) / (weight + len(values) - 1)
        return math.sqrt(max(0.0, spread - mean**2))

    def pruned(self) -> dict[int, int]:
        """Return the visits of the root after policy target pruning, visit by visit."""
        root, priors = self.root, self.root_priors
        most = max(root.visits, key=lambda action: (root.visits[action], priors[action]))
        limit = self.score(root, most)
        kept = {most: root.visits[most]}
        for action, visits in root.visits.items():
            if action == most:
                continue
            count = visits
            while (
                count > 0
                and visits - count + 1 <= self.forced(action)
                and self.score(root, action, count - 1) < limit
            ):
                count -= 1
            if count > 1:
                kept[action] = count
        return kept


def values_of(node: Node) -> list[float]:
    """Return the node's own value and every value backed up into it, for its side to move."""
    values = [node.value]
    for action, child in node.children.items():
        sign = 1 if child.player == node.player else -1
        below = [child.value] * node.visits[action] if child.terminal else values_of(child)
        values += [sign * value for value in below]
    return values


def dense(counts: dict[int, int], num_actions: int) -> list[int]:
    return [counts.get(action, 0) for action in range(num_actions)]


@pytest.mark.parametrize("form", ["alphago_zero", "alphazero"])
@pytest.mark.parametrize(
    "changes",
    [
        {"forced_playouts": 2.0},
        {"forced_playouts": 9.0, "c_puct": 0.7},
        {"forced_playouts": 2.0, "dirichlet_fraction": 0.5, "dirichlet_alpha": 0.3},
        {"first_play": "zero"},
        {"first_play": "parent"},
        {"first_play": "reduced", "first_play_reduction": 0.4},
        {"first_play": "reduced", "dirichlet_fraction": 0.25, "dirichlet_alpha": 1.0},
        {"variance_scale": 0.85},
        {"variance_scale": 1.0, "stdev_prior": 0.3, "stdev_prior_weight": 0.0},
        {
            "root_temperature": 1.25,
            "dirichlet_fraction": 0.25,
            "dirichlet_alpha": 0.3,
            "forced_playouts": 2.0,
            "first_play": "reduced",
            "variance_scale": 0.85,
        },
    ],
    ids=lambda changes: "-".join(changes),
)
def test_equals_plain_python(form: Any, changes: dict[str, Any]) -> None:
    """Visits and targets of several games and seeds of the noise."""
    game = RandomTree(num_actions=8, max_moves=6, extra_turns=True)
    leaf, settings = random_leaf(game), config(puct_form=form, **changes)
    oracle = Oracle(game, leaf, settings)
    num_pruned = 0
    for noise_seed in range(1 + (settings.dirichlet_fraction > 0)):
        out = run(game, leaf, settings, jax.vmap(game.init)(jnp.arange(SEEDS)), noise_seed)
        for seed in range(SEEDS):
            priors = out.tree.priors[seed, 0]
            legal = {int(a): float(priors[a]) for a in np.flatnonzero(priors != ILLEGAL)}
            root = oracle.search(game.init(seed), legal)
            assert out.tree.visits[seed, 0].tolist() == dense(root.visits, 8)
            kept = oracle.pruned() if settings.forced_playouts else root.visits
            assert out.visits[seed].tolist() == dense(kept, 8)
            np.testing.assert_allclose(
                out.weights[seed], np.array(dense(kept, 8)) / sum(kept.values()), rtol=1e-6
            )
            assert int(out.action[seed]) == int(np.argmax(out.tree.visits[seed, 0] + 0.5 * priors))
            values = values_of(root)
            assert float(out.value[seed]) == pytest.approx(sum(values) / len(values), abs=1e-5)
            num_pruned += SIMULATIONS - sum(kept.values())
    assert (num_pruned > 0) == (settings.forced_playouts > 0)
    plain = run(game, leaf, config(puct_form=form), jax.vmap(game.init)(jnp.arange(SEEDS)))
    is_plain = form == "alphago_zero" and settings.first_play == "zero"
    assert is_plain == (plain.tree.visits == out.tree.visits).all()


def test_a_visited_move_gets_its_forced_visits_and_an_unvisited_one_none() -> None:
    """The first move wins and has nearly all of the prior; the second loses and is visited once, by
    a draw of its first play; the third's prior is too small for a visit."""
    game, settings = Bandit((1.0, -1.0, -1.0)), config(forced_playouts=2.0, num_simulations=200)
    priors = (0.899, 0.1, 0.001)
    root = jax.tree.map(lambda leaf: leaf[None], game.init())
    out = run(game, constant_leaf(priors), settings, root)
    forced = math.sqrt(2.0 * 0.1 * 200)
    visits = out.tree.visits[0, 0]
    assert forced - 1 < visits[1] <= forced + 1 and visits[2] == 0
    assert out.visits[0].tolist() == [visits[0], 0, 0]  # lost all the same: nothing to learn
    plain = run(game, constant_leaf(priors), settings.without_noise(), root)
    assert plain.visits[0].tolist() == [199, 1, 0]


def test_pruning_spares_what_the_search_wanted() -> None:
    """A move as good as the best one keeps its visits; a bad one loses n_forced at most."""
    edges = Edges(
        priors=jnp.array([[0.4, 0.3, 0.2, 0.1, ILLEGAL]]),
        visits=jnp.array([[60.0, 55.0, 30.0, 2.0, 0.0]]),
        value_sums=jnp.array([[30.0, 30.0, -25.0, -2.0, 0.0]]),
        raw_value=jnp.array([0.0]),
    )
    settings = config(forced_playouts=2.0)
    kept = unforced_visits(settings, edges, jnp.array([0], jnp.int32))
    # n_forced of the third is sqrt(2 * 0.2 * 147) = 7.7; the fourth is left with less than two.
    assert kept[0].tolist() == [60.0, 55.0, 23.0, 0.0, 0.0]


def test_pruning_takes_most_of_the_noise_out_of_the_target() -> None:
    """Of 42 moves two are good and have nearly all of the prior. Noise and forced visits make the
    search look at the others; the target hardly shows it, less than that of a noisy search which
    forces nothing."""
    bad = 40
    game = Bandit((0.5, 0.4, *(-0.3,) * bad))
    leaf = constant_leaf((0.5, 0.4, *(0.1 / bad,) * bad), value=0.3)
    roots = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (48, *leaf.shape)), game.init())
    noisy = {"dirichlet_fraction": 0.25, "dirichlet_alpha": 10 / 42, "num_simulations": 200}
    forcing = run(game, leaf, config(forced_playouts=2.0, **noisy), roots)
    plain = run(game, leaf, config(**noisy), roots)
    searched = forcing.tree.visits[:, 0, 2:].sum() / forcing.tree.visits[:, 0].sum()
    taught, unforced = forcing.weights[:, 2:].sum(-1).mean(), plain.weights[:, 2:].sum(-1).mean()
    assert searched > 1.5 * unforced  # forcing does explore
    assert taught < 0.2 * searched and taught < 0.5 * unforced
    assert (forcing.action == forcing.visits.argmax(-1)).all()


def test_the_root_is_softened_before_the_noise_and_nothing_below_it() -> None:
    game = RandomTree()
    leaf, roots = random_leaf(game), jax.vmap(game.init)(jnp.arange(4))
    soft, plain = (
        run(game, leaf, config(root_temperature=t, num_simulations=20), roots) for t in (1.25, 1.0)
    )
    logits = np.asarray(leaf({}, None, roots)[0], np.float64)  # type: ignore[arg-type]
    legal = plain.tree.priors[:, 0] != ILLEGAL
    powers = np.where(legal, np.exp(logits / 1.25), 0.0)
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.where(legal, soft.tree.priors[:, 0], 0.0), expected, rtol=1e-5)
    for row in range(4):
        for action in np.flatnonzero(soft.tree.children[row, 0] > 0):
            one, other = (tree.children[row, 0, action] for tree in (soft.tree, plain.tree))
            if other > 0:
                np.testing.assert_array_equal(
                    soft.tree.priors[row, one], plain.tree.priors[row, other]
                )
    noise = {"dirichlet_fraction": 0.25, "num_simulations": 1, "dirichlet_alpha": 0.3}
    noisy = run(game, leaf, config(root_temperature=1.25, **noise), roots, seed=3)
    key = jax.random.split(jax.random.key(3), 3)[1]
    mixed = mix_dirichlet(key, jnp.where(legal, jnp.asarray(expected), ILLEGAL), 0.3, 0.25)
    np.testing.assert_allclose(noisy.tree.priors[:, 0], mixed, rtol=1e-4, atol=1e-7)


def test_matches_and_fast_moves_explore_nothing_at_the_root() -> None:
    settings = PuctConfig(root_temperature=1.1, forced_playouts=2.0, first_play="parent")
    for quiet in (settings.without_noise(), settings.fast(1600)):
        assert quiet == PuctConfig(dirichlet_fraction=0.0, first_play="parent")


def test_settings_that_are_off_leave_the_tree_as_it_was() -> None:
    game = RandomTree()
    roots = jax.vmap(game.init)(jnp.arange(2))
    assert run(game, random_leaf(game), config(num_simulations=2), roots).tree.squares is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"root_temperature": 0.0}, "root-temperature is above 0"),
        ({"forced_playouts": -1.0}, "forced-playouts is at least 0"),
        ({"variance_scale": 1.5}, "variance-scale is from 0 to 1"),
        ({"stdev_prior": 0.0}, "stdev-prior is above 0"),
        ({"first_play_reduction": math.nan}, "first-play-reduction is at least 0"),
    ],
)
def test_what_is_not_allowed_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        config(**changes)


def test_an_unknown_first_play_names_the_known_ones() -> None:
    settings = config(first_play="lost")
    with pytest.raises(ValueError, match="one of form, zero, parent, reduced, not 'lost'"):
        settings.build(RandomTree(), random_leaf(RandomTree()))
