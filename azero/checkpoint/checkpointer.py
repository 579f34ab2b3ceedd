"""Saving and restoring the whole state of a run.

`save` copies the state to the host's memory and returns; one thread then takes the digests, writes, and commits by a rename. Digests are of that copy, so
whatever happens to a byte afterwards is noticed when it is read. All arrays are saved as whole arrays, so the number of devices does not matter.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import jax
import orbax.checkpoint as ocp

from azero import mesh as mesh_lib
from azero.checkpoint import store
from azero.checkpoint.record import (
    CheckpointError,
    DamagedCheckpointError,
    Flat,
    describe,
    key_impl,
    leaf_paths,
    make_record,
    settings_changes,
    show_leaf,
    show_type,
)
from azero.data.files import DamagedFileError, sync_directory, write_arrays
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.types import PyTree


class Restored(NamedTuple):
    """A run's state, back from disk."""

    iteration: int
    arrays: PyTree
    """As the target given to `restore`, with its shardings."""
    meta: dict[str, Any]
    host: dict[str, HostArray]
    """This process's own arrays; empty where the checkpoint is of another number of processes."""
    cursor: dict[str, int]
    """This process's own integers; likewise."""
    parts: list[tuple[dict[str, HostArray], dict[str, int]]]
    """Where the checkpoint is of another number of processes: host arrays and cursor of each of them; else empty."""
    info: dict[str, Any]
    changed: list[str]
    """Settings that differ from those of the checkpoint, and may."""


