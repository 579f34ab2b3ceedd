"""FEN, UCI, SAN and PGN against python-chess, and mistakes that are named in one line."""

from __future__ import annotations

import gzip
import io
import itertools
import random

import pytest
from chess_referee import action_of, chess

from azero.games.chess import pgn, text
from azero.games.chess.rules import Chess
from azero.games.chess.san import encode_san
from azero.games.notes import Note

FENS = [
    text.START,
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 3 17",
    "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1",
    "7k/1N1N4/8/1N1N4/8/8/8/K7 w - - 12 60",
]


@pytest.mark.parametrize("fen", FENS)
def test_every_move_has_the_names_that_python_chess_gives(fen: str) -> None:
    """Two plies deep, so that checks, mates and disambiguations occur."""
    chance = random.Random(fen)
    theirs, mine = chess.Board(fen), text.board_of_fen(fen)
    for _ in range(12):
        assert text.format_fen(mine) == theirs.fen()
        assert mine.names == {
            move.uci(): action_of(move, theirs.turn) for move in theirs.legal_moves
        }
        moves = list(theirs.legal_moves)
        for move in chance.sample(moves, min(len(moves), 8)):
            action, san = action_of(move, theirs.turn), theirs.san(move)
            assert text.format_san(mine, action) == san
            assert (
                text.parse_san(mine, san)
                == text.parse_san(mine, san.rstrip("+#").replace("=", ""))
                == mine.names[move.uci()]
                == action
            )
        if not moves:
            break
        move = chance.choice(moves)
        mine = mine.after(action_of(move, theirs.turn))
        theirs.push(move)


def test_a_state_and_a_fen_make_the_same_board() -> None:
    game = Chess()
    for fen in FENS:
        board = text.board_of_state(game.from_fen(fen))
        assert text.format_fen(board) == text.format_fen(text.board_of_fen(fen))
        assert board.actions == text.board_of_fen(fen).actions
        assert board.is_check == chess.Board(fen).is_check()


def test_a_fen_without_counts() -> None:
    assert (
        text.format_fen(text.board_of_fen("8/8/8/8/8/k7/p7/K7 b - -"))
        == "8/8/8/8/8/k7/p7/K7 b - - 0 1"
    )


def test_the_en_passant_square_is_kept_only_where_the_capture_is_legal() -> None:
    useless = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
    assert text.format_fen(text.board_of_fen(useless)) == useless.replace("e3", "-")


def test_castling_rights_without_king_and_rook_are_dropped() -> None:
    """As python-chess drops them, for all rooks that may be missing and a king that has moved."""
    for a8, h8, a1, h1 in itertools.product("rn", "rn", "RN", "RN"):
        for white in ("3K2", "2K3"):
            fen = f"{a8}3k2{h8}/pppppppp/8/8/8/8/PPPPPPPP/{a1}{white}{h1} w KQkq - 0 1"
            assert text.format_fen(text.board_of_fen(fen)) == chess.Board(fen).fen()


@pytest.mark.parametrize(
    ("fen", "reason"),
    [
        ("", "it has 0 fields"),
        ("8/8/8/8/8/8/8 w - - 0 1", "there are 7 ranks, not 8"),
        ("k7/8/8/8/8/8/8/K6 w - - 0 1", "rank 1 has 7 squares, not 8"),
        ("k7/8/8/8/8/8/8/K6x w - - 0 1", "rank 1 has 'x'"),
        ("k7/8/8/8/8/8/8/8 w - - 0 1", "White has 0 kings, not one"),
        ("kk6/8/8/8/8/8/8/K7 w - - 0 1", "Black has 2 kings, not one"),
        ("8/8/8/3k4/4K3/8/8/8 w - - 0 1", "the kings stand next to each other"),
        ("k6P/8/8/8/8/8/8/K7 w - - 0 1", "a pawn stands on the first or the last rank"),
        ("k7/8/8/8/8/8/8/K7 x - - 0 1", "the side to move is w or b, not 'x'"),
        ("k7/8/8/8/8/8/8/K7 w KX - 0 1", "castling rights are '-' or some of KQkq, not 'KX'"),
        (
            "k7/8/8/8/8/8/8/K7 w - e4 0 1",
            "the en-passant square is '-' or on rank 6 with w to move, not 'e4'",
        ),
        (
            "k7/8/8/8/8/8/8/K7 w - e6 0 1",
            "no pawn can have just stepped over the en-passant square e6",
        ),
        ("k7/8/8/8/8/8/8/K7 w - - x 1", "the half-move clock is a number from 0, not 'x'"),
        ("k7/8/8/8/8/8/8/K7 w - - 0 999999", "the move number 999999 is above 100000"),
        ("k6R/8/8/8/8/8/8/K7 w - - 0 1", "the side that is not to move is in check"),
    ],
)
def test_a_bad_fen_is_one_line_that_says_what_is_wrong(fen: str, reason: str) -> None:
    for read in (text.board_of_fen, Chess().from_fen, lambda fen: Chess(fen=fen)):
        with pytest.raises(ValueError) as caught:
            read(fen)
        message = str(caught.value)
        assert (
            message.startswith(f"{fen!r} is not a chess position in FEN: {reason}")
            and "\n" not in message
        )


