"""Openings in the self-play games of a run."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from replay_games import random_games

from azero.commands.opening_counts import count_openings
from azero.data.run_files import write_config
from azero.data.shard import pack_games, pack_positions, shard_path, write_shard
from azero.evaluate.chess_openings import opening_keys
from azero.experiment import load
from azero.selfplay.targets import policy_room


@pytest.mark.parametrize("has_auxiliary", [False, True])
def test_games_are_counted_by_parts_of_the_run(tmp_path: Path, has_auxiliary: bool) -> None:
    config = load("chess").config
    learner = dataclasses.replace(config.learner, moves_left_weight=float(has_auxiliary))
    write_config(tmp_path, dataclasses.replace(config, learner=learner))
    game, keys = config.game.build(), opening_keys()
    for number in range(6):
        games = random_games(np.random.default_rng(number), [3, 2], game.frame_words)
        games.frame[1] = keys[number]
        rows = pack_positions(games, policy_room(game), 64 if has_auxiliary else None)
        path = shard_path(tmp_path / "replay", 0, number)
        path.parent.mkdir(exist_ok=True)
        write_shard(path, rows, pack_games(games), {"game": "chess"})
    reached, played = count_openings(tmp_path)
    assert played.tolist() == [4, 2, 2, 2, 2]
    assert [np.flatnonzero(part).tolist() for part in reached] == [[0, 1], [2], [3], [4], [5]]
