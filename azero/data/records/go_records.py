"""Records of Go: SGF, and which of them are the same game."""

import dataclasses
import functools
import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from azero.data.records.formats import GROUP, MOVES_PER_CALL, RecordFormat, Replayed
from azero.games import symmetry
from azero.games.go.encoding import boards_of
from azero.games.go.replaying import NO_MOVE, broken_rule, replay_moves, start_states
from azero.games.go.rules import Go
from azero.games.go.sgf import SUFFIXES, GameRecord, estimate_games, read_games
from azero.games.go.text import format_diagram, format_vertex
from azero.selfplay.trajectory import HostArray

_COLOURS = ("Black", "White")
_KEY_BYTES = 16


def _replay(game: Go, records: Sequence[GameRecord]) -> list[Replayed]:
    problems = [_setup_problem(game, record) for record in records]
    records = [
        dataclasses.replace(record, black_points=(), white_points=()) if problem else record
        for record, problem in zip(records, problems, strict=True)
    ]
    states = start_states(game, records, GROUP)
    length = max(len(record.moves) for record in records)
    length = -(-length // MOVES_PER_CALL) * MOVES_PER_CALL
    actions = np.full((length, GROUP), NO_MOVE, np.int32)
    colours = np.zeros((length, GROUP), np.int32)
    for column, record in enumerate(records):
        played = slice(len(record.moves)), column
        colours[played], actions[played] = np.asarray(record.moves).T
    frames, legal = [np.asarray(jax.vmap(game.pack_frame)(states))[None]], []
    for first in range(0, length, MOVES_PER_CALL):
        part = slice(first, first + MOVES_PER_CALL)
        states, legal_part, _, frames_part = replay_moves(
            game, states, actions[part], colours[part]
        )
        legal.append(np.asarray(legal_part))
        frames.append(np.asarray(frames_part))
    before, allowed = np.concatenate(frames), np.concatenate(legal)
    return [
        Replayed(
            before[: len(record.moves), column],
            colours[: len(record.moves), column].astype(np.uint8),
            actions[: len(record.moves), column].astype(np.int16),
            problem or _first_forbidden(game, record, before[:, column], allowed[:, column]),
        )
        for column, (record, problem) in enumerate(zip(records, problems, strict=True))
    ]


def _setup_problem(game: Go, record: GameRecord) -> str:
    if record.black_points or record.white_points:
        try:
            game.setup(record.black_points, record.white_points, record.to_play)
        except ValueError as error:
            return str(error)
    return ""


def _first_forbidden(game: Go, record: GameRecord, frames: HostArray, legal: HostArray) -> str:
    """Return what is wrong with the first illegal move; "" without one."""
    forbidden = np.flatnonzero(~legal[: len(record.moves)])
    if not len(forbidden):
        return ""
    ply = int(forbidden[0])
    colour, action = record.moves[ply]
    rule = broken_rule(game, boards_of(frames[: ply + 1], game.num_points), colour, action)
    return f"move {ply + 1}, {_COLOURS[colour]} {format_vertex(action, game.board_shape)}: {rule}"


def _describe(game: Go, rows: HostArray, place: int) -> tuple[str, str]:
    row = rows[place]
    board = boards_of(row["frame"], game.num_points).reshape(game.board_shape)
    last = int(rows[place - 1]["action"]) if row["ply"] else -1
    return (
        format_diagram(board, last if 0 <= last < game.num_points else None),
        format_vertex(int(row["action"]), game.board_shape) if row["action"] >= 0 else "",
    )


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


FORMAT = RecordFormat(SUFFIXES, read_games, estimate_games, game_key, _replay, _describe)
