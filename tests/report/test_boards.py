"""Boards: captures against sgfmill, drawings, names of moves."""

import random
import re

import numpy as np
import pytest
from needs import require_module

from azero.data.run_files import StoredGame
from azero.engines.terminal import terminal
from azero.games.go.rules import Go
from azero.games.position import Position
from azero.report.boards import (
    CELL,
    LARGEST_SQUARE,
    draw_board,
    draw_ownership,
    move_names,
    positions,
)


def _go(rows: int, columns: int, *actions: int) -> StoredGame:
    return StoredGame("go", (rows, columns), actions, (1.0, -1.0))


def test_a_corner_capture_and_a_pass() -> None:
    # White in the corner is taken by the second black stone; then a pass, and nothing changes.
    boards = positions(_go(3, 3, 1, 0, 3, 9))
    assert boards == ["." * 9, ".X.......", "OX.......", ".X.X.....", ".X.X....."]


def test_a_suicide_takes_its_own_chain() -> None:
    # White holds both neighbours of the corner that Black fills.
    assert positions(_go(3, 3, 8, 1, 7, 3, 0))[-1] == ".O.O...XX"


@pytest.mark.parametrize("size", [2, 3, 5, 9])
def test_random_games_equal_sgfmill(size: int) -> None:
    boards = require_module("sgfmill.boards")
    generator = random.Random(size)
    referee = boards.Board(size)
    actions: list[int] = []
    expected = []
    for ply in range(6 * size * size):
        empty = [p for p in range(size * size) if referee.get(p // size, p % size) is None]
        if not empty:
            actions.append(size * size)
        else:
            actions.append(generator.choice(empty))
            referee.play(actions[-1] // size, actions[-1] % size, "bw"[ply % 2])
        expected.append(
            "".join(
                {"b": "X", "w": "O", None: "."}[referee.get(p // size, p % size)]
                for p in range(size * size)
            )
        )
    assert positions(_go(size, size, *actions))[1:] == expected


def test_tictactoe_captures_nothing() -> None:
    game = StoredGame("tictactoe", (3, 3), (0, 1, 4, 3, 8), (1.0, -1.0))
    assert positions(game)[-1] == "XO.OX...X"
    assert draw_board(game).count("<circle") == 5


def test_squares_of_owners_grow_with_their_certainty() -> None:
    board = np.array([[1, 0], [0, -1]], np.int8)
    picture = draw_ownership(board, np.array([[1.0, 0.25], [0.0, -1.0]], np.float32))
    side = CELL * LARGEST_SQUARE
    squares = re.findall(r'class="owner (\w+)"[^>]* width="([\d.]+)"', picture)
    assert squares == [
        ("black", f"{side:.1f}"),
        ("black", f"{side / 2:.1f}"),
        ("white", "0.0"),
        ("white", f"{side:.1f}"),
    ]
    assert picture.count("<circle") == 2, "the stones"


def test_moves_are_named_as_on_a_go_board() -> None:
    assert move_names(_go(9, 9, 0, 8, 72, 40, 81)) == ["A9", "J9", "A1", "E5", "pass"]
    assert move_names(StoredGame("go", (2, 30), (29,), (0.0, 0.0))) == ["AE2"]


def test_a_drawing_numbers_what_is_left_and_marks_the_last_stone() -> None:
    svg = draw_board(_go(9, 9, 1, 0, 9, 81, 81))
    assert re.findall(r'dy=".35em">(\d+)</text></g>', svg) == ["1", "3"]
    assert svg.count('class="black last"') == 1 and "white" not in svg
    assert svg.count('class="star"') == 5
    assert (
        draw_board(_go(19, 19)).count('class="star"') == 9
        and draw_board(_go(5, 5)).count('class="star"') == 0
    )


@pytest.mark.parametrize("shape", [(9, 9), (13, 13), (19, 19), (10, 10), (7, 7), (5, 5), (9, 13)])
def test_star_points_are_those_of_the_terminal(shape: tuple[int, int]) -> None:
    in_terminal = str(terminal.draw_board(Position.start(Go(shape)))).count("+")
    assert draw_board(_go(*shape)).count('class="star"') == in_terminal
