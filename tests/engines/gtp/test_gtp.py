"""The GTP engine: a written dialogue, streams, noise, analysis that stops at once, and the tables
of handicap stones."""

import io
import os
import random
import re
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from dialogue import read_dialogue
from engine_in_process import InProcess
from needs import require_program
from uniform_thinker import UniformThinker

from azero import __version__
from azero.engines.go_game import GoGame
from azero.engines.gtp.board import free_handicap
from azero.engines.gtp.engine import GtpEngine, serve
from azero.engines.limits import Settings
from azero.games.go import setup
from azero.games.go.text import format_vertex, parse_vertex
from azero.players.gtp_player import GtpProgram
from azero.players.points import PointsEstimate

HERE = Path(__file__).parent


def test_the_written_dialogue() -> None:
    engine = InProcess(5)
    exchanges = read_dialogue(HERE / "gtp_dialogue.txt")
    assert len(exchanges) >= 150
    for exchange in exchanges:
        answer = engine.ask(exchange.raw)
        assert exchange.fits(answer), (
            f"line {exchange.line_number}: > "
            f"{exchange.sent}\nexpected:\n{exchange.expected}\nanswered:\n{answer}"
        )
    assert engine.engine.has_quit


def test_the_dialogue_leaves_no_command_out() -> None:
    commands = InProcess(5).ask("list_commands").removeprefix("= ").split()
    sent = {
        word
        for exchange in read_dialogue(HERE / "gtp_dialogue.txt")
        for word in exchange.sent.split()
    }
    assert set(commands) <= sent, set(commands) - sent


def test_a_network_fits_one_board_and_says_which() -> None:
    engine = InProcess(5, any_shape=False)
    assert engine.ask("boardsize 19") == "? unacceptable size: the network plays 5x5 only\n\n"
    assert (
        engine.ask("rectangular_boardsize 5 6")
        == "? unacceptable size: the network plays 5x5 only\n\n"
    )
    assert engine.ask("boardsize 5") == "=\n\n"


def test_a_line_of_a_megabyte_is_one_error() -> None:
    output = _serve(
        b"name\n" + b"play b " + b"A" * 1_000_000 + b"\nversion\n" + b"\x00" * 1_000_000 + b"\nname"
    )
    assert (
        output[0] == "= azero"
        and output[2].startswith("= 0.")
        and output[4] == "= azero"
        and len(output) == 5
    )
    assert output[1] == output[3] == "? line too long: more than 65536 bytes"


def _serve(text: bytes, **options) -> list[str]:
    """Return the answers of an engine that reads `text` to its end."""
    sink = io.BytesIO()
    serve(
        lambda write, is_interrupted: _engine(write, is_interrupted, **options),
        io.BytesIO(text),
        sink,
    )
    answers = sink.getvalue().decode().split("\n\n")
    assert answers.pop() == ""
    return answers


def _engine(write, is_interrupted, **options) -> GtpEngine:
    game = GoGame(
        lambda go: UniformThinker(go, **options),
        (5, 5),
        any_shape=True,
        is_interrupted=is_interrupted,
    )
    return GtpEngine(game, Settings(visits=10), write)


def test_the_end_of_the_input_ends_the_engine_and_a_last_line_counts() -> None:
    assert _serve(b"1 name\r\n2 version\r\n\r\n3 boardsize 5") == [
        "=1 azero",
        f"=2 {__version__}",
        "=3",
    ]
    assert _serve(b"quit\nname\n") == ["="]
    assert _serve(b"") == []


def test_only_the_controller_can_end_an_analysis_and_it_ends_at_once() -> None:
    """Through a real pipe, while the engine thinks: any line ends it, and the answer to that line
    follows."""
    into, source = os.pipe()
    drain, sink = os.pipe()
    engine = threading.Thread(
        target=serve, args=(_engine, io.FileIO(into, "rb"), io.FileIO(sink, "wb")), daemon=True
    )
    engine.start()
    answers = os.fdopen(drain, "rb")
    try:
        for line, expected in (
            (b"\n", None),
            (b"name\n", b"= azero\n"),
            (b"play b C3\n", b"=\n"),
            (b"nonsense\n", b"? unknown command\n"),
        ):
            os.write(source, b"lz-analyze 1\n")
            assert answers.readline() == b"=\n"
            assert answers.readline().startswith(b"info move ")
            began = time.monotonic()
            os.write(source, line)
            while answers.readline() != b"\n":
                pass
            assert time.monotonic() - began < 1.0
            if expected is not None:
                assert answers.readline() == expected and answers.readline() == b"\n"
        os.write(source, b"quit\n")
        assert answers.readline() == b"=\n"
        engine.join(5.0)
        assert not engine.is_alive()
    finally:
        os.close(source)


