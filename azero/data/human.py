"""Recorded games as training positions: any mix of record files becomes packed shards, split by game, without duplicates.

A data set is a directory with `dataset.json` (what was asked for), one directory of shards for each split, as a run's replay has them, and `left-out.tsv`
(every game that was not taken, and why). The header of a shard names its games' sources and keys. What was imported is known by these keys, so an import
that was killed, or gets more files later, is the same command again: only games that are not there yet are added. The policy target is the move played.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from azero.config import ReplayConfig
from azero.data.files import DamagedFileError, read_header, write_atomic
from azero.data.filters import SPLITS, Filters, Fractions
from azero.data.identity import game_key
from azero.data.manifest import Manifest, ShardRecord, manifest_path
from azero.data.replay import Replay
from azero.data.shard import pack_rows, parse_shard_path, read_shard, row_dtype, shard_path, write_shard
from azero.games.game import Game
from azero.games.go.replaying import NO_MOVE, boards_of, broken_rule, replay_moves, start_states
from azero.games.go.rules import Go
from azero.games.go.sgf import SUFFIXES, GameRecord, read_games
from azero.games.go.text import format_vertex
from azero.play.trajectory import Games, HostArray

DATASET = "dataset.json"
LEFT_OUT = "left-out.tsv"
SLOTS = 1
"""Policy slots of a position: the move that was played."""
_SCHEMA = 1
_POOL = 1024
"""Games read, replayed and written together; sorted by length, so that few moves of a group are padding."""
_GROUP = 128
"""Games replayed side by side (`azero.games.batching.PIECE`)."""
_CHUNK = 64
"""Moves per compiled call."""


@dataclass
class Tally:
    """What an import has done so far."""

    files: int = 0
    """Files read to their end."""
    read: int = 0
    """Games read."""
    already: int = 0
    """Games that were in the data set before."""
    games: Counter[str] = field(default_factory=Counter)
    """Games added, by split."""
    positions: Counter[str] = field(default_factory=Counter)
    """Positions added, by split."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Games left out, by reason; what differs from game to game is not part of the reason."""
    unreadable: list[str] = field(default_factory=list)
    """A line for every file or game that could not be read or replayed."""
    left_out_lines: list[str] = field(default_factory=list)
    """Name, tab, reason of every game that was left out."""

    def leave_out(self, name: str, reason: str, detail: str = "") -> None:
        """Count a game that is left out; with a `detail` it is named, too."""
        self.left_out[reason] += 1
        text = f"{reason}: {detail}" if detail else reason
        self.left_out_lines.append(f"{name}\t{text}".replace("\n", " "))
        if detail:
            self.unreadable.append(f"{name}: {text}")


