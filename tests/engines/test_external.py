"""Other programs as players: good ones, and every way of failing."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest
from nim_game import Nim, nim_search

from azero.config import SearchConfig
from azero.engines.external import GtpPlayer, GtpProgram, find_program
from azero.engines.external_match import external_result, gnu_go_command, play_external
from azero.games import make
from azero.play.player import Clock, PlayerError, SearchPlayer
from azero.play.referee import play_game
from azero.play.score import MatchResult, Tally
from azero.search import make_search, uniform_leaf

SCRIPT = str(Path(__file__).parent / "scripted_gtp.py")


def _command(mode: str) -> list[str]:
    return [sys.executable, SCRIPT, mode]


def _play(mode: str, *, program_first: bool = True, timeout: float = 10.0, perfect: int = 1):  # type: ignore[no-untyped-def]
    ours = SearchPlayer(nim_search, perfect)
    program = GtpPlayer("script", _command(mode), size=5, komi=0.5, timeout=timeout)
    try:
        players = (program, ours) if program_first else (ours, program)
        return play_game(Nim(7), *players, Clock(timeout))
    finally:
        program.close()


def test_a_game_is_played_to_its_end() -> None:
    record = _play("good")
    # Piles 7 6 5 4 3 2 0: the program should have taken two at five.
    assert record.final.actions == (0, 0, 0, 0, 0, 1) and record.winner == 1
    assert record.ending == "played out" and record.failed is None and record.names == ("script", "azero")
    assert record.values[0] is None and record.values[1] == -1.0
    assert min(record.seconds) > 0


def test_garbage_around_the_answer_is_passed_over() -> None:
    assert _play("garbage").ending == "played out"


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("crash", "script: crashed at 'genmove black' (exit status 3); it said: segmentation fault, more or less"),
        ("silent", "script: no answer in time to 'genmove black'; it said: no license found"),
        ("illegal", "script: illegal move: 'D4' is not a legal move here (move 1 of the game)"),
    ],
)
def test_a_failure_is_named_and_loses(mode: str, ending: str) -> None:
    record = _play(mode, timeout=2.0 if mode == "silent" else 10.0)
    assert record.ending == ending
    assert record.failed == 0 and record.rewards == (-1.0, 1.0) and record.winner == 1


def test_refusing_our_move_loses_and_resigning_is_no_failure() -> None:
    refused = _play("refuses", program_first=False)
    assert refused.ending == "script: refused 'play black take1': I do not believe it" and refused.failed == 1 and refused.winner == 0
    resigned = _play("resign")
    assert resigned.ending == "script resigns" and resigned.failed is None and resigned.rewards == (-1.0, 1.0)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ValueError, match="no program 'no-such-go' on PATH or in /usr/games"):
        find_program("no-such-go")


def test_a_program_that_will_not_quit_is_killed_with_its_children() -> None:
    began = time.monotonic()
    with GtpProgram(_command("stubborn")) as program:
        assert program.ask("name") == ""
        process = program._process
    assert process.returncode == -9 and time.monotonic() - began < 8
    program = GtpProgram(_command("child"))
    with pytest.raises(PlayerError, match="no answer in time") as caught:
        program.ask("genmove black", timeout=1.0)
    child = int(str(caught.value).rsplit(" ", 1)[1])
    for _ in range(100):
        if not _is_alive(child):
            break
        time.sleep(0.02)
    assert not _is_alive(child)


def _is_alive(pid: int) -> bool:
    """Whether a process runs; a dead one that nobody has waited for yet does not."""
    status = Path(f"/proc/{pid}/stat")
    if not status.parent.parent.joinpath("self").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_match_counts_by_colour_and_gives_every_game_its_seed() -> None:
    seen: list[int] = []
    games = play_external(
        SearchPlayer(nim_search, 1),
        [*_command("good"), "{seed}"],
        2,
        Nim(7),
        size=5,
        komi=0.5,
        program_name="script",
        on_game=lambda game: seen.append(game.index),
    )
    assert seen == [1, 2, 3, 4]
    assert external_result(games) == MatchResult(first=Tally(wins=2), second=Tally(wins=2))
    row = games[2].row()
    assert row["first"] == "script" and row["winner"] == "azero" and row["reward"] == 1.0 and row["failed"] is None and row["moves"] == len(row["actions"])


def test_a_player_that_may_resign_does_so_only_when_all_is_lost() -> None:
    loser = SearchPlayer(nim_search, 1, name="loser", resign_threshold=-0.9)
    record = play_game(Nim(6), loser, SearchPlayer(nim_search, 1, resign_threshold=-0.9))
    assert record.ending == "loser resigns" and record.final.actions == () and record.winner == 1


def test_drawn_moves_make_games_differ() -> None:
    player = SearchPlayer(nim_search, 1, temperature_moves=9)
    games = {play_game(Nim(9), player, player).final.actions for _ in range(8)}
    assert len(games) > 2


needs_gnu_go = pytest.mark.skipif(shutil.which("gnugo", path="/usr/bin:/usr/games:/usr/local/games") is None, reason="GNU Go is not installed (Debian: gnugo)")


@needs_gnu_go
def test_gnu_go_answers() -> None:
    command = [word.replace("{seed}", "1") for word in gnu_go_command(1)]
    with GtpProgram(command) as program:
        assert program.ask("name") == "GNU Go"
        for setting in ("boardsize 5", "komi 0.5", "clear_board"):
            program.ask(setting)
        assert program.ask("genmove black") == "C3"
        with pytest.raises(PlayerError, match="refused 'play white C3': illegal move"):
            program.ask("play white C3")


@needs_gnu_go
def test_gnu_go_beats_a_search_that_knows_nothing() -> None:
    game = make("go", size=5, komi=0.5)
    search = make_search(SearchConfig(num_simulations=4, dirichlet_fraction=0.0), game, uniform_leaf(game))
    games = play_external(SearchPlayer(search, ()), gnu_go_command(1), 1, game, size=5, komi=0.5, program_name="GNU Go")
    for played in games:
        assert played.record.failed is None and played.record.ending in ("played out", "GNU Go resigns"), played.record.ending
        assert played.row()["winner"] == "GNU Go"
        text = played.sgf(0.5)
        assert text.count(";B[") + text.count(";W[") == played.row()["moves"] and "SZ[5]KM[0.5]" in text
    assert "PB[azero]PW[GNU Go]RE[W+]" in games[0].sgf(0.5) and "PB[GNU Go]PW[azero]RE[B+]" in games[1].sgf(0.5)
