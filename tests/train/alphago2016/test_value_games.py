"""Positions for the value network: one of each game, where it is due, and how they lie on disk."""

import dataclasses

import jax
import numpy as np
import pytest

from azero.data.records.dataset import Dataset
from azero.data.records.filters import Filters, Fractions
from azero.data.records.recorded import pack_decorrelated, pack_whole
from azero.data.settings import ReplayConfig
from azero.evaluate.accuracy import clustered_mean
from azero.games.go.settings import GoConfig
from azero.games.table import make
from azero.mesh import make_mesh
from azero.networks.settings import Policy2016Config
from azero.selfplay.policy_games import Decorrelated, Trace
from azero.settings import Config
from azero.train.alphago2016.config import ValueDataConfig
from azero.train.alphago2016.value_games import SelfPlayer, ValueGames, draw_turns

CONFIG = Config(
    game=GoConfig(size=(5,), komi=0.5, max_moves=20, planes=4),
    network=Policy2016Config(
        blocks=1, filters=2, convolution="xla", train_dtype="float32", inference_dtype="float32"
    ),
)
SETTINGS = ValueDataConfig(positions=48, last_random_move=24, num_games=16, games_per_shard=32)
GAME = make("go", **CONFIG.game.options())


def player(bias: np.ndarray) -> SelfPlayer:
    """A policy that does not look at the board: its logits are `bias`."""
    network = CONFIG.network.build(GAME)
    variables = jax.device_get(network.init(jax.random.key(0)))
    head = {
        "kernel": np.zeros_like(variables["params"]["head"]["kernel"]),
        "bias": bias.astype(np.float32),
    }
    return SelfPlayer({"params": {**variables["params"], "head": head}, "batch_stats": {}}, CONFIG)


@pytest.fixture(scope="module")
def maker() -> ValueGames:
    """The first policy plays the points in their order, the second one in the opposite order."""
    order = np.arange(25) * 40.0
    return ValueGames(SETTINGS, "one", player(-order), player(order), make_mesh())


@pytest.fixture(scope="module")
def made(maker):
    return maker.make(0, 48)


def boards_of(rows) -> np.ndarray:
    """Return int[R, 25]: 1 for Black, -1 for White."""
    bits = (rows["frame"][:, :, None] >> np.arange(32, dtype=np.uint32)) & 1
    return bits[:, 0, :25].astype(int) - bits[:, 1, :25].astype(int)


def test_the_random_move_is_evenly_distributed():
    settings = dataclasses.replace(SETTINGS, games_per_shard=16 * 3000)
    turns = draw_turns(settings, 25, 0)
    assert (turns.min(), turns.max()) == (1, 24) and (np.diff(turns) >= 0).all()
    counts = np.bincount(turns, minlength=25)[1:]
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000), (
        "24 cells of 2,000: five standard deviations"
    )
    assert np.array_equal(
        draw_turns(settings, 25, 1), draw_turns(settings, 25, 1)
    ) and not np.array_equal(draw_turns(settings, 25, 1), turns)


def test_the_last_random_move_is_the_papers_in_proportion():
    assert (
        ValueDataConfig().latest(361) == 450
        and ValueDataConfig().latest(81) == 101
        and SETTINGS.latest(81) == 24
    )


def test_each_game_gives_one_position_and_late_ones_none(made):
    turns = draw_turns(SETTINGS, 25, 0)
    assert (
        made.played == 32 and len(made.games.length) == (turns < CONFIG.game.max_moves).sum() < 32
    ), "a position after the last move is the end of the game"
    assert (made.games.length == GAME.num_frames).all() and len(made.rows) == GAME.num_frames * len(
        made.games.length
    )
    assert made.rows["ply"][7::8].tolist() == turns[turns < CONFIG.game.max_moves].tolist()
    assert not made.rows["flags"].any() and set(np.unique(made.rows["value"])) <= {-1.0, 1.0}


def test_the_moves_before_the_random_one_are_the_first_policys(made):
    """It fills the points in their order."""
    plies, boards = made.rows["ply"][7::8], boards_of(made.rows[6::8])
    assert (plies <= 5).any()
    for ply, before in zip(plies[plies <= 5], boards[plies <= 5], strict=True):
        assert before.tolist() == [
            1 - 2 * (point % 2) if point < ply - 1 else 0 for point in range(25)
        ]
    assert made.rows["to_play"][7::8].tolist() == (plies % 2).tolist()


def test_a_replay_draws_the_positions_alone_with_their_past(made, tmp_path):
    dataset = Dataset.create(tmp_path, Filters(size=(5,)), Fractions(), rows_per_position=8)
    dataset.append(
        "train", made.rows, made.games, [f"game {number}" for number in made.games.number]
    )
    dataset.append(
        "train", made.rows, made.games, [f"game {number}" for number in made.games.number]
    )
    assert Dataset.open(tmp_path) == dataset and len(dataset.rows("train", most=1)) == len(
        made.rows
    )
    replay = dataset.open_split("train", GAME, ReplayConfig(symmetries=False))
    assert replay.count_positions() == 2 * len(made.games.length)
    samples = replay.sample(0, 0, 64)
    wanted = {row["frame"].tobytes(): row for row in made.rows[7::8]}
    assert {frames[0].tobytes() for frames in samples.frames} <= set(wanted)
    for frames, to_play, value in zip(samples.frames, samples.to_play, samples.value, strict=True):
        row = wanted[frames[0].tobytes()]
        known = np.array([frame.any() for frame in frames])
        assert (
            (to_play, value) == (row["to_play"], row["value"])
            and known[: min(8, int(row["ply"]))].all()
            and not known[int(row["ply"]) :].any()
        )
    with pytest.raises(ValueError, match="rows_per_position = 8 there, 1 now"):
        Dataset.create(tmp_path, Filters(size=(5,)), Fractions())


def test_games_that_had_no_such_position_are_left_out():
    frames = np.arange(2 * 8 * 2, dtype=np.uint32).reshape(2, 8, 2)
    games = Decorrelated(
        frames,
        np.array([1, 0], np.uint8),
        np.array([[1, -1], [-1, 1]], np.float32),
        np.array([3, 9], np.int32),
        np.array([True, False]),
    )
    rows, packed = pack_decorrelated(games, first_number=40)
    assert packed.number.tolist() == [40] and rows["frame"].tolist() == frames[0, ::-1].tolist()
    assert (
        rows["to_play"].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
        and rows["ply"][7] == 3
        and rows["value"][7] == -1
    )


def test_all_positions_of_whole_games():
    frames = np.arange(3 * 2, dtype=np.uint32).reshape(3, 2, 1)
    rows, packed = pack_whole(
        Trace(frames, np.ones((3, 2, 26), bool)),
        np.array([[4, 5, 6], [7, -1, -1]], np.int32),
        np.array([1.0, -1.0], np.float32),
        0,
    )
    assert packed.length.tolist() == [3, 1] and rows["frame"][:, 0].tolist() == [0, 2, 4, 1]
    assert rows["value"].tolist() == [1, -1, 1, -1] and rows["ply"].tolist() == [0, 1, 2, 0]
    assert clustered_mean(rows["value"], np.cumsum(rows["ply"] == 0)).value == 0
