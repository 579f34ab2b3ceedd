"""What an engine answers before its network is there: itself, rules and boards at once, a move when
it is due, and an error in one line."""

import dataclasses
import io
import os
import re
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest
from gtp_client import GtpClient
from uniform_thinker import UniformThinker

from azero.checkpoint.exported import write_exported
from azero.data.run_files import write_config
from azero.engines.background import Background, StartError
from azero.engines.go_game import GoGame
from azero.engines.gtp.engine import GtpEngine, serve
from azero.engines.kata.engine import AnalysisEngine
from azero.engines.kata.engine import serve as serve_analysis
from azero.engines.limits import Settings
from azero.engines.lines import InputLine, LineReader, LineWriter
from azero.engines.session import Session
from azero.engines.uci import engine as uci_engine
from azero.engines.uci.dialects import UCI, USI
from azero.engines.uci.engine import UciEngine
from azero.games.chess.settings import ChessConfig
from azero.games.chess.text import ChessBoard
from azero.games.table import make
from azero.networks.settings import PooledConfig
from azero.players.thinking import Limits
from azero.settings import Config

LIGHT = (
    "azero.commands.main, azero.commands.engines, azero.engines.gtp.engine, "
    "azero.engines.kata.engine, azero.engines.uci.dialects, "
    "azero.engines.uci.engine, azero.models.naming"
)


@pytest.fixture
def gate():
    """Holds work back until it is set."""
    gate = threading.Event()
    yield gate
    gate.set()


def never(gate: threading.Event) -> Background:
    return Background(lambda give: gate.wait(60.0) and None)


def failing(error: Exception) -> Background:
    def work(give) -> None:
        raise error

    return Background(work)


