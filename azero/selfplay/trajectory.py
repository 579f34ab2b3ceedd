"""What self-play records of every move, and how finished games are assembled on the host.

The device emits chunks of `Step` arrays [K, B, ...] in which the games of all slots run side by
side. The `Assembler` keeps the moves of unfinished games in one ring buffer along time, so that
taking out all games that finished in a chunk is one gather per column, with no Python per position.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from azero.selfplay.targets import spans, words_of
from azero.types import Array

HostArray = np.ndarray[Any, np.dtype[Any]]
"""An array in the host's memory."""


A = TypeVar("A", Array, HostArray)

NO_NETWORK = -1
"""Iteration of a network where no network played, or none is known."""


class Step(NamedTuple, Generic[A]):
    """One move of every game: arrays [K, B, ...] from the device, or the same as numpy arrays."""

    frame: A
    """uint32[..., F]: the position before the move (`game.pack_frame`)."""
    to_play: A
    """uint8[...]: who makes the move, 0 or 1."""
    action: A
    """int16[...]: the move."""
    policy: A
    """uint32[..., S]: the policy target, a word for each move with a positive weight
    (`azero.selfplay.targets`), padded with 0."""
    is_target: A
    """bool[...]: the search was a full one, so the policy is a target."""
    root_value: A
    """float16[...]: the root's value after the search, for the side to move."""
    best_child_value: A
    """float16[...]: the value of the child that the search would play, for the side to move at the
    root."""
    surprise: A
    """float16[...]: how far the policy target is from the network's own policy, as a
    Kullback-Leibler divergence in nats."""
    is_random: A
    """bool[...]: the move was drawn from all legal ones, and the positions up to this one learn the
    root's value instead of the result (`SelfplayConfig.value_before_random`)."""
    finished: A
    """bool[...]: the game ended with this move, by the rules or by resignation."""
    resigned: A
    """bool[...]: it ended by resignation of the side to move."""
    rewards: A
    """float32[..., 2]: the results of both movers, where `finished`."""
    can_resign: A
    """bool[...]: False in games that are played to the end to measure the resign threshold."""


class Games(NamedTuple):
    """Finished games as columns: T positions of all games one after the other, G games, in the
    order in which they ended."""

    frame: HostArray
    """uint32[T, F]"""
    to_play: HostArray
    """uint8[T]"""
    action: HostArray
    """int16[T]"""
    policy_count: HostArray
    """int32[T]: moves of the policy target; 0 where the position is none."""
    is_target: HostArray
    """bool[T]"""
    root_value: HostArray
    """float16[T]"""
    best_child_value: HostArray
    """float16[T]"""
    surprise: HostArray
    """float16[T]"""
    is_random: HostArray
    """bool[T]"""
    length: HostArray
    """int32[G]: moves of each game."""
    result: HostArray
    """float32[G, 2]: +1, -1 or 0 for the first and the second mover."""
    resigned: HostArray
    """bool[G]"""
    can_resign: HostArray
    """bool[G]"""
    number: HostArray
    """int64[G]: running number of the game among all that this process finished, from 0."""
    network: HostArray
    """int32[G, 2]: the networks that played the first and the last move, by the iteration after
    which they were current; `NO_NETWORK` in human games."""
    policy: HostArray
    """uint32[E]: the words of all policy targets, position after position."""

    @property
    def starts(self) -> HostArray:
        """int64[G]: row of each game's first position."""
        return np.cumsum(self.length, dtype=np.int64) - self.length


_COLUMNS = Games._fields[:9]
"""The fields with one row per position. The `Assembler` keeps them, and makes `policy_count` of the
`policy` of a `Step`."""

_START = "policy_start"
"""The `Assembler`'s own column: where the words of a position begin."""
_FEW_WORDS = 1 << 16
"""This many words of finished games may always stay."""


def select_games(games: Games, chosen: HostArray) -> Games:
    """Return the games where bool[G] `chosen` holds."""
    rows = np.repeat(chosen, games.length)
    words = np.repeat(rows, games.policy_count)
    kept = {
        name: getattr(games, name)[rows if name in _COLUMNS else chosen]
        for name in Games._fields
        if name != "policy"
    }
    return Games(**kept, policy=games.policy[words])


