"""Corner sequences, folded over rotations, reflections and colours."""

from __future__ import annotations

import json

import pytest

from azero.commands.joseki import count_joseki
from azero.data.records.requests import JosekiRequest
from azero.evaluate.joseki import (
    corner_sequences,
    count_openings,
    count_sequences,
    format_opening,
    format_sequence,
    parse_sequence,
)
from azero.games.go.sgf import GameRecord
from azero.games.go.text import format_vertex, parse_vertex


def record(moves: str, first: int = 0, **facts) -> GameRecord:
    """A game from vertices, colours in turn from `first`."""
    return GameRecord(
        "game",
        (19, 19),
        7.5,
        tuple(
            ((first + ply) % 2, parse_vertex(word, (19, 19)))
            for ply, word in enumerate(moves.split())
        ),
        **facts,
    )


@pytest.mark.parametrize(
    "moves",
    [
        "Q16 O17 R14",
        "R14 O17 Q16",
        "D4 C6 F3",
        "D16 C14 F17",
        "D16 F17 C14",
        "Q4 R6 O3",
        "Q4 O3 R6",
    ],
)
def test_turned_sequences_are_the_same(moves):
    first, *rest = parse_sequence(moves)
    expected = parse_sequence("R14 O17 Q16" if moves.startswith("R") else "Q16 O17 R14")
    assert (first, *rest) == expected


def test_written_in_one_way():
    assert (
        format_sequence(parse_sequence("D4 C6 F3"))
        == format_sequence(parse_sequence("Q4 O3 R6"))
        == "Q16 O17 R14"
    )
    assert parse_sequence(format_sequence(parse_sequence("R4 Q6 - O3"))) == parse_sequence(
        "R4 Q6 - O3"
    )
    assert format_sequence(parse_sequence("Q16 - O17")) == "Q16 - O17"


@pytest.mark.parametrize("turn", range(8))
def test_an_opening_is_the_same_in_every_orientation(turn):
    """The first moves: 3-4 point, an approach, the opposite corner, as they lie on the board."""

    def turned(word: str) -> str:
        row, column = divmod(parse_vertex(word, (19, 19)), 19)
        row, column = (18 - row if turn & 1 else row), (18 - column if turn & 2 else column)
        row, column = (column, row) if turn & 4 else (row, column)
        return format_vertex(19 * row + column, (19, 19))

    game = record(" ".join(map(turned, ("R16", "P17", "D4", "C6"))))
    assert format_opening(game) == "Q17 R15 D4" and format_opening(game, 4) == "Q17 R15 D4 F3"
    assert format_opening(record("Q16 pass")) == ""


def test_openings_and_corners_of_games_are_counted():
    games = [
        record("Q16 D4 O17 C6 R14 F3 Q18 C3 R17 D5"),
        record("D16 Q4 D10"),
        record("Q16"),
    ]
    corners, openings = count_openings(games)
    assert openings == {"Q16 D4 O17": 1, "Q16 D4 K16": 1}
    assert sum(corners.values()) == 2 and set(corners.values()) == {1}
    assert "Q16 - O17 - R14 - Q18 - R17" in corners


def test_colours_and_moves_elsewhere_are_folded():
    plain = record("Q16 O17 R14")
    white_first = record("D4 Q16 K10 O17 C3 R14")
    assert corner_sequences(plain, 3)[0] == parse_sequence("Q16 O17 R14")
    folded = dict(enumerate(corner_sequences(white_first, 3)))[1]
    assert folded == parse_sequence("Q16 - O17 - R14"), "the same player three times"
    assert corner_sequences(record("Q16 O17 R14", first=1), 3) == corner_sequences(plain, 3)


def test_the_middle_and_set_up_corners_do_not_count():
    assert corner_sequences(record("K10 K16 Q10"), 3) == []
    assert corner_sequences(record("Q16 D4", black_points=(parse_vertex("R17", (19, 19)),)), 3) == [
        parse_sequence("D4")
    ]
    with pytest.raises(ValueError, match="not square"):
        corner_sequences(GameRecord("game", (9, 13), None, ()), 3)


def test_shares_of_games_over_parts():
    early, late = (
        [record("Q16 O17"), record("Q17 R15")],
        [record("D4 C6"), record("D4 C6 Q16 O17 K10"), record("D17")],
    )
    (knight,) = count_sequences([early, late], [parse_sequence("Q16 O17")])
    assert (knight.corners, knight.games, knight.shares) == (4, 3, (1 / 2, 2 / 3))
    common = count_sequences([early, late], length=2, most=1)
    assert [row.sequence for row in common] == ["Q16 O17"]
    assert count_sequences([early, []], [parse_sequence("Q16 O17")])[0].shares == (0.5, 0.0)


def test_mistakes_in_a_sequence_are_quoted():
    for text in ("", "Q16 D4", "K10", "Z99"):
        with pytest.raises(ValueError, match=text or "corner sequence"):
            parse_sequence(text)


def test_the_command(tmp_path, capsys):
    (tmp_path / "games.sgf").write_text(
        "(;SZ[19];B[pd];W[nc])\n(;SZ[19];B[dd];W[cf])\n(;SZ[9];B[aa])\n"
    )
    count_joseki(JosekiRequest((tmp_path / "games.sgf",), length=2, parts=1))
    printed = capsys.readouterr().out
    assert "Q16 O17" in printed and "100.0%" in printed and "1 of another board" in printed
    rows = count_joseki(
        JosekiRequest((tmp_path / "games.sgf",), sequence=("Q16 R14",), parts=2, json=True)
    )
    assert rows[0].corners == 2 and json.loads(capsys.readouterr().out)["parts"] == [1, 1]
    (tmp_path / "dated.sgf").write_text(
        "(;SZ[19]DT[2017-05-01];B[pd];W[qc])\n(;SZ[19]DT[2016-01-02];B[dd];W[cf])\n(;SZ[19];B[dd])\n"
    )
    (row,) = count_joseki(
        JosekiRequest(
            (tmp_path / "dated.sgf",), sequence=("Q16 R17",), parts=2, by_date=True, json=True
        )
    )
    assert (
        row.shares == (0.0, 1.0)
        and json.loads(capsys.readouterr().out)["dates"][0] == "2016-01-02 to 2016-01-02"
    )
    with pytest.raises(ValueError, match="give at least one file of records"):
        count_joseki(JosekiRequest(()))
    with pytest.raises(ValueError, match=r"no games in .* with 'nobody' in its name"):
        count_joseki(JosekiRequest((tmp_path / "games.sgf",), only="nobody"))
    with pytest.raises(ValueError, match=r"no game in .*games\.sgf has a date"):
        count_joseki(JosekiRequest((tmp_path / "games.sgf",), by_date=True))
    count_joseki(JosekiRequest((tmp_path / "dated.sgf",), length=2, parts=1, by_date=True))
    assert "merged; 1 without a date" in capsys.readouterr().out
    (tmp_path / "none.sgf").write_text("(;SZ[0];B[aa])")
    with pytest.raises(
        ValueError, match=r"no games in .*none\.sgf; not readable: .*none\.sgf: SZ is .*, not '0'"
    ):
        count_joseki(JosekiRequest((tmp_path / "none.sgf",)))
