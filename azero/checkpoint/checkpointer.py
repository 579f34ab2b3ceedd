"""Saving and restoring the whole state of a run.

`save` copies the state to the host's memory and returns; one thread then takes the digests, writes,
and commits by a rename. Digests are of that copy, so any later change of a byte is detected on
reading. All arrays are saved as whole arrays, so the number of devices does not matter.
"""

import contextlib
import glob
import json
import time
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax

from azero import mesh as mesh_lib
from azero.checkpoint import orbax_io, store
from azero.checkpoint.leaves import (
    Flat,
    Keys,
    describe_leaves,
    format_entry,
    format_leaf,
    leaves_by_path,
    to_device,
    to_host,
)
from azero.checkpoint.record import (
    CheckpointError,
    DamagedCheckpointError,
    check_settings,
    make_record,
)
from azero.data.files import UNTOUCHED, DamagedFileError, write_arrays
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.types import PyTree


class Restored(NamedTuple):
    """A run's state, back from disk."""

    iteration: int
    arrays: PyTree
    """Like the target given to `restore`, with its shardings."""
    meta: dict[str, Any]
    host: dict[str, HostArray]
    """This process's own arrays; empty if the checkpoint was written by another number of
    processes."""
    cursor: dict[str, int]
    """This process's own integers; empty in the same case."""
    parts: list[tuple[dict[str, HostArray], dict[str, int]]]
    """Host arrays and cursor of each process, if the checkpoint was written by another number of
    them."""
    devices: int
    """Devices of the run when the checkpoint was written."""


class _Snapshot(NamedTuple):
    """A copy of a state, as it is written."""

    iteration: int
    arrays: Flat
    keys: Keys
    meta: dict[str, Any]
    info: dict[str, Any]
    host: dict[str, HostArray]
    cursor: dict[str, int]


