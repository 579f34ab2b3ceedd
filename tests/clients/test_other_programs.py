"""The engines under other people's code, as its users run it: KaTrain, Sabaki's module for GTP,
KataGo's example of queries, python-chess, cshogi.

Each starts cold, with an empty cache of compiled programs, and then warm; all time limits are the
programs' own. They are slow, and live in environments of their own: `tests/clients/README.md` says
how to make them.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from needs import require_module

HERE = Path(__file__).parent
AZERO = [sys.executable, "-m", "azero"]
GO = ["--random-net", "go5?blocks=1&filters=8", "--visits", "8"]
TINY = "blocks=1&filters=8"
LONGEST = 1800
"""Seconds for a whole session with a program."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * LONGEST)]


@pytest.fixture(scope="module", params=["cold", "warm"])
def environment(request, tmp_path_factory) -> dict[str, str]:
    """Of the engine: an empty cache of compiled programs, or the one that the cold start has
    filled."""
    cache = tmp_path_factory.getbasetemp() / "programs"
    assert cache.exists() == (request.param == "warm")
    cache.mkdir(exist_ok=True)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    return {**kept, "JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PLATFORMS": "cpu"}


def setting(name: str, what: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set: {what} (tests/clients/README.md)")
    return value


def session(command: list[str], environment: dict[str, str]) -> dict:
    """Run a session to its end and return the JSON object that it prints last."""
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LONGEST
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout.strip().splitlines()[-1])


def test_katrain_analyses_plays_reports_and_saves(environment) -> None:
    python = setting("AZERO_KATRAIN_PYTHON", "the Python with KaTrain")
    seen = session([python, str(HERE / "katrain_session.py"), *AZERO, "analysis", *GO], environment)
    assert len(seen["rules"]) == 7 and len(seen["ais"]) >= 14 and seen["saved"] > 1000
    assert seen["errors"] == []
    assert (
        len(seen["scores"]) == 7
        and None not in seen["scores"]
        and None not in seen["losses"]
        and set(seen["ownership"]) == {25}
    )
    assert set(seen["report"]["moves"]) == {"B", "W"} and all(seen["report"]["moves"].values())


def test_sabaki_shows_win_rates(environment) -> None:
    modules = setting("AZERO_SABAKI_MODULES", "the node_modules with @sabaki/gtp")
    seen = session(
        ["node", str(HERE / "sabaki_session.js"), *AZERO, "gtp", *GO],
        {**environment, "NODE_PATH": modules},
    )
    assert (
        seen["name"] == "azero"
        and seen["analysis"] == "kata-analyze"
        and not seen["analyze"]
        and not seen["genmove_analyze"]
    )
    assert (
        all(1 < move["percent"] < 99 for report in seen["reports"] for move in report)
        and seen["moved"].startswith("play ")
        and seen["genmove"]
    )


def test_katagos_example_of_queries(environment) -> None:
    """One engine is asked about every position of a game, as KataGo's
    python/query_analysis_engine_example.py asks it."""
    moves = [["b", "C3"], ["w", "D4"], ["b", "C4"]]
    lines = []
    for number in range(len(moves) + 1):
        fields = {
            "id": str(number),
            "moves": moves[:number],
            "initialStones": [],
            "rules": "Chinese",
            "komi": 6.5,
            "boardXSize": 5,
            "boardYSize": 5,
        }
        lines.append(json.dumps({**fields, "includePolicy": True}))
    ended = subprocess.run(
        [*AZERO, "analysis", *GO],
        env=environment,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )
    answers = {answer["id"]: answer for answer in map(json.loads, ended.stdout.splitlines())}
    assert (
        ended.returncode == 0
        and set(answers) == {"0", "1", "2", "3"}
        and not any("error" in answer for answer in answers.values())
    )
    assert all(
        answer["moveInfos"] and len(answer["policy"]) == 26 and "scoreLead" in answer["rootInfo"]
        for answer in answers.values()
    )


def test_python_chess_with_its_own_limits(environment) -> None:
    """Its default is ten seconds for every answer, and for a move ten beyond the move's time."""
    chess = require_module("chess")
    engines = require_module("chess.engine")
    with engines.SimpleEngine.popen_uci(
        [*AZERO, "uci", "--random-net", f"chess?{TINY}"], env=environment
    ) as engine:
        engine.ping()
        board = chess.Board()
        for _ in range(4):
            board.push(engine.play(board, engines.Limit(time=0.5)).move)
        assert engine.analyse(board, engines.Limit(time=0.5)) is not None
        engine.play(board, engines.Limit(mate=1))


def test_cshogi_with_its_own_limits(environment, tmp_path: Path) -> None:
    usi = require_module("cshogi.usi")
    script = tmp_path / "engine.sh"
    script.write_text(f"#!/bin/sh\nexec {' '.join(AZERO)} usi --random-net 'shogi?{TINY}'\n")
    script.chmod(0o755)
    kept = dict(os.environ)
    os.environ.update(environment)
    try:
        engine = usi.Engine(str(script))
        engine.isready()
        engine.usinewgame()
        moves: list[str] = []
        for _ in range(3):
            engine.position(moves=moves)
            move, _ = engine.go(byoyomi=1000)
            moves.append(move)
        engine.quit()
    finally:
        os.environ.clear()
        os.environ.update(kept)
    assert len(moves) == 3 and all(len(move) in (4, 5) for move in moves)


@pytest.mark.parametrize(
    ("protocol", "ask", "end"),
    [("gtp", "name", "= azero"), ("uci", "uci", "uciok"), ("usi", "usi", "usiok")],
)
def test_the_first_answer_comes_within_two_seconds_of_a_cold_start(
    protocol: str, ask: str, end: str, environment
) -> None:
    """The best of three starts: other things that the machine does at the moment are not the
    engine's."""
    assert min(first_answer(protocol, ask, end, environment) for _ in range(3)) < 2.0


def first_answer(protocol: str, ask: str, end: str, environment: dict[str, str]) -> float:
    """Return the seconds from the start of a process to its first answer."""
    network = {"gtp": "go9", "uci": "chess", "usi": "shogi"}[protocol]
    began = time.monotonic()
    with subprocess.Popen(
        [*AZERO, protocol, "--random-net", network],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as engine:
        print(ask, file=engine.stdin, flush=True)
        while engine.stdout.readline().strip() != end:
            assert engine.poll() is None
        took = time.monotonic() - began
        print("quit", file=engine.stdin, flush=True)
        engine.wait(30.0)
    return took
