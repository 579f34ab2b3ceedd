"""Games by the clock, with free moves and with resignation."""

import dataclasses
import sys
from pathlib import Path

import pytest
from rich.console import Console

from azero.games.position import Position
from azero.games.table import make
from azero.match import referee
from azero.match.games import MatchGame
from azero.match.matches import play_match
from azero.match.records import Occasion, csa_ending, match_csa, match_pgn, match_sgf
from azero.match.referee import play_game
from azero.match.request import MatchRequest
from azero.players.clock import Clock, TimeControl
from azero.players.gtp_player import _time_left, _time_settings
from azero.players.player import RESIGN, Decision
from azero.players.uci_player import UciPlayer, _clock_words

SCRIPT = str(Path(__file__).parents[1] / "players" / "scripted_uci.py")
TICTACTOE, CHESS = make("tictactoe"), make("chess")
AGZ = TimeControl(main_time=7200.0, periods=3, period_time=60.0)


class Timed:
    """Plays the first legal move, and says the clocks it was shown."""

    def __init__(self, name: str) -> None:
        self.name, self.clocks, self.seen = name, list[Clock](), list[str]()

    def reset(self) -> None:
        self.clocks.clear()

    def choose(self, position, clock: Clock) -> Decision:
        self.clocks.append(clock)
        return Decision(int(position.legal.argmax()))

    def observe(self, move) -> None:
        self.seen.append(move.name)


@pytest.mark.parametrize(
    ("control", "spent", "after"),
    [
        (TimeControl(seconds_per_move=5.0), 5.0, Clock(5.0)),
        (TimeControl(main_time=20.0), 5.0, Clock(main_seconds=10.0)),
        (TimeControl(main_time=20.0, increment=3.0), 5.0, Clock(None, 16.0, 3.0)),
        (
            TimeControl(main_time=4.0, periods=3, period_time=6.0),
            5.0,
            Clock(None, 0.0, 0.0, 6.0, 3),
        ),
    ],
)
def test_the_clocks_run(monkeypatch, control, spent, after):
    control.check()
    now = [0.0]
    monkeypatch.setattr(referee.time, "perf_counter", lambda: now[0])
    first, second = Timed("first"), Timed("second")

    def slow(player):
        choose = player.choose

        def chosen(position, clock):
            now[0] += spent
            return choose(position, clock)

        player.choose = chosen
        return player

    record = play_game(TICTACTOE, slow(first), slow(second), control.clock(), is_timed=True)
    assert record.failed is None and record.ending == "played out"
    assert first.clocks[0] == control.clock()._replace(opponent_seconds=control.main_time)
    assert first.clocks[2] == after._replace(opponent_seconds=after.main_seconds)
    assert second.clocks[1].opponent_seconds == after.main_seconds