class Checkpointer:
    """The checkpoints of one run.

    Every process of the run makes one and calls the same methods in the same order.
    """

    def __init__(self, workdir: Path, config: Config) -> None:
        """Open the checkpoints of the run in `workdir`, which is created if needed.

        What a killed process left half written is removed.

        Args:
          workdir: the run's directory; the checkpoints are in `checkpoints` in it.
          config: all settings of the run; `config.checkpoint` says what is kept.

        Raises:
          CheckpointError: the directory cannot be used.
        """
        self.directory = store.root_directory(workdir)
        if glob.escape(str(self.directory)) != str(self.directory):
            # Orbax would not find all that it has written, and lose it (epath's `Path.glob`).
            raise CheckpointError(
                f"cannot use {self.directory} for checkpoints: the characters * ? [ in a path are "
                "patterns for Orbax; use another directory"
            )
        orbax_io.silence_late_tasks()
        self._config = config
        self._process = jax.process_index()
        self._warnings: list[str] = []
        self._permanent: dict[int, bool] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        try:
            store.make_directories(self.directory)
            if self._process == 0:
                store.remove_unfinished(self.directory)
            _all_agree(True)  # no process reads files during the removal
            with orbax_io.silence():  # Orbax reads files of its own that nothing here depends on
                self._manager = orbax_io.make_manager(store.steps_directory(self.directory))
        except OSError as error:
            reason = error.strerror or error
            raise CheckpointError(
                f"cannot use {self.directory} for checkpoints: {reason}"
            ) from error

    def take_warnings(self) -> list[str]:
        """Return notes since the last call, one line each."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def save(
        self,
        iteration: int,
        arrays: PyTree,
        meta: dict[str, Any],
        host: dict[str, HostArray] | None = None,
        cursor: dict[str, int] | None = None,
    ) -> None:
        """Copy the state after `iteration`, and write it in the background.

        Waits for the save before it, if that still runs.

        Args:
          iteration: above that of all checkpoints there are.
          arrays: the same in every process, apart from sharding; at the top a mapping or a named
            tuple whose entries are the parts that can be read separately.
          meta: small JSON-able facts of the state, the same in every process; `list_checkpoints`
            shows its `games` and `steps`.
          host: arrays of this process alone. They must not change after the call.
          cursor: integers of this process alone, such as `Replay.state_dict()`.

        Raises:
          CheckpointError: the save before this one failed, or there is a checkpoint of this
            iteration or a later one.
        """
        self.wait()
        present = store.list_iterations(self.directory)
        if present and iteration <= present[-1]:
            problem = f"{self.directory} already has checkpoint {present[-1]}"
            raise CheckpointError(f"cannot save checkpoint {iteration}: {problem}")
        flat, keys = to_host(arrays)
        if orbax_io.RECORD in flat:
            raise CheckpointError(f"no part of a state may be called {orbax_io.RECORD!r}")
        meta = json.loads(json.dumps(meta))
        # No part of the state, so its digest leaves them out.
        info = {"devices": jax.device_count(), "saved_at": time.time()}
        snapshot = _Snapshot(
            iteration, flat, keys, meta, info, host=dict(host or {}), cursor=dict(cursor or {})
        )
        self._pending = self._pool.submit(self._write, snapshot)

    def is_writing(self) -> bool:
        """Return whether a save is being written now; any thread may ask."""
        pending = self._pending
        return pending is not None and not pending.done()

    def wait(self) -> None:
        """Wait until the last save is on disk.

        Raises:
          CheckpointError: it failed; checkpoints saved before are untouched.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def close(self) -> None:
        """Wait for the last save and end the threads.

        Raises:
          CheckpointError: it failed.
        """
        try:
            self.wait()
        finally:
            self._pool.shutdown()
            self._manager.close()

    def cursors(self) -> list[dict[str, int]]:
        """Return this process's cursors of the checkpoints that can be resumed, oldest first.

        Those are the newest `checkpoint.keep`; older ones that `checkpoint.keep_every` retains are
        players to play against and may outlive their data.
        """
        found = []
        for iteration in self._resumable():
            if self._process >= store.count_processes(self.directory, iteration):
                continue  # of a time when there were fewer processes
            try:
                found.append(store.read_cursor(self.directory, iteration, self._process))
            except DamagedFileError as error:
                self._warnings.append(f"cannot resume from checkpoint {iteration}: {error}")
        return found

    def num_processes(self) -> int:
        """Return the largest number of processes that wrote a checkpoint that can be resumed."""
        counts = [store.count_processes(self.directory, number) for number in self._resumable()]
        return max(counts, default=0)

    def _resumable(self) -> list[int]:
        return store.list_iterations(self.directory)[-self._config.checkpoint.keep :]

    def restore(self, target: PyTree, optional: Collection[str] = ()) -> Restored | None:
        """Return the newest state that is whole, or None if nothing was ever saved.

        A checkpoint with a wrong byte is set aside into `damaged/`, and the one before it is taken.
        `take_warnings` names it, and the settings that differ from those of the checkpoint.

        Args:
          target: the state as `jax.ShapeDtypeStruct`s with shardings, or as arrays; what comes back
            has its structure and shardings.
          optional: names of parts of a target that is a mapping. Those that the checkpoint lacks
            are left out of what comes back, those that the target lacks are not read.

        Raises:
          CheckpointError: the newest whole checkpoint does not fit the settings or the target (both
            values are named), or none is whole.
        """
        iterations = store.list_iterations(self.directory)
        problems: list[str] = []
        restored: Restored | None
        for iteration in reversed(iterations):
            try:
                restored, changed = self._read(iteration, target, optional)
            except DamagedCheckpointError as error:
                problems.append(f"checkpoint {iteration} is damaged: {error}")
                restored, changed = None, []
            if not _all_agree(restored is not None):
                continue
            self._set_aside([other for other in iterations if other > iteration])
            for problem in problems:
                self._warnings.append(f"{problem}; going back to checkpoint {iteration}")
            if changed:
                listed = "; ".join(changed)
                self._warnings.append(f"settings changed since the checkpoint: {listed}")
            if self._process == 0:
                with contextlib.suppress(OSError):  # the next save does it
                    self._retire(iteration)
            self._remove_host_files(iteration)
            return restored
        if iterations:
            reason = "; ".join(problems) or "another process could not read its own"
            raise CheckpointError(f"no checkpoint in {self.directory} is complete: {reason}")
        return None

    def _read(
        self, iteration: int, target: PyTree, optional: Collection[str]
    ) -> tuple[Restored, list[str]]:
        """Return the state of a checkpoint, and the settings that have changed since.

        Raises:
          CheckpointError: it does not fit, or it is damaged.
        """
        record = orbax_io.read_record(self.directory, iteration)
        leaves, name = record["leaves"], f"checkpoint {iteration} in {self.directory}"
        changed = check_settings(record, self._config, self.directory)
        for part in optional:
            if part not in leaves:
                target = {name: other for name, other in target.items() if name != part}
            elif part not in target:
                leaves = {name: other for name, other in leaves.items() if name != part}
        wanted = leaves_by_path(target)
        if problem := _find_mismatch(leaves, wanted):
            raise CheckpointError(f"{name} does not fit the run: {problem}")
        arrays = {}
        for item, entries in leaves.items():
            arrays[item] = orbax_io.read_item(self.directory, iteration, item, entries)
        count, state, parts = record["num_processes"], record["state"], []
        host: dict[str, HostArray] = {}
        cursor: dict[str, int] = {}
        if count == jax.process_count():
            host, cursor = store.read_host(self.directory, iteration, self._process, state)
        else:
            processes = range(count)
            parts = [store.read_host(self.directory, iteration, p, state) for p in processes]
        placed = []
        for (item, path), leaf in wanted.items():
            placed.append(to_device(arrays[item][path], leaves[item][path]["key"], leaf))
        tree = jax.tree.unflatten(jax.tree.structure(target), placed)
        meta, devices = record["meta"], record["info"]["devices"]
        return Restored(iteration, tree, meta, host, cursor, parts, devices), changed

    def _set_aside(self, iterations: list[int]) -> None:
        """Move damaged checkpoints out of the way: the run will reach these iterations again."""
        if not iterations:
            return
        if self._process == 0:
            store.set_aside(self.directory, iterations)
        _all_agree(True)
        self._manager.reload()

    def _write(self, snapshot: _Snapshot) -> None:
        """Write a checkpoint, in the background.

        The order is host files, then Orbax's commit, so that a committed checkpoint is whole.
        """
        iteration = snapshot.iteration
        try:
            leaves = describe_leaves(snapshot.arrays, snapshot.keys)
            record = make_record(
                iteration, leaves, snapshot.meta, snapshot.info, self._config, jax.process_count()
            )
            facts = {"state": record["content"]["state"], "cursor": snapshot.cursor}
            path = store.host_path(self.directory, iteration, self._process)
            write_arrays(path, snapshot.host, facts)
            with orbax_io.silence():
                self._manager.save(iteration, args=orbax_io.save_args(snapshot.arrays, record))
            if self._process == 0:
                self._retire(iteration)
        except Exception as error:
            # Orbax and its storage raise many types; whatever it is, nothing was saved.
            store.discard(self.directory, iteration, self._process)
            reason = orbax_io.one_line(error)
            if not reason.endswith(UNTOUCHED):
                reason = f"{reason}; {UNTOUCHED}"
            problem = f"cannot save checkpoint {iteration} in {self.directory}"
            raise CheckpointError(f"{problem}: {reason}") from error
        self._remove_host_files(iteration)

    def _retire(self, newest: int) -> None:
        """Delete the checkpoints that need not be kept, once the newest one is safely on disk.

        Raises:
          OSError: it cannot be synced; nothing is deleted.
        """
        store.sync_tree(store.steps_directory(self.directory) / str(newest))
        unwanted = set(store.list_iterations(self.directory)) - self._kept()
        store.remove_checkpoints(self.directory, unwanted)

    def _kept(self) -> set[int]:
        """Return the iterations whose checkpoints are kept: those that can be resumed, and the
        permanent ones by the present settings or by those that they were saved with."""
        kept, every = set(self._resumable()), self._config.checkpoint.keep_every
        for iteration in store.list_iterations(self.directory):
            if _is_multiple(iteration, every) or (
                iteration not in kept and self._was_permanent(iteration)
            ):
                kept.add(iteration)
        return kept

    def _was_permanent(self, iteration: int) -> bool:
        if iteration not in self._permanent:
            try:
                record = orbax_io.read_record(self.directory, iteration)
            except CheckpointError:
                return False
            every = record["config"]["checkpoint"].get("keep_every")
            self._permanent[iteration] = _is_multiple(iteration, every)
        return self._permanent[iteration]

    def _remove_host_files(self, newest: int) -> None:
        """Delete this process's files of checkpoints that are gone.

        Process 0 also deletes those of processes that are gone. Another host may see the
        directory of the `newest` checkpoint only later (NFS), so that one's file is left alone.
        """
        kept = self._kept()
        for path, iteration, process in store.list_hosts(self.directory):
            is_mine = process == self._process
            is_orphaned = self._process == 0 and process >= jax.process_count()
            is_old = int(iteration) < newest and int(iteration) not in kept
            if is_old and (is_mine or is_orphaned):
                path.unlink(missing_ok=True)


def _find_mismatch(leaves: dict[str, Any], wanted: dict[tuple[str, str], Any]) -> str:
    """Return how the leaves of a checkpoint differ from those wanted; empty where they do not."""
    saved = {(item, path): entry for item, part in leaves.items() for path, entry in part.items()}
    for name in sorted(saved.keys() ^ wanted.keys()):
        where = "has no" if name in wanted else "has an unexpected"
        return f"it {where} {'/'.join(name)}"
    for name, leaf in wanted.items():
        before, now = format_entry(saved[name]), format_leaf(leaf)
        if before != now:
            return f"{'/'.join(name)} is {before} in it, now {now}"
    return ""


def _is_multiple(iteration: int, every: int | None) -> bool:
    return every is not None and iteration % every == 0


def _all_agree(mine: bool) -> bool:
    """Return whether `mine` is True in every process."""
    return bool(mesh_lib.min_of_processes(int(mine)))
