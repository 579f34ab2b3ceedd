"""One iteration's finished games as a file, the packed row of one position, and the words of its
policy target.

A row holds all that a sample needs of its own position, the result included, in 112 bytes for 19x19
Go; the history is in the rows before it, of the same game. The policy targets of all positions are
concatenated, 4 bytes for each visited move (`azero.selfplay.targets`).
"""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from azero.console.standard_output import say
from azero.data.files import DamagedFileError, map_array, read_arrays, read_header, write_arrays
from azero.games.game import Game
from azero.selfplay.targets import policy_room, words_of
from azero.selfplay.trajectory import Games, HostArray

SCHEMA = 2
"""Version of the row and of the shard file."""
_SCHEMA_OF_SLOTS = 1
"""The older schema, whose rows hold a fixed number of the most probable moves, as int16 and
float16; it can still be read."""
_IS_TARGET, _ENDS_ELSEWHERE = 1, 2  # bits of `flags` in a row
RESIGNED, _CAN_RESIGN = 1, 2  # bits of `flags` in a game


HORIZONS = (0.176, 0.056, 0.016)
"""Horizons over which `later` averages the following root values, as shares of the board's points:
14, 4.5 and 1.3 moves at 9x9 (KataGo's cpp/dataio/trainingwrite.cpp)."""

_AUXILIARY: list[tuple[Any, ...]] = [
    ("root_value", "<f2"),  # the root's value after the search, for the side to move
    ("later", "<f2", (len(HORIZONS),)),  # means of the root's values to come, for the side to move
    ("surprise", "<f2"),  # of the search's policy, as a multiple of the mean over its game
    ("moves_left", "<u2"),  # moves until the end of the game, this one included
]


def row_dtype(frame_words: int, has_auxiliary: bool = False) -> np.dtype[Any]:
    """Return the layout of one position, a multiple of 4 bytes with the frame first. With
    `has_auxiliary` it also has the targets of auxiliary heads."""
    fields: list[tuple[Any, ...]] = [
        ("frame", "<u4", (frame_words,)),
        # index of the first word of the policy target among those of the shard
        ("policy_start", "<u4"),
        ("policy_count", "<u4"),
        # result of the game for the side to move, of which +1, 0 and -1 are exact; before a random
        # move the value of the search (`SelfplayConfig.value_before_random`)
        ("value", "<f2"),
        ("action", "<i2"),
        ("ply", "<u2"),
        ("to_play", "u1"),
        ("flags", "u1"),
    ]
    dtype = np.dtype(fields + _AUXILIARY if has_auxiliary else fields)
    assert dtype.itemsize % 4 == 0
    return dtype


GAME_DTYPE = np.dtype(
    [
        ("number", "<i8"),
        ("length", "<i4"),
        ("result", "<f4", (2,)),
        ("flags", "u1"),
        ("network", "<i4", (2,)),
    ]
)
"""Layout of one game's entry; `network` is missing in shards written before it was recorded."""


ShardName = tuple[int, int]
"""(process index, shard index), which name a shard of a run."""


class Shard(NamedTuple):
    """A shard file in the window."""

    number: int
    path: Path
    lengths: HostArray
    """int32[G]: moves of each game."""
    num_rows: int
    num_words: int
    """Of all policy targets."""


class Positions(NamedTuple):
    """Packed positions."""

    rows: HostArray
    """[T] of `row_dtype`"""
    policy: HostArray
    """uint32[E]: the words of their policy targets, padded at the end with as many zeros as a
    target can have words"""


_SHARD = re.compile(r"games-p(\d{3,})-(\d{8,})\.shard")
"""Names from `shard_path`."""


def shard_path(directory: Path, process_index: int, index: int) -> Path:
    """Return the name of shard `index` of a process."""
    return directory / f"games-p{process_index:03d}-{index:08d}.shard"


def list_shards(directory: Path) -> list[tuple[int, int, Path]]:
    """Return (process index, shard index, file) of the shards in `directory`, in order.

    Files under other names, such as the copies that synchronised folders make, are not shards.
    """
    named = ((_SHARD.fullmatch(path.name), path) for path in directory.glob("games-p*.shard"))
    return sorted((int(name[1]), int(name[2]), path) for name, path in named if name)


