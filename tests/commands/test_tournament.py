"""Tournaments: one list of ratings, whatever interrupts them."""

import pytest
from rich.console import Console

from azero.commands import tournament
from azero.commands.tournament import play_tournament
from azero.match.directory import read_match_games
from azero.match.request import TournamentRequest

QUIET = Console(quiet=True)
PLAYERS = tuple(f"player {number}=random:tictactoe" for number in range(6))


def test_six_players_are_interrupted_and_rated_in_one_list(tmp_path, monkeypatch):
    request = TournamentRequest(PLAYERS, games=2, anchor="player 3", out=tmp_path)
    play, played = tournament.play_match, []

    def stopped(match, console):
        if len(played) == 4:
            raise KeyboardInterrupt
        played.append(match.out)
        return play(match, console)

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
    assert [r.elo for r in play_tournament(request, QUIET).ratings] == [r.elo for r in fit.ratings]


def test_what_is_no_tournament_is_named(tmp_path):
    for players, message in (
        (("a=random:tictactoe",), "at least two players, not 1"),
        (("random:tictactoe", "random:tictactoe"), "two players are called"),
    ):
        with pytest.raises(ValueError, match=message):
            play_tournament(TournamentRequest(players, out=tmp_path), QUIET)
    with pytest.raises(ValueError, match="--anchor x: the players are called player 0, player 1"):
        play_tournament(TournamentRequest(PLAYERS[:2], anchor="x", out=tmp_path), QUIET)
