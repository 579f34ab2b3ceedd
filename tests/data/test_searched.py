"""Games of a run as a data set: positions with the policies of their searches."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from azero.commands.main import data as export_data
from azero.data.directory_lock import hold
from azero.data.files import StorageError
from azero.data.records.dataset import Dataset
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.importing import draw_position
from azero.data.records.requests import ExportRequest
from azero.data.records.searched import export_searches
from azero.data.run_files import board_directory, write_config
from azero.data.settings import ReplayConfig
from azero.data.shard import pack_games, pack_positions, shard_path, write_shard
from azero.experiment import load
from azero.games.go.settings import GoConfig
from azero.selfplay.targets import policy_room, words_of
from azero.selfplay.trajectory import Games
from azero.settings import Config

GAMES, MOVES = 40, 4
CONFIG = dataclasses.replace(load("go5").config, game=GoConfig(size=(5,), komi=0.5, max_moves=60))
BOARD = CONFIG.game.build()


def games_of(number: int, draw: np.random.Generator, frame_words: int) -> Games:
    """Return games whose positions have policy targets of one to three moves; every fourth has
    none."""
    rows = GAMES * MOVES
    counts = np.where(np.arange(rows) % 4 == 3, 0, draw.integers(1, 4, rows)).astype(np.int32)
    words = words_of(
        (np.arange(counts.sum()) % 26).astype(np.int16),
        draw.integers(1, 100, counts.sum()).astype(np.uint16),
    )
    half = np.zeros(rows, np.float16)
    return Games(
        frame=draw.integers(0, 1 << 25, (rows, frame_words)).astype(np.uint32),
        to_play=np.tile([0, 1], rows // 2).astype(np.uint8),
        action=draw.integers(0, 26, rows).astype(np.int16),
        policy_count=counts,
        is_target=counts > 0,
        root_value=half,
        best_child_value=half,
        surprise=half,
        is_random=np.zeros(rows, bool),
        length=np.full(GAMES, MOVES, np.int32),
        result=np.tile([[1, -1], [-1, 1]], (GAMES // 2, 1)).astype(np.float32),
        resigned=np.zeros(GAMES, bool),
        can_resign=np.zeros(GAMES, bool),
        number=GAMES * number + np.arange(GAMES),
        network=np.zeros((GAMES, 2), np.int32),
        policy=words,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with two shards in its replay, and its games."""
    workdir = tmp_path_factory.mktemp("run")
    return workdir, write_run(workdir, CONFIG)


def write_run(workdir: Path, config: Config) -> list[Games]:
    draw, game = np.random.default_rng(0), config.game.build()
    (workdir / "replay").mkdir(parents=True)
    write_config(workdir, config)
    played = [games_of(number, draw, game.frame_words) for number in range(2)]
    for number, games in enumerate(played):
        facts = {"game": game.name, "shard": number, "process": 0}
        path = shard_path(workdir / "replay", 0, number)
        write_shard(path, pack_positions(games, policy_room(game)), pack_games(games), facts)
    return played


def words_by_frame(frames, starts, counts, words) -> dict[bytes, list[int]]:
    return {
        frame.tobytes(): words[start : start + count].tolist()
        for frame, start, count in zip(frames, starts, counts, strict=True)
    }


def test_every_position_keeps_its_policy(run, tmp_path):
    workdir, played = run
    assert export_searches(workdir, tmp_path / "out") == 2 * GAMES
    data = Dataset.open(tmp_path / "out")
    assert data.has_searches and data.slots == 26 and data.game().board_shape == (5, 5)
    assert data.game().max_moves == CONFIG.game.build().max_moves
    wanted = {}
    for games in played:
        starts = np.cumsum(games.policy_count) - games.policy_count
        wanted |= words_by_frame(games.frame, starts, games.policy_count, games.policy)
    seen = 0
    for split in SPLITS:
        rows = data.rows(split)
        seen += len(rows)
        assert len(rows) and len(rows) % MOVES == 0, "whole games in every split"
        replay = data.open_split(split, BOARD, ReplayConfig(symmetries=False))
        samples = replay.sample(0, 0, 64)
        for frames, policy in zip(samples.frames, samples.policy, strict=True):
            assert [word for word in policy.tolist() if word] == wanted[frames[0].tobytes()]
    assert seen == 2 * GAMES * MOVES


def test_the_name_of_a_data_set_may_have_a_dot(run, tmp_path):
    export_data(ExportRequest(run[0], tmp_path / "v1.0", last=GAMES))
    assert Dataset.open(tmp_path / "v1.0").has_searches
    with pytest.raises(ValueError, match=r"a file of go games ends in \.sgf"):
        export_data(ExportRequest(run[0], tmp_path / "games.sgf.gz"))


def test_games_won_by_points_have_a_winner(run, tmp_path):
    _, played = run
    dataset = Dataset.create(tmp_path, Filters(size=(5,)), Fractions(), has_searches=True)
    games = played[0]._replace(result=0.4 * played[0].result)
    positions = pack_positions(games, policy_room(BOARD))
    dataset.append_packed("train", positions, pack_games(games), ["a game"] * GAMES)
    drawn = [draw_position(dataset, "train", np.random.default_rng(seed)) for seed in range(8)]
    ends = {text.partition("\n")[0].rpartition(" and ")[2] for text in drawn}
    assert ends == {"won", "lost"}


