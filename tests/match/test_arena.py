"""Matches between checkpoints as rows and ratings, and their files."""

from pathlib import Path

import pytest

from azero.data.rows import RowFile, keep_rows, read_rows
from azero.match.arena import evaluation_row, pair_results, rate_checkpoints, row_result
from azero.match.elo import PairResult
from azero.match.score import MatchResult, Tally


def test_a_row_holds_its_result_and_becomes_a_curve() -> None:
    result = MatchResult(Tally(8, 1, 1), Tally(6, 0, 4))
    rows = [
        evaluation_row(10, 0, result),
        evaluation_row(20, 10, result),
        evaluation_row(20, 0, result),
    ]
    assert row_result(rows[0]) == result
    assert pair_results("new", "old", result) == [
        PairResult("new", "old", 8, 1, 1),
        PairResult("old", "new", 4, 0, 6),
    ]
    ratings = rate_checkpoints(rows)
    assert [iteration for iteration, _ in ratings] == [0, 10, 20]
    assert ratings[0][1].elo == 0 and 0 < ratings[1][1].elo < ratings[2][1].elo


def test_checkpoints_out_of_reach_are_left_out() -> None:
    result = MatchResult(Tally(1), Tally(1))
    rows = [
        evaluation_row(10, 0, result),
        evaluation_row(40, 30, result),
        {"kind": "gate", "iteration": 3},
    ]
    assert [iteration for iteration, _ in rate_checkpoints(rows)] == [0, 10]
    assert rate_checkpoints([]) == []


def test_a_torn_line_is_left_out_and_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        file.append({"iteration": 1, "loss": float("nan")})
        file.append({"iteration": 2})
    with path.open("ab") as torn:
        torn.write(b'{"iteration": 3, "lo')
    assert read_rows(path) == [{"iteration": 1, "loss": None}, {"iteration": 2}]
    with RowFile(path) as file:
        file.append({"iteration": 3})
    assert [row["iteration"] for row in read_rows(path)] == [1, 2, 3]
    assert keep_rows(path, lambda row: row["iteration"] <= 1) == 0
    assert [row["iteration"] for row in read_rows(path)] == [1] and list(tmp_path.iterdir()) == [
        path
    ]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\nnonsense\n{"a": 2}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2 is not a JSON object: 'nonsense'"):
        read_rows(path)
    path.write_text("[1]\n")
    with pytest.raises(ValueError, match="line 1 is not a JSON object"):
        read_rows(path)
    path.write_text('{"iteration": 1}\n{"loss": 1.0}\n')
    assert read_rows(path) == [{"iteration": 1}, {"loss": 1.0}]
    with pytest.raises(ValueError, match=r"line 2 has no 'iteration': '{\"loss\": 1.0}'"):
        read_rows(path, "iteration")
    assert read_rows(tmp_path / "none.jsonl") == []
