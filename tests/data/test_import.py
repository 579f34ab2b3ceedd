"""Imports: positions, splits, duplicates, resuming, and bad input of every kind."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from needs import require_module
from policy_words import split_words
from record_files import EXPERT, FILTERS, GAME, HALVES, import_to, write_mixed
from rich.console import Console

from azero import __main__ as program
from azero.commands import main as cli
from azero.console import interrupts
from azero.data.directory_lock import hold
from azero.data.records import human
from azero.data.records.dataset import Dataset
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.human import find_records, import_games
from azero.data.records.importing import run_import, show
from azero.data.records.recorded import ImportTally
from azero.data.records.requests import ImportRequest, ShowRequest
from azero.data.settings import ReplayConfig
from azero.games.go.encoding import boards_of
from azero.games.go.sgf import SUFFIXES, parse_games, read_games


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """The expert's games from an .sgf.gz, a .zip and a .tar.gz; their directory is "files"."""
    directory = tmp_path_factory.mktemp("mixed")
    return import_to(directory / "set", *write_mixed(directory / "files"))


def all_rows(dataset: Dataset) -> dict[str, np.ndarray]:
    return {split: dataset.rows(split) for split in SPLITS}


def test_every_game_is_in_one_split(mixed):
    dataset, tally = mixed
    assert (tally.read, tally.games.total(), tally.unreadable) == (24, 24, [])
    assert all(tally.games[split] for split in SPLITS)
    assert tally.positions.total() == sum(len(record.moves) for record in read_games(EXPERT))
    files = dataset.directory.parent / "files"
    names = [
        name
        for split in SPLITS
        for shard in dataset.shards(split)
        for name in dataset.sources(split, shard.shard)
    ]
    assert (
        len(set(names)) == 24
        and f"{files / 'b.zip'}:inner/2.sgf" in names
        and f"{files / 'c.tar.gz'}:rest.sgf game 10" in names
    )


def test_positions_are_those_of_another_program(mixed):
    boards = require_module("sgfmill.boards")
    dataset, _ = mixed
    rows = dataset.rows("train")
    by_moves = {
        tuple(action for _, action in record.moves): record for record in read_games(EXPERT)
    }
    starts = np.flatnonzero(rows["ply"] == 0)
    assert len(starts) == sum(shard.games for shard in dataset.shards("train"))
    for first, end in zip(starts, [*starts[1:], len(rows)], strict=True):
        record = by_moves[tuple(rows["action"][first:end].tolist())]
        board, winner = boards.Board(9), record.rewards[0]
        for row, (colour, action) in zip(rows[first:end], record.moves, strict=True):
            theirs = [{"b": 1, "w": -1, None: 0}[cell] for line in board.board for cell in line]
            assert boards_of(row["frame"], 81).tolist() == theirs
            assert (row["to_play"], row["action"], row["value"]) == (
                colour,
                action,
                winner if colour == 0 else -winner,
            )
            if action < 81:
                board.play(*divmod(action, 9), "bw"[colour])


def test_the_learner_samples_a_split(mixed):
    dataset, tally = mixed
    replay = dataset.open_split("train", dataset.game(), ReplayConfig())
    assert (replay.count_games(), replay.count_positions()) == (
        tally.games["train"],
        tally.positions["train"],
    )
    samples = replay.sample(0, 0, 16)
    assert (
        samples.policy.shape == (16, 1)
        and (split_words(samples.policy)[1] == 1).all()
        and samples.is_target.all()
    )
    with pytest.raises(ValueError, match="holds games of go on"):
        dataset.open_split(
            "train", Dataset(dataset.directory, Filters(size=(5,)), HALVES).game(), ReplayConfig()
        )


def test_the_same_import_again_adds_nothing(mixed):
    dataset, _ = mixed
    before = all_rows(dataset)
    again, second = import_to(dataset.directory, EXPERT)
    assert second.games.total() == 0 and second.already == 24
    for split, rows in all_rows(again).items():
        np.testing.assert_array_equal(rows, before[split])


