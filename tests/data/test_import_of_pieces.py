"""Imports of chess and shogi: the positions are those of python-chess and of our own readers, and
what cannot be imported is named."""

from __future__ import annotations

import gzip
import io
import random
import re
import tarfile
import zipfile
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest
from record_files import EXPERT
from rich.console import Console

from azero.data.records.chess_records import FORMAT
from azero.data.records.dataset import Dataset
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.importing import run_import, show
from azero.data.records.requests import ImportRequest, ShowRequest
from azero.games.archives import RecordError
from azero.games.chess import pgn
from azero.games.chess.pgn import read_games
from azero.games.chess.text import board_of_fen, board_of_frame, format_fen
from azero.games.go import sgf
from azero.games.shogi import csa, record_files
from azero.games.shogi.text import board_of_frame as shogi_board_of_frame
from azero.games.shogi.text import board_of_sfen, format_sfen

NO_SPLITS = Fractions(validation=0.0, test=0.0)
PINNED = "4k3/8/8/8/1b6/8/3N4/1N2K3 w - - 0 1"
"""The knight on d2 is pinned, so that Nc3 has one meaning."""
FENS = [
    chess.STARTING_FEN,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    PINNED,
]


def chess_games(count: int) -> list[chess.pgn.Game]:
    """Return random games from FENS, most of them not over."""
    draw, games = random.Random(5), []
    for number in range(count):
        board = chess.Board(FENS[number % len(FENS)])
        for _ in range(draw.randrange(8, 80)):
            if board.is_game_over() or board.is_repetition(3) or board.halfmove_clock >= 100:
                break
            board.push(draw.choice(list(board.legal_moves)))
        game = chess.pgn.Game.from_board(board)
        game.headers["Result"] = draw.choice(["1-0", "0-1", "1/2-1/2"])
        game.headers["WhiteElo"], game.headers["BlackElo"] = "2500", str(2400 + 10 * number)
        games.append(game)
    return games


def import_files(out: Path, *paths: Path, **filters) -> tuple[Dataset, str]:
    console = Console(record=True, width=200, file=io.StringIO())
    run_import(ImportRequest(paths, out, Filters(**filters), NO_SPLITS), console)
    return Dataset.open(out), console.export_text()


def test_chess_positions_moves_and_results_are_those_of_python_chess(tmp_path):
    games = chess_games(30)
    texts = [str(game) for game in games]
    (tmp_path / "a.pgn").write_text("\n\n".join(texts[:10]))
    (tmp_path / "b.pgn.gz").write_bytes(gzip.compress("\r\n\r\n".join(texts[10:20]).encode()))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.writestr("inner/c.pgn", "\n\n".join(texts[20:]))
    data, output = import_files(tmp_path / "set", tmp_path, game="chess")
    assert "30 games read from 3 files; added: train 30 games" in output
    rows, place = data.rows("train"), 0
    for game in games:
        board = game.board()
        white = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}[game.headers["Result"]]
        for ply, move in enumerate(game.mainline_moves()):
            row = rows[place]
            found = board_of_frame(row["frame"])
            placement, side, castling = format_fen(found).split()[:3]
            assert [placement, side, castling] == board.fen().split()[:3]
            assert board_of_fen(board.fen()).names[move.uci()] == row["action"]
            assert (row["ply"], row["to_play"]) == (ply, int(not board.turn))
            assert row["value"] == (white if board.turn else -white)
            board.push(move)
            place += 1
    assert place == len(rows)


def test_words_that_other_programs_write(tmp_path):
    text = (
        '[Event "?"]\n[Result "1-0"]\n\n1. e2-e4 e7e5 2. Ng1f3 $1 {[%clk 0:01]\n[%eval 0.1] x} '
        "Nb8-c6 3. Bc4! (3. Bb5) Bc5?! 4. 0-0 Nf6 5. Re1 O-O 1-0\n"
    )
    same = text.replace("Bc4!", "Bc4").replace("O-O 1-0", "O-O {resigns} 1-0")
    (tmp_path / "a.pgn").write_text(text)
    data, output = import_files(tmp_path / "set", tmp_path / "a.pgn", game="chess")
    board = chess.Board()
    for san, action in zip(
        ["e4", "e5", "Nf3", "Nc6", "Bc4", "Bc5", "O-O", "Nf6", "Re1", "O-O"],
        data.rows("train")["action"],
        strict=True,
    ):
        move = board.parse_san(san)
        assert board_of_fen(board.fen()).names[move.uci()] == action
        board.push(move)
    (tmp_path / "b.pgn").write_text(f"{same}\n\n{text}")
    _, output = import_files(tmp_path / "set", tmp_path / "b.pgn", game="chess")
    assert "duplicate" in output and "there before: 1 game" in output
    uci = "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1g1 g8f6 f1e1 e8g8"
    (tmp_path / "c.pgn").write_text(f'[Event "?"]\n[Result "1-0"]\n\n{uci} 1-0\n')
    for name in ("set", "other"):
        _, output = import_files(tmp_path / name, tmp_path, game="chess")
        assert "4 games read from 3 files" in output and "duplicate" in output
        shards = Dataset.open(tmp_path / name).shards("train")
        assert sum(shard.games for shard in shards) == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_games_of_chess_in_archives_and_character_sets(tmp_path, encoding):
    content = '[White "Müller"]\n\n1. e4 e5 1-0\n\n[White "柯洁"]\n\n1. d4 *\n'.encode(encoding)
    (tmp_path / "a.pgn").write_bytes(content)
    (tmp_path / "a.pgn.gz").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.pgn")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a.pgn.gz")
        tar.add(tmp_path / "a.pgn")
    for name, count in (("a.pgn", 1), ("a.pgn.gz", 1), ("a.zip", 1), ("a.tar.gz", 2)):
        skipped: list[RecordError] = []
        games = list(read_games(tmp_path / name, skipped))
        assert [game.tags["White"] for game in games] == ["Müller", "柯洁"] * count
        assert skipped == [] and FORMAT.estimate(tmp_path / name) == 0  # there is no "[Event"