def test_an_analysis_that_nobody_reads_any_more_ends() -> None:
    """It once went on until input came, as after `azero gtp < fifo | head`."""
    into, source = os.pipe()
    drain, sink = os.pipe()
    os.write(source, b"lz-analyze 1\n")
    os.close(drain)
    engine = threading.Thread(
        target=serve, args=(_engine, io.FileIO(into, "rb"), io.FileIO(sink, "wb")), daemon=True
    )
    engine.start()
    engine.join(5.0)
    os.close(source)
    assert not engine.is_alive()


def test_pondering_goes_on_until_input_comes() -> None:
    into, source = os.pipe()
    made: list[UniformThinker] = []

    def make(write, is_interrupted) -> GtpEngine:
        def thinker(go) -> UniformThinker:
            made.append(UniformThinker(go))
            return made[-1]

        return GtpEngine(
            GoGame(thinker, (5, 5), is_interrupted=is_interrupted),
            Settings(visits=10, ponders=True),
            write,
        )

    sink = io.BytesIO()
    engine = threading.Thread(target=serve, args=(make, io.FileIO(into, "rb"), sink), daemon=True)
    engine.start()
    os.write(source, b"genmove b\n")
    deadline = time.monotonic() + 30
    while (not made or made[0].num_thoughts < 2) and time.monotonic() < deadline:
        time.sleep(0.01)
    began = time.monotonic()
    os.write(source, b"stop\nquit\n")
    engine.join(5.0)
    os.close(source)
    assert not engine.is_alive() and time.monotonic() - began < 2.0
    assert made[0].num_thoughts == 2, "after stop there is no pondering"
    assert sink.getvalue() == b"= A5\n\n=\n\n=\n\n"


def test_situational_superko_knows_who_was_to_move_before_a_move_out_of_turn() -> None:
    engine = InProcess(5)
    engine.ask("kata-set-rules new-zealand")
    for move in ("b E5", "w A2", "b E4", "w B1", "b E3"):
        engine.ask(f"play {move}")
    # A suicide of one stone would leave this board with White to move, as it is.
    assert engine.ask("is_legal b A1") == "= 0\n\n"
    engine.ask("kata-set-rules tromp-taylor")
    assert engine.ask("is_legal b A1") == "= 0\n\n"
    assert engine.ask("is_legal b A3") == "= 1\n\n"


def test_a_hopeless_engine_resigns_after_some_moves_of_its_own() -> None:
    engine = InProcess(5, value=-0.95)
    assert [engine.ask("genmove b") for _ in range(3)] == ["= A5\n\n", "= B5\n\n", "= resign\n\n"]
    assert "RE[W+R]" in engine.ask("printsgf") and engine.ask("reg_genmove b") == "= C5\n\n"
    engine.ask("kata-set-param allowResignation false")
    assert engine.ask("genmove b") == "= C5\n\n"


def test_moves_that_were_taken_back_do_not_count_towards_resigning() -> None:
    engine = InProcess(5, value=-0.95)
    for _ in range(5):
        assert engine.ask("genmove b") == "= A5\n\n" and engine.ask("undo") == "=\n\n"
    assert engine.ask("genmove b") == "= A5\n\n"


def test_a_resignation_is_the_result_of_its_own_game_only(tmp_path) -> None:
    path = tmp_path / "game.sgf"
    path.write_text("(;GM[1]SZ[5];B[aa];W[bb])")
    for line in (
        "clear_board",
        "set_position b C3 w D4",
        "set_free_handicap C3 D4",
        f"loadsgf {path}",
        "play w C3",
        "genmove w",
    ):
        engine = InProcess(5, value=-0.95)
        for setting in (
            "kata-set-param resignConsecTurns 1",
            "genmove b",
            "kata-set-param allowResignation false",
        ):
            engine.ask(setting)
        assert "RE[W+R]" in engine.ask("printsgf")
        assert engine.ask(line).startswith("=") and "RE[" not in engine.ask("printsgf"), line


