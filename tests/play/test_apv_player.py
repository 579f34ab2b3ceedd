"""The player of AlphaGo (2016) on tic-tac-toe."""

import numpy as np
import pytest

from azero.games import make
from azero.play.apv_player import ApvPlayer, ApvStyle
from azero.play.clock import Clock
from azero.play.player import RESIGN, Position
from azero.play.thinking import Limits
from azero.search.apv import ApvSettings, Judges

GAME = make("tictactoe")
SETTINGS = ApvSettings(batch=4, threshold=3)


def ask(positions):
    policies = np.stack([position.legal / position.legal.sum() for position in positions]).astype(np.float32)
    return policies, np.zeros(len(positions), np.float32)


def position_after(*moves):
    position = Position.start(GAME)
    for move in moves:
        position = position.play(move)
    return position


def player(**style):
    return ApvPlayer(GAME, Judges(ask, ask, ask), settings=SETTINGS, style=ApvStyle(**{"limits": Limits(playouts=200), **style}))


def test_it_plays_the_win():
    decision = player().choose(position_after(0, 3, 1, 4), Clock())
    assert decision.action == 2 and decision.value > 0.5


def test_it_resigns_a_lost_game_and_only_if_told_so():
    lost = position_after(0, 1, 4, 8, 3)  # X threatens 5 and 6
    many = {"limits": Limits(playouts=2000)}
    assert player(**many).choose(lost, Clock()).action == RESIGN
    assert player(**many, resign_threshold=None).choose(lost, Clock()).action in (5, 6, 2, 7)


def test_a_search_is_extended_where_the_most_visited_move_is_not_the_best():
    def judge(positions):
        return ask(positions)[0], np.array([1.0 if position.legal[8] else -0.9 for position in positions], np.float32)

    one = ApvPlayer(GAME, Judges(ask, judge, judge), settings=ApvSettings(batch=1, threshold=1000), style=ApvStyle(limits=Limits(playouts=12)))
    analysis = one.think(position_after(), Limits(playouts=12))
    assert analysis.moves[0].action == 8
    assert 12 <= analysis.playouts <= 18


def test_the_tree_is_kept_from_move_to_move_and_forgotten_on_reset():
    one = player()
    first = one.think(position_after(), Limits(playouts=400))
    line = first.moves[0].line
    assert len(line) >= 2
    second = one.think(position_after(*line[:2]), Limits(playouts=10))
    assert second.visits > second.playouts
    one.reset()
    assert one.think(position_after(*line[:2]), Limits(playouts=10)).visits <= 15


def test_limits_on_moves_and_visits():
    analysis = player().think(position_after(), Limits(visits=40), allowed=[2, 6])
    assert {move.action for move in analysis.moves} <= {2, 6} and analysis.visits >= 40
    with pytest.raises(ValueError, match="none of the allowed moves is legal after 1 moves"):
        player().think(position_after(4), Limits(visits=40), allowed=[4])