@dataclass(frozen=True)
class Dataset:
    """A data set on disk."""

    directory: Path
    filters: Filters
    fractions: Fractions

    @classmethod
    def open(cls, directory: Path) -> Dataset:
        """Open the data set in `directory`.

        Raises:
          ValueError: there is none, or it is of another version.
        """
        path = directory / DATASET
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if facts["schema"] != _SCHEMA:
                raise ValueError(f"{path} has schema {facts['schema']}; this version reads schema {_SCHEMA}")
            filters: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts["filters"].items()}
            return cls(directory, Filters(**filters), Fractions(**facts["fractions"]))
        except FileNotFoundError:
            raise ValueError(f"{directory} is no data set: there is no {DATASET} in it; azero data import PATHS --out {directory} makes one") from None
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error!r}") from error

    @classmethod
    def create(cls, directory: Path, filters: Filters, fractions: Fractions) -> Dataset:
        """Make a data set, or open the one that is there with the same settings.

        Raises:
          ValueError: there is one with other settings; they are named.
          StorageError: the directory cannot be written to.
        """
        if (directory / DATASET).exists():
            there = cls.open(directory)
            wanted = {**dataclasses.asdict(filters), **dataclasses.asdict(fractions)}
            found = {**dataclasses.asdict(there.filters), **dataclasses.asdict(there.fractions)}
            differing = [f"{name} = {found[name]} there, {value} now" for name, value in wanted.items() if found[name] != value]
            if differing:
                raise ValueError(f"{directory} holds a data set with other settings: {'; '.join(differing)}; take another directory, or the same settings")
            return there
        directory.mkdir(parents=True, exist_ok=True)
        facts = {"schema": _SCHEMA, "game": "go", "filters": dataclasses.asdict(filters), "fractions": dataclasses.asdict(fractions)}
        write_atomic(directory / DATASET, [json.dumps(facts, indent=2).encode() + b"\n"])
        return cls(directory, filters, fractions)

    def game(self) -> Go:
        """Return the rules that the games were replayed under."""
        return Go(size=self.filters.board_shape, superko=self.filters.superko, suicide=self.filters.suicide, max_moves=self.filters.longest)

    def shards(self, split: str) -> list[ShardRecord]:
        """Return the shards of a split, oldest first."""
        records = Manifest(manifest_path(self.directory / split, 0)).records
        return [records[index] for index in sorted(records)]

    def open_split(self, split: str, game: Game, config: ReplayConfig, memory: int | None = None) -> Replay:
        """Open all positions of a split to be sampled from, checksums verified; arguments as in `Replay.open`.

        Raises:
          ValueError: the split is empty, or of another board than `game`.
        """
        shards = self.shards(split)
        if not shards:
            raise ValueError(f"{self.directory} has no games for {split}")
        if game.board_shape != self.filters.board_shape:
            raise ValueError(f"{self.directory} holds games on {self.filters.board_shape}, not on {game.board_shape}")
        games, positions = (sum(getattr(record, name) for record in shards) for name in ("games", "positions"))
        state = {"first_shard": shards[0].shard, "next_shard": shards[-1].shard + 1, "num_games": games, "num_positions": positions}
        return Replay.open(self.directory / split, game, dataclasses.replace(config, window_games=games), SLOTS, state, memory=memory)

    def rows(self, split: str) -> HostArray:
        """Return all packed positions of a split, game after game, checksums verified; none of an empty split.

        Raises:
          DamagedFileError: a shard is missing or damaged.
        """
        game = self.game()
        dtype = row_dtype(game.frame_words, SLOTS)
        shards = [read_shard(self.directory / split / record.file, record.sha256, game.name, dtype)[0] for record in self.shards(split)]
        return np.concatenate(shards) if shards else np.zeros(0, dtype)

    def sources(self, split: str, shard: int) -> list[str]:
        """Return where the games of a shard come from.

        Raises:
          DamagedFileError: the shard is missing or damaged.
        """
        return list(read_header(shard_path(self.directory / split, 0, shard))[0]["facts"]["sources"])