@pytest.mark.parametrize("name", ["go", "chess", "shogi"])
def test_a_position_in_which_a_player_resigned_is_shown_without_a_move(name, tmp_path):
    filters = Filters(size=(5,)) if name == "go" else Filters(name)
    dataset = Dataset.create(tmp_path, filters, Fractions(), has_searches=True)
    game = dataset.game()
    games = games_of(0, np.random.default_rng(0), game.frame_words)
    start = np.asarray(game.pack_frame(game.init()))
    games = games._replace(
        frame=np.tile(start, (len(games.action), 1)),
        action=np.full(len(games.action), -1, np.int16),
        is_target=np.ones(len(games.action), bool),
    )
    positions = pack_positions(games, policy_room(game))
    dataset.append_packed("train", positions, pack_games(games), ["a game"] * GAMES)
    drawn = [draw_position(dataset, "train", np.random.default_rng(seed)) for seed in range(4)]
    assert all(", to play after" in text for text in drawn)


def test_games_on_other_boards_are_left_out_aloud(tmp_path, capsys):
    write_run(tmp_path / "run", CONFIG)
    assert export_searches(tmp_path / "run", tmp_path / "one") == 2 * GAMES
    assert capsys.readouterr().err == ""
    board_directory(tmp_path / "run", 4).mkdir(parents=True)
    assert export_searches(tmp_path / "run", tmp_path / "two") == 2 * GAMES
    message = "azero: games on 4x4 are left out: a data set has one board, here 5x5\n"
    assert capsys.readouterr().err == message


def test_the_newest_games_alone(run, tmp_path):
    workdir, played = run
    assert export_searches(workdir, tmp_path / "out", last=GAMES + 3) == GAMES + 3
    data = Dataset.open(tmp_path / "out")
    frames = np.concatenate([data.rows(split)["frame"] for split in SPLITS])
    newest = {frame.tobytes() for frame in played[1].frame}
    assert newest < {frame.tobytes() for frame in frames} and len(frames) == (GAMES + 3) * MOVES


def test_a_damaged_shard_is_left_out_aloud(tmp_path, capsys):
    workdir = tmp_path / "run"
    played = write_run(workdir, CONFIG)
    torn = shard_path(workdir / "replay", 0, 1)
    torn.write_bytes(torn.read_bytes()[:-64])
    for last, name in ((None, "all"), (GAMES + 3, "newest")):
        assert export_searches(workdir, tmp_path / name, last) == GAMES
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(f"azero: left out: {torn} is torn: ")
        data = Dataset.open(tmp_path / name)
        found = {frame.tobytes() for split in SPLITS for frame in data.rows(split)["frame"]}
        assert found == {frame.tobytes() for frame in played[0].frame}


def test_an_interrupted_export_begins_again(run, tmp_path, monkeypatch):
    workdir, _ = run
    out, append = tmp_path / "out", Dataset.append_packed

    def fail_at_the_second_shard(self, split, positions, games, sources):
        if sources[0].startswith("games-p000-00000001"):
            raise StorageError("cannot write: No space left on device")
        append(self, split, positions, games, sources)

    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "append_packed", fail_at_the_second_shard)
        with pytest.raises(StorageError, match="No space left"):
            export_searches(workdir, out)
    assert "repeat it" in Dataset.open(out).warnings[0]
    with hold(out), pytest.raises(ValueError, match="in use"):
        export_searches(workdir, out)
    assert export_searches(workdir, out) == 2 * GAMES
    data = Dataset.open(out)
    assert sum(len(data.rows(split)) for split in SPLITS) == 2 * GAMES * MOVES
    assert not data.warnings


@pytest.mark.parametrize("game", ["chess", "shogi"])
def test_games_of_chess_and_shogi(game, tmp_path):
    config = load(game).config
    (tmp_path / "run").mkdir()
    played = write_run(tmp_path / "run", config)
    assert export_searches(tmp_path / "run", tmp_path / "out") == 2 * GAMES
    data, board = Dataset.open(tmp_path / "out"), config.game.build()
    assert (data.game().name, data.game().max_moves) == (board.name, board.max_moves)
    frames = {row.tobytes() for split in SPLITS for row in data.rows(split)["frame"]}
    assert frames == {frame.tobytes() for games in played for frame in games.frame}
    replay = data.open_split("train", board, ReplayConfig())
    assert replay.sample(0, 0, 8).policy.shape[0] == 8


def test_what_cannot_be_a_data_set_is_said(run, tmp_path):
    workdir, _ = run
    export_searches(workdir, tmp_path / "out")
    with pytest.raises(ValueError, match="out holds a data set; use another directory"):
        export_searches(workdir, tmp_path / "out")
    with pytest.raises(ValueError, match="is the directory of a run; use another directory"):
        export_searches(workdir, workdir)
    komis = GoConfig(size=(5,), planes=19, selfplay_komis=(0.5,))
    for config, message in (
        (load("tictactoe").config, "plays tictactoe; data sets are of go"),
        (dataclasses.replace(CONFIG, game=komis), r"have komis of their own \(game.planes 19\)"),
        (CONFIG, "has no games in its replay"),
    ):
        write_config(tmp_path, config)
        with pytest.raises(ValueError, match=message):
            export_searches(tmp_path, tmp_path / "other")
