"""SGF: reading main lines, set-up, komi, results, collections with broken games, character sets;
writing; sgfmill as the referee."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from needs import NOT_HERE, require_module

from azero.games.archives import RecordError
from azero.games.go.sgf import GameRecord, parse_games, parse_komi, read_games
from azero.games.go.sgf_write import format_game, format_result
from azero.games.notes import Note

sgfmill = require_module("sgfmill.sgf")
sgf_grammar = require_module("sgfmill.sgf_grammar")

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "go"
SMALL = b"(;GM[1]SZ[5]KM[0.5]RU[Chinese]RE[B+2];B[cc];W[bb];B[];W[dd](;B[dc])(;B[aa]))"


def parse(content: bytes | str) -> GameRecord:
    (record,) = parse_games(content.encode() if isinstance(content, str) else content, "game")
    return record


def test_a_game_is_read_along_its_main_line() -> None:
    record = parse(SMALL)
    assert (record.size, record.komi, record.rules, record.result, record.to_play) == (
        5,
        0.5,
        "Chinese",
        "B+2",
        0,
    )
    assert record.moves == ((0, 12), (1, 6), (0, 25), (1, 18), (0, 13))
    deep = "(;SZ[5](;B[aa](;W[bb]C[a (first\\] one);B[zz\\]](;B[cc];W[]))(;W[ee]))(;B[dd]))"
    assert parse(deep).moves == ((0, 0), (1, 6), (0, 12), (1, 25)) and parse(deep).comments == (
        "",
        "a (first] one);B[zz]",
        "",
        "",
    )


def test_two_moves_in_one_node_are_both_played() -> None:
    record = parse("(;SZ[9];W[aa]C[both]B[bb];W[cc])")
    assert record.moves == ((1, 0), (0, 10), (1, 20))
    assert record.comments == ("", "both", "")


def test_a_move_in_the_root_has_its_comment_and_the_others_none() -> None:
    assert parse("(;SZ[9]B[aa]C[first];W[bb];B[cc])").comments == ("first", "", "")


def test_both_spellings_of_a_pass_and_a_real_tt() -> None:
    assert parse("(;SZ[19];B[tt];W[])").moves == ((0, 361), (1, 361))
    assert parse("(;SZ[21];B[tt];W[])").moves == ((0, 19 * 21 + 19), (1, 441))
    assert parse("(;FF[4];B[aa])").size == 19


def test_setup_and_handicap() -> None:
    record = parse("(;SZ[9]HA[2]AB[cg][gc]KM[0.5];W[ee])")
    assert (record.black_points, record.to_play) == ((24, 56), 1)
    assert sorted(parse("(;SZ[9]HA[2];W[ee])").black_points) == [24, 56], (
        "stones that go without saying"
    )
    placed = parse("(;SZ[9]HA[2];B[cg];B[gc];W[ee])")
    assert placed.black_points == () and placed.moves == ((0, 56), (0, 24), (1, 40)), (
        "stones that are moves"
    )
    record = parse("(;SZ[3]AB[aa]AW[cc]PL[W])")
    assert (record.black_points, record.white_points, record.to_play, record.moves) == (
        (0,),
        (8,),
        1,
        (),
    )
    assert parse("(;SZ[3]AB[aa]AW[cc])").to_play == 0, "stones of both sides are no handicap"
    assert parse("(;SZ[5]AB[aa:cb];AE[bb]AW[ee];PL[White];W[cc])").black_points == (
        0,
        1,
        2,
        5,
        7,
    ), "a rectangle, and what is taken away again"
    assert parse("(;SZ[5]AB[cb:aa];W[cc])").black_points == (0, 1, 2, 5, 6, 7), (
        "a rectangle from its lower right corner"
    )


def test_rectangular_boards() -> None:
    record = parse("(;SZ[5:2];B[ea];W[ab];B[])")
    assert record.board_shape == (2, 5) and record.moves == ((0, 4), (1, 5), (0, 10))
    assert parse(format_game(record).encode()).moves == record.moves
    with pytest.raises(ValueError, match="not square"):
        _ = record.size


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("6.5", 6.5),
        ("7.50", 7.5),
        ("0", 0.0),
        ("375", 7.5),
        ("3.75", 7.5),
        ("3.25", 6.5),
        ("650", 6.5),
        ("750", 7.5),
        ("150.5", 150.5),
        ("-5", -5.0),
        ("6,5", 6.5),
        ("6.5目", 6.5),
        ("６目半", 6.5),
        ("6点半", 6.5),
        ("-5目半", -5.5),
        ("3.75子", 7.5),
        ("7 points", 7.0),
        ("6.5 pts", 6.5),
        ("六目半", 6.5),
        ("6집 반", 6.5),
        ("3又3/4子", 7.5),  # MultiGo
        ("三又3/4子", 7.5),
        ("-2 3/4子", -5.5),
        ("3子半", 7.0),
    ],
)
def test_komi_as_servers_write_it(text: str, points: float) -> None:
    assert parse_komi(text) == points


@pytest.mark.parametrize(
    ("text", "stones"),
    [
        ("2 stones", 2),
        ("二子", 2),
        ("３目", 3),
        ("4점", 4),
        ("2.0", 2),
        ("0", 0),
        ("", 0),
        ("1", 0),
    ],
)
def test_handicap_stones_as_programs_write_them(text: str, stones: int) -> None:
    record = parse(f"(;SZ[19]HA[{text}];W[cc])")
    assert record.handicap == len(record.black_points) == stones


def test_a_handicap_that_is_no_number_is_an_error_where_its_stones_are_missing() -> None:
    for text in ("two", "-2", "?"):
        with pytest.raises(ValueError, match=rf"HA\[{re.escape(text)}\] is not a number of stones"):
            parse(f"(;SZ[19]HA[{text}];W[cc])")
        for rest in ("AB[dd];W[cc]", ";B[cc]", ""):
            assert parse(f"(;SZ[19]HA[{text}]{rest})").stated_handicap == 0


def test_a_komi_that_cannot_be_is_none() -> None:
    for text in ("none", "nan", "inf", "1e14", "", "6.5.5", "6目5", "半"):
        assert parse_komi(text) is None
    assert (
        parse("(;KM[0]RE[W+0.5];B[aa])").komi is None
        and parse("(;KM[0]RE[W+3];B[aa])").komi == 0
        and parse("(;KM[0]RE[B+R];B[aa])").komi == 0
    )
    assert parse("(;SZ[5]KM[none]HA[?];B[aa])").komi is None


@pytest.mark.parametrize(
    ("result", "rewards", "margin"),
    [
        ("B+R", (1, -1), None),
        ("W+Resign", (-1, 1), None),
        ("White+R", (-1, 1), None),
        ("Black + 3.5", (1, -1), 3.5),
        ("W+2.50", (-1, 1), 2.5),
        ("B＋R", (1, -1), None),
        ("Black wins by 3.5", (1, -1), 3.5),
        ("White wins by resignation", (-1, 1), None),
        ("W wins", (-1, 1), None),
        ("White resigns", (1, -1), None),
        ("Black resigned", (-1, 1), None),
        ("和", (0, 0), 0),
        ("b+.5", (1, -1), 0.5),
        ("0", (0, 0), 0),
        ("Draw", (0, 0), 0),
        ("黑中盘胜", (1, -1), None),
        ("白胜3.5目", (-1, 1), None),
        ("白番半目勝ち", (-1, 1), None),
        ("119수 흑불계승", (1, -1), None),
        ("白负，黑胜1/4子", (1, -1), None),
        ("白時間切れで黒勝ち", (1, -1), None),
        ("和棋", (0, 0), 0),
        ("持碁", (0, 0), 0),
        ("무승부", (0, 0), 0),
        ("无胜负", None, None),
        ("無勝負", None, None),
        ("黒中押し負け", None, None),
        ("Void", None, None),
        ("?", None, None),
        ("", None, None),
    ],
)
def test_results(result: str, rewards: tuple[float, float] | None, margin: float | None) -> None:
    record = parse(f"(;RE[{result}];B[aa])")
    assert record.rewards == rewards and record.margin == margin


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "game: .*no SGF data"),
        (b"(;SZ[5];B[aa]", "game: the game is cut off"),
        (b"(;SZ[5];B[\\\nzz])", r"game: \[\\ zz\] is not a point of a board of 5 rows"),
        (b"(;SZ[5];B[zz])", r"game: \[zz\] is not a point of a board of 5 rows and 5 columns"),
        (b"(;SZ[5];B[aa];AW[bb])", "game: stones are set up in the middle"),
        (b"(;SZ[x];B[aa])", "game: SZ is 1 to 52 or COLUMNS:ROWS, not 'x'"),
        (b"(;SZ[5:];B[aa])", "game: SZ is"),
        (b"(;SZ[5];B[aa]];W[bb])", "game: '\\];W"),
        (b"(;GM[2];B[aa])", r"GM\[2\] is not Go"),
        (b"(;gm[1]sz[5];b[aa])", "game: property gm has no upper-case letters"),
        (b"(;sz[5];B[aa])", "game: property sz has no upper-case letters"),
        (b"(;SZ[5]AB[ff];B[aa])", r"\[ff\] is not a point"),
        (b"(;SZ[5]AB[aa:bb:cc];B[aa])", "is not a point to set up"),
    ],
)
def test_broken_records_name_the_place(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(parse_games(content, "game"))


def test_a_broken_game_is_named_and_the_others_go_on() -> None:
    good = b"(;GM[1]SZ[5];B[aa];W[bb](;B[cc])(;B[dd]))"
    broken = [
        b"(;GM[1]SZ[5];B[aa];W[zz])",
        b"(;GM[1]SZ[5];B[aa];W[b",
        b"(;GM[1]SZ[5];B[aa](;W[bb]",
        b"(;GM[1]SZ[99])",
        b"(;GM[1]SZ[5];B[aa]C[no end",
    ]
    content = (
        b"junk ;[ " + b"\n".join(piece for bad in broken for piece in (good, bad)) + b"\n" + good
    )
    skipped: list[RecordError] = []
    records = list(parse_games(content, "all", skipped))
    assert len(records) == 6 and len({record.moves for record in records}) == 1
    assert [error.place for error in skipped] == [
        f"all game {number}" for number in (2, 4, 6, 8, 10)
    ]
    with pytest.raises(ValueError, match="all game 2:"):
        list(parse_games(content, "all"))


def test_thousands_of_torn_games_take_no_time() -> None:
    skipped: list[RecordError] = []
    content = b"(;GM[1]SZ[5];B[aa]\n(;GM[1]SZ[5];B[bb])\n" * 3000
    assert len(list(parse_games(content, "torn", skipped))) == 3000 and len(skipped) == 3000


@pytest.mark.parametrize(
    "declared", ["", "CA[GB18030]", "CA[UTF-8]", "CA[gb2312]", "CA[no-such]", "CA[undefined]"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-8-sig"])
def test_characters(encoding: str, declared: str) -> None:
    # The second byte of 昞 in GB18030 is a closing bracket or a backslash in ASCII for one of these.
    name = "柯洁 昞乗乗 李世石"
    assert parse(f"(;{declared}SZ[5]PB[{name}]PW[AlphaGo];B[aa])".encode(encoding)).players == (
        name,
        "AlphaGo",
    )


def test_other_characters() -> None:
    assert parse("(;CA[EUC-KR]PB[이세돌];B[aa])".encode("euc-kr")).players[0] == "이세돌"
    assert parse("(;PB[Müller]PW[Jérôme];B[aa])".encode("latin-1")).players == ("Müller", "Jérôme")
    assert parse("(;PB[柯洁];B[aa])".encode("utf-16")).players[0] == "柯洁"
    mixed = "(;PB[柯洁];B[aa])\n".encode("gb18030") + "(;PB[李世石];B[aa])\n".encode()
    assert [record.players[0] for record in parse_games(mixed, "mixed")] == ["柯洁", "李世石"]


@pytest.mark.parametrize(
    "declared, written, text",
    [
        ("Big5", "cp950", "第十期碁聖戰 許功蓋"),
        *((name, "cp932", "髙尾紳路 表①ｱ") for name in ("Shift_JIS", "x-sjis", "Windows-31J")),
        ("x-euc-jp", "euc-jp", "依田紀基"),
        *((name, "cp949", "흑 불계승 똠") for name in ("EUC-KR", "windows-949")),
        *((name, "gb18030", "朱镕基") for name in ("GB2312", "GB", "gb_2312-80")),
        ("x-x-big5", "cp950", "許功蓋 碁聖"),
    ],
)
def test_declared_characters_with_those_of_windows(declared: str, written: str, text: str) -> None:
    content = f"(;CA[{declared}]SZ[5]PB[{text}];B[aa]C[{text}];W[bb])".encode(written)
    record = parse(content)
    assert (record.players[0], record.comments) == (text, (text, ""))
    assert record.moves == ((0, 0), (1, 6))


@pytest.mark.parametrize("declared", ["", "CA[UTF-8]", "CA[GB2312]"])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_character_that_was_cut_spoils_nothing_else(declared: str, lost: int) -> None:
    text = f"(;{declared}SZ[5]PB[柯洁]PW[申眞諝];B[aa]C[这一手很有意思];W[bb]C[妙])"
    record = parse(text.encode().replace("思]".encode(), "思".encode()[:-lost] + b"]"))
    assert record.players == ("柯洁", "申眞諝") and record.moves == ((0, 0), (1, 6))
    assert record.comments == ("这一手很有意\ufffd", "妙")


def test_old_long_property_names() -> None:
    record = parse("(;GaMe[1]SiZe[9]PlayerBlack[x];Black[aa];White[bb])")
    assert record.size == 9 and record.players[0] == "x" and record.moves == ((0, 0), (1, 10))


def test_written_games_come_back(tmp_path: Path) -> None:
    record = GameRecord(
        name=str(tmp_path / "out.sgf"), board_shape=(9, 9), komi=7.5, moves=((1, 0), (0, 81), (1, 40)), black_points=(24, 56), to_play=1, result="W+R",
        rules="Tromp-Taylor", players=("iteration [4]", "GNU\\Go"), date="2026-01-02", comments=("value 0.1\n\\", "", "a ] b"),
    )  # fmt: skip
    (tmp_path / "out.sgf").write_text(format_game(record), encoding="utf-8")
    assert list(read_games(tmp_path / "out.sgf")) == [record]
    game = sgfmill.Sgf_game.from_string(format_game(record))
    assert (
        game.get_player_name("b") == "iteration [4]"
        and game.get_player_name("w") == "GNU\\Go"
        and game.get_winner() == "w"
        and game.get_handicap() == 2
    )
    moves = [node.get_move() for node in game.get_main_sequence()[1:]]
    assert (
        moves == [("w", (8, 0)), ("b", None), ("w", (4, 4))]
        and game.get_last_node().get("C") == "a ] b"
    )


def test_variations_stand_beside_the_main_line() -> None:
    record = GameRecord("x", (5, 5), 0.5, ((0, 12), (1, 6), (0, 25), (1, 18)))
    text = format_game(
        record,
        [Note("first"), Note(variations=((8, 16), (7,))), Note(), Note("last", ((0, 1, 2),))],
    )
    assert parse(text.encode()).moves == record.moves and parse(text.encode()).comments == (
        "first",
        "",
        "",
        "last",
    )
    tree = sgfmill.Sgf_game.from_string(text)
    first = tree.get_root()[0]
    assert [len(first), len(first[0][0])] == [3, 2]
    assert [first[1].get_move(), first[1][0].get_move(), first[2].get_move()] == [
        ("w", (3, 3)),
        ("b", (1, 1)),
        ("w", (3, 2)),
    ]
    with pytest.raises(ValueError, match="60x60 board; the largest is 52x52"):
        format_game(GameRecord("x", (60, 60), 0.0, ()))


def test_results_are_written() -> None:
    assert (
        format_result((1, -1), "R"),
        format_result((-1, 1), "2.5"),
        format_result((0, 0), "0"),
    ) == ("B+R", "W+2.5", "0")


def referee(text: str) -> tuple[list[tuple[int, int]], int, str]:
    """Moves, size and Black's name as sgfmill reads them."""
    game = sgfmill.Sgf_game.from_bytes(text.encode())
    size, moves = game.get_size(), []
    for node in game.get_main_sequence():
        colour, point = node.get_move()
        if colour is not None:
            moves.append(
                (
                    "bw".index(colour),
                    size * size if point is None else (size - 1 - point[0]) * size + point[1],
                )
            )
    return moves, size, game.get_player_name("b") or ""


