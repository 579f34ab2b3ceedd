"""The panels of one position: what stands on which board, and that the SVG is whole."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from azero.games.position import Position
from azero.games.table import make
from azero.players.thinking import Analysis, Limits, MoveInfo
from azero.report.search_panels import draw_panels, search_position

GAME = make("go", size=(3, 3), komi=0.5)
BEST, OTHER = 4, 0


class Known:
    """A thinker that finds two moves; after any move the opponent stands at -0.2, after the best
    one at -0.6."""

    name = "known"

    def __init__(self, *, counts_separately: bool, has_values: bool = True) -> None:
        self.has_values = has_values
        parts = [(0.5, 0.7), (0.1, -0.3)] if counts_separately else [(None, None)] * 2
        line = (BEST, 1, 3)
        self.moves = (
            MoveInfo(BEST, 30, 0.6, 0.25, 0.6, line, (30, 5, 2), *parts[0]),
            MoveInfo(OTHER, 10, -0.1, 0.75, -0.1, (OTHER,), (10,), *parts[1]),
        )

    def think(self, position, limits):
        policy = np.zeros(GAME.num_actions, np.float32)
        policy[[BEST, OTHER]] = 0.25, 0.75
        return Analysis(self.moves, 0.6, 40, 40, 0.0, policy)

    def evaluate(self, position):
        value = -0.6 if position.actions[-1] == BEST else -0.2
        return np.zeros(GAME.num_actions), value * self.has_values


def labels(svg: str) -> dict[str, list[str]]:
    """Return the numbers of each panel by its letter, the marked one first."""
    tree = ET.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    found = {}
    for panel in tree.findall(f"{space}g"):
        letter = panel.find(f"{space}text").text[0]
        groups = [group for group in panel.iter(f"{space}g") if "label" in group.get("class", "")]
        groups.sort(key=lambda group: "best" not in group.get("class"))
        found[letter] = [group.find(f"{space}text").text for group in groups]
    return found


def test_every_panel_has_its_numbers():
    start = Position.start(GAME)
    found = labels(
        draw_panels(search_position(Known(counts_separately=True), start, Limits()), "A & B")
    )
    assert found["a"] == ["80", *["60"] * 8], "nine points; the pass has no place on the board"
    assert found["b"] == ["75", "55"] and found["c"] == ["85", "35"]
    assert found["d"] == ["75", "25"] and found["e"] == ["75", "25"] and found["f"] == []


def test_a_search_without_rollouts_has_one_panel_of_values():
    start = Position.start(GAME)
    svg = draw_panels(search_position(Known(counts_separately=False), start, Limits()), "title")
    assert list(labels(svg)) == ["a", "b", "d", "e", "f"] and labels(svg)["b"] == ["80", "45"]
    assert svg.count('class="black"') + svg.count('class="black last"') == 2, "the variation"


def test_without_a_value_network_there_is_no_panel_of_its_values():
    player = Known(counts_separately=False, has_values=False)
    svg = draw_panels(search_position(player, Position.start(GAME), Limits()), "title")
    assert list(labels(svg)) == ["b", "d", "e", "f"]


def test_a_finished_game_is_not_searched():
    over = Position.start(GAME).play(9).play(9)
    with pytest.raises(ValueError, match="the game is over there"):
        search_position(Known(counts_separately=True), over, Limits())
