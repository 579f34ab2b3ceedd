"""Packs recorded games, and those that policies play: from records to the rows of a shard, with
counts of what could not be used."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from azero.data.records.filters import GAMES, Filters
from azero.data.records.formats import GROUP, Record, Replayed, format_of
from azero.data.shard import pack_positions, row_dtype
from azero.games.archives import RecordError
from azero.games.game import Game
from azero.games.go.settings import GoConfig
from azero.games.settings import GameConfig
from azero.selfplay.policy_games import Decorrelated, Trace
from azero.selfplay.targets import words_of
from azero.selfplay.trajectory import NO_NETWORK, Games, HostArray

SLOTS = 1
"""Moves of a policy target: the one that was played."""


@dataclass
class ImportTally:
    """The progress of an import."""

    files: int = 0
    """Files with at least one game, read to their end."""
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
    note: Callable[[str], object] = str
    """Called with the name, a tab and the reason of every game that is left out."""

    def leave_out(self, name: str, reason: str, detail: str = "") -> None:
        """Count a game that is left out; with a `detail` it is also named."""
        self.left_out[reason] += 1
        text = f"{reason}: {detail}" if detail else reason
        self.note(f"{name}\t{text}".replace("\n", " "))
        if detail:
            self.unreadable.append(f"{name}: {text}")

    def leave_out_unreadable(self, errors: list[RecordError]) -> None:
        """Count games and files that cannot be read; the list is then empty."""
        for error in errors:
            self.leave_out(error.place, "not readable", error.problem)
        errors.clear()


def pack_records(records: Sequence[Record], game: Game, tally: ImportTally) -> HostArray:
    """Return the packed positions of games, in order; games with illegal moves are left out and
    counted."""
    replayed = [
        result
        for first in range(0, len(records), GROUP)
        for result in format_of(game.name).replay(game, records[first : first + GROUP])
    ]
    valid = []
    for record, result in zip(records, replayed, strict=True):
        if result.problem:
            tally.leave_out(record.name, "against the rules", result.problem)
        else:
            valid.append((record, result))
    if not valid:
        return np.zeros(0, row_dtype(game.frame_words))
    return pack_positions(as_games(valid, 0), SLOTS).rows


def pack_file(
    path: Path, game: GameConfig, tally: ImportTally, number: int = 0, most: int | None = None
) -> HostArray:
    """Return the packed positions of the games in a file on the board of `game`, in order, with
    the komi of each in Go, or that of `game` where there is none; of `number` games, evenly spaced
    over the file, or of all for 0, and of fewer if they have more than `most` positions.

    Raises:
      ValueError: there are no records of that game, the file cannot be read, or no game in it can
        be used.
    """
    if game.name not in GAMES:
        raise ValueError(f"records are of {', '.join(GAMES)}, not of {game.name}")
    # All that is needed of a game here is its positions.
    filters = (
        Filters(size=game.size, superko="simple", suicide=True)
        if isinstance(game, GoConfig)
        else Filters(game.name)  # type: ignore[arg-type]
    )
    form, skipped, records = format_of(filters.game), list[RecordError](), list[Record]()
    for record in form.read(path, skipped):
        tally.read += 1
        if reason := filters.objection(record):
            tally.leave_out(record.name, reason)
        else:
            records.append(record)
    tally.leave_out_unreadable(skipped)
    if not records:
        reasons = ", ".join(f"{count} with {reason}" for reason, count in tally.left_out.items())
        first = f"; the first: {tally.unreadable[0]}" if tally.unreadable else ""
        raise ValueError(f"no game of {path} can be used: {reasons or 'it has none'}{first}")
    count = min(number or len(records), len(records))
    if most is not None:
        mean_length = sum(len(record.moves) for record in records) / len(records)
        count = min(count, max(1, int(most / mean_length)))
    chosen = [records[int(place)] for place in np.linspace(0, len(records) - 1, count)]
    rules = filters.rules_of_game()
    if isinstance(game, GoConfig) and isinstance(rules, GoConfig):
        # With the games' komis, which some networks see, and `game`'s where there is none.
        rules = rules.replace(planes=19, komi=game.komi)
    rows = pack_records(chosen, rules.build(), tally)
    if not len(rows):
        raise ValueError(
            f"every game of {path} has an illegal move; the first: {tally.unreadable[0]}"
        )
    return rows


def as_games(games: Sequence[tuple[Record, Replayed]], first_number: int) -> Games:
    """Return replayed games as columns; the policy target is the move played."""
    action = np.concatenate([replayed.actions for _, replayed in games])
    without = games_without_targets(
        np.concatenate([replayed.frames for _, replayed in games]),
        np.concatenate([replayed.to_play for _, replayed in games]),
        np.asarray([len(replayed.actions) for _, replayed in games], np.int32),
        np.asarray([record.rewards or (0.0, 0.0) for record, _ in games]),
        first_number,
    )
    return without._replace(
        action=action,
        policy_count=np.full(len(action), SLOTS, np.int32),
        is_target=np.ones(len(action), bool),
        resigned=np.asarray([record.is_resigned for record, _ in games]),
        can_resign=np.ones(len(games), bool),
        policy=words_of(action, np.ones(len(action), np.uint16)),
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
