"""What goes wrong on a disk: noticed, named in one line, and the rest goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from needs import not_here
from replay_games import assert_equal, fill, open_replay, random_games

from azero.data.files import (
    DamagedFileError,
    StorageError,
    describe_error,
    read_arrays,
    write_arrays,
)
from azero.data.rows import RowFile


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def tear(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])


DAMAGES = {
    "flipped in the rows": (lambda path: flip(path, 2000), "checksum of 'rows'"),
    "flipped in the policies": (
        lambda path: flip(path, path.stat().st_size - 400),
        "checksum of 'policy'",
    ),
    "flipped in the games": (
        lambda path: flip(path, path.stat().st_size - 80),
        "checksum of 'games'",
    ),
    "flipped in the header": (lambda path: flip(path, 60), "checksum of its header"),
    "flipped in the magic": (lambda path: flip(path, 0), "begins with"),
    "flipped in the header's length": (lambda path: flip(path, 9), "checksum of its header"),
    "torn": (lambda path: tear(path, 1500), "is torn: 1500 bytes where"),
    "torn in the header": (lambda path: tear(path, 100), "checksum of its header"),
    "empty": (lambda path: tear(path, 0), "is torn: 0 bytes"),
    "missing": (lambda path: path.unlink(), "No such file or directory"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_shard_is_named_and_left_out(tmp_path: Path, damage: str) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 4)
    before = replay.count_positions()
    lost = tmp_path / "games-p000-00000002.shard"
    spoil, words = DAMAGES[damage]
    spoil(lost)
    again = open_replay(tmp_path, replay.state_dict())
    [warning] = again.take_warnings()
    assert "\n" not in warning
    assert "left out shard 2" in warning and str(lost) in warning and words in warning
    assert again.take_warnings() == []
    drawn = np.unique(again.sample(0, 0, 3000).frames[:, 0, 0] // 1000 - 1)
    assert drawn.tolist() == [*range(20), *range(30, 40)]
    assert again.count_positions() < before
    fill(again, 1)
    assert again.count_games() == 50


def test_shard_of_another_run_is_left_out(tmp_path: Path) -> None:
    replay, other = open_replay(tmp_path / "a"), open_replay(tmp_path / "b")
    fill(replay, 2)
    fill(other, 2, seed=1)
    name = "games-p000-00000001.shard"
    os.replace(tmp_path / "b" / name, tmp_path / "a" / name)
    [warning] = open_replay(tmp_path / "a", replay.state_dict()).take_warnings()
    assert name in warning and "is not the file that was written" in warning


def test_damaged_manifest_loses_nothing(tmp_path: Path) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 3)
    flip(tmp_path / "manifest-p000.jsonl", 30)
    again = open_replay(tmp_path, replay.state_dict())
    [warning] = again.take_warnings()
    assert "1 damaged line;" in warning
    assert_equal(again.sample(0, 0, 100), replay.sample(0, 0, 100))


def full_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, refuse)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_is_one_clear_error_and_loses_nothing(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 2)
    state, files = replay.state_dict(), sorted(tmp_path.iterdir())
    with (
        monkeypatch.context() as patched,
        pytest.raises(
            StorageError, match=r"cannot write .*00000002.shard: No space left on device"
        ),
    ):
        full_disk(patched, call)
        fill(replay, 1)
    assert replay.state_dict() == state
    assert sorted(tmp_path.iterdir()) == files
    fill(replay, 1)
    assert open_replay(tmp_path, replay.state_dict()).take_warnings() == []


def test_disk_full_at_the_manifest_takes_the_shard_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = open_replay(tmp_path)
    fill(replay, 1)
    real, calls = os.fsync, []

    def refuse_third(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with (
        monkeypatch.context() as patched,
        pytest.raises(StorageError, match=r"cannot write .*manifest-p000.jsonl: No space left"),
    ):
        patched.setattr(os, "fsync", refuse_third)
        fill(replay, 1)
    assert len(list(tmp_path.glob("games*"))) == 1
    fill(replay, 2)
    again = open_replay(tmp_path, replay.state_dict())
    assert again.take_warnings() == []
    assert_equal(again.sample(0, 0, 100), replay.sample(0, 0, 100))


def test_really_full_disk(tmp_path: Path) -> None:
    """A tiny file system of memory fills up while a shard is written."""
    if (
        os.geteuid() != 0
        or os.system(f"mount -t tmpfs -o size=256k tmpfs {tmp_path} 2>/dev/null") != 0
    ):
        not_here("mounting a small file system needs root")
    try:
        replay = open_replay(tmp_path)
        fill(replay, 1)
        with pytest.raises(StorageError, match="No space left on device"):
            replay.add(random_games(np.random.default_rng(0), [20] * 1000))
            replay.state_dict()
        assert [path.name for path in sorted(tmp_path.iterdir())] == [
            "games-p000-00000000.shard",
            "manifest-p000.jsonl",
        ]
        assert open_replay(tmp_path, replay.state_dict()).take_warnings() == []
    finally:
        os.system(f"umount {tmp_path}")


def test_arrays_of_every_kind_come_back(tmp_path: Path) -> None:
    arrays = {
        "bfloat16": np.arange(5).astype(ml_dtypes.bfloat16),
        "empty": np.zeros((0, 3), np.float32),
        "scalar": np.asarray(3, np.int64),
        "transposed": np.arange(12, dtype=np.uint16).reshape(3, 4).T,
        "records": np.zeros(4, [("a", "<u4", (2,)), ("b", "?")]),
    }
    digest = write_arrays(tmp_path / "file", arrays, {"x": [1]})
    again, facts = read_arrays(tmp_path / "file", digest)
    assert facts == {"x": [1]}
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)
    with pytest.raises(DamagedFileError, match="expected 000000000000"):
        read_arrays(tmp_path / "file", "0" * 64)


def test_a_full_disk_is_named_where_rows_are_written() -> None:
    if not Path("/dev/full").exists():
        not_here("there is no device that is always full")
    with pytest.raises(OSError) as raised, RowFile(Path("/dev/full")) as rows:
        rows.append({"a": 1})
    assert describe_error(raised.value).startswith("/dev/full: No space left on device; ")


def test_a_directory_that_is_a_link_to_nowhere_is_called_that(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for path in (tmp_path / "link", tmp_path / "link" / "run"):
        with pytest.raises(OSError) as raised:
            path.mkdir(parents=True, exist_ok=True)
        assert describe_error(raised.value) == (
            f"{tmp_path / 'link'}: it is a link to {tmp_path / 'gone'}, which is not a directory; "
            "make it one, or use another name"
        )
