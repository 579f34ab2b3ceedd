"""The positions of the window: the newest in ring buffers in memory, the older ones memory-mapped
from their shards.

Positions are numbered in the order in which they are added, and so are the words of their policy
targets. A position is read from the rings while they hold it, otherwise from its shard; both hold
the same bytes, so a sample never depends on the amount of memory.
"""

import functools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from azero.data.shard import Positions, Shard, map_shard, upgrade
from azero.selfplay.trajectory import HostArray

_MAX_MAPS = 400
"""Shards mapped at a time; each holds a file descriptor, and a process usually has 1,024."""
_FIRST_CAPACITY = 1 << 14
"""Initial capacity of a ring, in positions or words; it doubles as needed."""
_SLACK = 1.25
"""A ring shrinks when it exceeds its share of the memory by this factor."""


class Snapshot(NamedTuple):
    """The window at one moment: positions `first` to `last` (excluded), and the shards they are
    in."""

    shards: tuple[Shard, ...]
    shard_first: HostArray
    """int64[shards]: number of each shard's first position."""
    word_first: HostArray
    """int64[shards]: number of each shard's first word of a policy target."""
    first: int
    last: int


class Gathered(NamedTuple):
    """Positions in the order of a request."""

    rows: HostArray
    """[B] of `row_dtype`"""
    frames: HostArray
    """uint32[B, num_frames, F]: the newest first, zeros before the start of the game"""
    policy: HostArray
    """uint32[B, S]: the words of the policy target, padded with zeros"""


