"""A run on the page: its state, curves and games, and what a run that is going on changes."""

import dataclasses
import json
import shutil
from types import SimpleNamespace

import httpx
import jax.numpy as jnp
import pytest
from web_server import GO5, running

from azero.checkpoint import Checkpointer
from azero.data.run_files import StoredGame, write_samples
from azero.engines.web import runs
from azero.engines.web import service as services
from azero.engines.web.guard import Refusal
from azero.engines.web.networks import ServedNetwork
from azero.engines.web.service import NewGame, Service
from azero.experiment import load

GAME = StoredGame(
    "go", (5, 5), (12, 7, 25, 25), (1.0, -1.0), "two passes", (0.1, -0.2, 0.3, 0.1), 2.5,
    ("iteration 3", "iteration 2"),
)  # fmt: skip


def append(workdir, **row) -> None:
    with (workdir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


@pytest.fixture
def workdir(tmp_path):
    (tmp_path / "run.json").write_text('{"experiment": "go5"}')
    (tmp_path / "config.json").write_text('{"run": {"iterations": 10}}')
    for iteration in (1, 2, 3):
        append(tmp_path, iteration=iteration, policy_loss=3.0 / iteration, games=8 * iteration)
    write_samples(tmp_path, 2, [GAME, GAME])
    write_samples(tmp_path, 3, [GAME])
    return tmp_path


def test_a_run_is_described_by_its_numbers_curves_and_newest_games(workdir) -> None:
    found = runs.describe_run(workdir)
    assert found["title"] == "go5" and found["status"] == "iteration 3 of 10"
    assert ("games", "24") in found["numbers"] and found["iteration"] == 3
    (chart,) = found["charts"]
    assert chart.startswith("<figure") and "Policy loss" in chart
    assert [(game["iteration"], game["number"]) for game in found["games"]] == [
        (3, 0),
        (2, 0),
        (2, 1),
    ]


def test_new_rows_are_seen_and_old_charts_are_drawn_once(workdir, monkeypatch) -> None:
    drawn = []
    draw = runs.draw_charts
    monkeypatch.setattr(runs, "draw_charts", lambda series: drawn.append(1) or draw(series))
    before = runs.describe_run(workdir)
    assert runs.describe_run(workdir)["charts"] == before["charts"] and len(drawn) == 1
    append(workdir, iteration=4, policy_loss=0.5)
    after = runs.describe_run(workdir)
    assert after["iteration"] == 4 and after["charts"] != before["charts"] and len(drawn) == 2


def test_the_charts_are_those_of_a_run_that_was_begun_again(workdir) -> None:
    charts = []
    for loss in (3.0, 2.0):
        (workdir / "metrics.jsonl").unlink()
        for iteration in (1, 2, 3):
            append(workdir, time=iteration - loss, iteration=iteration, policy_loss=loss)
        charts.append(runs.describe_run(workdir)["charts"])
    assert charts[0] != charts[1]


def test_a_game_of_the_run_is_opened_on_the_board(workdir, monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)  # nobody thinks here
    service = Service([GO5])
    game = service.open(NewGame("0"), runs.sample_record(workdir, 2, 1))
    assert [turn.label for turn in game.line] == ["C3", "C4", "pass", "pass"]
    assert game.players == ("iteration 3", "iteration 2") and game.adapter.facts()["komi"] == 2.5
    with pytest.raises(Refusal, match="no game 5 of iteration 2"):
        runs.sample_record(workdir, 2, 5)


def test_a_game_of_the_run_that_was_resigned_is_saved_with_its_result(workdir, monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)  # nobody thinks here
    resigned = dataclasses.replace(GAME, actions=(12, 7), ending="resignation", rewards=(-1.0, 1.0))
    write_samples(workdir, 3, [resigned])
    game = Service([GO5]).open(NewGame("0"), runs.sample_record(workdir, 3, 0))
    assert "RE[W+R]" in game.text(("", ""))
    shogi = dataclasses.replace(resigned, game="shogi", board=(9, 9))
    write_samples(workdir, 3, [shogi, dataclasses.replace(resigned, game="chess", board=(8, 8))])
    assert [runs.sample_record(workdir, 3, number).result for number in (0, 1)] == ["%TORYO", "0-1"]


def test_a_game_is_with_the_newest_network_of_a_run_or_the_named_one(workdir, monkeypatch) -> None:
    rows = [SimpleNamespace(iteration=number, problem="", digest=f"{number}") for number in (1, 2)]
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)  # nobody thinks here
    monkeypatch.setattr(services, "list_checkpoints", lambda workdir: rows)
    monkeypatch.setattr(services, "find_checkpoint", lambda workdir: (rows[-1].iteration, None))
    config = load("go5").config
    monkeypatch.setattr(
        services,
        "resolve",
        lambda spec: (dataclasses.replace(spec, iteration=spec.iteration or 2), config),
    )
    run = f"checkpoint:{workdir}"
    service = Service([run, f"{run}?iteration=1"])
    rows.append(SimpleNamespace(iteration=3, problem="", digest="3"))
    title = workdir.name

    def player(network: str, iteration: int | None = None) -> str:
        return service.new_game(NewGame(network, iteration)).describe()["player"]

    assert player("0") == player("1", 3) == f"{title}, iteration 3"
    assert player("1") == player("0", 1) == f"{title}, iteration 1"
    monkeypatch.setattr(services, "LOOK_SECONDS", 0.0)
    offered = service.describe()["networks"]
    assert [(offer["title"], offer["iteration"]) for offer in offered] == [
        (title, 3),
        (f"{title}, iteration 1", 1),
    ]
    del rows[0]
    with pytest.raises(Refusal, match="has no checkpoint 1"):
        player("1")


def test_a_newest_checkpoint_without_its_network_is_passed_over(workdir, monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)  # nobody thinks here
    checkpointer = Checkpointer(workdir, load("go5").config)
    for iteration in (1, 2, 3):
        best = {"params": {"filters": jnp.full(9, iteration)}}
        checkpointer.save(iteration, {"best": best}, {})
    checkpointer.close()
    shutil.rmtree(workdir / "checkpoints" / "steps" / "3" / "best")
    service = Service([f"checkpoint:{workdir}"])
    (offer,) = service.describe()["networks"]
    assert (offer["iterations"], offer["iteration"]) == ([1, 2], 2)
    assert service.new_game(NewGame("0")).describe()["player"] == f"{workdir.name}, iteration 2"


def test_a_player_that_is_no_run_has_none() -> None:
    with running([GO5]) as server:
        _ = server.service
        answer = httpx.get(f"{server.url}/api/runs/0")
        assert answer.status_code == 404
        assert answer.json() == {"error": "random go5 is not a run: it has no metrics"}
        assert httpx.get(f"{server.url}/api/runs/7").status_code == 404
