"""The engines of UCI and USI in this process: written dialogues, noise, what is kept from position
to position, and scores."""

import io
import random
import re
from pathlib import Path

import numpy as np
import pytest
from dialogue import read_dialogue
from moves_in_process import MovesInProcess

from azero.engines.lines import LineReader
from azero.engines.uci.engine import LONGEST_LINE
from azero.engines.uci.info import win_draw_loss
from azero.engines.uci.search import SearchControl
from azero.games.chess import text
from azero.games.position import _compiled
from azero.players.clock import Clock, thinking_seconds
from azero.players.thinking import Analysis, MoveInfo, chess_centipawns, shogi_centipawns
from azero.players.uci_go import parse_go

HERE = Path(__file__).parent
GAMES = {"uci": "chess", "usi": "shogi"}
LINE = re.compile(
    r"(id (name|author) .+|option name .+|(uci|usi|ready)ok|bestmove \S+( ponder "
    r"\S+)?|info (depth|string) .+|checkmate notimplemented)"
)


@pytest.mark.parametrize("protocol", GAMES)
def test_written_dialogues(protocol: str) -> None:
    engine = MovesInProcess(GAMES[protocol], draw=0.25)
    exchanges = read_dialogue(HERE / f"{protocol}_dialogue.txt")
    assert len(exchanges) >= 40
    for exchange in exchanges:
        answer = engine.answer(exchange.raw)
        assert exchange.fits(answer), f"line {exchange.line_number}: {exchange.sent}\n{answer}"


def _noise(draw: random.Random, protocol: str) -> bytes:
    words = [
        "position",
        "startpos",
        "moves",
        "go",
        "nodes",
        "1",
        "-1",
        "99999999999999999999",
        "searchmoves",
        "stop",
        "ponderhit",
        "isready",
        "setoption",
    ]
    words += [
        "name",
        "value",
        "MultiPV",
        "3",
        "infinite",
        "ponder",
        "wtime",
        "btime",
        "byoyomi",
        "movestogo",
        "0",
        "depth",
        "fen",
        "sfen",
        "e2e4",
        "7g7f",
        "P*5e",
    ]
    words += [
        f"{protocol}newgame",
        "UCI_ShowWDL",
        "true",
        "gameover",
        "mate",
        "\u3042",
        "e7e8q",
        "b",
        "w",
        "KQkq",
        "-",
        "8/8/8/8/8/8/8/8",
        protocol,
    ]
    kind = draw.random()
    if kind < 0.1:
        return draw.randbytes(draw.randrange(1, 60)).replace(b"\n", b"")
    text = " ".join(draw.choice(words) for _ in range(draw.randrange(1, 9)))
    if kind < 0.4:
        text = (
            f"{draw.choice(['position startpos moves', 'go nodes 2', 'setoption name', 'go searchmoves'])} "
            f"{text}"
        )
    return text.encode()


@pytest.mark.parametrize("protocol", GAMES)
def test_noise_is_answered_and_survived(protocol: str, seed: int) -> None:
    draw, engine = random.Random(2018 + seed), MovesInProcess(GAMES[protocol], visits=3)
    for _ in range(1500):
        question = b"\n".join(_noise(draw, protocol) for _ in range(draw.choice([1, 1, 1, 3])))
        for line in engine.ask(question).splitlines():
            assert LINE.fullmatch(line) and "internal error" not in line, (question, line)
    assert (
        engine.ask("position startpos") == ""
        and "bestmove" in engine.ask("go nodes 1")
        and engine.ask("isready") == "readyok\n"
    )


def test_long_lines_are_refused_in_one_line() -> None:
    engine = MovesInProcess("chess")
    assert (
        engine.ask(b"position startpos moves " + b"x" * LONGEST_LINE)
        == f"info string line too long: more than {LONGEST_LINE} bytes\n"
    )
    assert engine.ask("isready") == "readyok\n"


def test_a_failure_of_the_search_is_told_and_survived() -> None:
    engine = MovesInProcess("chess")
    engine.ask("go nodes 1")
    think, engine.thinkers[0].think = engine.thinkers[0].think, None
    answer = engine.ask("go searchmoves g1f3 nodes 1")
    assert answer.startswith("info string internal error: TypeError")
    assert answer.endswith("bestmove g1f3\n"), "the program that asked waits for a move"
    engine.thinkers[0].think = think
    assert "bestmove" in engine.ask("go nodes 1")


