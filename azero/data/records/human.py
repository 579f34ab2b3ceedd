"""Recorded games as training positions: record files of any kind become packed shards, split by
game, without duplicates.

A data set is a directory with `dataset.json` (the settings), one directory of shards for each
split, as in a run's replay, and `left-out.tsv` (every game that was left out, and why). The header
of a shard has its games' sources and keys, in chess those of the moves as written and as played.
These keys identify the imported games, so the same command resumes an import that was killed, or
adds more files: only new games are added. The policy target is the move played.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from azero.data.files import TEMPORARY_SUFFIX, DamagedFileError, read_header, writing_atomic
from azero.data.manifest import ShardRecord
from azero.data.records.dataset import Dataset, open_manifest
from azero.data.records.filters import GAMES, SPLITS, Filters, Fractions
from azero.data.records.formats import GROUP, Record, RecordFormat, Replayed, format_of
from azero.data.records.recorded import SLOTS, ImportTally, as_games
from azero.data.shard import list_shards, pack_games, pack_positions
from azero.games.archives import RecordError, may_have_records
from azero.games.game import Game
from azero.selfplay.trajectory import HostArray

LEFT_OUT = "left-out.tsv"
_DAMAGED = ".damaged"
"""Suffix for shards that cannot be used."""
_POOL = 1024
"""Games read, replayed and written together; they are sorted by length, so that a group has little
padding."""


def find_records(
    paths: Iterable[Path], suffixes: tuple[str, ...], tally: ImportTally
) -> list[Path]:
    """Return the files among `paths`, and those that may have records (`may_have_records`) in the
    directories among them, in order; `tally` gets a line for each path without any."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            refused: list[OSError] = []
            names = (
                Path(folder, name)
                for folder, files in _walk(path, refused)
                for name in files
                if may_have_records(name, suffixes)
            )
            # A broken link counts as a file, so that reading it reports the error.
            inside = sorted(file for file in names if file.is_file() or file.is_symlink())
            tally.unreadable += [f"{error.filename}: {error.strerror}" for error in refused]
            if not inside and not refused:
                tally.unreadable.append(
                    f"{path}: there is no file of game records in it ({', '.join(suffixes)})"
                )
            found += inside
        elif other := _other_game(path, suffixes):
            tally.unreadable.append(f"{path} has games of {other}: --game {other} reads it")
        elif path.exists():
            found.append(path)
        else:
            tally.unreadable.append(f"{path}: there is no such file or directory")
    return found


def _walk(path: Path, refused: list[OSError]) -> Iterator[tuple[str, list[str]]]:
    """Yield the directories in a directory, also those that links lead to, each once, with the
    names of their files; `refused` gets the errors."""
    seen = set[str]()
    for folder, folders, files in os.walk(path, onerror=refused.append, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:
            folders.clear()
        else:
            seen.add(place)
            yield folder, files


def _other_game(path: Path, suffixes: tuple[str, ...]) -> str:
    """Return the game whose records a file has by its name, if that is not the one of
    `suffixes`."""
    name = path.name.lower()
    if not path.is_file() or name.endswith(suffixes):
        return ""
    return next((game for game in GAMES if name.endswith(format_of(game).suffixes)), "")


def import_games(
    paths: Sequence[Path], dataset: Dataset, tally: ImportTally
) -> Iterator[ImportTally]:
    """Add the games of `paths` (files; see `find_records`) to `dataset`; yield the updated `tally`
    after every pool of games, and after as many that are left out.

    Raises:
      StorageError: the disk is full or cannot be written to; what was written is whole.
    """
    writers = {
        split: _Writer(dataset.directory / split, split, dataset.filters.game, tally)
        for split in SPLITS
    }
    known = set[bytes]().union(*(writer.keys for writer in writers.values()))
    played = set[bytes]().union(*(writer.played for writer in writers.values()))
    form, game = format_of(dataset.filters.game), dataset.game()
    records = _wanted_records(paths, form, dataset.filters, known, tally)
    waiting: deque[_Pool] = deque()
    with (
        dataset.filling(),
        _listing(dataset.directory / LEFT_OUT, tally),
        ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="replay") as workers,
    ):
        for pool in _in_pools(records):
            # The next games are read while the last ones are replayed.
            if pool:
                waiting.append(_Pool.start(pool, game, form, workers))
            if len(waiting) > 1:
                _write_pool(waiting.popleft(), form, dataset.fractions, played, writers, tally)
            yield tally
        while waiting:
            _write_pool(waiting.popleft(), form, dataset.fractions, played, writers, tally)
            yield tally
    yield tally


@contextlib.contextmanager
def _listing(path: Path, tally: ImportTally) -> Iterator[None]:
    """Write the games that are left out to a file, which is complete or not there. Names that are
    not in UTF-8, as in old archives, are written as they are."""
    with writing_atomic(path) as file:
        tally.note = lambda line: file.write(f"{line}\n".encode(errors="surrogateescape"))
        yield


_Keyed = tuple[bytes, Record]


def _wanted_records(
    paths: Sequence[Path],
    form: RecordFormat,
    filters: Filters,
    known: set[bytes],
    tally: ImportTally,
) -> Iterator[_Keyed | None]:
    """Yield the games that pass the filters and are new, each with its key; None for any other."""
    seen: set[bytes] = set()
    for path in paths:
        before = tally.read
        for record in _read(path, form, tally):
            tally.read += 1
            reason = filters.objection(record)
            key = b"" if reason else form.key(record)
            if reason or key in seen:
                tally.leave_out(record.name, reason or "duplicate")
                yield None
                continue
            seen.add(key)
            tally.already += key in known
            yield None if key in known else (key, record)
        tally.files += tally.read > before