def test_what_cannot_be_imported_is_named_and_the_rest_is_taken(tmp_path):
    good = str(chess_games(1)[0])
    moves = {
        "illegal": "1. e4 e5 2. Ke3 *",
        "ambiguous": "1. e4 e5 2. Nc3 Nc6 3. d3 Nf6 4. Ne2 *",
        "no text": "1. e4 \x00 e5 *",
        "after mate": "1. f3 e5 2. g4 Qh4# 3. a3 *",
    }
    bad = [f'[Event "{name}"]\n[Result "1-0"]\n\n{text}\n' for name, text in moves.items()]
    chess960 = (
        '[Event "?"]\n[Variant "Crazyhouse"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n'
        '[Event "?"]\n[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n[Result "1-0"]\n\n1. e4 e5 1-0\n'
    )
    (tmp_path / "x.pgn").write_text("\n".join([*bad[:2], chess960, *bad[2:], good]))
    data, output = import_files(tmp_path / "set", tmp_path / "x.pgn", game="chess")
    assert "x.pgn game 1: against the rules: move 2: 'Ke3' is not a legal move" in output
    assert "x.pgn game 3: against the rules: the variant 'Crazyhouse' has other rules" in output
    assert "x.pgn game 4: against the rules: " in output
    assert "x.pgn game 2: against the rules: move 4: 'Ne2' is ambiguous" in output
    assert "x.pgn game 5, line 4: not readable: '\\x00 e5 *" in output
    assert "6 games read from 1 file; added: train 2 games" in output
    names = [name for shard in data.shards("train") for name in data.sources("train", shard.shard)]
    # A move after mate ends the game before it.
    assert {f"{tmp_path / 'x.pgn'} game {number}" for number in (6, 7)} == set(names)
    lengths = {f"{tmp_path / 'x.pgn'} game 6": 4}
    (_, games), numbers = _first_shard(data), dict(zip(names, range(9), strict=False))
    assert all(games["length"][numbers[name]] == count for name, count in lengths.items())


def _first_shard(data: Dataset):
    from azero.data.records.recorded import SLOTS
    from azero.data.shard import read_shard

    record, game = data.shards("train")[0], data.game()
    path = data.directory / "train" / record.file
    return read_shard(path, record.sha256, game.name, game.frame_words, SLOTS)


def test_a_mark_and_remarks_before_the_tags_are_no_game(tmp_path):
    text = "\n\n".join(["% made by a program", "; games", *map(str, chess_games(2))])
    (tmp_path / "a.pgn").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "b.pgn").write_bytes(b"\xef\xbb\xbf" + str(chess_games(3)[2]).encode())
    (tmp_path / "c.pgn").write_text("{A game\nof 2026}\n" + str(chess_games(4)[3]))
    _, output = import_files(tmp_path / "set", tmp_path, game="chess")
    assert "4 games read from 3 files; added: train 4 games" in output and "readable" not in output


def test_a_file_without_a_game_is_named_and_does_not_count(tmp_path):
    texts = ("", "\n \n", "\ufeff", "% no game\n", str(chess_games(1)[0]))
    for name, text in zip("abcde", texts, strict=True):
        (tmp_path / f"{name}.pgn").write_text(text)
    _, output = import_files(tmp_path / "set", tmp_path, game="chess")
    for name in "abc":
        assert f"{name}.pgn: not readable: it is empty" in output
    assert "d.pgn: not readable: there is no game in it" in output
    assert "1 game read from 1 file; added: train 1 game with" in output


@pytest.mark.parametrize("suffix", [".sgf", ".pgn", ".csa", ".kif", ".ki2", ".kif.gz"])
def test_an_empty_file_is_called_empty(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"")
    read = {".sgf": sgf.read_games, ".pgn": pgn.read_games}.get(suffix, record_files.read_games)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: it is empty"):
        list(read(path))


