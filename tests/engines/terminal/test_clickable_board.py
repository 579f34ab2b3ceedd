"""A board to click on, without a browser: buttons are clicked from Python."""

from types import SimpleNamespace

import ipywidgets
import numpy as np
import pytest
from uniform_thinker import UniformThinker

from azero.engines.session import Session
from azero.engines.terminal.clickable_board import STONES, ClickableBoard, signs
from azero.games.go.text import format_diagram
from azero.games.table import make
from azero.players.thinking import Limits


def board(game: str = "go", human: int = 0) -> ClickableBoard:
    rules = make(game, **({"size": 5, "komi": 6.5} if game == "go" else {}))
    return ClickableBoard(ipywidgets, Session(rules, UniformThinker), Limits(visits=3), human=human)


def stones(board: ClickableBoard) -> str:
    letters = {stone: sign for sign, stone in STONES.items()}
    return "".join(letters[button.description] for button in board.points)


def test_a_click_is_a_move_and_is_answered(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in Jupyter
    table = board()
    assert stones(table) == "." * 25
    table.points[12].click()
    assert stones(table) == "O...........X............" and "I play A5" in table.messages
    table.points[12].click()
    assert stones(table).count("X") == 1 and "'C3' is not a legal move here" in table.messages
    assert "\x1b" not in table.messages, table.messages


def test_commands_are_buttons_or_text():
    table = board()
    table.points[12].click()
    grid, row, status = table.widget.children
    buttons = {child.description: child for child in row.children[:-1]}
    assert list(buttons) == ["pass", "undo", "hint", "score", "resign"] and len(grid.children) == 25
    buttons["undo"].click()
    assert stones(table) == "." * 25
    row.children[-1].value = "d4"
    assert stones(table)[8] == "X" and row.children[-1].value == ""
    buttons["hint"].click()
    assert "your chances" in table.messages and "your chances" in status.value
    buttons["resign"].click()
    assert "You resign: White wins" in table.messages
    table.points[0].click()
    assert "the game is over" in table.messages


def test_the_network_may_begin():
    table = board("tictactoe", human=1)
    assert stones(table) == "X........" and "I play" in table.messages
    table.points[4].click()
    assert stones(table) == "XX..O...."


def test_a_board_with_many_columns_has_letters_that_look_like_stones():
    stones = np.zeros((25, 25), np.int8)
    stones[0, :2] = 1, -1
    game = SimpleNamespace(board_shape=(25, 25), format_board=format_diagram)
    assert signs(SimpleNamespace(game=game, state=stones)) == ["X", "O", *"." * 623]


def test_games_of_pieces_cannot_be_clicked():
    session = SimpleNamespace(game=SimpleNamespace(name="minichess"))
    with pytest.raises(ValueError, match="minichess cannot be played by clicking"):
        ClickableBoard(ipywidgets, session, Limits(visits=3))
