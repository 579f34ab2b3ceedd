"""Records of Go: SGF."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from azero.data.records.formats import GROUP, MOVES_PER_CALL, RecordFormat, Replayed
from azero.data.records.identity import game_key
from azero.games.go.replaying import NO_MOVE, boards_of, broken_rule, replay_moves, start_states
from azero.games.go.rules import Go
from azero.games.go.sgf import SUFFIXES, GameRecord, estimate_games, read_games
from azero.games.go.text import format_diagram, format_vertex
from azero.selfplay.trajectory import HostArray

_COLOURS = ("Black", "White")


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


FORMAT = RecordFormat(SUFFIXES, read_games, estimate_games, game_key, _replay, _describe)