def pack_positions(games: Games, slots: int, num_points: int | None = None) -> Positions:
    """Return the positions of `games`, whose policy targets have at most `slots` moves. With
    `num_points`, the points of the board, they also have the targets of auxiliary heads.

    Raises:
      ValueError: a game is too long for a row's ply counter, or a target has more than `slots`
        moves.
    """
    if games.length.max(initial=0) > np.iinfo(np.uint16).max:
        raise ValueError(
            f"a game of {games.length.max()} moves; the replay stores games of up to "
            f"{np.iinfo(np.uint16).max}"
        )
    if games.policy_count.max(initial=0) > slots:
        raise ValueError(
            f"a policy target of {games.policy_count.max()} moves does not fit a replay "
            f"of targets of up to {slots}"
        )
    game = np.repeat(np.arange(len(games.length)), games.length)
    rows = np.zeros(len(game), row_dtype(games.frame.shape[1], num_points is not None))
    for name in ("frame", "policy_count", "action", "to_play"):
        rows[name] = getattr(games, name)
    rows["policy_start"] = np.cumsum(games.policy_count) - games.policy_count
    rows["value"] = games.result[game, games.to_play]
    before, random = _before_random(games)
    same_side = games.to_play[before] == games.to_play[random]
    rows["value"][before] = np.where(same_side, 1, -1) * games.root_value[random]
    rows["ply"] = np.arange(len(game)) - games.starts[game]
    rows["flags"] = games.is_target * _IS_TARGET
    rows["flags"][before] |= _ENDS_ELSEWHERE
    if num_points is not None:
        _pack_auxiliary(rows, games, num_points)
    return Positions(rows, np.concatenate([games.policy, np.zeros(slots, np.uint32)]))


def _before_random(games: Games) -> tuple[HostArray, HostArray]:
    """Return the rows at or before a random move of their game, and for each the row of the first
    such move."""
    rows = len(games.is_random)
    row = np.where(games.is_random, np.arange(rows), rows)
    following = np.minimum.accumulate(row[::-1])[::-1]
    before = np.flatnonzero(following < np.repeat(games.starts + games.length, games.length))
    return before, following[before]


def _pack_auxiliary(rows: HostArray, games: Games, num_points: int) -> None:
    length = games.length.astype(np.int64)
    rows["root_value"] = games.root_value
    rows["moves_left"] = np.repeat(length, length) - rows["ply"]
    # Positions without a policy target have no surprise and count as the mean of those with one, so
    # that the weights in the loss of the value have a mean of one, too.
    surprise = np.where(games.is_target, games.surprise.astype(np.float32), 0.0)
    total = np.add.reduceat(surprise, games.starts)
    count = np.add.reduceat(games.is_target.astype(np.float32), games.starts)
    mean = np.where(total > 0, total / np.maximum(count, 1), 1.0)
    is_known = games.is_target & np.repeat(total > 0, length)
    rows["surprise"] = np.where(is_known, surprise / np.repeat(mean, length), 1)
    # Backwards over the moves of all games at once, for the first mover: the mean with weights
    # that fall geometrically, and the result from the end on, or the value at a random move.
    sign = np.where(games.to_play == 0, np.float32(1), np.float32(-1))
    values = games.root_value.astype(np.float32) * sign
    now = 1.0 / (1.0 + num_points * np.asarray(HORIZONS, np.float32))
    mean = np.repeat(games.result[:, :1], len(HORIZONS), axis=1).astype(np.float32)
    later = np.empty((len(rows), len(HORIZONS)), np.float32)
    for back in range(1, int(length.max(initial=0)) + 1):
        live = np.flatnonzero(length >= back)
        row = games.starts[live] + length[live] - back
        share = np.where(games.is_random[row, None], 1.0, now)
        mean[live] = share * values[row, None] + (1 - share) * mean[live]
        later[row] = mean[live]
    rows["later"] = later * sign[:, None]


def upgrade(rows: HostArray, slots: int) -> Positions:
    """Return the positions [T] of a shard of the older schema in the current one."""
    words = words_of(rows["policy_index"], rows["policy_weight"])
    is_word = (words != 0) & is_target(rows)[:, None]
    new = np.zeros(len(rows), row_dtype(rows.dtype["frame"].shape[0]))
    for name in ("frame", "value", "action", "ply", "to_play", "flags"):
        new[name] = rows[name]
    new["policy_count"] = is_word.sum(axis=1)
    new["policy_start"] = np.cumsum(new["policy_count"]) - new["policy_count"]
    return Positions(new, np.concatenate([words[is_word], np.zeros(slots, np.uint32)]))


def is_target(rows: HostArray) -> HostArray:
    """Return bool[T]: which rows have a policy target."""
    return rows["flags"] & _IS_TARGET != 0


def ends_elsewhere(rows: HostArray) -> HostArray:
    """Return bool[T]: which rows come before a random move that may have decided their game."""
    return rows["flags"] & _ENDS_ELSEWHERE != 0


