"""Programs of chess and shogi as players: good ones, and every way of failing."""

import sys
from pathlib import Path

import pytest
from needs import require_program

from azero.games.position import Position, position_of
from azero.games.table import make
from azero.match.referee import play_game
from azero.players.clock import Clock
from azero.players.player import PlayerError
from azero.players.program import ExternalProgram
from azero.players.uci_player import GnuShogiPlayer, UciPlayer

SCRIPT = str(Path(__file__).parent / "scripted_uci.py")
CHESS = make("chess")
SHOGI = make("shogi")


def _player(mode: str, name: str = "script", game=CHESS, **settings) -> UciPlayer:
    return UciPlayer(name, [sys.executable, SCRIPT, mode], game, go="nodes 1", **settings)


def _play(
    first: UciPlayer,
    second: UciPlayer,
    game=CHESS,
    seconds: float = 10.0,
    opening: tuple[int, ...] = (),
):
    try:
        return play_game(game, first, second, Clock(seconds), opening)
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize(("game", "length"), [(CHESS, 8), (SHOGI, 12)], ids=["chess", "shogi"])
def test_two_programs_repeat_themselves_until_our_rules_end_the_game(game, length: int) -> None:
    record = _play(_player("good", "a", game), _player("garbage", "b", game), game)
    assert (
        record.ending == "played out"
        and record.failed is None
        and len(record.final.actions) == length
        and record.names == ("a", "b")
    )


@pytest.mark.parametrize("mode", ["twice", "endless score"])
def test_neither_a_second_answer_nor_a_score_of_any_length_ends_the_game(mode: str) -> None:
    record = _play(_player(mode, "odd", resign_score=900), _player("good", "other"))
    assert record.ending == "played out" and len(record.final.actions) == 8


def test_openings_reach_the_program() -> None:
    start = _play(_player("good"), _player("good")).final.actions
    record = _play(_player("good"), _player("good"), opening=start[:3])
    assert record.final.actions == start and record.num_opening_moves == 3


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        (
            "crash",
            "script: crashed at 'go nodes 1' (exit status 3); it said: segmentation "
            "fault, more or less",
        ),
        ("silent", "script: no answer in time to 'go nodes 1'"),
        (
            "illegal",
            "script: illegal move: 'e2e5' is not a legal move in "
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ),
        ("none", "script: says '(none)' although it has legal moves"),
        ("win", "script: declares a win that the rules do not give it"),
        (
            "nothing",
            "script: illegal move: 'ponder' is not a legal move in "
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
        ),
    ],
)
def test_a_failure_is_named_and_loses(mode: str, ending: str) -> None:
    record = _play(
        _player(mode), _player("good", "other"), seconds=2.0 if mode == "silent" else 10.0
    )
    assert record.ending == ending and record.failed == 0 and record.rewards == (-1.0, 1.0)


def test_resigning_is_no_failure() -> None:
    record = _play(_player("resign"), _player("good", "other"))
    assert (
        record.ending == "script resigns"
        and record.failed is None
        and record.rewards == (-1.0, 1.0)
    )


def test_options_are_those_that_the_program_has() -> None:
    options = [("skill level", "3"), ("style", "Very risky"), ("Ponder", "false")]
    options.append(("node type limit", "2"))
    player = _player("good", options=options)
    player.reset()
    player.close()
    names = "Node type limit, Ponder, Skill Level"
    with pytest.raises(ValueError, match=f"script has no option 'Skil'; it has {names}"):
        _player("good", options=[("Skil", "3")]).reset()
    for value in ("21", "-1", "best"):
        with pytest.raises(
            ValueError, match=f"'skill level' is an integer from 0 to 20, not {value}"
        ):
            _player("good", options=[("skill level", value)]).reset()
    with pytest.raises(ValueError, match="'Style' is one of Solid, Very risky, not risky"):
        _player("good", options=[("Style", "risky")]).reset()
    with pytest.raises(ValueError, match="'Ponder' is one of true, false, not no"):
        _player("good", options=[("Ponder", "no")]).reset()


def test_a_program_of_chess960_plays_chess() -> None:
    player, start = _player("castling"), position_of("4k3/8/8/8/8/8/8/4K2R w K - 0 1", CHESS)
    player.reset()
    action = player.choose(start, Clock(10.0)).action
    player.close()
    assert start.action_name(action) == "e1g1"


def test_a_program_that_was_closed_says_so() -> None:
    player = _player("good")
    with pytest.raises(PlayerError, match="has not been started"):
        player.choose(None, Clock())


@pytest.mark.parametrize(
    ("clock", "level"),
    [
        (Clock(2.5), "level 1 0:02"),
        (Clock(main_seconds=1400.0), "level 1 1:09"),
        (Clock(main_seconds=0.0, period_seconds=1.0, periods=3), "level 1 0:01"),
        (Clock(main_seconds=2.0), "level 1 0:01"),
        (Clock(main_seconds=1.9), None),
        (Clock(1.0), None),
    ],
)
def test_gnu_shogi_is_told_its_time(
    clock: Clock, level: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With less than two seconds left, it is told to look one ply ahead: it lost on time."""
    sent: list[str] = []
    send = ExternalProgram.send

    def record(program: ExternalProgram, line: str, what: str, seconds: float = 10.0) -> None:
        sent.append(line)
        # a minute is long for a test
        send(program, "level 1 0:01" if line.startswith("level") else line, what, seconds)

    monkeypatch.setattr(ExternalProgram, "send", record)
    command = [require_program("gnushogi")]
    position = Position.start(SHOGI)
    for settings in ({"is_timed": True}, {"is_timed": True, "depth": 1}, {"depth": 1}):
        player = GnuShogiPlayer("GNU Shogi", command, **settings)
        player.reset()
        player.choose(position, clock)
        player.close()
    told = [line for line in sent if line.startswith("level")]
    depths = [line for line in sent if line.startswith("depth")]
    assert (told, len(depths)) == (([level], 2) if level else ([], 3))


def test_fairy_stockfish_plays_minichess() -> None:
    """A game from one position, and one from the usual first one."""
    game, settings = make("minichess"), {"options": [("UCI_Variant", "gardner")], "go": "nodes 20"}
    command = [require_program("fairy-stockfish")]
    players = [UciPlayer(name, command, game, **settings) for name in "ab"]
    for opening in ((), _play(*players, game).final.actions[:3]):
        record = _play(*players, game, opening=opening)
        assert record.failed is None and len(record.final.actions) > 10


def test_gnu_shogi_plays_fairy_stockfish() -> None:
    gnu_shogi, fairy = require_program("gnushogi"), require_program("fairy-stockfish")
    first = GnuShogiPlayer("GNU Shogi", [gnu_shogi], depth=1)
    second = UciPlayer(
        "Fairy-Stockfish", [fairy], SHOGI, options=[("Skill Level", "-20")], go="nodes 50"
    )
    opening = _play(_player("good", "a", SHOGI), _player("good", "b", SHOGI), SHOGI).final.actions[
        :2
    ]
    for players in ((first, second), (second, first)):
        record = _play(*players, SHOGI, opening=opening)
        assert (
            record.failed is None
            and record.num_opening_moves == 2
            and len(record.final.actions) > 10
        ), record.ending