def _in_pools(records: Iterable[_Keyed | None]) -> Iterator[list[_Keyed]]:
    """Yield the games in pools of _POOL, and an empty pool after as many None."""
    pool: list[_Keyed] = []
    others = 0
    for record in records:
        if record is None:
            others += 1
            if others % _POOL == 0:
                yield []
            continue
        pool.append(record)
        if len(pool) == _POOL:
            yield pool
            pool = []
    if pool:
        yield pool


def _read(path: Path, form: RecordFormat, tally: ImportTally) -> Iterator[Record]:
    """Yield the games of a file; unreadable ones are counted and named."""
    skipped: list[RecordError] = []
    try:
        for record in form.read(path, skipped):
            yield record
            tally.leave_out_unreadable(skipped)
    except (ValueError, MemoryError) as error:
        skipped.append(RecordError(str(path), error or "not enough memory to read it"))
    tally.leave_out_unreadable(skipped)


@dataclass(frozen=True)
class _Pool:
    """Games that are being replayed: groups of indices of `records`, and their results."""

    records: list[_Keyed]
    groups: list[HostArray]
    results: list[Future[list[Replayed]]]

    @classmethod
    def start(
        cls, records: list[_Keyed], game: Game, form: RecordFormat, workers: ThreadPoolExecutor
    ) -> _Pool:
        """Begin to replay."""
        order = np.argsort([len(record.moves) for _, record in records], kind="stable")
        groups = [order[first : first + GROUP] for first in range(0, len(order), GROUP)]
        chosen = [[records[place][1] for place in group] for group in groups]
        results = [workers.submit(form.replay, game, group) for group in chosen]
        return cls(records, groups, results)

    def collect(self) -> list[Replayed]:
        """Wait for all games, and return them in the order of `records`."""
        replayed: dict[int, Replayed] = {}
        for group, result in zip(self.groups, self.results, strict=True):
            replayed |= dict(zip(group.tolist(), result.result(), strict=True))
        return [replayed[place] for place in range(len(self.records))]


def _write_pool(
    pool: _Pool,
    form: RecordFormat,
    fractions: Fractions,
    played: set[bytes],
    writers: dict[str, _Writer],
    tally: ImportTally,
) -> None:
    """Write the games of a pool that follow the rules, each to its split; `played` has the played
    keys of all games so far."""
    chosen: dict[str, list[_Taken]] = {split: [] for split in SPLITS}
    for (key, record), replayed in zip(pool.records, pool.collect(), strict=True):
        if replayed.problem:
            tally.leave_out(record.name, "against the rules", replayed.problem)
            continue
        identity = form.played_key(record, replayed) if form.played_key else key
        if identity in played:
            tally.leave_out(record.name, "duplicate")
            continue
        played.add(identity)
        chosen[fractions.split_of(identity)].append(_Taken(key, identity, record, replayed))
    for split, games in chosen.items():
        if games:
            tally.games[split] += len(games)
            tally.positions[split] += writers[split].write(games)


class _Taken(NamedTuple):
    """A game that is taken."""

    key: bytes
    played_key: bytes
    record: Record
    replayed: Replayed


class _Writer:
    """Writes the shards of one split."""

    def __init__(self, directory: Path, split: str, game: str, tally: ImportTally) -> None:
        """Open a split of a game's records; shards that are not in the manifest, left by a
        killed process, are removed."""
        directory.mkdir(parents=True, exist_ok=True)
        self.keys: set[bytes] = set()
        self.played: set[bytes] = set()
        self._directory = directory
        self._manifest = open_manifest(directory)
        for _, index, path in list_shards(directory):
            if index not in self._manifest.records:
                path.unlink()
        for path in directory.glob(f"games-p000-*.shard{TEMPORARY_SUFFIX}"):
            path.unlink()
        for record in tuple(self._manifest.records.values()):
            self._add_shard(record, tally)
        self._next = max(self._manifest.records, default=-1) + 1
        self._num_games = sum(record.games for record in self._manifest.records.values())
        self._split, self._game = split, game

    def _add_shard(self, record: ShardRecord, tally: ImportTally) -> None:
        """Read the keys of a shard's games; a damaged shard is set aside, and its games count as
        new.

        Raises:
          DamagedFileError: the data set was not imported from records.
        """
        path = self._directory / record.file
        try:
            facts = read_header(path)[0]["facts"]
        except DamagedFileError as error:
            tally.unreadable.append(
                f"{error}; its {record.games} games are imported again if the files have them"
            )
            self._manifest.retain(lambda index: index != record.shard)
            if path.exists():
                path.rename(path.with_name(path.name + _DAMAGED))
            return
        if "keys" not in facts:
            raise DamagedFileError(
                f"{path} is not a shard of an import: it does not name its games"
            )
        self.keys.update(map(bytes.fromhex, facts["keys"]))
        self.played.update(map(bytes.fromhex, facts.get("played_keys", facts["keys"])))

    def write(self, games: list[_Taken]) -> int:
        """Write games as one shard, and return how many positions they have."""
        packed = as_games([(taken.record, taken.replayed) for taken in games], self._num_games)
        positions = pack_positions(packed, SLOTS)
        facts = {
            "game": self._game,
            "split": self._split,
            "sources": [taken.record.name for taken in games],
            "keys": [taken.key.hex() for taken in games],
        }
        if any(taken.played_key != taken.key for taken in games):
            facts["played_keys"] = [taken.played_key.hex() for taken in games]
        self._manifest.put(self._next, positions, pack_games(packed), facts)
        self._next += 1
        self._num_games += len(games)
        return len(positions.rows)
