"""The record of a checkpoint, and whether it fits the settings of a run."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flax.traverse_util import flatten_dict

from azero.config import to_dict
from azero.learn.settings import AUXILIARY_TARGETS
from azero.settings import Config

SCHEMA = 1
"""Version of the record and of the layout of a checkpoint."""

_FIXED = (
    "game",
    "network",
    "selfplay.num_games",
    "selfplay.played_on_games",
    "selfplay.archive",
    "learner.optimiser",
)
"""Settings, or tables of them, that determine the shapes or the meaning of arrays.

All others may change when a run continues.
"""
_LOOSE_IN_FIXED = (
    "game.margin_weight",
    "network.train_dtype",
    "network.inference_dtype",
    "network.convolution",
    "network.train_loop",
    "network.policy_init",
    "network.batch_norm_momentum",
)
"""Exceptions, which may change: a run may learn from points first and from results later (finished
games keep the reward that they were played with), and the network may be computed in another way.
"""
_SWITCHES = ("game.start_positions", "learner.average_decay")
"""Settings that may change, but not from None or to it: the run has its own copy of the positions,
wherever the file is now, and a state with a mean of the parameters has arrays for it."""
_TARGETS = tuple(f"learner.{name}" for name in AUXILIARY_TARGETS)
"""Settings that may change, but not all of them to 0 or from it: the games of the window are stored
with these targets or without them."""


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


def check_settings(record: Mapping[str, Any], config: Config, root: Path) -> list[str]:
    """Return the settings that have changed since the checkpoint in `root` that has this record, a
    line each.

    Raises:
      CheckpointError: it cannot be used with these settings; those that differ are named.
    """
    refused, allowed = settings_changes(record["config"], config)
    if refused:
        raise CheckpointError(
            f"checkpoint {record['iteration']} in {root} does not fit the settings: "
            f"{'; '.join(refused)}; for a new run choose another --workdir"
        )
    return allowed


def settings_changes(saved: dict[str, Any], config: Config) -> tuple[list[str], list[str]]:
    """Compare the settings of a checkpoint with those of a run.

    Returns:
      (changes that make the checkpoint unusable, changes that are allowed), each a line
      "name = value in the checkpoint, now value".
    """
    refused: list[str] = []
    allowed: list[str] = []
    now = to_dict(config)
    old, new = flatten_dict(saved, sep="."), flatten_dict(now, sep=".")
    text = "{name} = {before} in the checkpoint, now {now}"
    had_targets, has_targets = (any(flat.get(name) for name in _TARGETS) for flat in (old, new))
    for setting, line in format_changes(saved, now, text).items():
        is_refused = any(setting == fixed or setting.startswith(f"{fixed}.") for fixed in _FIXED)
        if setting in _LOOSE_IN_FIXED:
            is_refused = False
        elif setting in _SWITCHES:
            is_refused = None in (old[setting], new[setting])
        elif setting in _TARGETS:
            is_refused = had_targets != has_targets
        (refused if is_refused else allowed).append(line)
    return refused, allowed


def format_changes(before: Mapping[str, Any], now: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return the line `text`, with {name}, {before} and {now}, for each setting that differs
    between two sets of them, by its name; what only one of them has is left out."""
    old, new = flatten_dict(before, sep="."), flatten_dict(now, sep=".")
    return {
        name: text.format(
            name=name.replace("_", "-"), before=_show(old[name]), now=_show(new[name])
        )
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    }


def _show(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
