"""Records of chess: PGN."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np

from azero.data.records.formats import RecordFormat, Replayed
from azero.data.records.piece_replaying import Line, replay
from azero.games.archives import count_in_texts
from azero.games.chess.fen import START
from azero.games.chess.pgn import SUFFIXES, PgnGame, check_start, read_games
from azero.games.chess.rules import Chess
from azero.games.chess.san import encode_san, fitting_actions
from azero.games.chess.text import (
    board_of_fen,
    board_of_frame,
    format_diagram,
    format_fen,
    format_san,
    parse_san,
)
from azero.games.game import Game
from azero.games.quoting import shorten
from azero.selfplay.trajectory import HostArray


def _estimate(path: Path) -> int:
    return count_in_texts(path, SUFFIXES, b"[Event ")


def _key(record: PgnGame) -> bytes:
    """Return the digest of the first position and the moves as they are written; annotations do not
    count."""
    digest = hashlib.blake2b(" ".join(record.fen.split()[:4]).encode(), digest_size=16)
    digest.update(np.asarray([encode_san(move) for move in record.moves], ">i2").tobytes())
    return digest.digest()


def _played_key(record: PgnGame, replayed: Replayed) -> bytes:
    """Return the digest of the first position and the moves."""
    digest = hashlib.blake2b(_first_position(record.fen).encode(), digest_size=16)
    digest.update(replayed.actions.astype(">i2").tobytes())
    return digest.digest()


@functools.lru_cache(maxsize=4096)
def _first_position(fen: str) -> str:
    """Return a position without its counts of moves; all FENs of one position give the same."""
    return " ".join(format_fen(board_of_fen(fen)).split()[:4])


def _replay(game: Chess, records: Sequence[PgnGame]) -> list[Replayed]:
    problems = [_start_problem(record.fen, record.tags.get("Variant", "")) for record in records]
    fens = [
        START if problem else record.fen for record, problem in zip(records, problems, strict=True)
    ]
    codes = [[encode_san(move) for move in record.moves] for record in records]
    lines = replay(cast(Game, game), fitting_actions, fens, codes)
    return [
        Replayed(line.frames, line.to_play, line.actions, problem or _problem(record, line))
        for record, line, problem in zip(records, lines, problems, strict=True)
    ]


@functools.lru_cache(maxsize=4096)
def _start_problem(fen: str, variant: str) -> str:
    try:
        check_start(fen, variant)
    except ValueError as error:
        return shorten(error)
    return ""


def _problem(record: PgnGame, line: Line) -> str:
    """Return why the moves could not be played to their end; "" if they were, or the game was
    over."""
    count = len(line.actions)
    if count == len(record.moves) or (line.is_over and count):
        return ""
    board = board_of_fen(record.fen)
    for action in line.actions:
        board = board.after(int(action))
    try:
        parse_san(board, record.moves[count])
        reason = "the game is over"
    except ValueError as error:
        reason = shorten(error)
    return f"move {board.plies // 2 + 1}: {reason}"


def _describe(game: Chess, rows: HostArray, place: int) -> tuple[str, str]:
    board = board_of_frame(rows[place]["frame"])
    action = int(rows[place]["action"])
    return format_diagram(board), format_san(board, action) if action >= 0 else ""


FORMAT = RecordFormat(
    SUFFIXES, read_games, _estimate, _key, _replay, _describe, ("White", "Black"), _played_key
)
