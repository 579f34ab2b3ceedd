"""The Elo curve of a run: which checkpoints meet, their results as rows, and the ratings from these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from azero.evaluate.elo import PairResult, Rating, fit_elo
from azero.evaluate.rows import Row, RowFile, read_rows
from azero.play.score import MatchResult, Tally

EVALUATION = "evaluation"
"""The kind of a row that holds a match between two checkpoints."""


def evaluation_row(iteration: int, opponent_iteration: int, result: MatchResult, passed: bool | None = None) -> Row:
    """Return the row of a match that the checkpoint of `iteration` (player A) played against an earlier one; `passed` says whether it passed a gate."""
    total = result.total
    return {
        "kind": EVALUATION,
        "iteration": iteration,
        "opponent_iteration": opponent_iteration,
        "wins": total.wins,
        "draws": total.draws,
        "losses": total.losses,
        "first": [result.first.wins, result.first.draws, result.first.losses],
        "second": [result.second.wins, result.second.draws, result.second.losses],
        "passed": passed,
    }


def row_result(row: Row) -> MatchResult:
    """Return the result that `evaluation_row` put into `row`."""
    return MatchResult(Tally(*row["first"]), Tally(*row["second"]))


def ladder(iterations: Iterable[int]) -> list[tuple[int, int]]:
    """Return the pairs (newer, older) of checkpoints that meet: each one plays those 1, 2, 4, 8 ... places before it.

    So n checkpoints need about n log n matches, neighbours are compared directly, and errors do not add up along the curve.
    """
    order = sorted(set(iterations))
    return [(newer, order[i - distance]) for i, newer in enumerate(order) for distance in _doubling(i)]


def play_ladder(iterations: Iterable[int], play: Callable[[int, int], MatchResult], path: Path) -> Iterator[Row]:
    """Play the ladder's matches that are not yet in the file at `path`, and yield and append their rows.

    Args:
      iterations: the checkpoints there are.
      play: plays a match of (newer, older) and returns its result from the newer one's side.
      path: a file of JSON lines; it may hold other rows as well.
    """
    done = {(row["iteration"], row["opponent_iteration"]) for row in read_rows(path) if row.get("kind") == EVALUATION}
    with RowFile(path) as file:
        for newer, older in ladder(iterations):
            if (newer, older) not in done:
                row = evaluation_row(newer, older, play(newer, older))
                file.append(row)
                yield row


def rate_checkpoints(rows: Sequence[Row]) -> list[tuple[int, Rating]]:
    """Return the rating of every checkpoint in the evaluation rows among `rows`, in order of iteration; the first one is at 0.

    Checkpoints that no games connect with the first one are left out.
    """
    pairs = [
        PairResult(str(row["iteration"]), str(row["opponent_iteration"]), row["wins"], row["draws"], row["losses"])
        for row in rows
        if row.get("kind") == EVALUATION and row["iteration"] != row["opponent_iteration"] and row["wins"] + row["draws"] + row["losses"] > 0
    ]
    if not pairs:
        return []
    first = str(min(int(name) for pair in pairs for name in (pair.first, pair.second)))
    connected = {first}
    while grown := {name for pair in pairs for name in (pair.first, pair.second) if connected & {pair.first, pair.second}} - connected:
        connected |= grown
    ratings = fit_elo([pair for pair in pairs if pair.first in connected], {first: 0.0})
    return sorted((int(rating.name), rating) for rating in ratings)


def _doubling(limit: int) -> list[int]:
    return [1 << power for power in range(limit.bit_length())]
