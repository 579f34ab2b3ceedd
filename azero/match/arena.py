"""The Elo curve of a run: results of matches between checkpoints as rows, and the ratings from
these."""

import dataclasses
from collections.abc import Hashable, Sequence

from azero.data.rows import Row
from azero.match.elo import PairResult, Rating, fit_elo
from azero.match.score import MatchResult, Tally, group_games

EVALUATION = "evaluation"
"""The kind of a row that holds a match between two checkpoints."""


def evaluation_row(
    iteration: int, opponent_iteration: int, result: MatchResult, passed: bool | None = None
) -> Row:
    """Return the row of a match that the checkpoint of `iteration` (player A) played against an
    earlier one; `passed` says whether it passed a gate."""
    return {
        "kind": EVALUATION,
        "iteration": iteration,
        "opponent_iteration": opponent_iteration,
        **dataclasses.asdict(result.total),
        "first": list(dataclasses.astuple(result.first)),
        "second": list(dataclasses.astuple(result.second)),
        "passed": passed,
    }


def row_result(row: Row) -> MatchResult:
    """Return the result that `evaluation_row` put into `row`."""
    return MatchResult(Tally(*row["first"]), Tally(*row["second"]))


def pair_results(
    name: str, opponent: str, result: MatchResult, group: Hashable = None
) -> list[PairResult]:
    """Return the games of `name` as results of first movers against second movers, in one group
    (see `PairResult`); those without games are left out."""
    first, second = result.first, result.second
    both = [
        PairResult(name, opponent, first.wins, first.draws, first.losses, group),
        PairResult(opponent, name, second.losses, second.draws, second.wins, group),
    ]
    return [pair for pair in both if pair.games]


def rate_checkpoints(rows: Sequence[Row]) -> list[tuple[int, Rating]]:
    """Return the rating of every checkpoint in the evaluation rows among `rows`, in order of
    iteration; the first one is at 0.

    Checkpoints that no games connect with the first one are left out.
    """
    pairs = [
        pair
        for row in rows
        if row.get("kind") == EVALUATION and row["iteration"] != row["opponent_iteration"]
        for pair in pair_results(
            str(row["iteration"]), str(row["opponent_iteration"]), row_result(row)
        )
    ]
    if not pairs:
        return []
    first = str(min(int(name) for pair in pairs for name in (pair.first, pair.second)))
    groups = group_games([(pair.first, pair.second) for pair in pairs])
    of_groups = [[pairs[index] for index in group] for group in groups]
    connected = next(
        group for group in of_groups if any(first in (pair.first, pair.second) for pair in group)
    )
    ratings = fit_elo(connected, {first: 0.0}).ratings
    return sorted(((int(rating.name), rating) for rating in ratings), key=lambda entry: entry[0])