def test_moves_that_are_not_legal_are_quoted() -> None:
    board = text.board_of_fen("7k/1N1N4/8/8/8/8/8/K7 w - - 0 1")
    for read, move, reason in [
        (text.parse_san, "Nc5", "'Nc5' is ambiguous in 7k/"),
        (text.parse_san, "Qh5", "'Qh5' is not a legal move in 7k/"),
        (text.parse_san, "castles", "'castles' is not a legal move in"),
        (text.parse_san, "O-O", "'O-O' is not a legal move in"),
    ]:
        with pytest.raises(ValueError) as caught:
            read(board, move)
        assert reason in str(caught.value)
    with pytest.raises(ValueError, match="action 4672 is not one of chess: 0 to 4671"):
        text.format_uci(board, 4672)


def test_options_out_of_range_are_quoted() -> None:
    with pytest.raises(ValueError, match="max-moves is from 1 to 100000, not 0"):
        Chess(max_moves=0)


def random_game(seed: int, fen: str, plies: int) -> chess.Board:
    board, chance = chess.Board(fen), random.Random(seed)
    while len(board.move_stack) < plies and any(board.legal_moves):
        board.push(chance.choice(list(board.legal_moves)))
    return board


def test_games_written_and_read_again_by_both() -> None:
    pieces = []
    for seed, fen in enumerate(FENS[:4]):
        board = random_game(seed, fen, 24)
        actions = [
            action_of(move, ply % 2 == (fen.split()[1] == "b"))
            for ply, move in enumerate(board.move_stack)
        ]
        mine = pgn.format_pgn(actions, {"White": 'A "quoted"\none', "Black": "B\\"}, "1-0", fen)
        theirs = chess.pgn.read_game(io.StringIO(mine))
        assert not theirs.errors and [*theirs.mainline_moves()] == board.move_stack
        assert theirs.headers["Result"] == "1-0"
        assert next(pgn.parse_games(mine, "mine")).tags["White"] == 'A "quoted" one'
        exported = str(chess.pgn.Game.from_board(board))
        pieces += [mine, exported]
        for content in (mine, exported):
            (record,) = pgn.parse_games(content, "games.pgn")
            assert (record.fen, list(record.actions)) == (fen, actions)
    assert len(list(pgn.parse_games("\n\n".join(pieces), "all.pgn"))) == 8


