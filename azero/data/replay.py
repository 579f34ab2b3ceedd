"""The replay: a window of the newest games, on disk as shards with checksums, sampled uniformly
over positions.

Every process of a run has its own window over the games of its own devices. A sample is a function
of (seed, step, games in the window) alone, so a resumed run draws the same samples as one that was
never interrupted.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from azero.console.tables import count_of
from azero.data.files import TEMPORARY_SUFFIX, DamagedFileError, sync_directory
from azero.data.manifest import Manifest, ShardRecord, manifest_path
from azero.data.sample import Auxiliary, Samples
from azero.data.settings import ReplayConfig
from azero.data.shard import (
    Positions,
    Shard,
    ShardName,
    ends_elsewhere,
    is_target,
    list_shards,
    pack_games,
    pack_positions,
    read_shard,
    row_dtype,
    shard_path,
)
from azero.data.stream import Stream
from azero.data.window import Gathered, Snapshot, Window, copy_rows
from azero.games.game import Game
from azero.memory import process_memory_bytes
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import Games, HostArray

T = TypeVar("T")

_SHARE_OF_MEMORY = 0.25
"""Share of a process's memory for the newest positions; older ones are read through the system's
file cache, whose memory other programs can claim."""


class Replay:
    """The window of games of one process."""

    def __init__(
        self,
        directory: Path,
        game: Game,
        config: ReplayConfig,
        slots: int,
        state: dict[str, int] | None = None,
        process_index: int = 0,
        inherited: Sequence[ShardName] = (),
        memory: int | None = None,
        rows_per_position: int = 1,
        has_auxiliary: bool = False,
    ) -> None:
        """Open the replay in `directory` as it was when `state_dict` returned `state`, or empty
        without one.

        Shards written after `state` and incomplete files of a killed process are removed; the run
        will play the same games again. A shard that is missing or damaged is skipped and named by
        `take_warnings`.

        Args:
          directory: where the shards are; it is created if needed.
          game: the rules, for the layout of a position.
          config: size of the window, symmetries, batches to prefetch.
          slots: the most moves of a policy target (`azero.selfplay.targets.policy_room`).
          state: from `state_dict`.
          process_index: which process of the run this is.
          inherited: shards, oldest first, that this process takes over after those of `state`,
            where the run had another number of processes. They are copied, because older
            checkpoints still name them.
          memory: bytes for the newest positions; None is a quarter of this process's share of the
            memory; then all processes of the run must call this.
          rows_per_position: see `azero.data.records.dataset.Dataset`; where it is above 1, every
            game has this many rows.
          has_auxiliary: whether samples have the targets of auxiliary heads.
        """
        self.directory = Path(directory)
        self._rows_per_position = rows_per_position
        self._num_games = 0
        self._num_positions = 0
        self._game = game
        self._config = config
        self._process = process_index
        self._slots = slots
        self._num_points = game.board_shape[0] * game.board_shape[1] if has_auxiliary else None
        self._window = Window(
            row_dtype(game.frame_words, has_auxiliary),
            slots,
            int(process_memory_bytes() * _SHARE_OF_MEMORY) if memory is None else memory,
        )
        self._next = 0
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="shards")
        self._pending: Future[tuple[Shard, Positions]] | None = None
        self._warnings: list[str] = []
        self._manifest = Manifest(manifest_path(self.directory, process_index))
        self.directory.mkdir(parents=True, exist_ok=True)
        sync_directory(self.directory.parent)
        if damaged := self._manifest.num_damaged:
            self._warnings.append(
                f"{self._manifest.path} has {count_of(damaged, 'damaged line')}; the shards "
                "concerned are checked by their own checksums alone"
            )
        if state is not None:
            self._load(state)
        self._remove(lambda index: index >= self._next)
        self._inherit(inherited)

    def count_games(self) -> int:
        """Return the games added since the run began, also before it was resumed."""
        self._commit_pending()
        return self._num_games

    def count_positions(self) -> int:
        """Return the positions in the window."""
        self._commit_pending()
        window = self._window.snapshot()
        return (window.last - window.first) // self._rows_per_position

    def count_window_games(self) -> int:
        """Return the games in the window."""
        self._commit_pending()
        return min(self._window.num_games, self._config.window_games)

    def mean_bytes(self) -> float:
        """Return the mean bytes of a position of the window, in memory and on disk; 0 while there
        is none."""
        self._commit_pending()
        return self._window.num_bytes / max(1, sum(shard.num_rows for shard in self._window.shards))

    def take_warnings(self) -> list[str]:
        """Return the warnings since the last call, a line each."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def add(self, games: Games) -> None:
        """Add the games that finished in an iteration: one shard, written in the background.
        Without games nothing happens.

        The games are part of the replay for all later calls, which first wait until the shard is on
        disk.

        Raises:
          StorageError: the previous shard could not be written (disk full, ...). The first call of
            any method after an `add` raises it; the replay is then as it was before that `add`.
          ValueError: the positions are of another game.
        """
        self._commit_pending()
        if not len(games.length):
            return
        if games.frame.shape[1] != self._game.frame_words:
            raise ValueError(
                f"boards of {4 * games.frame.shape[1]} bytes do not fit a replay of "
                f"{4 * self._game.frame_words}-byte boards"
            )
        self._pending = self._pool.submit(self._write, self._next, games)

    def sample(self, seed: int, step: int, batch_size: int) -> Samples:
        """Return the batch of training step `step`: positions uniform over the window, and for each
        a uniform symmetry.

        Raises:
          ValueError: the window is empty.
          DamagedFileError: a shard has disappeared while the process was running.
        """
        self._commit_pending()
        return self._sample(self._window.snapshot(), seed, step, batch_size)

    def stream(
        self,
        seed: int,
        first_step: int,
        num_steps: int,
        batch_size: int,
        place: Callable[[Samples], T],
        share: slice = slice(None),
    ) -> Stream[T]:
        """Return `place(sample)` for the steps of an iteration, prefetched by threads, all from the
        window as it is now; of each batch only the `share`.

        `place` runs on those threads; it may copy a batch to the devices but must not start a
        program there (`azero.learn.learner.place_samples`).
        """
        sample = self.sampler(seed, batch_size, share)
        return Stream(
            lambda step: place(sample(step)), first_step, num_steps, self._config.prefetch
        )

    def sampler(
        self, seed: int, batch_size: int, share: slice = slice(None)
    ) -> Callable[[int], Samples]:
        """Return (step) -> samples, all from the window as it is now, for any thread."""
        self._commit_pending()
        window = self._window.snapshot()
        return lambda step: self._sample(window, seed, step, batch_size, share)

    def state_dict(self) -> dict[str, int]:
        """Return the cursor that a checkpoint keeps: the shards of the window, and the counts."""
        self._commit_pending()
        shards = self._window.shards
        return {
            "first_shard": shards[0].number if shards else self._next,
            "next_shard": self._next,
            "num_games": self._num_games,
            "num_positions": self._num_positions,
        }

    def prune(self, keep_from: int) -> None:
        """Delete the shards before shard `keep_from` that are not in the window.

        Call it after a checkpoint is safely on disk, with the smallest `first_shard` of the
        checkpoints from which the run may be resumed.
        """
        limit = min(keep_from, self.state_dict()["first_shard"])
        if any(index < limit for index in self._manifest.records):
            self._remove(lambda index: index < limit)

    def close(self) -> None:
        """Wait for the shard that is being written, if any."""
        self._pool.shutdown()

    def _sample(
        self, window: Snapshot, seed: int, step: int, batch_size: int, share: slice = slice(None)
    ) -> Samples:
        if window.last == window.first:
            raise ValueError("the replay is empty; nothing can be sampled")
        random = np.random.default_rng([seed, self._process, step])
        every = self._rows_per_position
        count = (window.last - window.first) // every
        drawn = random.integers(0, count, batch_size) if batch_size else np.zeros(0, np.int64)
        position = window.first + every * drawn + every - 1
        symmetries = self._game.num_symmetries if self._config.symmetries else 1
        symmetry = random.integers(0, symmetries, batch_size, np.uint8)
        found = self._window.gather(window, position[share], self._game.num_frames)
        samples = _samples_of(found, symmetry[share])
        if self._num_points is None:
            return samples
        return samples._replace(auxiliary=self._auxiliary(window, position[share], found.rows))

    def _auxiliary(self, window: Snapshot, position: HostArray, rows: HostArray) -> Auxiliary:
        """Return the auxiliary targets of the positions. A shard holds whole games, so the window
        holds everything after each position."""
        left = rows["moves_left"].astype(np.int64)
        reply = self._window.gather(window, position + (left > 1), 1)
        end = self._window.gather(window, position + left - 1, 1)
        return Auxiliary(
            root_value=rows["root_value"].astype(np.float32),
            later=rows["later"].astype(np.float32),
            surprise=rows["surprise"].astype(np.float32),
            moves_left=left.astype(np.float32),
            reply=reply.policy,
            has_reply=(left > 1) & is_target(reply.rows),
            end=np.ascontiguousarray(end.rows["frame"]),
            last_action=np.where(ends_elsewhere(rows), -1, end.rows["action"]).astype(np.int32),
        )

    def _write(self, index: int, games: Games) -> tuple[Shard, Positions]:
        positions = pack_positions(games, self._slots, self._num_points)
        return self._put(index, positions, pack_games(games)), positions

    def _commit_pending(self) -> None:
        """Wait for the shard that is being written, and add it to the window."""
        pending, self._pending = self._pending, None
        if pending is not None:
            shard, positions = pending.result()
            self._window.add(shard, positions, self._config.window_games)
            self._next += 1
            self._num_games += len(shard.lengths)
            self._num_positions += shard.num_rows

    def _load(self, state: dict[str, int]) -> None:
        """Read the shards that `state` names into the window, several at a time, checksums
        verified."""
        self._next = state["next_shard"]
        self._num_games, self._num_positions = state["num_games"], state["num_positions"]
        indices = range(state["first_shard"], state["next_shard"])
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            reads = deque(pool.submit(self._read, index) for index in indices[:threads])
            for count, index in enumerate(indices):
                found = reads.popleft().result()
                if count + threads < len(indices):
                    reads.append(pool.submit(self._read, indices[count + threads]))
                if isinstance(found, str):
                    self._warnings.append(f"left out shard {index} of the replay: {found}")
                else:
                    self._window.add(*found, self._config.window_games)

    def _inherit(self, names: Sequence[ShardName]) -> None:
        """Copy shards of other processes to names of this process and add them to the window;
        `num_games` and `num_positions` already count them."""
        manifests = {
            process: Manifest(manifest_path(self.directory, process)) for process, _ in names
        }
        for process, index in names:
            path = shard_path(self.directory, process, index)
            try:
                positions, games = self._read_file(path, manifests[process].records.get(index))
            except DamagedFileError as error:
                self._warnings.append(
                    f"left out shard {index} of process {process} of the replay: {error}"
                )
                continue
            shard = self._put(self._next, positions, games)
            self._window.add(shard, positions, self._config.window_games)
            self._next += 1

    def _put(self, index: int, positions: Positions, games: HostArray) -> Shard:
        """Write a shard and its line in the manifest."""
        path = self._manifest.put(index, positions, games, {"game": self._game.name})
        return _shard_of(index, path, positions, games)

    def _read(self, index: int) -> tuple[Shard, Positions] | str:
        """Return a shard and its positions, or what is wrong with it."""
        path = shard_path(self.directory, self._process, index)
        try:
            positions, games = self._read_file(path, self._manifest.records.get(index))
        except DamagedFileError as error:
            return str(error)
        return _shard_of(index, path, positions, games), positions

    def _read_file(self, path: Path, record: ShardRecord | None) -> tuple[Positions, HostArray]:
        return read_shard(
            path,
            record and record.sha256,
            self._game.name,
            self._game.frame_words,
            self._slots,
            self._num_points is not None,
        )

    def _remove(self, is_gone: Callable[[int], bool]) -> None:
        """Delete this process's shards for whose index `is_gone` holds, and incomplete files. The
        manifest is rewritten first: it never names a deleted shard."""
        if any(is_gone(index) for index in self._manifest.records):
            self._manifest.retain(lambda index: not is_gone(index))
        for process, index, path in list_shards(self.directory):
            if process == self._process and is_gone(index):
                path.unlink(missing_ok=True)
        for path in self.directory.glob(f"games-p{self._process:03d}-*.shard{TEMPORARY_SUFFIX}"):
            path.unlink(missing_ok=True)


def _shard_of(index: int, path: Path, positions: Positions, games: HostArray) -> Shard:
    return Shard(
        index,
        path,
        np.ascontiguousarray(games["length"]),
        len(positions.rows),
        int(positions.rows["policy_count"].sum(dtype=np.int64)),
    )


def samples_at(rows: HostArray, position: HostArray, num_frames: int) -> Samples:
    """Return the samples at `position` int64[B] of packed rows [T] that begin with a game's first
    position, without a symmetry; the policy target is the move played."""
    chosen = np.empty(len(position), rows.dtype)
    frames = np.empty((len(position), num_frames, *rows.dtype["frame"].shape), np.uint32)
    copy_rows(rows, position, chosen, frames, slice(None))
    policy = words_of(chosen["action"], np.ones(len(chosen), np.uint16))
    return _samples_of(Gathered(chosen, frames, policy[:, None]), np.zeros(len(position), np.uint8))


def _samples_of(found: Gathered, symmetry: HostArray) -> Samples:
    return Samples(
        frames=found.frames,
        to_play=np.ascontiguousarray(found.rows["to_play"]),
        policy=found.policy,
        is_target=is_target(found.rows),
        value=found.rows["value"].astype(np.float32),
        symmetry=symmetry,
    )
