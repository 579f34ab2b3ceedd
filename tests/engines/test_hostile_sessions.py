"""Lines that nobody would send: every engine answers each of them in its own form, and goes on."""

from __future__ import annotations

import json
import re

from analysis_in_process import Client
from engine_in_process import InProcess
from hostile_text import texts
from hypothesis import given, settings
from hypothesis import strategies as st
from moves_in_process import MovesInProcess

GTP = [
    "boardsize 5",
    "7 play B C3",
    "kata-analyze B 10 maxmoves 2",
    "set_free_handicap A1 B2",
    'kata-set-rules {"ko":"SIMPLE"}',
    "time_settings 0 5 1",
    "loadsgf no.sgf 3",
    "undo",
]
GTP_WORDS = [
    " ",
    "1",
    "-1",
    "999999999999999999999",
    "B",
    "w",
    "A1",
    "Z99",
    "pass",
    "resign",
    "genmove",
    "play",
    "komi nan",
    "komi",
    "\t",
    "#",
    "{",
    "[",
    "\x00",
    "é",
    "analyze",
]
UCI = [
    "position startpos moves e2e4 e7e5",
    "setoption name MultiPV value 3",
    "go nodes 3 searchmoves e2e4",
    "position fen 8/8/8/8/8/8/k1K5/7R w - - 0 1",
    "uci",
    "isready",
]
UCI_WORDS = [
    " ",
    "go",
    "nodes",
    "1",
    "-1",
    "99999999999999999999",
    "moves",
    "e2e4",
    "position",
    "fen",
    "sfen",
    "setoption name",
    "value",
    "stop",
    "\x00",
    "é",
    "ponderhit",
    "movetime 1",
]
USI = [
    "position startpos moves 7g7f 3c3d",
    "usi",
    "isready",
    "usinewgame",
    "go nodes 3",
    "position sfen 4k4/9/9/9/9/9/9/9/4K4 b - 1",
    "gameover win",
]
JSON = [
    '{"id":"a","moves":[["B","C3"]],"rules":"tromp-taylor","boardXSize":5,"boardYSize":5,"maxVisits":2}',
    '{"id":"b","action":"terminate_all"}',
    '{"action":"query_version","id":"c"}',
]
JSON_WORDS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"id"',
    '"moves"',
    "null",
    "1e999",
    "-1",
    "NaN",
    '"B"',
    "true",
    '"analyzeTurns":[0,9]',
    '"komi":1e300',
    '"rules":{}',
    '"\\ud800"',
]
LINES = st.lists(texts(GTP, GTP_WORDS), min_size=1, max_size=8)


@given(LINES)
def test_gtp_answers_every_command(lines: list[str]) -> None:
    gtp = InProcess(5)
    for text in lines:
        for line in text.split("\n"):
            if re.match(r"\s*\d*\s*(quit|genmove|kata-genmove|lz-genmove|[\w-]*analyze)", line):
                continue
            answer = gtp.ask(line.encode(errors="replace"))
            assert answer == "" or (
                re.match(r"[=?]\d*( |\n)", answer)
                and answer.endswith("\n\n")
                and "Traceback" not in answer
            ), (line, answer)
    assert gtp.ask("1 name").startswith("=1 ")


def _engine_goes_on(game: str, lines: list[str], ready: str) -> None:
    engine = MovesInProcess(game, visits=2)
    for text in lines:
        if not re.search(r"\b(quit|infinite|ponder)\b", text):
            answer = engine.ask(text.encode(errors="replace").replace(b"\r", b" "))
            assert all(
                re.match(r"(id|option|uciok|usiok|readyok|info|bestmove|checkmate) ?", line)
                for line in answer.splitlines()
            ), (text, answer)
    assert ready in engine.ask("isready")


@given(st.lists(texts(UCI, UCI_WORDS), min_size=1, max_size=4))
@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
def test_uci_goes_on(lines: list[str]) -> None:
    _engine_goes_on("chess", lines, "readyok")


@given(st.lists(texts(USI, UCI_WORDS), min_size=1, max_size=4))
@settings(max_examples=settings.default.max_examples // 4)  # type: ignore[union-attr]
def test_usi_goes_on(lines: list[str]) -> None:
    _engine_goes_on("shogi", lines, "readyok")


@given(st.lists(texts(JSON, JSON_WORDS), min_size=1, max_size=6))
def test_analysis_answers_with_json(lines: list[str]) -> None:
    analysis = Client()
    for line in [*lines, "[" * 100_000]:
        before = len(analysis.messages)
        analysis.engine.handle(line)
        assert all(
            isinstance(answer, dict) and json.dumps(answer) for answer in analysis.messages[before:]
        )
    assert "error" in analysis.messages[-1]
