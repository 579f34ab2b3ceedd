"""Replays and packs recorded games: from records to the rows of a shard, with counts of what could
not be used."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from azero.data.shard import pack_positions, row_dtype
from azero.games.go.replaying import NO_MOVE, boards_of, broken_rule, replay_moves, start_states
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.games.go.text import format_vertex
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import NO_NETWORK, Games, HostArray

SLOTS = 1
"""Moves of a policy target: the one that was played."""
GROUP = 128
"""Games replayed in one batch (`azero.games.batching.CHUNK`)."""
_CHUNK = 64
"""Moves per compiled call."""


@dataclass
class ImportTally:
    """The progress of an import."""

    files: int = 0
    """Files read to their end."""
    read: int = 0
    """Games read."""
    already: int = 0
    """Games that were in the data set before."""
    games: Counter[str] = field(default_factory=Counter)
    """Games added, by split."""
    positions: Counter[str] = field(default_factory=Counter)
    """Positions added, by split."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Games left out, by reason; reasons have no details of single games."""
    unreadable: list[str] = field(default_factory=list)
    """A line for every file or game that could not be read or replayed."""
    left_out_lines: list[str] = field(default_factory=list)
    """Name, tab, reason of every game that was left out."""

    def leave_out(self, name: str, reason: str, detail: str = "") -> None:
        """Count a game that is left out; with a `detail` it is also named."""
        self.left_out[reason] += 1
        text = f"{reason}: {detail}" if detail else reason
        self.left_out_lines.append(f"{name}\t{text}".replace("\n", " "))
        if detail:
            self.unreadable.append(f"{name}: {text}")


@dataclass(frozen=True)
class Replayed:
    """A replayed game."""

    frames: HostArray
    """uint32[T, F]: the positions before the moves."""
    problem: str
    """What is wrong with it; "" if it is valid."""


def replay_group(game: Go, records: Sequence[GameRecord]) -> list[Replayed]:
    """Replay up to GROUP games in one batch."""
    problems = [_setup_problem(game, record) for record in records]
    records = [
        dataclasses.replace(record, black_points=(), white_points=()) if problem else record
        for record, problem in zip(records, problems, strict=True)
    ]
    states = start_states(game, records, GROUP)
    length = -(-max(len(record.moves) for record in records) // _CHUNK) * _CHUNK
    actions = np.full((length, GROUP), NO_MOVE, np.int32)
    colours = np.zeros((length, GROUP), np.int32)
    for column, record in enumerate(records):
        played = slice(len(record.moves)), column
        colours[played], actions[played] = np.asarray(record.moves).T
    frames, legal = [np.asarray(jax.vmap(game.pack_frame)(states))[None]], []
    for first in range(0, length, _CHUNK):
        part = slice(first, first + _CHUNK)
        states, legal_part, _, frames_part = replay_moves(
            game, states, actions[part], colours[part]
        )
        legal.append(np.asarray(legal_part))
        frames.append(np.asarray(frames_part))
    before, allowed = np.concatenate(frames), np.concatenate(legal)
    return [
        Replayed(
            before[: len(record.moves), column],
            problem or _first_forbidden(game, record, before[:, column], allowed[:, column]),
        )
        for column, (record, problem) in enumerate(zip(records, problems, strict=True))
    ]


def pack_records(records: Sequence[GameRecord], game: Go, tally: ImportTally) -> HostArray:
    """Return the packed positions of games, in order; games with illegal moves are left out and
    counted."""
    replayed = [
        result
        for first in range(0, len(records), GROUP)
        for result in replay_group(game, records[first : first + GROUP])
    ]
    sound = []
    for record, result in zip(records, replayed, strict=True):
        if result.problem:
            tally.leave_out(record.name, "against the rules", result.problem)
        else:
            sound.append((record, result.frames))
    return (
        pack_positions(as_games(sound, 0), SLOTS).rows
        if sound
        else np.zeros(0, row_dtype(game.frame_words))
    )


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
    move = f"{('Black', 'White')[colour]} {format_vertex(action, game.board_shape)}"
    return f"move {ply + 1}, {move}: {rule}"


def as_games(games: Sequence[tuple[GameRecord, HostArray]], first_number: int) -> Games:
    """Return replayed games as columns; the policy target is the move played."""
    moves = np.concatenate([np.asarray(record.moves) for record, _ in games])
    action, rows = moves[:, 1].astype(np.int16), len(moves)
    without = games_without_targets(
        np.concatenate([frames for _, frames in games]),
        moves[:, 0].astype(np.uint8),
        np.asarray([len(record.moves) for record, _ in games], np.int32),
        np.asarray([record.rewards or (0.0, 0.0) for record, _ in games]),
        first_number,
    )
    return without._replace(
        action=action,
        policy_count=np.full(rows, SLOTS, np.int32),
        is_target=np.ones(rows, bool),
        resigned=np.asarray(["+R" in record.result.upper() for record, _ in games]),
        can_resign=np.ones(len(games), bool),
        policy=words_of(action, np.ones(rows, np.uint16)),
    )


def games_without_targets(
    frames: HostArray, to_play: HostArray, length: HostArray, rewards: HostArray, first_number: int
) -> Games:
    """Return games without policy targets, of which only the results are learned."""
    rows, games = len(frames), len(length)
    nothing = np.zeros(rows, np.float16)
    return Games(
        frame=frames,
        to_play=to_play,
        action=np.full(rows, -1, np.int16),
        policy_count=np.zeros(rows, np.int32),
        is_target=np.zeros(rows, bool),
        root_value=nothing,
        best_child_value=nothing,
        surprise=nothing,
        is_random=np.zeros(rows, bool),
        length=length,
        result=rewards.astype(np.float32),
        resigned=np.zeros(games, bool),
        can_resign=np.zeros(games, bool),
        number=first_number + np.arange(games, dtype=np.int64),
        network=np.full((games, 2), NO_NETWORK, np.int32),
        policy=np.zeros(0, np.uint32),
    )
