"""`azero tune`: what is kept, what a killed tuning does, and a real one."""

import dataclasses
import itertools
import json
import re

import numpy as np
import pytest
from needs import require_module
from rich.console import Console
from untrained import save_last

from azero.match.directory import read_match
from azero.match.elo import expected_score
from azero.match.games import MatchGame, MatchSummary
from azero.match.matches import AbsentPlayerError, play_match
from azero.match.request import MatchRequest
from azero.match.score import MatchResult, Tally, paired_score
from azero.match.sides import Side
from azero.match.tuning.request import TuneRequest
from azero.match.tuning.tuner import tune
from azero.players.program_specs import parse_program
from azero.report.posterior import save_posterior

require_module("sklearn")

QUIET = Console(quiet=True)
GAMES = 60


def scripted(killed_at: tuple[int, ...] = ()):
    """Return what plays matches whose score depends on the settings alone, and is stopped at the
    calls with these numbers."""
    calls = itertools.count(1)

    def play(request: MatchRequest, console: Console, known: dict) -> MatchSummary:
        call = next(calls)
        assert request.out is not None
        request.out.mkdir(parents=True, exist_ok=True)
        games = request.out / "games.jsonl"
        assert not games.exists() or games.read_text() == request.first, "another match"
        games.write_text(request.first)
        if call in killed_at:
            raise KeyboardInterrupt
        value = float(request.first.partition("pb-c-init=")[2])
        elo = 150.0 - 200.0 * (np.log(value) - np.log(2.0)) ** 2
        won = np.random.default_rng(request.seed).binomial(request.games, expected_score(elo))
        result = MatchResult(Tally(int(won), 0, request.games - int(won)), Tally())
        rewards = [1.0] * int(won) + [-1.0] * (request.games - int(won))
        score = paired_score(rewards, [()] * request.games)
        return MatchSummary(result, score, {}, 0, 0, result)

    return play


def request_in(out, **changes) -> TuneRequest:
    request = TuneRequest(
        "go9?visits=8&search=engine",
        ("pb-c-init=0.2..8:log",),
        trials=11,
        first_trials=4,
        games=GAMES,
        confirm_games=40,
        out=out,
    )
    return dataclasses.replace(request, **changes)


def test_no_two_trials_give_a_program_the_same_seed(tmp_path):
    seeds: list[int] = []

    def play(request: MatchRequest, console: Console, known: dict) -> MatchSummary:
        seeds.extend(request.seed + number for number in range(1, request.games + 1))
        return scripted()(request, console, known)

    tune(request_in(tmp_path), save_posterior, QUIET, play)
    assert len(set(seeds)) == len(seeds) == 11 * GAMES + 40


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_tuning_killed_five_times_ends_as_an_undisturbed_one(tmp_path, at_once):
    whole = tune(request_in(tmp_path / "whole", at_once=at_once), save_posterior, QUIET, scripted())
    killed = request_in(tmp_path / "killed", at_once=at_once)
    stops = 0
    for call in (2, 1, 4, 1, 3):
        with pytest.raises(KeyboardInterrupt, match="the same command continues"):
            tune(killed, save_posterior, QUIET, scripted((call,)))
        stops += 1
    assert stops == 5 and tune(killed, save_posterior, QUIET, scripted()) == whole
    rows = [
        sorted(map(json.loads, (out / "trials.jsonl").read_text().splitlines()), key=str)
        for out in (tmp_path / "whole", tmp_path / "killed")
    ]
    assert rows[0] == rows[1] and len(rows[0]) == 11
    assert 1.2 < whole.values[0] < 3.5, "the optimum is at 2"
    assert (tmp_path / "killed" / "posterior.png").stat().st_size > 5000
    result = json.loads((tmp_path / "killed" / "tuning.json").read_text())["result"]
    assert result["player"].startswith("go9?visits=8&search=engine&pb-c-init=")
    assert sum(result["confirmation"].values()) == 40


def test_a_program_that_never_moves_stops_a_tuning_that_keeps_its_trials(tmp_path):
    calls = itertools.count(1)

    def play(request: MatchRequest, console: Console, known: dict) -> MatchSummary:
        if next(calls) == 3:
            gone = Side("gtp:gone", parse_program("gtp:gone"), None, "the opponent")
            raise AbsentPlayerError(gone, "it ended")
        return scripted()(request, console, known)

    words = "the opponent .gtp:gone. never played a move: it ended; .* has 2 finished trials, and"
    with pytest.raises(ValueError, match=words):
        tune(request_in(tmp_path), save_posterior, QUIET, play)
    whole = tune(request_in(tmp_path / "whole"), save_posterior, QUIET, scripted())
    assert tune(request_in(tmp_path), save_posterior, QUIET, play) == whole