def test_the_first_answers_need_no_jax() -> None:
    """JAX, Flax and Orbax take seconds to import: none of them is loaded on the way to `name`,
    `uci` or `usi`."""
    heavy = "[name for name in ('jax', 'flax', 'orbax', 'optax') if name in sys.modules]"
    output = subprocess.run(
        [sys.executable, "-c", f"import sys, {LIGHT}; print({heavy})"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == "[]\n"


def test_an_engine_ends_without_the_end_of_python() -> None:
    """With JAX that takes seconds on a busy machine, and programs kill an engine that stays."""
    program = """
import atexit
from azero.commands.engines import _protocol
atexit.register(print, "the end of Python")
with _protocol() as (_, protocol):
    protocol.write(b"bestmove e2e4")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("bestmove e2e4", "azero: starting ...\n")


def test_whether_a_network_has_draws_is_read_without_jax(tmp_path) -> None:
    ordinary = Config(game=ChessConfig())
    pooled = dataclasses.replace(ordinary, network=PooledConfig())
    variables = {"params": {"a": np.zeros(2, np.float32)}}
    for name, config in (("ordinary", ordinary), ("pooled", pooled)):
        write_exported(tmp_path / name / "exported", variables, 1, config)
        write_config(tmp_path / name, config)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "config.json").write_text("{")
    program = """
import sys
from pathlib import Path
from azero.models.naming import has_draws
root = Path(sys.argv[1])
names = ("pooled", "pooled/exported", "ordinary", "ordinary/exported", "damaged", "nowhere")
print([has_draws(f"checkpoint:{root / name}") for name in names])
others = ("go9_efficient?blocks=2", "chess?blocks=2", "no such")
print([has_draws(f"random-net:{name}") for name in others])
print([has_draws(name) for name in ("model:go9", "go9?visits=3", "chess-endings", str(root))])
print([name for name in ("jax", "flax", "orbax", "optax") if name in sys.modules])
"""
    said = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said == [
        "[True, True, False, False, False, False]",
        "[True, False, False]",
        "[True, True, False, False]",
        "[]",
    ]


def test_gtp_answers_for_itself_while_the_game_is_in_the_making(gate) -> None:
    sink = io.BytesIO()
    serve(
        lambda write, is_interrupted: GtpEngine(never(gate), Settings(), write),
        io.BytesIO(b"name\n1 protocol_version\nknown_command play\nquit\n"),
        sink,
    )
    assert sink.getvalue() == b"= azero\n\n=1 2\n\n= true\n\n=\n\n"


def test_the_unprefixed_commands_of_analysis_are_carried_out_and_not_listed() -> None:
    """Sabaki takes the first of analyze, kata-analyze and lz-analyze that is listed, and shows 0%
    of the first."""
    game = GoGame(UniformThinker, (5, 5), is_interrupted=lambda: True)
    output: list[str] = []
    engine = GtpEngine(game, Settings(visits=3), output.append)
    assert (
        not {"analyze", "genmove_analyze"} & set(engine.known_commands())
        and "kata-analyze" in engine.known_commands()
    )
    for line, begin in (
        (b"known_command analyze", "= false"),
        (b"analyze b 10", "=\ninfo move A5"),
        (b"genmove_analyze b 10", "=\ninfo move A5"),
    ):
        output.clear()
        engine.handle(LineReader(io.BytesIO(line + b"\n")).take())
        assert "".join(output).startswith(begin)


@pytest.mark.parametrize("lines", [b"", b"boardsize 5\n", b"name\nshowboard\n"])
def test_what_keeps_gtp_from_starting_is_raised_and_told(lines: bytes) -> None:
    sink = io.BytesIO()
    with pytest.raises(ValueError, match="there is no directory nowhere"):
        serve(
            lambda write, _: GtpEngine(
                failing(ValueError("there is no directory nowhere")), Settings(), write
            ),
            io.BytesIO(lines),
            sink,
        )
    assert b"internal error" not in sink.getvalue() and sink.getvalue().count(b"?") <= 1


def test_a_network_that_cannot_be_loaded_answers_its_first_move_with_an_error_and_ends() -> None:
    def make_thinker(game):
        raise OSError("the checkpoint is damaged")

    game = GoGame(make_thinker, (5, 5))
    game.session.begin_to_prepare(quietly=True)
    sink = io.BytesIO()
    with pytest.raises(OSError, match="the checkpoint is damaged"):
        serve(
            lambda write, _: GtpEngine(game, Settings(), write),
            io.BytesIO(b"play b C3\ngenmove w\nname\n"),
            sink,
        )
    assert sink.getvalue() == b"=\n\n? cannot play: the checkpoint is damaged\n\n"


def test_thinking_waits_for_the_thinker_and_takes_the_wait_off_its_time(gate) -> None:
    game = make("go", size=5)
    thinker = UniformThinker(game, seconds_per_visit=0.01)

    def make_thinker(game):
        gate.wait(60.0)
        return thinker

    session = Session(game, make_thinker, is_interrupted=lambda: True)
    session.begin_to_prepare(quietly=True)
    assert not session.can_think()
    idle = session.think(session.position, Limits(), is_endless=True)
    assert not idle.moves and idle.raw_policy.shape == (26,), (
        "input ends an analysis that has not begun"
    )
    threading.Timer(0.3, gate.set).start()
    seen: list[float | None] = []
    think = thinker.think
    thinker.think = lambda position, limits, *options: (
        seen.append(limits.seconds),
        think(position, limits, *options),
    )[1]
    analysis = session.think(session.position, Limits(seconds=10.0, visits=2))
    assert seen[0] is not None and seen[0] < 9.8 and analysis.seconds >= 0.2 and analysis.moves


def test_work_goes_on_behind_the_thinker_that_is_given(gate) -> None:
    game = make("go", size=5)
    session, later = Session(game, UniformThinker), []
    session.begin_to_prepare(lambda: later.append(gate.wait(60.0)), quietly=True)
    assert (
        session.can_think(10.0)
        and session.think(session.position, Limits(visits=3)).moves
        and not later
    )
    gate.set()
    session.prepare(quietly=True)
    assert later == [True]


@pytest.mark.parametrize(
    ("dialect", "pattern"), [(UCI, "bestmove [a-h][1-8]"), (USI, "bestmove [1-9][a-i]")]
)
def test_uci_is_ready_in_time_and_moves_when_it_is_due(
    dialect, pattern: str, gate, monkeypatch
) -> None:
    """python-chess waits ten seconds for readyok, and as long for a move beyond its time: a late
    answer breaks it."""
    assert uci_engine.READY_SECONDS < 10.0
    monkeypatch.setattr(uci_engine, "READY_SECONDS", 0.1)
    into, source = os.pipe()
    sink, began = io.BytesIO(), time.monotonic()
    engine = UciEngine(dialect, never(gate), LineReader(io.FileIO(into, "rb")), LineWriter(sink))
    for line in (
        dialect.name,
        "isready",
        "position startpos",
        "go movetime 50",
        "position startpos moves nonsense",
        "go movetime 1",
        "position startpos",
    ):
        engine.handle(InputLine(line.encode()))
    os.write(source, b"isready\nstop\n")
    engine.handle(InputLine(b"go infinite"))
    os.close(source)
    assert time.monotonic() - began < 30.0
    output = sink.getvalue().decode().splitlines()
    moves = [line for line in output if line.startswith("bestmove")]
    assert (
        output[0].startswith("id name azero")
        and output.count("readyok") == 2
        and sum("an arbitrary legal move" in line for line in output) == 2
    )
    assert (
        re.match(pattern, moves[0])
        and moves[1] == f"bestmove {dialect.no_move}"
        and moves[2] == moves[0]
    )
    assert any("is not a legal move in" in line for line in output)


@pytest.mark.parametrize("fails", [False, True])
def test_readyok_comes_with_the_network_or_its_failure_or_the_next_line(gate, fails) -> None:
    """No clock runs while a program waits for it, so that the first move is not an arbitrary one."""

    def load(give) -> None:
        gate.wait(60.0)
        if fails:
            raise ValueError("no such network")
        give(None)

    session = types.SimpleNamespace(can_think=lambda: True)
    game = types.SimpleNamespace(session=session)
    into, source = os.pipe()
    sink = io.BytesIO()
    loading = Background(lambda give: load(lambda _: give(game)))
    engine = UciEngine(UCI, loading, LineReader(io.FileIO(into, "rb")), LineWriter(sink))
    asking = threading.Thread(target=engine.handle, args=(InputLine(b"isready"),))
    asking.start()
    asking.join(0.3)
    assert asking.is_alive() and not sink.getvalue()
    gate.set()
    asking.join(5.0)
    assert not asking.is_alive() and sink.getvalue() == b"readyok\n"
    os.close(source)


def test_only_the_first_isready_waits(gate, monkeypatch) -> None:
    """Programs also send it within a game, whose clock runs (python-chess before each game)."""
    monkeypatch.setattr(uci_engine, "READY_SECONDS", 0.5)
    into, source = os.pipe()
    lines = LineReader(io.FileIO(into, "rb"))
    engine = UciEngine(UCI, never(gate), lines, LineWriter(io.BytesIO()))
    spent = []
    for _ in range(2):
        began = time.monotonic()
        engine.handle(InputLine(b"isready"))
        spent.append(time.monotonic() - began)
    os.close(source)
    assert spent[0] >= 0.5 and spent[1] < 0.25


def test_readyok_does_not_keep_the_next_line_waiting(gate) -> None:
    sink = io.BytesIO()
    engine = UciEngine(UCI, never(gate), LineReader(io.BytesIO(b"quit\n")), LineWriter(sink))
    began = time.monotonic()
    engine.handle(InputLine(b"isready"))
    assert time.monotonic() - began < 2.0 and sink.getvalue() == b"readyok\n"


def test_the_clock_does_not_run_out_while_the_network_is_not_ready(gate) -> None:
    engine = UciEngine(UCI, never(gate), LineReader(io.BytesIO()), LineWriter(io.BytesIO()))
    left = 3.0
    for _ in range(10):
        began = time.monotonic()
        engine.handle(InputLine(f"go wtime {round(1000 * left)} btime 60000".encode()))
        left -= time.monotonic() - began
    assert left > 1.0


def test_a_long_game_costs_no_more_of_the_clock_than_a_short_one(gate, monkeypatch) -> None:
    engine = UciEngine(UCI, never(gate), LineReader(io.BytesIO()), LineWriter(io.BytesIO()))
    played: list[int] = []
    after = ChessBoard.after
    monkeypatch.setattr(
        ChessBoard, "after", lambda board, action: played.append(action) or after(board, action)
    )
    moves = ["g1f3", "g8f6", "f3g1", "f6g8", "g1h3", "g8h6", "h3g1", "h6g8", "b1c3", "b8c6"]
    for count in (8, 10):
        played.clear()
        engine.handle(InputLine(f"position startpos moves {' '.join(moves[:count])}".encode()))
        engine.handle(InputLine(b"go movetime 1"))
    assert len(played) == 2


def test_a_move_that_is_due_is_one_of_searchmoves_and_none_is_not_called_a_move(gate) -> None:
    sink = io.BytesIO()
    engine = UciEngine(UCI, never(gate), LineReader(io.BytesIO()), LineWriter(sink))
    for line in (
        "go movetime 1 searchmoves e2e5 e2e4 d2d4",
        "position fen 7k/6Q1/6K1/8/8/8/8/8 b - - 0 1",
        "go movetime 1",
    ):
        engine.handle(InputLine(line.encode()))
    told, move, none = sink.getvalue().decode().splitlines()
    assert "an arbitrary legal move" in told and move == "bestmove e2e4"
    assert none == "bestmove (none)"


def test_uci_ends_with_what_keeps_it_from_starting() -> None:
    sink = io.BytesIO()
    with pytest.raises(ValueError, match="uci is for chess"):
        UciEngine(
            UCI,
            failing(ValueError("uci is for chess")),
            LineReader(io.BytesIO(b"uci\n")),
            LineWriter(sink),
        ).run()


@pytest.mark.parametrize("dialect", [UCI, USI])
def test_a_search_that_waited_for_a_network_says_only_why_there_is_none(gate, dialect) -> None:
    def load(give) -> None:
        gate.wait(60.0)
        raise ValueError("there is no directory nowhere")

    into, source = os.pipe()
    sink = io.BytesIO()
    lines = LineReader(io.FileIO(into, "rb"))
    engine = UciEngine(dialect, Background(load), lines, LineWriter(sink))
    os.write(source, b"position startpos\ngo nodes 10\n")
    threading.Timer(0.3, gate.set).start()
    with pytest.raises(ValueError, match="there is no directory nowhere"):
        engine.run()
    os.close(source)
    assert sink.getvalue() == b"info string cannot play: there is no directory nowhere\n"


def test_the_analysis_engine_answers_for_itself_and_ends_with_what_keeps_it_from_starting() -> None:
    sink = io.BytesIO()
    engine = AnalysisEngine(
        failing(ValueError("no such network")), lambda text: sink.write(text.encode())
    )
    engine.handle('{"id": "v", "action": "query_version"}')
    engine.handle('{"id": "q", "moves": [], "rules": "chinese", "boardXSize": 5, "boardYSize": 5}')
    assert sink.getvalue().count(b"\n") == 2 and b"no such network" in sink.getvalue()
    with pytest.raises(ValueError, match="no such network"):
        serve_analysis(
            lambda write: AnalysisEngine(failing(ValueError("no such network")), write),
            io.BytesIO(b""),
            io.BytesIO(),
        )


def test_work_that_fails_is_a_start_error_with_its_cause() -> None:
    with pytest.raises(StartError, match=r"^broken$") as raised:
        failing(ValueError("broken")).result()
    assert isinstance(raised.value.__cause__, ValueError)
    with pytest.raises(StartError, match="KeyError"):
        failing(KeyError("x")).result()


def test_a_process_answers_its_name_before_anything_is_loaded() -> None:
    """Through real pipes; `quit` ends it at once, whatever is still being compiled."""
    client = GtpClient(
        [sys.executable, "-m", "azero", "gtp", "--random-net", "go9"], dict(os.environ)
    )
    try:
        assert client.ask("name") == "azero"
        output = [text for _, text in client.complaints]
        assert client.ask("quit") == "" and client.process.wait(30.0) == 0
        assert not any("ready after" in text for text in output)
    finally:
        client.process.kill()
        client.close()
