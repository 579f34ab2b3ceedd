"""PUCT: hand answers, equality with a plain Python search, root noise."""

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
    Rule,
    best,
    by_game,
    constant_leaf,
    random_leaf,
    search_program,
)

from azero.search.batched.evaluation import ILLEGAL
from azero.search.batched.puct import mix_dirichlet
from azero.search.search import SearchOutput
from azero.search.settings import PuctConfig, SearchConfig

C_PUCT, PB_C_BASE, PB_C_INIT = 1.5, 40.0, 1.25  # a small base, so that its logarithm matters


def config(**changes: Any) -> SearchConfig:
    return PuctConfig(
        **{
            "dirichlet_fraction": 0.0,
            "c_puct": C_PUCT,
            "pb_c_base": PB_C_BASE,
            "pb_c_init": PB_C_INIT,
            **changes,
        }
    )


def run(game: Any, leaf: Any, settings: SearchConfig, roots: Any) -> SearchOutput:
    out: SearchOutput = search_program(settings, game, leaf)({}, jax.random.key(0), roots)
    return out


def batch_of_one(state: Any) -> Any:
    return jax.tree.map(lambda x: x[None], state)


@pytest.mark.parametrize(
    ("priors", "payoffs", "simulations", "visits"),
    [
        # Equal values: P / (1 + N) hands out visits like seats by the quotients of D'Hondt.
        ((0.55, 0.3, 0.15), (0.0, 0.0, 0.0), 10, (6, 3, 1)),
        # The first visit follows the prior, loses, and is not tried again: -1 + 1.5 * 0.6 * sqrt(N)
        # / 2 stays below 1.
        ((0.6, 0.4), (-1.0, 1.0), 8, (1, 7)),
        # An unvisited move counts as a draw: against a sure loss it is tried at once, however small
        # its prior.
        ((0.98, 0.02), (-1.0, -1.0), 2, (1, 1)),
    ],
)
def test_alphago_zero_bandits(
    priors: tuple[float, ...], payoffs: tuple[float, ...], simulations: int, visits: tuple[int, ...]
) -> None:
    game = Bandit(payoffs)
    out = run(
        game, constant_leaf(priors), config(num_simulations=simulations), batch_of_one(game.init())
    )
    np.testing.assert_array_equal(out.visits[0], visits)
    np.testing.assert_allclose(out.weights[0], np.array(visits) / simulations, rtol=1e-6)
    assert int(out.action[0]) == int(np.argmax(visits))
    # with the leaf's own 0
    np.testing.assert_allclose(out.value[0], np.dot(visits, payoffs) / (1 + simulations), atol=1e-6)
    assert float(out.best_child_value[0]) == payoffs[int(out.action[0])]


def test_alphazero_counts_unvisited_moves_as_lost() -> None:
    """With a lost first move (q = 0, like every unvisited one) only the prior term decides: 0.98 /
    2 > 0.02."""
    game = Bandit((-1.0, -1.0))
    out = run(
        game,
        constant_leaf((0.98, 0.02)),
        config(puct_form="alphazero", num_simulations=2),
        batch_of_one(game.init()),
    )
    np.testing.assert_array_equal(out.visits[0], (2, 0))


def alphago_zero_rule(node: Node) -> int:
    total = sum(node.visits.values())
    if total == 0:
        return best(node.priors())
    scores = {}
    for action, prior in node.priors().items():
        count = node.visits.get(action, 0)
        scores[action] = (node.q(action) if count else 0.0) + C_PUCT * prior * math.sqrt(total) / (
            1 + count
        )
    return best(scores)


def alphazero_rule(node: Node) -> int:
    parent = 1 + sum(node.visits.values())
    pb_c = math.log((parent + PB_C_BASE + 1) / PB_C_BASE) + PB_C_INIT
    scores = {}
    for action, prior in node.priors().items():
        count = node.visits.get(action, 0)
        scores[action] = pb_c * math.sqrt(parent) / (count + 1) * prior + (
            (node.q(action) + 1) / 2 if count else 0.0
        )
    return best(scores)


