"""Gumbel: the schedule, hand answers, wide against one at a time, and mctx."""

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

from azero.search.batched import simulate
from azero.search.batched.gumbel import HalvingPhase, halving_schedule
from azero.search.search import SearchOutput
from azero.search.settings import GumbelConfig, SearchConfig

C_VISIT, C_SCALE = 50.0, 1.0


def config(name: str = "gumbel", **changes: Any) -> SearchConfig:
    return GumbelConfig(
        **{"gumbel_scale": 0.0, "c_visit": C_VISIT, "c_scale": C_SCALE, **changes}
    ).as_kind(name)


def run(game: Any, leaf: Any, settings: SearchConfig, roots: Any, seed: int = 0) -> SearchOutput:
    out: SearchOutput = search_program(settings, game, leaf)({}, jax.random.key(seed), roots)
    return out


@pytest.mark.parametrize(
    ("considered", "simulations", "phases"),
    [
        (16, 32, [(16, 1), (8, 1), (4, 2)]),
        (16, 64, [(16, 1), (8, 2), (4, 4), (2, 8)]),
        (16, 50, [(16, 1), (8, 1), (4, 3), (2, 7)]),
        (16, 20, [(16, 1), (4, 1)]),
        (16, 4, [(4, 1)]),
        (16, 2, [(2, 1)]),
        (16, 1, [(1, 1)]),
        (1, 9, [(1, 9)]),
        (5, 11, [(5, 1), (2, 3)]),
        (4, 7, [(4, 1), (2, 1), (1, 1)]),
    ],
)
def test_schedule(considered: int, simulations: int, phases: list[tuple[int, int]]) -> None:
    assert halving_schedule(considered, simulations) == tuple(
        HalvingPhase(*phase) for phase in phases
    )


def test_schedule_refuses_zero() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0 and 8"):
        halving_schedule(0, 8)


def test_thirty_two_simulations_take_four_calls_and_the_root() -> None:
    game = RandomTree(num_actions=20, legal_share=1.0)
    sizes = []

    def counting_leaf(params: Any, key: Any, states: Any) -> Any:
        jax.debug.callback(lambda _: sizes.append(states.code.shape[0]), states.code[0])
        return random_leaf(game)(params, key, states)

    run(game, counting_leaf, config(num_simulations=32), jax.vmap(game.init)(jnp.arange(3)))
    jax.effects_barrier()
    assert sorted(sizes) == [3, 3 * 4, 3 * 4, 3 * 8, 3 * 16]


def completed(node: Node) -> dict[int, float]:
    """Q where visited, v_mix elsewhere, in [0, 1]."""
    priors, total = node.priors(), sum(node.visits.values())
    visited_mass = sum(priors[action] for action in node.visits)
    weighted = (
        sum(priors[action] * node.q(action) for action in node.visits) / visited_mass
        if node.visits
        else 0.0
    )
    mixed = (node.value + total * weighted) / (1 + total)
    return {
        action: ((node.q(action) if action in node.visits else mixed) + 1) / 2 for action in priors
    }


def sigma(node: Node) -> dict[int, float]:
    scale = (C_VISIT + max(node.visits.values(), default=0)) * C_SCALE
    return {action: scale * q for action, q in completed(node).items()}


def improved_policy(node: Node) -> dict[int, float]:
    scores = {
        action: math.log(prior) + sigma(node)[action] for action, prior in node.priors().items()
    }
    highest = max(scores.values())
    powers = {action: math.exp(score - highest) for action, score in scores.items()}
    return {action: power / sum(powers.values()) for action, power in powers.items()}


def interior_rule(node: Node) -> int:
    total = sum(node.visits.values())
    return best(
        {
            action: p - node.visits.get(action, 0) / (1 + total)
            for action, p in improved_policy(node).items()
        }
    )


def plain_search(reference: Reference, root: Node, considered: int, simulations: int) -> int:
    """Sequential halving, one simulation after the other; return the move."""

    def score(action: int) -> float:
        return math.log(root.priors()[action]) + sigma(root)[action]

    def by_score(actions: list[int]) -> list[int]:
        return sorted(actions, key=lambda action: (-score(action), action))

    survivors = list(root.priors())
    for width, rounds in halving_schedule(considered, simulations):
        survivors = by_score(survivors)[:width]
        for _ in range(rounds):
            for action in survivors:
                reference.simulate(root, interior_rule, action)
    return by_score(
        [action for action in root.visits if root.visits[action] == max(root.visits.values())]
    )[0]


