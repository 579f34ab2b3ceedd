"""The search of AlphaGo (2016) on tic-tac-toe with networks and rollouts whose answers are
known."""

import numpy as np
import pytest
from tree_toys import nodes_below

from azero.games.table import make
from azero.players.play_style import is_most_visited_best
from azero.search.leaf import ignore_symmetry, uniform_leaf
from azero.search.single.compiled import add_edge
from azero.search.single.mixed import MixedEvaluator, MixSettings, make_evaluate_fn
from azero.search.single.node import Node
from azero.search.single.packed import PackedRules, unpack_state
from azero.search.single.parallel import ParallelTree, TreeSettings
from azero.search.single.selection import AlphaGo2016

GAME = make("tictactoe")
RULES = PackedRules(GAME, 8)


def even(positions):
    policies = np.stack([position.legal / position.legal.sum() for position in positions])
    return policies.astype(np.float32), np.zeros(len(positions), np.float32)


def begun(ask):
    """Return an answering function as one that begins and waits."""
    return lambda positions: lambda: ask(positions)


def draw(positions):
    return np.zeros(len(positions))


def tree_at(moves=(), policy=even, value=even, tree=even, rollout=draw, batch=8, **settings):
    """Return a tree after `moves`, with `settings` of the rule and of the leaves."""
    asks = [begun(ask) for ask in (policy, value, tree, rollout)]
    of_rule = {name: settings.pop(name) for name in ("mixing", "c_puct", "fpu") if name in settings}
    rule = AlphaGo2016(**of_rule)
    mix = MixSettings(uses_values=rule.mixing < 1, **{"threshold": 4, **settings})
    leaves = MixedEvaluator(*asks, mix, batch).leaves(RULES)
    made = ParallelTree(RULES, leaves, TreeSettings(batch=batch, rule=rule, virtual_loss=3))
    state = GAME.init()
    for move in moves:
        state = GAME.step(state, move)
    made.move_to(state, np.asarray(GAME.legal_action_mask(state)), None)
    return made


def test_nothing_is_compiled_after_the_warm_up():
    """A program for half a batch was: in the middle of a game, on the clock."""
    compiled = []

    def noted(name):
        def leaf(params, key, states, symmetry):
            compiled.append(name)
            return ignore_symmetry(uniform_leaf(GAME))(params, key, states, symmetry)

        return leaf

    asks = [
        make_evaluate_fn(GAME, noted(name), {}, batch=8, seed=0, smallest=smallest)
        for name, smallest in (("policy", 1), ("value", 2), ("tree", 2))
    ]
    evaluator = MixedEvaluator(*asks, begun(draw), MixSettings(policy_batch=8), 8)
    position = RULES.pack(GAME.init())
    list(evaluator.warm_up_in_steps(position))
    known = list(compiled)
    # one position, half a batch and a batch; the last two of value and tree
    assert sorted(known) == ["policy"] * 3 + ["tree"] * 2 + ["value"] * 2
    for count in range(1, 9):
        answers = [ask([position] * count)() for ask in asks]
        assert all(len(policies) == len(values) == count for policies, values in answers)
    assert compiled == known


def search(tree, descents):
    done = 0
    while done < descents:
        done += tree.search(descents - done)


def legal_at(node):
    """Return the legal moves of a node, which keeps no mask of them: bool[9]."""
    words = np.frombuffer(node.state, np.uint32)
    return np.asarray(GAME.legal_action_mask(unpack_state(GAME, words)))


def best_action(tree):
    rule = tree._settings.rule
    return int(tree.root.evaluation.actions[rule.order(tree.root)[0]])


@pytest.mark.parametrize("mixing", [0.0, 0.5, 1.0])
def test_it_finds_the_win_and_the_only_defence_by_exact_results(mixing):
    # X X .      X X .     X wins with the third; O must take it
    # O O .      . O .
    win = tree_at((0, 3, 1, 4), mixing=mixing)
    search(win, 200)
    assert best_action(win) == 2
    defence = tree_at((0, 4, 1), mixing=mixing)
    search(defence, 600)
    assert best_action(defence) == 2


def test_virtual_losses_are_all_taken_back():
    tree = tree_at(batch=8)
    search(tree, 203)
    assert tree.root.total_visits == 203
    for node in nodes_below(tree.root):
        visits, sums = node.visits, node.sums
        assert (abs(sums) <= visits + 1e-9).all() and (visits > 0).all()
        assert np.array_equal(visits, np.round(visits)) and visits.sum() == node.total_visits


def test_values_and_rollouts_count_apart_and_a_leaf_is_valued_once():
    calls = []

    def value(positions):
        calls.extend(position.state for position in positions)
        return even(positions)[0], np.full(len(positions), 0.25, np.float32)

    def rollout(positions):
        return np.ones(len(positions))

    tree = tree_at(value=value, rollout=rollout, batch=1, threshold=1000)
    search(tree, 90)
    root = tree.root
    assert len(calls) == len(set(calls)) == 9
    assert root.edges["network_visits"].tolist() == [1.0] * 9
    assert root.visits.tolist() == [10.0] * 9
    for mixing, expected in ((0.0, -0.25), (1.0, 1.0), (0.5, 0.375)):  # for the other side
        np.testing.assert_allclose(AlphaGo2016(mixing=mixing).values(root), expected)


