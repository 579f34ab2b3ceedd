"""The identity of a recorded game: its moves, up to symmetries of the board."""

import functools
import hashlib

import jax.numpy as jnp
import numpy as np

from azero.games import symmetry
from azero.games.go.sgf import GameRecord
from azero.selfplay.trajectory import HostArray

_KEY_BYTES = 16


def game_key(record: GameRecord) -> bytes:
    """Return 16 bytes that are the same for the same moves from the same set-up, also rotated or
    reflected, whatever else differs in the records.

    Passes at the end do not count.
    """
    shape = record.board_shape
    tables = _point_tables(shape)
    end = len(record.moves)
    while end and record.moves[end - 1][1] == tables.shape[1] - 1:
        end -= 1
    moves = np.asarray(record.moves[:end], np.int64).reshape(-1, 2)
    stones = [
        np.sort(tables[:, list(points)], axis=1)
        for points in (record.black_points, record.white_points)
    ]
    colours = np.broadcast_to(moves[:, 0], (len(tables), len(moves)))
    counts = [np.full((len(tables), 1), points.shape[1]) for points in stones]
    set_up = [counts[0], stones[0], counts[1], stones[1]]
    parts = [*set_up, 2 * tables[:, moves[:, 1]] + colours]
    lines = np.concatenate(parts, axis=1).astype(">u2")
    digest = hashlib.blake2b(min(line.tobytes() for line in lines), digest_size=_KEY_BYTES)
    digest.update(bytes(shape))
    return digest.digest()


@functools.lru_cache(maxsize=8)
def _point_tables(shape: tuple[int, int]) -> HostArray:
    """Return int[S, N + 1]: the image of each point, and of pass, under each symmetry of the
    board."""
    actions = jnp.arange(shape[0] * shape[1] + 1, dtype=jnp.int32)
    return np.stack(
        [
            np.asarray(symmetry.transform_policy(actions, jnp.int32(which), shape))
            for which in range(symmetry.count(shape))
        ]
    )