class Assembler:
    """Joins chunks of moves into finished games.

    All slots share one time axis. A slot's unfinished game covers the times from its start up to
    now, so the ring is as long as the longest unfinished game. The words of policy targets are in a
    second buffer, one run for each position; those of finished games are removed once they are the
    majority.
    """

    def __init__(self, num_slots: int) -> None:
        """Start without games in the `num_slots` slots of a process."""
        self.num_slots = num_slots
        self.num_games = 0
        self._now = 0
        self._start = np.zeros(num_slots, np.int64)
        self._network = np.full(num_slots, NO_NETWORK, np.int32)
        self._capacity = 0
        self._columns: dict[str, HostArray] = {}
        self._clear_policy()

    def add(self, chunk: Step[HostArray], network: int) -> Games:
        """Add a chunk of moves, host arrays [K, B, ...], that `network` played (see
        `Games.network`), and return the games that it finished."""
        num_moves, num_slots = chunk.finished.shape
        assert num_slots == self.num_slots, (
            f"a chunk of {num_slots} games for {self.num_slots} slots"
        )
        self._network = np.where(self._start == self._now, np.int32(network), self._network)
        self._append(self._unpack(chunk), num_moves)
        move, slot = np.nonzero(chunk.finished)
        first, last = self._end_games(move, slot, num_moves)
        first_network = np.where(
            first >= self._now - num_moves, np.int32(network), self._network[slot]
        )
        # Where the next game has begun; one that begins with the next chunk is set then.
        self._network[slot] = network
        length = (last - first + 1).astype(np.int32)
        flat = self._ring_rows(first, slot, length)
        columns = {name: _rows(column)[flat] for name, column in self._columns.items()}
        policy = self._policy[spans(columns.pop(_START), columns["policy_count"])]
        self._num_live -= len(policy)
        self._sweep()
        return Games(
            **columns,
            policy=policy,
            length=length,
            result=chunk.rewards[move, slot],
            resigned=chunk.resigned[move, slot],
            can_resign=chunk.can_resign[move, slot],
            number=self.take_numbers(len(move)),
            network=np.stack([first_network, np.full(len(slot), network, np.int32)], axis=1),
        )

    @property
    def longest(self) -> int:
        """Moves of the longest unfinished game."""
        return int((self._now - self._start).max())

    def take_numbers(self, count: int) -> HostArray:
        """Return the running numbers int64[count] of the next finished games."""
        numbers = self.num_games + np.arange(count, dtype=np.int64)
        self.num_games += count
        return numbers

    def state_dict(self) -> dict[str, HostArray]:
        """Return the unfinished games as numpy arrays: lengths per slot, and their positions slot
        by slot."""
        length = self._now - self._start
        state: dict[str, HostArray] = {
            "length": length,
            "num_games": np.asarray(self.num_games, np.int64),
            "network": self._network,
        }
        if self._columns:
            flat = self._pending_rows(length)
            columns = {name: _rows(column)[flat] for name, column in self._columns.items()}
            state["policy"] = self._policy[spans(columns.pop(_START), columns["policy_count"])]
            state |= {f"column.{name}": column for name, column in columns.items()}
        return state

    def load_state_dict(self, state: Mapping[str, HostArray]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
          ValueError: the state is of another number of slots.
        """
        state = _with_words(state)
        length = state["length"].astype(np.int64)
        if len(length) != self.num_slots:
            raise ValueError(
                f"the games in flight are those of {len(length)} slots, not of {self.num_slots}"
            )
        self.num_games = int(state["num_games"])
        # missing in older checkpoints
        self._network = state.get("network", np.full(len(length), NO_NETWORK, np.int32))
        self._now = int(length.max(initial=0))
        self._start = self._now - length
        self._columns, self._capacity = {}, 0
        columns = {
            name.removeprefix("column."): column
            for name, column in state.items()
            if name.startswith("column.")
        }
        self._clear_policy()
        if columns:
            self._policy = state["policy"]
            self._num_words = self._num_live = len(self._policy)
            columns[_START] = _starts(columns["policy_count"])
        self._grow(
            {name: (column.shape[1:], column.dtype) for name, column in columns.items()}, self._now
        )
        flat = self._pending_rows(length) if columns else None
        for name, column in columns.items():
            _rows(self._columns[name])[flat] = column

    @staticmethod
    def redistribute(
        states: Sequence[Mapping[str, HostArray]], slots: HostArray
    ) -> dict[str, HostArray]:
        """Return the state of the slots int64[B], which are counted one of `states` after the
        other.

        Numbering continues from the highest number of all, so that no process uses a number twice.
        """
        states = [_with_words(state) for state in states]
        length = np.concatenate([state["length"] for state in states]).astype(np.int64)
        number = np.asarray(max(int(state["num_games"]) for state in states), np.int64)
        # missing in older checkpoints
        unknown = [np.full(len(state["length"]), NO_NETWORK, np.int32) for state in states]
        network = np.concatenate(
            [state.get("network", none) for state, none in zip(states, unknown, strict=True)]
        )
        divided = {"length": length[slots], "num_games": number, "network": network[slots]}
        columns = [name for name in states[0] if name.startswith("column.")]
        if not columns:
            return divided
        rows = spans(_starts(length)[slots], length[slots])
        joined = {name: np.concatenate([state[name] for state in states]) for name in columns}
        words, count = np.concatenate([state["policy"] for state in states]), "column.policy_count"
        chosen = spans(_starts(joined[count])[rows], joined[count][rows])
        return divided | {name: joined[name][rows] for name in columns} | {"policy": words[chosen]}

    def _pending_rows(self, length: HostArray) -> HostArray:
        """Return the rows of the flattened ring that hold the unfinished games, slot by slot."""
        return self._ring_rows(self._start, np.arange(self.num_slots), length)

    def _ring_rows(self, start: HostArray, slot: HostArray, length: HostArray) -> HostArray:
        """Return the rows of the flattened ring that hold games, one after the other: of each its
        first time, its slot and its length, int[G]."""
        time = spans(start, length)
        return time % max(1, self._capacity) * self.num_slots + np.repeat(slot, length)

    def _unpack(self, chunk: Step[HostArray]) -> dict[str, HostArray]:
        """Return the columns of a chunk, and append the words of its policy targets to the stored
        ones."""
        is_word = (chunk.policy != 0) & chunk.is_target[..., None]
        words, count = chunk.policy[is_word], is_word.sum(axis=-1, dtype=np.int32)
        end = self._num_words + len(words)
        if end > len(self._policy):
            grown = np.empty(max(end, 2 * len(self._policy)), np.uint32)
            grown[: self._num_words] = self._policy[: self._num_words]
            self._policy = grown
        self._policy[self._num_words : end] = words
        start = self._num_words + _starts(count.reshape(-1)).reshape(count.shape)
        self._num_words, self._num_live = end, self._num_live + len(words)
        return {name: getattr(chunk, name) for name in _COLUMNS if name != "policy_count"} | {
            "policy_count": count,
            _START: start,
        }

    def _clear_policy(self) -> None:
        self._policy = np.zeros(0, np.uint32)
        self._num_words = self._num_live = 0

    def _sweep(self) -> None:
        """Remove the words of finished games if they are the majority."""
        if self._num_words > max(_FEW_WORDS, 2 * self._num_live):
            flat = self._pending_rows(self._now - self._start)
            start, count = (_rows(self._columns[name]) for name in (_START, "policy_count"))
            self._policy = self._policy[spans(start[flat], count[flat])]
            start[flat] = _starts(count[flat])
            self._num_words = len(self._policy)

    def _append(self, chunk: dict[str, HostArray], num_moves: int) -> None:
        needed = self._now + num_moves - int(self._start.min(initial=self._now))
        if needed > self._capacity:
            self._grow(
                {name: (column.shape[2:], column.dtype) for name, column in chunk.items()}, needed
            )
        at = self._now % self._capacity
        head = min(num_moves, self._capacity - at)
        for name, column in self._columns.items():
            moves = chunk[name]
            column[at : at + head] = moves[:head]
            column[: num_moves - head] = moves[head:]
        self._now += num_moves

    def _grow(self, specs: dict[str, tuple[tuple[int, ...], Any]], needed: int) -> None:
        """Grow the ring to at least `needed` times, keeping its content."""
        capacity = max(needed, self._capacity * 5 // 4)
        kept = np.arange(self._now - min(self._now, self._capacity), self._now)
        for name, (shape, dtype) in specs.items():
            column = np.zeros((capacity, self.num_slots, *shape), dtype)
            if self._capacity:
                column[kept % capacity] = self._columns[name][kept % self._capacity]
            self._columns[name] = column
        self._capacity = capacity

    def _end_games(
        self, move: HostArray, slot: HostArray, num_moves: int
    ) -> tuple[HostArray, HostArray]:
        """Return the first and the last time of the games that ended at (move, slot), and advance
        the starts of their slots."""
        chunk_start = self._now - num_moves
        last = chunk_start + move.astype(np.int64)
        first = self._start[slot]
        order = np.lexsort((move, slot))
        again = np.zeros(len(slot), bool)
        again[1:] = slot[order][1:] == slot[order][:-1]
        # The second and later games of a slot within this chunk begin right after the one before.
        first[order[again]] = last[order[np.flatnonzero(again) - 1]] + 1
        self._start[slot[order]] = last[order] + 1
        return first, last


def _rows(column: HostArray) -> HostArray:
    """View [T, B, ...] as [T * B, ...]."""
    return column.reshape(-1, *column.shape[2:])


def _starts(count: HostArray) -> HostArray:
    """Return int64[...]: the starts of consecutive runs of `count` items."""
    return np.cumsum(count, dtype=np.int64) - count


def _with_words(state: Mapping[str, HostArray]) -> Mapping[str, HostArray]:
    """Return the state of an `Assembler` with its policies as words and all columns: older
    checkpoints lack the last ones, or have the 48 most probable moves as int16 and float16."""
    if "column.action" in state:
        rows = len(state["column.action"])
        missing = {
            "column.surprise": np.zeros(rows, np.float16),
            "column.is_random": np.zeros(rows, bool),
        }
        state = missing | dict(state)
    if "column.policy_index" not in state:
        return state
    words = words_of(state["column.policy_index"], state["column.policy_weight"])
    is_word = (words != 0) & state["column.is_target"][:, None]
    rest = {
        name: column
        for name, column in state.items()
        if name not in ("column.policy_index", "column.policy_weight")
    }
    return rest | {
        "column.policy_count": is_word.sum(axis=-1, dtype=np.int32),
        "policy": words[is_word],
    }