@pytest.mark.parametrize(
    ("considered", "simulations"), [(8, 70), (4, 2), (3, 1), (1, 12), (16, 40)]
)
def test_wide_equals_one_at_a_time(considered: int, simulations: int) -> None:
    """Also with fewer legal moves than considered ones: the random games have 1 to 12 at the
    root."""
    game, seeds = RandomTree(num_actions=12, legal_share=0.5, extra_turns=True), 6
    leaf = random_leaf(game)
    out = run(
        game,
        leaf,
        config(max_considered=considered, num_simulations=simulations),
        jax.vmap(game.init)(jnp.arange(seeds)),
    )
    reference = Reference(game, leaf)
    for seed in range(seeds):
        root = reference.node(game.init(seed))
        action = plain_search(reference, root, min(considered, game.num_actions), simulations)
        assert {
            a: int(count) for a, count in enumerate(np.asarray(out.visits[seed])) if count
        } == root.visits
        assert int(out.action[seed]) == action
        expected = np.zeros(game.num_actions)
        for a, weight in improved_policy(root).items():
            expected[a] = weight
        np.testing.assert_allclose(out.weights[seed], expected, atol=2e-4)
        assert float(out.value[seed]) == pytest.approx(
            (root.value + sum(root.value_sums.values())) / (1 + sum(root.visits.values())), abs=1e-5
        )


@pytest.mark.parametrize(("chunk", "calls"), [(32, 6), (16, 9), (1, 33)])
def test_a_cpu_grows_the_same_trees_in_groups_of_lanes(
    chunk: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = RandomTree(num_actions=20, legal_share=0.7)
    settings, roots = config(num_simulations=32), jax.vmap(game.init)(jnp.arange(4))
    at_once = run(game, random_leaf(game), settings, roots)
    sizes = []

    def counting_leaf(params: Any, key: Any, states: Any) -> Any:
        jax.debug.callback(lambda _: sizes.append(states.code.shape[0]), states.code[0])
        return random_leaf(game)(params, key, states)

    monkeypatch.setattr(simulate, "CPU_CHUNK", chunk)
    in_groups = run(game, counting_leaf, settings, roots)
    jax.effects_barrier()
    assert len(sizes) == calls and sum(sizes) == 4 * 33
    np.testing.assert_array_equal(in_groups.tree.children, at_once.tree.children)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), in_groups, at_once)


def test_bandit_by_hand() -> None:
    """Of four arms the best two by prior get one visit; the payoff decides between them, by sigma =
    51 q, far beyond any difference of the priors."""
    game = Bandit((0.0, 1.0, 0.0, 1.0))
    out = run(
        game,
        constant_leaf((0.4, 0.3, 0.2, 0.1)),
        config(num_simulations=2),
        jax.tree.map(lambda x: x[None], game.init()),
    )
    np.testing.assert_array_equal(out.visits[0], (1, 1, 0, 0))
    assert int(out.action[0]) == 1
    # v_mix = (0 + 2 (0.4 * 0 + 0.3 * 1) / 0.7) / 3 = 0.2857, so q in [0, 1] = 0.5, 1, 0.6429,
    # 0.6429.
    logits = np.log([0.4, 0.3, 0.2, 0.1]) + 51 * np.array([0.5, 1.0, 0.642857, 0.642857])
    np.testing.assert_allclose(out.weights[0], np.exp(logits) / np.exp(logits).sum(), rtol=1e-3)


def test_one_simulation_samples_the_prior() -> None:
    """With n = 1 the move is argmax g + log P, which is a sample from P (the Gumbel-max trick);
    illegal moves are never drawn."""
    priors, legal = (0.5, 0.3, 0.05, 0.15), (True, True, False, True)
    game = Bandit((0.0,) * 4, legal)
    roots = jax.vmap(lambda _: game.init())(jnp.arange(20_000))
    out = run(game, constant_leaf(priors), config(num_simulations=1, gumbel_scale=1.0), roots)
    shares = np.bincount(np.asarray(out.action), minlength=4) / 20_000
    np.testing.assert_allclose(shares, np.array([0.5, 0.3, 0.0, 0.15]) / 0.95, atol=0.012)


