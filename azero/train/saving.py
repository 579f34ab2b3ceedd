"""Saving the state of a run to a checkpoint, and restoring it."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
from flax.traverse_util import flatten_dict
from jax.sharding import Mesh

from azero import mesh as mesh_lib
from azero.checkpoint import (
    Checkpointer,
    CheckpointError,
    Restored,
    export_network,
    list_checkpoints,
    load_settings,
    load_variables,
)
from azero.checkpoint.exported import exported_path
from azero.checkpoint.store import list_iterations, root_directory, steps_directory
from azero.console.tables import format_bytes, format_duration, make_table
from azero.console.terminal import make_console
from azero.data.manifest import deal_shards, forget_processes
from azero.data.rows import replace_text
from azero.data.run_files import CONFIG, FIRST_NETWORK, METRICS, SOURCE, check_run
from azero.data.shard import ShardName, list_shards
from azero.games.game import Game
from azero.games.history import WithHistory
from azero.learn.learner import TrainState
from azero.models.naming import find_directory
from azero.networks.deepen import deepen
from azero.networks.fewer_positions import see_fewer_positions
from azero.networks.settings import NetworkConfig
from azero.players.thinking import can_play, describe_board
from azero.selfplay.carry import slots_before
from azero.selfplay.trajectory import Assembler, HostArray
from azero.train.boards import carry_of, for_board, part_of, part_of_board, with_prefix
from azero.train.loop import REPLAY, Loop, RunState
from azero.train.stage import S, State
from azero.types import PyTree

_OPPONENTS = ("best", "rival")
"""Parts of a state: of them a run has what `evaluation.gate`, or its matches, ask for, which may
change when it continues."""
_RESIGN = "resign."
_ASSEMBLER = "assembler."


def restore_learner(checkpointer: Checkpointer, state: S, counts: Sequence[str] = ()) -> S:
    """Return the state of a learner from the newest checkpoint; `state` itself without one. The
    `counts` of the state are those that were saved with it, where it has them.

    Raises:
      CheckpointError: the newest checkpoint does not fit the settings, or none is complete.
    """
    restored = checkpointer.restore({"train": state.train})
    if restored is not None:
        state.train, state.iteration = restored.arrays["train"], restored.iteration
        for name in restored.meta.keys() & set(counts):
            setattr(state, name, restored.meta[name])
    return state


def save_learner(
    checkpointer: Checkpointer, state: State, games: int, counts: Sequence[str] = ()
) -> None:
    """Save the state of a learner after whole iterations, with its `counts`; `games`, the number it
    has learned from, is for `list_checkpoints`.

    Raises:
      CheckpointError: the save before this one failed.
    """
    meta = {"games": games, "steps": int(state.train.step)}
    meta |= {name: getattr(state, name) for name in counts}
    checkpointer.save(state.iteration, {"train": state.train}, meta)


def restore_selfplay(checkpointer: Checkpointer, loop: Loop) -> tuple[RunState, list[str]]:
    """Return the newest complete state of self-play, or the initial one.

    Returns:
      (state, notes about it, one line each).

    Raises:
      CheckpointError: the newest checkpoint does not fit the settings, or none is whole.
      StorageError: the working directory cannot be written to.
    """
    arrays = loop.fresh_arrays()
    restored = checkpointer.restore(arrays, optional=_OPPONENTS)
    if restored is None:
        train = with_first_network(
            arrays["train"], loop.config.network, loop.workdir, loop.game, loop.mesh
        )
        opponents = {name: loop.copy_variables(train) for name in arrays.keys() & set(_OPPONENTS)}
        state = loop.make_state(arrays | {"train": train} | opponents)
        return state, state.replay.take_warnings()
    opponents, notes = _new_opponents(restored, arrays, loop)
    host, cursor = restored.host, restored.cursor
    inherited: list[ShardName] = []
    slots = slots_before(loop.config.selfplay, restored.devices, jax.device_count())
    own = mesh_lib.process_slice(len(slots))
    mine = slots[own] - own.start
    if restored.parts:
        host, cursor, inherited = _redistribute(restored, slots[own])
        mine = np.arange(len(mine))
        notes += _changes_of_processes(len(restored.parts))
    arrays = _with_slots(restored.arrays, slots, loop) | opponents
    state = loop.make_state(arrays, cursor, inherited)
    _restore_games(state, host, mine)
    for size, board in state.others.items():
        _restore_games(board, part_of_board(host, size), mine)
    state.iteration = restored.iteration
    for name in ("games", "positions", "best_iteration", "rival_iteration"):
        setattr(state, name, restored.meta[name])
    for name in opponents:
        setattr(state, f"{name}_iteration", restored.iteration)
    return state, notes + state.replay.take_warnings()


def _new_opponents(
    restored: Restored, fresh: dict[str, PyTree], loop: Loop
) -> tuple[dict[str, PyTree], list[str]]:
    """Return the opponent of the next match where the run had none of its kind before, because the
    gate or the matches were off; and a note that it is the network of the checkpoint."""
    names = (fresh.keys() & set(_OPPONENTS)) - restored.arrays.keys()
    opponents = {name: loop.copy_variables(restored.arrays["train"]) for name in names}
    note = f"the first match is against the network of checkpoint {restored.iteration}"
    return opponents, [note] if opponents and mesh_lib.is_lead() else []


def _with_slots(arrays: dict[str, PyTree], slots: HostArray, loop: Loop) -> dict[str, PyTree]:
    """Return the arrays of a run with the games in flight of `slots` (see `slots_before`)."""
    if np.array_equal(slots, np.arange(len(slots))):
        return arrays
    split = mesh_lib.batch_sharded(loop.mesh)

    def moved(carry: PyTree) -> PyTree:
        return jax.tree.map(lambda leaf: mesh_lib.put(mesh_lib.fetch(leaf)[slots], split), carry)

    names = ["carry", *map(carry_of, loop.others)]
    return arrays | {name: moved(arrays[name]) for name in names}


def _restore_games(state: RunState, host: dict[str, HostArray], slots: HostArray) -> None:
    """Restore the games in flight on one board, those of `slots` of this process, and the data that
    calibrates resignation."""
    state.assembler.load_state_dict(Assembler.redistribute([part_of(host, _ASSEMBLER)], slots))
    state.resign.load_state_dict(part_of(host, _RESIGN))


def _games_of(state: RunState) -> dict[str, HostArray]:
    """Return what `_restore_games` restores."""
    games = with_prefix(state.assembler.state_dict(), _ASSEMBLER)
    return games | with_prefix(state.resign.state_dict(), _RESIGN)


def keep_first_network(given: Path | None, workdir: Path) -> list[str]:
    """Copy the network that a run starts from into its directory, so that every start before the
    first checkpoint uses the same one. A run that has begun keeps its own copy; that of a start
    that was refused or ended before the run began is replaced, or removed if none is `given`.

    Args:
      given: a directory with it, or the name of a network that ships; None is random parameters.
      workdir: the run's directory.

    Returns:
      a note, on the lead only, if the run's copy is another network than the one in `given`.

    Raises:
      ValueError: the run has begun without one.
      CheckpointError: there is no network in `given`, or it is damaged.
      StorageError: it cannot be written.
    """
    named, given = given, None if given is None else find_directory(str(given))
    kept, problem, notes = workdir / FIRST_NETWORK, "", []
    if mesh_lib.is_lead():
        if not has_begun(workdir) and kept.exists():
            shutil.rmtree(kept)
        if given is None:
            pass
        elif exported_path(kept).exists():
            notes = _is_another(given, kept)
        elif list_iterations(root_directory(workdir)):
            problem = f"the run in {workdir} has begun without it; omit it to continue that run"
        else:
            kept.mkdir(parents=True, exist_ok=True)
            replace_text(kept / SOURCE, f"{named}\n")
            export_network(given, kept)
    if problem := mesh_lib.from_lead(problem):
        raise ValueError(f"--from-network {given}: {problem}, or use another --workdir")
    return notes


def _is_another(given: Path, kept: Path) -> list[str]:
    """Return a note if the network in `given`, which may be gone by now, is another one than the
    copy in `kept`."""
    try:
        wanted, own = (flatten_dict(load_variables(network)[0]) for network in (given, kept))
    except CheckpointError:
        return []
    if wanted.keys() == own.keys() and all(np.array_equal(wanted[key], own[key]) for key in own):
        return []
    return [
        f"--from-network {given} has no effect: the run began with another network (its copy is in "
        f"{kept}), or that one has learned since; to start from it use another --workdir"
    ]


def with_first_network(
    train: TrainState, network: NetworkConfig, workdir: Path, game: Game, mesh: Mesh
) -> TrainState:
    """Return the state of a learner before its first step with the parameters of the network that
    the run in `workdir` started from, if there is one. If it is shallower than `network`, the
    further blocks begin as identities; if it sees more positions, those left out count as the
    oldest that is left.

    Raises:
      ValueError: they are of another game or board, or do not fit the run's network.
    """
    kept = workdir / FIRST_NETWORK
    if not exported_path(kept).exists():
        return train
    variables, config = load_variables(kept)
    known = config.game.build()
    if not can_play(known, game, config.network.FITS_ANY_BOARD):
        _forget(kept)
        raise ValueError(
            f"--from-network: the network plays {describe_board(known)}, and this run plays "
            f"{describe_board(game)}"
        )
    if (
        isinstance(game, WithHistory)
        and isinstance(known, WithHistory)
        and game.history < known.history
    ):
        per_position = known.ENCODING.PLANES_PER_FRAME
        variables = see_fewer_positions(variables, known.history, game.history, per_position)
    variables = deepen(train.variables, network, variables, config.network, game)
    own, other = (
        {
            jax.tree_util.keystr(path, simple=True, separator="/"): leaf.shape
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        }
        for tree in (train.variables, variables)
    )
    if own != other:
        _forget(kept)
        name = next(name for name in {**own, **other} if own.get(name) != other.get(name))
        is_kind = config.network.name == network.name
        kinds = f"; its --network.name is {config.network.name}, this run's is {network.name}"
        raise ValueError(
            f"--from-network: the network of {config.game.name} {config.game.options()} "
            f"does not fit this run's: {name} has the shape {other.get(name, 'of no parameter')} "
            f"there and {own.get(name, 'of no parameter')} here{'' if is_kind else kinds}"
        )
    return train.starting_with(variables, mesh)


def _forget(kept: Path) -> None:
    """Remove the copy of a network that does not fit; it would stand in the way of another one."""
    if mesh_lib.is_lead():
        shutil.rmtree(kept)


def save_selfplay(checkpointer: Checkpointer, state: RunState) -> None:
    """Save a state of self-play, and delete games that no checkpoint needs any more.

    Raises:
      CheckpointError: the save before this one failed.
    """
    cursors = checkpointer.cursors()
    if cursors:
        state.replay.prune(min(cursor["first_shard"] for cursor in cursors))
        for size, board in state.others.items():
            parts = [part_of_board(cursor, size) for cursor in cursors]
            board.replay.prune(min(cursor["first_shard"] for cursor in parts))
    if mesh_lib.is_lead() and checkpointer.num_processes() <= jax.process_count():
        forget_processes(state.replay.directory, jax.process_count())
    meta = {
        "games": state.games,
        "positions": state.positions,
        "steps": int(state.train.step),
        "best_iteration": state.best_iteration,
        "rival_iteration": state.rival_iteration,
    }
    host, cursor = _games_of(state), state.replay.state_dict()
    for size, board in state.others.items():
        host |= for_board(_games_of(board), size)
        cursor |= for_board(board.replay.state_dict(), size)
    # The digest covers the file, so equal states must be written in the same order.
    host = dict(sorted(host.items()))
    checkpointer.save(state.iteration, state.arrays(), meta, host, cursor)


def has_begun(workdir: Path) -> bool:
    """Return whether a run in `workdir` was ever prepared, so that it has settings or, where that
    file was deleted, checkpoints."""
    return (workdir / CONFIG).exists() or bool(list_iterations(root_directory(workdir)))


def check_complete(workdir: Path) -> None:
    """Check that the checkpoints of the run in `workdir` are not missing.

    Without them the run would start over and delete its games and metrics. Call it before
    checkpoints are opened.

    Raises:
      CheckpointError: they are; all processes of the run raise it together.
    """
    problem = mesh_lib.from_lead(_missing_checkpoints(workdir) if mesh_lib.is_lead() else "")
    if problem:
        raise CheckpointError(problem)


def _missing_checkpoints(workdir: Path) -> str:
    """Return the error message if there are games or metrics and no checkpoints, else "".

    A run that was killed before its first checkpoint has the directories of the checkpoints, and
    all of its shards from the first one on.
    """
    games, metrics, checkpoints = workdir / REPLAY, workdir / METRICS, root_directory(workdir)
    oldest: dict[int, int] = {}
    for process, shard, _ in list_shards(games):
        oldest[process] = min(shard, oldest.get(process, shard))
    has_steps = steps_directory(checkpoints).is_dir()
    if list_iterations(checkpoints) or (has_steps and not any(oldest.values())):
        return ""
    if oldest:
        what, aside = f"{games} holds the games of a run", f"move {games} away or "
    elif metrics.exists():
        what, aside = f"{metrics} holds the metrics of a run", ""
    else:
        return ""
    return (
        f"{what}, but {checkpoints} has no checkpoint for them: was it moved, or is a drive not "
        f"mounted? Restore it; or, to start over, {aside}use another --workdir. Nothing has been "
        "changed"
    )


def print_checkpoints(workdir: Path) -> None:
    """Print the checkpoints of the run in `workdir`.

    Raises:
      ValueError: there is no run.
    """
    rows = [
        (
            row.iteration,
            row.games,
            row.steps,
            format_bytes(row.num_bytes),
            f"{format_duration(row.age_s)} ago",
            row.digest or f"damaged: {row.problem}",
        )
        for row in list_checkpoints(workdir)
    ]
    console = make_console()
    if rows:
        names = ("iteration", "games", "steps", "size", "saved", "digest of the whole state")
        console.print(make_table(f"Checkpoints of {workdir}", names, rows))
    elif exported_path(workdir).exists():
        iteration, _ = load_settings(workdir)
        text = f"{exported_path(workdir)} is the exported network of iteration {iteration}"
        console.print(text, soft_wrap=True)
    else:
        check_run(workdir)
        console.print(f"{workdir} has no checkpoint yet")


def _redistribute(
    restored: Restored, slots: HostArray
) -> tuple[dict[str, HostArray], dict[str, int], list[ShardName]]:
    """Return this process's share of the state of a different number of processes: the games of
    `slots`.

    Returns:
      (host arrays, cursor, shards of before).
    """
    hosts = [host for host, _ in restored.parts]
    games = Assembler.redistribute([part_of(host, _ASSEMBLER) for host in hosts], slots)
    # All have the same calibration.
    own = with_prefix(part_of(hosts[0], _RESIGN), _RESIGN) | with_prefix(games, _ASSEMBLER)
    cursors = [cursor for _, cursor in restored.parts]
    cursor, inherited = deal_shards(cursors, jax.process_index(), jax.process_count())
    return own, cursor, inherited


def _changes_of_processes(before: int) -> list[str]:
    """Return the note, on the lead only, that the number of processes has changed."""
    if not mesh_lib.is_lead():
        return []
    return [
        f"the run had {before} process{'es' * (before > 1)}, now it has {jax.process_count()}: the "
        "games in flight and the replay's shards are redistributed, and the random draws of "
        "self-play differ from here on"
    ]
