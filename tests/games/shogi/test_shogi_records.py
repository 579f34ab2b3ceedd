"""CSA, KIF and KI2 there and back, against cshogi where it is installed, and mistakes that are named."""

from __future__ import annotations

import random
import re

import pytest
from needs import require_module

from azero.games.archives import RecordError
from azero.games.shogi import csa, ki2, kif
from azero.games.shogi.record_files import read_games
from azero.games.shogi.sfen import START
from azero.games.shogi.text import board_of_sfen, format_usi

MIDDLE = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1"


def random_game(sfen: str, seed: int, length: int = 60) -> list[int]:
    chance, board, actions = random.Random(seed), board_of_sfen(sfen), []
    while len(actions) < length and board.actions:
        takes = [
            action
            for action in board.actions
            if "+" in format_usi(board, action) or board.plies % 3
        ]
        actions.append(chance.choice(takes or board.actions))
        board = board.after(actions[-1])
    return actions


def names(sfen: str, actions) -> list[str]:
    board, usi = board_of_sfen(sfen), []
    for action in actions:
        usi.append(format_usi(board, action))
        board = board.after(action)
    return usi


GAMES = [(START, 1), (kif.HANDICAPS["二枚落ち"], 2), (MIDDLE, 3)]


@pytest.mark.parametrize(("sfen", "seed"), GAMES)
def test_there_and_back(sfen: str, seed: int) -> None:
    actions = random_game(sfen, seed)
    (back,) = csa.parse_games(csa.format_csa(actions, sfen, "one", "two", "%TORYO"), "here")
    assert (list(back.actions), back.sfen, back.black, back.white, back.ending) == (
        actions,
        sfen,
        "one",
        "two",
        "%TORYO",
    )
    # Who resigns is to move.
    is_blacks_turn = (" b " in sfen) == (len(actions) % 2 == 0)
    assert back.winner == ("white" if is_blacks_turn else "black")


def test_a_player_has_one_line() -> None:
    text = csa.format_csa(random_game(START, 5), black="a\n%TORYO", white="b\r\nPI")
    (back,) = csa.parse_games(text, "here")
    assert (back.black, back.white, back.ending) == ("a %TORYO", "b PI", "")


@pytest.mark.parametrize(("sfen", "seed"), GAMES)
def test_cshogi_reads_what_is_written(sfen: str, seed: int) -> None:
    cshogi = require_module("cshogi")
    from cshogi import CSA

    actions = random_game(sfen, seed)
    theirs = CSA.Parser.parse_str(csa.format_csa(actions, sfen, "one", "two", "%TORYO"))[0]
    assert [cshogi.move_to_usi(move) for move in theirs.moves] == names(sfen, actions)
    assert (
        cshogi.Board(theirs.sfen).sfen().split()[:3] == sfen.split()[:3]
        and theirs.endgame == "%TORYO"
    )


def test_what_cshogi_writes_is_read(tmp_path) -> None:
    cshogi = require_module("cshogi")
    from cshogi import CSA, KIF

    actions = random_game(START, 5)
    writers = CSA.Exporter(str(tmp_path / "game.csa")), KIF.Exporter(str(tmp_path / "game.kif"))
    writers[0].info(cshogi.Board(), names=["one", "two"])
    writers[1].header(["一", "二"])
    board = cshogi.Board()
    for usi in names(START, actions):
        move = board.push_usi(usi)
        writers[0].move(move, time=3)
        writers[1].move(move, sec=3)
    writers[0].endgame("%SENNICHITE")
    writers[1].end("sennichite")
    for writer in writers:
        writer.close()
    for name, players in (("game.csa", ("one", "two")), ("game.kif", ("一", "二"))):
        (record,) = read_games(tmp_path / name)
        assert (list(record.actions), record.sfen, record.winner) == (actions, START, "draw")
        assert (record.black, record.white) == players


