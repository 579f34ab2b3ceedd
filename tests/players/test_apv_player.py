"""The player of AlphaGo (2016) on tic-tac-toe."""

import dataclasses

import jax
import numpy as np
import pytest

from azero.games.go.rules import Go
from azero.games.position import Position
from azero.games.table import make
from azero.players.alphago2016 import make_rollouts
from azero.players.clock import Clock
from azero.players.play_style import ALPHAGO2016
from azero.players.player import RESIGN
from azero.players.thinking import Limits, Restriction, ThinkOptions
from azero.players.tree_player import TreePlayer
from azero.search.leaf import symmetry_network_leaf
from azero.search.single.mixed import MixedEvaluator, MixSettings, make_evaluate_fn
from azero.search.single.parallel import TreeSettings
from azero.search.single.selection import AlphaGo2016
from azero.train.alphago2016.config import SizesConfig

GAME = make("tictactoe")


def ask(positions):
    policies = np.stack([position.legal / position.legal.sum() for position in positions]).astype(
        np.float32
    )
    return policies, np.zeros(len(positions), np.float32)


def draw(positions):
    return np.zeros(len(positions))


def begun(ask):
    """Return an answering function as one that begins and waits."""
    return lambda positions: lambda: ask(positions)


def position_after(*moves):
    position = Position.start(GAME)
    for move in moves:
        position = position.play(move)
    return position


def make_player(
    game=GAME,
    policy=ask,
    value=ask,
    tree=ask,
    rollout=draw,
    *,
    batch=4,
    threshold=3,
    policy_batch=2,
    mixing=0.5,
    **style,
):
    mix = MixSettings(uses_values=mixing < 1, threshold=threshold, policy_batch=policy_batch)
    settings = TreeSettings(batch=batch, rule=AlphaGo2016(mixing=mixing), virtual_loss=3)
    chosen = dataclasses.replace(ALPHAGO2016, **{"limits": Limits(playouts=200), **style})
    asks = [begun(each) for each in (policy, value, tree, rollout)]
    evaluator = MixedEvaluator(*asks, mix, batch)
    return TreePlayer(game, evaluator, settings=settings, style=chosen, name="alphago2016")


def test_it_plays_the_win():
    won = position_after(0, 3, 1, 4)
    decision = make_player().choose(won, Clock())
    assert decision.action == 2
    analysis = make_player().think(won, Limits(playouts=200))
    assert analysis.moves[0].action == 2 and analysis.value > 0.5, "and found by the search, too"


def test_the_policy_it_reports_is_the_networks_own():
    """Figure 5d of the paper, KataGo's protocol and the page in the browser show it; the search
    begins with p ** beta."""

    def lopsided(positions):
        odds = np.stack([position.legal * np.arange(1.0, 10.0) for position in positions])
        policies = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
        return policies, np.zeros(len(positions), np.float32)

    player = make_player(policy=lopsided)
    for moves in ((), (8, 7)):  # the second time the tree is kept
        position = position_after(*moves)
        analysis = player.think(position, Limits(playouts=200))
        own, _ = player.evaluate(position)
        np.testing.assert_allclose(analysis.raw_policy, own, rtol=1e-5)
        assert analysis.moves[0].prior != pytest.approx(own[analysis.moves[0].action])


def test_it_passes_after_a_pass_that_leaves_it_the_winner_and_only_then():
    game, last = Go(size=5, komi=0.5), 25
    blacks = [move for point in (2, 7, 12, 17, 22) for move in (point, last)]
    whites = [move for point in (2, 7, 12, 17) for move in (last, point)]
    for moves, passes in ((blacks, True), ([*whites, 0, last], False)):
        one = make_player(game, limits=Limits(playouts=8), resign_threshold=None)
        position = Position.start(game)
        for move in moves:
            position = position.play(move)
        decision = one.choose(position, Clock())
        assert (decision.action == 25, decision.value == 1.0) == (passes, passes)


def test_it_resigns_a_lost_game_and_only_if_told_so():
    lost = position_after(0, 1, 4, 8, 3)  # X threatens 5 and 6
    many = {"limits": Limits(playouts=2000)}
    assert make_player(**many).choose(lost, Clock()).action == RESIGN
    assert make_player(**many, resign_threshold=None).choose(lost, Clock()).action in (5, 6, 2, 7)


def test_a_search_is_extended_where_the_most_visited_move_is_not_the_best():
    def behind(positions):
        return ask(positions)[0], np.array(
            [1.0 if position.legal[8] else -0.9 for position in positions], np.float32
        )

    def rollout(positions):
        signs = [1 - 2 * position.to_play for position in positions]
        return signs * behind(positions)[1]

    one = make_player(value=behind, rollout=rollout, batch=1, threshold=1000)
    analysis = one.think(position_after(), Limits(playouts=12))
    assert analysis.moves[0].action == 8
    assert 12 <= analysis.playouts <= 18


