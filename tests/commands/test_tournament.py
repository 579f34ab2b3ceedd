"""Tournaments: one list of ratings, whatever interrupts them."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from untrained import save_last

from azero.commands import tournament
from azero.commands.tournament import play_tournament
from azero.match.directory import read_match, read_match_games
from azero.match.request import TournamentRequest
from azero.report.ratings import rate

QUIET = Console(quiet=True)
PLAYERS = tuple(f"player {number}=random:tictactoe" for number in range(6))


def test_six_players_are_interrupted_and_rated_in_one_list(tmp_path, monkeypatch):
    request = TournamentRequest(PLAYERS, games=2, anchor="player 3", out=tmp_path)
    play, played = tournament.play_match, []

    def stopped(match, *others):
        if len(played) == 4:
            raise KeyboardInterrupt
        played.append(match.out)
        return play(match, *others)

    monkeypatch.setattr(tournament, "play_match", stopped)
    with pytest.raises(KeyboardInterrupt):
        play_tournament(request, QUIET)
    before = {path: read_match_games(path) for path in played}
    monkeypatch.setattr(tournament, "play_match", play)
    fit = play_tournament(request, QUIET)
    assert {rating.name for rating in fit.ratings} == {f"player {number}" for number in range(6)}
    assert all(rating.games == 10 for rating in fit.ratings), "each meets the five others"
    assert next(rating.elo for rating in fit.ratings if rating.name == "player 3") == 0.0
    assert len(list(tmp_path.iterdir())) == 15
    assert {path: read_match_games(path) for path in played} == before, "nothing is played again"
    for players in (PLAYERS, PLAYERS[::-1]):
        again = play_tournament(dataclasses.replace(request, players=players), QUIET)
        assert [one.elo for one in again.ratings] == pytest.approx([r.elo for r in fit.ratings])
        assert len(list(tmp_path.iterdir())) == 15, "nothing is played again"


def test_all_matches_have_the_rules_of_the_first_network(tmp_path):
    """Also that of two programs, which by themselves would play 19x19."""
    script = Path(__file__).parents[1] / "players" / "scripted_go.py"
    programs = [f"{mode}=gtp:{sys.executable} {script} {mode}" for mode in ("pass", "corner")]
    players = (*programs, "network=random:go5")
    play_tournament(TournamentRequest(players, games=2, komi=3.5, out=tmp_path), QUIET)
    rules = {read_match(path)["command"]["rules"] for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 3 and len(rules) == 1, rules
    assert rules.pop().startswith("go on 5x5, area scoring, komi 3.5")
    path = next(path for path in tmp_path.iterdir() if read_match_games(path))
    facts = json.loads((path / "match.json").read_text())
    facts["command"]["rules"] = "go on 19x19"
    (path / "match.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=r"there rules: go on 19x19; here rules: go on 5x5"):
        play_tournament(TournamentRequest(players, games=2, komi=3.5, out=tmp_path), QUIET)


def test_other_settings_are_refused_before_any_game(tmp_path):
    """Also where the matches of a new player come first."""
    play_tournament(TournamentRequest(PLAYERS[:2], games=2, out=tmp_path), QUIET)
    request = TournamentRequest(PLAYERS[2::-1], games=2, seed=1, out=tmp_path)
    with pytest.raises(ValueError, match="there seed: 0; here seed: 1"):
        play_tournament(request, QUIET)
    assert len(list(tmp_path.iterdir())) == 1


def test_openings_and_longest_games_are_those_of_a_match(tmp_path):
    """As `azero match` has them."""
    script = Path(__file__).parents[1] / "players" / "scripted_go.py"
    players = tuple(f"{mode}=gtp:{sys.executable} {script} {mode}" for mode in ("pass", "corner"))
    (tmp_path / "openings.txt").write_text("B2 C3 C1\n")
    settings = {"size": 3, "openings": tmp_path / "openings.txt", "opening_moves": 2}
    request = TournamentRequest(players, games=2, max_moves=3, out=tmp_path / "out", **settings)
    play_tournament(request, QUIET)
    (path,) = (tmp_path / "out").iterdir()
    games = read_match_games(path)
    assert {(game.actions[:2], len(game.actions)) for game in games} == {((4, 2), 3)}
    assert read_match(path)["command"]["rules"].endswith("at most 3 moves")


def test_a_player_that_never_moves_is_left_out(tmp_path, capsys):
    """The others play all their matches; the ratings are theirs."""
    script = Path(__file__).parents[1] / "players" / "scripted_go.py"
    programs = {
        mode: f"{mode}=gtp:{sys.executable} {script} {mode}" for mode in ("crash", "pass", "corner")
    }
    players = (programs["pass"], programs["crash"], programs["corner"], "network=random:go5")
    request = TournamentRequest(players, games=2, komi=3.5, out=tmp_path)
    fit = play_tournament(request)
    assert {rating.name for rating in fit.ratings} == {"pass", "corner", "network"}
    assert all(rating.games == 4 for rating in fit.ratings)
    said = capsys.readouterr().out
    assert said.count("crash (gtp:") == 1 and "the tournament continues without it" in said
    again = rate([tmp_path], {"pass": 0.0}, console=QUIET)
    assert {rating.name for rating in again.ratings} == {"pass", "corner", "network"}
    assert "pass--crash: crash never played a move" in capsys.readouterr().err
    for left in (
        dataclasses.replace(request, anchor="crash"),
        dataclasses.replace(request, players=players[:2], out=tmp_path / "two"),
    ):
        with pytest.raises(ValueError, match="no ratings: no match: crash"):
            play_tournament(left, QUIET)


def test_what_is_no_tournament_is_named(tmp_path):
    wrong = TournamentRequest((*PLAYERS, "nobody"), out=tmp_path)
    with pytest.raises(ValueError, match="'nobody' is not a player"):
        play_tournament(wrong, QUIET)
    assert not list(tmp_path.iterdir()), "no game is played before all players are known"
    for players, message in (
        (("a=random:tictactoe",), "at least two players, not 1"),
        (("random:tictactoe", "random:tictactoe"), "two players are called"),
        (("go9?visits=2", "model:go9?visits=2"), "two players are called"),
    ):
        with pytest.raises(ValueError, match=message):
            play_tournament(TournamentRequest(players, out=tmp_path), QUIET)
    with pytest.raises(ValueError, match="--anchor x: the players are called player 0, player 1"):
        play_tournament(TournamentRequest(PLAYERS[:2], anchor="x", out=tmp_path), QUIET)


@pytest.mark.parametrize("iteration", ["", "&iteration=1"])
def test_a_checkpoint_that_comes_out_during_a_tournament_does_not_take_part(
    iteration, tmp_path, monkeypatch
):
    """Also where the run deletes the one that plays."""
    play, matches = tournament.play_match, []

    def play_and_save(match, *others):
        matches.append(match.out)
        result = play(match, *others)
        save_last(tmp_path / "run", len(matches) + 1)
        return result

    save_last(tmp_path / "run", 1)
    monkeypatch.setattr(tournament, "play_match", play_and_save)
    players = (f"new=checkpoint:{tmp_path / 'run'}?visits=0{iteration}", *PLAYERS[:2])
    request = TournamentRequest(players, games=2, out=tmp_path / "out")
    fit = play_tournament(request, QUIET)
    assert play_tournament(request, QUIET) == fit
    assert {rating.name for rating in fit.ratings} == {"new", "player 0", "player 1"}
    met = [side for path in matches for side in read_match(path)["players"]]
    assert [side["iteration"] for side in met if side["name"] == "new"] == [1] * 4


def test_long_names_and_names_in_other_alphabets_have_directories(tmp_path):
    names = ("α" * 300, "β" * 300, "c" * 300)
    players = tuple(f"{name}=random:tictactoe" for name in names)
    fit = play_tournament(TournamentRequest(players, games=2, out=tmp_path), QUIET)
    assert {rating.name for rating in fit.ratings} == set(names)
    assert len(list(tmp_path.iterdir())) == 3
