"""Perft: the number of lines of play, exactly, with promoting and not promoting as two moves
(published counts; see POSITIONS)."""

from __future__ import annotations

import functools

import pytest
from perft import make_perft
from shogi_positions import BATCH, turn_sfen

from azero.games.shogi.rules import Shogi

POSITIONS = {
    # The start: https://qiita.com/ak11/items/8bd5f2bb0f5b014143c8; the others: tests of YaneuraOu
    # and of a Rust crate.
    "start": (
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1",
        [30, 900, 25470, 719731, 19861490],
    ),
    "middle game": (
        "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
        [207, 28684, 4809015],
    ),
    "most moves": ("R8/2K1S1SSk/4B4/9/9/9/9/9/1L1L1L3 b RBGSNLP3g3n17p 1", [593, 105677, 53393368]),
    "in check": (
        "l2kg2+R1/4n3+L/p1gpps3/4np3/6P1N/PP+rP2pS1/1pG2P3/4P1G2/LN3KB1+p b SPbslpppp 1",
        [107, 20080],
    ),
}
QUICK = 5_000_000
"""Lines that the ordinary run counts at most for each position; the rest is slow."""


@functools.cache
def counter():
    return make_perft(Shogi(), Shogi().from_sfen, BATCH, frontier=128)


def cases(is_slow: bool) -> list:
    return [
        pytest.param(sfen, depth, lines, id=f"{name} {depth}")
        for name, (sfen, counts) in POSITIONS.items()
        for depth, lines in enumerate(counts, 1)
        if (lines >= QUICK) == is_slow
    ]


@pytest.mark.parametrize(("sfen", "depth", "lines"), cases(is_slow=False))
def test_number_of_lines(sfen: str, depth: int, lines: int) -> None:
    assert counter()(sfen, depth) == lines


@pytest.mark.parametrize(
    ("sfen", "depth", "lines"), [case for case in cases(is_slow=False) if case.values[1] == 2]
)
def test_number_of_lines_from_the_other_side(sfen: str, depth: int, lines: int) -> None:
    assert counter()(turn_sfen(sfen), depth) == lines


@pytest.mark.slow
@pytest.mark.parametrize(("sfen", "depth", "lines"), cases(is_slow=True))
def test_number_of_lines_deep(sfen: str, depth: int, lines: int) -> None:
    assert counter()(sfen, depth) == lines
