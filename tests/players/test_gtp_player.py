"""Other programs as players: good ones, and every way of failing."""

import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from needs import require_program
from nim_game import Nim, nim_search
from search_player import SearchPlayer

from azero.games.go.settings import GoConfig
from azero.games.position import Position
from azero.games.table import make
from azero.match.external import Pairing, gnu_go_command, parse_score, play_games
from azero.match.referee import play_game
from azero.players.clock import Clock
from azero.players.gtp_player import GtpPlayer, GtpProgram
from azero.players.player import Decision, MakePlayer, PlayerError
from azero.players.program import ExternalProgram, find_program
from azero.players.program_specs import GtpSpec, program_maker
from azero.search.leaf import uniform_leaf
from azero.search.settings import PuctConfig

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
    assert record.final.actions == (0, 0, 0, 0, 0, 1) and record.rewards == (-1.0, 1.0)
    assert (
        record.ending == "played out"
        and record.failed is None
        and record.names == ("script", "azero")
    )
    assert record.decisions[0].value is None and record.decisions[1].value == -1.0
    assert min(record.seconds) > 0


def test_garbage_around_the_answer_is_passed_over() -> None:
    assert _play("garbage").ending == "played out"


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        (
            "crash",
            "script: crashed at 'genmove black' (exit status 3); it said: starting / no "
            "license found / segmentation fault, more or less",
        ),
        (
            "silent",
            "script: no answer in time to 'genmove black'; it said: starting / no license found",
        ),
        ("illegal", "script: illegal move: 'D4' is not a legal move here (move 1 of the game)"),
    ],
)
def test_a_failure_is_named_and_loses(mode: str, ending: str) -> None:
    record = _play(mode, timeout=2.0 if mode == "silent" else 10.0)
    assert record.ending == ending
    assert record.failed == 0 and record.rewards == (-1.0, 1.0)


@pytest.mark.parametrize("question", ["", "read line; echo info depth 1; "])
def test_a_program_that_ends_with_its_reason_on_standard_output_is_quoted(question: str) -> None:
    program = ExternalProgram(["sh", "-c", f"{question}echo; echo no weights; exit 1"])
    with pytest.raises(PlayerError, match=r"'go' \(exit status 1\); it said: no weights$"):
        program.ask("go", lambda line: False, 10.0)
    answers = ExternalProgram(["sh", "-c", "read line; echo one; read line; exit 1"])
    answers.ask("go", lambda line: line == "one", 10.0)
    with pytest.raises(PlayerError, match=r"'go' \(exit status 1\)$"):
        answers.ask("go", lambda line: False, 10.0)


def test_refusing_our_move_loses_and_resigning_is_no_failure() -> None:
    refused = _play("refuses", program_first=False)
    assert (
        refused.ending == "script: refused 'play black take1': I do not believe it"
        and refused.failed == 1
        and refused.rewards == (1.0, -1.0)
    )
    resigned = _play("resign")
    assert (
        resigned.ending == "script resigns"
        and resigned.failed is None
        and resigned.rewards == (-1.0, 1.0)
    )


def make_player(
    name: str, command: Sequence[str], timeout: float, first_seed: int = 0
) -> MakePlayer:
    rules = GoConfig(size=(5,), komi=0.5)
    return program_maker(GtpSpec(tuple(command)), name, rules, timeout, first_seed)


def test_a_missing_program_is_named() -> None:
    with pytest.raises(ValueError, match="no program 'no-such-go' on PATH or in /usr/games"):
        find_program("no-such-go")


def test_a_file_that_may_not_be_executed_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text("")
    with pytest.raises(ValueError, match=r"engine may not be executed; chmod \+x"):
        find_program(str(tmp_path / "engine"))


