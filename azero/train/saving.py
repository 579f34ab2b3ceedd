"""What of a run goes into a checkpoint, and how it comes back."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import jax

from azero import mesh as mesh_lib
from azero.checkpoint import Checkpointer, CheckpointError, list_checkpoints, load_settings
from azero.checkpoint.exported import exported_path
from azero.checkpoint.store import list_iterations, root_directory, steps_directory
from azero.config import to_dict
from azero.console.tables import format_bytes, format_duration, make_table
from azero.console.terminal import make_console
from azero.data import run_files as files
from azero.data.division import deal_shards, forget_processes
from azero.data.files import write_atomic
from azero.data.shard import ShardName, parse_shard_path
from azero.learn.learner import check_state
from azero.networks.make import resolve
from azero.networks.settings import ConvolutionalConfig, LinearConfig
from azero.selfplay.trajectory import Assembler, HostArray
from azero.settings import Config, from_dict
from azero.train.loop import REPLAY, START_POSITIONS, Loop, RunState

_RESIGN = "resign."
_ASSEMBLER = "assembler."


def settle(config: Config, workdir: Path) -> Config:
    """Return `config` with what it leaves open decided, by the lead for all hosts: as the run in `workdir` decided it before, else by `resolve`.

    A run must not change how it computes when it is continued, or it would not end as one that was never stopped; and hosts with different processors must compute alike.
    """
    settled = json.dumps(to_dict(_settle(config, workdir))) if mesh_lib.is_lead() else ""
    return from_dict(json.loads(mesh_lib.from_lead(settled)))


def _settle(config: Config, workdir: Path) -> Config:
    network = config.network
    if isinstance(network, ConvolutionalConfig) and network.convolution == "auto" and (settled := files.read_settings(workdir)):
        # Only what is needed is read: the file may be of a version with other settings.
        earlier = {name: settled.get("network", {}).get(name) for name in ("convolution", "train_dtype", "inference_dtype")}
        network = from_dict({"network": earlier}, config, source=str(workdir / files.CONFIG)).network
    if config.game.start_positions is not None:
        _keep_start_positions(Path(config.game.start_positions), workdir / START_POSITIONS)
    if isinstance(network, LinearConfig):
        config = _without_symmetries(config)
    return dataclasses.replace(config, network=resolve(network))


def _without_symmetries(config: Config) -> Config:
    """Return `config` for a network whose planes are numbers of patterns, which do not turn with the board."""
    return dataclasses.replace(
        config,
        search=config.search.replace(random_symmetry=False),
        replay=dataclasses.replace(config.replay, symmetries=False),
        evaluation=dataclasses.replace(config.evaluation, average_symmetries=False),
    )


def _keep_start_positions(given: Path, kept: Path) -> None:
    """Copy the file of start positions into the run's directory, where it outlives what becomes of the file.

    Raises:
      ValueError: the file cannot be read, or it is not what it was when the run began.
      StorageError: it cannot be written.
    """
    if kept.exists() and not given.exists():
        return
    try:
        content = given.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the start positions in {given}: {error.strerror}") from error
    if not kept.exists():
        write_atomic(kept, [content])
    elif kept.read_bytes() != content:
        raise ValueError(f"the start positions in {given} have changed since the run began; it began with those in {kept}")


class Saver:
    """The checkpoints of one run."""

    def __init__(self, workdir: Path, config: Config):
        """Open the checkpoints in `workdir`.

        Raises:
          CheckpointError: the directory cannot be used, or there are games of a run and no checkpoints.
        """
        _check_complete(workdir)
        self._checkpointer = Checkpointer(workdir, config)
        self._notes: list[str] = []

    def restore(self, loop: Loop) -> RunState:
        """Return the newest state that is whole, or the state before the first iteration.

        Raises:
          CheckpointError: the newest state does not fit the settings, or none is whole.
          StorageError: the working directory cannot be written to.
        """
        arrays = loop.fresh_arrays()
        restored = self._checkpointer.restore(arrays)
        self._notes += self._checkpointer.take_warnings()
        if restored is None:
            return loop.state(arrays)
        if restored.changed:
            self._notes.append(f"settings that differ from those of the checkpoint: {'; '.join(restored.changed)}")
        host, cursor = restored.host, restored.cursor
        inherited: list[ShardName] = []
        if restored.parts:
            host, cursor, inherited = _divide_anew(restored.parts, loop.config.selfplay.num_games)
            self._notes += _changes_of_processes(len(restored.parts))
        state = loop.state(restored.arrays, cursor, inherited)
        state.assembler.load_state_dict(_part(host, _ASSEMBLER))
        state.resign.restore(_part(host, _RESIGN))
        state.iteration = restored.iteration
        for name in ("games", "positions", "best_iteration", "rival_iteration"):
            setattr(state, name, restored.meta[name])
        return state

    def save(self, state: RunState) -> None:
        """Copy the state and write it in the background; then let go of games that no checkpoint needs any more.

        Raises:
          CheckpointError: the save before this one failed.
          FloatingPointError: the learner's state is not finite; the checkpoints stay those before it.
        """
        self._checkpointer.wait()
        check_state(state.train)
        cursors = self._checkpointer.cursors()
        if cursors:
            state.replay.prune(min(cursor["first_shard"] for cursor in cursors))
        if mesh_lib.is_lead() and self._checkpointer.num_processes() <= jax.process_count():
            forget_processes(state.replay.directory, jax.process_count())
        meta = {
            "games": state.games,
            "positions": state.positions,
            "steps": int(state.train.step),
            "best_iteration": state.best_iteration,
            "rival_iteration": state.rival_iteration,
        }
        host = {_ASSEMBLER + name: array for name, array in state.assembler.state_dict().items()}
        host |= {_RESIGN + name: array for name, array in state.resign.state().items()}
        host = dict(sorted(host.items()))  # the digest is of the file, so equal states are written in one order
        self._checkpointer.save(state.iteration, state.arrays(), meta, host=host, cursor=state.replay.state_dict(), info={"devices": jax.device_count()})

    def is_writing(self) -> bool:
        """Return whether a checkpoint is being written now; any thread may ask."""
        return self._checkpointer.is_writing()

    def wait(self) -> None:
        """Wait until the last checkpoint is on disk.

        Raises:
          CheckpointError: it could not be written; those before it are untouched.
        """
        self._checkpointer.wait()

    def close(self) -> None:
        """Wait for the last checkpoint and let go of the threads."""
        self._checkpointer.close()

    def finish(self) -> None:
        """Wait for the checkpoint that is being written when the run fails; what becomes of it is not what there is to say then."""
        with contextlib.suppress(CheckpointError):
            self._checkpointer.wait()

    def take_notes(self) -> list[str]:
        """Return what a person should know of the restored checkpoint, a line each."""
        notes, self._notes = self._notes, []
        return notes


def _check_complete(workdir: Path) -> None:
    """Check that the checkpoints that go with the games in `workdir` have not gone: without them the run would begin anew and delete the games.

    Raises:
      CheckpointError: they have; all processes of the run raise it together.
    """
    problem = mesh_lib.from_lead(_missing_checkpoints(workdir) if mesh_lib.is_lead() else "")
    if problem:
        raise CheckpointError(problem)


def _missing_checkpoints(workdir: Path) -> str:
    """Return what to say where there are games and no checkpoints; empty where all is well.

    A run that was killed before its first checkpoint has the directories of the checkpoints, and all of its shards from the first one on.
    """
    games, checkpoints = workdir / REPLAY, root_directory(workdir)
    oldest: dict[int, int] = {}
    for process, shard in map(parse_shard_path, games.glob("games-p*.shard")):
        oldest[process] = min(shard, oldest.get(process, shard))
    if not oldest or list_iterations(checkpoints) or (steps_directory(checkpoints).is_dir() and not any(oldest.values())):
        return ""
    return (
        f"{games} holds the games of a run, and {checkpoints} no checkpoint that they go with: was it moved, or is a drive not mounted? Put it back; or, to begin "
        f"anew, move {games} away or take another --workdir. Nothing has been changed"
    )


def print_checkpoints(workdir: Path) -> None:
    """Print the checkpoints of the run in `workdir`."""
    rows = [
        (row.iteration, row.games, row.steps, format_bytes(row.num_bytes), f"{format_duration(row.age_s)} ago", row.digest or f"damaged: {row.problem}")
        for row in list_checkpoints(workdir)
    ]
    console = make_console()
    if rows:
        console.print(make_table(f"Checkpoints of {workdir}", ("iteration", "games", "steps", "size", "saved", "digest of the whole state"), rows))
    elif exported_path(workdir).exists():
        console.print(f"{exported_path(workdir)} is the exported network of iteration {load_settings(workdir)[0]}", soft_wrap=True)
    else:
        console.print(f"{workdir} has no checkpoint yet")


def _divide_anew(parts: list[tuple[dict[str, HostArray], dict[str, int]]], num_games: int) -> tuple[dict[str, HostArray], dict[str, int], list[ShardName]]:
    """Return this process's share of what each of another number of processes had kept for itself: its host arrays, its cursor, and its shards of before."""
    slots = mesh_lib.share(num_games)
    games = Assembler.divide_anew([_part(host, _ASSEMBLER) for host, _ in parts], slots.start, slots.stop)
    resign = {name: array for name, array in parts[0][0].items() if name.startswith(_RESIGN)}  # all have the same
    cursor, inherited = deal_shards([cursor for _, cursor in parts], jax.process_index(), jax.process_count())
    return {_ASSEMBLER + name: array for name, array in games.items()} | resign, cursor, inherited


def _changes_of_processes(before: int) -> list[str]:
    """Return the line, for the lead to say, that the number of processes has changed."""
    if not mesh_lib.is_lead():
        return []
    return [
        f"the run had {before} process{'es' * (before > 1)}, now it has {jax.process_count()}: the games in flight and the replay's shards are divided anew, "
        "and the draws of self-play are others from here on"
    ]


def _part(host: dict[str, HostArray], prefix: str) -> dict[str, HostArray]:
    return {name.removeprefix(prefix): array for name, array in host.items() if name.startswith(prefix)}
