"""The positions of the window: the newest in a ring in memory, the older ones memory-mapped from their shards.

Positions are numbered as they come in. A position is read from the ring while it is there, else from its shard; both hold the same bytes, so what a sample
returns never depends on how much memory there is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from azero.data.files import map_array
from azero.data.shard import Shard
from azero.play.trajectory import HostArray

_MAX_MAPS = 400
"""Shards mapped at a time; each holds a file descriptor, and a process usually has 1,024."""
_FIRST_CAPACITY = 1 << 14
"""Positions that the ring starts with; it doubles as needed."""


class Snapshot(NamedTuple):
    """The window at one moment: positions `first` to `last` (excluded), and the shards they are in."""

    shards: tuple[Shard, ...]
    shard_first: HostArray
    """int64[shards]: number of each shard's first position."""
    first: int
    last: int


class Window:
    """Positions of the newest games."""

    def __init__(self, dtype: np.dtype[Any], memory: int) -> None:
        """Start empty.

        Args:
          dtype: layout of a position (`row_dtype`).
          memory: bytes the ring may take.
        """
        self._dtype = dtype
        self._max_capacity = max(_FIRST_CAPACITY, memory // dtype.itemsize)
        self._ring = np.zeros(_FIRST_CAPACITY, dtype)
        self._shards: list[Shard] = []
        self._shard_first: list[int] = []
        self._first = 0
        self._last = 0
        self._hot = 0
        self._maps: OrderedDict[int, HostArray] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def num_games(self) -> int:
        """Games in the shards of the window; some of the oldest shard's may be outside of it."""
        return sum(len(shard.lengths) for shard in self._shards)

    @property
    def shards(self) -> Sequence[Shard]:
        """The shards that hold the window, oldest first."""
        return self._shards

    def add(self, shard: Shard, rows: HostArray, max_games: int) -> None:
        """Add the positions of a new shard, and let go of those of all but the newest `max_games` games."""
        with self._lock:
            self._shards.append(shard)
            self._shard_first.append(self._last)
            self._push(rows)
            surplus = self.num_games - max_games
            while surplus >= len(self._shards[0].lengths):
                surplus -= len(self._shards[0].lengths)
                dropped = self._shards.pop(0)
                del self._shard_first[0]
                self._maps.pop(dropped.number, None)
            self._first = self._shard_first[0] + int(self._shards[0].lengths[: max(0, surplus)].sum())

    def snapshot(self) -> Snapshot:
        """Return the window as it is now."""
        with self._lock:
            return Snapshot(tuple(self._shards), np.asarray(self._shard_first, np.int64), self._first, self._last)

    def gather(self, window: Snapshot, position: HostArray, num_frames: int) -> tuple[HostArray, HostArray]:
        """Return rows [B] at `position` int64[B] and their newest frames uint32[B, num_frames, F], zeros before the start of the game.

        Raises:
          DamagedFileError: a shard that is not in memory has gone.
        """
        rows = np.empty(len(position), self._dtype)
        frames = np.empty((len(position), num_frames, *self._dtype["frame"].shape), np.uint32)
        with self._lock:
            # A position is read from the ring only if its whole history is there too.
            hot = position - (num_frames - 1) >= self._hot
            if self._hot <= window.first:
                hot[:] = True
            if hot.all():
                copy_rows(self._ring, position, rows, frames, slice(None))
                return rows, frames
            copy_rows(self._ring, position[hot], rows, frames, np.flatnonzero(hot))
            cold = np.flatnonzero(~hot)
            owner = np.searchsorted(window.shard_first, position[cold], side="right") - 1
            for which in np.unique(owner):
                members = cold[owner == which]
                copy_rows(self._map(window.shards[which]), position[members] - window.shard_first[which], rows, frames, members)
        return rows, frames

    def _push(self, rows: HostArray) -> None:
        """Append rows to the ring, which forgets its oldest when it has no more room."""
        needed = self._last + len(rows) - max(self._first, self._hot)
        capacity = len(self._ring)
        while capacity < min(needed, self._max_capacity):
            capacity = min(2 * capacity, self._max_capacity)
        if capacity > len(self._ring):
            kept = np.arange(max(self._hot, self._last - len(self._ring)), self._last)
            ring = np.zeros(capacity, self._dtype)
            ring[kept % capacity] = self._ring[kept % len(self._ring)]
            self._ring = ring
        self._last += len(rows)
        rows = rows[-capacity:]
        at = (self._last - len(rows)) % capacity
        head = min(len(rows), capacity - at)
        self._ring[at : at + head] = rows[:head]
        self._ring[: len(rows) - head] = rows[head:]
        self._hot = max(self._hot, self._last - capacity)

    def _map(self, shard: Shard) -> HostArray:
        """Return the rows of a shard, mapped; the least recently used map makes room."""
        rows = self._maps.pop(shard.number, None)
        if rows is None:
            rows = map_array(shard.path, "rows")
            if len(self._maps) >= _MAX_MAPS:
                self._maps.popitem(last=False)
        self._maps[shard.number] = rows
        return rows


def copy_rows(source: HostArray, position: HostArray, rows: HostArray, frames: HostArray, where: Any) -> None:
    """Copy the rows at `position` of `source` and their history into `rows[where]` and `frames[where]`; positions wrap around the end of `source`."""
    words = source.view(np.uint32).reshape(len(source), -1)
    here = position % len(source)
    rows.view(np.uint32).reshape(len(rows), -1)[where] = words[here]
    back = np.arange(frames.shape[1])
    history = words[:, : frames.shape[2]][(position[:, None] - back) % len(source)]
    ply = source["ply"][here]
    history *= (back <= ply[:, None])[:, :, None]
    frames[where] = history
