"""A network alone as one small file, for play where a run's whole state would be too large."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict

from azero.checkpoint import store
from azero.checkpoint.record import CheckpointError, DamagedCheckpointError
from azero.config import to_dict
from azero.data.files import DamagedFileError, read_arrays, read_header, write_arrays
from azero.data.run_files import EXPORTED, EXPORTED_SCHEMA, exported_settings
from azero.settings import Config
from azero.types import PyTree


def exported_path(directory: Path) -> Path:
    """Return the file of an exported network in `directory`, whether it is there or not."""
    return directory / EXPORTED


def settings_of_network(config: Config) -> dict[str, Any]:
    """Return the settings that are written with a network. A file of start positions is named
    without its folder, which is one of this machine."""
    settings = to_dict(config)
    if positions := settings["game"].get("start_positions"):
        settings["game"]["start_positions"] = Path(positions).name
    return settings


def write_exported(
    directory: Path, variables: PyTree, iteration: int, config: Config, half: bool = False
) -> Path:
    """Write a network's variables, nested dictionaries of arrays, and the settings and the
    iteration of its run into `directory`, which is created if needed; return the file. With `half`,
    filters and matrices are written as float16.

    Raises:
      CheckpointError: `directory` is that of a run, whose checkpoints the file would hide.
      StorageError: it cannot be written.
    """
    if store.list_iterations(store.root_directory(directory)):
        problem = f"{directory} has the checkpoints of a run, which an exported network would hide"
        raise CheckpointError(f"{problem}; use another directory, such as {directory / 'network'}")
    directory.mkdir(parents=True, exist_ok=True)
    path = exported_path(directory)
    facts = {"kind": "network", "schema": EXPORTED_SCHEMA, "iteration": iteration}
    arrays = flatten_dict(variables, sep="/")
    if half:
        arrays = {
            # the variances of a deep tower exceed float16
            name: array
            if array.ndim < 2 or name.startswith("batch_stats/")
            else array.astype(np.float16)
            for name, array in arrays.items()
        }
    write_arrays(path, arrays, {**facts, "config": settings_of_network(config)})
    return path


def read_exported(directory: Path) -> tuple[PyTree, Config]:
    """Return variables and settings from `write_exported`, checksums verified; what was written as
    float16 is float32 again.

    Raises:
      CheckpointError: the file is damaged or of another version.
    """
    path = exported_path(directory)
    try:
        arrays, facts = read_arrays(path)
    except DamagedFileError as error:
        raise DamagedCheckpointError(str(error)) from error
    _, config = _settings(path, facts)
    arrays = {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in arrays.items()
    }
    return unflatten_dict(arrays, sep="/"), config


def read_exported_settings(directory: Path) -> tuple[int, Config]:
    """Return the iteration and the settings of an exported network; the arrays are not read.

    Raises:
      CheckpointError: the file is damaged or of another version.
    """
    path = exported_path(directory)
    try:
        header, _, _ = read_header(path)
    except DamagedFileError as error:
        raise DamagedCheckpointError(str(error)) from error
    return _settings(path, header["facts"])


def _settings(path: Path, facts: Mapping[str, Any]) -> tuple[int, Config]:
    try:
        return exported_settings(path, facts)
    except ValueError as error:
        raise CheckpointError(str(error)) from error
