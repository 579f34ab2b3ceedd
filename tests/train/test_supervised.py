"""Learning from records at tiny size: it learns, is continued bit for bit, is kept as one small
file, and is measured."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import re
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest
from record_files import EXPERT, FILTERS, STOCKFISH, import_to
from rich.console import Console

from azero.checkpoint import (
    CheckpointError,
    export_network,
    list_checkpoints,
    load_settings,
    load_variables,
    store,
)
from azero.commands.accuracy import evaluate_accuracy
from azero.config import load_overlay
from azero.data.records import human
from azero.data.records.dataset import Dataset
from azero.data.records.filters import Filters, Fractions
from azero.data.records.human import import_games
from azero.data.records.recorded import ImportTally
from azero.data.records.requests import AccuracyRequest
from azero.experiment import load
from azero.networks.settings import Rollout2016Config
from azero.settings import Config
from azero.train.driver import run_experiment
from azero.train.main import main
from azero.train.resolving import resolve_settings
from azero.train.saving import print_checkpoints
from azero.train.settings import RunConfig
from azero.train.supervised_run import make_supervised_stage

pytestmark = pytest.mark.usefixtures("shared_programs", "two_devices")

CONFIGS = Path(__file__).parents[2] / "configs"


def tiny(iterations: int) -> Config:
    config = load("sl9").config
    return dataclasses.replace(
        config,
        network=dataclasses.replace(
            config.network,
            blocks=2,
            filters=8,
            value_hidden=8,
            convolution="xla",
            train_dtype="float32",
            inference_dtype="float32",
        ),
        learner=dataclasses.replace(
            config.learner,
            batch_size=32,
            steps_per_iteration=10,
            optimiser="adamw",
            learning_rate=((0, 3e-3),),
        ),
        evaluation=dataclasses.replace(config.evaluation, every=2, validation_positions=64),
        checkpoint=dataclasses.replace(config.checkpoint, every=1),
        run=RunConfig(iterations=iterations),
    )


def learn(
    config: Config,
    workdir: Path,
    data: Path,
    console: Console | None = None,
    experiment: str = "sl9",
    from_network: Path | None = None,
) -> int:
    make_stage = functools.partial(make_supervised_stage, data, from_network=from_network)
    return run_experiment(
        load(experiment), config, workdir, make_stage, console or Console(quiet=True)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return import_to(tmp_path_factory.mktemp("data") / "set", EXPERT)[0].directory


@pytest.fixture(scope="module")
def workdir(data, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("run")
    assert learn(tiny(4), directory, data) == 0
    return directory


@pytest.mark.parametrize(
    ("part", "least"),
    [
        ("policy", 0.0),
        pytest.param("value", 0.0, marks=pytest.mark.slow),
        ("rollout", 0.1),
        pytest.param("tree", 0.1, marks=pytest.mark.slow),
    ],
)
def test_the_networks_of_2016_learn_in_a_few_iterations(part, least, data, tmp_path):
    settings = load_overlay(CONFIGS / f"alphago2016_{part}.toml", tiny(8 if part == "value" else 2))
    # What the file says of the learner is for long runs.
    settings = dataclasses.replace(
        settings,
        learner=dataclasses.replace(
            settings.learner, learning_rate=((0, 3e-2 if least else 3e-3),)
        ),
    )
    assert learn(settings, tmp_path, data) == 0
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    first, *others, last = map(json.loads, lines)
    _, kept = load_variables(tmp_path / "checkpoint")
    assert kept.network.name == f"{part}2016" and kept.game.planes == settings.game.planes
    if part == "value":
        losses = [row["value_loss"] for row in (first, *others, last)]  # of 320 positions each
        assert np.mean(losses[4:]) < np.mean(losses[:2])
        assert last["policy_loss"] == pytest.approx(np.log(82))
    else:
        assert last["policy_loss"] < first["policy_loss"] - least


def test_a_network_of_patterns_turns_symmetries_off_and_refuses_them(data, tmp_path):
    """Even where the settings ask for them."""
    network = Rollout2016Config(pattern_bits=8)
    asked = dataclasses.replace(
        tiny(1), game=dataclasses.replace(tiny(1).game, planes=6), network=network
    )
    assert asked.replay.symmetries and asked.search.random_symmetry
    kept = resolve_settings(asked, tmp_path)
    assert not (
        kept.replay.symmetries or kept.search.random_symmetry or kept.evaluation.average_symmetries
    )
    assert resolve_settings(tiny(1), tmp_path).replay.symmetries


def digests(directory: Path) -> dict[int, str]:
    return {row.iteration: row.digest for row in list_checkpoints(directory)}


def test_it_learns_and_keeps_a_record(workdir):
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    assert (
        [row["iteration"] for row in rows] == [1, 2, 3, 4]
        and rows[-1]["steps"] == 40
        and rows[-1]["positions"] == 1280
    )
    assert rows[-1]["policy_loss"] < rows[0]["policy_loss"] - 0.05
    assert (
        "top1" not in rows[0]
        and 0 <= rows[1]["top1"] <= rows[1]["top5"] <= 1
        and 0 < rows[3]["held_out_value_error"] < 1
    )
    assert (workdir / "report.html").stat().st_size > 10_000


def test_a_continued_run_ends_like_an_unbroken_one(workdir, data, tmp_path):
    learn(tiny(2), tmp_path, data)
    learn(tiny(4), tmp_path, data)
    assert digests(tmp_path)[4] == digests(workdir)[4]


def test_other_data_and_missing_games_are_said(data, workdir, tmp_path, monkeypatch):
    run, others = tmp_path / "run", tmp_path / "others"
    shutil.copytree(workdir, run)

    def said(data: Path) -> str:
        console = Console(file=io.StringIO(), width=400)
        learn(tiny(4), run, data, console)
        return console.file.getvalue()

    assert "other data" not in said(data) and "not finished" not in said(data)
    games = Dataset.open(data)
    count = sum(shard.games for shard in games.shards("train"))
    (tmp_path / "turned.sgf").write_text("\n".join(EXPERT.read_text().splitlines()[::-1]))
    import_to(tmp_path / "turned", tmp_path / "turned.sgf", fractions=games.fractions)
    assert f"has {count} games to learn from, the run had {count} others" in said(
        tmp_path / "turned"
    )
    monkeypatch.setattr(human, "_POOL", 10)
    stopped = import_games(
        [EXPERT], Dataset.create(others, FILTERS, Fractions(0.1, 0.1)), ImportTally()
    )
    for _ in range(2):
        next(stopped)
    stopped.close()
    output = said(others)
    assert f"other data: {others} has" in output
    assert f"{others} is not finished: games are missing" in output
    import_to(others, EXPERT, fractions=Fractions(0.1, 0.1))
    assert "not finished" not in said(others)


def test_a_run_starts_from_the_network_of_another(workdir, data, tmp_path):
    config = tiny(1)
    still = dataclasses.replace(config.learner, learning_rate=((0, 0.0),), l2=0.0)
    config = dataclasses.replace(config, learner=still)
    assert learn(config, tmp_path, data, from_network=workdir) == 0
    (expected, _), (found, _) = load_variables(workdir), load_variables(tmp_path)
    jax.tree.map(np.testing.assert_array_equal, expected["params"], found["params"])
    # The run has begun: it goes on with its own network.
    assert learn(tiny(2), tmp_path, data, from_network=workdir) == 0
    found, _ = load_variables(tmp_path)
    moved = jax.tree.map(lambda one, other: np.any(one != other), expected, found)
    assert any(jax.tree.leaves(moved["params"]))


def test_positions_are_counted_where_the_batch_size_changes(data, tmp_path):
    first, then = tiny(1), tiny(2)
    then = dataclasses.replace(then, learner=dataclasses.replace(then.learner, batch_size=16))
    for config in (first, then):
        learn(config, tmp_path, data)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [row["positions"] for row in rows] == [10 * 32, 10 * 32 + 10 * 16]


def test_the_network_alone_is_one_file(workdir, tmp_path, capsys):
    exported = workdir / "checkpoint"
    assert [path.name for path in exported.iterdir()] == ["network.azero"]
    (whole, config), (alone, same) = load_variables(workdir), load_variables(exported)
    assert config == same and load_settings(exported)[0] == 4
    print_checkpoints(exported)
    assert "network.azero is the exported network of iteration 4" in capsys.readouterr().out
    jax.tree.map(np.testing.assert_array_equal, whole, alone)
    export_network(workdir, tmp_path / "third", 3)
    assert load_settings(tmp_path / "third")[0] == 3
    with pytest.raises(CheckpointError, match="of iteration 3, not of 4"):
        load_variables(tmp_path / "third", 4)
    damaged = tmp_path / "third" / "network.azero"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(CheckpointError, match="damaged"):
        load_variables(tmp_path / "third")


def test_a_run_whose_checkpoints_are_gone_does_not_start_over(data, tmp_path):
    assert learn(tiny(1), tmp_path / "run", data) == 0
    rows = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    (tmp_path / "run" / "checkpoints").rename(tmp_path / "elsewhere")
    (tmp_path / "run" / "checkpoints").mkdir()  # where a drive is mounted
    for _ in range(2):
        with pytest.raises(
            CheckpointError, match=r"holds the metrics of a run, but .*ckpoints has"
        ):
            learn(tiny(1), tmp_path / "run", data)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == rows
    (tmp_path / "elsewhere").rename(tmp_path / "run" / "checkpoints")
    assert learn(tiny(1), tmp_path / "run", data) == 0


def test_accuracy_of_a_run_and_of_its_export_are_the_same(workdir, capsys):
    request = AccuracyRequest((str(workdir), f"{workdir}/checkpoint"), EXPERT, number=5, json=True)
    first, second = evaluate_accuracy(request).values()
    assert first == second and first[0].games == 5
    printed = json.loads(capsys.readouterr().out)
    assert printed["games_read"] == 24 and len(printed["networks"]) == 2
    assert printed["networks"][0]["top1"][0] == pytest.approx(first[0].top1.value)
    assert sum(row["positions"] for row in printed["networks"][0]["by_move"]) == first[0].positions


def test_accuracy_over_a_run_is_a_picture(workdir, tmp_path):
    kept = [row.iteration for row in list_checkpoints(workdir)]
    picture = tmp_path / "accuracy.svg"
    request = AccuracyRequest(
        (str(workdir),), EXPERT, every_checkpoint=True, plot=picture, number=1, json=True
    )
    found = evaluate_accuracy(request)
    assert list(found) == [f"{workdir}, iteration {iteration}" for iteration in kept]
    assert len(kept) > 1 and "Moves predicted" in picture.read_text()
    for changes, message in (
        ({"iteration": (kept[0],)}, "--iteration or --every-checkpoint"),
        ({"every_checkpoint": False}, "--plot needs"),
        ({"checkpoint": (str(workdir), str(workdir))}, "give one run"),
    ):
        with pytest.raises(ValueError, match=message):
            evaluate_accuracy(dataclasses.replace(request, **changes))


def test_accuracy_over_a_run_leaves_damaged_checkpoints_out(workdir, tmp_path, capsys):
    steps = tmp_path / "checkpoints" / "steps"
    shutil.copytree(workdir / "checkpoints", steps.parent)
    first, *others = store.list_iterations(steps.parent)
    shutil.rmtree(steps / f"{first}" / "train")
    request = AccuracyRequest(
        (str(tmp_path),), EXPERT, every_checkpoint=True, plot=tmp_path / "a.svg", number=1
    )
    found = evaluate_accuracy(request)
    assert others and list(found) == [f"{tmp_path}, iteration {number}" for number in others]
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(f"checkpoint {first} of .* is damaged: .* is missing; it is left out", said)
    for number in others:
        shutil.rmtree(steps / f"{number}" / "train")
    with pytest.raises(ValueError, match="has no checkpoint that is whole"):
        evaluate_accuracy(request)


def test_accuracy_as_tables(workdir, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    evaluate_accuracy(AccuracyRequest((str(workdir),), EXPERT, number=2, paper=True))
    printed = capsys.readouterr().out
    assert "top-1 % (95%)" in printed and "1-10" in printed and "60.4" in printed


def test_chess_learns_from_its_records(data, workdir, tmp_path, capsys):
    chess = load("sl_chess").config
    small = tiny(3)
    config = dataclasses.replace(
        chess,
        network=chess.network.replace(blocks=1, filters=8, value_hidden=8, convolution="xla"),
        learner=dataclasses.replace(
            chess.learner, batch_size=32, steps_per_iteration=10, warmup_steps=5
        ),
        evaluation=small.evaluation,
        checkpoint=small.checkpoint,
        run=small.run,
    )
    everything = Fractions(validation=0.0, test=0.0)
    games, tally = import_to(
        tmp_path / "set", STOCKFISH, filters=Filters("chess"), fractions=everything
    )
    assert tally.games["train"] == 8
    with pytest.raises(ValueError, match=r"games of chess on \(8, 8\), not of go on \(9, 9\)"):
        learn(tiny(1), tmp_path / "go", games.directory)
    with pytest.raises(ValueError, match=r"games of go on \(9, 9\), not of chess"):
        learn(config, tmp_path / "other", data, experiment="sl_chess")
    assert learn(config, tmp_path / "run", games.directory, experiment="sl_chess") == 0
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert rows[-1]["policy_loss"] < rows[0]["policy_loss"] - 0.2
    evaluate_accuracy(AccuracyRequest((str(tmp_path / "run"),), STOCKFISH, json=True))
    found = json.loads(capsys.readouterr().out)
    assert found["positions"] == tally.positions["train"] and found["top1"][0] > 0
    with pytest.raises(ValueError, match="different games or board sizes"):
        evaluate_accuracy(AccuracyRequest((str(tmp_path / "run"), str(workdir)), STOCKFISH))


def test_errors_are_lines(workdir, data, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(load("sl9"), ["--workdir", str(tmp_path / "a")])
    assert "--data DIR is a data set" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(load("sl9"), ["--workdir", str(tmp_path / "a"), "--data", str(tmp_path)])
    assert "is not a data set" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(load("tictactoe"), ["--workdir", str(tmp_path / "a"), "--data", str(data)])
    assert "learns from its own games" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(
            load("sl9"),
            [
                *("--workdir", str(tmp_path / "a"), "--data", str(data)),
                *("--learner.root-value-share", "0.5"),
            ],
        )
    assert "records hold no searches" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(load("sl9"), ["--workdir", str(tmp_path / "runs" / "sl9"), "--data", "nowhere"])
    assert "nowhere is not a data set" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())  # no part of the directory that was made is left
    evaluation = dataclasses.replace(tiny(1).evaluation, records=str(EXPERT))
    with pytest.raises(ValueError, match=r"evaluation.records is for self-play"):
        learn(dataclasses.replace(tiny(1), evaluation=evaluation), tmp_path / "a", data)
    (tmp_path / "small.sgf").write_text("(;SZ[5]RE[B+1];B[aa])")
    with pytest.raises(ValueError, match=r"1 with board of 5x5, not 9x9"):
        evaluate_accuracy(AccuracyRequest((str(workdir),), tmp_path / "small.sgf", json=True))
    with pytest.raises(ValueError, match=r"24 with board of 9x9, not 7x7"):
        evaluate_accuracy(AccuracyRequest(("go7",), EXPERT, json=True))


def test_progress_is_shown_on_a_plain_console(data, tmp_path):
    console = Console(file=io.StringIO(), width=200)
    learn(tiny(2), tmp_path, data, console)
    output = console.file.getvalue()
    assert (
        "positions to learn from" in output
        and "held-out games: top-1" in output
        and "finished: 2 iterations, 20 steps" in output
    )
