"""The games of a match between two players as rows, and their summary."""

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from azero.console.tables import count_of
from azero.data.rows import Row
from azero.games.go.text import format_score
from azero.match.score import MatchResult, PairedScore, Tally, group_games, paired_score
from azero.players.player import ILLEGAL, Decision


@dataclass(frozen=True)
class MatchGame:
    """One finished game of a match, from the side of its first player."""

    number: int
    """From 1. Games 2k - 1 and 2k are a pair where colours alternate: one opening, both colours."""
    opening: int | None
    """Its number in the file of openings or positions, from 1; None is the empty board."""
    first_is_black: bool
    """Whether the match's first player has the side that begins a whole game (Black in Go, White in
    chess); where colours alternate it has in an odd game."""
    reward: float
    """+1, 0 or -1 for the first player."""
    actions: tuple[int, ...]
    num_opening_moves: int
    """Moves of the opening, which the players did not choose."""
    ending: str
    """How it ended: played out, who resigned, or what a player did wrong."""
    failed: str = ""
    """Who lost by a crash, an illegal move or a timeout; else empty."""
    margin: float | None = None
    """Go: Black's lead in points under our rules, if the game was played out."""
    cleared_margin: float | None = None
    """Go: the lead without the dead stones left on the board, if a program and we count the same
    lead and winner that way; else None."""
    disagreement: str = ""
    """A program's score, if it differs from both of ours; else empty."""
    seconds: tuple[float, float] | None = None
    """Thinking time of the first and the second player."""
    start: str = ""
    """Start position as text (FEN, SFEN); empty is the game's own."""
    decisions: tuple[Decision, ...] = ()
    """The players' thinking for each move after the opening; not in the row."""

    @property
    def score_notes(self) -> list[str]:
        """Notes about how the score was counted."""
        notes = []
        if self.cleared_margin is not None:
            notes.append(f"{format_score(self.cleared_margin)} without the dead stones")
        return [*notes, self.disagreement] if self.disagreement else notes

    @property
    def failure(self) -> str:
        """What the player that failed did, without its name; empty if none did."""
        return self.ending.removeprefix(f"{self.failed}: ") if self.failed else ""

    @property
    def pair(self) -> int:
        """Number of its pair, from 0."""
        return (self.number - 1) // 2

    @property
    def rewards(self) -> tuple[float, float]:
        """For the first and the second mover."""
        own = self.reward if self.first_is_black else -self.reward
        return own, -own

    def row(self) -> Row:
        """Return the game as plain values."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "decisions"
        }

    @classmethod
    def from_row(cls, row: Row) -> "MatchGame":
        """Return the game that `row` put into a row.

        Raises:
          ValueError: it is not such a row.
        """
        try:
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in row.items()
            }
            game = cls(**values)
            numbers = (game.number, game.num_opening_moves, *game.actions)
        except TypeError as error:
            raise ValueError(f"does not hold a game of a match: {error}") from error
        if game.reward not in (-1, 0, 1) or not all(isinstance(number, int) for number in numbers):
            raise ValueError("does not hold the moves and the result of a game")
        texts = (game.ending, game.failed, game.disagreement, game.start)
        if (
            not isinstance(game.first_is_black, bool)
            or not isinstance(game.opening, int | None)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise ValueError("does not hold the colours, the opening and the ending of a game")
        return game


@dataclass(frozen=True)
class MatchSummary:
    """The result of a match so far."""

    result: MatchResult
    score: PairedScore
    failures: dict[str, int]
    """Games lost by a failure, by player."""
    disagreements: int
    """Games whose score a program counted differently."""
    repeats: int
    """Games whose colours and moves all equal those of an earlier game."""
    different: MatchResult
    """The result without them. Players without randomness repeat the same game."""


def summarise(games: Sequence[MatchGame]) -> MatchSummary:
    """Return the summary of the games, of which there is at least one."""
    different = different_games(games)
    return MatchSummary(
        _result(games),
        paired_score([game.reward for game in games], _keys(games)),
        dict(Counter(game.failed for game in games if game.failed)),
        sum(bool(game.disagreement) for game in games),
        len(games) - len(different),
        _result(different),
    )


def failure_notes(failures: Mapping[str, int]) -> list[str]:
    """Return a note for each player that lost games by failures; `failures` counts them by
    player."""
    return [
        f"{count_of(count, 'game')} lost by a failure of {name}" for name, count in failures.items()
    ]


def group_results(games: Sequence[MatchGame]) -> list[MatchResult]:
    """Return the results of the groups of games that depend on each other."""
    return [_result([games[index] for index in group]) for group in group_games(_keys(games))]


def _keys(games: Sequence[MatchGame]) -> list[Sequence[Hashable]]:
    """Return what each game shares with others: its opening, or its pair, and its moves."""
    return [
        (
            ("pair", game.pair) if game.opening is None else ("opening", game.opening),
            ("moves", game.start, game.actions),
        )
        for game in games
    ]


def different_games(games: Sequence[MatchGame]) -> list[MatchGame]:
    """Return the games without those whose colours and moves all equal those of an earlier one."""
    found = {(game.start, game.actions, game.first_is_black): game for game in reversed(games)}
    return list(found.values())


def absent_player(games: Sequence[MatchGame]) -> str | None:
    """Return the player that failed in all of the games before its first move, so that they do not
    measure strength; None if there is none, or there are no games."""
    names = {game.failed for game in games}
    return names.pop() if len(names) == 1 and all(map(_is_silent, games)) else None


def _is_silent(game: MatchGame) -> bool:
    """Whether a side failed that had not answered with any move; an illegal move is an answer, and
    loses."""
    # The side that moves first has moved when the other one fails after one ply.
    num_moves = len(game.actions) - game.num_opening_moves
    return bool(game.failed) and num_moves <= 1 and not game.failure.startswith(ILLEGAL)


def complete_pairs(games: Sequence[MatchGame]) -> list[float]:
    """Return the shares of the points of the pairs 0, 1, 2 ... up to the first one that is not
    complete."""
    points: dict[int, list[float]] = {}
    for game in games:
        points.setdefault(game.pair, []).append((game.reward + 1) / 2)
    pairs: list[float] = []
    while len(points.get(len(pairs), ())) == 2:
        pairs.append(sum(points[len(pairs)]) / 2)
    return pairs


def _result(games: Sequence[MatchGame]) -> MatchResult:
    return MatchResult(
        Tally.of([game.reward for game in games if game.first_is_black]),
        Tally.of([game.reward for game in games if not game.first_is_black]),
    )