def find_records(paths: Iterable[Path], tally: Tally) -> list[Path]:
    """Return the record files among `paths` and in the directories among them, in order; a line of `tally` for each that has none."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file() and file.name.lower().endswith(SUFFIXES))
            if not inside:
                tally.unreadable.append(f"{path}: there is no file of game records in it ({', '.join(SUFFIXES)})")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            tally.unreadable.append(f"{path}: there is no such file or directory")
    return found


def import_games(paths: Sequence[Path], dataset: Dataset, tally: Tally) -> Iterator[Tally]:
    """Add the games of `paths` (files; see `find_records`) to `dataset`; yields `tally`, brought up to date, after every pool of games.

    Raises:
      StorageError: the disk is full or cannot be written to; what was written is whole.
    """
    writers = {split: _Writer(dataset.directory / split, split) for split in SPLITS}
    known = set[bytes]().union(*(writer.keys for writer in writers.values()))
    records = _wanted_records(paths, dataset.filters, known, tally)
    game = dataset.game()
    waiting: deque[_Pool] = deque()
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="replay") as workers:
        while pool := list(islice(records, _POOL)):
            # The next games are read while the last ones are replayed.
            waiting.append(_Pool.start(pool, game, workers))
            if len(waiting) > 1:
                _write_pool(waiting.popleft(), dataset.fractions, writers, tally)
            yield tally
        while waiting:
            _write_pool(waiting.popleft(), dataset.fractions, writers, tally)
            yield tally
    write_atomic(dataset.directory / LEFT_OUT, (f"{line}\n".encode() for line in tally.left_out_lines))
    yield tally


_Keyed = tuple[bytes, GameRecord]


def _wanted_records(paths: Sequence[Path], filters: Filters, known: set[bytes], tally: Tally) -> Iterator[_Keyed]:
    """Yield the games that pass the filters and are new, each with its key."""
    seen: set[bytes] = set()
    for path in paths:
        for record in _read(path, tally):
            tally.read += 1
            if reason := filters.objection(record):
                tally.leave_out(record.name, reason)
                continue
            key = game_key(record)
            if key in seen:
                tally.leave_out(record.name, "duplicate")
                continue
            seen.add(key)
            if key in known:
                tally.already += 1
            else:
                yield key, record
        tally.files += 1


def _read(path: Path, tally: Tally) -> Iterator[GameRecord]:
    """Yield the games of a file; what cannot be read is counted and named."""
    skipped: list[str] = []
    try:
        for record in read_games(path, skipped):
            yield record
            _leave_out_unreadable(skipped, tally)
    except (ValueError, MemoryError) as error:
        skipped.append(f"{path.name}: {error or 'not enough memory to read it'}")
    _leave_out_unreadable(skipped, tally)


def _leave_out_unreadable(skipped: list[str], tally: Tally) -> None:
    for line in skipped:
        name, _, reason = line.partition(": ")
        tally.leave_out(name, "not readable", reason)
    skipped.clear()


@dataclass(frozen=True)
class _Replayed:
    """One game played again."""

    frames: HostArray
    """uint32[T, F]: the positions before the moves."""
    problem: str
    """What is wrong with it; empty if nothing is."""


@dataclass(frozen=True)
class _Pool:
    """Games that are being replayed: groups of places in `records`, and what comes of them."""

    records: list[_Keyed]
    groups: list[HostArray]
    results: list[Future[list[_Replayed]]]

    @classmethod
    def start(cls, records: list[_Keyed], game: Go, workers: ThreadPoolExecutor) -> _Pool:
        """Begin to replay."""
        order = np.argsort([len(record.moves) for _, record in records], kind="stable")
        groups = [order[first : first + _GROUP] for first in range(0, len(order), _GROUP)]
        return cls(records, groups, [workers.submit(replay_group, game, [records[place][1] for place in group]) for group in groups])

    def collect(self) -> list[_Replayed]:
        """Wait for all games, and return them in the order of `records`."""
        replayed: dict[int, _Replayed] = {}
        for group, result in zip(self.groups, self.results, strict=True):
            replayed |= dict(zip(group.tolist(), result.result(), strict=True))
        return [replayed[place] for place in range(len(self.records))]


def replay_group(game: Go, records: Sequence[GameRecord]) -> list[_Replayed]:
    """Play up to 128 games again, side by side."""
    problems = [_setup_problem(game, record) for record in records]
    records = [dataclasses.replace(record, black_points=(), white_points=()) if problem else record for record, problem in zip(records, problems, strict=True)]
    states = start_states(game, records, _GROUP)
    length = -(-max(len(record.moves) for record in records) // _CHUNK) * _CHUNK
    actions, colours = np.full((length, _GROUP), NO_MOVE, np.int32), np.zeros((length, _GROUP), np.int32)
    for column, record in enumerate(records):
        colours[: len(record.moves), column], actions[: len(record.moves), column] = np.asarray(record.moves).T
    frames, legal = [np.asarray(states.frames)[None, :, 0]], []
    for first in range(0, length, _CHUNK):
        part = slice(first, first + _CHUNK)
        states, legal_part, _, frames_part = replay_moves(game, states, actions[part], colours[part])
        legal.append(np.asarray(legal_part))
        frames.append(np.asarray(frames_part))
    before, allowed = np.concatenate(frames), np.concatenate(legal)
    return [
        _Replayed(before[: len(record.moves), column], problem or _first_forbidden(game, record, before[:, column], allowed[:, column]))
        for column, (record, problem) in enumerate(zip(records, problems, strict=True))
    ]


def pack_records(records: Sequence[GameRecord], game: Go, tally: Tally) -> HostArray:
    """Return the packed positions of games, in order; games that are against the rules are left out and counted."""
    replayed = [result for first in range(0, len(records), _GROUP) for result in replay_group(game, records[first : first + _GROUP])]
    sound = []
    for record, result in zip(records, replayed, strict=True):
        if result.problem:
            tally.leave_out(record.name, "against the rules", result.problem)
        else:
            sound.append((record, result.frames))
    return pack_rows(_as_games(sound, 0)) if sound else np.zeros(0, row_dtype(game.frame_words, SLOTS))


def _setup_problem(game: Go, record: GameRecord) -> str:
    if record.black_points or record.white_points:
        try:
            game.setup(record.black_points, record.white_points, record.to_play)
        except ValueError as error:
            return str(error)
    return ""


def _first_forbidden(game: Go, record: GameRecord, frames: HostArray, legal: HostArray) -> str:
    """Return what is wrong with the first move that the rules forbid; empty if there is none."""
    forbidden = np.flatnonzero(~legal[: len(record.moves)])
    if not len(forbidden):
        return ""
    ply = int(forbidden[0])
    colour, action = record.moves[ply]
    rule = broken_rule(game, boards_of(frames[: ply + 1], game.num_points), colour, action)
    return f"move {ply + 1}, {'Black' if colour == 0 else 'White'} {format_vertex(action, game.board_shape)}: {rule}"


def _write_pool(pool: _Pool, fractions: Fractions, writers: dict[str, _Writer], tally: Tally) -> None:
    """Write the games of a pool that are as the rules want them, each to its split."""
    chosen: dict[str, list[tuple[bytes, GameRecord, HostArray]]] = {split: [] for split in SPLITS}
    for (key, record), replayed in zip(pool.records, pool.collect(), strict=True):
        if replayed.problem:
            tally.leave_out(record.name, "against the rules", replayed.problem)
        else:
            chosen[fractions.split_of(key)].append((key, record, replayed.frames))
    for split, games in chosen.items():
        if games:
            tally.games[split] += len(games)
            tally.positions[split] += writers[split].write(games)


class _Writer:
    """Writes the shards of one split."""

    def __init__(self, directory: Path, split: str) -> None:
        """Open a split; a shard that a killed process did not get into the manifest is removed."""
        directory.mkdir(parents=True, exist_ok=True)
        self.keys: set[bytes] = set()
        self._directory = directory
        self._manifest = Manifest(manifest_path(directory, 0))
        for path in directory.glob("games-p000-*.shard*"):
            if path.suffix != ".shard" or parse_shard_path(path)[1] not in self._manifest.records:
                path.unlink()
        for record in self._manifest.records.values():
            facts = read_header(directory / record.file)[0]["facts"]
            if "keys" not in facts:
                raise DamagedFileError(f"{directory / record.file} is no shard of an import: it does not name its games")
            self.keys.update(map(bytes.fromhex, facts["keys"]))
        self._next = max(self._manifest.records, default=-1) + 1
        self._num_games = sum(record.games for record in self._manifest.records.values())
        self._split = split

    def write(self, games: list[tuple[bytes, GameRecord, HostArray]]) -> int:
        """Write games as one shard, and return how many positions they have."""
        packed = _as_games([(record, frames) for _, record, frames in games], self._num_games)
        rows = pack_rows(packed)
        path = shard_path(self._directory, 0, self._next)
        facts: dict[str, Any] = {"game": "go", "shard": self._next, "process": 0, "split": self._split}
        facts |= {"sources": [record.name for _, record, _ in games], "keys": [key.hex() for key, _, _ in games]}
        digest = write_shard(path, rows, packed, facts)
        self._manifest.append(ShardRecord(self._next, path.name, len(games), len(rows), digest))
        self._next += 1
        self._num_games += len(games)
        return len(rows)


def _as_games(games: Sequence[tuple[GameRecord, HostArray]], first_number: int) -> Games:
    """Return replayed games as columns; the policy target is the move played."""
    moves = np.concatenate([np.asarray(record.moves) for record, _ in games])
    length = np.asarray([len(record.moves) for record, _ in games], np.int32)
    action, rows = moves[:, 1].astype(np.int16), len(moves)
    return Games(
        frame=np.concatenate([frames for _, frames in games]),
        to_play=moves[:, 0].astype(np.uint8),
        action=action,
        policy_index=action[:, None],
        policy_weight=np.ones((rows, SLOTS), np.float16),
        is_target=np.ones(rows, bool),
        root_value=np.zeros(rows, np.float16),
        best_child_value=np.zeros(rows, np.float16),
        length=length,
        result=np.asarray([record.rewards or (0.0, 0.0) for record, _ in games], np.float32),
        resigned=np.asarray(["+R" in record.result.upper() for record, _ in games]),
        can_resign=np.ones(len(games), bool),
        number=first_number + np.arange(len(games), dtype=np.int64),
    )