CSA_GAME = """'a comment
V2.2
N+NAKAHARA
N-YONENAGA
$EVENT:13th match
PI82HI22KA
P+00HI
-
-3334FU,T6
+7776FU
T12
%CHUDAN
/
P-11OU21FU22FU23FU24FU25FU26FU27FU28FU29FU
P+59OU
P-00AL
+
+5958OU
%TSUMI
"""


def test_other_ways_to_write_csa() -> None:
    with pytest.raises(ValueError, match=r"here game 2, line 17: .*White has two pawns on file 2"):
        list(csa.parse_games(CSA_GAME, "here"))
    first, second = csa.parse_games(
        CSA_GAME.replace("21FU22FU23FU24FU25FU26FU27FU28FU29FU", "22FU33FU"), "here"
    )
    assert first.sfen == "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w R 1"
    assert (
        names(first.sfen, first.actions) == ["3c3d", "7g7f"]
        and first.winner == ""
        and first.black == "NAKAHARA"
    )
    assert (
        second.sfen == "8k/7p1/6p2/9/9/9/9/9/4K4 b 2r2b4g4s4n4l16p 1" and second.winner == "black"
    )


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_the_lines_of_csa_may_end_as_on_any_system(ending: str) -> None:
    text = "N+one\nPI\n\n+\n+7776FU\n%TORYO\n/\nPI\n+\n+2726FU\n".replace("\n", ending)
    first, second = csa.parse_games(text, "here")
    assert (first.black, first.winner, first.ending) == ("one", "black", "%TORYO")
    assert names(START, first.actions) == ["7g7f"] and names(START, second.actions) == ["2g2f"]


def test_the_statements_of_csa_may_stand_on_one_line() -> None:
    (line,) = csa.parse_games("V2.2,N+one,$EVENT:x,PI,+,+7776FU,T3,-3334FU,%TORYO\n", "here")
    assert (line.black, line.facts, line.winner) == ("one", (("EVENT", "x"),), "white")
    assert names(START, line.actions) == ["7g7f", "3c3d"]


@pytest.mark.parametrize(
    ("statements", "winner", "ending"),
    [
        ("%MATTA\n%TORYO", "black", "%TORYO"),
        ("%TORYO\n%KACHI", "black", "%TORYO"),
        ("%MATTA\n%CHUDAN", "", "%MATTA"),
    ],
)
def test_the_first_special_move_with_a_result_ends_a_game_of_csa(
    statements: str, winner: str, ending: str
) -> None:
    (game,) = csa.parse_games(f"PI\n+\n+7776FU\n{statements}\n", "here")
    assert (game.winner, game.ending) == (winner, ending)


def test_a_comment_of_csa_may_stand_behind_a_move() -> None:
    (game,) = csa.parse_games("PI\n+\n+7776FU,T1,'v=0.25,r=0.5,32\n-3334FU, 'two\n'three\n", "here")
    assert names(START, game.actions) == ["7g7f", "3c3d"]
    assert game.comments == ("v=0.25,r=0.5,32", "two three")


KIF_DIAGRAM = """後手の持駒：金　銀　桂　歩五
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
|v香 ・ ・ ・ ・ ・ ・v桂v香|一
| ・ ・ ・ ・ ・ と ・v金v玉|二
| ・ ・v桂v歩 ・ 銀 ・ ・ ・|三
|v歩 ・v歩 ・ ・ ・ ・ 歩v歩|四
| ・ ・ ・ 歩 ・ ・ 銀v歩 ・|五
| ・ 歩 歩v角 ・ ・ 歩 ・ 歩|六
| 歩 ・ ・ ・ ・ ・ 金 銀 ・|七
| 飛 ・ ・ ・ ・ ・ ・ ・ ・|八
| 香 桂 ・ ・ ・ ・v角 玉 香|九
+---------------------------+
先手の持駒：金　飛
後手番
先手：one
後手：two
手数----指手---------消費時間--
   1 ５七角成(66)
   2 ６一金打
   3 ５二桂打
   4 ３四銀成(43)
   5 ５九金打
   6 ２三全(34)
   7 同　金(22)
   8 投了
"""
KIF_HANDICAP = """手合割：二枚落ち
先手：one
後手：two
   1 ５二玉(51)
   2 ５八飛(28)
   3 ３四歩(33)
   4 投了
"""