class Window:
    """Positions of the newest games."""

    def __init__(self, dtype: np.dtype[Any], slots: int, memory: int) -> None:
        """Start empty: for rows of `dtype` (see `row_dtype`) and policy targets of at most `slots`
        moves, with rings of `memory` bytes."""
        self._slots = slots
        self._memory = memory
        self._rows = _Ring(dtype, 0)
        self._words = _Ring(np.dtype(np.uint32), slots)
        self._shards: list[Shard] = []
        self._shard_first: list[int] = []
        self._word_first: list[int] = []
        self._first = 0
        self._maps: OrderedDict[int, Positions | HostArray] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def num_games(self) -> int:
        """Games in the shards of the window; some games of the oldest shard may be outside it."""
        return sum(len(shard.lengths) for shard in self._shards)

    @property
    def num_bytes(self) -> int:
        """Bytes of all positions in the shards of the window."""
        return sum(
            shard.num_rows * self._rows.dtype.itemsize
            + shard.num_words * self._words.dtype.itemsize
            for shard in self._shards
        )

    @property
    def shards(self) -> Sequence[Shard]:
        """The shards that hold the window, oldest first."""
        return self._shards

    def add(self, shard: Shard, positions: Positions, max_games: int) -> None:
        """Add the positions of a new shard, and drop those of all but the newest `max_games`
        games."""
        with self._lock:
            self._shards.append(shard)
            self._shard_first.append(self._rows.last)
            self._word_first.append(self._words.last)
            self._push(positions.rows, positions.policy[: shard.num_words])
            surplus = self.num_games - max_games
            while surplus >= len(self._shards[0].lengths):
                surplus -= len(self._shards[0].lengths)
                dropped = self._shards.pop(0)
                del self._shard_first[0], self._word_first[0]
                self._maps.pop(dropped.number, None)
            self._first = self._shard_first[0] + int(
                self._shards[0].lengths[: max(0, surplus)].sum()
            )

    def snapshot(self) -> Snapshot:
        """Return the window as it is now."""
        with self._lock:
            shard_first, word_first = (
                np.asarray(numbers, np.int64) for numbers in (self._shard_first, self._word_first)
            )
            return Snapshot(
                tuple(self._shards), shard_first, word_first, self._first, self._rows.last
            )

    def gather(self, window: Snapshot, position: HostArray, num_frames: int) -> Gathered:
        """Return the positions int64[B].

        Raises:
          DamagedFileError: a shard that is not in memory has disappeared.
        """
        rows = np.empty(len(position), self._rows.dtype)
        frames = np.empty((len(position), num_frames, *rows.dtype["frame"].shape), np.uint32)
        policy = np.empty((len(position), self._slots), np.uint32)
        owner = np.searchsorted(window.shard_first, position, side="right") - 1
        with self._lock:
            # A position is read from the rings only if they also hold its whole history.
            hot = np.full(len(position), self._rows.first <= window.first) | (
                position - (num_frames - 1) >= self._rows.first
            )
            here = _chosen(hot)
            copy_rows(self._rows.items, position[here], rows, frames, here)
            word = window.word_first[owner] + rows["policy_start"]
            hot &= word >= self._words.first
            here = _chosen(hot)
            copy_policy(
                self._words.items,
                word[here] % self._words.capacity,
                rows["policy_count"][here],
                policy,
                here,
            )
            cold = np.flatnonzero(~hot)
            for which in np.unique(owner[cold]):
                members = cold[owner[cold] == which]
                self._read(
                    window.shards[which],
                    position[members] - window.shard_first[which],
                    rows,
                    frames,
                    policy,
                    members,
                )
        return Gathered(rows, frames, policy)

    def _read(
        self,
        shard: Shard,
        position: HostArray,
        rows: HostArray,
        frames: HostArray,
        policy: HostArray,
        where: HostArray,
    ) -> None:
        """Copy positions of a shard from its file; `position` counts from the shard's first one."""
        source = self._map(shard)
        if isinstance(source, Positions):
            copy_rows(source.rows, position, rows, frames, where)
        else:
            copy_history(source, position, frames, where)
            source = upgrade(source[position], self._slots)
            rows[where] = source.rows
        copy_policy(
            source.policy, rows["policy_start"][where], rows["policy_count"][where], policy, where
        )

    def _push(self, rows: HostArray, words: HostArray) -> None:
        """Append to the rings, each of which has a share of the memory in proportion to its part of
        the window."""
        kept = self._first, self._word_first[0]
        rings = list(zip((self._rows, self._words), (rows, words), kept, strict=True))
        wanted = [
            (ring.last + len(new) - first) * ring.dtype.itemsize for ring, new, first in rings
        ]
        for (ring, new, first), size in zip(rings, wanted, strict=True):
            share = int(self._memory * size / max(1, sum(wanted)))
            ring.push(new, first, share // ring.dtype.itemsize)

    def _map(self, shard: Shard) -> Positions | HostArray:
        """Return the positions of a shard, mapped; the least recently used map is closed if there
        are too many."""
        found = self._maps.pop(shard.number, None)
        if found is None:
            found = map_shard(shard, self._slots)
            if len(self._maps) >= _MAX_MAPS:
                self._maps.popitem(last=False)
        self._maps[shard.number] = found
        return found


class _Ring:
    """A ring buffer of the newest items: item i is at i % capacity. The first `margin` items are
    repeated at the end, so that no run of that length is split."""

    def __init__(self, dtype: np.dtype[Any], margin: int) -> None:
        self.dtype = dtype
        self._margin = margin
        self.first = self.last = 0
        self.items = np.zeros(_FIRST_CAPACITY + margin, dtype)

    @property
    def capacity(self) -> int:
        """Items that fit into it."""
        return len(self.items) - self._margin

    def push(self, new: HostArray, wanted: int, most: int) -> None:
        """Append items; older ones from number `wanted` on are kept, as far as `most` items
        allow."""
        most, capacity = max(_FIRST_CAPACITY, most), self.capacity
        needed = self.last + len(new) - max(self.first, wanted)
        while capacity < min(needed, most):
            capacity = min(2 * capacity, most)
        self._resize(capacity if capacity <= _SLACK * most else most)
        self.last += len(new)
        new = new[-self.capacity :]
        at = (self.last - len(new)) % self.capacity
        head = min(len(new), self.capacity - at)
        self.items[at : at + head] = new[:head]
        self.items[: len(new) - head] = new[head:]
        self.items[self.capacity :] = self.items[: self._margin]
        self.first = max(self.first, self.last - self.capacity)

    def _resize(self, capacity: int) -> None:
        if capacity == self.capacity:
            return
        kept = np.arange(max(self.first, self.last - capacity), self.last)
        items = np.zeros(capacity + self._margin, self.dtype)
        items[kept % capacity] = self.items[kept % self.capacity]
        self.items, self.first = items, max(self.first, self.last - capacity)


def _chosen(mask: HostArray) -> Any:
    """Return an index of the places where bool[B] holds; a slice if it holds everywhere, which is
    faster."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def copy_rows(
    source: HostArray, position: HostArray, rows: HostArray, frames: HostArray, where: Any
) -> None:
    """Copy the rows at `position` of `source` and their history into `rows[where]` and
    `frames[where]`; positions wrap around the end of `source`."""
    words = source.view(np.uint32).reshape(len(source), -1)
    rows.view(np.uint32).reshape(len(rows), -1)[where] = words[position % len(source)]
    copy_history(source, position, frames, where)


def copy_history(source: HostArray, position: HostArray, frames: HostArray, where: Any) -> None:
    """Copy the frames at `position` of `source`, the first field of its rows, and those before into
    `frames[where]`, zeros before the start of the game."""
    words = source.view(np.uint32).reshape(len(source), -1)
    back = np.arange(frames.shape[1])
    history = words[:, : frames.shape[2]][(position[:, None] - back) % len(source)]
    history *= (back <= source["ply"][position % len(source)][:, None])[:, :, None]
    frames[where] = history


def copy_policy(
    source: HostArray, start: HostArray, count: HostArray, policy: HostArray, where: Any
) -> None:
    """Copy runs of `count` words from `start` on into `policy[where]`, padded with zeros; `source`
    ends with a margin of as many words as a row has."""
    slots = policy.shape[1]
    # of every start one, all in the same memory
    stretches: HostArray = np.ndarray(
        (len(source) - slots + 1, slots), np.uint32, source.data, strides=(4, 4)
    )
    rows = stretches[start]
    rows &= _masks(slots)[count]
    policy[where] = rows


@functools.lru_cache(maxsize=4)
def _masks(slots: int) -> HostArray:
    """Return uint32[S + 1, S]: row n has all bits set in its first n words. (Looking up such rows
    is three times as fast as comparing and multiplying.)"""
    return np.tri(slots + 1, slots, -1, dtype=np.uint32) * np.uint32(0xFFFFFFFF)
