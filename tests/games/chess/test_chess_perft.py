"""Perft: the number of lines of play, exactly (chessprogramming.org, 'Perft Results')."""

from __future__ import annotations

import functools

import pytest
from perft import make_perft

from azero.games.chess.rules import Chess

POSITIONS = {
    "start": (
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        [20, 400, 8902, 197281, 4865609, 119060324],
    ),
    "kiwipete": (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        [48, 2039, 97862, 4085603, 193690690],
    ),
    "pins": ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", [14, 191, 2812, 43238, 674624, 11030083]),
    "promotions": (
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        [6, 264, 9467, 422333, 15833292],
    ),
    "promotions mirrored": (
        "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1",
        [6, 264, 9467, 422333],
    ),
    "talkchess": (
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        [44, 1486, 62379, 2103487, 89941194],
    ),
    "middle game": (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        [46, 2079, 89890, 3894594, 164075551],
    ),
    "knights": ("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", [24, 496, 9483, 182838, 3605103]),
    "pinned bishops": ("4k1rr/1b1p3p/nn1p4/P3Np2/3P1bp1/6PP/P5R1/1B1K2N1 b k - 1 37", [35]),
    "most moves": ("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1", [218]),
}
QUICK = 5_000_000
"""Lines that the ordinary run counts at most for each position; the rest is slow."""


@functools.cache
def counter():
    return make_perft(Chess())


def cases(is_slow: bool) -> list:
    found = []
    for name, (fen, counts) in POSITIONS.items():
        quick = max(depth for depth, lines in enumerate(counts, 1) if lines < QUICK)
        depths = range(quick + 1, len(counts) + 1) if is_slow else [quick]
        found += [
            pytest.param(fen, depth, counts[depth - 1], id=f"{name} {depth}") for depth in depths
        ]
    return found


@pytest.mark.parametrize(("fen", "depth", "lines"), cases(is_slow=False))
def test_number_of_lines(fen: str, depth: int, lines: int) -> None:
    assert counter()(fen, depth) == lines


@pytest.mark.slow
@pytest.mark.parametrize(("fen", "depth", "lines"), cases(is_slow=True))
def test_number_of_lines_deep(fen: str, depth: int, lines: int) -> None:
    assert counter()(fen, depth) == lines
