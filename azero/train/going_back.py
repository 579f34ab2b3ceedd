"""Going back to an earlier checkpoint of a run, and the advice to do so when learning has
diverged."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from azero import mesh as mesh_lib
from azero.checkpoint import orbax_io, store
from azero.checkpoint.record import check_settings
from azero.config import config_hash
from azero.console.tables import count_of
from azero.data.files import DamagedFileError, write_atomic
from azero.data.run_files import EVENTS, METRICS, SAMPLES, board_directories, read_json
from azero.data.shard import list_shards
from azero.settings import Config
from azero.train.boards import part_of_board
from azero.train.loop import REPLAY
from azero.train.stopping import StopRequest

SET_ASIDE = "set-aside"
"""Subdirectory for what followed a checkpoint to which the run went back."""
WENT_BACK = "went-back.json"
"""File in a run's directory that records the last time the run went back, so that the same command
continues it."""


def go_back(workdir: Path, iteration: int, config: Config) -> str:
    """Make checkpoint `iteration` the newest of the run in `workdir`; return a line that says so.

    Later checkpoints, and the shards of the replay and the sample games written after it, move to
    `set-aside/after-N`; the rows so far are copied there. Nothing is done if the run last went back
    to the same checkpoint with the same settings: the same command continues the run.

    Call it with the working directory held, in every process, before the checkpoints are opened.

    Raises:
      ValueError: there is no such checkpoint; the existing ones are named.
      CheckpointError: it cannot be read, or does not fit the settings; nothing has been moved.
      OSError: the system refuses.
    """
    went = {"iteration": iteration, "settings": config_hash(config)}
    known = workdir / WENT_BACK
    line = ""
    if mesh_lib.is_lead():
        if read_json(known) == went:
            before = f"the run went back to checkpoint {iteration} with these settings before"
            line = f"{before}; it continues from its newest checkpoint"
        else:
            line = _set_aside_after(workdir, iteration, config)
            write_atomic(known, [json.dumps(went).encode()])
    mesh_lib.min_of_processes(0)  # no process reads what is being moved
    return line


def _set_aside_after(workdir: Path, iteration: int, config: Config) -> str:
    root = store.root_directory(workdir)
    iterations = store.list_iterations(root)
    if iteration not in iterations:
        there = ", ".join(map(str, iterations)) or "none"
        problem = f"no such checkpoint in {workdir}; the checkpoints are: {there}"
        raise ValueError(f"--from-checkpoint {iteration}: {problem}")
    check_settings(orbax_io.read_record(root, iteration), config, root)
    later = [other for other in iterations if other > iteration]
    shards = _later_shards(workdir, root, iteration)
    samples = [path for path in (workdir / SAMPLES).glob("*.json") if path.stem.isdigit()]
    samples = [path for path in samples if int(path.stem) > iteration]
    if not later and not shards and not samples:
        return f"checkpoint {iteration} is the newest; nothing follows it"
    aside = _new_directory(workdir / SET_ASIDE / f"after-{iteration}")
    for name in (METRICS, EVENTS):
        if (workdir / name).exists():
            shutil.copy2(workdir / name, aside / name)
    # The newest checkpoint moves first and the shards move last, so that after an interruption the
    # remaining files are still a run that can be continued.
    for other in reversed(later):
        _move(store.steps_directory(root) / str(other), aside / "checkpoints" / "steps")
        for path, number, _ in store.list_hosts(root):
            if number == str(other):
                _move(path, aside / "checkpoints" / "hosts")
    for path in [*shards, *samples]:
        _move(path, aside / path.parent.relative_to(workdir))
    moved = [f"checkpoint{'s' * (len(later) > 1)} {', '.join(map(str, later))}"] if later else []
    moved += [f"{count_of(len(shards), 'shard')} of the replay"] if shards else []
    listed = " and ".join(moved) or "sample games"
    return f"gone back to checkpoint {iteration}: moved {listed} to {aside}"


def _later_shards(workdir: Path, root: Path, iteration: int) -> list[Path]:
    """Return the shards that were written after a checkpoint, of all boards and processes."""
    cursors: dict[int, dict[str, int]] = {}
    for process in range(store.count_processes(root, iteration)):
        with contextlib.suppress(DamagedFileError):  # restoring names what is damaged
            cursors[process] = store.read_cursor(root, iteration, process)
    later = []
    for size, directory in board_directories(workdir).items():
        for process, index, path in list_shards(directory / REPLAY):
            cursor = cursors.get(process, {})
            own = cursor if size is None else part_of_board(cursor, size)
            if index >= own.get("next_shard", 0):
                later.append(path)
    return later


def _new_directory(wanted: Path) -> Path:
    """Make the directory `wanted`; if it exists, append a number to its name."""
    number = 1
    while True:
        path = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1


def _move(path: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path.replace(directory / path.name)


@contextlib.contextmanager
def explain_divergence(workdir: Path, command: str | None, stop: StopRequest) -> Iterator[None]:
    """Add to a FloatingPointError the iteration in which it occurred, and how to continue: with
    `command`, which takes --from-checkpoint, if there is one."""
    try:
        yield
    except FloatingPointError as error:
        stop.wait_for_save()
        root = store.root_directory(workdir)
        iterations = store.list_iterations(root)
        kept = "Nothing of it was saved, and the same command would fail again"
        what = f"learning has diverged in {stop.doing}: {error}. {kept}"
        if not iterations:
            advice = "start over: a lower --learner.learning-rate, or --learner.clip-norm 1"
            raise FloatingPointError(f"{what}; there is no checkpoint yet, so {advice}") from error
        # The newest may already be diverging.
        back = iterations[-2] if len(iterations) > 1 else iterations[-1]
        way = f"{command} --from-checkpoint {back}"
        if command is None:
            way = f"remove the checkpoints after {back} from {store.steps_directory(root)}"
        raise FloatingPointError(
            f"{what}. Go back to an earlier checkpoint (there are "
            f"{', '.join(map(str, iterations))}) and change a setting, such as "
            f"--learner.clip-norm 1 or a lower --learner.learning-rate: {way}"
        ) from error