class Checkpointer:
    """The checkpoints of one run. Every process of the run makes one and calls the same methods in the same order."""

    def __init__(self, workdir: Path, config: Config) -> None:
        """Open the checkpoints of the run in `workdir`, which is made if need be; what a killed process left half written is removed.

        Args:
          workdir: the run's directory; the checkpoints are in `checkpoints` in it.
          config: all settings of the run; `config.checkpoint` says what is kept.

        Raises:
          CheckpointError: the directory cannot be used.
        """
        store.hush_late_tasks()
        self.directory = store.root_directory(workdir)
        self._config = config
        self._process = jax.process_index()
        self._warnings: list[str] = []
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        try:
            for part in (store.steps_directory(self.directory), store.host_path(self.directory, 0, 0).parent):
                part.mkdir(parents=True, exist_ok=True)
            sync_directory(self.directory)
            sync_directory(self.directory.parent)
            if self._process == 0:
                store.remove_unfinished(self.directory)
            _all_agree(True)  # nobody looks at what is being removed
            with store.quiet():  # Orbax reads files of its own, of all checkpoints, that nothing here rests on
                self._manager = _make_manager(store.steps_directory(self.directory))
        except OSError as error:
            raise CheckpointError(f"cannot use {self.directory} for checkpoints: {error.strerror or error}") from error

    def take_warnings(self) -> list[str]:
        """Return what went wrong since the last call without stopping the run, a line each."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def save(
        self,
        iteration: int,
        arrays: PyTree,
        meta: dict[str, Any],
        host: dict[str, HostArray] | None = None,
        cursor: dict[str, int] | None = None,
        info: dict[str, Any] | None = None,
    ) -> None:
        """Save the state after `iteration`: copy it now, write it in the background. Waits for the save before it, if that still runs.

        Args:
          iteration: above that of all checkpoints there are.
          arrays: the same in every process, apart from sharding; at the top a mapping or a named tuple whose entries are the parts that can be read alone.
          meta: small JSON-able facts of the state, the same in every process; `list_checkpoints` shows its `games` and `steps`.
          host: arrays of this process alone. They must not change after the call.
          cursor: integers of this process alone, such as `Replay.state_dict()`.
          info: JSON-able facts that are no part of the state (seconds used, versions), so that its digest leaves them out.

        Raises:
          CheckpointError: the save before this one failed, or there is a checkpoint of this iteration or a later one.
        """
        self.wait()
        present = store.list_iterations(self.directory)
        if present and iteration <= present[-1]:
            raise CheckpointError(f"cannot save checkpoint {iteration}: {self.directory} already has checkpoint {present[-1]}")
        flat, keys = _to_host(arrays)
        facts = json.loads(json.dumps({"meta": meta, "info": {**(info or {}), "saved_at": time.time()}}))
        self._pending = self._pool.submit(self._write, iteration, flat, keys, facts["meta"], facts["info"], dict(host or {}), dict(cursor or {}))

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
        """Wait for the last save and let go of the threads.

        Raises:
          CheckpointError: it failed.
        """
        try:
            self.wait()
        finally:
            self._pool.shutdown()
            self._manager.close()

    def cursors(self) -> list[dict[str, int]]:
        """Return this process's cursors of the checkpoints from which a run may be resumed, oldest first.

        Those are the newest `checkpoint.keep`; older ones that `checkpoint.keep_every` retains are players to play against and may outlive their data.
        """
        found = []
        for iteration in self._resumable():
            if self._process >= store.count_processes(self.directory, iteration):
                continue  # of a time when there were fewer processes
            try:
                found.append(store.read_cursor(self.directory, iteration, self._process))
            except DamagedFileError as error:
                self._warnings.append(f"checkpoint {iteration} cannot be resumed from: {error}")
        return found

    def num_processes(self) -> int:
        """Return the largest number of processes that wrote a checkpoint from which a run may be resumed."""
        return max((store.count_processes(self.directory, iteration) for iteration in self._resumable()), default=0)

    def _resumable(self) -> list[int]:
        return store.list_iterations(self.directory)[-self._config.checkpoint.keep :]

    def restore(self, target: PyTree) -> Restored | None:
        """Return the newest state that is whole, or None if nothing was ever saved.

        A checkpoint with a wrong byte is set aside into `damaged/`, named by `take_warnings`, and the one before it is taken.

        Args:
          target: the state as `jax.ShapeDtypeStruct`s with shardings, or as arrays; what comes back has its structure and shardings.

        Raises:
          CheckpointError: the newest whole checkpoint does not fit the settings or the target (both values are named), or none is whole.
        """
        iterations = store.list_iterations(self.directory)
        problems: list[str] = []
        for iteration in reversed(iterations):
            try:
                restored: Restored | None = self._restore(iteration, target)
            except DamagedCheckpointError as error:
                problems.append(f"checkpoint {iteration} is damaged: {error}")
                restored = None
            if _all_agree(restored is not None) and restored is not None:
                self._set_aside([other for other in iterations if other > iteration])
                self._warnings += [f"{problem}; going back to checkpoint {iteration}" for problem in problems]
                if self._process == 0:
                    with contextlib.suppress(OSError):  # the next save does it
                        self._retire(iteration)
                self._remove_host_files(iteration)
                return restored
        if iterations:
            raise CheckpointError(f"no checkpoint in {self.directory} is whole: {'; '.join(problems) or 'another process could not read its own'}")
        return None

    def _restore(self, iteration: int, target: PyTree) -> Restored:
        record = store.read_record(self.directory, iteration)
        changed = self._check_fit(iteration, record)
        flat = _target_leaves(target)
        self._check_target(iteration, record["leaves"], flat)
        arrays = {item: store.read_item(self.directory, iteration, item, entries) for item, entries in record["leaves"].items()}
        host, cursor, parts = self._read_hosts(iteration, record)
        leaves = [_place(arrays[item][path], record["leaves"][item][path]["key"], leaf) for (item, path), leaf in flat.items()]
        placed = jax.tree.unflatten(jax.tree.structure(target), leaves)
        return Restored(iteration, placed, record["meta"], host, cursor, parts, record["info"], changed)

    def _read_hosts(
        self, iteration: int, record: dict[str, Any]
    ) -> tuple[dict[str, HostArray], dict[str, int], list[tuple[dict[str, HostArray], dict[str, int]]]]:
        """Return what this process alone knew, or what all did where they were another number."""
        count = record["num_processes"]
        if count == jax.process_count():
            return (*store.read_host(self.directory, iteration, self._process, record["state"]), [])
        return {}, {}, [store.read_host(self.directory, iteration, process, record["state"]) for process in range(count)]

    def _check_fit(self, iteration: int, record: dict[str, Any]) -> list[str]:
        """Return the changes of settings that are allowed; raise CheckpointError for others."""
        refused, allowed = settings_changes(record["config"], self._config)
        if refused:
            raise CheckpointError(f"checkpoint {iteration} in {self.directory} does not fit the settings: {'; '.join(refused)}")
        return allowed

    def _check_target(self, iteration: int, leaves: dict[str, Any], flat: dict[tuple[str, str], Any]) -> None:
        saved = {(item, path): entry for item, entries in leaves.items() for path, entry in entries.items()}
        for name in sorted(saved.keys() ^ flat.keys()):
            where = "has no" if name in flat else "has an unexpected"
            raise CheckpointError(f"checkpoint {iteration} in {self.directory} does not fit the run: it {where} {'/'.join(name)}")
        for name, leaf in flat.items():
            before, now = show_type(saved[name]), show_leaf(leaf)
            if before != now:
                raise CheckpointError(f"checkpoint {iteration} in {self.directory} does not fit the run: {'/'.join(name)} is {before} in it, now {now}")

    def _set_aside(self, iterations: list[int]) -> None:
        """Move damaged checkpoints out of the way: the run will come by the same iterations again."""
        if iterations and self._process == 0:
            aside = self.directory / "damaged"
            aside.mkdir(exist_ok=True)
            for iteration in iterations:
                shutil.rmtree(aside / str(iteration), ignore_errors=True)
                os.rename(store.steps_directory(self.directory) / str(iteration), aside / str(iteration))
        if iterations:
            _all_agree(True)
            self._manager.reload()

    def _write(
        self, iteration: int, flat: Flat, keys: dict[str, Any], meta: dict[str, Any], info: dict[str, Any], host: dict[str, HostArray], cursor: dict[str, int]
    ) -> None:
        """Write a checkpoint, in the background; the order is host files, then Orbax's commit, so that a committed checkpoint is whole."""
        try:
            leaves = {item: {path: describe(array, keys[item][path]) for path, array in arrays.items()} for item, arrays in flat.items()}
            record = make_record(iteration, leaves, meta, info, self._config, jax.process_count())
            facts = {"state": record["content"]["state"], "cursor": cursor}
            write_arrays(store.host_path(self.directory, iteration, self._process), host, facts)
            stored = {item: {path: array for path, array in arrays.items() if array.size} for item, arrays in flat.items()}
            items = {item: ocp.args.StandardSave(arrays) for item, arrays in stored.items() if arrays}
            with store.quiet():
                self._manager.save(iteration, args=ocp.args.Composite(**items, **{store.RECORD: ocp.args.JsonSave(record)}))
            if self._process == 0:
                self._retire(iteration)
        except Exception as error:  # Orbax and its storage raise many types; whatever it is, the checkpoint was not saved.
            self._discard(iteration)
            reason = store.one_line(error)
            raise CheckpointError(f"cannot save checkpoint {iteration} in {self.directory}: {reason}; what was saved before is untouched") from error
        self._remove_host_files(iteration)

    def _retire(self, newest: int) -> None:
        """Delete the checkpoints that need not be kept, once the newest one is safely on disk.

        Raises:
          OSError: it cannot be synced; nothing is deleted.
        """
        store.sync_tree(store.steps_directory(self.directory) / str(newest))
        store.remove_checkpoints(self.directory, set(store.list_iterations(self.directory)) - self._kept())

    def _kept(self) -> set[int]:
        """Return the iterations whose checkpoints the settings say to keep."""
        iterations, settings = store.list_iterations(self.directory), self._config.checkpoint
        every = settings.keep_every
        return {*iterations[-settings.keep :], *(iteration for iteration in iterations if every is not None and iteration % every == 0)}

    def _discard(self, iteration: int) -> None:
        """Remove what a failed save left behind."""
        for path in store.steps_directory(self.directory).glob(f"{iteration}.*"):
            shutil.rmtree(path, ignore_errors=True)
        if iteration not in store.list_iterations(self.directory):
            store.host_path(self.directory, iteration, self._process).unlink(missing_ok=True)

    def _remove_host_files(self, newest: int) -> None:
        """Delete this process's files of checkpoints that are gone; the lead also deletes those of processes that are no more.

        Another host may see the directory of the `newest` checkpoint only later (NFS), so that one's file is never looked at.
        """
        kept = self._kept()
        for path, iteration, process in store.list_hosts(self.directory):
            if int(iteration) < newest and int(iteration) not in kept and (process == self._process or (self._process == 0 and process >= jax.process_count())):
                path.unlink(missing_ok=True)