def test_a_tuning_may_become_longer_but_no_other_one(tmp_path):
    first = tune(request_in(tmp_path, trials=5), save_posterior, QUIET, scripted())
    longer = tune(request_in(tmp_path, trials=6), save_posterior, QUIET, scripted())
    assert len((tmp_path / "trials.jsonl").read_text().splitlines()) == 6
    assert longer.player != first.player and longer.confirmation.games == 40
    without = request_in(tmp_path, trials=7, confirm_games=0)
    assert tune(without, save_posterior, QUIET, scripted()).confirmation is None
    with pytest.raises(ValueError, match=r"another tuning .*games: there 60, here 30"):
        tune(request_in(tmp_path, games=30), save_posterior, QUIET, scripted())


def test_a_tuning_goes_on_where_its_directory_moved_with_the_player(tmp_path):
    def request(here, player, trials):
        (here / player).mkdir(parents=True, exist_ok=True)
        player = f"checkpoint:{here / player}?visits=8&search=engine"
        return request_in(here / "tuning", player=player, trials=trials, confirm_games=0)

    old, new = tmp_path / "old", tmp_path / "new"
    with pytest.MonkeyPatch.context() as patch:
        for check in ("read_sides", "match_rules"):  # there is no network
            patch.setattr(f"azero.match.tuning.tuner.{check}", lambda request, known: None)
        tune(request(old, "a", 5), save_posterior, QUIET, scripted())
        old.rename(new)
        tune(request(new, "a", 6), save_posterior, QUIET, scripted())
        assert len((new / "tuning" / "trials.jsonl").read_text().splitlines()) == 6
        with pytest.raises(ValueError, match="another tuning"):
            tune(request(new, "b", 6), save_posterior, QUIET, scripted())


def test_a_damaged_file_of_a_tuning_is_named(tmp_path):
    tune(request_in(tmp_path, trials=5, confirm_games=0), save_posterior, QUIET, scripted())
    path = tmp_path / "tuning.json"
    for damaged in (b"", b"[]", b'{"command"', b"\xff"):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))} is damaged"):
            tune(request_in(tmp_path, trials=6), save_posterior, QUIET, scripted())


@pytest.mark.parametrize(
    ("there", "instead", "problem"),
    [
        ('"number": 1', '"numbers": 1', "row 2: number is of type int, not None"),
        ('"number": 1', '"number": 0', "row 2 does not hold another trial of 60 games"),
        ('"wins": ', '"wins": 1', "row 2 does not hold another trial of 60 games"),
        ('"draws": 0', '"draws": null', "row 2: draws is of type int, not None"),
        ('"values": [', '"values": [1, ', r"row 2: values is of type [float], not [1, "),
        ('"values": [', '"values": [-', "row 2: the values [-"),
        ('"values": [', '"values": [NaN], "v": [', "row 2: the values [nan]"),
        ('"failures": {}', '"failures": 3', "row 2: failures is of type dict, not 3"),
    ],
)
def test_a_damaged_trial_is_named(tmp_path, there, instead, problem):
    request = request_in(tmp_path, trials=2, first_trials=2, confirm_games=0)
    tune(request, save_posterior, QUIET, scripted())
    path = tmp_path / "trials.jsonl"
    first, second = path.read_text().splitlines()
    assert there in second
    path.write_text(f"{first}\n{second.replace(there, instead)}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, {problem}")):
        tune(request, save_posterior, QUIET, scripted())


