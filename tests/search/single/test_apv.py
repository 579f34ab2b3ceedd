"""The search of AlphaGo (2016) on tic-tac-toe with judges whose answers are known."""

import numpy as np
import pytest

from azero.games.table import make
from azero.search.single.apv import ApvNode, ApvSettings, ApvTree, Judges, choose_edge
from azero.search.single.packed import PackedRules

GAME = make("tictactoe")
RULES = PackedRules(GAME, 8)


def even(positions):
    policies = np.stack([position.legal / position.legal.sum() for position in positions]).astype(np.float32)
    return policies, np.zeros(len(positions), np.float32)


def judges(policy=even, value=even, rollout=even):
    return Judges(policy, value, rollout)


def tree_at(moves=(), asked=None, **settings):
    tree = ApvTree(RULES, asked or judges(), ApvSettings(**{"batch": 8, "threshold": 4, **settings}))
    state = GAME.init()
    for move in moves:
        state = GAME.step(state, move)
    tree.move_to(state, np.asarray(GAME.legal_action_mask(state)), None)
    return tree


def search(tree, descents):
    done = 0
    while done < descents:
        done += tree.search(descents - done)


def all_nodes(tree):
    found, todo = [], [tree.root]
    while todo:
        node = todo.pop()
        found.append(node)
        todo.extend(child for child in node.children if isinstance(child, ApvNode))
    return found


@pytest.mark.parametrize("mixing", [0.0, 0.5, 1.0])
def test_it_finds_the_win_and_the_only_defence_by_exact_results(mixing):
    # X X .      X X .     X wins with the third; O must take it
    # O O .      . O .
    win = tree_at((0, 3, 1, 4), mixing=mixing)
    search(win, 200)
    assert win.root.actions[choose_edge(win.root, mixing)[0]] == 2
    defence = tree_at((0, 4, 1), mixing=mixing)
    search(defence, 600)
    assert defence.root.actions[choose_edge(defence.root, mixing)[0]] == 2


def test_virtual_losses_are_all_taken_back():
    tree = tree_at(batch=8)
    search(tree, 203)
    assert tree.root.rollouts.sum() == 203
    for node in all_nodes(tree):
        assert (abs(node.rollout_sums) <= node.rollouts + 1e-9).all() and (node.rollouts >= 0).all()
        assert np.array_equal(node.rollouts, np.round(node.rollouts))


def test_both_judges_count_apart_and_a_leaf_is_valued_once():
    calls = []

    def value(positions):
        calls.extend(position.state for position in positions)
        return even(positions)[0], np.full(len(positions), 0.25, np.float32)

    def rollout(positions):
        return even(positions)[0], np.full(len(positions), -1.0, np.float32)

    tree = tree_at(asked=judges(value=value, rollout=rollout), batch=1, threshold=1000)
    search(tree, 90)
    assert len(calls) == len(set(calls)) == 9
    assert tree.root.values.tolist() == [1.0] * 9 and tree.root.rollouts.tolist() == [10.0] * 9
    np.testing.assert_allclose(tree.root.action_values(0.0), -0.25)  # for the other side
    np.testing.assert_allclose(tree.root.action_values(1.0), 1.0)
    np.testing.assert_allclose(tree.root.action_values(0.5), 0.375)


def test_an_edge_gets_a_node_above_the_threshold_and_the_priors_are_softened_by_beta():
    def lopsided(positions):
        odds = np.stack([position.legal * np.arange(1.0, 10.0) for position in positions])
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32), np.zeros(len(positions), np.float32)

    tree = tree_at(asked=judges(policy=lopsided), batch=1, threshold=6)
    search(tree, 150)
    expected = np.arange(1.0, 10.0) ** 0.67
    np.testing.assert_allclose(tree.root.priors, expected / expected.sum(), rtol=1e-5)
    for count, child in zip(tree.root.rollouts, tree.root.children, strict=True):
        assert isinstance(child, ApvNode) == (count > 6)
    assert tree.num_nodes == len(all_nodes(tree)) > 2