def _make_manager(directory: Path) -> ocp.CheckpointManager:
    """Return Orbax's manager: it saves in the calling thread (ours), and its barriers are not device collectives, which would mix with the run's own.

    It deletes nothing (its default): it would do so before the new checkpoint is safely on disk, and a process that is killed meanwhile would leave a part of the old one.
    """
    options = ocp.CheckpointManagerOptions(
        create=False,
        enable_async_checkpointing=False,
        multiprocessing_options=ocp.options.MultiprocessingOptions(primary_host=0, active_processes=set(range(jax.process_count()))),
    )
    return ocp.CheckpointManager(directory, options=options)


def _to_host(tree: PyTree) -> tuple[Flat, dict[str, dict[str, str | None]]]:
    """Copy every leaf, whole, to this host's memory; keys as their raw data. Returns the arrays and the keys' generators, by item and path.

    The copies are copies on the CPU, too, where a plain conversion would share the buffers that the learner gives away.
    """
    leaves = jax.tree.leaves(tree)
    raw = [jax.random.key_data(leaf) if key_impl(leaf) else leaf for leaf in leaves]
    for leaf in raw:
        if isinstance(leaf, jax.Array) and leaf.is_fully_addressable:
            leaf.copy_to_host_async()
    flat: Flat = {}
    keys: dict[str, dict[str, str | None]] = {}
    for (item, path), leaf, data in zip(leaf_paths(tree), leaves, raw, strict=True):
        if item == store.RECORD:
            raise CheckpointError(f"no part of a state may be called {store.RECORD!r}")
        flat.setdefault(item, {})[path] = mesh_lib.whole(data)
        keys.setdefault(item, {})[path] = key_impl(leaf)
    return flat, keys


def _target_leaves(target: PyTree) -> dict[tuple[str, str], Any]:
    return dict(zip(leaf_paths(target), jax.tree.leaves(target), strict=True))


def _place(array: HostArray, key: str | None, leaf: Any) -> Any:
    """Put a host array where `leaf` is to be; raw key data becomes keys of the generator `key`."""
    sharding = getattr(leaf, "sharding", None)
    placed = jax.device_put(array) if sharding is None else jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])
    return placed if key is None else jax.random.wrap_key_data(placed, impl=key)


def _all_agree(mine: bool) -> bool:
    """Return whether `mine` is True in every process."""
    return bool(mesh_lib.smallest(int(mine)))
