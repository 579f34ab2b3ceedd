"""Dividing the replay of a run that is resumed with another number of processes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from azero.data.manifest import list_manifests
from azero.data.shard import ShardName


def deal_shards(
    cursors: Sequence[dict[str, Any]], process: int, count: int
) -> tuple[dict[str, int], list[ShardName]]:
    """Return the replay that process `process` of now `count` starts with; `cursors` are those of
    the previous processes (`Replay.state_dict`).

    The shards are dealt one by one, the newest first, so every process gets games of all ages and
    almost as many as the others. New shards are numbered after all previous ones: none takes the
    name of one that an older checkpoint may need.

    Returns:
      (a cursor without shards, the shards that the process takes over, oldest first).
    """
    first = max(cursor["next_shard"] for cursor in cursors)
    by_age = sorted(
        (cursor["next_shard"] - shard, owner, shard)
        for owner, cursor in enumerate(cursors)
        for shard in range(cursor["first_shard"], cursor["next_shard"])
    )
    names = [(owner, shard) for _, owner, shard in by_age][process::count]
    totals = {
        name: sum(cursor[name] for cursor in cursors) for name in ("num_games", "num_positions")
    }
    shares = {name: total // count + (process < total % count) for name, total in totals.items()}
    return {"first_shard": first, "next_shard": first, **shares}, names[::-1]


def forget_processes(directory: Path, count: int) -> None:
    """Delete the shards and manifests in `directory` of the processes from `count` on, once no
    checkpoint needs them."""
    for process, manifest in list_manifests(directory):
        if process >= count:
            for path in directory.glob(f"games-p{process:03d}-*"):
                path.unlink(missing_ok=True)
            manifest.unlink()
