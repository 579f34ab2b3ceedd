"""Accuracy on hand-made answers, its intervals, and the table beside the published figures."""

from __future__ import annotations

import dataclasses
import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from record_files import EXPERT
from rich.console import Console

from azero.data.records.recorded import ImportTally, pack_file, pack_records
from azero.evaluate.accuracy import (
    NO_MOVE,
    HeldOut,
    Outcomes,
    clustered_mean,
    clustered_share,
    predict_positions,
    summarise,
    summarise_by_move,
)
from azero.games.go.rules import Go
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import read_games
from azero.games.go.sgf_write import format_game
from azero.match.score import wilson_interval
from azero.mesh import make_mesh
from azero.models.registry import find_network
from azero.networks.network import NEVER
from azero.report.paper import format_mean, prediction_table

GAME = Go(size=9, suicide=True)


def outcomes(rank: list[int], error: list[float], move: list[int], game: list[int]) -> Outcomes:
    return Outcomes(
        np.array(rank),
        np.log(1 / (1 + np.array(rank))),
        np.array(error),
        np.array(move),
        np.array(game),
    )


def test_a_hand_made_case():
    result = outcomes(
        [0, 4, 5, 0, 1, 0],
        [0.0, 1.0, 0.25, 0.25, 0.0, 0.0],
        [1, 2, 11, 1, 2, 300],
        [0, 0, 0, 1, 1, 1],
    )
    whole = summarise(result)
    assert (whole.positions, whole.games, whole.moves) == (6, 2, "all")
    assert (
        whole.top1.value == pytest.approx(3 / 6)
        and whole.top5.value == pytest.approx(5 / 6)
        and whole.value_error.value == pytest.approx(0.25)
    )
    bands = {band.moves: band for band in summarise_by_move(result)}
    assert list(bands) == ["all", "1-10", "11-30", "251-"] and bands["all"] == whole
    assert (
        bands["1-10"].top1.value == 0.5
        and bands["11-30"].top5.value == 0
        and bands["251-"].top1.value == 1
    )
    assert (
        bands["251-"].row()["top1"] == [1.0, -np.inf, np.inf]
        and format_mean(bands["251-"].top1, 100, 1, "%") == "100.0%"
    )
    assert re.fullmatch(r"50\.0% \(\d+\.\d to \d+\.\d\)", format_mean(whole.top1, 100, 1, "%"))


def test_intervals_count_games_not_positions():
    random = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        share = random.beta(2, 3, 50)  # each game has a share of its own, the mean over all is 0.4
        hits = random.random((50, 20)) < share[:, None]
        mean = clustered_mean(hits.reshape(-1), np.repeat(np.arange(50), 20))
        covered += mean.low <= 0.4 <= mean.high
    assert 0.90 <= covered / 300 <= 0.98
    naive = 1.96 * np.sqrt(0.24 / 1000)
    assert (mean.high - mean.low) / 2 > 1.5 * naive


def test_the_interval_of_a_share_stays_between_none_and_all():
    games = np.repeat(np.arange(20), 10)
    hits = np.arange(200) == 7
    assert clustered_mean(hits, games).low < 0
    for share in (clustered_share(hits, games), clustered_share(~hits, games)):
        assert 0 < share.low < share.value < share.high < 1
    assert format_mean(clustered_share(hits, games), 100, 1, "%") == "0.5% (0.1 to 2.8)"
    none = clustered_share(hits & False, games)
    assert (none.value, none.low) == (0, 0)
    assert none.high == pytest.approx(0.161, abs=1e-3), "as of 0 in 20 games (Wilson 1927)"
    for seed in range(50):  # the same as independent positions where each is a game of its own
        hits = np.random.default_rng(seed).random(300) < 0.3
        share = clustered_share(hits, np.arange(300))
        low, high = wilson_interval(share.value, 300)
        assert (share.low, share.high) == pytest.approx((low, high), abs=1e-3)


def test_two_games_that_agree_by_chance_know_no_more_than_their_positions():
    games, hits = np.repeat([0, 1], [20, 21]), np.tile([True, False], 21)[:41]
    share = clustered_share(hits, games)  # 10 of 20 and 11 of 21
    assert (share.low, share.high) == pytest.approx(wilson_interval(21 / 41, 41))


def fixed_network(favourites: list[int], value: float) -> Any:
    """A network that ranks some actions first, in order, whatever the position, and always gives
    one value."""
    logits = np.zeros(82, np.float32)
    logits[favourites] = np.arange(len(favourites), 0, -1)

    def infer(params: Any, planes: Any) -> tuple[Any, Any]:
        return jnp.broadcast_to(jnp.asarray(logits), (len(planes), 82)), jnp.full(
            (len(planes),), value, jnp.float32
        )

    return SimpleNamespace(infer=infer)


def held_out(
    rows: Any, network: Any, symmetries: bool = False, num_positions: int | None = None
) -> HeldOut:
    """The first positions of packed rows of whole games, or all, to be predicted by a network."""
    position = np.arange(len(rows))[:num_positions]
    return HeldOut(GAME, network, make_mesh(jax.devices()[:1]), rows, position, symmetries)


