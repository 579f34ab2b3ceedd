"""One iteration's finished games as a file, and the packed row of one position.

A row holds all that a sample needs of its own position, the result included; the history comes from the rows before it, which are the same game's: 296 bytes
for 19x19 Go with 48 policy slots.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from azero.data.files import DamagedFileError, read_arrays, write_arrays
from azero.play.trajectory import Games, HostArray

SCHEMA = 1
"""Version of the row and of the shard file."""
_IS_TARGET = 1  # bit of `flags` in a row
_RESIGNED, _CAN_RESIGN = 1, 2  # bits of `flags` in a game


def row_dtype(frame_words: int, slots: int) -> np.dtype[Any]:
    """Return the layout of one position, a multiple of 4 bytes with the frame in front."""
    fields: list[tuple[Any, ...]] = [
        ("frame", "<u4", (frame_words,)),
        ("policy_index", "<i2", (slots,)),
        ("policy_weight", "<f2", (slots,)),
        ("value", "<f2"),  # result of the game for the side to move; +1, 0 and -1 are exact
        ("action", "<i2"),
        ("ply", "<u2"),
        ("to_play", "u1"),
        ("flags", "u1"),
    ]
    assert np.dtype(fields).itemsize % 4 == 0
    return np.dtype(fields)


GAME_DTYPE = np.dtype([("number", "<i8"), ("length", "<i4"), ("result", "<f4", (2,)), ("flags", "u1"), ("network", "<i4", (2,))])
"""Layout of one game's entry; `network` is missing in shards written before it was recorded."""


ShardName = tuple[int, int]
"""(process index, shard index), which name a shard of a run."""


class Shard(NamedTuple):
    """What is known of a shard file in the window."""

    number: int
    path: Path
    lengths: HostArray
    """int32[G]: moves of each game."""
    num_rows: int


def shard_path(directory: Path, process_index: int, index: int) -> Path:
    """Return the name of shard `index` of a process."""
    return directory / f"games-p{process_index:03d}-{index:08d}.shard"


def parse_shard_path(path: Path) -> tuple[int, int]:
    """Return (process index, shard index) of a file name from `shard_path`."""
    process, index = path.stem.removeprefix("games-p").split("-")
    return int(process), int(index)


def pack_rows(games: Games) -> HostArray:
    """Return the positions of `games` as packed rows [T].

    Raises:
      ValueError: a game is longer than a row's ply counter can say.
    """
    if games.length.max(initial=0) > np.iinfo(np.uint16).max:
        raise ValueError(f"a game of {games.length.max()} moves; the replay stores games of up to {np.iinfo(np.uint16).max}")
    game = np.repeat(np.arange(len(games.length)), games.length)
    rows = np.zeros(len(game), row_dtype(games.frame.shape[1], games.policy_index.shape[1]))
    for name in ("frame", "policy_index", "policy_weight", "action", "to_play"):
        rows[name] = getattr(games, name)
    rows["value"] = games.result[game, games.to_play]
    rows["ply"] = np.arange(len(game)) - games.starts[game]
    rows["flags"] = games.is_target * _IS_TARGET
    return rows


def is_target(rows: HostArray) -> HostArray:
    """Return bool[T]: which rows carry a policy target."""
    return rows["flags"] & _IS_TARGET != 0


def pack_games(games: Games) -> HostArray:
    """Return the entries of `games` as a table [G]."""
    table = np.zeros(len(games.length), GAME_DTYPE)
    for name in ("number", "length", "result", "network"):
        table[name] = getattr(games, name)
    table["flags"] = games.resigned * _RESIGNED + games.can_resign * _CAN_RESIGN
    return table


def write_shard(path: Path, rows: HostArray, games: HostArray, facts: dict[str, Any]) -> str:
    """Write packed rows [T] and the entries of their games [G]; return the checksum that stands for the whole file.

    Raises:
      StorageError: see `azero.data.files.write_atomic`.
    """
    return write_arrays(path, {"rows": rows, "games": games}, {**facts, "schema": SCHEMA})


def read_shard(path: Path, expected: str | None, game: str, dtype: np.dtype[Any]) -> tuple[HostArray, HostArray]:
    """Return (rows [T], games [G]) of a shard, its checksums verified.

    Raises:
      DamagedFileError: missing, torn or changed; of another schema, game or layout of rows.
    """
    arrays, facts = read_arrays(path, expected)
    if facts.get("schema") != SCHEMA:
        raise DamagedFileError(f"{path} has schema {facts.get('schema')}; this version reads schema {SCHEMA}")
    if facts["game"] != game or arrays["rows"].dtype != dtype:
        raise DamagedFileError(f"{path} holds {arrays['rows'].dtype.itemsize}-byte positions of {facts['game']}, not {dtype.itemsize}-byte positions of {game}")
    return arrays["rows"], arrays["games"]
