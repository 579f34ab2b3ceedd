"""The tree itself: a golden tree, exact ends, legality, memory, and what it compiles to."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec
from search_toys import RandomTree, by_game, random_leaf, search_program

from azero.games.table import make
from azero.games.tictactoe.rules import TicTacToe, TicTacToeState
from azero.mesh import make_mesh
from azero.search.batched import reductions
from azero.search.batched.evaluation import ILLEGAL, compact, leaf_priors, num_chunks
from azero.search.batched.tree import (
    TERMINAL,
    UNVISITED,
    Edges,
    Tree,
    best_legal,
    bytes_per_node,
    index_dtype,
    tree_bytes,
)
from azero.search.leaf import uniform_leaf
from azero.search.search import SearchOutput
from azero.search.settings import SearchConfig

OURS = ["puct", "gumbel"]
TICTACTOE = TicTacToe()
UNIFORM = uniform_leaf(TICTACTOE)


def config(name: str, **changes: Any) -> SearchConfig:
    """Return a search without noise; of `changes` those that it has a setting for."""
    search = SearchConfig.default(name).without_noise()
    return search.replace(
        **{key: value for key, value in changes.items() if not search.is_elsewhere(key)}
    )


def position(*squares: int) -> TicTacToeState:
    """Return the tic-tac-toe position after these moves, as a batch of one."""
    game = TicTacToe()
    state = game.init()
    for square in squares:
        state = game.step(state, jnp.int32(square))
    return jax.tree.map(lambda x: x[None], state)


def search_tictactoe(
    name: str, roots: TicTacToeState, simulations: int, **changes: Any
) -> SearchOutput:
    search = search_program(
        config(name, num_simulations=simulations, **changes), TICTACTOE, UNIFORM
    )
    out = search({}, jax.random.key(0), roots)
    return out._replace(tree=by_game(out.tree))


def draw(tree: Tree, node: int = 0, indent: str = "") -> list[str]:
    """Return the visited part of the first game's tree as text: move, visits, mean value for the
    side that moves, and what is behind the edge."""
    lines = []
    for action in np.flatnonzero(np.asarray(tree.visits[0, node])):
        child = int(tree.children[0, node, action])
        count = int(tree.visits[0, node, action])
        behind = "end" if child == TERMINAL else f"#{child}"
        lines.append(
            f"{indent}{action}: N={count} "
            f"Q={float(tree.value_sums[0, node, action]) / count:+.2f} {behind}"
        )
        if child > 0:
            lines += draw(tree, child, indent + "  ")
    return lines


def test_golden_tree() -> None:
    """X . . / O O . / . . X with X to move; AlphaGo Zero's rule, c = 1, equal priors, twelve
    simulations, worked out by hand.

    Five empty squares get one visit each, then a second, since every value is still 0; O answers
    with the first empty square. The third visits go to 1 and 2, where O's second answer, square 5,
    completes its row: worth +1 to O, so -1/3 to X.
    """
    out = search_tictactoe("puct", position(0, 3, 8, 4), 12, c_puct=1.0)
    assert draw(out.tree) == [
        "1: N=3 Q=-0.33 #1",
        "  2: N=1 Q=+0.00 #6",
        "  5: N=1 Q=+1.00 end",
        "2: N=3 Q=-0.33 #2",
        "  1: N=1 Q=+0.00 #7",
        "  5: N=1 Q=+1.00 end",
        "5: N=2 Q=+0.00 #3",
        "  1: N=1 Q=+0.00 #8",
        "6: N=2 Q=+0.00 #4",
        "  1: N=1 Q=+0.00 #9",
        "7: N=2 Q=+0.00 #5",
        "  1: N=1 Q=+0.00 #10",
    ]


@pytest.mark.parametrize("name", OURS)
def test_an_end_has_no_node_and_keeps_its_exact_value(name: str) -> None:
    out = search_tictactoe(name, position(0, 3, 1, 4), 40)
    assert int(out.tree.children[0, 0, 2]) == TERMINAL
    assert int(out.tree.visits[0, 0, 2]) >= 10
    assert float(out.tree.value_sums[0, 0, 2]) == float(out.tree.visits[0, 0, 2])
    assert int(out.action[0]) == 2
    assert float(out.best_child_value[0]) == 1.0


@pytest.mark.parametrize(
    ("moves", "value", "good"),
    [
        ((0, 3, 1, 4), 1.0, {2}),  # X X . / O O . : X wins at once
        ((0, 3, 8, 4), 0.0, {5}),  # X must stop O's row
        ((0, 4), 0.0, {1, 2, 3, 5, 6, 7, 8}),  # a corner answered by the centre is a draw
        ((0, 1), 1.0, {3, 4, 6}),  # a corner answered by an edge loses: these three win
    ],
)
def test_solves_tictactoe(moves: tuple[int, ...], value: float, good: set[int]) -> None:
    """With nothing but the rules to go by, enough simulations find the value and a move that keeps
    it."""
    out = search_tictactoe("puct", position(*moves), 1500, c_puct=0.7)
    assert int(out.action[0]) in good
    assert float(out.best_child_value[0]) == pytest.approx(value, abs=0.15)


@pytest.mark.parametrize("name", OURS)
def test_illegal_moves_are_never_visited(name: str) -> None:
    """Not at the root and not below it, where a legal move with a bad value scores below an
    unvisited one."""
    game = RandomTree(legal_share=0.4)
    roots = jax.vmap(game.init)(jnp.arange(32))
    out = jax.jit(config(name, num_simulations=100).build(game, random_leaf(game)))(
        {}, jax.random.key(0), roots
    )
    tree = by_game(out.tree)
    legal = np.asarray(jax.vmap(jax.vmap(game.legal_action_mask))(tree.states))
    assert (np.asarray(tree.visits)[~legal] == 0).all()
    assert (np.asarray(tree.children)[~legal] == UNVISITED).all()
    assert (np.asarray(out.weights)[~legal[:, 0]] == 0).all()
    np.testing.assert_allclose(np.asarray(out.weights).sum(-1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("name", OURS)
def test_the_root_takes_its_legal_moves_from_the_real_game(name: str) -> None:
    """A rule over the whole game (superko) may forbid at the root what the slim state allows."""

    class Stricter(TicTacToe):
        def legal_action_mask(self, state: Any) -> Any:
            real = isinstance(state, tuple)
            mask = super().legal_action_mask(state[0] if real else state)
            return mask & (jnp.arange(9) != 4) if real else mask

        def search_state(self, state: Any) -> Any:
            return state[0]

    game = Stricter()
    out = jax.jit(
        config(name, num_simulations=60, max_considered=9).build(game, uniform_leaf(game))
    )({}, jax.random.key(0), (position(),))
    assert int(out.visits[0, 4]) == 0
    assert int(by_game(out.tree).visits[0, 1:, 4].sum()) > 0


@pytest.mark.parametrize("name", OURS)
def test_a_finished_root_keeps_its_value(name: str) -> None:
    out = search_tictactoe(name, position(0, 3, 1, 4, 2), 5)  # X has won, and O is to move
    assert float(out.value[0]) == -1.0
    assert np.isfinite(np.asarray(out.weights)).all()


@pytest.mark.parametrize(
    ("size", "chunks"),
    [(1, 1), (256, 1), (512, 2), (256 * 16, 16), (300, 2), (257, 1), (2 * 257, 1)],
)
def test_chunks_divide_the_batch_and_are_not_slivers(size: int, chunks: int) -> None:
    assert num_chunks(size) == chunks


def test_counts_fit_their_type() -> None:
    assert index_dtype(32_767) == jnp.int16
    assert index_dtype(32_768) == jnp.int32


@pytest.mark.parametrize("name", OURS)
def test_bytes_are_those_of_the_arrays(name: str) -> None:
    out = search_tictactoe(name, position(), 30)
    total = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(out.tree))
    assert total == tree_bytes(30, TicTacToe()) == 31 * bytes_per_node(TicTacToe(), 31)


@pytest.mark.parametrize("name", OURS)
def test_no_loop_copies_the_tree(name: str) -> None:
    """The compiled search has no copy of an edge array, neither per simulation nor per step of a
    path."""
    game = RandomTree(num_actions=7)
    search = config(name, num_simulations=29, max_considered=4).build(game, random_leaf(game))
    text = (
        jax.jit(search)
        .lower({}, jax.random.key(0), jax.vmap(game.init)(jnp.arange(5)))
        .compile()
        .as_text()
    )
    assert "[150,7]" in text
    assert not re.findall(r"\w+\[150,7\]\S* copy\(.*", text)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "puct", "variance_scale": 0.85},
        {"name": "puct", "edge_width": 9},
        {"name": "gumbel", "max_considered": 8},
        {"name": "gumbel", "edge_width": 9},
    ],
)
def test_whole_rows_make_the_tree_that_single_edges_make(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a TPU runs, run here: every array equal to the last bit, lanes that meet in the root's
    row included. A CPU's sums are in another order, so both use the others'."""
    monkeypatch.setattr(reductions, "_sum_by_product", functools.partial(jnp.sum, axis=-1))
    game = RandomTree(num_actions=16, legal_share=0.5, extra_turns=True)
    roots = jax.vmap(game.init)(jnp.arange(8))

    def search() -> SearchOutput:
        built = config(num_simulations=64, **changes).build(game, random_leaf(game))
        return jax.jit(built)({}, jax.random.key(0), roots)

    edges = search()
    monkeypatch.setattr(
        jax.lax,
        "platform_dependent",
        lambda *arguments, default, tpu=None, **_: (tpu or default)(*arguments),
    )
    rows = search()
    assert int(np.asarray(edges.tree.parents).max()) > 0
    jax.tree.map(np.testing.assert_array_equal, rows, edges)