def test_a_program_finds_others_where_it_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azero.players.program.GAME_FOLDERS", (str(tmp_path),))
    for name, text in (("wrapper", "exec engine"), ("engine", "read line; echo found")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    with closing(ExternalProgram(["wrapper"])) as started:
        assert started.ask("anything", lambda line: True, 10.0) == ["found"]


def test_a_long_answer_is_quoted_in_part() -> None:
    position = Position.start(make("go", size=5))
    with pytest.raises(ValueError, match=r"'AAA.* is not a legal move here") as raised:
        position.parse_action("A" * 50_000)
    assert len(str(raised.value)) < 400


def test_a_program_that_will_not_quit_is_killed_with_its_children() -> None:
    began = time.monotonic()
    with closing(GtpProgram(_command("stubborn"))) as program:
        assert program.ask("name") == ""
        process = program._program._process
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


def test_games_are_played_in_threads_and_every_game_has_its_seed() -> None:
    script = make_player("script", [*_command("good"), "{seed}"], 10.0, first_seed=4)
    assert script(3).command[-1] == "7"  # type: ignore[attr-defined]
    makers = [(lambda number: SearchPlayer(nim_search, 1), script)] * 2
    games = sorted(
        play_games(Nim(7), makers, [Pairing(number) for number in (1, 2, 3, 4)]),
        key=lambda game: game.number,
    )
    assert [game.number for game in games] == [1, 2, 3, 4] and [
        game.first_is_black for game in games
    ] == [True, False, True, False]
    assert all(
        game.reward == 1 and not game.failed and game.ending == "played out" and game.margin is None
        for game in games
    )
    assert (
        games[0].rewards == (1, -1)
        and games[1].rewards == (-1, 1)
        and games[1].decisions[1].value == -1.0
    )


def test_an_opening_is_told_to_both_and_counted() -> None:
    makers = [
        (make_player("script", _command("good"), 10.0), lambda number: SearchPlayer(nim_search, 1))
    ]
    (game,) = play_games(Nim(7), makers, [Pairing(1, 3, (0, 1))])
    # 7, take one, take two: four left, and the script takes one.
    assert game.actions[:3] == (0, 1, 0) and (
        game.opening,
        game.num_opening_moves,
        len(game.decisions),
    ) == (3, 2, len(game.actions) - 2)
    (refused,) = play_games(
        Nim(7),
        [(make_player("script", _command("refuses"), 10.0), makers[0][1])],
        [Pairing(1, 1, (0,))],
    )
    assert (
        refused.failed == "script"
        and refused.reward == -1
        and "I do not believe it" in refused.ending
        and refused.num_opening_moves == 1
    )


def test_a_failure_of_one_thread_ends_the_match() -> None:
    def broken(number: int) -> SearchPlayer:
        raise ValueError("cannot be made")

    makers = [
        (broken, broken),
        (
            make_player("script", _command("silent"), 60.0),
            lambda number: SearchPlayer(nim_search, 1),
        ),
    ]
    began = time.monotonic()
    with pytest.raises(ValueError, match="cannot be made"):
        list(play_games(Nim(7), makers, [Pairing(1), Pairing(2)]))
    assert time.monotonic() - began < 20, "the silent program was ended"


def test_a_match_that_is_stopped_waits_for_no_end_of_a_game() -> None:
    """Ctrl-C waited for the end of a game between two networks, which may take hours."""
    moves = []

    class Slow(SearchPlayer):
        def choose(self, position: Position, clock: Clock) -> Decision:
            moves.append(len(position.actions))
            time.sleep(0.1)
            return super().choose(position, clock)

    def make(number: int) -> Slow:
        return Slow(nim_search, 1)

    games = play_games(Nim(24), [(make, make)] * 2, [Pairing(number) for number in (1, 2, 3)])
    next(games)
    before = len(moves)
    games.close()
    assert len(moves) <= before + 2


def test_scores_are_read() -> None:
    assert (parse_score("B+3.5"), parse_score("w+12"), parse_score("0"), parse_score("? seki")) == (
        3.5,
        -12.0,
        0.0,
        None,
    )


def test_a_player_that_may_resign_does_so_only_when_all_is_lost() -> None:
    loser = SearchPlayer(nim_search, 1, name="loser", resign_threshold=-0.9)
    record = play_game(Nim(6), loser, SearchPlayer(nim_search, 1, resign_threshold=-0.9))
    assert (
        record.ending == "loser resigns"
        and record.final.actions == ()
        and record.rewards == (-1.0, 1.0)
    )


def test_drawn_moves_make_games_differ() -> None:
    player = SearchPlayer(nim_search, 1, temperature_moves=9)
    games = {play_game(Nim(9), player, player).final.actions for _ in range(8)}
    assert len(games) > 2


def test_gnu_go_answers() -> None:
    require_program("gnugo")
    command = [word.replace("{seed}", "1") for word in gnu_go_command(1)]
    with closing(GtpProgram(command)) as program:
        assert program.ask("name") == "GNU Go"
        for setting in ("boardsize 5", "komi 0.5", "clear_board"):
            program.ask(setting)
        assert program.ask("genmove black") == "C3"
        with pytest.raises(PlayerError, match="refused 'play white C3': illegal move"):
            program.ask("play white C3")


def test_gnu_go_beats_a_search_that_knows_nothing() -> None:
    require_program("gnugo")
    game = make("go", size=5, komi=0.5)
    search = PuctConfig(num_simulations=4, dirichlet_fraction=0.0).build(game, uniform_leaf(game))
    ours = SearchPlayer(search, ())
    makers = [(lambda number: ours, make_player("GNU Go", gnu_go_command(1), 60.0))]
    for played in play_games(game, makers, [Pairing(1), Pairing(2)]):
        assert not played.failed and played.ending in ("played out", "GNU Go resigns"), (
            played.ending
        )
        assert played.reward == -1 and not played.disagreement
