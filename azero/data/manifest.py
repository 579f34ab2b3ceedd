"""The list of a process's shards: JSON lines with checksums, appended when a shard is added and
rewritten when shards are removed; and how the shards are dealt to another number of processes."""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from azero.data.files import (
    UNTOUCHED,
    DamagedFileError,
    StorageError,
    read_header,
    sync_directory,
    write_atomic,
)
from azero.data.shard import Positions, ShardName, list_shards, shard_path, write_shard
from azero.selfplay.trajectory import HostArray


class ShardRecord(NamedTuple):
    """A line of the manifest."""

    shard: int
    file: str
    games: int
    positions: int
    sha256: str


class Manifest:
    """The shards that were written and not deleted since, by index."""

    def __init__(self, path: Path) -> None:
        """Read the manifest at `path`, if there is one. Lines that are torn or changed are skipped,
        and counted in `num_damaged`."""
        self.path = path
        self.records: dict[int, ShardRecord] = {}
        self.num_damaged = 0
        for line in path.read_bytes().splitlines() if path.exists() else ():
            record = _parse_record(line)
            if record is not None:
                self.records[record.shard] = record
            elif line:
                self.num_damaged += 1

    def recover(self) -> None:
        """Add the shards whose lines are damaged, from the headers of their files."""
        if not self.num_damaged:
            return
        own = parse_manifest_path(self.path)
        for process, index, path in list_shards(self.path.parent):
            if process != own:
                continue
            with contextlib.suppress(DamagedFileError):
                header, _, digest = read_header(path)
                if index not in self.records and header["facts"].get("shard") == index:
                    games, rows = (header["arrays"][name]["shape"][0] for name in ("games", "rows"))
                    self.records[index] = ShardRecord(index, path.name, games, rows, digest)

    def put(
        self, number: int, positions: Positions, games: HostArray, facts: dict[str, Any]
    ) -> Path:
        """Write a shard, positions [T] and the entries of their games [G], and its line here: both
        or neither. Return its file.

        Raises:
          StorageError: the disk is full or cannot be written to.
        """
        process = parse_manifest_path(self.path)
        path = shard_path(self.path.parent, process, number)
        digest = write_shard(path, positions, games, {"shard": number, "process": process, **facts})
        try:
            self.append(ShardRecord(number, path.name, len(games), len(positions.rows), digest))
        except StorageError:
            path.unlink()
            raise
        return path

    def append(self, record: ShardRecord) -> None:
        """Add a shard, durably.

        Raises:
          StorageError: the line could not be written; the manifest is unchanged.
        """
        is_new = not self.path.exists()
        try:
            with open(self.path, "ab") as file:
                # The line break comes first, to separate this line from one that a full disk cut
                # short.
                file.write(b"\n" + _format_record(record))
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_directory(self.path.parent)
        except OSError as error:
            reason = f"{error.strerror or error}; {UNTOUCHED}"
            raise StorageError(f"cannot write {self.path}: {reason}") from error
        self.records[record.shard] = record

    def retain(self, keep: Callable[[int], bool]) -> None:
        """Drop the shards for whose index `keep` is False.

        Raises:
          StorageError: see `azero.data.files.write_atomic`.
        """
        kept = {index: record for index, record in self.records.items() if keep(index)}
        write_atomic(self.path, (b"\n" + _format_record(record) for record in kept.values()))
        self.records = kept


def manifest_path(directory: Path, process_index: int) -> Path:
    """Return the name of the manifest of a process's shards."""
    return directory / f"manifest-p{process_index:03d}.jsonl"


def parse_manifest_path(path: Path) -> int:
    """Return the process index of a file name from `manifest_path`."""
    return int(path.stem.removeprefix("manifest-p"))


def list_manifests(directory: Path) -> list[tuple[int, Path]]:
    """Return (process index, file) of the manifests in `directory`; files under other names do not
    count, as in `list_shards`."""
    return sorted(
        (parse_manifest_path(path), path)
        for path in directory.glob("manifest-p*.jsonl")
        if re.fullmatch(r"manifest-p\d{3,}\.jsonl", path.name)
    )


def _format_record(record: ShardRecord) -> bytes:
    body = json.dumps(record._asdict(), sort_keys=True)
    return f"{body}\t{_checksum(body)}".encode()


def _parse_record(line: bytes) -> ShardRecord | None:
    body, _, checksum = line.decode("utf-8", "replace").partition("\t")
    return ShardRecord(**json.loads(body)) if body and checksum == _checksum(body) else None


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:16]


def deal_shards(
    cursors: Sequence[dict[str, Any]], process: int, count: int
) -> tuple[dict[str, int], list[ShardName]]:
    """Return the replay that process `process` of `count` starts with; `cursors` are those of the
    previous processes (`Replay.state_dict`).

    The shards are dealt one by one, the newest first, so every process gets games of all ages and
    almost as many as the others. New shards are numbered after all previous ones: none takes the
    name of one that an older checkpoint may need.

    Returns:
      (a cursor without shards, the shards that the process takes over, oldest first).
    """
    first = max(cursor["next_shard"] for cursor in cursors)
    by_age = sorted(
        (cursor["next_shard"] - shard, owner, shard)
        for owner, cursor in enumerate(cursors)
        for shard in range(cursor["first_shard"], cursor["next_shard"])
    )
    names = [(owner, shard) for _, owner, shard in by_age][process::count]
    totals = {
        name: sum(cursor[name] for cursor in cursors) for name in ("num_games", "num_positions")
    }
    shares = {name: total // count + (process < total % count) for name, total in totals.items()}
    return {"first_shard": first, "next_shard": first, **shares}, names[::-1]


def forget_processes(directory: Path, count: int) -> None:
    """Delete the shards and manifests in `directory` of the processes from `count` on, once no
    checkpoint needs them."""
    for process, manifest in list_manifests(directory):
        if process >= count:
            for path in directory.glob(f"games-p{process:03d}-*"):
                path.unlink(missing_ok=True)
            manifest.unlink()