def test_random_trees_equal_sgfmill(seed: int) -> None:
    generator = random.Random(3 + seed)
    letters = "abcdefghi"

    def value() -> str:
        return (
            "".join(
                generator.choice(["x", "\\]", "\\\\", "(", ")", ";", "[", "é", "\n", " ", "B[aa"])
                for _ in range(generator.randrange(6))
            )
            + "."
        )

    def node() -> str:
        point = (
            ""
            if generator.random() < 0.1
            else generator.choice(letters) + generator.choice(letters)
        )
        extra = generator.choice(
            ["", "", f"C[{value()}]", f"BL[3]\nN[{value()}][{value()}]", f" LB[aa:{value()}]"]
        )
        return f";{generator.choice('BW')} [{point}]{extra}" + generator.choice(["", " ", "\n"])

    def tree(depth: int) -> str:
        text = "".join(node() for _ in range(generator.randrange(1, 4)))
        branches = generator.randrange(0, 4) if depth < 4 else 0
        return text + "".join(
            f"({tree(depth + 1)})" + generator.choice(["", "\n"]) for _ in range(branches)
        )

    for _ in range(300):
        text = f"({generator.choice(['', ' '])};GM[1]SZ[9]PB[name]C[{value()}]{tree(0)})"
        record = parse(text)
        assert (list(record.moves), record.size, record.players[0]) == referee(text), text