@pytest.mark.parametrize(
    ("text", "sfen", "usi", "winner"),
    [
        (KIF_DIAGRAM, MIDDLE, "6f5g+ G*6a N*5b 4c3d+ G*5i 3d2c 2b2c", "white"),
        (KIF_HANDICAP, kif.HANDICAPS["二枚落ち"], "5a5b 2h5h 3c3d", "white"),
        (
            KIF_HANDICAP.replace("二枚落ち", "五枚落ち"),
            "2sgkgsn1/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
            "5a5b 2h5h 3c3d",
            "white",
        ),
        (
            KIF_HANDICAP.replace("二枚落ち", "左七枚落ち"),
            "2sgkg3/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1",
            "5a5b 2h5h 3c3d",
            "white",
        ),
    ],
)
def test_kif_begins_at_a_diagram_or_a_handicap(text: str, sfen: str, usi: str, winner: str) -> None:
    (record,) = kif.parse_games(text, "here")
    assert record.sfen == sfen and names(sfen, record.actions) == usi.split()
    assert (record.black, record.white, record.ending) == ("one", "two", "投了")
    assert record.winner == winner  # who resigns is to move


def test_other_ways_to_write_kif() -> None:
    text = """# ---- Kifu for Windows ----
手合割：平手　　
先手：one
後手：two
手数----指手---------消費時間--
   1 ７六歩(77)   ( 0:16/00:00:16)
*a comment
   2 ３四歩(33)   ( 0:00/00:00:00)+
   3 ２二角成(88) ( 0:00/00:00:16)
   4 同　銀(31)
   5 ５五角打
   6 中断
まで5手で中断

変化：2手
   2 ８四歩(83)
"""
    (record,) = kif.parse_games(text, "here")
    assert names(START, record.actions) == ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]
    assert (record.winner, record.ending, record.black) == ("", "中断", "one")


@pytest.mark.parametrize(
    ("line", "winner", "ending"),
    [
        ("まで2手で後手の勝ち", "white", ""),
        ("まで２手で先手の反則勝ち", "black", ""),
        ("まで2手で先手の反則負け", "white", ""),
        ("まで、2手で時間切れにより後手の勝ち", "white", ""),
        ("まで2手で千日手", "draw", "千日手"),
        ("まで2手で投了", "white", "投了"),
        ("まで2手で封じ手", "", ""),
        ("3 不戦敗\nまで2手で後手の勝ち", "white", "不戦敗"),
        ("3 接続切れ (0:10/00:10:00)\nまで2手で後手の勝ち", "white", "接続切れ"),
        ("3 時間切れ", "white", "時間切れ"),
        ("3 中断\nまで2手で中断", "", "中断"),
        ("3 不戦勝", "black", "不戦勝"),
        ("3 不戦敗", "white", "不戦敗"),
        ("3 投了\nまで2手で先手の勝ち", "white", "投了"),
        ("3 勝ち宣言", "black", "勝ち宣言"),
        ("3 宣言勝ち", "black", "宣言勝ち"),
        ("3 入玉宣言", "black", "入玉宣言"),  # cshogi
    ],
)
def test_the_line_under_the_moves_may_have_the_result(line: str, winner: str, ending: str) -> None:
    (record,) = kif.parse_games(f"1 ７六歩(77)\n2 ３四歩(33)\n{line}\n", "here")
    assert (record.winner, record.ending, len(record.actions)) == (winner, ending, 2)


def test_the_moves_of_kif_may_have_the_mark_of_the_side() -> None:
    rows = ("1 ▲７六歩(77)", "2 △３四歩(33)", "3 ☗２二角　成(88)", "4 ▽同　銀(31)", "5 ▲５五角打")
    (record,) = kif.parse_games("\n".join(rows), "here")
    assert names(START, record.actions) == ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]


