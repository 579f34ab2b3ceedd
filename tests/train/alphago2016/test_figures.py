"""The figures of AlphaGo of 2016: positions of records played again, rollouts of policies, errors by
the stage of the game."""

import dataclasses
import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from record_files import EXPERT, import_to
from rich.console import Console

from azero.data.records.dataset import Dataset
from azero.evaluate.accuracy import Outcomes
from azero.games.go.settings import GoConfig
from azero.games.table import make
from azero.players.alphago2016 import make_go
from azero.report.paper import format_mean
from azero.report.plots import Chart, Series
from azero.report.stages import save_stage_charts, write_stages_report
from azero.search.search import SearchOutput
from azero.selfplay.policy_games import make_result_sampler
from azero.train.alphago2016 import figures
from azero.train.alphago2016 import run as alphago
from azero.train.alphago2016.config import ByMoveConfig
from azero.train.alphago2016.run import load_stages
from azero.train.alphago2016.stages import Outcome, StageContext

GAME = GoConfig(size=(9,), komi=7.0, suicide=True, planes=4).build()


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> Dataset:
    return import_to(tmp_path_factory.mktemp("records") / "data", EXPERT)[0]


def test_positions_are_reached_again(records):
    rows = records.rows("test")
    position = np.arange(0, len(rows), 7)
    states, is_whole = figures.replay_positions(GAME, rows, position)
    assert is_whole.all() and (np.asarray(states.num_moves) == rows["ply"][position]).all()
    assert (np.asarray(states.frames)[:, 0] == rows["frame"][position]).all()
    # A game that begins with stones on the board cannot be played again from the empty one.
    rows = rows.copy()
    rows["frame"][: int((rows["ply"] == 0).nonzero()[0][1]), 0] ^= 1 << 20
    _, is_whole = figures.replay_positions(GAME, rows, position)
    assert 0 < is_whole.sum() < len(position)


def test_a_rollout_plays_the_policy_to_the_end():
    """The first free cell, or the last one: tic-tac-toe games whose results are known."""
    game = make("tictactoe")
    sample = make_result_sampler(game, _cells_in(game, jnp.arange(9)))
    start = jax.tree.map(lambda leaf: jnp.stack([leaf] * 2), game.init())
    # 0 2 4 6 are the first mover's and win by 2-4-6; with 1 played first the second mover has it.
    assert sample(None, jax.random.key(0), start).tolist() == [1.0, 1.0]
    after = jax.vmap(game.step)(start, jnp.array([1, 3], jnp.int32))
    expected = [_play(game, [1], range(9)), _play(game, [3], range(9))]
    assert sample(None, jax.random.key(1), after).tolist() == expected


def _cells_in(game, order):
    """Return the search that takes the legal cell that comes first in `order`."""

    def search(params, key, states):
        legal = jax.vmap(game.legal_action_mask)(states)
        weights = jax.nn.one_hot(jnp.argmin(jnp.where(legal, order, 99), axis=1), 9)
        zeros = jnp.zeros(len(weights))
        return SearchOutput(weights.argmax(1), weights, weights.astype(int), zeros, zeros, None)

    return search


def _play(game, moves, order) -> float:
    state = game.init()
    for move in moves:
        state = game.step(state, jnp.int32(move))
    while not bool(game.is_terminal(state)):
        legal = np.asarray(game.legal_action_mask(state))
        state = game.step(state, jnp.int32(next(cell for cell in order if legal[cell])))
    return float(game.rewards(state)[0])


@pytest.fixture
def measured(records, monkeypatch, tmp_path) -> Outcome:
    """The outcome where one policy's rollouts are all won by Black, and the network says 0."""
    settings = dataclasses.replace(
        load_stages("alphago9").config,
        by_move=ByMoveConfig(positions=120, rollouts=2, moves_per_band=20),
    )
    context = StageContext("alphago9", settings, tmp_path, records.directory, Console(quiet=True))
    monkeypatch.setattr(
        figures,
        "_samplers",
        lambda context, game: [("black", lambda states: jnp.ones(len(states.to_play)))],
    )

    def predict(network, rows, position, console):
        none = np.zeros(len(position))
        return Outcomes(none, none, np.square(rows["value"][position]) / 4, none, none)

    monkeypatch.setattr(figures, "predict_positions", predict)
    assert make_go(figures.stage_config(settings, "policy").game).komi == 7.0
    return figures.measure_value_by_move(context)


def test_errors_are_of_the_side_to_move_and_by_the_stage_of_the_game(measured, records):
    rows, position = figures.held_out(records, 120)
    black = np.where(rows["to_play"] == 0, rows["value"], -rows["value"])[position]
    expected = (np.square(black - 1) / 4).mean()
    lines = {line.what: line.ours for line in measured.rows}
    assert lines["black"].startswith(f"{expected:.3f} (")
    early = rows["ply"][position] < 20
    assert lines["black, moves 0 to 19"].startswith(f"{np.square(black[early] - 1).mean() / 4:.3f}")
    assert lines["value network"].startswith("0.2"), "a draw or a quarter"
    assert any("counted with komi 7;" in note for note in measured.notes)
    chart = measured.charts[0]
    assert [line.label for line in chart.series] == ["black", "value network"]
    assert list(chart.series[0].x) == sorted(chart.series[0].x) and chart.x_label == "moves played"


def test_an_error_and_its_interval_are_not_below_0():
    """Their noise is subtracted."""
    for errors, words in (
        ([-0.0004, 0.0001], "0.000 (0.000 to 0.000)"),
        ([0.0, 0.2], "0.100 (0.000 to 0.296)"),
        ([0.25, 0.25], "0.250 (0.250 to 0.250)"),
        ([0.25], "0.250"),
    ):
        assert (
            format_mean(figures._mean_error(np.array(errors), np.arange(len(errors))), 1, 3)
            == words
        )


def test_strength_is_that_of_the_policies_of_these_settings(tmp_path):
    """Not of networks that were trained for other settings and are still there."""
    settings = dataclasses.replace(load_stages("alphago9").config, filters=(16, 64))
    context = StageContext("alphago9", settings, tmp_path, None, Console(file=io.StringIO()))
    for stage in (
        "planes/4",
        "planes/48",
        "filters/16",
        "filters/64",
        "filters/256",
        "filters/old",
    ):
        context.directory(stage).mkdir(parents=True)
    wanted = ["planes/4", "planes/48", "filters/16", "filters/64"]
    assert figures._compared_stages(context) == wanted


def test_charts_are_on_the_page_and_in_an_image(tmp_path):
    chart = Chart("Error by moves", [Series("a", [1.0, 2.0], [0.2, 0.1])], "moves played")

    def store(outcome: Outcome) -> None:
        entry = {**alphago._entry("value-by-move", outcome), "settings": {}, "seconds": 1.0}
        alphago._store(tmp_path, "value-by-move", entry)

    store(Outcome(charts=[chart]))
    page = write_stages_report(tmp_path).read_text()
    assert "Error by moves" in page and "moves played" in page and "var(--series-0)" in page
    save_stage_charts(tmp_path, tmp_path / "image.svg")
    assert "moves played" in (tmp_path / "image.svg").read_text()
    store(Outcome())
    with pytest.raises(ValueError, match="has no charts; the stages value-by-move and strength"):
        save_stage_charts(tmp_path, io.BytesIO())