def test_real_games_equal_sgfmill_and_come_back() -> None:
    check_file(DATA / "games.sgf.gz")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not SHARED.is_dir(), reason=f"{NOT_HERE}collections of real games")
@pytest.mark.parametrize("path", sorted(SHARED.glob("*.gz")), ids=lambda path: path.name)
def test_every_real_game_equals_sgfmill_and_comes_back(path: Path) -> None:
    check_file(path)


def check_file(path: Path) -> None:
    """Read every game, compare it with sgfmill's reading, write it and read it again."""
    skipped: list[RecordError] = []
    records = list(read_games(path, skipped))
    assert records and not skipped
    for record in records:
        text = format_game(record)
        assert parse_games(text.encode(), record.name).__next__() == record
        assert format_game(parse(text)) == text
    if path.name.endswith(".sgf.gz"):
        trees = sgf_grammar.parse_sgf_collection(gzip.decompress(path.read_bytes()))
        assert len(trees) == len(records)
        for tree, record in zip(trees, records, strict=True):
            game = sgfmill.Sgf_game.from_coarse_game_tree(tree)
            moves = [node.get_raw_move() for node in game.get_main_sequence()]
            size = game.get_size()
            ours = [
                (
                    "bw"[colour],
                    ""
                    if action == size * size
                    else "".join(chr(97 + side) for side in divmod(action, size)[::-1]),
                )
                for colour, action in record.moves
            ]
            assert [
                (colour, "" if point == b"tt" else point.decode())
                for colour, point in moves
                if colour
            ] == ours
            assert (
                game.get_root().get("RE") if game.get_root().has_property("RE") else ""
            ) == record.result