def test_tags_in_a_comment_begin_no_game(tmp_path):
    quoting, good = chess_games(2)
    text = str(quoting).replace("1. ", '1. {of the files with\n[Event "x"]\n[Site "y"]\n} ', 1)
    unfinished = str(good).replace("2. ", "2. {no end ", 1)
    (tmp_path / "x.pgn").write_text("\n\n".join([text, unfinished, str(good)]))
    _, output = import_files(tmp_path / "set", tmp_path, game="chess")
    assert "2 games read from 1 file; added: train 2 games" in output
    assert "not readable: '{no end " in output


def test_ratings_and_filters_of_other_games(tmp_path):
    (tmp_path / "a.pgn").write_text("\n\n".join(map(str, chess_games(8))))
    _, output = import_files(tmp_path / "a", tmp_path / "a.pgn", game="chess", min_rating=2430)
    assert "added: train 5 games" in output and "a player below 2430" in output
    with pytest.raises(ValueError, match=r"--size is not a filter of chess"):
        import_files(tmp_path / "b", tmp_path / "a.pgn", game="chess", size=(9,))
    with pytest.raises(ValueError, match=r"--min-rating is not a filter of go"):
        import_files(tmp_path / "b", EXPERT, min_rating=2000)
    with pytest.raises(ValueError, match=r"a\.pgn has games of chess: --game chess reads it"):
        import_files(tmp_path / "b", tmp_path / "a.pgn")
    assert not (tmp_path / "b").exists()


def shogi_game(seed: int) -> tuple[str, list[str], list[int]]:
    """Return a random game as CSA, its positions in SFEN and its actions."""
    draw = random.Random(seed)
    board = board_of_sfen("lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1")
    positions, actions = [], []
    for _ in range(40):
        positions.append(format_sfen(board))
        actions.append(draw.choice(board.actions))
        board = board.after(actions[-1])
    return csa.format_csa(actions, ending="%TORYO"), positions, actions


def test_shogi_positions_moves_and_results(tmp_path):
    texts = [shogi_game(seed) for seed in range(4)]
    for number, (text, _, _) in enumerate(texts):
        rates = f"'black_rate:a:{2000 + number}.5\n'white_rate:b:3000.0\n"
        (tmp_path / f"{number}.csa").write_text(text.replace("V2.2\n", f"V2.2\n{rates}"))
    data, output = import_files(
        tmp_path / "set", *sorted(tmp_path.glob("*.csa")), game="shogi", min_rating=2001
    )
    assert "4 games read from 4 files; added: train 3 games" in output
    rows = data.rows("train")
    boards = [format_sfen(shogi_board_of_frame(row["frame"])) for row in rows]
    assert boards == [position for _, positions, _ in texts[1:] for position in positions]
    assert rows["action"].tolist() == [action for _, _, actions in texts[1:] for action in actions]
    # The mover of the 41st position resigns, who is Black.
    assert (rows["value"] == np.where(rows["to_play"] == 0, -1, 1)).all()
    console = Console(record=True, width=160, file=io.StringIO())
    show(ShowRequest(data.directory, positions=2), console)
    shown = console.export_text()
    assert "game shogi" in shown and "superko" not in shown and "Black in hand" in shown


def test_a_game_of_shogi_that_cannot_be_read_does_not_end_its_file(tmp_path):
    first, second = (shogi_game(seed)[0] for seed in range(2))
    (tmp_path / "a.csa").write_text("/\n".join([first, "+\n+1111XX\n", second]))
    _, output = import_files(tmp_path / "set", tmp_path / "a.csa", game="shogi")
    assert "a.csa game 2, line" in output and "added: train 2 games with 80 positions" in output


def test_an_illegal_move_of_shogi_is_named(tmp_path):
    text, _, _ = shogi_game(0)
    lines = text.split("\n")
    first = next(place for place, line in enumerate(lines) if line == "+") + 1
    lines[first : first + 2] = ["+2726FU", "-2233KA"]
    (tmp_path / "a.csa").write_text("\n".join(lines[: first + 2]) + "\n%TORYO\n")
    with pytest.raises(ValueError, match="of 1 game none was taken"):
        import_files(tmp_path / "set", tmp_path / "a.csa", game="shogi")


def test_no_split_is_lost(tmp_path):
    (tmp_path / "a.pgn").write_text("\n\n".join(map(str, chess_games(12))))
    request = ImportRequest(
        (tmp_path / "a.pgn",), tmp_path / "set", Filters("chess"), Fractions(0.3, 0.3)
    )
    tally = run_import(request, Console(file=io.StringIO()))
    data = Dataset.open(tmp_path / "set")
    assert sum(sum(s.games for s in data.shards(split)) for split in SPLITS) == tally.games.total()