def pack_games(games: Games) -> HostArray:
    """Return the entries of `games` as a table [G]."""
    table = np.zeros(len(games.length), GAME_DTYPE)
    for name in ("number", "length", "result", "network"):
        table[name] = getattr(games, name)
    table["flags"] = games.resigned * RESIGNED + games.can_resign * _CAN_RESIGN
    return table


def write_shard(path: Path, positions: Positions, games: HostArray, facts: dict[str, Any]) -> str:
    """Write packed positions [T] and the entries of their games [G]; return the checksum of the
    whole file.

    Raises:
      StorageError: see `azero.data.files.write_atomic`.
    """
    return write_arrays(path, {**positions._asdict(), "games": games}, {**facts, "schema": SCHEMA})


def read_shard(
    path: Path,
    expected: str | None,
    game: str,
    frame_words: int,
    slots: int,
    has_auxiliary: bool = False,
) -> tuple[Positions, HostArray]:
    """Return (positions [T], games [G]) of a shard of this schema or the older one, checksums
    verified; `slots` is the most moves of a policy target.

    Raises:
      DamagedFileError: missing, torn or changed; of another schema, game or layout of rows.
    """
    arrays, facts = read_arrays(path, expected)
    if facts.get("schema") not in (SCHEMA, _SCHEMA_OF_SLOTS):
        raise DamagedFileError(
            f"{path} has schema {facts.get('schema')}; this version reads schema "
            f"{_SCHEMA_OF_SLOTS} and {SCHEMA}"
        )
    words = arrays["rows"].dtype["frame"].shape[0]
    if facts["game"] != game or words != frame_words:
        raise DamagedFileError(
            f"{path} holds {4 * words}-byte boards of {facts['game']}, not "
            f"{4 * frame_words}-byte boards of {game}"
        )
    if has_auxiliary != ("later" in (arrays["rows"].dtype.names or ())):
        raise DamagedFileError(
            f"{path} holds positions with{'out' * has_auxiliary} targets of auxiliary heads, and "
            f"the run's learner {'needs them' if has_auxiliary else 'has no use for them'}"
        )
    if facts["schema"] == _SCHEMA_OF_SLOTS:
        return upgrade(arrays["rows"], slots), arrays["games"]
    return with_margin(arrays["rows"], arrays["policy"], slots), arrays["games"]


def read_replay(
    workdir: Path, game: Game, has_auxiliary: bool, last: int | None = None
) -> Iterator[tuple[Path, Positions, HostArray]]:
    """Yield the shards in the replay of a run, oldest first: file, positions [T], games [G]; with
    `last` only that many of the newest games.

    A damaged shard is left out, with a line on standard error. So are, without one, those that a
    run which goes on meanwhile deletes, because they leave its window.
    """
    for path, older in _newest(workdir / "replay", last):
        try:
            positions, games = read_shard(
                path, None, game.name, game.frame_words, policy_room(game), has_auxiliary
            )
        except DamagedFileError as error:
            if path.exists():
                say(f"azero: left out: {error}")
            continue
        begin = int(games["length"][:older].sum())
        yield path, positions._replace(rows=positions.rows[begin:]), games[older:]


def _newest(directory: Path, last: int | None) -> list[tuple[Path, int]]:
    """Return the shards of the `last` games, or of all, oldest first: file, and the number of its
    games that are older than those."""
    shards = sorted(list_shards(directory), key=lambda shard: (shard[1], shard[0]))
    if last is None:
        return [(path, 0) for _, _, path in shards]
    chosen: list[tuple[Path, int]] = []
    for _, _, path in reversed(shards):
        count = 0
        with contextlib.suppress(DamagedFileError):  # reading the shard reports it
            count = int(read_header(path)[0]["arrays"]["games"]["shape"][0])
        chosen.append((path, max(0, count - last)))
        last -= count
        if last <= 0:
            break
    return chosen[::-1]


def map_shard(shard: Shard, slots: int) -> Positions | HostArray:
    """Return the positions of a shard, memory-mapped; for the older schema its rows, for `upgrade`.

    Raises:
      DamagedFileError: see `azero.data.files.read_header`.
    """
    rows = map_array(shard.path, "rows")
    if "policy_index" in (rows.dtype.names or ()):
        return rows
    return with_margin(rows, map_array(shard.path, "policy"), slots)


def with_margin(rows: HostArray, policy: HostArray, slots: int) -> Positions:
    """Return positions whose policy targets are padded with `slots` words, as `Positions.policy`
    asks."""
    end = int(rows["policy_start"][-1]) + int(rows["policy_count"][-1]) if len(rows) else 0
    if len(policy) < end + slots:
        policy = np.concatenate([policy[:end], np.zeros(slots, np.uint32)])
    return Positions(rows, policy)
