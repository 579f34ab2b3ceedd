"""Going back to an earlier checkpoint of a run, and the advice to do so when learning has
diverged.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from azero import mesh as mesh_lib
from azero.checkpoint import orbax_io, store
from azero.config import config_hash
from azero.data.files import DamagedFileError, write_atomic
from azero.data.run_files import EVENTS, METRICS, SAMPLES
from azero.data.shard import parse_shard_path
from azero.settings import Config
from azero.train.stopping import StopRequest

SET_ASIDE = "set-aside"
"""Subdirectory for what followed a checkpoint to which the run went back."""
WENT_BACK = "went-back.json"
"""File in a run's directory: the last time that the run went back.

The same command, given again, continues.
"""


def go_back(workdir: Path, iteration: int, config: Config) -> str:
    """Make checkpoint `iteration` the newest of the run in `workdir`; return a line that says so.

    Later checkpoints, and the shards of the replay and the sample games written after it, move to
    `set-aside/after-N`; the rows so far are copied there. Where the last time that the run went
    back was to the same checkpoint with the same settings nothing is done: that command was
    interrupted and continues.

    Call it with the working directory held, in every process, before the checkpoints are opened.

    Raises:
      ValueError: there is no such checkpoint; those that there are, are named.
      CheckpointError: it cannot be read.
      OSError: the system refuses.
    """
    went = {"iteration": iteration, "settings": config_hash(config)}
    known = workdir / WENT_BACK
    line = ""
    if mesh_lib.is_lead():
        if known.exists() and json.loads(known.read_text(encoding="utf-8")) == went:
            before = f"the run went back to checkpoint {iteration} with these settings before"
            line = f"{before}; it continues from its newest checkpoint"
        else:
            line = _set_aside_after(workdir, iteration)
            write_atomic(known, [json.dumps(went).encode()])
    mesh_lib.smallest(0)  # nobody looks at what is being moved
    return line


def _set_aside_after(workdir: Path, iteration: int) -> str:
    root = store.root_directory(workdir)
    iterations = store.list_iterations(root)
    if iteration not in iterations:
        there = ", ".join(map(str, iterations)) or "none"
        problem = f"no such checkpoint in {workdir}; the checkpoints are: {there}"
        raise ValueError(f"--from-checkpoint {iteration}: {problem}")
    orbax_io.read_record(root, iteration)
    later = [other for other in iterations if other > iteration]
    shards = _later_shards(workdir / "replay", root, iteration)
    samples = [path for path in (workdir / SAMPLES).glob("*.json") if path.stem.isdigit()]
    samples = [path for path in samples if int(path.stem) > iteration]
    if not later and not shards and not samples:
        return f"checkpoint {iteration} is the newest; nothing follows it"
    aside = _new_directory(workdir / SET_ASIDE / f"after-{iteration}")
    for name in (METRICS, EVENTS):
        if (workdir / name).exists():
            shutil.copy2(workdir / name, aside / name)
    # The newest checkpoint goes first and the shards go last, so that whatever is left, should this
    # be interrupted, is a run that can be continued.
    for other in reversed(later):
        _move(store.steps_directory(root) / str(other), aside / "checkpoints" / "steps")
        for path, number, _ in store.list_hosts(root):
            if number == str(other):
                _move(path, aside / "checkpoints" / "hosts")
    for path in [*shards, *samples]:
        _move(path, aside / path.parent.name)
    listed = ", ".join(map(str, later))
    found = f"checkpoint{'s' * (len(later) > 1)} {listed} and " if later else ""
    moved = f"{found}{len(shards)} shards of the replay are now in {aside}"
    return f"gone back to checkpoint {iteration}: {moved}"


def _later_shards(replay: Path, root: Path, iteration: int) -> list[Path]:
    """Return the shards that were written after a checkpoint, by all processes."""
    next_shards: dict[int, int] = {}
    for process in range(store.count_processes(root, iteration)):
        with contextlib.suppress(DamagedFileError):  # restoring names what is damaged
            next_shards[process] = store.read_cursor(root, iteration, process).get("next_shard", 0)
    named = [(path, *parse_shard_path(path)) for path in sorted(replay.glob("games-p*.shard"))]
    return [path for path, process, index in named if index >= next_shards.get(process, 0)]


def _new_directory(wanted: Path) -> Path:
    """Make the directory `wanted`, with a number behind its name where it is there already."""
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
    """Say of a FloatingPointError in which iteration it came, and how the run can go on.

    Args:
      workdir: the run's directory.
      command: that continues the run and takes --from-checkpoint; None where there is none.
      stop: says what the run is doing.
    """
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
        # The newest may be on its way to where the loss went.
        back = iterations[-2] if len(iterations) > 1 else iterations[-1]
        way = f"{command} --from-checkpoint {back}"
        if command is None:
            way = f"remove the checkpoints after {back} from {store.steps_directory(root)}"
        raise FloatingPointError(
            f"{what}. Go back to an earlier checkpoint (there are "
            f"{', '.join(map(str, iterations))}) and change a setting, such as "
            f"--learner.clip-norm 1 or a lower --learner.learning-rate: {way}"
        ) from error
