"""Several board sizes in one run: what is played and learned when, checkpoints, refusals."""

import collections
import dataclasses

import numpy as np
import pytest
from small_runs import digests, quiet_run, tiny

from azero import mesh as mesh_lib
from azero.data.rows import read_rows
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.networks.settings import PooledConfig, ResNetConfig
from azero.train.boards import draw_size
from azero.train.loop import Loop
from azero.train.selfplay_run import make_selfplay_stage
from azero.train.settings import RunConfig

SIZES = ((0, 3, 0.75), (4, 3, 0.25), (4, 2, 0.25))


def small(iterations=2, **game):
    """4x4 and 3x3 Go, with a network that fits both and sees the komi."""
    config = tiny(load("go5").config, iterations)
    rules = GoConfig(
        size=(4,), planes=19, selfplay_komis=(0.5, 2.5), selfplay_sizes=SIZES[:1], max_moves=12
    )
    return dataclasses.replace(
        config,
        game=dataclasses.replace(rules, **game),
        network=PooledConfig(blocks=2, filters=4, value_hidden=8, head_filters=2),
        selfplay=dataclasses.replace(config.selfplay, moves_per_dispatch=10, resign=True),
        learner=dataclasses.replace(config.learner, ownership_weight=1.0, score_weight=0.02),
        evaluation=dataclasses.replace(config.evaluation, every=0),
        run=RunConfig(iterations=iterations, seed=1),
    )


def test_the_shares_of_the_sizes_shift_over_a_run() -> None:
    config = small(selfplay_sizes=SIZES)
    everything = [None, 3, 2]
    for iteration, expected in ((3, {3: 0.75, None: 0.25}), (4, {3: 0.25, 2: 0.25, None: 0.5})):
        drawn = [draw_size(config, iteration, number, everything) for number in range(2000)]
        counts = collections.Counter(drawn)
        assert set(counts) == set(expected)
        for size, share in expected.items():
            assert counts[size] / 2000 == pytest.approx(share, abs=0.04)
        assert drawn == [draw_size(config, iteration, n, everything) for n in range(2000)]
    assert draw_size(config, 0, 0, [2]) == 2, "what has positions is learned, whatever its share"
    assert draw_size(small(selfplay_sizes=()), 0, 0, everything) is None


@pytest.mark.usefixtures("shared_programs", "two_devices", "without_reports")
def test_both_boards_are_played_learned_and_resumed(tmp_path) -> None:
    config = small()
    assert quiet_run("go5", config, tmp_path / "whole") == 0
    assert quiet_run("go5", small(iterations=1), tmp_path / "parts") == 0
    assert quiet_run("go5", config, tmp_path / "parts") == 0
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    rows = read_rows(tmp_path / "whole" / "metrics.jsonl")
    sizes = [row.get("board_size") for row in rows]
    assert sizes == [draw_size(config, number, number, [3, None]) for number in range(2)]
    assert sizes == [3, None]
    assert rows[-1]["steps"] > 0
    for folder in ("replay", "boards/3x3/replay"):
        assert list((tmp_path / "whole" / folder).glob("*.shard"))


@pytest.mark.usefixtures("shared_programs", "two_devices", "without_reports")
def test_going_back_sets_the_games_of_every_board_aside(tmp_path) -> None:
    config = small(iterations=4)
    quiet_run("go5", config, tmp_path)
    folder = tmp_path / "boards" / "3x3" / "replay"
    before = {path.name: path.read_bytes() for path in folder.glob("*.shard")}
    again = dataclasses.replace(config, run=RunConfig(iterations=2, seed=1))
    assert quiet_run("go5", again, tmp_path, from_checkpoint=2) == 0
    kept = {path.name for path in folder.glob("*.shard")}
    aside = tmp_path / "set-aside" / "after-2" / "boards" / "3x3" / "replay"
    moved = {path.name: path.read_bytes() for path in aside.glob("*.shard")}
    assert moved == {name: content for name, content in before.items() if name not in kept}
    assert kept and moved


def test_batches_are_of_one_board_each(tmp_path) -> None:
    loop = Loop(small(), mesh_lib.make_mesh(), tmp_path)
    state = loop.make_state(loop.fresh_arrays())
    state.others[3].resign.add(np.full(300, -0.75, np.float32))
    while not all(board.replay.count_positions() for board in state.every_board):
        *_, done = loop.iterate(state)
        board = state if done.board_size is None else state.others[3]
        assert done.resign_threshold == board.resign.threshold
    seen = collections.Counter()
    with loop._batches(state, 40) as batches:
        for chosen, samples in batches:
            seen[chosen.game.board_shape] += 1
            # A pass is the last action, and its number depends on the board.
            actions = (samples.policy >> 16) & 0x7FFF
            assert int(actions.max()) <= chosen.game.num_actions - 1
    assert set(seen) == {(4, 4), (3, 3)} and 20 < seen[3, 3] < 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"selfplay_sizes": ((0, 4, 0.5),)}, r"none is game.size"),
        ({"selfplay_sizes": ((0, 3, 0.7), (5, 2, 0.4))}, r"not to 1.1 from iteration 5 on"),
        ({"selfplay_sizes": ((-1, 3, 0.5),)}, r"at iteration 0 or later, not at -1"),
        ({"selfplay_sizes": ((0, 3, -0.5),)}, r"shares of game.selfplay-sizes are at least 0"),
    ],
)
def test_shares_that_are_none_are_refused(change, message) -> None:
    with pytest.raises(ValueError, match=message):
        small(**change)


def test_runs_that_cannot_have_several_boards_are_refused(tmp_path) -> None:
    config = dataclasses.replace(small(), network=ResNetConfig(blocks=2, filters=4))
    with pytest.raises(ValueError, match=r"network that fits any board .* alphago_zero fits one"):
        Loop(config, mesh_lib.make_mesh(), tmp_path)
    with pytest.raises(ValueError, match=r"with --cluster a run has one board size"):
        make_selfplay_stage(small(), tmp_path, backend=lambda *_: None)
