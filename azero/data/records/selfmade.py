"""Games played by policies as rows of a data set: one position of each, or all of them."""

from __future__ import annotations

import numpy as np

from azero.data.records.recorded import SLOTS
from azero.data.shard import pack_positions
from azero.selfplay.policy_games import Decorrelated, Trace
from azero.selfplay.trajectory import NO_NETWORK, Games, HostArray


def pack_decorrelated(games: Decorrelated, first_number: int) -> tuple[HostArray, Games]:
    """Return one position of every game that has one, as `num_frames` rows each: its history, and
    the position last.

    `first_number` is the number of the first game.
    """
    taken = np.flatnonzero(games.is_taken)
    num_frames = games.frames.shape[1]
    frames = games.frames[
        taken, ::-1
    ]  # oldest first; zeros before the start of the game are never read
    to_play = games.to_play[taken, None] ^ (np.arange(num_frames)[::-1] % 2).astype(np.uint8)
    packed = _without_targets(
        frames.reshape(-1, frames.shape[-1]),
        to_play.reshape(-1),
        np.full(len(taken), num_frames, np.int32),
        games.rewards[taken],
        first_number,
    )
    rows = pack_positions(packed, SLOTS).rows
    rows["ply"][num_frames - 1 :: num_frames] = games.ply[taken]
    return rows, packed


def pack_whole(
    trace: Trace, actions: HostArray, rewards: HostArray, first_number: int
) -> tuple[HostArray, Games]:
    """Return all positions before the moves of games int32[B, T] (-1 after the end), with results
    float32[B] of the first mover."""
    lengths = (actions >= 0).sum(axis=1).astype(np.int32)
    frames = np.concatenate([trace.frames[:length, game] for game, length in enumerate(lengths)])
    ply = np.concatenate([np.arange(length) for length in lengths])
    packed = _without_targets(
        frames,
        (ply % 2).astype(np.uint8),
        lengths,
        np.stack([rewards, -rewards], axis=1),
        first_number,
    )
    return pack_positions(packed, SLOTS).rows, packed


def _without_targets(
    frames: HostArray, to_play: HostArray, length: HostArray, rewards: HostArray, first_number: int
) -> Games:
    """Return games without policy targets, of which only the results are learned."""
    rows, games = len(frames), len(length)
    return Games(
        frame=frames,
        to_play=to_play,
        action=np.full(rows, -1, np.int16),
        policy_count=np.zeros(rows, np.int32),
        is_target=np.zeros(rows, bool),
        root_value=np.zeros(rows, np.float16),
        best_child_value=np.zeros(rows, np.float16),
        surprise=np.zeros(rows, np.float16),
        is_random=np.zeros(rows, bool),
        length=length,
        result=rewards.astype(np.float32),
        resigned=np.zeros(games, bool),
        can_resign=np.zeros(games, bool),
        number=first_number + np.arange(games, dtype=np.int64),
        network=np.full((games, 2), NO_NETWORK, np.int32),
        policy=np.zeros(0, np.uint32),
    )
