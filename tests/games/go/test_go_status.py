"""Dead stones and the final score: drawn positions, the ends of real games, unconditional life, and
GNU Go's judgement of them all."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from diagrams import parse_diagram
from needs import require_program

from azero.games.go.scoring.life import pass_alive
from azero.games.go.scoring.status import _divide_large_regions, area_of, judge
from azero.games.go.text import format_vertex
from azero.players.gtp_player import GtpProgram


class Drawn(NamedTuple):
    """A final position: its stones, which of them are dead, and Black's area less White's."""

    board: np.ndarray
    dead: np.ndarray
    margin: int


def _drawn(lines: list[str], margin: int) -> Drawn:
    """Read a diagram in which x and o are dead stones, X and O living ones."""
    rows = [line.replace(" ", "") for line in lines]
    return Drawn(
        parse_diagram(rows), np.array([[sign in "xo" for sign in row] for row in rows]), margin
    )


def _read(name: str) -> list[Drawn]:
    """Read positions: a line "margin N" (after an optional heading), then the diagram, then an
    empty line."""
    positions = []
    for block in (Path(__file__).parent / name).read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            positions.append(_drawn(lines[1:], int(lines[0].removeprefix("margin "))))
    return positions


DRAWN = _read("drawn_positions.txt")
REAL = _read("final_positions.txt")
ALPHAGO = _read("alphago_positions.txt")


@pytest.mark.parametrize("index", range(len(DRAWN)))
def test_drawn_positions(index: int) -> None:
    _check(DRAWN[index])


def test_ends_of_real_games() -> None:
    """Ten games between programs that ended with dead stones on the board; the marks are GNU Go's
    judgement."""
    assert len(REAL) == 10
    for position in REAL:
        _check(position)


@pytest.mark.parametrize(
    "index", [0, 1, *(pytest.param(index, marks=pytest.mark.slow) for index in range(2, 7))]
)
def test_alphago_games_that_were_played_out_come_to_the_published_results(index: int) -> None:
    assert len(ALPHAGO) == 7
    assert judge(ALPHAGO[index].board).margin == ALPHAGO[index].margin


def _check(position: Drawn) -> None:
    for board, margin in ((position.board, position.margin), (-position.board, -position.margin)):
        status = judge(board)
        np.testing.assert_array_equal(status.dead, position.dead)
        assert status.margin == margin
        assert sum(
            len(chain) for which in ("alive", "dead", "seki") for chain in status.chains(which)
        ) == np.count_nonzero(board)


@pytest.mark.parametrize(("share", "is_dead"), [(0.6, True), (0.9, False)])
def test_a_stone_that_would_spoil_a_whole_territory_is_dead_unless_its_side_is_sure_of_it(
    share: float, is_dead: bool
) -> None:
    """The stone at C7 leaves a dozen points to nobody; the one at B1 leaves only two, as in a
    seki."""
    rows = [
        "XXXXXOOOO",
        "X...XO.O.",
        "X.O..XOOO",
        "X...XXO.O",
        "X..XX.XOO",
        "XXXXXXXO.",
        "OOOOOXXXO",
        "XXXXOOOOO",
        ".O.XO.O.O",
    ]
    board = parse_diagram(rows)
    kept, dead = np.ones(board.shape), np.zeros(board.shape, bool)
    kept[2, 2], kept[8, 1] = share, 0.6
    _divide_large_regions(board, kept, dead)
    assert [(int(row), int(column)) for row, column in np.argwhere(dead)] == (
        [(2, 2)] if is_dead else []
    )


def test_gnu_go_says_the_same() -> None:
    require_program("gnugo")
    positions = [*DRAWN, *REAL]
    agreed = 0
    command = ["gnugo", "--mode", "gtp", "--chinese-rules"]
    with closing(GtpProgram(command, timeout=120)) as gnu_go:
        for position in positions:
            size = len(position.board)
            for line in (f"boardsize {size}", "komi 0", "clear_board"):
                gnu_go.ask(line)
            for point in np.flatnonzero(position.board):
                gnu_go.ask(
                    f"play "
                    f"{'black' if position.board.reshape(-1)[point] > 0 else 'white'} "
                    f"{format_vertex(int(point), (size, size))}"
                )
            score = gnu_go.ask("final_score")
            agreed += (
                0 if score == "0" else float(score[2:]) * (1 if score[0] == "B" else -1)
            ) == position.margin
    assert agreed >= len(positions) - 2, f"{agreed} of {len(positions)}"


def test_a_seki_is_nobodys_and_named() -> None:
    board = _drawn(SEKI.strip().splitlines(), 0).board
    status = judge(board)
    assert not status.dead.any() and status.margin == 59
    assert (
        status.seki[:2].sum() == 14
        and not status.seki[2:].any()
        and len(status.chains("seki")) == 2
    )
    assert status.area[0, 2] == 0 and status.area[0, 7] == 0 and status.area[8, 8] == 1


SEKI = """
X O . X X X X . O
X O O O O O O O O
X X X X X X X X X
. . . . . . . . .
. . . X . . X . .
. . . . . . . . .
. . X . . X . . .
. . . . . . . . .
. . . . . . . . .
"""


def test_boards_without_two_sides() -> None:
    empty = judge(np.zeros((5, 5), np.int8))
    assert empty.margin == 0 and not empty.area.any() and empty.chains("dead") == []
    one = np.zeros((7, 7), np.int8)
    one[3, 3] = 1
    status = judge(one)
    assert status.margin == 49 and not status.dead.any(), "a lone stone on an empty board"


def test_the_same_board_is_judged_the_same_way() -> None:
    first, second = judge(DRAWN[1].board), judge(DRAWN[1].board)
    np.testing.assert_array_equal(first.area, second.area)


@pytest.mark.parametrize(
    ("diagram", "alive", "enclosed"),
    [
        # three eyes; every point below is beside the living chain
        ([". X . X .", "X X X X X", ". . . . ."], 7, 8),
        ([". X . . .", "X X . . .", ". . . . ."], 0, 0),  # one eye
        # stones beside the living chain cannot make an eye
        ([". X . X .", "X X X X X", "O O . O O"], 7, 8),
        # the corner below on the right is not beside it
        ([". X . X O", "X X X X .", ". . . . ."], 6, 2),
        ([". . X . .", "X X X X X", "O O O O ."], 6, 9),  # eyes of two points each
        # both regions have a point that is no liberty
        ([". . . X .", ". . X X .", "X X X . ."], 0, 0),
        ([". X O O O", "X X O . O", "O O O O ."], 0, 0),
        (["X X X X X", "X . X . X", "X X X X X"], 13, 2),
    ],
)
def test_unconditional_life(diagram: list[str], alive: int, enclosed: int) -> None:
    stones, points = pass_alive(parse_diagram(diagram), 1)
    assert (int(stones.sum()), int(points.sum())) == (alive, enclosed)
    flipped, _ = pass_alive(-parse_diagram(diagram), -1)
    np.testing.assert_array_equal(stones, flipped)


def test_area_counts_points_that_touch_one_colour() -> None:
    area = area_of(parse_diagram([". X . O .", "X X . O O", ". . . . ."]))
    assert area.tolist() == [[1, 1, 0, -1, -1], [1, 1, 0, -1, -1], [0, 0, 0, 0, 0]]