def test_a_clock_bounds_the_thinking() -> None:
    engine = InProcess(5)
    for line in (
        "kata-set-param maxVisits unlimited",
        "kata-time_settings byo-yomi 0 0.5 3",
        "time_left b 0.5 3",
    ):
        assert engine.ask(line) == "=\n\n"
    began = time.monotonic()
    assert engine.ask("genmove b") == "= A5\n\n"
    assert 0.1 < time.monotonic() - began < 2.0


def test_the_thinker_keeps_its_tree_through_single_moves_alone() -> None:
    engine = InProcess(5)
    engine.ask("genmove b")
    (thinker,) = engine.thinkers
    resets = thinker.num_resets
    for line in ("play w C3", "genmove b", "genmove w", "play b D4"):
        engine.ask(line)
    assert thinker.num_resets == resets
    for line in ("play b E5", "undo", "clear_board", "genmove w"):
        engine.ask(line)
        assert thinker.num_resets > resets, line
        resets = thinker.num_resets


def test_the_raw_network_tells_whites_score_and_points() -> None:
    engine = InProcess(2)
    assert "whiteLead" not in engine.ask("kata-raw-nn 0"), "a network without these heads"
    owners = np.array([1.0, 0.5, 0.0, -1.0], np.float32)
    estimate = PointsEstimate(3.0, 1.0, owners)
    engine.thinkers[0].estimate_points = lambda position, actions=(): [estimate]
    for mover, lead, rows in (
        ("black", "-3.000000", ["-1.000000 -0.500000", "-0.000000 1.000000"]),
        ("white", "3.000000", ["1.000000 0.500000", "0.000000 -1.000000"]),
    ):
        lines = engine.ask("kata-raw-nn 0").strip().split("\n")
        assert lines[4:8] == [
            f"whiteLead {lead}",
            f"whiteScoreSelfplay {lead}",
            "whiteScoreSelfplaySq 10.000000",
            "policy",
        ], mover
        assert lines[-3:] == ["whiteOwnership", *rows], mover
        engine.ask("play b pass")


@pytest.mark.parametrize(
    "lines",
    [
        ["set_free_handicap C3 G7"],
        ["play b C3", "play b G7"],
        ["play b C3", "play w pass", "play b G7"],
    ],
)
def test_handicap_stones_count_however_they_are_placed(lines: list[str]) -> None:
    engine = InProcess(9)
    for line in ("kata-set-rules chinese", "komi 0.5", *lines):
        assert engine.ask(line) == "=\n\n"
    assert engine.ask("get_handicap") == "= 2\n\n"
    engine.ask("play w E5")
    assert engine.game.effective_komi == engine.game.session.game.komi == 2.5
    if len(lines) > 1:
        engine.ask("undo"), engine.ask("undo")
        assert engine.game.effective_komi == engine.game.session.game.komi == 0.5


def test_a_game_is_saved_and_loaded(tmp_path) -> None:
    engine = InProcess(9)
    for line in (
        "komi 0.5",
        "set_free_handicap C3 G7",
        "play w E5",
        "play b E4",
        "play w pass",
        "play w D4",
    ):
        assert engine.ask(line) == "=\n\n"
    path = tmp_path / "a game.sgf"
    assert engine.ask(f"printsgf {path}") == "=\n\n"
    board, history = engine.ask("showboard"), engine.ask("move_history")
    other = InProcess(5)
    assert other.ask(f"loadsgf {path}") == "=\n\n"
    assert (
        other.ask("showboard") == board
        and other.ask("move_history") == history
        and other.ask("get_handicap") == "= 2\n\n"
    )
    assert (
        other.ask(f"loadsgf {path} 2") == "=\n\n" and other.ask("move_history") == "= white E5\n\n"
    )
    for content in (
        b"",
        b"(;GM[1]SZ[9];B[aa];W[aa])",
        b"\xff\x00(;",
        b"(;GM[1]SZ[19];B[aa])(;SZ[9])",
    ):
        path.write_bytes(content)
        answer = InProcess(9, any_shape=False).ask(f"loadsgf {path}")
        assert answer.startswith("? cannot load file: ") and answer.count("\n") == 2, answer
    fixed = InProcess(9, any_shape=False)
    fixed.ask("play b C3")
    path.write_bytes(b"(;GM[1]SZ[9]KM[3.5];B[aa];W[aa])")
    assert fixed.ask(f"loadsgf {path}") == "? cannot load file: move 2 is illegal\n\n"
    assert fixed.ask("move_history") == "= black C3\n\n" and fixed.ask("get_komi") == "= 7.5\n\n"