def test_reports_on_one_line_play_its_moves_once(monkeypatch) -> None:
    """Each move took milliseconds of the search at every report, 20 of them in each line."""
    engine = MovesInProcess("chess")
    engine.ask("go nodes 1")
    board, line = text.board_of_fen(text.START), []
    for name in ("e2e4", "e7e5", "g1f3", "b8c6"):
        line.append(board.names[name])
        board = board.after(line[-1])
    policy = np.full(engine.game.game.num_actions, 0.0, np.float32)
    move = MoveInfo(line[0], 9, 0.0, 0.5, 0.0, tuple(line), (9, 8, 7, 6))
    found = Analysis((move,), 0.0, 10, 9, 0.0, policy, 1.0)

    def think(position, limits, options) -> Analysis:
        for _ in range(5):
            options.on_progress(found)
        return found

    played, after = [], text.ChessBoard.after
    monkeypatch.setattr(engine.thinkers[0], "think", think)
    monkeypatch.setattr(
        text.ChessBoard,
        "after",
        lambda board, action: (played.append(action), after(board, action))[1],
    )
    assert engine.ask("go nodes 9").count("pv e2e4 e7e5 g1f3 b8c6\n") == 5
    assert played == [*line[:3], line[0]], "once for the reports, and once for bestmove"


def test_the_tree_is_kept_while_the_game_goes_on() -> None:
    engine = MovesInProcess("chess")
    engine.ask("go nodes 1")
    thinker, resets = engine.thinkers[0], engine.thinkers[0].num_resets
    for question in (
        "position startpos",
        "position startpos moves e2e4",
        "position startpos moves e2e4 e7e5 g1f3",
    ):
        engine.ask(question)
    assert thinker.num_resets == resets and engine.game.session.num_moves == 3
    first = engine.game.session.positions[1]
    engine.ask("position startpos moves e2e4 c7c5")
    assert thinker.num_resets == resets + 1 and engine.game.session.positions[1] is first, (
        "a shorter game plays only what is new"
    )
    engine.ask("position startpos moves e2e4 c7c5 nonsense")
    assert engine.game.session.num_moves == 2, "a refused position changes nothing"
    engine.ask("ucinewgame")
    assert thinker.num_resets == resets + 2 and engine.game.session.num_moves == 0


def test_nothing_is_compiled_once_the_game_is_prepared() -> None:
    engine = MovesInProcess("chess", max_moves=500)
    engine.game.begin_to_prepare()
    engine.game.session.prepare()
    _, advance, _ = _compiled(engine.game.game)
    assert advance._cache_size() == 1
    mate = "position fen 7k/8/6K1/8/8/8/8/6Q1 w - - 0 1 moves g1a1 h8g8 a1a8"
    assert engine.ask(f"{mate}") == "" and "mate 0" in engine.ask("go nodes 1")
    assert advance._cache_size() == 1, "a mate takes no time"


@pytest.mark.timeout(60)
def test_a_depth_that_the_game_does_not_have_is_not_waited_for() -> None:
    engine = MovesInProcess("chess", visits=None)
    engine.ask("position fen 7k/8/8/8/8/8/6q1/7K w - - 0 1")
    assert "bestmove h1g2" in engine.ask("go depth 1"), "the capture draws, and no move follows"


def test_memory_and_resignation_are_options() -> None:
    engine = MovesInProcess("shogi", value=-0.9)
    engine.ask("setoption name USI_Hash value 7\ngo nodes 1")
    assert engine.thinkers[0].megabytes == 7
    engine.ask("setoption name USI_Hash value 9\ngo nodes 1")
    assert engine.thinkers[0].megabytes == 9
    assert "bestmove resign" not in engine.ask("go nodes 1")
    engine.ask(f"setoption name ResignValue value {-shogi_centipawns(-0.9)}")
    assert "bestmove resign" in engine.ask("go nodes 1")


def test_scores_grow_with_the_value_and_are_even() -> None:
    values = [index / 50 - 1 for index in range(101)]
    for centipawns in (chess_centipawns, shogi_centipawns):
        scores = [centipawns(value) for value in values]
        assert (
            scores == sorted(scores)
            and scores[50] == 0
            and all(low == -high for low, high in zip(scores, reversed(scores), strict=True))
        )
    assert (
        chess_centipawns(0.5) == 89
        and chess_centipawns(1.0) == 12_780
        and chess_centipawns(1.2) == 12_780
    ), "90 tan(0.782), 90 tan(1.564)"
    assert shogi_centipawns(0.5) == 831 and shogi_centipawns(1.0) == 30_000, "756.09 ln 3"


def test_wins_draws_and_losses_sum_to_a_thousand_and_agree_with_the_value() -> None:
    assert win_draw_loss(0.0, 0.25) == (375, 250, 375)
    assert win_draw_loss(0.5, 0.25) == (625, 250, 125)
    assert win_draw_loss(0.9, 0.5) == (900, 100, 0), "the value leaves one draw in ten"
    assert win_draw_loss(-1.0, 1.0) == (0, 0, 1000) and win_draw_loss(0.0, 1.0) == (0, 1000, 0)
    for value in [index / 777 - 1 for index in range(1555)]:
        for draw in [index / 321 for index in range(322)]:
            wins, draws, losses = win_draw_loss(value, draw)
            assert wins + draws + losses == 1000 and min(wins, draws, losses) >= 0
            assert abs((wins - losses) / 1000 - value) <= 0.0011