def test_an_edge_gets_a_node_above_the_threshold_and_the_priors_are_softened_by_beta():
    def lopsided(positions):
        odds = np.stack([position.legal * np.arange(1.0, 10.0) for position in positions])
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32), np.zeros(
            len(positions), np.float32
        )

    tree = tree_at(policy=lopsided, batch=1, threshold=6)
    search(tree, 150)
    expected, root = np.arange(9.0, 0.0, -1.0) ** 0.67, tree.root
    assert root.evaluation.actions.tolist() == list(range(8, -1, -1))
    np.testing.assert_allclose(root.evaluation.priors, expected / expected.sum(), rtol=1e-5)
    for count, child in zip(root.visits, root.children, strict=True):
        assert isinstance(child, Node) == (count > 6)
    assert tree.num_nodes == len(nodes_below(root)) > 2


def test_a_new_node_has_the_tree_policys_priors_until_its_turn_in_the_queue():
    def first_move(positions):
        policies = even(positions)[0] * 0 + 1e-3
        for row, position in zip(policies, positions, strict=True):
            row[np.flatnonzero(position.legal)[0]] = 1.0
        return policies, np.zeros(len(positions), np.float32)

    tree = tree_at(tree=first_move, batch=8, threshold=0, policy_batch=1)
    tree.search(8)
    nodes, waiting = nodes_below(tree.root)[1:], list(tree._leaves.queue)
    answered = [node for node in nodes if node.row not in waiting]
    assert len(answered) == 1 < len(nodes)
    assert Node(tree.root.store, waiting[0]).evaluation.priors[0] > 0.9 and np.allclose(
        answered[0].evaluation.priors, 1 / 8
    )
    adaptive = tree_at(batch=8, threshold=0, policy_batch=1, is_adaptive=True)
    adaptive.search(8)
    assert adaptive._leaves.threshold == 1


def test_new_priors_leave_tried_moves_where_they_are_and_order_the_others():
    tree = tree_at(batch=1)
    search(tree, 3)
    node = tree.root
    assert node.evaluation.actions[:3].tolist() == [0, 1, 2]
    policy = np.arange(9.0) / 36
    node.set_priors(policy)
    assert node.evaluation.actions.tolist() == [0, 1, 2, 8, 7, 6, 5, 4, 3]
    np.testing.assert_allclose(node.evaluation.priors, policy[node.evaluation.actions])
    assert node.explored == pytest.approx(3 / 36)


def test_the_tree_is_kept_and_the_waiting_nodes_below_it():
    tree = tree_at(threshold=2, policy_batch=1)
    search(tree, 300)
    edge = tree._settings.rule.order(tree.root)[0]
    action, below = int(tree.root.actions[edge]), tree.root.children[edge]
    waiting = {node.state for node in nodes_below(below) if node.row in tree._leaves.queue}
    state = GAME.step(GAME.init(), action)
    assert tree.move_to(state, np.asarray(GAME.legal_action_mask(state)), [action])
    assert tree.root.state == below.state
    assert [node.state for node in nodes_below(tree.root)] == [n.state for n in nodes_below(below)]
    queue = [Node(tree.root.store, row).state for row in tree._leaves.queue]
    assert queue and set(queue) == waiting - {below.state} and below.state not in queue
    assert not tree.move_to(GAME.init(), np.ones(9, bool), None) and not tree._leaves.queue


def test_moves_to_which_the_policies_give_nothing_are_searched_only_where_no_other_is_left():
    def corners(positions):
        odds = np.stack(
            [position.legal * np.isin(np.arange(9), (0, 2, 6, 8)) for position in positions]
        ).astype(np.float32)
        return odds / np.maximum(odds.sum(axis=1, keepdims=True), 1), np.zeros(len(positions))

    def behind(positions):
        return np.array([-0.5 if position.to_play == 0 else 0.5 for position in positions])

    tree = tree_at(policy=corners, tree=corners, rollout=behind, threshold=0)
    search(tree, 300)
    assert sorted(tree.root.evaluation.actions) == [0, 2, 6, 8]
    free = []
    for node in nodes_below(tree.root):
        legal = set(np.flatnonzero(legal_at(node)).tolist())
        free.append(legal & {0, 2, 6, 8})
        assert set(node.evaluation.actions.tolist()) == (free[-1] or legal)
    assert not all(free), "some positions below have no free corner"


@pytest.mark.parametrize(("fpu", "seen"), [("zero", 9), ("parent", 3)])
def test_a_side_that_is_behind_looks_at_every_move_once_unless_the_others_count_for_it(fpu, seen):
    def lost(positions):
        odds = np.stack([position.legal * 0.1 ** np.arange(9.0) for position in positions])
        behind = [-0.9 if position.to_play == 0 else 0.9 for position in positions]
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32), np.array(
            behind, np.float32
        )

    def lost_rollouts(positions):
        return np.full(len(positions), -0.9)

    settings = {"batch": 1, "threshold": 1000, "c_puct": 1.0, "fpu": fpu}
    tree = tree_at((), lost, lost, lost, lost_rollouts, **settings)
    search(tree, 30)
    assert tree.root.tried == seen


def test_the_search_goes_on_where_the_most_visited_is_not_the_best():
    rule, root = AlphaGo2016(mixing=1.0), tree_at(batch=1).root
    root.store.reserve_descents(2)
    for _ in range(2):
        add_edge(root.store.columns, root.row)
    root.visits[:2], root.sums[:2] = [50, 20], [10, 10]
    assert rule.order(root) == [0, 1] and not is_most_visited_best(root, rule)
    root.sums[1] = 1
    assert rule.order(root) == [0, 1] and is_most_visited_best(root, rule)


def test_impossible_settings_are_named():
    with pytest.raises(ValueError, match=r"mixing lies in \[0, 1\], not 1.5"):
        AlphaGo2016(mixing=1.5)
    with pytest.raises(ValueError, match="fpu is zero or parent, not half"):
        AlphaGo2016(fpu="half")
    with pytest.raises(ValueError, match="policy-batch is at least 1, not 0"):
        MixSettings(policy_batch=0)