def test_a_new_node_has_the_tree_policys_priors_until_its_turn_in_the_queue():
    def first_move(positions):
        policies = even(positions)[0] * 0 + 1e-3
        for row, position in zip(policies, positions, strict=True):
            row[np.flatnonzero(position.legal)[0]] = 1.0
        return policies, np.zeros(len(positions), np.float32)

    tree = tree_at(asked=judges(rollout=first_move), batch=8, threshold=0, policy_batch=1)
    tree.search(8)
    nodes = [node for node in all_nodes(tree) if node is not tree.root]
    assert sum(node.is_settled for node in nodes) == 1 < len(nodes)
    waiting = next(node for node in nodes if not node.is_settled)
    assert waiting.priors[0] > 0.9 and np.allclose(next(node for node in nodes if node.is_settled).priors, 1 / 8)
    adaptive = tree_at(batch=8, threshold=0, policy_batch=1, is_adaptive=True)
    adaptive.search(8)
    assert adaptive.threshold == 1


def test_the_tree_is_kept_and_the_waiting_nodes_below_it():
    tree = tree_at(threshold=2)
    search(tree, 300)
    edge, _ = choose_edge(tree.root, 0.5)
    action, below = int(tree.root.actions[edge]), tree.root.children[edge]
    state = GAME.step(GAME.init(), action)
    assert tree.move_to(state, np.asarray(GAME.legal_action_mask(state)), [action])
    assert tree.root is below and tree.root.is_settled
    assert not tree.move_to(GAME.init(), np.ones(9, bool), None)


def test_moves_to_which_the_policies_give_nothing_are_searched_only_where_no_other_is_left():
    def corners(positions):
        odds = np.stack([position.legal * np.isin(np.arange(9), (0, 2, 6, 8)) for position in positions]).astype(np.float32)
        return odds / np.maximum(odds.sum(axis=1, keepdims=True), 1), np.full(len(positions), -0.5, np.float32)

    tree = tree_at(asked=judges(policy=corners, rollout=corners), threshold=0)
    search(tree, 300)
    assert tree.root.actions.tolist() == [0, 2, 6, 8]
    nodes = all_nodes(tree)
    left = [set(np.flatnonzero(node.position.legal)) & {0, 2, 6, 8} for node in nodes]
    assert all(set(node.actions) == (corners or set(np.flatnonzero(node.position.legal))) for node, corners in zip(nodes, left, strict=True))
    assert not all(left), "some positions below have no free corner"


@pytest.mark.parametrize(("fpu", "seen"), [("zero", 9), ("parent", 3)])
def test_a_side_that_is_behind_looks_at_every_move_once_unless_the_others_count_for_it(fpu, seen):
    def lost(positions):
        odds = np.stack([position.legal * 0.1 ** np.arange(9.0) for position in positions])
        behind = [-0.9 if position.to_play == 0 else 0.9 for position in positions]
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32), np.array(behind, np.float32)

    tree = tree_at(asked=judges(lost, lost, lost), batch=1, threshold=1000, c_puct=1.0, fpu=fpu)
    search(tree, 30)
    assert np.count_nonzero(tree.root.rollouts) == seen


def test_the_search_goes_on_where_the_most_visited_is_not_the_best():
    tree = tree_at(batch=1, threshold=1000)
    root = tree.root
    root.rollouts[:3], root.rollout_sums[:3] = [50, 20, 0], [10, 10, 0]
    assert choose_edge(root, 1.0) == (0, False)
    root.rollout_sums[1] = 1
    assert choose_edge(root, 1.0) == (0, True)


def test_impossible_settings_are_named():
    with pytest.raises(ValueError, match=r"mixing lies in \[0, 1\], not 1.5"):
        ApvSettings(mixing=1.5)
    with pytest.raises(ValueError, match="fpu is zero or parent, not half"):
        ApvSettings(fpu="half")
    with pytest.raises(ValueError, match="policy-batch is at least 1, not 0"):
        ApvSettings(policy_batch=0)
