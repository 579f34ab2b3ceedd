"""The events that a stage yields, in the order in which they happen, which the driver logs; and
the counts of self-play that they report."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from azero import mesh as mesh_lib
from azero.data.rows import Row
from azero.evaluate.accuracy import Accuracy
from azero.evaluate.joseki import count_openings
from azero.games.go.rules import Go
from azero.games.go.sgf import GameRecord
from azero.match.score import MatchResult
from azero.selfplay.trajectory import NO_NETWORK, Games

SAMPLE_GAMES = 2
"""Finished games per iteration that are kept as samples for the report."""
OPENED_GAMES = 500
"""Most games per iteration whose openings are counted."""


@dataclass(frozen=True)
class Phase:
    """The loop's next activity."""

    text: str


@dataclass(frozen=True)
class Evaluated:
    """A match of the current player against an earlier one."""

    iteration: int
    opponent_iteration: int
    result: MatchResult
    """Of the current player."""
    promoted: bool | None
    """With the gate: whether the current player became the best one. None without a gate."""


@dataclass(frozen=True)
class MatchSkipped:
    """A match that was due but would have been uninformative."""

    iteration: int
    opponent_iteration: int
    reason: str


@dataclass(frozen=True)
class SampleGame:
    """One finished game of self-play, a sample for the report."""

    frame: list[int]
    """Start position, packed (`Game.pack_frame`)."""
    to_play: int
    """The side that moves first in it, 0 or 1."""
    actions: list[int]
    values: list[float]
    """Root values for the side to move, one per action."""
    result: float
    """Reward of the first mover: 1, 0 or -1."""
    resigned: bool


@dataclass(frozen=True)
class IterationDone:
    """One iteration is complete; the state may be saved now."""

    iteration: int
    """Iterations done in all."""
    games: int
    positions: int
    steps: int
    tally: "SelfplayTally"
    """Of the games that ended in it, and their positions."""
    window_games: int
    window_positions: int
    resign_threshold: float
    resign_false_positives: float
    """Share of the calibration games that the threshold would have resigned wrongly."""
    selfplay_seconds: float
    learner_seconds: float
    learner_wait_seconds: float
    warnings: list[str]
    board_size: int | None = None
    """Of self-play, where it was another than the run's own (`GoConfig.selfplay_sizes`)."""


@dataclass
class SelfplayTally:
    """Totals over the games that end in one iteration."""

    games: int = 0
    positions: int = 0
    first_wins: int = 0
    draws: int = 0
    resigned: int = 0
    plies: int = 0
    ages: int = 0
    """Sum over the games of the iterations since the network that played their first move."""
    opened: int = 0
    """Games of this host, from the empty board, whose openings were counted."""
    corners: Counter[str] = field(default_factory=Counter)
    """Of these the games with each corner sequence, and below with each opening
    (`azero.evaluate.joseki`)."""
    openings: Counter[str] = field(default_factory=Counter)
    samples: list[SampleGame] = field(default_factory=list)

    def add(self, games: Games, positions: int, iteration: int) -> None:
        """Count games that ended after `iteration` iterations."""
        first = games.result[:, 0]
        self.games += len(first)
        self.positions += positions
        self.first_wins += int((first > 0).sum())
        self.draws += int((first == 0).sum())
        self.resigned += int(games.resigned.sum())
        self.plies += int((games.action >= 0).sum())  # a resignation is no move
        self.ages += int((iteration - games.network[games.network[:, 0] != NO_NETWORK, 0]).sum())
        self.samples.extend(_sample_games(games, SAMPLE_GAMES - len(self.samples)))

    def add_openings(self, games: Games, board: Go) -> None:
        """Count the openings of games on a square board, up to OPENED_GAMES an iteration."""
        rows, columns = board.board_shape
        if rows != columns:
            return
        words = board.frame_words - board.shows_komi
        is_empty = ~games.frame[games.starts, :words].any(axis=1)
        numbers = np.flatnonzero(is_empty)[: OPENED_GAMES - self.opened]
        records = [_as_record(games, number, board) for number in numbers.tolist()]
        corners, openings = count_openings(records)
        self.opened += len(records)
        self.corners.update(corners)
        self.openings.update(openings)

    def add_other_hosts(self) -> None:
        """Add the counts of the other hosts; `positions` already covers all hosts."""
        counts = np.asarray(
            [self.games, self.first_wins, self.draws, self.resigned, self.plies, self.ages],
            np.int32,
        )
        self.games, self.first_wins, self.draws, self.resigned, self.plies, self.ages = map(
            int, mesh_lib.gather(counts).sum(axis=0, dtype=np.int64)
        )


def _as_record(games: Games, number: int, board: Go) -> GameRecord:
    """Return the moves of a game of self-play."""
    start = int(games.starts[number])
    place = slice(start, start + int(games.length[number]))
    moves = zip(games.to_play[place].tolist(), games.action[place].tolist(), strict=True)
    played = tuple((colour, action) for colour, action in moves if action >= 0)  # no resignation
    return GameRecord("self-play", board.board_shape, None, played)


def _sample_games(games: Games, count: int) -> list[SampleGame]:
    samples = []
    for number in range(min(count, len(games.length))):
        start, end = games.starts[number], games.starts[number] + games.length[number]
        resigned = bool(games.resigned[number])
        samples.append(
            SampleGame(
                frame=games.frame[start].tolist(),
                to_play=int(games.to_play[start]),
                actions=games.action[start : end - int(resigned)].tolist(),
                values=[round(float(value), 3) for value in games.root_value[start:end]],
                result=float(games.result[number, 0]),
                resigned=resigned,
            )
        )
    return samples


Event = Phase | Row | Accuracy | Evaluated | MatchSkipped | IterationDone
"""A row is metrics as they are written, such as those of the learner's steps; an accuracy is the
current network's on held-out positions."""