WORDS = re.split(
    " ",
    "play genmove undo showboard boardsize komi b w black white pass C3 D4 E5 A1 Z9 I5 5 "
    "6 7.5 -1 0 lz-analyze kata-analyze 10 minmoves 3 clear_board "
    "fixed_handicap set_free_handicap place_free_handicap set_position time_settings "
    "time_left kgs-time_settings kata-set-rules chinese tromp-taylor {} "
    "known_command list_commands # \t \x00 \xff resign kata-set-param maxVisits heatmap "
    "kata-raw-nn printsgf last_move is_legal 1 22 kata-get-rules all_legal",
)


def _random_line(random_source: random.Random) -> bytes:
    kind = random_source.random()
    if kind < 0.1:
        return random_source.randbytes(random_source.randrange(60)).replace(b"\n", b"")
    if kind < 0.15:
        return bytes(
            random_source.choice(b"0123456789 #-+.") for _ in range(random_source.randrange(30))
        )
    words = [random_source.choice(WORDS) for _ in range(random_source.randrange(1, 6))]
    if kind < 0.4:
        words = [
            "play",
            random_source.choice("bw"),
            random_source.choice("ABCDE") + random_source.choice("12345"),
        ]
    return " ".join(words).encode("latin-1")


def _fuzz(num_lines: int, seed: int) -> None:
    random_source = random.Random(seed)
    engine = InProcess(5, any_shape=False)
    form = re.compile(
        r"[=?]\d*( [^\n]+|\n[^\n]+)?(\n[^\n]+)*\n\n|=\d*\n(info [^\n]*\n)*(play [^\n]*\n)?\n"
    )
    for index in range(num_lines):
        line = _random_line(random_source)
        if b"printsgf" in line or b"loadsgf" in line:
            line = b"printsgf"  # no files of random names
        answer = engine.ask(line)
        assert answer == "" or form.fullmatch(answer), (line, answer)
        assert "internal error" not in answer, (line, answer)
        if index % 50 == 0:
            assert engine.ask("77 protocol_version") == "=77 2\n\n", line
            board = engine.game.board.reshape(-1)
            assert engine.ask("list_stones b").split()[1:] == [
                format_vertex(int(point), (5, 5)) for point in np.flatnonzero(board == 1)
            ]


def test_noise(seed: int) -> None:
    _fuzz(3_000, seed + 1)


@pytest.mark.slow
def test_much_noise(seed: int) -> None:
    _fuzz(100_000, seed + 2)


@pytest.mark.parametrize("size", [7, 8, 9, 11, 13, 19])
def test_handicap_stones_are_those_of_gnu_go(size: int) -> None:
    """At 12x12, which the protocol counts among the small boards (third line), GNU Go takes the
    fourth."""
    require_program("gnugo")
    with closing(GtpProgram(["gnugo", "--mode", "gtp"])) as gnu_go:
        gnu_go.ask(f"boardsize {size}")
        for count in range(2, (9 if size % 2 and size >= 9 else 4) + 1):
            gnu_go.ask("clear_board")
            theirs = {
                parse_vertex(word, (size, size))
                for word in gnu_go.ask(f"fixed_handicap {count}").split()
            }
            assert theirs == set(setup.handicap_points(count, (size, size))), count


def test_free_handicap_has_as_many_stones_as_asked_for() -> None:
    for shape in ((2, 2), (5, 5), (9, 9), (4, 7), (19, 19)):
        for count in (2, 3, 10, shape[0] * shape[1] - 1):
            points = free_handicap(min(count, shape[0] * shape[1] - 1), shape)
            assert len(set(points)) == len(points) == min(count, shape[0] * shape[1] - 1)
