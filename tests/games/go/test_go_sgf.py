"""Reading game records, and replaying real games."""

from __future__ import annotations

import csv
import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from needs import NOT_HERE, require_module

from azero.bench.rules import compare_final_board, replay
from azero.games.archives import RecordError
from azero.games.go.sgf import estimate_games, parse_games, read_games

require_module("sgfmill")

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "go"
SMALL = b"(;GM[1]SZ[5]KM[0.5]RU[Chinese]RE[B+2];B[cc];W[bb];B[];W[dd](;B[dc])(;B[aa]))"


def test_every_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.sgf").write_bytes(SMALL)
    (tmp_path / "b.sgf.gz").write_bytes(gzip.compress(SMALL + b"\n" + SMALL))
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as archive:
        archive.write(tmp_path / "a.sgf", "x/a.sgf")
        archive.writestr("readme.txt", "no game")
    with tarfile.open(tmp_path / "d.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a.sgf", "x/a.sgf")
    names = [record.name for file in sorted(tmp_path.iterdir()) for record in read_games(file)]
    assert names == [
        f"{tmp_path}/{name}"
        for name in (
            "a.sgf",
            "b.sgf.gz game 1",
            "b.sgf.gz game 2",
            "c.zip:x/a.sgf",
            "d.tar.gz:x/a.sgf",
        )
    ]
    with pytest.raises(
        ValueError, match=r"games.txt is not a file of game records: the suffixes are .sgf"
    ):
        list(read_games(tmp_path / "games.txt"))
    with pytest.raises(ValueError, match=r"^\. is not a file of game records"):
        list(read_games("."))
    with pytest.raises(ValueError, match=r"cannot read .*missing\.sgf: No such file or directory$"):
        list(read_games(tmp_path / "missing.sgf"))
    (tmp_path / "torn.sgf.gz").write_bytes((tmp_path / "b.sgf.gz").read_bytes()[:30])
    with pytest.raises(ValueError, match=r"cannot read .*torn\.sgf\.gz"):
        list(read_games(tmp_path / "torn.sgf.gz"))


def test_a_damaged_member_of_an_archive_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    inner, path = io.BytesIO(), tmp_path / "a.zip"
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("deep.sgf", SMALL)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1.sgf", SMALL)
        archive.writestr("2.sgf", SMALL.replace(b"Chinese", b"CHINESE"))
        archive.writestr("3.sgf.gz", gzip.compress(SMALL))
        archive.writestr("4.zip", inner.getvalue())
        archive.writestr("5.zip", b"no archive")
        archive.writestr("6.sgf", SMALL)
    path.write_bytes(path.read_bytes().replace(b"CHINESE", b"CHINESF"))
    skipped: list[RecordError] = []
    assert [record.name for record in read_games(path, skipped)] == [
        f"{path}:{member}" for member in ("1.sgf", "3.sgf.gz", "4.zip:deep.sgf", "6.sgf")
    ]
    assert [error.place for error in skipped] == [
        f"{path}:2.sgf",
        f"{path}:5.zip",
    ] and "Bad CRC-32" in skipped[0].problem
    with pytest.raises(ValueError, match=r"a\.zip:2\.sgf: cannot be read: Bad CRC-32"):
        list(read_games(path))
    assert estimate_games(path) == 4 * SMALL.count(b"(;"), "variations count, too"


def test_an_archive_without_games_and_one_with_a_password_say_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("readme.txt", "no game")
    with pytest.raises(ValueError, match=r"no file of game records in .*none\.zip"):
        list(read_games(tmp_path / "none.zip"))
    with zipfile.ZipFile(tmp_path / "locked.zip", "w") as archive:
        archive.writestr("a.sgf", SMALL)
    content = bytearray((tmp_path / "locked.zip").read_bytes())
    for start, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(start) + flags] |= 1
    (tmp_path / "locked.zip").write_bytes(content)
    with pytest.raises(ValueError, match=r"locked\.zip:a\.sgf: cannot be read: .*password"):
        list(read_games(tmp_path / "locked.zip"))


def test_moves_that_break_a_rule_are_named() -> None:
    text = b"(;SZ[5];B[ba];W[bb];B[ba];B[ab];W[ee];W[ed];B[cc];W[aa])"
    ((_, _, violations),) = replay(parse_games(text, "bad"), batch=1)
    assert [(violation.move, violation.rule) for violation in violations] == [
        (3, "the point is taken"),
        (6, "played out of turn"),
        (8, "suicide"),
    ]


def _broken_games() -> list[dict[str, str]]:
    with (DATA / "broken_rules.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_real_games_replay() -> None:
    """Among them every game of the collections that breaks a rule, in the order of the list."""
    listed = _broken_games()
    first_violations = []
    for record, board, violations in replay(read_games(DATA / "games.sgf.gz"), batch=8):
        if violations:
            first_violations.append((violations[0].move, violations[0].rule, len(violations)))
        else:
            assert compare_final_board(record, board)
    assert first_violations == [
        (int(row["move"]), row["rule"], int(row["moves"])) for row in listed
    ]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{NOT_HERE}collections of real games")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.gz")), ids=lambda path: path.name)
def test_every_real_game_replays(path: Path) -> None:
    """A game that breaks a rule has to be on the list, by its name and the rule."""
    found: dict[str, tuple[int, str, int]] = {}
    for record, board, violations in replay(read_games(path)):
        if violations:
            found[record.name] = (violations[0].move, violations[0].rule, len(violations))
        else:
            assert compare_final_board(record, board), record.name
    listed = {
        f"{row['file']} game {row['game']}": (int(row["move"]), row["rule"], int(row["moves"]))
        for row in _broken_games()
        if row["file"] == path.name
    }
    assert found == listed