def test_scores_are_those_of_the_records():
    records = list(read_games(EXPERT))[:6]
    rows = pack_records(records, GAME, ImportTally())
    favourites = [40, 30, 50, 32, 48, 81]
    seen: list[int] = []
    result = held_out(rows, fixed_network(favourites, 0.5)).predict({}, seen.append)
    moves = [
        (colour, action, record.rewards[colour])
        for record in records
        for colour, action in record.moves
    ]
    top1 = np.mean([action == 40 for _, action, _ in moves])
    top5 = np.mean([action in favourites[:5] for _, action, _ in moves])
    error = np.mean([(reward - 0.5) ** 2 / 4 for _, _, reward in moves])
    whole = summarise(result)
    assert seen[-1] == whole.positions == len(moves) and whole.games == 6
    assert (whole.top1.value, whole.top5.value, whole.value_error.value) == pytest.approx(
        (top1, top5, error), abs=1e-6
    )
    assert result.move[: len(records[0].moves)].tolist() == list(
        range(1, len(records[0].moves) + 1)
    )


def test_a_network_without_an_opinion_ranks_by_action():
    rows = pack_records(list(read_games(EXPERT))[:1], GAME, ImportTally())
    result = held_out(rows, fixed_network([], 0.0), num_positions=16).predict({})
    assert result.rank.tolist() == rows["action"][:16].tolist()


def test_a_resignation_is_no_move_to_predict():
    """Data sets of self-play end resigned games with a position without a move."""
    rows = pack_records(list(read_games(EXPERT))[:2], GAME, ImportTally())
    rows["action"][[3, -1]] = -1
    result = held_out(rows, fixed_network([0], 0.5)).predict({})
    assert np.flatnonzero(result.rank == NO_MOVE).tolist() == [3, len(rows) - 1]
    whole, actions = summarise(result), rows["action"][rows["action"] >= 0]
    assert whole.positions == len(rows) == len(actions) + 2
    assert whole.top1.value == pytest.approx(np.mean(actions == 0))
    unknown = summarise(Outcomes(*(column[[3]] for column in result)))
    assert np.isnan(unknown.top1.value) and np.isfinite(unknown.value_error.value)


def test_a_network_without_a_pass_is_not_asked_to_predict_one():
    """Nor does it learn any; the cross-entropy with one would be that of a logit of -1e9."""
    rows = pack_records(list(read_games(EXPERT))[:2], GAME, ImportTally())
    passes = np.flatnonzero(rows["action"] == 81).tolist()
    favourites = fixed_network([0], 0.5).infer

    def infer(params: Any, planes: Any) -> tuple[Any, Any]:
        logits, value = favourites(params, planes)
        return logits.at[:, 81].set(NEVER), value

    for symmetries in (False, True):
        result = held_out(rows, SimpleNamespace(infer=infer), symmetries).predict({})
        assert np.flatnonzero(result.rank == NO_MOVE).tolist() == passes != []
        assert summarise(result).policy_loss.value < 10


def test_a_network_that_sees_the_komi_is_given_that_of_every_game(tmp_path: Path):
    komis = (5.5, -3.0, None)
    records = [
        dataclasses.replace(record, komi=komi)
        for record, komi in zip(read_games(EXPERT), komis, strict=False)
    ]
    file = tmp_path / "games.sgf"
    file.write_text("".join(map(format_game, records)))
    rows = pack_file(file, GoConfig(size=(9,), komi=7.0), ImportTally())
    game = Go(size=9, suicide=True, num_planes=19)
    found = [game.komi_of(frame) for frame in rows["frame"]]
    lengths = [len(record.moves) for record in records]
    assert found == np.repeat([5.5, -3.0, 7.0], lengths).tolist()
    path = find_network("go9")
    outcomes = predict_positions(path, rows, np.arange(8), Console(file=io.StringIO()))
    assert outcomes.rank.shape == (8,) and np.isfinite(outcomes.log_probability).all()


def test_the_mean_over_symmetries_turns_the_moves_back():
    rows = pack_records(list(read_games(EXPERT))[:1], GAME, ImportTally())
    result = held_out(rows, fixed_network([0], 0.0), True, num_positions=16).predict({})
    # Turned back, the favourite corner is each of the four corners twice; the record's first moves
    # are elsewhere, behind the four of them and the points with lower numbers.
    corners, actions = {0, 8, 72, 80}, rows["action"][:16].tolist()
    assert not corners & set(actions)
    assert result.rank.tolist() == [
        action + sum(corner > action for corner in corners) for action in actions
    ]


def test_the_table_has_the_published_figures_and_ours():
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(
        prediction_table({"run": summarise(outcomes([0, 1], [0.2, 0.2], [1, 1], [0, 1]))})
    )
    output = console.export_text()
    assert (
        "60.4" in output
        and "0.185" in output
        and "ours: run" in output
        and "50.0 (" in output
        and "0.200 (" in output
    )
