"""SFEN and USI there and back, and mistakes that are named in one line."""

from __future__ import annotations

import numpy as np
import pytest

from azero.games.shogi import text
from azero.games.shogi.sfen import START, parse_square, square_name

SFENS = [
    START,
    "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 77",
    "8l/1l+R2P3/p2pBG1pp/kps1p4/Nn1P2G2/P1P1P2PP/1PS6/1KSG3+r1/LN2+p3L w Sbgn3p 124",
]


@pytest.mark.parametrize("sfen", SFENS)
def test_there_and_back(sfen: str) -> None:
    board = text.board_of_sfen(sfen)
    assert text.format_sfen(board) == sfen
    assert sorted(board.names.values()) == list(board.actions)
    rng = np.random.default_rng(1)
    for _ in range(6):
        action = int(rng.choice(board.actions))
        assert board.names[text.format_usi(board, action)] == action
        board = board.after(action)
        assert text.format_sfen(text.board_of_sfen(text.format_sfen(board))) == text.format_sfen(
            board
        )


def test_other_ways_to_write_a_position() -> None:
    assert text.format_sfen(text.board_of_sfen("startpos")) == START
    assert text.format_sfen(text.board_of_sfen(f"sfen {START}")) == START
    assert (
        text.format_sfen(text.board_of_sfen("4k4/9/9/9/9/9/9/9/4K4 b PPpl2P"))
        == "4k4/9/9/9/9/9/9/9/4K4 b 4Plp 1"
    )


def test_names_of_squares() -> None:
    assert [square_name(square) for square in (0, 8, 40, 80)] == ["9i", "1i", "5e", "1a"]
    assert [parse_square(square_name(square)) for square in range(81)] == list(range(81))


@pytest.mark.parametrize(
    ("sfen", "reason"),
    [
        ("", "it has 0 fields"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1 2", "it has 5 fields"),
        ("4k4/9/9/9/9/9/9/4K4 b - 1", "there are 8 ranks, not 9"),
        ("4k4/9/9/9/9/9/9/9/4K5 b - 1", "rank i has 10 squares, not 9"),
        ("4k4/9/9/9/9/9/9/9/4K3 b - 1", "rank i has 8 squares, not 9"),
        ("4k4/9/9/9/9/9/9/9/4K3Q b - 1", "rank i has 'Q'"),
        ("4k4/9/9/9/9/9/9/9/4K3+G b - 1", "rank i has '\\+G'"),
        ("4k4/9/9/9/9/9/9/9/4K4+ b - 1", "rank i has '\\+'"),
        ("4k4/9/9/9/9/9/9/9/4K4 x - 1", "the side to move is b or w, not 'x'"),
        ("4k4/9/9/9/9/9/9/9/4K4 b K 1", "pieces in hand are"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 19P 1", "there are 19 pieces of the kind pawn, and 18 in a set"),
        ("4k4/4+R4/9/9/9/9/9/9/r3K4 b r 1", "there are 3 pieces of the kind rook"),
        ("4k4/9/9/9/9/9/9/9/9 b - 1", "Black has 0 kings, not one"),
        ("4k4/4k4/9/9/9/9/9/9/4K4 b - 1", "White has 2 kings, not one"),
        ("4k4/P8/P8/9/9/9/9/9/4K4 b - 1", "Black has two pawns on file 9"),
        ("4k3P/9/9/9/9/9/9/9/4K4 b - 1", "Black's pawn on 1a can never move"),
        ("4k4/9/9/9/9/9/9/n8/4K4 b - 1", "White's knight on 9h can never move"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - x", "the move number is from 0 to 100000, not 'x'"),
        ("4k4/9/9/9/4R4/9/9/9/4K4 b - 1", "the side that is not to move is in check"),
        ("9/9/9/9/4k4/4K4/9/9/9 b - 1", "the kings stand next to each other"),
    ],
)
def test_a_bad_sfen_is_named_in_one_line(sfen: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"is not a shogi position in SFEN: .*{reason}") as caught:
        text.board_of_sfen(sfen)
    assert "\n" not in str(caught.value)


def test_the_diagram() -> None:
    lines = text.format_diagram(text.board_of_sfen(SFENS[2])).splitlines()
    assert lines[0] == "White in hand: P5 N1 S1 G1" and lines[-2] == "Black in hand: R1 G1"
    assert lines[3] == "  .  .  .  .  . +P  .  g  k  b"
    assert lines[-1] == SFENS[2]
