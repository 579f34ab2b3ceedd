"""Records of shogi: CSA, KIF and KI2."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import jax.numpy as jnp
import numpy as np

from azero.data.records.formats import RecordFormat, Replayed
from azero.data.records.piece_replaying import Line, replay
from azero.games.archives import read_texts
from azero.games.game import Game
from azero.games.shogi.moves import NUM_ACTIONS
from azero.games.shogi.record_files import SUFFIXES, read_games
from azero.games.shogi.records import ShogiGame
from azero.games.shogi.rules import Shogi
from azero.games.shogi.text import board_of_frame, board_of_sfen, format_diagram, format_usi
from azero.selfplay.trajectory import HostArray
from azero.types import Array


def _estimate(path: Path) -> int:
    """Count the first ranks of CSA's boards; a file without any has one game."""
    try:
        texts = (text.content for text in read_texts(path, SUFFIXES))
        return sum(max(1, text.count(b"\nPI") + text.count(b"\nP1")) for text in texts)
    except (ValueError, MemoryError):
        return 0


def _key(record: ShogiGame) -> bytes:
    """Return the digest of the first position and the moves."""
    digest = hashlib.blake2b(" ".join(record.sfen.split()[:3]).encode(), digest_size=16)
    digest.update(np.asarray(record.actions, ">i2").tobytes())
    return digest.digest()


def _one_action(frame: Array, code: Array) -> Array:
    """Return bool[11259]: the action that is the code int32[1] itself."""
    return jnp.arange(NUM_ACTIONS, dtype=jnp.int32) == code[0]


def _replay(game: Shogi, records: Sequence[ShogiGame]) -> list[Replayed]:
    starts = [record.sfen for record in records]
    codes = [[(action,) for action in record.actions] for record in records]
    lines = replay(cast(Game, game), _one_action, starts, codes)
    return [
        Replayed(line.frames, line.to_play, line.actions, _problem(record, line))
        for record, line in zip(records, lines, strict=True)
    ]


def _problem(record: ShogiGame, line: Line) -> str:
    """Return what is wrong with the first illegal move; "" without one before the rules end the
    game."""
    count = len(line.actions)
    if count == len(record.actions) or (line.is_over and count):
        return ""
    board = board_of_sfen(record.sfen)
    for action in line.actions:
        board = board.after(int(action))
    move = format_usi(board, record.actions[count])
    return f"move {count + 1}, {'White' if board.is_white else 'Black'} {move}: it is not legal"


def _describe(game: Shogi, rows: HostArray, place: int) -> tuple[str, str]:
    board = board_of_frame(rows[place]["frame"])
    action = int(rows[place]["action"])
    return format_diagram(board), format_usi(board, action) if action >= 0 else ""


FORMAT = RecordFormat(SUFFIXES, read_games, _estimate, _key, _replay, _describe)
