"""The ladder: fixed opponents in rising order, those that are not there told apart."""

import dataclasses
import io
import shlex
import sys

import pytest
from rich.console import Console

from azero.commands import ladder
from azero.commands.ladder import Rung, play_ladder
from azero.match.directory import directory_name, read_match_games
from azero.match.request import LadderRequest
from azero.players.program_specs import ProgramSpec
from azero.players.specs import parse_player


def test_rungs_are_played_and_continued_and_a_missing_program_is_named(
    tmp_path, monkeypatch, capsys
) -> None:
    engine = f"gtp:{shlex.quote(sys.executable)} -m azero gtp --random-net 'go5?blocks=1&filters=4'"
    rungs = (
        Rung("Ours, 1 visit", f"{engine} --visits 1"),
        Rung("Nobody", "gtp:no-such-program x"),
        Rung("Mute", f"gtp:{shlex.quote(sys.executable)} -c input()"),
    )
    monkeypatch.setattr(ladder, "RUNGS", {"go": rungs})
    request = LadderRequest(
        "random-net:go5?visits=1&search=engine&blocks=1&filters=4",
        opponents=("Self=random-net:go5?visits=0&blocks=1&filters=4",),
        games=2,
        komi=2.5,
        out=tmp_path,
    )
    rows = play_ladder(request, Console(quiet=True))
    assert [row[0] for row in rows] == ["Ours, 1 visit", "Nobody", "Mute", "Self"]
    assert rows[1][1].startswith("not played: no program 'no-such-program' on PATH")
    assert rows[2][1].startswith("not played: Mute: crashed at 'boardsize 5'")
    for row in (rows[0], rows[3]):
        assert sum(map(int, row[1].split(", "))) == 2
    assert (tmp_path / "ours-1-visit" / "match.json").exists()
    assert play_ladder(request, Console(quiet=True)) == rows


def test_opponents_with_names_in_other_alphabets_have_directories_of_their_own(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(ladder, "RUNGS", {})
    names = ("星陣", "絶芸", "c" * 300)
    opponents = tuple(f"{name}=random:go5" for name in names)
    rows = play_ladder(
        LadderRequest("random:go5", opponents, games=2, komi=0.5, out=tmp_path),
        Console(quiet=True),
    )
    assert [row[0] for row in rows] == list(names)
    assert len(list(tmp_path.glob("*/match.json"))) == 3
    assert directory_name("!").strip("-"), "not the directory of all matches"


def test_other_settings_are_refused_before_any_game(tmp_path, monkeypatch) -> None:
    rungs = tuple(Rung(name, "random:tictactoe") for name in ("low", "high"))
    monkeypatch.setattr(ladder, "RUNGS", {"tictactoe": rungs})
    request = LadderRequest("random:tictactoe", only="high", games=2, out=tmp_path)
    play_ladder(request, Console(quiet=True))
    with pytest.raises(ValueError, match="there seed: 0; here seed: 1"):
        play_ladder(dataclasses.replace(request, only=None, seed=1), Console(quiet=True))
    assert [path.name for path in tmp_path.iterdir()] == ["high"]


def test_what_is_not_understood_is_said(tmp_path, monkeypatch) -> None:
    rungs = (Rung("First", "random-net:go5?visits=0"),)
    monkeypatch.setattr(ladder, "RUNGS", {"go": rungs})
    for opponents, problem in (
        (("Last=nobody",), "'nobody' is not a player"),
        (("Last=random-net:tictactoe",), "plays tictactoe on 3x3"),
        (("a b=random:go5", "a-b=random:go5"), "two opponents are called 'a b'"),
    ):
        request = LadderRequest("random-net:go5?visits=0", opponents, games=2, out=tmp_path)
        with pytest.raises(ValueError, match=problem):
            play_ladder(request, Console(quiet=True))
    with pytest.raises(ValueError, match="there are no public opponents of tictactoe; name your"):
        play_ladder(LadderRequest("random-net:tictactoe", out=tmp_path), Console(quiet=True))
    with pytest.raises(ValueError, match="komi is a setting of Go, not tictactoe"):
        own = ("Own=random-net:tictactoe?visits=0",)
        play_ladder(LadderRequest("random-net:tictactoe", own, komi=7, out=tmp_path))
    assert not list(tmp_path.iterdir()), "no game is played before all opponents are known"
    monkeypatch.undo()
    for text in ("x", " =random:go5"):
        with pytest.raises(ValueError, match=f"--opponents {text}: an opponent is NAME=PLAYER"):
            play_ladder(LadderRequest("random-net:go5", opponents=(text,)), Console(quiet=True))
    with pytest.raises(ValueError, match=r"--only fuego: .* there are GNU Go level 10, Pachi 500"):
        play_ladder(LadderRequest("random-net:go5", only="fuego"), Console(quiet=True))


def test_opponents_play_the_game_of_their_ladder() -> None:
    for game, rungs in ladder.RUNGS.items():
        for rung in rungs:
            spec = parse_player(rung.player)
            assert isinstance(spec, ProgramSpec)
            assert spec.game in (game, "chess" if game == "minichess" else game), rung


def test_other_games_have_opponents_and_random_openings(tmp_path, monkeypatch) -> None:
    networks = [f"random-net:minichess?visits={visits}&blocks=1&filters=4" for visits in (1, 0)]
    monkeypatch.setattr(
        ladder, "_missing", lambda player: None if player == networks[1] else "not here"
    )
    request = LadderRequest(networks[0], (f"Own={networks[1]}",), games=2, out=tmp_path)
    screen = io.StringIO()
    rows = play_ladder(request, Console(file=screen, width=200))
    title = " ".join(screen.getvalue().split())
    assert "first 4 moves random" in title and "sampled" not in title
    assert len(rows) == 3 and all(row[1] == "not played: not here" for row in rows[:-1])
    assert sum(map(int, rows[-1][1].split(", "))) == 2
    assert [played.num_opening_moves for played in read_match_games(tmp_path / "own")] == [4, 4]
