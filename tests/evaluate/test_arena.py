"""The ladder of checkpoints and its files."""

from pathlib import Path

import pytest

from azero.evaluate.arena import evaluation_row, ladder, play_ladder, rate_checkpoints, row_result
from azero.evaluate.rows import RowFile, keep_rows, read_rows
from azero.play.score import MatchResult, Tally


def test_neighbours_and_doubling_distances_meet() -> None:
    assert ladder([30, 10, 20]) == [(20, 10), (30, 20), (30, 10)]
    pairs = ladder(range(0, 160, 10))
    assert [older for newer, older in pairs if newer == 150] == [140, 130, 110, 70]
    assert ladder([5]) == []


def test_a_ladder_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    result = MatchResult(Tally(8, 1, 1), Tally(6, 0, 4))
    played: list[tuple[int, int]] = []

    def play(newer: int, older: int) -> MatchResult:
        played.append((newer, older))
        return result

    rows = play_ladder([0, 10, 20], play, path)
    assert row_result(next(rows)) == result
    rows.close()
    assert [row["iteration"] for row in play_ladder([0, 10, 20], play, path)] == [20, 20]
    assert played == [(10, 0), (20, 10), (20, 0)]
    ratings = rate_checkpoints(read_rows(path))
    assert [iteration for iteration, _ in ratings] == [0, 10, 20]
    assert ratings[0][1].elo == 0 and 0 < ratings[1][1].elo < ratings[2][1].elo


def test_checkpoints_out_of_reach_are_left_out() -> None:
    result = MatchResult(Tally(1), Tally(1))
    rows = [evaluation_row(10, 0, result), evaluation_row(40, 30, result), {"kind": "gate", "iteration": 3}]
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
    assert keep_rows(path, lambda row: row["iteration"] <= 1) == 2
    assert [row["iteration"] for row in read_rows(path)] == [1] and list(tmp_path.iterdir()) == [path]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\nnonsense\n{"a": 2}\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2 is not JSON: 'nonsense'"):
        read_rows(path)
    path.write_text("[1]\n")
    with pytest.raises(ValueError, match="line 1 is not a JSON object"):
        read_rows(path)
    assert read_rows(tmp_path / "none.jsonl") == []
