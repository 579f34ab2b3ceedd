"""What a checkpoint says about itself: its settings, every array with its digest, one digest of all; and whether it fits the settings of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from azero.config import to_dict
from azero.selfplay.trajectory import HostArray
from azero.settings import Config
from azero.types import PyTree

SCHEMA = 1
"""Version of the record and of the layout of a checkpoint."""
LOOSE = "values"
"""Item that holds the arrays which stand at the top of the state and not inside a named part of it."""

_FIXED = (
    "game",
    "network.blocks",
    "network.filters",
    "network.tower",
    "network.heads",
    "network.policy_head",
    "network.policy_filters",
    "network.value_filters",
    "network.value_hidden",
    "network.batch_norm_epsilon",
    "selfplay.num_games",
    "learner.optimiser",
)
"""Settings, or tables of them, that give arrays their shapes or their meaning. All others may change when a run goes on."""
_LOOSE_IN_FIXED = ("game.margin_weight",)
"""What may change all the same: a run may learn by points at first and by results later. Games that are over by then keep the reward that they were played for."""

Flat = dict[str, dict[str, HostArray]]
"""The arrays of a state by item (top level of the state) and by path within it."""


class CheckpointError(ValueError):
    """A checkpoint cannot be saved, read, or used with these settings."""


class DamagedCheckpointError(CheckpointError):
    """What is on disk is not what was saved."""


def leaf_paths(tree: PyTree) -> list[tuple[str, str]]:
    """Return the (item, path) of every leaf of `tree`, in the order of `jax.tree.leaves`."""
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    names = [[jax.tree_util.keystr((key,), simple=True) for key in path] for path in paths]
    return [(parts[0], "/".join(parts[1:])) if len(parts) > 1 else (LOOSE, parts[0]) for parts in names]


def is_key(leaf: Any) -> bool:
    """Return whether a leaf is an array of typed PRNG keys."""
    return hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def key_impl(leaf: Any) -> str | None:
    """Return the name of the generator of an array of typed PRNG keys, or None for other arrays."""
    return str(jax.random.key_impl(leaf)) if is_key(leaf) else None


def show_type(entry: Mapping[str, Any]) -> str:
    """Return dtype and shape of a leaf in the record, as `show_leaf` writes those of an array."""
    if entry["key"] is None:
        return f"{entry['dtype']}{entry['shape']}"
    return f"{jax.random.key(0, impl=entry['key']).dtype}{entry['shape'][:-1]}"


def show_leaf(leaf: Any) -> str:
    """Return dtype and shape of an array or `jax.ShapeDtypeStruct`: float32[3, 4], key<fry>[16]."""
    return f"{leaf.dtype if is_key(leaf) else np.dtype(leaf.dtype).name}{list(leaf.shape)}"


def describe(array: HostArray, key: str | None) -> dict[str, Any]:
    """Return dtype, shape, SHA-256 of the bytes and, for PRNG keys, their generator."""
    content = hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "key": key, "sha256": content.hexdigest()}


def check_leaf(array: HostArray, entry: Mapping[str, Any], name: str) -> None:
    """Compare an array that was read with what the record says.

    Raises:
      DamagedCheckpointError: they differ; the leaf is named.
    """
    if describe(array, entry["key"]) != dict(entry):
        raise DamagedCheckpointError(f"the digest of {name} does not match: its bytes on disk have changed")


def make_record(iteration: int, leaves: dict[str, Any], meta: dict[str, Any], info: dict[str, Any], config: Config, num_processes: int) -> dict[str, Any]:
    """Return the JSON record of a checkpoint, sealed with its own digest.

    `state` in it is the digest of arrays and `meta`; it is independent of time, of settings that may change, and of the number of devices.
    """
    state = digest_json({"iteration": iteration, "leaves": leaves, "meta": meta})
    content = {
        "schema": SCHEMA,
        "iteration": iteration,
        "config": to_dict(config),
        "num_processes": num_processes,
        "leaves": leaves,
        "meta": meta,
        "info": info,
        "state": state,
    }
    return {"content": content, "sha256": digest_json(content)}


def open_record(record: Any) -> dict[str, Any]:
    """Return the content of a record.

    Raises:
      DamagedCheckpointError: it is not what was written.
      CheckpointError: it is of another version.
    """
    if not isinstance(record, dict) or set(record) != {"content", "sha256"} or digest_json(record["content"]) != record["sha256"]:
        raise DamagedCheckpointError("the digest of its record does not match")
    content: dict[str, Any] = record["content"]
    if content["schema"] != SCHEMA:
        raise CheckpointError(f"the checkpoint has schema {content['schema']}; this version reads schema {SCHEMA}")
    return content


def digest_json(content: Any) -> str:
    """Return the SHA-256 of a JSON-able value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def settings_changes(saved: dict[str, Any], config: Config) -> tuple[list[str], list[str]]:
    """Compare the settings of a checkpoint with those of a run.

    Returns:
      (changes that make the checkpoint unusable, changes that are allowed), each "name = value in the checkpoint, now value".
    """
    refused: list[str] = []
    allowed: list[str] = []
    for setting, text in show_changes(saved, to_dict(config), "{name} = {before} in the checkpoint, now {now}").items():
        is_fixed = setting not in _LOOSE_IN_FIXED and any(setting == fixed or setting.startswith(f"{fixed}.") for fixed in _FIXED)
        (refused if is_fixed else allowed).append(text)
    return refused, allowed


def show_changes(before: Mapping[str, Any], now: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return `text` with {name}, {before} and {now} filled in for each setting, by its name, that differs between two sets of settings as dictionaries."""
    old, new = _flatten(before), _flatten(now)
    changed = [name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    return {name: text.format(name=name.replace("_", "-"), before=_show(old[name]), now=_show(new[name])) for name in changed}


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
