"""Trees that are kept from move to move equal a plain Python reference over whole games."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from kept_reference import KeptReference
from search_toys import Node, RandomTree, ToyState, _uniform, by_game, random_leaf

from azero.search.batched.evaluation import ILLEGAL
from azero.search.batched.puct import mix_dirichlet
from azero.search.batched.reuse import make_new_trees
from azero.search.batched.tree import bytes_per_node, tree_bytes
from azero.search.search import PreviousSearch
from azero.search.settings import MctxPuctConfig, PuctConfig

GAMES = 3


@struct.dataclass
class RealState(ToyState):
    is_real: jax.Array
    """bool[]: of a real game, not of a search."""


@dataclass(frozen=True)
class WithHistory(RandomTree):
    """A game in which some moves are illegal by what a search does not know."""

    def init(self, seed: Any = 0) -> RealState:
        state = super().init(seed)
        return RealState(state.code, state.depth, state.player, jnp.bool_(True))

    def step(self, state: RealState, action: jax.Array) -> RealState:
        played = super().step(ToyState(state.code, state.depth, state.player), action)
        return RealState(played.code, played.depth, played.player, state.is_real)

    def legal_action_mask(self, state: RealState) -> jax.Array:
        actions = jnp.arange(self.num_actions, dtype=jnp.uint32)
        repeats = state.is_real & (_uniform(state.code + 77 * (actions + 1)) < 0.4)
        return super().legal_action_mask(state) & ~(
            repeats & (actions != state.code % self.num_actions)
        )

    def search_state(self, state: RealState) -> RealState:
        return RealState(state.code, state.depth, state.player, jnp.zeros_like(state.is_real))


@dataclass(frozen=True)
class FewLegal(RandomTree):
    """A game with more actions than any position has legal moves."""

    @property
    def max_legal_actions(self) -> int:
        return 9


LONG: dict[str, Any] = {"max_moves": 14, "end_share": 0.04}
SETTINGS = {
    "as published": (RandomTree(**LONG), PuctConfig(num_simulations=24, dirichlet_alpha=0.3)),
    "AlphaZero's form, a side may move twice": (
        RandomTree(extra_turns=True, **LONG),
        PuctConfig(
            num_simulations=24, puct_form="alphazero", pb_c_base=40.0, dirichlet_fraction=0.0
        ),
    ),
    "few nodes kept": (
        RandomTree(**LONG),
        PuctConfig(num_simulations=24, kept_nodes=5, dirichlet_alpha=0.3),
    ),
    "few of many actions, variance scaling": (
        FewLegal(num_actions=12, legal_share=0.3, **LONG),
        PuctConfig(
            num_simulations=24, first_play="reduced", variance_scale=0.85, dirichlet_fraction=0.0
        ),
    ),
    "moves illegal by history, forced playouts": (
        WithHistory(**LONG),
        PuctConfig(num_simulations=24, forced_playouts=2.0, dirichlet_alpha=0.5),
    ),
}


def compare(tree: Any, game: int, node: Node, index: int = 0) -> int:
    """Compare the tree below a node with the reference's; return its size."""
    counts = tree.visits[game, index]
    moves = np.arange(len(counts)) if tree.moves is None else tree.moves[game, index]
    assert {int(moves[e]): int(n) for e, n in enumerate(counts) if n} == node.visits
    edge = {int(move): e for e, move in enumerate(moves)}
    for action, total in node.value_sums.items():
        assert tree.value_sums[game, index, edge[action]] == pytest.approx(total, abs=1e-4)
    below = {action: child for action, child in node.children.items() if not child.terminal}
    links = {int(moves[e]) for e, child in enumerate(tree.children[game, index]) if child >= 0}
    assert links == set(below)
    return 1 + sum(
        compare(tree, game, child, int(tree.children[game, index, edge[action]]))
        for action, child in below.items()
    )