def test_only_moves_that_the_root_has_room_for_are_considered() -> None:
    game = RandomTree(num_actions=16, legal_share=1.0)
    roots = jax.vmap(game.init)(jnp.arange(8))
    output = run(
        game,
        random_leaf(game),
        config(num_simulations=3, max_considered=16, edge_width=3, gumbel_scale=1.0),
        roots,
    )
    assert output.tree.moves is not None
    for visits, moves, action in zip(
        np.asarray(output.visits),
        by_game(output.tree).moves[:, 0],
        np.asarray(output.action),
        strict=True,
    ):
        np.testing.assert_array_equal(np.flatnonzero(visits), np.sort(moves))
        assert visits.max() == 1 and action in moves


def test_noise_depends_on_the_key_and_zero_scale_does_not() -> None:
    game = RandomTree(num_actions=12)
    roots = jax.vmap(game.init)(jnp.arange(16))
    noisy, still = (config(num_simulations=4, gumbel_scale=scale) for scale in (1.0, 0.0))
    leaf = random_leaf(game)
    assert (
        run(game, leaf, noisy, roots, 0).action != run(game, leaf, noisy, roots, 1).action
    ).any()
    np.testing.assert_array_equal(
        run(game, leaf, still, roots, 0).weights, run(game, leaf, still, roots, 1).weights
    )


class TestAgainstMctx:
    GAME = RandomTree(num_actions=24, max_moves=9, legal_share=0.9)
    SEEDS = 192

    def both(self, **changes: Any) -> tuple[SearchOutput, SearchOutput, np.ndarray]:
        """Search the same roots with both; also return which roots have at least as many legal
        moves as are considered."""
        roots = jax.vmap(self.GAME.init)(jnp.arange(self.SEEDS))
        leaf = random_leaf(self.GAME)
        ours, theirs = (
            run(self.GAME, leaf, config(name=name, max_considered=16, **changes), roots)
            for name in ("gumbel", "mctx_gumbel")
        )
        return ours, theirs, np.asarray(jax.vmap(self.GAME.legal_action_mask)(roots)).sum(-1) >= 16

    @pytest.mark.parametrize("simulations", [1, 8, 64])
    def test_equal_where_the_scale_of_sigma_is_constant(self, simulations: int) -> None:
        """With c_visit far above every visit count the one difference (the scale grows within a
        phase) is gone, and everything agrees."""
        ours, theirs, full = self.both(num_simulations=simulations, c_visit=1e5, c_scale=3e-4)
        assert full.sum() > 0.9 * self.SEEDS
        np.testing.assert_array_equal(ours.visits[full], theirs.visits[full])
        np.testing.assert_array_equal(ours.action[full], theirs.action[full])
        for one, other in (
            (ours.weights, theirs.weights),
            (ours.value, theirs.value),
            (ours.best_child_value, theirs.best_child_value),
        ):
            np.testing.assert_allclose(one[full], other[full], atol=2e-3)

    def test_nearly_equal_in_the_published_form(self) -> None:
        """In the published form a choice near the cut differs at a few roots in a hundred."""
        ours, theirs, full = self.both(num_simulations=64)
        same = np.asarray((ours.visits == theirs.visits).all(-1))[full]
        assert same.mean() > 0.95
        np.testing.assert_array_equal(ours.action[full][same], theirs.action[full][same])
        np.testing.assert_allclose(ours.weights[full][same], theirs.weights[full][same], atol=2e-3)
        assert (np.asarray(ours.action == theirs.action)[full]).mean() > 0.98


@pytest.mark.parametrize("name", ["gumbel", "puct"])
def test_no_axis_is_added_to_an_array_by_itself(name: str) -> None:
    search = SearchConfig.default(name).replace(num_simulations=4)
    game = RandomTree(num_actions=5)
    with jax.numpy_rank_promotion("raise"):
        roots = jax.vmap(game.init)(jnp.arange(2))
        jax.eval_shape(search.build(game, random_leaf(game)), {}, jax.random.key(0), roots)