@pytest.mark.parametrize(
    ("form", "rule"), [("alphago_zero", alphago_zero_rule), ("alphazero", alphazero_rule)]
)
@pytest.mark.parametrize("extra_turns", [False, True])
def test_equals_plain_python(form: Any, rule: Rule, extra_turns: bool) -> None:
    """Visits, values and the whole tree below the root equal the reference's in random games with
    ends and illegal moves, also if a side moves twice."""
    game, simulations, seeds = RandomTree(extra_turns=extra_turns), 150, 8
    leaf = random_leaf(game)
    out = run(
        game,
        leaf,
        config(puct_form=form, num_simulations=simulations),
        jax.vmap(game.init)(jnp.arange(seeds)),
    )
    reference = Reference(game, leaf)
    tree = by_game(out.tree)

    def compare(node: Node, game_index: int, index: int) -> int:
        counts = {
            action: int(count)
            for action, count in enumerate(tree.visits[game_index, index])
            if count
        }
        assert counts == node.visits
        for action, total in node.value_sums.items():
            assert tree.value_sums[game_index, index, action] == pytest.approx(total, abs=1e-4)
        below = {action: child for action, child in node.children.items() if not child.terminal}
        return 1 + sum(
            compare(child, game_index, int(tree.children[game_index, index, action]))
            for action, child in below.items()
        )

    sizes = []
    for seed in range(seeds):
        root = reference.node(game.init(seed))
        for _ in range(simulations):
            reference.simulate(root, rule)
        sizes.append(compare(root, seed, 0))
        assert float(out.value[seed]) == pytest.approx(
            (root.value + sum(root.value_sums.values())) / (1 + simulations), abs=1e-5
        )
        assert float(out.best_child_value[seed]) == pytest.approx(
            root.q(int(out.action[seed])), abs=1e-5
        )
    assert max(sizes) > 60  # the games are not so short that the comparison is empty


def test_most_visited_move_ties_break_by_prior() -> None:
    game = Bandit((0.0, 0.0, 0.0))
    out = run(
        game, constant_leaf((0.3, 0.31, 0.39)), config(num_simulations=3), batch_of_one(game.init())
    )
    np.testing.assert_array_equal(out.visits[0], (1, 1, 1))
    assert int(out.action[0]) == 2


def test_max_depth_stops_the_descent() -> None:
    """At depth 1 only the root has children; visits to them evaluate the same positions again."""
    game = RandomTree()
    out = run(
        game,
        random_leaf(game),
        config(num_simulations=40, max_depth=1),
        jax.vmap(game.init)(jnp.arange(4)),
    )
    visits = by_game(out.tree).visits
    assert (visits[:, 0].sum(-1) == 40).all()
    assert (visits[:, 1:] == 0).all()


class TestNoise:
    LEGAL = jnp.asarray([[True] * 30 + [False] * 332])

    def noisy(self, fraction: float, alpha: float = 0.03) -> np.ndarray:
        priors = jnp.where(self.LEGAL, jnp.where(jnp.arange(362) == 0, 1.0, 0.0), ILLEGAL)
        return np.asarray(
            mix_dirichlet(jax.random.key(3), jnp.broadcast_to(priors, (2000, 362)), alpha, fraction)
        )

    def test_covers_the_legal_moves_only(self) -> None:
        noisy = self.noisy(0.25)
        assert (noisy[:, 30:] == ILLEGAL).all()
        np.testing.assert_allclose(noisy[:, :30].sum(-1), 1.0, rtol=1e-5)
        assert (noisy[:, 0] >= 0.75).all()

    def test_has_the_moments_of_a_dirichlet(self) -> None:
        """Each component has mean 1/30 and variance (1/30)(29/30) / (30 alpha + 1)."""
        eta = self.noisy(1.0)[:, :30]
        assert eta.mean(0) == pytest.approx(1 / 30, abs=0.015)
        assert eta.var(0).mean() == pytest.approx((1 / 30) * (29 / 30) / (30 * 0.03 + 1), rel=0.1)

    def test_changes_the_root_alone(self) -> None:
        game = RandomTree()
        roots = jax.vmap(game.init)(jnp.arange(2))
        leaf = random_leaf(game)
        plain, noisy = (
            by_game(run(game, leaf, config(num_simulations=12, dirichlet_fraction=f), roots).tree)
            for f in (0.0, 0.5)
        )
        assert np.abs(plain.priors - noisy.priors)[:, 0].max() > 0.01
        first = noisy.children[:, 0]
        for row in range(2):
            for action in np.flatnonzero(first[row] > 0):
                if plain.children[row, 0, action] > 0:
                    one, other = (
                        tree.priors[row, int(tree.children[row, 0, action])]
                        for tree in (plain, noisy)
                    )
                    np.testing.assert_array_equal(one, other)


def test_an_unknown_search_names_the_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"one of puct, gumbel, mctx_puct, mctx_gumbel, not 'minimax'"
    ):
        config().as_kind("minimax")