@pytest.mark.parametrize("name", OURS)
def test_a_program_with_64_bit_numbers_searches_the_same(name: str) -> None:
    """`jax_enable_x64`: every number of the tree keeps its type, and every move its visits."""
    usual = search_tictactoe(name, position(4, 0), 40)
    jax.config.update("jax_enable_x64", True)
    try:
        search = jax.jit(config(name, num_simulations=40).build(TICTACTOE, UNIFORM))
        wide = search({}, jax.random.key(0), position(4, 0))
        types = [leaf.dtype for leaf in jax.tree.leaves(wide.tree)]
    finally:
        jax.config.update("jax_enable_x64", False)
    assert types == [leaf.dtype for leaf in jax.tree.leaves(usual.tree)]
    np.testing.assert_array_equal(wide.visits, usual.visits)


@pytest.mark.parametrize("name", OURS)
def test_eight_devices_search_without_talking(name: str) -> None:
    """Under shard_map the results are those of one device, and the program has no collective."""
    game = RandomTree()
    search = config(name, num_simulations=20).build(game, random_leaf(game))
    roots = jax.vmap(game.init)(jnp.arange(16))

    def visits(params: Any, key: Any, states: Any) -> Any:
        return search(params, key, states).visits

    data, copied = PartitionSpec("data"), PartitionSpec()
    sharded = jax.jit(
        jax.shard_map(
            visits,
            mesh=make_mesh(),
            in_specs=(copied, copied, data),
            out_specs=data,
            check_vma=False,
        )
    )
    np.testing.assert_array_equal(
        sharded({}, jax.random.key(0), roots), jax.jit(visits)({}, jax.random.key(0), roots)
    )
    text = sharded.lower({}, jax.random.key(0), roots).compile().as_text()
    assert len(jax.devices()) == 8
    assert not re.findall(r"all-(?:reduce|gather|to-all)|collective-permute|reduce-scatter", text)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "puct"},
        {"name": "puct", "puct_form": "alphazero", "dirichlet_fraction": 0.25},
        {"name": "gumbel", "gumbel_scale": 1.0},
    ],
)
def test_a_compact_tree_searches_like_a_wide_one(changes: dict[str, Any]) -> None:
    """Edges for the legal moves alone: the same visits, and the same tree where every node has room
    for all of them."""
    game = RandomTree(num_actions=16, legal_share=0.3)
    roots = jax.vmap(game.init)(jnp.arange(32))

    def search(width: int) -> SearchOutput:
        settings = config(**{"num_simulations": 60, "edge_width": width, **changes})
        out = jax.jit(settings.build(game, random_leaf(game)))({}, jax.random.key(0), roots)
        return out._replace(tree=by_game(out.tree))

    wide = search(game.num_actions)
    in_progress = ~np.asarray(jax.vmap(jax.vmap(game.is_terminal))(wide.tree.states))
    width = int(np.asarray(wide.tree.priors >= 0)[in_progress].sum(-1).max())
    assert width < game.num_actions
    compact = search(width)
    assert wide.tree.moves is None and compact.tree.moves.shape[-1] == width
    np.testing.assert_array_equal(compact.visits, wide.visits)
    np.testing.assert_array_equal(compact.action, wide.action)
    np.testing.assert_array_equal(compact.tree.parents, wide.tree.parents)
    np.testing.assert_allclose(compact.weights, wide.weights, atol=1e-5)
    np.testing.assert_allclose(compact.value, wide.value, atol=1e-5)


