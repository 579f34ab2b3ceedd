"""Vertices and diagrams of Go."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from azero.games.go import text
from azero.games.go.rules import Go


def test_vertices_skip_i_and_count_rows_from_the_bottom() -> None:
    assert text.format_vertex(0, (19, 19)) == "A19"
    assert text.format_vertex(8, (19, 19)) == "J19"
    assert text.format_vertex(360, (19, 19)) == "T1"
    assert text.format_vertex(361, (19, 19)) == "pass"
    assert text.format_vertex(9, (2, 5)) == "E1"
    assert text.column_name(24) == "Z"
    assert text.column_name(25) == "AA"


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (19, 19), (25, 25), (3, 31)])
def test_parsing_undoes_formatting(shape: tuple[int, int]) -> None:
    for action in range(shape[0] * shape[1] + 1):
        assert text.parse_vertex(text.format_vertex(action, shape).lower(), shape) == action


@pytest.mark.parametrize("vertex", ["I5", "A0", "A20", "U1", "", "5", "AA1", "D-4", "resign"])
def test_bad_vertices_are_quoted(vertex: str) -> None:
    with pytest.raises(ValueError, match="A1 to T19 without the letter I, or pass") as error:
        text.parse_vertex(vertex, (19, 19))
    assert repr(vertex) in str(error.value)


def test_a_diagram_shows_the_board_and_the_last_move() -> None:
    game = Go(size=(2, 3))
    state = game.step(game.step(game.init(), jnp.int32(0)), jnp.int32(4))
    assert game.format_board(state) == "   A B C\n 2 X . . 2\n 1 . O . 1\n   A B C"
    assert text.format_diagram(game.board(state), mark=4).splitlines()[2] == " 1 .(O). 1"


def test_points_in_words() -> None:
    assert [text.format_points(points) for points in (0.5, 1.0, 24.5)] == [
        "0.5 points",
        "1 point",
        "24.5 points",
    ]
