"""One tree for one game: equal to a plain search, exact at the ends, no virtual loss left, kept
from move to move, bounded."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from search_toys import Node, Reference, random_leaf
from tree_toys import ShownTree, check_sums, grow, legal_of, make_tree, nodes_below, plain_rule

from azero.games.table import make
from azero.mesh import make_mesh
from azero.search.leaf import ignore_symmetry, uniform_leaf
from azero.search.single import packed
from azero.search.single.node import Ending, merge, restrict
from azero.search.single.node import Node as TreeNode
from azero.search.single.packed import PackedRules
from azero.search.single.parallel import ParallelTree, TreeSettings
from azero.search.single.selection import Puct

C_BASE, C_INIT, REDUCTION = 40.0, 1.25, 0.3  # a small base, so that its logarithm matters


def compare(plain: Node, node: TreeNode) -> int:
    """Check that both trees are the same below here; return their size."""
    actions = node.actions[: node.tried].tolist()
    assert dict(zip(actions, node.visits.astype(int).tolist(), strict=True)) == plain.visits
    size = 1
    for edge, action in enumerate(actions):
        assert node.sums[edge] == pytest.approx(plain.value_sums[action], abs=1e-4)
        child = node.children[edge]
        assert isinstance(child, Ending) == plain.children[action].terminal
        if isinstance(child, TreeNode):
            size += compare(plain.children[action], child)
    return size


@pytest.mark.parametrize("unvisited", ["reduction", "loss", "draw"])
@pytest.mark.parametrize("extra_turns", [False, True])
def test_one_leaf_at_a_time_equals_plain_python(unvisited: Any, extra_turns: bool) -> None:
    game = ShownTree(extra_turns=extra_turns)
    leaf = random_leaf(game)
    reference = Reference(game, leaf)
    rule = plain_rule(unvisited, C_BASE, C_INIT, REDUCTION)
    tree = make_tree(
        game,
        ignore_symmetry(leaf),
        batch=1,
        rule=Puct(c_base=C_BASE, c_init=C_INIT, unvisited=unvisited, reduction=REDUCTION),
    )
    sizes = []
    for seed in range(4):
        state = game.init(seed)
        tree.move_to(state, legal_of(game, state), None)
        grow(tree, 120)
        plain = reference.node(state)
        for _ in range(120):
            reference.simulate(plain, rule)
        assert tree.root is not None
        sizes.append(compare(plain, tree.root))
        assert sizes[-1] == tree.num_nodes == len(nodes_below(tree.root))
        check_sums(tree.root)
    assert max(sizes) > 60  # the games are not so short that the comparison is empty


@pytest.mark.parametrize(
    ("batch", "overlaps", "loss"),
    [(2, False, 1), (8, False, 3), (16, False, 1), (8, True, 1), (8, True, 0)],
)
def test_many_leaves_at_a_time_leave_no_loss_behind(batch: int, overlaps: bool, loss: int) -> None:
    """Every edge holds exactly what was backed up through it, also where descents met in vain and
    where a side moves twice running."""
    game = ShownTree(num_actions=4, extra_turns=True)
    leaf = ignore_symmetry(random_leaf(game))
    tree = make_tree(game, leaf, batch=batch, overlaps=overlaps, virtual_loss=loss)
    for seed in range(3):
        state = game.init(seed)
        tree.move_to(state, legal_of(game, state), None)
        grow(tree, 101)  # the last batch is cut short
        assert len(tree._unfinished) == overlaps
        tree.finish()
        assert tree.root is not None and tree.root.total_visits == 101
        check_sums(tree.root)


def test_a_wide_batch_in_a_tiny_tree_ends() -> None:
    """With two moves and a game of depth one there are fewer leaves than the batch has room for."""
    game = ShownTree(num_actions=2, max_moves=1, legal_share=1.0)
    tree = make_tree(game, ignore_symmetry(random_leaf(game)), batch=16)
    state = game.init()
    tree.move_to(state, legal_of(game, state), None)
    grow(tree, 200)
    assert tree.root is not None and tree.num_nodes == 1
    check_sums(tree.root)


def test_a_call_on_a_cpu_computes_half_a_batch_where_that_is_enough() -> None:
    """A call takes time in proportion there; the first batches of a search have few leaves."""
    game, sizes = ShownTree(), set()

    def leaf(
        params: Any, key: jax.Array, states: Any, symmetry: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        sizes.add(len(symmetry))  # while it is compiled
        return ignore_symmetry(random_leaf(game))(params, key, states, symmetry)

    settings = TreeSettings(batch=6)
    evaluator = settings.make_evaluator(game, leaf, {}, mesh=make_mesh(jax.devices()[:1]))
    position = PackedRules(game, 6).pack(game.init())
    many = [position] * 3
    asked = packed.states_of(many), np.tile(position.legal, (3, 1)), np.zeros(3, int)
    policies, values = evaluator.evaluate_uncached(*asked)
    assert sizes == {3}
    assert list(evaluator.warm_up_in_steps(position)) == [1, 3, 6]
    assert sizes == {1, 3, 6}
    alone = evaluator.view(position, 0)
    np.testing.assert_allclose(policies[2][alone.actions], alone.priors, atol=1e-6)
    np.testing.assert_allclose(values, alone.value, atol=1e-6)


class TestTicTacToe:
    GAME = make("tictactoe")
    SMALL: ParallelTree
    WIDE: ParallelTree

    @classmethod
    def setup_class(cls) -> None:
        leaf = ignore_symmetry(uniform_leaf(cls.GAME))
        cls.SMALL, cls.WIDE = make_tree(cls.GAME, leaf, batch=1), make_tree(cls.GAME, leaf, batch=8)

    def after(self, squares: list[int]) -> Any:
        state = self.GAME.init()
        for square in squares:
            state = self.GAME.step(state, jnp.int32(square))
        return state

    @pytest.mark.parametrize(
        ("squares", "answer", "wins"),
        [
            ([0, 3, 1, 4], 2, True),  # X completes the top row
            ([0, 3, 1, 4, 8], 5, True),  # O, the second mover, completes the middle row
            ([0, 4, 1], 2, False),  # O must stop the top row
            ([4, 1, 0], 8, False),  # O must stop the diagonal
        ],
    )
    @pytest.mark.parametrize("batch", [1, 8])
    def test_wins_and_blocks(self, squares: list[int], answer: int, wins: bool, batch: int) -> None:
        tree = self.SMALL if batch == 1 else self.WIDE
        state = self.after(squares)
        tree.clear()
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 600)
        root = tree.root
        assert root is not None
        best = int(np.argmax(root.visits))
        assert root.evaluation.actions[best] == answer
        if wins:
            assert root.children[best] == Ending(1.0 if len(squares) % 2 == 0 else -1.0)
            # exact: a win at every visit
            assert root.sums[best] == pytest.approx(root.visits[best])

    def test_equal_positions_are_evaluated_once(self) -> None:
        """Tic-tac-toe has 5,478 positions; its tree of moves many more nodes than the search has
        positions to look at."""
        settings, rules = TreeSettings(batch=8), PackedRules(self.GAME, 8)
        leaf = ignore_symmetry(uniform_leaf(self.GAME))
        evaluator = settings.make_evaluator(
            self.GAME, leaf, {}, mesh=make_mesh(jax.local_devices()[:1])
        )
        tree, state = ParallelTree(rules, evaluator.leaves(rules), settings), self.GAME.init()
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 800)
        asked = evaluator.counts.positions
        assert asked < 0.8 * tree.num_nodes
        tree.clear()
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 800)
        assert evaluator.counts.positions == asked

    def test_the_subtree_is_kept_over_moves_visited_and_left_at_others(self) -> None:
        tree = self.WIDE
        tree.clear()
        state = self.after([4])
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 300)
        root = tree.root
        assert root is not None
        edge = int(np.argmin(root.visits))
        action = int(root.evaluation.actions[edge])
        child = root.children[edge]
        assert isinstance(child, TreeNode)
        reply, below = int(child.actions[0]), child.children[0]
        assert isinstance(below, TreeNode)
        squares = [4, action, reply]
        state = self.after(squares)
        # two moves at once, the first of them the least expected
        assert tree.move_to(state, legal_of(self.GAME, state), squares[1:])
        assert tree.root is not None and tree.root.state == below.state
        assert np.array_equal(tree.root.edges["visits"], below.edges["visits"])
        assert len(nodes_below(tree.root)) == len(nodes_below(below))
        assert tree.num_nodes == len(nodes_below(tree.root))
        check_sums(tree.root)
        other = self.after([0])
        # these moves lead elsewhere: the position decides, not the moves
        assert not tree.move_to(other, legal_of(self.GAME, other), [8])
        assert tree.root is not None and tree.root.total_visits == 0 and tree.num_nodes == 1

    def test_a_full_tree_says_so_and_searches_on_after_a_move(self) -> None:
        tree = make_tree(self.GAME, ignore_symmetry(uniform_leaf(self.GAME)), batch=8, max_nodes=50)
        state = self.GAME.init()
        tree.move_to(state, legal_of(self.GAME, state), None)
        while tree.search(100):
            assert tree.num_nodes <= 50
        assert tree.num_nodes == 50
        assert tree.root is not None
        check_sums(tree.root)
        action = int(tree.root.evaluation.actions[0])
        state = self.after([action])
        assert tree.move_to(state, legal_of(self.GAME, state), [action])
        assert tree.num_nodes < 50 and tree.search(8) == 8

    def test_restricted_roots_search_their_moves_and_come_back(self) -> None:
        tree = self.WIDE
        state = self.after([0])
        tree.clear()
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 60)
        whole = tree.root
        assert whole is not None
        allowed = np.zeros(9, bool)
        allowed[[5, 7]] = True
        part = restrict(whole, allowed)
        known = part.total_visits
        for _ in range(10):
            tree.search(8, part)
        assert set(part.evaluation.actions.tolist()) == {
            5,
            7,
        } and part.evaluation.priors.sum() == pytest.approx(1.0)
        merged = merge(whole, part)
        assert merged.total_visits == 60 + part.total_visits - known
        assert sorted(merged.evaluation.actions.tolist()) == sorted(
            whole.evaluation.actions.tolist()
        )
        check_sums(merged)
        tree.root = merged
        grow(tree, 40)
        check_sums(merged)

    def test_every_position_down_to_the_depth_obeys_a_restriction(self) -> None:
        """The first mover may not play 2 above depth 4, the second one only 0 and 7 above depth 2;
        at depth 3 the second mover is free."""

        def allowed_moves(to_play: int, depth: int) -> np.ndarray:
            if to_play == 0:
                return (np.arange(9) != 2) | (depth >= 4)
            return np.isin(np.arange(9), [0, 7]) | (depth >= 2)

        tree = ParallelTree(
            self.WIDE._rules, self.WIDE._leaves, TreeSettings(batch=8), allowed_moves
        )
        state = self.GAME.init()
        tree.move_to(state, legal_of(self.GAME, state), None)
        grow(tree, 1200)
        assert tree.root is not None
        check_sums(tree.root)
        seen: dict[int, set[int]] = {}
        todo = [(tree.root, 0)]
        while todo:
            node, depth = todo.pop()
            seen.setdefault(depth, set()).update(node.evaluation.actions.tolist())
            assert node.evaluation.priors.sum() == pytest.approx(1.0)
            todo += [(child, depth + 1) for child in node.children if isinstance(child, TreeNode)]
        assert seen[1] == {0, 7} and 2 not in seen[2] and 2 in seen[3] and 2 in seen[4]

    def test_an_interrupted_batch_leaves_no_tree(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tree = make_tree(self.GAME, ignore_symmetry(uniform_leaf(self.GAME)), batch=8)
        state = self.GAME.init()
        tree.move_to(state, legal_of(self.GAME, state), None)

        def interrupt(*arguments: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(tree._rules, "step_states", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tree.search(8)
        assert tree.root is None and tree.num_nodes == 0


def test_superko_of_the_whole_game_holds_at_the_root() -> None:
    """The root's moves are those of the real game, though the slim state below knows eight boards
    only; the probability goes to the others."""
    game = make("go", size=3, komi=0.5)
    state = game.init()
    random = np.random.default_rng(5)
    step, legal_mask = jax.jit(game.step), jax.jit(game.legal_action_mask)
    slim_mask = jax.jit(lambda state: game.legal_action_mask(game.search_state(state)))
    tree = make_tree(game, ignore_symmetry(uniform_leaf(game)), batch=4)
    differing = 0
    for _ in range(400):
        if bool(game.is_terminal(state)):
            state = game.init()
        exact, slim = np.asarray(legal_mask(state)), np.asarray(slim_mask(state))
        assert not (exact & ~slim).any()
        if (exact != slim).any():
            differing += 1
            tree.move_to(state, exact, None)
            grow(tree, 24)
            root = tree.root
            assert root is not None and np.array_equal(
                np.sort(root.evaluation.actions), np.flatnonzero(exact)
            )
            assert root.evaluation.priors.sum() == pytest.approx(1.0)
            check_sums(root)
        points = np.flatnonzero(exact[:-1])  # no passes, so that stones are captured and recaptured
        state = step(
            state, jnp.int32(random.choice(points) if len(points) else game.num_actions - 1)
        )
    assert differing > 0


def test_programs_serve_every_komi() -> None:
    """Black owns the whole 3x3 board: 9 points."""
    pass_move = 9
    results = []
    for komi in (8.5, 9.0, 9.5):
        rules = PackedRules(make("go", size=3, komi=komi), 1)
        position = rules.pack(rules.game.init())
        for action in (4, pass_move, pass_move):
            assert not position.is_terminal and position.result == 0.0
            position = rules.step([position], [action])[0]
        assert position.is_terminal
        results.append(position.result)
    assert results == [1.0, 0.0, -1.0]
    compiled = packed._compiled.cache_info().misses
    PackedRules(make("go", size=3, komi=-2.5), 1)
    assert packed._compiled.cache_info().misses == compiled


def test_steps_split_over_devices_are_those_of_one() -> None:
    rules = PackedRules(make("tictactoe"), 64)
    assert packed._num_devices(64) == 2, "the tests have several devices"
    start = rules.pack(rules.game.init())
    actions = [i % 9 for i in range(50)]
    after = rules.step([start] * 50, actions)
    single = [rules.step([start], [action])[0] for action in range(9)]
    for action, position in zip(actions, after, strict=True):
        assert position[:5] == single[action][:5]
        assert np.array_equal(position.legal, single[action].legal)


@pytest.mark.parametrize(
    ("superko", "suicide"), [("positional", False), ("situational", True), ("simple", True)]
)
def test_one_program_serves_all_rules_and_the_host_says_what_it_says(
    superko: str, suicide: bool
) -> None:
    """Random games on a tiny board, passes among the moves: one position at a time is played on the
    host, two are stepped by the program."""
    game = make("go", size=(2, 3), komi=0.5, superko=superko, suicide=suicide, max_moves=40)
    rules, random = PackedRules(game, 2), np.random.default_rng(3)
    for _ in range(6):
        position = rules.pack(game.init())
        while not position.is_terminal:
            legal = np.flatnonzero(position.legal)
            action = (
                int(random.choice(legal[:-1]))
                if len(legal) > 1 and random.random() < 0.9
                else game.num_actions - 1
            )
            (position,), both = (
                rules.step([position], [action]),
                rules.step([position] * 2, [action, game.num_actions - 1]),
            )
            assert position[:5] == both[0][:5] and np.array_equal(position.legal, both[0].legal)
    assert packed._compiled(game.general())[1]._cache_size() == 1


@pytest.mark.parametrize("changes", [{"batch": 0}, {"max_nodes": 0}, {"symmetry": "all"}])
def test_settings_out_of_range_are_named(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(changes.values())))):
        TreeSettings(**changes)
    with pytest.raises(ValueError, match="unvisited is one of reduction, loss, draw, not 'win'"):
        Puct(unvisited="win")  # type: ignore[arg-type]