def test_who_oversteps_the_time_loses(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(referee.time, "perf_counter", lambda: now[0])
    first, second = Timed("first"), Timed("second")
    choose = second.choose

    def late(position, clock):
        now[0] += 5.01
        return choose(position, clock)

    second.choose = late
    record = play_game(TICTACTOE, first, second, Clock(5.0), is_timed=True)
    assert record.failed == 1 and record.rewards == (1.0, -1.0)
    assert record.ending == "second: loses on time, 5.01 s for a move with 5.00 s left"
    game = MatchGame(1, None, True, 1.0, (0,), 0, record.ending, failed="second")
    names = ("first", "second")
    assert "RE[B+T]" in match_sgf(game, make("go", size=3), names, Occasion())
    chess = dataclasses.replace(game, actions=())
    assert '[Termination "time forfeit"]' in match_pgn(chess, CHESS, names, Occasion())
    assert csa_ending(chess, make("shogi")) == "%TIME_UP"
    second.reset()
    assert play_game(TICTACTOE, first, second, Clock(5.0)).failed is None


@pytest.mark.parametrize(
    ("control", "sgf", "pgn", "csa"),
    [
        (TimeControl(), "", "-", ""),
        (TimeControl(5.0), "TM[0]OT[1x5 byo-yomi]", "1/5", "00:00+05"),
        (TimeControl(2.5), "TM[0]OT[1x2.5 byo-yomi]", "1/2.5", ""),
        (TimeControl(main_time=300.0), "TM[300]", "300", "00:05+00"),
        (
            AGZ,
            "TM[7200]OT[3x60 byo-yomi]",
            "7200:1/60",
            "02:00+60",
        ),
        (TimeControl(main_time=10800.0, increment=15.0), "TM[10800]OT[15 fischer]", "10800+15", ""),
        (TimeControl(main_time=90.0), "TM[90]", "90", ""),
    ],
)
def test_records_say_the_time_control(control, sgf, pgn, csa):
    game, names = MatchGame(1, None, True, 1.0, (), 0, "second resigns"), ("first", "second")
    go = match_sgf(game, make("go", size=3), names, Occasion(control))
    assert sgf in go and ("TM[" in go, "OT[" in go) == ("TM[" in sgf, "OT[" in sgf)
    assert f'[TimeControl "{pgn}"]' in match_pgn(game, CHESS, names, Occasion(control))
    shogi = match_csa(game, make("shogi"), names, Occasion(control))
    assert f"$TIME_LIMIT:{csa}\n" in shogi if csa else "TIME_LIMIT" not in shogi


def test_records_say_the_event_and_the_date():
    game, names = MatchGame(1, None, True, 1.0, (), 0, "second resigns"), ("first", "second")
    occasion = Occasion(event="a cup", date="2026-01-02")
    go = match_sgf(game, make("go", size=3), names, occasion)
    assert "DT[2026-01-02]" in go and "EV[a cup]" in go
    chess = match_pgn(game, CHESS, names, occasion)
    assert '[Event "a cup"]' in chess and '[Date "2026.01.02"]' in chess
    shogi = match_csa(game, make("shogi"), names, occasion)
    assert "$EVENT:a cup\n$START_TIME:2026/01/02\n" in shogi


def test_white_passes_while_black_has_free_moves():
    black, white = Timed("black"), Timed("white")
    record = play_game(make("go", size=5), black, white, free_moves=4)
    passing = 25
    assert [record.final.actions[ply] for ply in (1, 3, 5)] == [passing] * 3
    assert record.final.actions[7] != passing and len(record.decisions) == len(record.final.actions)
    # Both are told the passes, as programs that keep a board of their own must be.
    assert white.seen[:6] == ["A5", "pass", "B5", "pass", "C5", "pass"]
    assert black.seen[:3] == ["pass"] * 3


def test_a_pass_after_one_that_was_a_free_move_does_not_end_the_game():
    class Passing(Timed):
        def choose(self, position, clock: Clock) -> Decision:
            return Decision(25) if len(position.actions) == 2 else super().choose(position, clock)

    record = play_game(make("go", size=5), Passing("black"), Timed("white"), free_moves=2)
    assert record.final.actions[:3] == (0, 25, 25) and len(record.final.actions) > 10


def test_programs_are_told_the_time():
    def knows(*names):
        return lambda command: command in names

    assert _time_settings(Clock(5.0), knows()) == "time_settings 0 5 1"
    assert _time_settings(AGZ.clock(), knows()) == "time_settings 7200 60 1"
    kgs = knows("kgs-time_settings")
    assert _time_settings(AGZ.clock(), kgs) == "kgs-time_settings byoyomi 7200 60 3"
    assert _time_settings(AGZ.clock(), _kata) == "kata-time_settings byoyomi 7200 60 3"
    fischer = TimeControl(main_time=60.0, increment=1.5).clock()
    assert _time_settings(fischer, _kata) == "kata-time_settings fischer 60 1.5"
    assert _time_settings(Clock(main_seconds=9.0), _kata) == "kata-time_settings absolute 9"
    assert _time_settings(fischer, knows()) == "time_settings 60 0 0"
    assert _time_left(AGZ.clock(), kgs) == "7200 0"
    used_up = AGZ.clock()._replace(main_seconds=0.0, periods=2)
    assert (_time_left(used_up, kgs), _time_left(used_up, knows())) == ("60 2", "60 1")
    assert _clock_words(Clock(5.0), 0, "uci") == "movetime 4700"
    az = TimeControl(main_time=10800.0, increment=15.0).clock()
    assert _clock_words(az, 0, "uci") == "wtime 10800000 btime 10800000 winc 15000 binc 15000"
    assert _clock_words(az, 0, "usi") == "btime 10800000 wtime 10800000 binc 15000 winc 15000"
    later = az._replace(main_seconds=7.0, opponent_seconds=9.0)
    assert _clock_words(later, 0, "uci") == "wtime 7000 btime 9000 winc 15000 binc 15000"
    assert _clock_words(later, 1, "uci") == "wtime 9000 btime 7000 winc 15000 binc 15000"
    assert _clock_words(later, 1, "usi") == "btime 9000 wtime 7000 binc 15000 winc 15000"
    shogi = TimeControl(main_time=600.0, periods=1, period_time=10.0).clock()
    assert _clock_words(shogi, 0, "usi") == "btime 600000 wtime 600000 byoyomi 10000"
    # With `wtime 0 winc 0` Stockfish searches without end.
    used_up = shogi._replace(main_seconds=0.0)
    assert _clock_words(used_up, 0, "uci") == "wtime 10000 btime 10000 winc 10000 binc 10000"


def test_fractions_of_a_second_are_told_or_refused():
    """GTP has whole seconds: half a second became one, and a period of half a second none."""
    shogi = TimeControl(main_time=0.0, periods=3, period_time=0.5).clock()
    assert _clock_words(shogi, 0, "usi") == "btime 0 wtime 0 byoyomi 500"
    assert _clock_words(shogi, 0, "uci") == "wtime 500 btime 500 winc 500 binc 500"
    blitz = TimeControl(main_time=20.0, periods=3, period_time=0.5).clock()
    tiny = TimeControl(main_time=0.5, increment=2.0).clock()
    assert _time_settings(Clock(0.5), _kata) == "kata-time_settings byoyomi 0 0.5 1"
    assert _time_settings(blitz, _kata) == "kata-time_settings byoyomi 20 0.5 3"
    assert _time_settings(tiny, _kata) == "kata-time_settings fischer 0.5 2"
    assert _time_left(blitz._replace(main_seconds=0.25), _kata) == "0.25 0"
    assert _time_left(blitz._replace(main_seconds=0.0), _kata) == "0.5 3"
    for clock, what in [
        (Clock(0.5), "0.5 s for a move"),
        (blitz, "periods of 0.5 s"),
        (tiny, "a main time of 0.5 s"),
    ]:
        for knows in (lambda _: False, lambda command: command == "kgs-time_settings"):
            with pytest.raises(ValueError, match=f"cannot be told {what}; give at least 1"):
                _time_settings(clock, knows)


def _kata(command: str) -> bool:
    return command in ("kgs-time_settings", "kata-time_settings")


@pytest.mark.parametrize(("mode", "resigns"), [("behind", True), ("even", False)])
def test_a_program_far_behind_resigns_after_ten_moves(mode, resigns):
    """By the score of its best move: MultiPV shows worse ones after it."""
    game = make("chess")
    command = [sys.executable, SCRIPT, mode]
    loser = UciPlayer("loser", command, game, go="", resign_score=900)
    position, decisions = Position.start(game), []
    try:
        loser.reset()
        for _ in range(10):
            decisions.append(loser.choose(position, Clock(main_seconds=60.0)).action)
            loser._moves.clear()
    finally:
        loser.close()
    assert [action == RESIGN for action in decisions] == [False] * 9 + [resigns]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds_per_move": 5.0, "main_time": 60.0}, "seconds-per-move excludes"),
        ({"increment": 1.0}, "need main-time"),
        ({"main_time": 60.0, "periods": 3}, "need each other"),
        ({"main_time": 60.0, "increment": 1.0, "periods": 1, "period_time": 5.0}, "excludes"),
        ({"seconds_per_move": -1.0}, "at least 0 seconds"),
        ({"seconds_per_move": 0.0}, "no time"),
        ({"main_time": 0.0, "increment": 5.0}, "no time"),
    ],
)
def test_what_is_no_clock_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        MatchRequest("a", "b", clock=TimeControl(**settings))


