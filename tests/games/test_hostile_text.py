"""Records and positions as anybody may write them: a value or one line of error, within bounds of
time and memory; what is written is read back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hostile_text import bounds, outcome, texts
from hypothesis import given, settings
from hypothesis import strategies as st

from azero.games.chess import pgn
from azero.games.chess.fen import START as CHESS_START
from azero.games.chess.text import board_of_fen, format_fen
from azero.games.go import sgf
from azero.games.go.sgf_write import format_game
from azero.games.notes import Note
from azero.games.shogi import csa, kif
from azero.games.shogi.sfen import START as SHOGI_START
from azero.games.shogi.text import board_of_sfen, format_sfen

SGF = [
    "(;GM[1]SZ[9]KM[6.5]PB[a]PW[b\\]]RE[B+R];B[ee]C[x(;)];W[];B[tt](;W[aa])(;W[bb]))",
    "(;FF[4]CA[GB18030]AB[aa:cc]AW[dd]PL[W]HA[3];W[ab])\n(;SZ[5:3])",
]
SGF_WORDS = [
    "(",
    ";",
    ")",
    "[",
    "]",
    "\\",
    "\n",
    "\\\n",
    "C[",
    "AB[aa]",
    "AE[aa:zz]",
    "GM[1]",
    "SZ[",
    "99",
    "HA[",
    "KM[1e999]",
    "B[tt]",
    "W[]",
    " ",
    "\xff",
    "CA[utf-7]",
]
PGN = [
    '[Event "a"]\n[FEN "8/8/8/8/8/8/k1K5/7R w - - 0 1"]\n\n1. Rh1 {a} 1... Ka1 (1... Ka3 '
    "$1) 2. Kc1 *\n",
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 1-0\n",
]
PGN_WORDS = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    '"',
    "\\",
    "\n",
    ";",
    "%",
    "$9",
    "!?",
    "1.",
    "e4",
    "O-O",
    "exd8=Q+",
    "1-0",
    "*",
    '[FEN "',
    "Nbd2",
    "0",
    "-",
]
KIF = [
    "手合割：平手\n先手：a\n後手：b\n手数----指手---------消費時間--\n   1 ７六歩(77)\n   2 ３四歩(33)\n   3 投了\n",
    "後手の持駒：飛二\n|v香v桂 ・ ・v玉 ・ ・ ・ ・|一\n先手の持駒：なし\n",
]
KIF_WORDS = [
    "1 ",
    "２",
    "六",
    "歩",
    "(77)",
    "(00)",
    "\n",
    " ",
    "：",
    "手合割",
    "|",
    "v",
    "・",
    "同　",
    "+",
    "/",
    "先手の持駒：",
    "十九",
    "打",
    "成",
    "変化",
    "\t",
]
KI2 = [
    "手合割：平手\n▲７六歩　△３四歩　▲２二角成　△同　銀\n▲５五角△３三角打\nまで6手で後手の勝ち\n"
]
KI2_WORDS = [
    "▲",
    "△",
    "７",
    "六",
    "歩",
    "角",
    "同　",
    "左",
    "直",
    "上",
    "寄",
    "成",
    "不成",
    "打",
    "\n",
    "　",
    "*",
]
CSA = [
    csa.format_csa([], ending="%TORYO") + "+7776FU\n,T1\n-3334FU\n",
    "PI82HI22KA\n+\n+7776FU\n/\nP1+00AL\nP-00FU\n-\n",
]
CSA_WORDS = [
    "P",
    "PI",
    "P1",
    "P+",
    "00AL",
    "00FU",
    "99OU",
    "+",
    "-",
    "\n",
    ",",
    "N+",
    "T",
    "%",
    "+7776FU",
    "*",
    " ",
    "/",
    "V2.2",
    "'",
    "%+ILLEGAL_ACTION",
    "٣",
]
FEN_WORDS = [
    "/",
    "8",
    "9",
    "k",
    "K",
    "p",
    "Q",
    " ",
    "w",
    "b",
    "-",
    "KQkq",
    "e3",
    "0",
    "1",
    "99999999",
    "٣",
    "²",
]
SFEN_WORDS = [
    "/",
    "9",
    "1",
    "k",
    "K",
    "+P",
    "+",
    " ",
    "b",
    "w",
    "-",
    "2P",
    "18p",
    "0",
    "99999999",
    "٣",
    "²",
    "startpos",
    "sfen",
]

FORMATS: dict[str, tuple[list[str], list[str], Callable[[str], Any]]] = {
    "sgf": (
        SGF,
        SGF_WORDS,
        lambda text: list(sgf.parse_games(text.encode("latin-1", errors="replace"), "x")),
    ),
    "sgf in UTF-8": (SGF, SGF_WORDS, lambda text: list(sgf.parse_games(text.encode(), "x", []))),
    "pgn": (PGN, PGN_WORDS, lambda text: list(pgn.parse_games(text, "x"))),
    "ki2": (KI2, KI2_WORDS, lambda text: list(kif.parse_games(text, "x"))),
    "kif": (KIF, KIF_WORDS, lambda text: list(kif.parse_games(text, "x"))),
    "csa": (CSA, CSA_WORDS, lambda text: list(csa.parse_games(text, "x"))),
    "fen": (
        [CHESS_START, "8/8/8/8/8/8/k1K5/7R w - - 0 1"],
        FEN_WORDS,
        lambda text: format_fen(board_of_fen(text)),
    ),
    "sfen": (
        [SHOGI_START, "4k4/9/9/9/9/9/9/9/4K4 b 2R2b4g4s4n4l18p 1"],
        SFEN_WORDS,
        lambda text: format_sfen(board_of_sfen(text)),
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_any_text_is_read_or_refused_in_one_line(name: str) -> None:
    valid, words, parse = FORMATS[name]

    @given(texts(valid, words))
    def check(text: str) -> None:
        outcome(lambda: parse(text))

    check()


@given(st.binary(max_size=300))
def test_any_bytes_are_sgf_or_not(content: bytes) -> None:
    outcome(lambda: list(sgf.parse_games(b"(;" + content, "x")))


HOSTILE = 200_000
"""Characters of a hostile file."""
REPEATED = [
    ("sgf", "", "(;GM[1]C[\\\n", ""),
    ("sgf", "", "(;GM[1]C[\\]", ""),
    ("sgf", "", "(;CA[", ""),
    ("sgf", "(;C[", "\\\n", "])"),
    ("sgf", "", "(;", ""),
    ("sgf", "(;GM[1]", "(;B[aa]", ""),
    ("sgf", "(", " ", ""),
    ("sgf", "(;SZ[", "9:", "])"),
    ("sgf", "(;HA[", "9", "])"),
    ("sgf", "(;SZ[52]", "AE[aa:ZZ]", ")"),
    ("sgf", "\xff", "\n(;\xff", ""),
    ("pgn", "", "(", ""),
    ("pgn", "", "{", ""),
    ("pgn", "", '[a "', ""),
    ("pgn", '[a "', "\\\\", ""),
    ("pgn", "1. ", "e4", ""),
    ("pgn", "1. e4 ", "$1 ", " *"),
    ("pgn", "1. e4 ", "{a}", " *"),
    ("pgn", "1. e4 $", "9", " *"),
    ("pgn", "", " ", ""),
    ("pgn", "", "1", ""),
    ("pgn", "", "[a ", ""),
    ("pgn", '[FEN "', "8/", '"]\n1. e4'),
    ("kif", "", "1 ", ""),
    ("kif", "", "1 (", ""),
    ("kif", "1 x(0:0", " ", ""),
    ("kif", "先手の持駒：", "歩 ", "\n"),
    ("kif", "|", " 歩", "|\n"),
    ("csa", "P+", "00FU", "\n+\n"),
    ("csa", "", "/\n", ""),
    ("csa", "+\n", ",", "\n"),
    ("csa", "+\n", "T", "\n"),
    ("csa", "PI\n+\n+7776FU\n", "'a\n", ""),
    ("fen", "", "8", ""),
    ("fen", "", "8/", " w - - 0 1"),
    ("fen", "8/8/8/8/8/8/k1K5/7R w - - 0 ", "1", ""),
    ("sfen", "", "+", ""),
    ("sfen", "4k4/9/9/9/9/9/9/9/4K4 b ", "P", " 1"),
    ("sfen", "4k4/9/9/9/9/9/9/9/4K4 b - ", "1", ""),
]


@pytest.mark.parametrize(("name", "before", "unit", "after"), REPEATED)
def test_a_hostile_file_takes_little(name: str, before: str, unit: str, after: str) -> None:
    """5 s under tracing are one or two without; what is quadratic takes ten and more."""
    text = before + unit * (HOSTILE // len(unit)) + after
    with bounds(5.0, 100.0):
        outcome(lambda: FORMATS[name][2](text))


def _random_actions(
    board: Any, legal: Callable[[Any], list[int]], count: int, seed: int
) -> list[int]:
    chosen, rng = [], random.Random(seed)
    for _ in range(count):
        actions = legal(board)
        if not actions:
            break
        chosen.append(rng.choice(actions))
        board = board.after(chosen[-1])
    return chosen


FEW = min(settings.default.max_examples, 500)  # type: ignore[union-attr]
"""Examples of a test whose example takes 0.2 s or more: every move is played by plain NumPy."""
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=8)


@settings(max_examples=FEW)
@given(st.integers(0, 2**32 - 1), NAMES, NAMES)
def test_a_shogi_game_is_read_back(seed: int, black: str, white: str) -> None:
    actions = _random_actions(
        board_of_sfen(SHOGI_START), lambda board: list(board.actions), 12, seed
    )
    (record,) = csa.parse_games(
        csa.format_csa(actions, black=black, white=white, ending="%TORYO"), "x"
    )
    assert list(record.actions) == actions and (record.black, record.white) == (black, white)


@settings(max_examples=FEW)
@given(
    st.integers(0, 2**32 - 1),
    NAMES,
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=9), max_size=4
    ),
)
def test_a_chess_game_is_read_back(seed: int, white: str, comments: list[str]) -> None:
    board = board_of_fen(CHESS_START)
    actions = _random_actions(board, lambda board: list(board.actions), 12, seed)
    (record,) = pgn.parse_games(
        pgn.format_pgn(
            actions, {"White": white}, "1-0", notes=[Note(comment) for comment in comments]
        ),
        "x",
    )
    assert (
        list(record.actions) == actions and record.tags["White"] == white and record.result == "1-0"
    )
    for action in actions:
        board = board.after(action)
    assert format_fen(board_of_fen(format_fen(board))) == format_fen(board)


@given(
    st.integers(2, 19),
    st.lists(st.integers(0, 400), max_size=30),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=12),
)
def test_a_go_game_is_read_back(size: int, points: list[int], name: str) -> None:
    moves = [(number % 2, point % (size * size + 1)) for number, point in enumerate(points)]
    text = format_game(sgf.GameRecord("x", (size, size), 7.5, tuple(moves), players=(name, "]\\[")))
    (record,) = sgf.parse_games(text.encode(), "x")
    assert (
        record.moves == tuple(moves)
        and record.players == (name, "]\\[")
        and np.isclose(record.komi or 0, 7.5)
    )