@pytest.mark.parametrize("counts", ["", " 3", " 3 7"])
def test_a_position_is_written_with_its_counts(counts: str) -> None:
    """Programs and people leave them out, but the tag FEN has six fields (PGN standard, 16.1)."""
    fen = f"4k3/8/8/8/8/8/8/R3K3 b Q -{counts}"
    tag = pgn.format_pgn([], fen=fen).split('[FEN "')[1].split('"')[0]
    assert tag.split() == [*fen.split(), *("0", "1")[len(counts) // 2 :]]


def test_no_line_of_a_comment_is_an_escaped_one() -> None:
    """A line that begins with % is passed over (PGN standard, section 6)."""
    comment = " ".join(f"%{number}" for number in range(99))
    board = text.board_of_fen(text.START)
    written = pgn.format_pgn([board.names["e2e4"]], notes=[Note(comment, glyphs=(1, 14))])
    assert not [line for line in written.splitlines() if line[0:1] == "%"]
    (record,) = pgn.parse_games(written, "x")
    assert record.comments == (comment,) and record.glyphs == ((1, 14),)


ANNOTATED = """\
% an escaped line
[Event "A"]
[White "with \\"quotes\\""]

1. e4! {the king's pawn} e5 (1... c5 2. Nf3 (2. c3 d5) d6) 2.Nf3 $1 Nc6; to the end of the line
3. Bb5 a6 4. Bxc6 dxc6 5. 0-0 f6 1/2-1/2

[Event "B, without a result"]
1. f3 e5 2. g4 Qh4#
[Event "C"]
*
"""


def test_comments_variations_and_annotations_are_passed_over(tmp_path) -> None:
    path = tmp_path / "games.pgn.gz"
    path.write_bytes(gzip.compress(ANNOTATED.encode()))
    first, second, third = pgn.read_games(path)
    assert (len(first.actions), first.result, first.tags["White"]) == (
        10,
        "1/2-1/2",
        'with "quotes"',
    )
    assert [first.glyphs[ply] for ply in (0, 1, 2)] == [(1,), (), (1,)], "marks of the main line"
    assert (len(second.actions), second.result, second.name) == (
        4,
        "*",
        f"{tmp_path}/games.pgn.gz game 2",
    )
    assert (third.actions, third.tags["Event"]) == ((), "C")


@pytest.mark.parametrize(
    "content",
    [
        "1. e4 {a comment} 1. ... e5 2. Nf3 *",
        '[Event"none"][White-Elo "2800"]1.e4 e5 2.Nf3 *',
        "1. e2-e4 e7-e5 2. Ng1-f3 *",
        "1. e2e4 e7e5 2. g1f3 *",
        "1. e4 ; a comment\r1... e5\r%2. Nc3\r2. Nf3 *",
        "1. Pe4 Pe7-e5 2. Nf3 *",
    ],
)
def test_other_ways_to_write_a_game(content: str) -> None:
    (record,) = pgn.parse_games(content, "games.pgn")
    board, names = text.board_of_fen(text.START), []
    for action in record.actions:
        names.append(text.format_uci(board, action))
        board = board.after(action)
    assert names == ["e2e4", "e7e5", "g1f3"]


@pytest.mark.parametrize("capture", ["exd6", "exd6 e.p.", "exd6e.p."])
def test_a_capture_en_passant_may_say_so(capture: str) -> None:
    (record,) = pgn.parse_games(f"1. e4 a6 2. e5 d5 3. {capture} cxd6 *", "games.pgn")
    assert len(record.actions) == 6


def test_quotation_marks_in_a_tag_may_stand_without_backslashes() -> None:
    content = '[Event "The "Open", "A""] [White "W"]\n[Black "B\\"]"]\n\n1. e4 *'
    (record,) = pgn.parse_games(content, "games.pgn")
    assert record.tags == {"Event": 'The "Open", "A"', "White": "W", "Black": 'B"]'}
    content = r"""[Event "C:\games\new"] [Site "\\"]
[Round "say \"a\\b\""]
[White "C:\"]

1. e4 *"""
    (record,) = pgn.parse_games(content, "x")
    assert list(record.tags.values()) == [r"C:\games\new", "\\", r'say "a\b"', "C:\\"]


def test_a_draw_may_be_written_short() -> None:
    first, second = pgn.parse_games("1. e4 e5 1/2\n\n1. d4 1/2-1/2", "games.pgn")
    assert first.result == second.result == "1/2-1/2" and len(first.actions) == 2


def test_the_tag_has_the_result_of_moves_that_end_without_one() -> None:
    games = '[Result "1-0"]\n\n1. e4 e5\n\n[Result "0-1"]\n\n1. d4 *\n\n[Result "1-0"]\n\n1. c4 0-1'
    assert [game.result for game in pgn.parse_games(games, "games.pgn")] == ["1-0", "0-1", "0-1"]


@pytest.mark.parametrize(
    ("written", "moves", "result"),
    [
        (
            "1. e4 e5 ± 2. Nf3 +/- Nc6⩲ 3. Bb5 -+ a6 = 4. Ba4 ∞ 1–0",
            "e4 e5 Nf3 Nc6 Bb5 a6 Ba4",
            "1-0",
        ),
        ("1. e4‼ e5⁈ 2. Nf3 N (2. f4 =) Nc6 TN 3. Bb5 D ½-½", "e4 e5 Nf3 Nc6 Bb5", "1/2-1/2"),
        ("1… ½", "", "1/2-1/2"),
        (
            "1. e4 e5 2. ♘f3 ♞c6 3. ♗\ufe0eb5 a6 4. ♗×c6 ♟b×c6 0:1",
            "e4 e5 Nf3 Nc6 Bb5 a6 Bxc6 bxc6",
            "0-1",
        ),
        ("1. e4 d5 2. e:d5 Q:d5 3. Nc3(=) Qa5= *", "e4 d5 exd5 Qxd5 Nc3 Qa5", "*"),
        (
            "1. Nf3 Nf6 2. g3 g6 3. Bg2 Bg7 4. o-o 0–0 <later> 1-0",
            "Nf3 Nf6 g3 g6 Bg2 Bg7 O-O O-O",
            "1-0",
        ),
        ("1. e4 c5 2. e5 d5 3. exd6ep exd6 4. Qe2 mate 1-0", "e4 c5 e5 d5 exd6 exd6 Qe2", "1-0"),
    ],
)
def test_notations_of_books_and_other_programs(written: str, moves: str, result: str) -> None:
    (game,) = pgn.parse_games(written, "games.pgn")
    (plain,) = pgn.parse_games(f"{moves} {result}", "games.pgn")
    assert game.actions == plain.actions and game.result == plain.result == result
    assert [encode_san(move) for move in game.moves] == [encode_san(move) for move in plain.moves]
    reference = chess.pgn.read_game(io.StringIO(f"{moves} {result}"))
    assert reference is not None and len(list(reference.mainline_moves())) == len(game.actions)


def test_names_are_in_utf_8_or_latin_1_and_the_case_of_the_suffix_does_not_matter(tmp_path) -> None:
    for encoding in ("utf-8", "latin-1"):
        path = tmp_path / "GAMES.PGN"
        path.write_bytes('[White "Hübner"]\n\n1. e4 *'.encode(encoding))
        (record,) = pgn.read_games(path)
        assert record.tags["White"] == "Hübner"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1. e4 e5 2. Ke3 *", "x.pgn game 1, move 2: 'Ke3' is not a legal move in rnbqkbnr/"),
        (
            '[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n*',
            "x.pgn game 1: '8/8/8/8/8/8/8/8 w - - 0 1' is not a chess position in FEN: "
            "White has 0 kings",
        ),
        ("1. e4 *\n\n1. e4 (1. d4 *", "x.pgn game 2: a variation is not closed"),
        ("1. e4 ) *", "x.pgn game 1: a ')' closes no variation"),
        (
            '[Variant "Atomic"]\n1. e4 d5 2. exd5 *',
            "x.pgn game 1: the variant 'Atomic' has other rules than chess",
        ),
        (
            '[Variant "Chess960"]\n[FEN "nrkbbrqn/pppppppp/8/8/8/8/PPPPPPPP/NRKBBRQN w KQkq - 0 1"]\n'
            "1. e4 *",
            "x.pgn game 1: the variant 'Chess960' has other rules than chess",
        ),
        ('[White "A]\n[Black "B"]\n\n1. e4 *', "x.pgn game 1, line 1: '[White \"A]"),
        ("1. e4\n{ no end", "x.pgn game 1, line 2: '{ no end' is not PGN"),
        ("1. e4 e5 2. -- Nf6 *", "x.pgn game 1, move 2: '--' is a null move"),
        ("\n ; nothing\n", "x.pgn: there is no game in it"),
    ],
)
def test_mistakes_in_a_file_are_placed(content: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        list(pgn.parse_games(content, "x.pgn"))
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    with pytest.raises(
        ValueError,
        match=r"games\.txt is not a file of game records: the suffixes are \.pgn, \.pgn\.gz",
    ):
        next(pgn.read_games(tmp_path / "games.txt"))
    with pytest.raises(ValueError, match=r"cannot read .*none\.pgn: No such file or directory$"):
        next(pgn.read_games(tmp_path / "none.pgn"))