def test_the_tree_is_kept_from_move_to_move_and_forgotten_on_reset():
    one = make_player()
    first = one.think(position_after(), Limits(playouts=400))
    line = first.moves[0].line
    visits = first.moves[0].line_visits
    assert (
        len(line) == len(visits) >= 2
        and visits[0] == first.moves[0].visits
        and list(visits) == sorted(set(visits), reverse=True)
    )
    second = one.think(position_after(*line[:2]), Limits(playouts=10))
    assert second.visits > second.playouts
    one.reset()
    assert one.think(position_after(*line[:2]), Limits(playouts=10)).visits <= 15


def test_limits_on_moves_and_visits():
    analysis = make_player().think(
        position_after(),
        Limits(visits=40),
        ThinkOptions(restriction=Restriction.first_move([2, 6], 0, 9)),
    )
    assert {move.action for move in analysis.moves} <= {2, 6} and analysis.visits >= 40
    with pytest.raises(ValueError, match="no legal move is left to search after 1 moves"):
        make_player().think(
            position_after(4),
            Limits(visits=40),
            ThinkOptions(restriction=Restriction.first_move([4], 1, 9)),
        )


def test_a_restriction_holds_down_to_its_depth():
    one, position = make_player(), position_after(0, 3, 8, 4)  # O threatens 5
    assert one.think(position, Limits(visits=400)).moves[0].action == 5
    analysis = one.think(
        position,
        Limits(visits=400),
        ThinkOptions(restriction=Restriction.none(9).avoiding(1, [5], 4)),
    )
    lines = [move.line for move in analysis.moves]
    assert all(5 not in line[1::2] for line in lines) and max(map(len, lines)) > 2
    lines = [
        move.line
        for move in one.think(
            position,
            Limits(visits=100),
            ThinkOptions(restriction=Restriction.none(9).allowing(1, [], 2)),
        ).moves
    ]
    assert {len(line) for line in lines} == {1}, (
        "without a move that may be searched a position stays a leaf"
    )


def test_rollouts_count_under_the_komi_of_the_position():
    def three_points_for_black(positions):
        return np.full(len(positions), 3.0)

    one = make_player(Go(size=3, komi=0.5), rollout=three_points_for_black, mixing=1.0)
    for komi, value in ((2.5, 1.0), (3.5, -1.0), (3.0, 0.0)):
        analysis = one.think(Position.start(Go(size=3, komi=komi)), Limits(visits=12))
        assert analysis.value == value and all(move.value == value for move in analysis.moves)


def test_memory_bounds_the_tree_and_warming_up_asks_everyone():
    asked = []

    def noted(name, answer=ask):
        def noted_ask(positions):
            asked.append((name, len(positions)))
            return answer(positions)

        return noted_ask

    one = make_player(
        policy=noted("policy"),
        value=noted("value"),
        tree=noted("tree"),
        rollout=noted("rollout", answer=draw),
    )
    one.warm_up(position_after())
    assert sorted(asked) == [
        ("policy", 1),
        ("policy", 2),
        ("rollout", 1),
        ("tree", 1),
        ("tree", 2),
        ("tree", 4),
        ("value", 1),
        ("value", 2),
        ("value", 4),
    ]
    whole = one.think(position_after(), Limits(playouts=400)).playouts
    one.limit_memory(0)
    assert one.think(position_after(), Limits(playouts=400)).playouts < whole == 400


def untrained(name, planes):
    """Return an untrained network of 2016 on 5x5, its game and its inference."""
    game = Go(size=5, komi=0.5, num_planes=planes)
    config = SizesConfig(
        blocks=1,
        filters=4,
        value_hidden=8,
        pattern_bits=8,
        train_dtype="float32",
        inference_dtype="float32",
        convolution="xla",
    ).of(name)
    network = config.build(game)
    return game, network.infer, network.fold(network.init(jax.random.key(0)))


@pytest.mark.slow
def test_all_its_parts_together_know_who_is_ahead():
    asks = [
        make_evaluate_fn(game, symmetry_network_leaf(game, infer), params, batch=8, seed=0)
        for game, infer, params in (
            untrained(name, planes)
            for name, planes in (("policy2016", 4), ("value2016", 4), ("tree2016", 10))
        )
    ]
    game = Go(size=5, komi=0.5)
    rollout = make_rollouts(game, untrained("rollout2016", 6)[2], has_replies=False, seed=0)
    mix = MixSettings(uses_values=False, threshold=8, policy_batch=16)
    settings = TreeSettings(batch=8, rule=AlphaGo2016(mixing=1.0), virtual_loss=3)
    evaluator = MixedEvaluator(*asks, rollout, mix, 8)
    one = TreePlayer(game, evaluator, settings=settings, style=ALPHAGO2016, name="alphago2016")
    # . O X . X     White's five stones have one liberty, which White cannot fill.
    # O O X X X
    # O X X . .
    # O X . . .
    # X . . . .
    black, white = [2, 4, 7, 8, 9, 11, 12, 16, 20], [1, 5, 6, 10, 15]
    position = Position.of_state(game, game.setup(black, white, 0))
    analysis = one.think(position, Limits(playouts=240))
    assert analysis.value > 0.5 and position.legal[[move.action for move in analysis.moves]].all()
    assert analysis.visits >= 240 and abs(analysis.raw_policy.sum() - 1.0) < 1e-5
    assert one.evaluate(position)[0].shape == (26,)