def test_an_import_that_was_killed_ends_like_one_that_was_not(tmp_path, monkeypatch):
    monkeypatch.setattr(human, "_POOL", 5)
    calm, _ = import_to(tmp_path / "calm", EXPERT)
    killed = Dataset.create(tmp_path / "killed", FILTERS, HALVES)
    for count in (2, 1, 3):
        steps = import_games([EXPERT], killed, ImportTally())
        for _ in range(count):
            next(steps)
        steps.close()
        # What a killed process leaves: a file half written, and a shard that the manifest does not
        # know yet.
        train = killed.directory / "train"
        (train / "games-p000-00000077.shard.tmp").write_bytes(b"half")
        if known := sorted(train.glob("*.shard")):
            (train / "games-p000-00000078.shard").write_bytes(known[0].read_bytes())
    _, tally = import_to(tmp_path / "killed", EXPERT)
    assert (
        tally.already > 0 and tally.games.total() > 0 and tally.already + tally.games.total() == 24
    )
    assert not list((killed.directory / "train").glob("*0000007*"))
    for split, rows in all_rows(killed).items():
        np.testing.assert_array_equal(rows, calm.rows(split))


def test_progress_is_counted_while_no_game_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(human, "_POOL", 10)
    (tmp_path / "games.sgf").write_text("\n".join([GAME] * 35))
    dataset, tally = Dataset.create(tmp_path / "set", FILTERS, HALVES), ImportTally()
    found = import_games([tmp_path / "games.sgf"], dataset, tally)
    assert [update.read for update in found] == [11, 21, 31, 35, 35, 35]
    assert (tally.games.total(), tally.left_out["duplicate"]) == (1, 34)


def test_ctrl_c_is_one_line_and_the_same_command_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(human, "_POOL", 5)
    write, pools = human._write_pool, []

    def interrupted(*arguments):
        if len(pools) == 2:
            raise KeyboardInterrupt
        pools.append(write(*arguments))

    command = [
        "azero",
        "data",
        "import",
        str(EXPERT),
        "--out",
        str(tmp_path / "set"),
        "--size",
        "9",
        "--suicide",
    ]
    monkeypatch.setattr(sys, "argv", command)
    monkeypatch.setattr(human, "_write_pool", interrupted)
    monkeypatch.setattr(interrupts, "keep_interrupts", lambda: None)
    monkeypatch.setattr(interrupts, "exit_at_once", sys.exit)
    for _ in range(2):  # the second time before a further game
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert ended.value.code == 130
        assert capsys.readouterr().err.endswith(
            f"azero: stopped; {tmp_path / 'set'} has 10 imported games, and the same command "
            "continues the import\n"
        )
    monkeypatch.setattr(human, "_write_pool", write)
    cli.main()
    assert "there before: 10 games" in " ".join(capsys.readouterr().out.split())


def test_duplicates_also_turned_ones_are_left_out(tmp_path):
    turned = (
        GAME.replace("ee", "ee")
        .replace("B[gg]", "B[cg]")
        .replace("W[cc]", "W[gc]")
        .replace("W[gc])", "W[cc])")
    )
    (tmp_path / "twice.sgf").write_text(
        "\n".join(
            [
                GAME,
                GAME.replace("9d", "1k"),
                turned,
                GAME.replace("W[gc])", "W[gc];B[])"),
                GAME.replace("gg", "gf"),
            ]
        )
    )
    _, tally = import_to(tmp_path / "set", tmp_path / "twice.sgf")
    assert tally.left_out == {"duplicate": 3} and tally.games.total() == 2


