"""The counts of self-play that a run reports."""

import numpy as np
from replay_games import random_games

from azero.train.events import SelfplayTally


def test_a_resignation_is_no_move_of_a_game() -> None:
    games = random_games(np.random.default_rng(0), [3, 1, 5])
    games.action[games.starts + games.length - 1] = [-1, -1, 0]  # the first two are resigned
    tally = SelfplayTally()
    tally.add(games._replace(resigned=np.array([True, True, False])), 9, 0)
    assert (tally.games, tally.resigned, tally.plies) == (3, 2, 7)
    assert [len(sample.actions) for sample in tally.samples] == [2, 0]