def test_a_tuning_without_a_finished_trial_may_become_another_one(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        tune(request_in(tmp_path, trials=5), save_posterior, QUIET, scripted((1,)))
    other = request_in(tmp_path, trials=5, seed=1, at_once=2)
    tune(other, save_posterior, QUIET, scripted())
    assert json.loads((tmp_path / "tuning.json").read_text())["command"]["seed"] == 1


def test_what_cannot_be_tuned_is_named(tmp_path):
    for changes, message in (
        ({"parameter": ("pb-c-init=1..2", "pb-c-init=1..4")}, "each has a name of its own"),
        ({"parameter": ("pb-c-init",)}, "NAME=LOW..HIGH"),
        ({"parameter": ()}, "nothing to tune"),
        ({"trials": 0}, "trials is at least 1"),
        ({"confirm_games": 3}, "confirm-games is even"),
        ({"player": "uci:stockfish?nodes=5", "parameter": ("skill=0..20",)}, "is a program"),
    ):
        with pytest.raises(ValueError, match=message):
            tune(request_in(tmp_path, **changes), save_posterior, QUIET, scripted())
    wrong = request_in(tmp_path, player="random-net:tictactoe?visits=2&search=alphazero")
    with pytest.raises(ValueError, match="c-visit is not a setting of the search alphazero"):
        tune(dataclasses.replace(wrong, parameter=("c-visit=1..9",)), save_posterior, QUIET)
    for changes in ({"parameter": ("pb-c-int=1..2",)}, {"games": 3}, {"against": "nobody"}):
        with pytest.raises(ValueError, match=r"not understood|even number|not a player"):
            tune(request_in(tmp_path / "new", **changes), save_posterior, QUIET, scripted())
    assert not (tmp_path / "new").exists(), "the command without its mistake starts there"


def test_all_trials_have_the_checkpoints_of_the_first(tmp_path):
    script, seen = scripted(), []

    def play(request: MatchRequest, console: Console, known: dict) -> MatchSummary:
        names = request.first, request.second
        seen.append([known.get(name, {}).get("iteration") for name in names])
        result = script(request, console, known)
        assert request.out is not None
        sides = [
            {"name": name, "player": name, "iteration": place} for place, name in enumerate(names)
        ]
        facts = {"command": {}, "players": sides}
        (request.out / "match.json").write_text(json.dumps(facts))
        return result

    tune(request_in(tmp_path, trials=3, first_trials=2), save_posterior, QUIET, play)
    assert seen == [[None, None], [0, 1], [0, 1], [0, 1]]


def test_a_run_may_delete_the_checkpoint_of_the_first_trial(tmp_path):
    iterations = itertools.count(1)

    def play(*arguments) -> MatchSummary:
        result = play_match(*arguments)
        save_last(tmp_path / "run", next(iterations))
        return result

    save_last(tmp_path / "run", next(iterations))
    request = request_in(
        tmp_path / "tuning",
        player=f"checkpoint:{tmp_path / 'run'}?visits=2&search=alphazero",
        trials=2,
        first_trials=2,
        games=2,
        confirm_games=2,
    )
    tune(request, save_posterior, QUIET, play)
    matches = [read_match(path.parent) for path in request.out.glob("*/match.json")]
    assert [[side["iteration"] for side in match["players"]] for match in matches] == [[1, 1]] * 3


def test_games_lost_by_failures_are_said(tmp_path):
    script = scripted()

    def play(request: MatchRequest, console: Console, known: dict) -> MatchSummary:
        result = script(request, console, known)
        assert request.out is not None
        failed = (request.second_name, "", request.second_name, request.first_name)
        games = [
            MatchGame(number, None, number % 2 == 1, 1.0, (), 0, "", name)
            for number, name in enumerate(failed, start=1)
        ]
        (request.out / "games.jsonl").write_text(
            "".join(json.dumps(game.row()) + "\n" for game in games)
        )
        return result

    said = "2 games lost by a failure of the opponent", "1 game lost by a failure of the player"
    console = Console(record=True, width=1000)
    request = request_in(tmp_path, trials=2, first_trials=2, confirm_games=0)
    found = tune(request, save_posterior, console, play)
    assert found.failures == {"the opponent": 4, "the player": 2}
    text = console.export_text()
    assert len(re.findall(f"trial .*{said[0]}; {said[1]}", text)) == 2
    assert "in the trials, 4 games lost by a failure of the opponent" in text
    assert (
        json.loads((tmp_path / "tuning.json").read_text())["result"]["failures"] == found.failures
    )


def test_a_real_tuning_of_tic_tac_toe(tmp_path):
    request = request_in(
        tmp_path,
        player="random-net:tictactoe?visits=2&search=alphazero",
        parameter=("pb-c-init=0.5..4", "pb-c-base=100..20000:log"),
        trials=2,
        first_trials=2,
        games=4,
        random_plies=2,
        confirm_games=0,
    )
    found = tune(request, save_posterior, QUIET)
    assert (tmp_path / "trial-001" / "match.json").exists()
    assert tune(request, save_posterior, QUIET) == found
