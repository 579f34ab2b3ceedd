"""Resolving the settings of a run, the same in all its processes."""

import dataclasses
import json
from pathlib import Path

import jax

from azero import mesh as mesh_lib
from azero.checkpoint.record import format_changes
from azero.config import to_dict
from azero.data import run_files as files
from azero.data.files import write_atomic
from azero.games.positions import read_positions
from azero.games.settings import GameConfig
from azero.networks.make import resolve
from azero.networks.settings import ConvolutionalConfig, LinearConfig
from azero.players.searches import with_symmetries
from azero.settings import Config, from_dict
from azero.train.loop import START_POSITIONS
from azero.train.saving import has_begun


def agree_on_settings(config: Config, from_checkpoint: int | None = None) -> Config:
    """Return `config` without the settings of the cluster, which differ from process to process.

    The rest must be the same in all processes, or they would run different programs; so must the
    checkpoint that the run goes back to.

    Raises:
      ValueError: it is not; the settings that differ from the lead's are named.
    """
    run = dataclasses.replace(
        config.run, coordinator=None, coordinator_bind=None, num_processes=None, process_id=None
    )
    config = dataclasses.replace(config, run=run)
    if jax.process_count() > 1:
        mine = to_dict(config) | {"from_checkpoint": from_checkpoint}
        leads = json.loads(mesh_lib.from_lead(json.dumps(mine)))
        here = f"in process {jax.process_index()}"
        changes = format_changes(leads, mine, f"{{name}} = {{before}} in process 0, {{now}} {here}")
        if changes:
            listed = "; ".join(changes.values())
            raise ValueError(f"all processes need the same settings, but here {listed}")
    return config


def resolve_settings(config: Config, workdir: Path) -> Config:
    """Return `config` with its "auto" settings resolved, by the lead for all processes.

    A run in `workdir` keeps what was resolved before; else `resolve` decides. A continued run must
    compute in the same way, or it would differ from an uninterrupted one; and hosts with different
    processors must compute alike.

    Raises:
      ValueError: the settings in `workdir` are damaged, or the start positions cannot be read or
        have changed.
      StorageError: the start positions cannot be copied.
    """
    resolved = json.dumps(to_dict(_resolve(config, workdir))) if mesh_lib.is_lead() else ""
    return from_dict(json.loads(mesh_lib.from_lead(resolved)))


def _resolve(config: Config, workdir: Path) -> Config:
    network = config.network
    is_open = isinstance(network, ConvolutionalConfig) and network.convolution == "auto"
    if is_open and (written := files.read_json(workdir / files.CONFIG)):
        # Only this is read: the file may be of a version with other settings. Other kinds of
        # networks have none, and the checkpoint names what differs.
        earlier = {
            name: value
            for name, value in written.get("network", {}).items()
            if name == "convolution"
        }
        source = str(workdir / files.CONFIG)
        network = from_dict({"network": earlier}, config, source=source).network
    if config.game.start_positions is not None:
        _keep_start_positions(config.game, workdir)
    if isinstance(network, LinearConfig):  # its planes, indices of patterns, have no symmetries
        replay = dataclasses.replace(config.replay, symmetries=False)
        config = dataclasses.replace(with_symmetries(config, "none"), replay=replay)
    return dataclasses.replace(config, network=resolve(network))


def _keep_start_positions(game: GameConfig, workdir: Path) -> None:
    """Copy the file of start positions into the run's directory; it replaces the copy of a start
    that was refused or ended before the run began.

    Raises:
      ValueError: the file cannot be read, a line is wrong, or it is not what it was when the run
        began.
      StorageError: it cannot be written.
    """
    given, kept = Path(game.start_positions or ""), workdir / START_POSITIONS
    is_kept = kept.exists() and has_begun(workdir)
    if is_kept and not given.exists():
        return
    try:
        content = given.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read the start positions in {given}: {error.strerror}") from error
    if not is_kept:
        read_positions(game.build(), given)  # what is refused is not kept
        write_atomic(kept, [content])
    elif kept.read_bytes() != content:
        problem = f"the start positions in {given} have changed since the run started"
        raise ValueError(f"{problem}; it started with those in {kept}")