def test_a_match_by_the_clock_with_free_moves_continues(tmp_path):
    request = MatchRequest(
        "random-net:go5?blocks=1&filters=4&search=engine&visits=8",
        "random:go5",
        games=2,
        clock=TimeControl(seconds_per_move=60.0),
        handicap=3,
        resign=0.0,
        out=tmp_path / "match",
    )
    quiet = Console(quiet=True)
    result = play_match(request, quiet).result
    assert result.total.games == 2 and result.second.games == 2, "the first is White in both"
    text = (tmp_path / "match" / "match.json").read_text()
    assert '"failures": {}' in text and "3 free moves" in text and "visits" in text
    assert (tmp_path / "match" / "game0001.sgf").read_text().count(";W[]") >= 2
    assert play_match(request, quiet).result == result
    with pytest.raises(ValueError, match="handicap is a setting of Go"):
        play_match(
            MatchRequest("random:tictactoe", "random:tictactoe", handicap=2, second_name="b"), quiet
        )


@pytest.mark.slow
def test_a_hundred_games_by_the_clock_without_a_loss_on_time(tmp_path):
    players = [f"random-net:tictactoe?seed={seed}&search=engine" for seed in (1, 2)]
    clock = TimeControl(main_time=3.0, periods=3, period_time=0.6)
    request = MatchRequest(*players, clock=clock, games=100, random_plies=2, out=tmp_path / "match")
    assert play_match(request, Console(quiet=True)).result.total.games == 100
    assert '"failures": {}' in (tmp_path / "match" / "match.json").read_text()
