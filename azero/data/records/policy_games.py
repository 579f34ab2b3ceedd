"""Games played by policies as rows of a data set: one position of each, or all of them."""

import numpy as np

from azero.data.records.recorded import SLOTS, games_without_targets
from azero.data.shard import pack_positions
from azero.selfplay.policy_games import Decorrelated, Trace
from azero.selfplay.trajectory import Games, HostArray


def pack_decorrelated(games: Decorrelated, first_number: int) -> tuple[HostArray, Games]:
    """Return one position of every game that has one, as `num_frames` rows each: its history, and
    the position last.

    `first_number` is the number of the first game.
    """
    taken = np.flatnonzero(games.is_taken)
    num_frames = games.frames.shape[1]
    # oldest first; zeros before the start of the game are never read
    frames = games.frames[taken, ::-1]
    to_play = games.to_play[taken, None] ^ (np.arange(num_frames)[::-1] % 2).astype(np.uint8)
    packed = games_without_targets(
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
    packed = games_without_targets(
        frames,
        (ply % 2).astype(np.uint8),
        lengths,
        np.stack([rewards, -rewards], axis=1),
        first_number,
    )
    return pack_positions(packed, SLOTS).rows, packed
