"""Last good replies in rollouts, against a plain Python version."""

import numpy as np

from azero.games.go.rollouts.replies import learn_replies, no_replies
from azero.games.go.rollouts.rollouts import Rollouts, Starts
from azero.networks.rollout import GROUPS, init_weights

BATCH = 6
CENTRE = np.array([2, 2, 2, 2, 0, 2, 2, 2, 2])
STARTS = Starts(
    np.tile(np.stack([CENTRE, np.full(9, 2)]).astype(np.int64), (BATCH, 1, 1)),
    np.ones(BATCH, np.int64),
    np.zeros(BATCH, np.int64),
)
"""White to move on 3x3, after Black took the centre."""


def rollouts(table=None, **settings):
    made = Rollouts((3, 3), init_weights(GROUPS[:6], pattern_bits=4), **settings)
    if table is not None:
        made.table = table
    return made


def learn_slowly(table, points, first_is_white, before, result):
    """Go through the games move by move, side by side."""
    table = table.copy()
    none = table.shape[1] - 1
    for ply in range(len(points)):
        moves = []
        for game in range(points.shape[1]):
            previous, move = (
                (before[game] if ply == 0 else points[ply - 1, game]),
                points[ply, game],
            )
            is_white = bool(first_is_white[game]) ^ (ply % 2 == 1)
            gain = -result[game] if is_white else result[game]
            if previous != none and move != none:
                moves.append((int(is_white), previous, move + 1, gain))
        as_it_was = table.copy()
        for colour, previous, reply, gain in moves:
            if gain < 0 and as_it_was[colour, previous] == reply:
                table[colour, previous] = 0
        for colour, previous, reply, gain in moves:
            if gain > 0:
                table[colour, previous] = reply
    return table


def test_the_table_is_that_of_a_plain_version():
    random = np.random.default_rng(0)
    table = no_replies(9)
    seen_forgetting = False
    for _ in range(40):
        moves = random.integers(0, 10, (BATCH, 13)).astype(np.int32)
        first, result = (
            random.integers(0, 2, BATCH),
            random.integers(-1, 2, BATCH).astype(np.int32),
        )
        expected = learn_slowly(table, moves[:, 1:].T, first == 1, moves[:, 0], result)
        found = learn_replies(table, moves, first, result)
        np.testing.assert_array_equal(found, expected)
        seen_forgetting |= bool(((table > 0) & (expected == 0)).any())
        table = expected
    assert seen_forgetting


def test_a_known_reply_is_played_where_it_is_allowed_and_nothing_else():
    leads, moves = rollouts().begin(STARTS)()
    assert moves.shape == (BATCH, 19) and moves[:, 0].tolist() == [4] * BATCH
    assert len(set(moves[:, 1].tolist())) > 1
    known, occupied = no_replies(9), no_replies(9)
    known[1, 4], occupied[1, 4] = 1 + 7, 1 + 4
    assert rollouts(known).begin(STARTS)().moves[:, 1].tolist() == [7] * BATCH, "White answers B1"
    again = rollouts(occupied).begin(STARTS)()
    np.testing.assert_array_equal(again.moves, moves)
    np.testing.assert_array_equal(again.leads, leads)


def test_the_table_goes_from_call_to_call_and_only_where_replies_are_wanted():
    remembering, other = rollouts(reply_komi=0.5), rollouts()
    leads, moves = remembering.begin(STARTS)()
    result = np.where(leads > 0.5, 1, -1)
    expected = learn_slowly(
        np.zeros((2, 10), int), moves[:, 1:].T, np.ones(BATCH, bool), moves[:, 0], result
    )
    np.testing.assert_array_equal(remembering.table, expected)
    other.begin(STARTS)()
    assert remembering.table.any() and not other.table.any()
    followed = remembering.begin(STARTS)().moves[:, 1]
    reply = expected[1, 4] - 1
    assert reply < 0 or followed.tolist() == [reply] * BATCH