@pytest.mark.parametrize("ranks", ["6425", "六四二五", "６４２５"])
def test_the_digits_of_kif_and_ki2_may_be_in_half_width(ranks: str) -> None:
    first, second, third, fifth = ranks
    moves = (f"7{first}歩", f"3{second}歩", f"2{third}角成", "同　銀", f"5{fifth}角")
    starts = ("(77)", "(33)", "(88)", "(31)", "打")
    pairs = zip(moves, starts, strict=True)
    text = "\n".join(f"{number} {move}{start}" for number, (move, start) in enumerate(pairs, 1))
    for written in (text, " ".join(f"▲{move}" for move in moves)):
        (record,) = kif.parse_games(written, "here")
        assert names(START, record.actions) == ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"]


def test_the_colons_of_kif_may_be_in_half_width() -> None:
    text = "開始日時:2024/01/01 09:00\n手合割:角落ち\n下手:one\n上手：two:2\n1 ８四歩(83)\n"
    (record,) = kif.parse_games(text, "here")
    assert record.sfen == kif.HANDICAPS["角落ち"] and (record.black, record.white) == (
        "one",
        "two:2",
    )
    assert record.facts == (("START_TIME", "2024/01/01 09:00"),)


@pytest.mark.parametrize("end", ["まで1手で先手の勝ち", "2 投了", "2 中断\nまで1手で中断"])
def test_a_second_game_in_a_file_is_not_read_as_the_rest_of_the_first(end: str) -> None:
    text = f"手合割：平手\n1 ７六歩(77)\n{end}\n\n手合割：平手\n1 ８四歩(83)\n"
    with pytest.raises(ValueError, match=r"here game 1, line \d: another game begins"):
        list(kif.parse_games(text, "here"))


