"""The demonstration: the rate of its run falls to the end, and the opening is shown as shares."""

import re

from rich.console import Console

import azero
from azero.commands.demo import _show_opening
from azero.experiments.go5_efficient import EXPERIMENT


def test_the_learning_rate_is_lowered_until_the_last_step() -> None:
    config = EXPERIMENT.config
    # Nothing is learned in the first iteration, which fills the window.
    steps = (config.run.iterations - 1) * config.learner.steps_per_iteration
    assert config.learner.learning_rate[-1][0] == steps
    assert config.run.iterations % config.evaluation.every == 0, "the last network plays a match"


def test_the_opening_is_shown_in_percent_of_the_visits() -> None:
    console = Console(record=True, width=100)
    _show_opening(azero.load("model:go5?visits=64"), console)
    lines = console.export_text().splitlines()
    value = re.search(r"in percent of 64 visits, and Black's value ([+-]\d\.\d\d):", lines[1])
    assert value is not None and float(value[1]) > 0
    board = [[int(share) for share in line.split()] for line in lines[2:7]]
    assert [len(row) for row in board] == [5] * 5
    assert 95 <= sum(map(sum, board)) <= 105 and board[2][2] == max(map(max, board))
    assert lines[7] == "it opens at C3"