@pytest.mark.parametrize(
    ("actions", "most", "width"), [(4672, 218, 218), (4672, 218, 64), (64, 40, 40), (33, 32, 7)]
)
def test_the_legal_moves_are_found_before_sorting_as_after_it(
    actions: int, most: int, width: int
) -> None:
    random = np.random.default_rng(actions)
    counts = [0, 1, width, most, *random.integers(0, most + 1, 12)]
    legal = np.zeros((len(counts), actions), bool)
    for row, count in zip(legal, counts, strict=True):
        row[random.choice(actions, count, replace=False)] = True
    logits = random.normal(size=legal.shape).astype(np.float32).round(1)  # with equal ones
    arguments = jnp.asarray(logits), jnp.asarray(legal), width
    moves, priors = leaf_priors(*arguments, most)
    for row, count, found in zip(legal, counts, np.asarray(moves), strict=True):
        if count <= width:
            assert found.tolist() == [*np.flatnonzero(row), *[actions] * (width - count)]
    by_sorting_all = leaf_priors(*arguments, actions)
    np.testing.assert_array_equal(moves, by_sorting_all[0])
    np.testing.assert_array_equal(priors, by_sorting_all[1])


def test_a_narrow_tree_keeps_the_moves_with_the_highest_priors() -> None:
    priors = jnp.array(
        [[0.1, ILLEGAL, 0.3, 0.15, 0.4, 0.05], [ILLEGAL, 0.25, ILLEGAL, ILLEGAL, 0.75, ILLEGAL]]
    )
    moves, kept = compact(priors, 3)
    assert moves is not None
    np.testing.assert_array_equal(moves, [[2, 3, 4], [1, 4, 6]])
    np.testing.assert_allclose(
        kept, [[0.3 / 0.85, 0.15 / 0.85, 0.4 / 0.85], [0.25, 0.75, ILLEGAL]], rtol=1e-6
    )


@pytest.mark.parametrize(("name", "limit"), [("chess", 4_000_000), ("shogi", 8_000_000)])
def test_alphazeros_trees_fit(name, limit):
    """800 simulations with room for every legal move, states included."""
    assert tree_bytes(800, make(name)) < limit


def test_the_best_edge_is_the_first_of_equals() -> None:
    scores = jnp.array([[0.5, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 3.0], [-1.0, -2.0, -3.0, 4.0]])
    illegal = jnp.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    priors = jnp.where(illegal, ILLEGAL, 0.25)
    edges = Edges(priors, jnp.zeros_like(priors), jnp.zeros_like(priors), jnp.zeros(3))
    assert jax.jit(best_legal)(scores, edges).tolist() == [1, 1, 0]


@pytest.mark.parametrize("name", OURS)
def test_trees_beyond_an_index_of_32_bits_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"too large: lower search\.num-simulations"):
        search_tictactoe(name, jax.tree.map(lambda x: x.repeat(4, 0), position()), 10**9)