KIF_ONE_KING = "|v玉 ・ ・ ・ ・ ・ ・ ・ ・|\n" + "| ・ ・ ・ ・ ・ ・ ・ ・ ・|\n" * 8


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        (csa, "PI\n+\n+7775FU\n", r"here game 1, line 3: \+7775FU is not a legal move"),
        (csa, "PI\n+\n-3334FU\n", "here game 1, line 3: -3334FU is not a move of the side to play"),
        (csa, "PI\n+\n+7776KI\n", "here game 1, line 3: .7776KI moves a piece that is not there"),
        (csa, "PI\n+\nhello\n", "here game 1, line 3: 'hello' is not CSA"),
        (csa, "hello\n", "here game 1, line 1: 'hello' is not CSA"),
        (csa, "P10AL\n", "here game 1, line 1: 0AL is not a piece; they are . or - and FU"),
        (csa, "PI82HI2KA\n+\n", "here game 1, line 1: 'PI82HI2KA' is not CSA"),
        (csa, "PI\nP+00FU5FU\n+\n", "here game 1, line 2: 'P.00FU5FU' is not CSA"),
        (csa, "", "here: there is no game in it"),
        (csa, "/\n\n/\n", "here: there is no game in it"),
        (csa, "V2.2\n", "here game 1: it does not say who moves first"),
        (kif, "1 ７五歩(77)\n", "here game 1, line 1: '７五歩.77.' is not a legal move"),
        (
            kif,
            "1 ７六金(77)\n",
            "here game 1, line 1: '７六金.77.' moves a piece that is not there",
        ),
        (kif, "1 ７六歩\n", "here game 1, line 1: '７六歩' is not a move in KIF"),
        (kif, "1 70歩(77)\n", "here game 1, line 1: '70歩.77.' is not a move in KIF"),
        (kif, "1 ▲５五角打\n", "here game 1, line 1: '▲５五角打' is not a legal move"),
        (kif, "1 ▲５五角右\n", "here game 1, line 1: '▲５五角右' is not a move in KIF"),
        (
            kif,
            "手合割：その他\n1 ３四歩(33)\n",
            "here game 1, line 2: the handicap 'その他' needs a diagram; those without one are 平手",
        ),
        (kif, "hello\n", "here game 1, line 1: there is no header, diagram or move in KIF"),
        (kif, "", "here game 1, line 0: there is no header, diagram or move in KIF"),
        (kif, "▲７六歩 △３四\n", "here game 1, line 1: '△３四' is not a move in KI2"),
        (kif, "▲７五歩\n", "here game 1, line 1: '▲７五歩' is not a legal move"),
        (kif, "▲同歩\n", "here game 1, line 1: '▲同歩' is not a legal move"),
        (kif, "▲５八金\n", "here game 1, line 1: '▲５八金' could be 6i5h or 4i5h"),
        (kif, "後手の持駒：王\n", "here game 1, line 1: '王' is not pieces in hand"),
        (kif, KIF_ONE_KING, "here game 1, line 9: .*Black has 0 kings"),
    ],
)
def test_mistakes_are_named(module, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(module.parse_games(text, "here"))


@pytest.mark.parametrize("piece", ["玉", "と", "成銀"])
@pytest.mark.parametrize("skipped", [None, []])
def test_only_pieces_of_a_hand_are_dropped(piece: str, skipped: list[RecordError] | None) -> None:
    with pytest.raises(ValueError, match=f"line 1: '５五{piece}打' is not a legal move"):
        list(kif.parse_games(f"1 ５五{piece}打\n", "here", skipped))


@pytest.mark.parametrize(
    ("name", "text"), [("A.CSA", "PI\n+\n+7776FU\n"), ("A.KIF", "1 ７六歩(77)\n")]
)
def test_the_case_of_a_suffix_does_not_matter(tmp_path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (record,) = read_games(tmp_path / name)
    assert names(START, record.actions) == ["7g7f"]


KI2 = """開始日時：2026/11/27
手合割：平手
先手：one
後手：two

▲７六歩　△３四歩　▲２二角成　△同　銀
*a comment
▲５五角打△３三角
▲同角成　△同　桂
まで8手で後手の勝ち
"""


@pytest.mark.parametrize("suffix", [".ki2", ".KI2U", ".kif"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
def test_a_game_in_ki2(tmp_path, suffix: str, encoding: str) -> None:
    """A drop without 打 is one where no piece on the board can go to the square."""
    path = tmp_path / f"game{suffix}"
    path.write_bytes(KI2.encode(encoding))
    (record,) = read_games(path)
    moves = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e", "B*3c", "5e3c+", "2a3c"]
    assert names(START, record.actions) == moves and record.winner == "white"
    assert (record.black, record.white, record.comments[3]) == ("one", "two", "a comment")
    assert dict(record.facts) == {"START_TIME": "2026/11/27"}
    assert list(read_games(path, [])) == [record]


def test_ki2_after_kif_is_a_line_about_the_file(tmp_path) -> None:
    path, skipped = tmp_path / "game.kif", list[RecordError]()
    path.write_text("1 ７六歩(77)\n▲３四歩\n")
    assert list(read_games(path, skipped)) == []
    assert "line 2: '▲３四歩' is in KI2, and the moves before it are in KIF" in str(skipped[0])


def with_pieces(pieces: str, side: str = "b") -> str:
    """Return an SFEN of pieces with their squares and both kings, as in "G9a +R4h"."""
    board = {word[-2:]: word[:-2] for word in [*pieces.split(), "K1i", "k3h"]}
    rows = (
        "".join(board.get(f"{file}{rank}", "1") for file in range(9, 0, -1)) for rank in "abcdefghi"
    )
    return f"{'/'.join(rows)} {side} - 1"


@pytest.mark.parametrize(
    ("sfen", "moves"),
    [
        (START, "５八金右 4i5h ５八金左 6i5h"),
        (START.replace(" b ", " w "), "５二金右 6a5b ５二金左 4a5b"),
        (with_pieces("S9i S8i S7i"), "８八銀左 9i8h ８八銀直 8i8h ８八銀右 7i8h"),
        (with_pieces("G7b G9c"), "８二金寄 7b8b ８二金上 9c8b"),
        (with_pieces("+R9a +R8d"), "８二龍引 9a8b ８二竜上 8d8b ８二竜行 8d8b"),
        (with_pieces("+R5b +R2c"), "４三龍引 5b4c ４三龍寄 2c4c"),
        (with_pieces("+R4e +R1e"), "３五龍左 4e3e ３五龍右 1e3e"),
        (with_pieces("+B9a +B8a"), "８二馬左 9a8b ８二馬右 8a8b"),
        (with_pieces("+B9i +B5i"), "７七馬左 9i7g ７七馬右 5i7g"),
        (
            with_pieces("+P6d +P5d +P4d +P6c +P4c +P5b"),
            "５三と左上 6d5c ５三と直 5d5c ５三と右上 4d5c ５三と左寄 6c5c ５三と右寄 4c5c ５三と引 5b5c",
        ),
        (with_pieces("S5d s5g"), "５三銀成 5d5c+ ５三銀不成 5d5c ６三銀成 5d6c+"),
    ],
)
def test_pieces_are_told_apart_in_ki2(sfen: str, moves: str) -> None:
    """From the right and the left as the mover sees them; up is forward."""
    board, words = board_of_sfen(sfen), moves.split()
    for text, usi in zip(words[::2], words[1::2], strict=True):
        (move,) = ki2.split_moves(f"▲{text}")
        assert ki2.find_move(board, move, "") == usi


@pytest.mark.parametrize("games", [2, pytest.param(50, marks=pytest.mark.slow)])
def test_every_move_that_cshogi_writes_in_ki2_is_found(games: int, seed: int) -> None:
    """Of 277,482 moves it wrote one, a gold beside its square, as 右 while another gold came from
    the right as well; it must be 右寄."""
    cshogi = require_module("cshogi")
    from cshogi.KI2 import move_to_ki2

    chance, written, ambiguous = random.Random(seed), 0, 0
    for _ in range(games):
        board, last = cshogi.Board(), ""
        while not board.is_game_over() and board.move_number < 200:
            ours, moves = board_of_sfen(board.sfen()), list(board.legal_moves)
            for move in moves:
                (words,) = ki2.split_moves(move_to_ki2(move, board))
                usi, written = cshogi.move_to_usi(move), written + 1
                try:
                    assert ki2.find_move(ours, words, last) == usi
                except ValueError as error:
                    assert re.search(rf"could be .*{re.escape(usi)}", str(error))
                    ambiguous += 1
            move = chance.choice(moves)
            board.push(move)
            last = cshogi.move_to_usi(move)[2:4]
    assert ambiguous <= written / 10_000


def test_files_of_other_kinds(tmp_path) -> None:
    with pytest.raises(
        ValueError,
        match=r"game.pgn is not a file of game records: the suffixes are .csa, .kif, .kifu, .ki2",
    ):
        list(read_games(tmp_path / "game.pgn"))
    with pytest.raises(ValueError, match=r"cannot read .*game\.csa: No such file or directory$"):
        list(read_games(tmp_path / "game.csa"))
    (tmp_path / "game.csa").write_bytes(b"N+\x81\x20\n")
    with pytest.raises(ValueError, match=r"its text is not in UTF-8, EUC-JP or Shift JIS$"):
        list(read_games(tmp_path / "game.csa"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "euc_jp", "cp932"])
def test_character_sets(tmp_path, encoding: str) -> None:
    texts = {
        "game.kif": "手合割：平手\n先手：羽生善治\n   1 ７六歩(77)\n   2 投了\n",
        "game.csa": "V2.2\nN+羽生善治\nPI\n+\n+7776FU\n%TORYO\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode(encoding))
        (record,) = read_games(tmp_path / name)
        assert (record.black, record.winner) == ("羽生善治", "black")
        assert names(START, record.actions) == ["7g7f"]
