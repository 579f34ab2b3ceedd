"""Archives that expand to far more than they should: one line, soon, and without the memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from azero.games import expanding
from azero.games.chess import pgn
from azero.games.go.sgf import read_games

MIB = 1 << 20
GAME = b"(;GM[1]SZ[5];B[aa])"


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Smaller bounds, so that the bombs are small; 3 s and ten times the largest text at most."""
    monkeypatch.setattr(expanding, "FREE_BYTES", MIB)
    monkeypatch.setattr(expanding, "LARGEST_TEXT", 8 * MIB)
    monkeypatch.setattr(expanding, "MOST_MEMBERS", 500)
    tracemalloc.start()
    began = time.monotonic()
    yield
    assert tracemalloc.get_traced_memory()[1] < 30 * MIB
    assert time.monotonic() - began < 3
    tracemalloc.stop()


def bomb(size: int = 40 * MIB) -> bytes:
    return gzip.compress(bytes(size))


def in_tar(*members: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def in_zip(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


def pax_header(size: int) -> bytes:
    """A tar whose first header says that a header of so many bytes follows, as tarfile reads it
    into memory."""
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.XHDTYPE, size
    return gzip.compress(member.tobuf() + bytes(size))


MANY = [(f"{number}.txt", b"") for number in range(600)]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.sgf.gz", bomb, "a.sgf.gz expands to more than"),
        ("a.tar.gz", lambda: in_tar(("a.sgf", bytes(20 * MIB))), "expands to more than"),
        (
            "a.tar.gz",
            lambda: in_tar(("passed-over.bin", bytes(20 * MIB)), ("a.sgf", GAME)),
            "expands to more than",
        ),
        ("a.tar.gz", lambda: pax_header(20 * MIB), "expands to more than"),
        ("a.zip", lambda: in_zip(("a.sgf", bytes(20 * MIB))), "expands to more than"),
        (
            "a.zip",
            lambda: in_zip(("a.zip", in_zip(("a.sgf.gz", bomb(20 * MIB))))),
            "expands to more than",
        ),
        (
            "a.zip",
            lambda: in_zip(*((f"{n}.sgf", bytes(MIB)) for n in range(10))),
            "expands to more than",
        ),
        ("a.tgz", lambda: in_tar(*MANY), "has more than 500 members"),
        ("a.zip", lambda: in_zip(*MANY), "has more than 500 members"),
        ("a.tar.gz", lambda: in_tar(("a.zip", in_zip(*MANY))), "has more than 500 members"),
        ("a.sgf", lambda: bytes(9 * MIB), "a.sgf has more than 8 MiB"),
    ],
)
def test_a_bomb_is_one_line(tmp_path: Path, name: str, content, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content())
    tracemalloc.reset_peak()
    skipped: list[str] = []
    with pytest.raises(ValueError, match=says) as error:
        list(read_games(path, skipped))
    assert "\n" not in str(error.value)


def test_a_pgn_bomb_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.pgn.gz").write_bytes(bomb(20 * MIB))
    tracemalloc.reset_peak()
    with pytest.raises(ValueError, match=r"a\.pgn\.gz expands to more than"):
        list(pgn.read_games(tmp_path / "a.pgn.gz"))


def test_what_compresses_well_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(
        in_tar(("x/../../a.sgf", GAME * 1000), ("b.sgf.gz", gzip.compress(GAME)))
    )
    (tmp_path / "plain.tgz").write_bytes(in_tar(("a.sgf", GAME), mode="w"))
    assert (
        len(list(read_games(tmp_path / "a.tar.gz"))) == 1001
        and len(list(read_games(tmp_path / "plain.tgz"))) == 1
    )