@pytest.mark.parametrize("name", SETTINGS)
def test_equals_plain_python_over_whole_games(name: str) -> None:
    """Every search of three games, of 24 simulations or, at one move in three, of 7: visits, values
    and links of the whole tree. Some moves are drawn from all legal ones, so that trees are lost."""
    game, config = SETTINGS[name]
    config = config.replace(reuse_tree=True)
    leaf = random_leaf(game)
    fast = config.fast(7).replace(forced_playouts=config.forced_playouts)
    searches = [jax.jit(settings.build(game, leaf)) for settings in (config, fast)]
    new_trees = make_new_trees(config, game, config.num_simulations)
    assert new_trees is not None
    previous = PreviousSearch(new_trees(GAMES), jnp.full((GAMES, 1), -1, jnp.int32))
    states = [game.init(seed) for seed in range(GAMES)]
    references = [KeptReference(game, leaf, config) for _ in range(GAMES)]
    random, key = np.random.default_rng(0), jax.random.key(0)
    grown = begun = 0
    for ply in range(game.max_moves):
        key = jax.random.fold_in(key, ply)
        is_fast = ply % 3 == 2
        roots = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
        priors = np.full((GAMES, game.num_actions), ILLEGAL, np.float32)
        for row, (reference, state) in enumerate(zip(references, states, strict=True)):
            begun += reference.root is None
            for action, prior in reference.begin(state).items():
                priors[row, action] = prior
        if config.dirichlet_fraction and not is_fast:
            noise_key = jax.random.split(key, 3)[1]
            noisy = mix_dirichlet(noise_key, jnp.asarray(priors), config.dirichlet_alpha, 0.25)
            priors = np.asarray(noisy)
        out = searches[is_fast]({}, key, roots, previous)
        tree, played = by_game(out.tree), []
        for row, reference in enumerate(references):
            reference.config = fast if is_fast else config
            reference.noisy = {a: float(p) for a, p in enumerate(priors[row]) if p >= 0}
            root = reference.search(7 if is_fast else 24)
            size = compare(tree, row, root)
            grown += size > 30
            total = sum(root.visits.values())
            value = (root.value + sum(root.value_sums.values())) / (1 + total)
            assert float(out.value[row]) == pytest.approx(value, abs=1e-4)
            visited = list(root.visits)
            weights = np.array([root.visits[a] for a in visited]) / total
            action = int(random.choice(visited, p=weights))
            if random.random() < 0.1:
                action = int(random.choice(list(root.logits)))
            reference.config = config
            reference.play(action)
            states[row] = game.step(states[row], jnp.int32(action))
            if game.is_terminal(states[row]):
                states[row], reference.root = game.init(100 + 10 * ply + row), None
                action = -1
            played.append([action])
        previous = PreviousSearch(out.tree, jnp.asarray(played, jnp.int32))
    assert GAMES < begun < 0.7 * GAMES * game.max_moves
    assert grown > 3 or config.kept_room == 5


def lowered(config: PuctConfig) -> str:
    game = RandomTree()
    roots = jax.vmap(game.init)(jnp.arange(4))
    previous: tuple[Any, ...] = ()
    new_trees = make_new_trees(config, game, config.num_simulations)
    if new_trees is not None:
        previous = (PreviousSearch(new_trees(4), jnp.zeros((4, 1), jnp.int32)),)
    search = jax.jit(config.build(game, random_leaf(game)))
    return str(search.lower({}, jax.random.key(0), roots, *previous).as_text())


def test_keeping_trees_adds_no_scatter() -> None:
    plain, kept = (
        len(re.findall(r'"stablehlo\.scatter"', lowered(PuctConfig(reuse_tree=reuse))))
        for reuse in (False, True)
    )
    assert kept <= plain


def test_the_memory_of_a_kept_tree_is_counted() -> None:
    game, config = RandomTree(), PuctConfig(num_simulations=40, reuse_tree=True, kept_nodes=25)
    new_trees = make_new_trees(config, game, 40)
    assert new_trees is not None
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(new_trees(8)))
    assert size == 8 * tree_bytes(40, game, kept=config.kept_room)
    assert size == 8 * 65 * bytes_per_node(game, 65, keeps_visits=True)


def test_mctx_refuses() -> None:
    with pytest.raises(ValueError, match=r"search.reuse-tree: mctx begins"):
        MctxPuctConfig(reuse_tree=True)
    published = PuctConfig(reuse_tree=True, num_simulations=7)
    assert published.as_kind("mctx_puct") == MctxPuctConfig(num_simulations=7)
