"""A data set of recorded games on disk: its settings, and a directory of shards for each split."""

import contextlib
import dataclasses
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from azero.data.files import read_header, write_atomic
from azero.data.manifest import Manifest, ShardRecord, manifest_path
from azero.data.records.filters import SPLITS, Filters, Fractions
from azero.data.records.recorded import SLOTS
from azero.data.replay import Replay
from azero.data.settings import ReplayConfig
from azero.data.shard import Positions, pack_games, read_shard, row_dtype, shard_path, with_margin
from azero.games.game import Game
from azero.selfplay.targets import policy_room
from azero.selfplay.trajectory import Games, HostArray

DATASET = "dataset.json"
_UNFINISHED = "unfinished"
"""The file that a data set has while games are added, and after an interruption of that."""
_SCHEMA = 3
_OLDEST_SCHEMA = 1
"""Without rows_per_position, which was 1; 2 is without has_searches, which was False."""


def open_manifest(directory: Path) -> Manifest:
    """Return the shards of a split. Unlike in a run, no checkpoint lists them, so a damaged line is
    restored from the shard itself."""
    manifest = Manifest(manifest_path(directory, 0))
    manifest.recover()
    return manifest


@dataclass(frozen=True)
class Dataset:
    """A data set on disk."""

    directory: Path
    filters: Filters
    fractions: Fractions
    rows_per_position: int = 1
    """The last of this many rows is a position to learn from, the others are its history; 1 where
    every position of a game is learned from."""
    has_searches: bool = False
    """Policy targets are those of searches, as in a run of self-play; else the moves played."""

    def __post_init__(self) -> None:
        self.filters.check()
        self.fractions.check()

    @classmethod
    def open(cls, directory: Path) -> "Dataset":
        """Open the data set in `directory`.

        Raises:
          ValueError: there is no data set, or it is of another version.
        """
        path = directory / DATASET
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            if not _OLDEST_SCHEMA <= facts["schema"] <= _SCHEMA:
                raise ValueError(
                    f"{path} has schema {facts['schema']}; this version reads schema "
                    f"{_OLDEST_SCHEMA} to {_SCHEMA}"
                )
            filters: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in facts["filters"].items()
            }
            return cls(
                directory,
                Filters(**filters),
                Fractions(**facts["fractions"]),
                facts.get("rows_per_position", 1),
                facts.get("has_searches", False),
            )
        except (FileNotFoundError, NotADirectoryError):
            raise ValueError(
                f"{directory} is not a data set: there is no {DATASET} in it; a data set is a "
                "directory that azero data import PATHS --out DIRECTORY makes"
            ) from None
        except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} cannot be read: {error!r}") from error

    @classmethod
    def create(
        cls,
        directory: Path,
        filters: Filters,
        fractions: Fractions,
        rows_per_position: int = 1,
        has_searches: bool = False,
    ) -> "Dataset":
        """Make a data set, or open an existing one with the same settings.

        Raises:
          ValueError: there is one with other settings, which are named; or the settings are
            invalid, such as an impossible board.
          StorageError: the directory cannot be written to.
        """
        dataset = cls(directory, filters, fractions, rows_per_position, has_searches)
        if (directory / DATASET).exists():
            existing = cls.open(directory)
            found = existing.settings()
            differing = [
                f"{name} = {found[name]} there, {value} now"
                for name, value in dataset.settings().items()
                if found[name] != value
            ]
            if differing:
                raise ValueError(
                    f"{directory} holds a data set with other settings: "
                    f"{'; '.join(differing)}; use another directory, or the same settings"
                )
            return existing
        dataset.game()  # invalid settings raise before anything is created
        directory.mkdir(parents=True, exist_ok=True)
        facts = {
            "schema": _SCHEMA,
            "game": filters.game,
            "filters": dataclasses.asdict(filters),
            "fractions": dataclasses.asdict(fractions),
            "rows_per_position": rows_per_position,
            "has_searches": has_searches,
        }
        write_atomic(directory / DATASET, [json.dumps(facts, indent=2).encode() + b"\n"])
        return dataset

    def settings(self) -> dict[str, Any]:
        """Return all settings by name."""
        own = {name: getattr(self, name) for name in ("rows_per_position", "has_searches")}
        return dataclasses.asdict(self.filters) | dataclasses.asdict(self.fractions) | own

    @property
    def slots(self) -> int:
        """The most moves of a policy target."""
        return policy_room(self.game()) if self.has_searches else SLOTS

    def game(self) -> Game:
        """Return the rules that the games were replayed under."""
        return self.filters.rules_of_game().build()

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Add games: until that has ended without an error the data set is unfinished."""
        mark = self.directory / _UNFINISHED
        mark.touch()
        yield
        mark.unlink()

    @property
    def is_unfinished(self) -> bool:
        """Games are being added, or that was interrupted."""
        return (self.directory / _UNFINISHED).exists()

    def remove_shards(self) -> None:
        """Remove all games."""
        for split in SPLITS:
            if (self.directory / split).exists():
                shutil.rmtree(self.directory / split)

    @property
    def warnings(self) -> list[str]:
        """A line where games are missing."""
        if not self.is_unfinished:
            return []
        return [
            f"{self.directory} is not finished: games are missing, because the command that adds "
            "them was interrupted or is still running; repeat it"
        ]

    def shards(self, split: str) -> list[ShardRecord]:
        """Return the shards of a split, oldest first."""
        records = open_manifest(self.directory / split).records
        return [records[index] for index in sorted(records)]

    def digest(self, split: str) -> str:
        """Return a digest of the positions of a split, in their order.

        Raises:
          DamagedFileError: a shard is missing or damaged.
        """
        digest = sha256()
        for record in self.shards(split):
            header, _, _ = read_header(self.directory / split / record.file)
            digest.update(bytes.fromhex(header["arrays"]["rows"]["sha256"]))
        return digest.hexdigest()

    def open_split(self, split: str, game: Game, config: ReplayConfig) -> Replay:
        """Open a split for sampling from all its positions, checksums verified; arguments as of
        `Replay`.

        Raises:
          ValueError: the split is empty, or of another board than `game`.
        """
        shards = self.shards(split)
        if not shards:
            raise ValueError(f"{self.directory} has no games for {split}")
        mine = self.game()
        if (game.name, game.board_shape) != (mine.name, mine.board_shape):
            raise ValueError(
                f"{self.directory} holds games of {mine.name} on {mine.board_shape}, not of "
                f"{game.name} on {game.board_shape}"
            )
        games, positions = (
            sum(getattr(record, name) for record in shards) for name in ("games", "positions")
        )
        state = {"first_shard": shards[0].shard, "next_shard": shards[-1].shard + 1}
        return Replay(
            self.directory / split,
            game,
            dataclasses.replace(config, window_games=games),
            self.slots,
            {**state, "num_games": games, "num_positions": positions},
            rows_per_position=self.rows_per_position,
        )

    def rows(self, split: str, most: int | None = None) -> HostArray:
        """Return the packed rows of a split, game after game, checksums verified; no rows if it is
        empty. With `most`, only the first shards with at least that many positions are read.

        Raises:
          DamagedFileError: a shard is missing or damaged.
        """
        game = self.game()
        shards: list[HostArray] = []
        for record in self.shards(split):
            if most is not None and sum(map(len, shards)) >= most * self.rows_per_position:
                break
            path = self.directory / split / record.file
            found, _ = read_shard(path, record.sha256, game.name, game.frame_words, self.slots)
            shards.append(found.rows)
        return np.concatenate(shards) if shards else np.zeros(0, row_dtype(game.frame_words))

    def positions(self, rows: HostArray) -> HostArray:
        """Return int64[P]: the indices of the positions to learn from among the rows [T] of whole
        games."""
        return np.arange(
            self.rows_per_position - 1, len(rows), self.rows_per_position, dtype=np.int64
        )

    def append(self, split: str, rows: HostArray, games: Games, sources: Sequence[str]) -> None:
        """Add packed games without policy targets to a split; see `append_packed`."""
        self.append_packed(
            split, with_margin(rows, games.policy, SLOTS), pack_games(games), sources
        )

    def append_packed(
        self, split: str, positions: Positions, games: HostArray, sources: Sequence[str]
    ) -> None:
        """Add games to a split as one shard, atomically: their positions [T] and their entries [G]
        (`azero.data.shard`). `sources` say where the games come from.

        Raises:
          StorageError: the disk is full or cannot be written to.
        """
        directory = self.directory / split
        directory.mkdir(parents=True, exist_ok=True)
        manifest = open_manifest(directory)
        number = max(manifest.records, default=-1) + 1
        facts = {"game": self.filters.game, "split": split, "sources": list(sources)}
        manifest.put(number, positions, games, facts)

    def sources(self, split: str, shard: int) -> list[str]:
        """Return where the games of a shard come from.

        Raises:
          DamagedFileError: the shard is missing or damaged.
        """
        header, _, _ = read_header(shard_path(self.directory / split, 0, shard))
        return list(header["facts"]["sources"])