def test_handicap_and_set_up_stones_are_on_the_first_board(tmp_path):
    games = [
        "(;SZ[9]HA[2]AB[cg][gc]RE[W+R];W[ee];B[cc])",
        "(;SZ[9]AB[aa:ba]AW[ab]PL[W]RE[B+1];W[bb];B[ii];W[ca])",
        "(;SZ[9]HA[2]RE[B+R];B[cc];B[gg];W[ee])",
    ]
    (tmp_path / "set-up.sgf").write_text("\n".join(games))
    dataset, _ = import_to(tmp_path / "set", tmp_path / "set-up.sgf", fractions=Fractions(0.0, 0.0))
    rows = dataset.rows("train")
    boards = boards_of(rows["frame"], 81)
    assert rows["to_play"].tolist() == [1, 0, 1, 0, 1, 0, 0, 1]
    assert rows["ply"].tolist() == [0, 1, 0, 1, 2, 0, 1, 2]
    assert (
        np.flatnonzero(boards[0]).tolist() == [24, 56]
        and np.flatnonzero(boards[2]).tolist() == [0, 1, 9]
        and not boards[5].any()
    )
    assert rows["value"].tolist() == [1, -1, -1, 1, -1, 1, 1, -1]


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A directory with one good game and every kind of bad input, and the import of it."""
    files = tmp_path_factory.mktemp("bad")
    (files / "empty").mkdir()
    (files / "good.sgf").write_text(GAME)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("one.sgf", GAME)
    (files / "broken.zip").write_bytes(whole.getvalue()[:-30])
    (files / "broken.sgf.gz").write_bytes(
        gzip.compress(GAME.replace("gg", "hh").encode() * 50)[:-20]
    )
    (files / "notes.sgf").write_text("no game in here")
    (files / "odd.sgf").write_text(
        "\n".join(
            [
                "(;SZ[9]RE[B+R];B[ee];W[ee])",
                "(;SZ[9]RE[B+R];B[ab];W[ee];B[ba];W[aa])",
                "(;SZ[9]RE[B+R]AB[aa]AW[ab][ba];B[ee])",
                "(;SZ[19]RE[B+R];B[dd])",
                "(;SZ[9];B[ee])",
                "(;SZ[9]RE[B+R];B[zz])",
            ]
        )
    )
    console = Console(record=True, width=200, file=io.StringIO(), markup=False)
    paths = (files, files / "empty", files / "nowhere")
    tally = run_import(
        ImportRequest(paths, files / "set", Filters(size=(9,)), Fractions(0.0, 0.0)), console
    )
    return files, tally, console.export_text()


def test_bad_input_is_named_line_by_line_and_the_rest_is_imported(bad):
    files, tally, output = bad
    assert tally.games.total() == 1
    for wanted in (
        "broken.zip: not readable: cannot read",
        "broken.sgf.gz: not readable: cannot read",
        "notes.sgf: not readable: no SGF data",
        "odd.sgf game 1: against the rules: move 2, White E5: the point is taken",
        "odd.sgf game 2: against the rules: move 4, White A9: suicide",
        "odd.sgf game 3: against the rules: the chain that is set up at A9 has no liberty",
        "odd.sgf game 6: not readable: [zz] is not a point",
        f"{files / 'empty'}: there is no file of game records in it",
        f"{files / 'nowhere'}: there is no such file or directory",
    ):
        assert any(wanted in line for line in output.splitlines()), wanted
    assert (
        tally.left_out["board of 19x19, not 9x9"] == 1 and tally.left_out["winner not known"] == 1
    )
    listed = (files / "set" / "left-out.tsv").read_text().splitlines()
    assert (
        len(listed) == tally.left_out.total() == 9
        and f"{files / 'odd.sgf'} game 4\tboard of 19x19, not 9x9" in listed
    )


@pytest.mark.parametrize(("game", "suffix"), [("go", ".sgf"), ("chess", ".pgn"), ("shogi", ".csa")])
def test_a_path_with_a_colon_is_whole_in_the_list(game, suffix, tmp_path):
    place = tmp_path / "Cup: final"
    place.mkdir()
    (place / f"1: a{suffix}").write_text("\x01 is no game")
    with zipfile.ZipFile(place / "2.zip", "w") as archive:
        archive.writestr(f"3: b{suffix}", "")
    dataset = Dataset.create(tmp_path / "set", Filters(game), Fractions(0.0, 0.0))
    paths = [place / "2.zip", place / f"1: a{suffix}"]
    list(import_games(paths, dataset, ImportTally()))
    listed = (dataset.directory / human.LEFT_OUT).read_text().splitlines()
    names, reasons = zip(*(line.split("\t") for line in listed), strict=True)
    assert names[0] == f"{place}/2.zip:3: b{suffix}"
    assert names[1].split(" game ")[0] == f"{place}/1: a{suffix}"
    assert all(reason.startswith("not readable: ") for reason in reasons)


def test_other_settings_need_another_directory(bad):
    files, _, _ = bad
    with pytest.raises(ValueError, match=r"other settings: min_moves = 1 there, 10 now"):
        run_import(
            ImportRequest(
                (files / "good.sgf",),
                files / "set",
                Filters(size=(9,), min_moves=10),
                Fractions(0.0, 0.0),
            ),
            Console(quiet=True),
        )


def test_settings_that_no_board_fits_leave_nothing_behind(bad, tmp_path):
    files, _, _ = bad
    for filters in (Filters(size=(0,)), Filters(size=(9, 99)), Filters(size=(9,), max_moves=0)):
        with pytest.raises(ValueError, match=r"size|max-moves"):
            run_import(
                ImportRequest((files / "good.sgf",), tmp_path / "set", filters), Console(quiet=True)
            )
    assert not (tmp_path / "set").exists()
    with pytest.raises(ValueError, match="shares of nan"):
        run_import(
            ImportRequest(
                (files / "good.sgf",),
                tmp_path / "set",
                Filters(size=(9,)),
                Fractions(validation=float("nan")),
            ),
            Console(quiet=True),
        )
    assert not (tmp_path / "set").exists()


def test_nothing_to_import_is_a_mistake(bad, tmp_path):
    files, _, _ = bad
    with pytest.raises(ValueError, match="there is no file of game records"):
        run_import(ImportRequest((files / "empty",), tmp_path / "set"), Console(quiet=True))
    with pytest.raises(ValueError, match=r"of 1 game none was taken; see above; .*set is not made"):
        run_import(
            ImportRequest((files / "good.sgf",), tmp_path / "a" / "set"), Console(quiet=True)
        )
    assert not list(tmp_path.iterdir())
    (tmp_path / "set").mkdir()
    with pytest.raises(ValueError, match=r"of 1 game none was taken; .*left-out\.tsv says why"):
        run_import(ImportRequest((files / "good.sgf",), tmp_path / "set"), Console(quiet=True))
    assert (tmp_path / "set" / "left-out.tsv").exists()


def test_a_large_file_without_games_is_one_line(tmp_path):
    (tmp_path / "large.sgf").write_bytes(np.random.default_rng(0).bytes(1 << 16) * 32)
    (tmp_path / "zeros.sgf.gz").write_bytes(gzip.compress(bytes(1 << 24)))
    _, tally = import_to(tmp_path / "set", tmp_path / "large.sgf", tmp_path / "zeros.sgf.gz")
    assert tally.read == 0 and any(
        "zeros.sgf.gz: not readable: no SGF data" in line for line in tally.unreadable
    )


def test_show_draws_positions_and_says_where_they_are_from(mixed):
    dataset, _ = mixed
    console = Console(record=True, width=160, file=io.StringIO())
    show(ShowRequest(dataset.directory, positions=2, seed=1), console)
    output = console.export_text()
    assert (
        "train" in output
        and output.count(" 9 ") >= 2
        and output.count("as move") == 2
        and "game" in output
    )
    for path in (dataset.directory / "train", dataset.directory / "dataset.json"):
        with pytest.raises(ValueError, match=r"is not a data set: .* a data set is a directory"):
            show(ShowRequest(path), console)


def test_records_keep_ranks_and_handicap_through_text():
    (record,) = parse_games(b"(;SZ[9]BR[9d]WR[1p]HA[2];B[cc];B[gg];W[ee])", "game")
    assert (record.ranks, record.handicap, record.black_points) == (("9d", "1p"), 2, ())


def test_a_manifest_with_a_damaged_line_loses_no_shard(tmp_path, monkeypatch):
    monkeypatch.setattr(human, "_POOL", 8)
    dataset, _ = import_to(tmp_path / "set", EXPERT, fractions=Fractions(0.0, 0.0))
    before, files = dataset.rows("train"), sorted((tmp_path / "set" / "train").glob("*.shard"))
    manifest = tmp_path / "set" / "train" / "manifest-p000.jsonl"
    content = bytearray(manifest.read_bytes())
    content[-30] ^= 1
    manifest.write_bytes(content)
    np.testing.assert_array_equal(dataset.rows("train"), before)
    replay = dataset.open_split("train", dataset.game(), ReplayConfig())
    assert (
        replay.count_games(),
        replay.count_positions(),
        sorted((tmp_path / "set" / "train").glob("*.shard")),
    ) == (24, len(before), files)
    _, again = import_to(tmp_path / "set", EXPERT, fractions=Fractions(0.0, 0.0))
    assert (again.already, again.games.total()) == (24, 0)


@pytest.mark.parametrize("damage", ["gone", "torn"])
def test_a_damaged_shard_is_set_aside_and_its_games_are_imported_again(
    tmp_path, damage, monkeypatch
):
    monkeypatch.setattr(human, "_POOL", 8)
    import_to(tmp_path / "set", EXPERT, fractions=Fractions(0.0, 0.0))
    path = sorted((tmp_path / "set" / "train").glob("*.shard"))[1]
    path.unlink() if damage == "gone" else os.truncate(path, 1000)
    dataset, tally = import_to(tmp_path / "set", EXPERT, fractions=Fractions(0.0, 0.0))
    assert (tally.already, tally.games.total()) == (16, 8)
    assert (
        path.name in tally.unreadable[0] and "its 8 games are imported again" in tally.unreadable[0]
    )
    assert len(dataset.rows("train")) == sum(len(record.moves) for record in read_games(EXPERT))


def test_two_imports_into_one_data_set_at_once_are_refused(tmp_path):
    Dataset.create(tmp_path / "set", FILTERS, HALVES)
    with (
        hold(tmp_path / "set"),
        pytest.raises(ValueError, match=rf"set is in use by process {os.getpid()}"),
    ):
        run_import(ImportRequest((EXPERT,), tmp_path / "set", FILTERS, HALVES), Console(quiet=True))


def test_links_are_followed_and_those_that_lead_nowhere_are_named(tmp_path):
    (tmp_path / "dead.sgf").symlink_to("nowhere.sgf")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe.sgf")
    (tmp_path / "good.sgf").write_text(GAME)
    tally = ImportTally()
    assert find_records([tmp_path], SUFFIXES, tally) == [
        tmp_path / "dead.sgf",
        tmp_path / "good.sgf",
    ]
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    elsewhere.mkdir()
    (elsewhere / "more.sgf").write_text(GAME.replace("ee", "ff"))
    (tmp_path / "link").symlink_to(elsewhere)
    _, tally = import_to(tmp_path / "set", tmp_path)
    assert tally.games.total() == 2 and "dead.sgf: not readable: cannot read" in tally.unreadable[0]


def test_names_of_files_need_not_be_in_utf_8(tmp_path):
    name = os.fsdecode(b"\xff\xb0.sgf")
    (tmp_path / name).write_text(f"{GAME}\n{GAME.replace('RE[B+R]', '')}")
    dataset, tally = import_to(tmp_path / "set", tmp_path / name)
    assert tally.games.total() == 1
    left_out = (dataset.directory / human.LEFT_OUT).read_bytes()
    assert left_out == os.fsencode(tmp_path) + b"/\xff\xb0.sgf game 2\twinner not known\n"
    assert dataset.warnings == []


def test_files_of_one_name_are_told_apart_by_their_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, size in (("a", 0), ("b", 99)):
        (tmp_path / "games" / name).mkdir(parents=True)
        (tmp_path / "games" / name / "1.sgf").write_text(f"{GAME}(;SZ[{size}];B[aa])")
    _, tally = import_to(Path("set"), Path("games"))
    assert tally.unreadable == [
        f"games/{name}/1.sgf game 2: not readable: SZ is 1 to 52 or COLUMNS:ROWS, not '{size}'"
        for name, size in (("a", 0), ("b", 99))
    ]


def test_find_records_takes_directories_in_order(tmp_path):
    paths = write_mixed(tmp_path / "files")
    tally = ImportTally()
    assert find_records([tmp_path / "files"], SUFFIXES, tally) == paths and not tally.unreadable


def test_files_packed_in_a_way_that_is_not_read_are_named(tmp_path):
    (tmp_path / "good.sgf").write_text(GAME)
    (tmp_path / "notes.txt.bz2").write_bytes(b"")
    packed = ["games.7z", "games.tar.xz", "one.sgf.bz2", "one.sgf.zst"]
    for name in packed:
        (tmp_path / name).write_bytes(b"")
    with zipfile.ZipFile(tmp_path / "good.zip", "w") as archive:
        archive.writestr("two.sgf", GAME.replace("gg", "hh"))
        archive.writestr("notes.txt", "")
        archive.writestr("two.sgf.xz", "")
        archive.writestr("__MACOSX/._two.sgf", b"\0\5\x16\7")
    request = ImportRequest((tmp_path,), tmp_path / "set", Filters(size=(9,)), Fractions(0.0, 0.0))
    tally = run_import(request, Console(file=io.StringIO()))
    assert tally.games.total() == 2 and tally.left_out["not readable"] == 5
    for name in (*packed, "good.zip:two.sgf.xz"):
        lines = [line for line in tally.unreadable if line.startswith(f"{tmp_path / name}: ")]
        assert len(lines) == 1 and "not a file of game records: the suffixes are" in lines[0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--min-rank", "best"], "azero: --min-rank 'best' is not a rank"),
        (["--size", "9", "9", "9"], "azero: --size of a board is one or two numbers, not 9 9 9"),
        (["--size", "0"], "azero: --size is from 1 to 25, not 0"),
        (["--min-moves", "-1"], "azero: --min-moves is at least 0, not -1"),
        (["--max-handicap", "-1"], "azero: --max-handicap is at least 0, not -1"),
        (["--test", "2"], "azero: --validation and --test: shares of 0.02 and 2.0"),
    ],
)
def test_a_wrong_value_is_one_line_that_names_its_flag(
    flags, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        sys,
        "argv",
        ["azero", "data", "import", str(EXPERT), "--out", str(tmp_path / "set"), *flags],
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and not (tmp_path / "set").exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(message)
