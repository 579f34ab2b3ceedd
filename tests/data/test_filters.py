"""Filters, splits, and which records are the same game."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from azero.data.records.filters import Filters, Fractions, parse_rank
from azero.data.records.go_records import game_key
from azero.games.go.sgf import GameRecord, parse_games
from azero.games.go.sgf_write import format_game

RECORD = GameRecord(
    "game",
    (19, 19),
    6.5,
    ((0, 3), (1, 300), (0, 17)),
    result="B+R",
    rules="Japanese",
    ranks=("9d", "2d"),
)


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("9d", 9),
        ("1 dan", 1),
        ("1k", 0),
        ("30k", -29),
        ("9p", 18),
        ("1P", 10),
        ("9段", 9),
        ("3級", -2),
        ("P9段", 18),
        ("九段", 9),
        ("初段", 1),
        ("一段", 1),
        ("9단", 9),
        ("18급", -17),
        (" 6D?", 6),
        ("", None),
        ("strong", None),
    ],
)
def test_ranks(text, rank):
    assert parse_rank(text) == rank


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        (Filters(), ""),
        (Filters(size=(9,)), "board of 19x19, not 9x9"),
        (Filters(size=(19, 17)), "board of 19x19, not 19x17"),
        (Filters(min_moves=4), "fewer than 4 moves"),
        (Filters(min_moves=3, max_moves=3), ""),
        (Filters(max_moves=2), "more than 2 moves"),
        (Filters(min_rank="2d"), ""),
        (Filters(min_rank="3d"), "a player below 3d"),
        (Filters(rules=("chinese", "tromp")), "rules Japanese"),
        (Filters(rules=("chinese", "japan")), ""),
        (Filters(max_handicap=0), ""),
    ],
)
def test_reasons_to_leave_a_game_out(filters, reason):
    assert filters.objection(RECORD) == reason


def test_unknown_winners_ranks_and_handicaps():
    assert Filters().objection(dataclasses.replace(RECORD, result="")) == "winner not known"
    assert Filters(results="any").objection(dataclasses.replace(RECORD, result="?")) == ""
    assert (
        Filters(min_rank="1k").objection(dataclasses.replace(RECORD, ranks=("", "9d")))
        == "a player's rank is not known"
    )
    (placed,) = parse_games(b"(;SZ[19]HA[3]RE[W+R];B[dd];B[pp];B[pd];W[dp])", "game")
    assert (
        placed.handicap == 3
        and Filters(max_handicap=2).objection(placed) == "handicap above 2"
        and Filters(max_handicap=3).objection(placed) == ""
    )
    (set_up,) = parse_games(b"(;SZ[19]AB[dd][pp]RE[W+R];W[dp])", "game")
    assert set_up.handicap == 2 and Filters(max_handicap=0).objection(set_up)
    (played,) = parse_games(b"(;SZ[9]RE[B+R];B[cc];B[gg];W[ee])", "played")
    assert played.handicap == 2
    assert Filters(size=(9,), max_handicap=0).objection(played) == "handicap above 0"
    assert "HA[" not in format_game(played), "those who read it would set up two more stones"
    assert Filters().objection(dataclasses.replace(RECORD, moves=())) == "no moves"


def test_wrong_settings_are_quoted():
    with pytest.raises(ValueError, match="'best' is not a rank"):
        Filters(min_rank="best").check()
    with pytest.raises(ValueError, match="--min-rating is at least 0, not nan"):
        Filters("chess", min_rating=float("nan")).check()
    with pytest.raises(ValueError, match=r"0\.7 and 0\.5"):
        Fractions(validation=0.7, test=0.5).check()


def turn(record: GameRecord, symmetry: int) -> GameRecord:
    """Turn a record on a 19x19 board with numpy alone."""
    board = np.arange(361).reshape(19, 19)
    board = board.T if symmetry & 4 else board
    board = board[::-1] if symmetry & 1 else board
    board = board[:, ::-1] if symmetry & 2 else board
    place = [*board.reshape(-1).tolist(), 361]
    moves = tuple((colour, place[action]) for colour, action in record.moves)
    stones = tuple(place[point] for point in record.black_points)
    return dataclasses.replace(
        record, moves=moves, black_points=stones, result="W+R", name="turned"
    )


@pytest.mark.parametrize("symmetry", range(8))
def test_a_turned_game_is_the_same_game(symmetry):
    record = dataclasses.replace(RECORD, black_points=(60, 72))
    assert game_key(turn(record, symmetry)) == game_key(record)


def test_what_makes_another_game():
    key = game_key(RECORD)
    assert (
        game_key(dataclasses.replace(RECORD, moves=(*RECORD.moves, (1, 361), (0, 361)))) == key
    ), "passes at the end"
    others = [
        dataclasses.replace(RECORD, moves=RECORD.moves[:2]),
        dataclasses.replace(RECORD, moves=((1, 3), (0, 300), (1, 17))),
        dataclasses.replace(RECORD, black_points=(60,)),
        dataclasses.replace(RECORD, white_points=(60,)),
        dataclasses.replace(RECORD, moves=((0, 3), (1, 361), (0, 17))),
    ]
    assert len({key, *map(game_key, others)}) == 6


def test_splits_have_the_shares_asked_for_and_depend_on_the_moves_alone():
    keys = [
        game_key(dataclasses.replace(RECORD, moves=((0, first), (1, second))))
        for first in range(40)
        for second in range(100, 150)
    ]
    splits = [Fractions(validation=0.2, test=0.1).split_of(key) for key in keys]
    share = {name: splits.count(name) / len(keys) for name in ("train", "validation", "test")}
    assert share["validation"] == pytest.approx(0.2, abs=0.04) and share["test"] == pytest.approx(
        0.1, abs=0.03
    )
    assert splits == [Fractions(validation=0.2, test=0.1).split_of(key) for key in keys]
