"""The record of a checkpoint, and whether it fits the settings of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from azero.config import to_dict
from azero.settings import Config

SCHEMA = 1
"""Version of the record and of the layout of a checkpoint."""

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
    "selfplay.played_on_games",
    "selfplay.archive",
    "learner.optimiser",
)
"""Settings, or tables of them, that determine the shapes or the meaning of arrays.

All others may change when a run continues.
"""
_LOOSE_IN_FIXED = ("game.margin_weight",)
"""Exceptions, which may change: a run may learn from points first and from results later.

Finished games keep the reward that they were played with.
"""


class CheckpointError(ValueError):
    """A checkpoint cannot be saved, read, or used with these settings."""


class DamagedCheckpointError(CheckpointError):
    """The files on disk differ from what was saved."""


def make_record(
    iteration: int,
    leaves: dict[str, Any],
    meta: dict[str, Any],
    info: dict[str, Any],
    config: Config,
    num_processes: int,
) -> dict[str, Any]:
    """Return the JSON record of a checkpoint, sealed with its own digest.

    `state` in it is the digest of arrays and `meta`; it is independent of time, of settings that
    may change, and of the number of devices.
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
    is_sealed = isinstance(record, dict) and set(record) == {"content", "sha256"}
    if not is_sealed or digest_json(record["content"]) != record["sha256"]:
        raise DamagedCheckpointError("the digest of its record does not match")
    content: dict[str, Any] = record["content"]
    if content["schema"] != SCHEMA:
        problem = f"the checkpoint has schema {content['schema']}"
        raise CheckpointError(f"{problem}; this version reads schema {SCHEMA}")
    return content


def digest_json(content: Any) -> str:
    """Return the SHA-256 of a JSON-able value, independent of the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def settings_changes(saved: dict[str, Any], config: Config) -> tuple[list[str], list[str]]:
    """Compare the settings of a checkpoint with those of a run.

    Returns:
      (changes that make the checkpoint unusable, changes that are allowed), each a line
      "name = value in the checkpoint, now value".
    """
    refused: list[str] = []
    allowed: list[str] = []
    text = "{name} = {before} in the checkpoint, now {now}"
    for setting, line in format_changes(saved, to_dict(config), text).items():
        is_fixed = any(setting == fixed or setting.startswith(f"{fixed}.") for fixed in _FIXED)
        is_refused = is_fixed and setting not in _LOOSE_IN_FIXED
        (refused if is_refused else allowed).append(line)
    return refused, allowed


def format_changes(before: Mapping[str, Any], now: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the line `text`, with {name}, {before} and {now}, for each setting that differs
    between two sets of them, by its name; what only one of them has is left out."""
    old, new = _flatten(before), _flatten(now)
    return {
        name: text.format(
            name=name.replace("_", "-"), before=_show(old[name]), now=_show(new[name])
        )
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    }


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        is_table = isinstance(value, dict)
        flat |= _flatten(value, f"{prefix}{name}.") if is_table else {f"{prefix}{name}": value}
    return flat


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