def test_a_network_with_one_value_does_not_offer_win_draw_and_loss() -> None:
    engine = MovesInProcess("chess")
    assert "UCI_ShowWDL" not in engine.ask("uci")
    assert "there is no option 'UCI_ShowWDL'" in engine.ask("setoption name UCI_ShowWDL value true")
    assert " wdl " not in engine.ask("go nodes 1")


def test_clocks_are_those_of_the_side_to_move() -> None:
    words = ["wtime", "60000", "btime", "30000", "winc", "1000", "binc", "2000"]
    assert parse_go(words, "w").clock == Clock(main_seconds=60.0, increment_seconds=1.0)
    assert parse_go(words, "b").clock == Clock(main_seconds=30.0, increment_seconds=2.0)
    assert thinking_seconds(parse_go(words, "w").clock, 10, 64, 0.1, 20) == pytest.approx(
        60 / 20 + 1 - 0.1
    )
    to_go = parse_go(["wtime", "60000", "btime", "1", "movestogo", "4"], "w").clock
    assert thinking_seconds(to_go, 10, 64, 0.1, 20) == pytest.approx(15.0)
    to_go = parse_go([*words, "movestogo", "4"], "w").clock
    assert thinking_seconds(to_go, 10, 64, 0.1, 20) == pytest.approx((60 + 3 * 1) / 4)
    byoyomi = parse_go(["btime", "0", "wtime", "0", "byoyomi", "3000"], "b").clock
    assert thinking_seconds(byoyomi, 10, 81, 0.1, 20) == pytest.approx(2.9)
    assert thinking_seconds(parse_go(["infinite"], "w").clock, 10, 64) is None
    assert parse_go(["nodes", "-+5"], "w").unknown == ("nodes", "-+5")
    request = parse_go(
        ["searchmoves", "e2e4", "d2d4", "nodes", "5", "movetime", "250", "depth", "3", "ponder"],
        "w",
    )
    assert (request.names, request.nodes, request.seconds, request.depth, request.ponders) == (
        ("e2e4", "d2d4"),
        5,
        0.25,
        3,
        True,
    )


def test_a_search_for_a_mate_ends() -> None:
    """`go mate 2` was once passed over, and the search went on until `stop`."""
    request = parse_go(["mate", "2"], "w")
    assert (
        request.is_limited
        and request.most_visits == 2000
        and parse_go(["mate", "9", "nodes", "50"], "w").most_visits == 50
        and not request.unknown
    )
    assert "bestmove" in MovesInProcess("chess", visits=None).ask("go mate 1")


@pytest.mark.parametrize(
    ("game", "clocks"),
    [("shogi", "btime 0 wtime 0 byoyomi 120"), ("chess", "wtime 400 btime 1 soon")],
)
def test_clocks_that_come_with_ponderhit_count(game: str, clocks: str) -> None:
    """`go ponder` without clocks once searched until `stop`, whatever came with `ponderhit`."""
    engine, polls = MovesInProcess(game, visits=None), iter(range(1000))
    script = engine._script
    script.is_waiting = lambda: bool(script.lines) or next(polls) < 0  # type: ignore[method-assign]
    answer = engine.ask(f"go ponder\nponderhit {clocks}")
    assert answer.count("bestmove") == 1 and "internal error" not in answer
    assert ("'soon' is not understood" in answer) == ("soon" in clocks)


def test_an_endless_search_waits_for_stop_and_the_clock_begins_at_ponderhit() -> None:
    def control(seconds: float, *, is_endless: bool, ponders: bool) -> SearchControl:
        reader = LineReader(io.BytesIO())
        while not reader.is_waiting():
            pass
        reader.take = None  # type: ignore[assignment]
        reader.is_waiting = lambda: False  # type: ignore[method-assign]
        search = SearchControl(
            reader,
            lambda line: None,
            waits=is_endless or ponders,
            depth=None,
            is_closed=lambda: False,
        )
        search.limit(seconds, is_endless)
        return search

    assert control(0.0, is_endless=False, ponders=False).should_stop()
    assert not control(60.0, is_endless=False, ponders=False).should_stop()
    pondering = control(0.0, is_endless=False, ponders=True)
    assert not pondering.should_stop()
    pondering.ponderhit()
    assert pondering.should_stop()
    endless = control(0.0, is_endless=True, ponders=True)
    endless.ponderhit()
    assert not endless.should_stop()
    endless.stop()
    assert endless.should_stop()
