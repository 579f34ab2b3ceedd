"""Games of a run and of a match as files that other programs read."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import chess.pgn
import numpy as np
import pytest

from azero.commands.main import data
from azero.data.records.requests import ExportRequest
from azero.data.run_files import board_directory, write_config
from azero.data.shard import (
    GAME_DTYPE,
    RESIGNED,
    Positions,
    read_replay,
    row_dtype,
    shard_path,
    write_shard,
)
from azero.experiment import load
from azero.games.chess import pgn
from azero.games.chess.text import board_of_fen
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import read_games
from azero.games.shogi import csa
from azero.games.shogi.text import board_of_sfen
from azero.games.table import make
from azero.report.game_records import export_games
from azero.settings import Config

MOVES = 6


def random_moves(name: str, draw: np.random.Generator) -> list[int]:
    """Return the first moves of a random game."""
    if name == "go":
        return draw.permutation(25)[:MOVES].tolist()
    board = board_of_fen("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1")
    if name == "shogi":
        board = board_of_sfen("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1")
    moves = []
    for _ in range(MOVES):
        moves.append(int(draw.choice(sorted(board.actions))))
        board = board.after(moves[-1])
    return moves


def make_run(workdir: Path, config: Config, shards: int = 2) -> list[list[int]]:
    """Write a run with two games in each shard of its replay; return their moves."""
    game, draw = config.game.build(), np.random.default_rng(0)
    (workdir / "replay").mkdir(parents=True)
    write_config(workdir, config)
    played: list[list[int]] = []
    for shard in range(shards):
        moves = [random_moves(config.game.name, draw) for _ in range(2)]
        rows = np.zeros(2 * MOVES, row_dtype(game.frame_words))
        rows["action"] = np.concatenate(moves)
        rows["to_play"] = np.tile([0, 1], MOVES)
        rows["frame"] = np.asarray(game.pack_frame(game.init()))  # only the first of each is read
        if config.game.name == "go" and game.shows_komi:
            rows["frame"][:MOVES, -1], rows["frame"][MOVES:, -1] = 1, 13
        games = np.zeros(2, GAME_DTYPE)
        games["number"], games["length"] = [2 * shard, 2 * shard + 1], MOVES
        games["result"], games["flags"] = [[1, -1], [-1, 1]], [RESIGNED, 0]
        games["network"] = [[3, 3], [3, 4]]
        facts = {"game": config.game.name, "shard": shard, "process": 0}
        path = shard_path(workdir / "replay", 0, shard)
        write_shard(path, Positions(rows, np.zeros(game.num_actions, np.uint32)), games, facts)
        played += moves
    return played


def test_selfplay_of_go_as_sgf(tmp_path: Path) -> None:
    config = dataclasses.replace(
        load("go5").config, game=GoConfig(size=(5,), komi=0.5, planes=19, selfplay_komis=(0.5, 6.5))
    )
    played = make_run(tmp_path / "run", config)
    out = tmp_path / "new" / "directory" / "games.sgf"
    assert export_games(tmp_path / "run", out) == 4
    records = list(read_games(out))
    assert [[action for _, action in record.moves] for record in records] == played
    assert [record.result for record in records] == ["B+R", "W+", "B+R", "W+"]
    assert [record.komi for record in records] == [0.5, 6.5, 0.5, 6.5]
    assert records[1].players[0] == "azero, iterations 3 to 4"
    assert (records[0].date, dict(records[0].others)) == ("", {"EV": "azero self-play"})
    assert export_games(tmp_path / "run", out, last=1) == 1
    assert [action for _, action in next(iter(read_games(out))).moves] == played[-1]


def test_selfplay_of_chess_and_shogi(tmp_path: Path) -> None:
    for name, suffix, reader in (("chess", ".pgn", pgn), ("shogi", ".csa", csa)):
        played = make_run(tmp_path / name, load(name).config)
        out = tmp_path / f"games{suffix}"
        assert export_games(tmp_path / name, out) == 4
        games = list(reader.parse_games(out.read_text(), "games"))
        assert len(games) == 4
        for game, moves in zip(games, played, strict=True):
            assert list(game.actions) == moves, name
            facts = game.tags if name == "chess" else dict(game.facts)
            event, date = ("Event", "Date") if name == "chess" else ("EVENT", "START_TIME")
            assert facts[event] == "azero self-play" and facts.get(date, "?")[0] == "?"


def rewrite(workdir: Path, config: Config, rows: np.ndarray, games: np.ndarray) -> None:
    """Replace the first shard of a run by other positions and games."""
    facts = {"game": config.game.name, "shard": 0, "process": 0}
    words = np.zeros(config.game.build().num_actions, np.uint32)
    write_shard(shard_path(workdir / "replay", 0, 0), Positions(rows, words), games, facts)


def test_a_resignation_is_no_move(tmp_path: Path) -> None:
    for name, suffix in (("go5", "sgf"), ("chess", "pgn"), ("shogi", "csa")):
        config, workdir = load(name).config, tmp_path / name
        played = make_run(workdir, config, shards=1)
        game = config.game.build()
        (_, (rows, _), games), *_ = read_replay(workdir, game, False)
        rows = rows.copy()
        rows["action"][MOVES - 1] = -1
        rewrite(workdir, config, rows, games)
        out = tmp_path / f"games.{suffix}"
        assert export_games(workdir, out) == 2
        if suffix == "sgf":
            moves = [[action for _, action in record.moves] for record in read_games(out)]
        else:
            reader = pgn if suffix == "pgn" else csa
            moves = [list(game.actions) for game in reader.parse_games(out.read_text(), "games")]
        assert moves == [played[0][:-1], played[1]]


def test_games_that_begin_elsewhere_are_exported_from_there(tmp_path: Path) -> None:
    """Those of an archive, and resigned ones that are played on."""
    config = load("go5").config
    [played, _] = make_run(tmp_path, config, shards=1)
    game = config.game.build()
    state, frames = game.init(), []
    for action in played:
        frames.append(np.asarray(game.pack_frame(state)))
        state = game.step(state, np.int32(action))
    (_, (rows, _), games), *_ = read_replay(tmp_path, game, False)
    rows, games = rows[3:].copy(), games.copy()  # the first game without its first three moves
    rows["frame"][: MOVES - 3], games["length"] = frames[3:], [MOVES - 3, MOVES]
    rewrite(tmp_path, config, rows, games)
    export_games(tmp_path, tmp_path / "games.sgf")
    first, second = read_games(tmp_path / "games.sgf")
    assert first.moves == tuple((number % 2, played[number]) for number in range(3, MOVES))
    assert (first.black_points, first.white_points, first.to_play) == (
        tuple(sorted(played[:3:2])),
        (played[1],),
        1,
    )
    assert not second.black_points and second.to_play == 0


def test_games_on_all_boards_of_a_run_are_exported(tmp_path: Path) -> None:
    network = load("go7_efficient").config.network
    game = GoConfig(size=(5,), komi=0.5, selfplay_sizes=((0, 6, 0.5),))
    config = dataclasses.replace(load("go5").config, game=game, network=network)
    own = make_run(tmp_path, config)
    other = make_run(
        board_directory(tmp_path, 6), dataclasses.replace(config, game=game.on_board(6)), shards=1
    )
    assert export_games(tmp_path, tmp_path / "games.sgf") == 6
    records = list(read_games(tmp_path / "games.sgf"))
    for size, played in ((5, own), (6, other)):
        moves = [record.moves for record in records if record.size == size]
        assert [[action for _, action in game] for game in moves] == played


def test_shards_that_a_run_deletes_meanwhile_are_left_out(tmp_path: Path) -> None:
    config = load("go5").config
    make_run(tmp_path, config, shards=3)
    shards = read_replay(tmp_path, config.game.build(), False)
    seen = [next(shards)[0].name]
    shard_path(tmp_path / "replay", 0, 1).unlink()
    seen += [path.name for path, _, _ in shards]
    assert seen == [shard_path(tmp_path, 0, number).name for number in (0, 2)]


def test_a_damaged_shard_is_left_out_aloud(tmp_path: Path, capsys: Any) -> None:
    played = make_run(tmp_path, load("go5").config, shards=3)
    path = shard_path(tmp_path / "replay", 0, 1)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    for last, kept in ((None, [0, 1, 4, 5]), (3, [4, 5]), (1, [5])):
        assert export_games(tmp_path, tmp_path / "games.sgf", last) == len(kept)
        said = capsys.readouterr().err
        assert said.count("\n") == (last != 1)
        assert last == 1 or said.startswith(f"azero: left out: {path} is damaged: the checksum")
        moves = [record.moves for record in read_games(tmp_path / "games.sgf")]
        assert [[action for _, action in game] for game in moves] == [played[i] for i in kept]


def test_a_game_may_begin_with_a_capture_en_passant(tmp_path: Path) -> None:
    config = load("chess").config
    make_run(tmp_path, config, shards=1)
    begin = "rnbqkbnr/1pp1pppp/p7/3pP3/8/8/PPPP1PPP/RNBQKBNR w KQkq d6 0 3"
    board = board_of_fen(begin)
    (_, (rows, _), games), *_ = read_replay(tmp_path, config.game.build(), False)
    rows, games = rows[:2].copy(), games[:1].copy()
    rows["frame"] = np.asarray(make("chess", fen=begin).init().frames)[0]
    rows["action"] = board.names["e5d6"], board.after(board.names["e5d6"]).names["e7d6"]
    games["length"] = 2
    rewrite(tmp_path, config, rows, games)
    export_games(tmp_path, tmp_path / "games.pgn")
    game = chess.pgn.read_game(io.StringIO((tmp_path / "games.pgn").read_text()))
    assert game is not None and not game.errors and game.headers["FEN"] == begin
    assert [move.uci() for move in game.mainline_moves()] == ["e5d6", "e7d6"]
    rows["action"] = board.names["d2d4"], -1  # there may have been no double step
    rewrite(tmp_path, config, rows, games)
    export_games(tmp_path, tmp_path / "games.pgn")
    assert begin.replace("d6", "-") in (tmp_path / "games.pgn").read_text()


def test_records_of_a_match_as_one_file(tmp_path: Path) -> None:
    player = {"name": "a", "player": "go5", "iteration": None}
    facts = {"command": {}, "players": [player, player]}
    (tmp_path / "match.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=r"no games in a format of other programs: \.sgf of go, "):
        export_games(tmp_path, tmp_path / "all.sgf")
    for number in (10_000, 1_001):
        text = f"(;GM[1]FF[4]SZ[5]PB[game {number}];B[aa])\n"
        (tmp_path / f"game{number:04d}.sgf").write_text(text)
    (tmp_path / "game1001.review.sgf").write_text(text)
    out = tmp_path / "games.sgf"
    for _ in range(2):  # the second export finds the first one's file
        assert export_games(tmp_path, out) == 2
    assert [record.players[0] for record in read_games(out)] == ["game 1001", "game 10000"]
    with pytest.raises(ValueError, match=r"a file of go games ends in \.sgf"):
        export_games(tmp_path, tmp_path / "all.pgn")
    with pytest.raises(ValueError, match=r"all: a file of go games ends in \.sgf"):
        data(ExportRequest(tmp_path, tmp_path / "all"))
    record = tmp_path / "game1001.sgf"
    before = record.read_text()
    with pytest.raises(ValueError, match=r"game1001\.sgf is a record of the match itself; use an"):
        export_games(tmp_path, record)
    assert record.read_text() == before


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no settings \(config.json\): it is not a run"):
        export_games(tmp_path, tmp_path / "x.sgf")
    make_run(tmp_path / "empty", load("go5").config, shards=0)
    with pytest.raises(ValueError, match="empty has no games"):
        export_games(tmp_path / "empty", tmp_path / "x.sgf")
    with pytest.raises(ValueError, match="--last is at least 1, not 0"):
        data(ExportRequest(tmp_path / "empty", tmp_path / "x.sgf", last=0))
    write_config(tmp_path / "empty", load("tictactoe").config)
    with pytest.raises(ValueError, match="no file format for games of tictactoe, only"):
        export_games(tmp_path / "empty", tmp_path / "x.sgf")
