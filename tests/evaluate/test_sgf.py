"""SGF text, read back by sgfmill."""

import pytest

from azero.evaluate.sgf import format_result, format_sgf

sgf = pytest.importorskip("sgfmill.sgf", reason="sgfmill reads SGF back (pip install azero[records])")


def test_a_game_is_read_back() -> None:
    text = format_sgf([0, 18, 80, 81], (9, 9), 7.5, ("iteration [4]", "GNU\\Go"), "W+R", [None, "value 0.1", "a ] b"])
    game = sgf.Sgf_game.from_string(text)
    assert game.get_size() == 9 and game.get_komi() == 7.5 and game.get_winner() == "w"
    assert game.get_player_name("b") == "iteration [4]" and game.get_player_name("w") == "GNU\\Go"
    nodes = game.get_main_sequence()[1:]
    # sgfmill counts rows from the bottom.
    assert [node.get_move() for node in nodes] == [("b", (8, 0)), ("w", (6, 0)), ("b", (0, 8)), ("w", None)]
    assert nodes[1].get("C") == "value 0.1" and nodes[2].get("C") == "a ] b" and not nodes[0].has_property("C")


def test_results_and_rectangles() -> None:
    assert (format_result((1.0, -1.0), "R"), format_result((-1.0, 1.0), "2.5"), format_result((0.0, 0.0))) == ("B+R", "W+2.5", "0")
    text = format_sgf([5, 10], (2, 5), 0.5, ("a", "b"), "0")
    assert "SZ[5:2]" in text and ";B[ab];W[])" in text
    with pytest.raises(ValueError, match="60x60"):
        format_sgf([], (60, 60), 0.0, ("a", "b"), "0")
