"""The games on squares over the web server: moves by their squares, drops, promotions, records."""

import io

import chess
import chess.pgn
import httpx
import numpy as np
import pytest
from web_server import TICTACTOE, Visitor, running

from azero.engines.web.limits import WebLimits
from azero.engines.web.networks import ServedNetwork
from azero.engines.web.records import open_record, read_record
from azero.engines.web.service import NewGame, Service
from azero.engines.web.squares_adapter import SquaresAdapter
from azero.games.position import _compiled
from azero.games.shogi.csa import format_csa
from azero.games.table import make
from azero.players.specs import parse_player, resolve

LIMITS = WebLimits(visits=50_000, seconds=30.0)


def network_of(game: str, **options) -> ServedNetwork:
    """A network that is never loaded: the rules alone are tested."""
    spec, config = resolve(parse_player(f"random-net:{game}?blocks=1&filters=4"))
    return ServedNetwork(spec, config, make(game, **options), LIMITS)


@pytest.fixture(scope="module")
def chess_network() -> ServedNetwork:
    return network_of("chess", max_moves=LIMITS.moves)


@pytest.fixture(scope="module")
def animal_network() -> ServedNetwork:
    return network_of("animal_shogi", max_moves=LIMITS.moves)


def play(adapter: SquaresAdapter, *names: str) -> None:
    for name in names:
        adapter.play(adapter.session.position.to_play, adapter.parse(name))


def test_a_game_of_tictactoe_against_the_network() -> None:
    with running([TICTACTOE], LIMITS) as server, Visitor(server.url) as visitor:
        assert visitor.game["frame"].startswith("<svg") and visitor.game["stones"] == "." * 9
        while not visitor.game["over"]:
            free = visitor.game["legal"].index("1")
            visitor.play("abc"[free % 3] + "321"[free // 3])
            if not visitor.game["over"]:
                kinds = dict(visitor.events("think", visits=16, plays=True))
                visitor.game |= kinds["game"]
                assert len(kinds["analysis"]["policy"]) == 9
        marks = visitor.game["stones"]
        assert marks.count("X") - marks.count("O") in (0, 1)
        assert visitor.game["result"].endswith(("(three in a row)", "(full board)", "resigns"))
        assert visitor.game["saves"] == "" and visitor.game["legal"] == "0" * 9
        answer = visitor.http.get(f"/api/games/{visitor.game['id']}/record")
        assert answer.json() == {"error": "there is no file format for games of tictactoe"}


def test_the_first_position_is_there_before_the_rules_are_compiled() -> None:
    service = Service(["random-net:chess?blocks=1&filters=4"], WebLimits(moves=599))
    network = service.network(NewGame("0"))
    with network.rules_lock:
        shown = service.new_game(NewGame("0")).describe()
        _, advance, _ = _compiled(network.game)
        assert len(shown["moves_by_squares"]) == 20 and advance._cache_size() == 0


def test_legal_moves_are_those_of_the_position_by_their_squares(chess_network) -> None:
    adapter = SquaresAdapter(chess_network)
    board = chess.Board()
    draw = np.random.default_rng(3)
    for _ in range(40):
        diagram = adapter.diagram()
        ours = {(move.name, move.start, move.end) for move in diagram["moves_by_squares"]}
        theirs = {
            (move.uci(), _from_top(move.from_square), _from_top(move.to_square))
            for move in board.legal_moves
        }
        assert ours == theirs
        assert diagram["check"] == board.is_check()
        pieces = [
            "" if (p := board.piece_at(_from_top(s))) is None else p.symbol() for s in range(64)
        ]
        assert diagram["pieces"] == pieces
        if not ours:
            break
        name = sorted(ours)[draw.integers(len(ours))][0]
        label = board.san(chess.Move.from_uci(name))
        assert adapter.label(adapter.session.position, adapter.parse(name)) == label
        play(adapter, name)
        board.push_uci(name)
        last = chess.Move.from_uci(name)
        assert adapter.diagram()["last"] == [_from_top(last.from_square), _from_top(last.to_square)]


def _from_top(square: int) -> int:
    return square ^ 56


@pytest.mark.parametrize(
    ("fen", "move", "result"),
    [
        ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "c1c7", "The game is a draw (stalemate)"),
        ("k7/8/8/8/8/8/6p1/7K w - - 0 1", "h1g2", "The game is a draw (insufficient material)"),
        ("k7/8/8/8/8/8/7R/K7 w - - 99 80", "h2h3", "The game is a draw (fifty moves)"),
        ("k7/8/1K6/8/8/8/8/7R w - - 0 1", "h1h8", "White wins (checkmate)"),
    ],
)
def test_the_result_says_how_the_game_ended(chess_network, fen, move, result) -> None:
    adapter = SquaresAdapter(chess_network, fen)
    play(adapter, move)
    assert adapter.outcome() == (adapter.outcome().winner, result, "")


def test_a_pawn_promotes_to_any_of_four_pieces(chess_network) -> None:
    adapter = SquaresAdapter(chess_network, "8/P6k/8/8/8/8/8/K7 w - - 0 1")
    choices = [move for move in adapter.diagram()["moves_by_squares"] if move.start == 8]
    assert sorted(move.promotion for move in choices) == ["b", "n", "q", "r"]
    assert {move.end for move in choices} == {0}
    play(adapter, "a7a8n")
    assert adapter.diagram()["pieces"][0] == "N"


@pytest.mark.parametrize("start", ["nonsense", "8/8/8/8/8/8/8/8 w - - 0 1", "x" * 100])
def test_a_start_position_that_is_none_is_refused(chess_network, start) -> None:
    with pytest.raises(ValueError, match="position"):
        SquaresAdapter(chess_network, start)


def test_a_finished_start_position_is_refused(chess_network) -> None:
    mate = "R5k1/5ppp/8/8/8/8/8/K7 b - - 0 1"
    with pytest.raises(ValueError, match="already over"):
        SquaresAdapter(chess_network, mate)


def test_pieces_are_dropped_from_the_hand(animal_network) -> None:
    adapter = SquaresAdapter(animal_network)
    play(adapter, "b2b3", "c4b3")
    assert adapter.diagram()["hands"] == [{"C": 1}, {"C": 1}]
    drops = [move for move in adapter.diagram()["moves_by_squares"] if move.drop]
    assert {move.drop for move in drops} == {"C"} and all(move.start is None for move in drops)
    play(adapter, drops[0].name)
    assert adapter.diagram()["pieces"][drops[0].end] == "C"
    assert adapter.diagram()["last"] == [drops[0].end]


def test_the_try_and_the_captured_lion_end_animal_shogi(animal_network) -> None:
    adapter = SquaresAdapter(animal_network, "3/L2/2l/3 b - 1")
    assert adapter.outcome() is None
    play(adapter, "a3a4")
    assert adapter.outcome() == (0, "First player wins (try)", "")


def test_a_game_of_chess_is_saved_and_opened_again(chess_network) -> None:
    adapter = SquaresAdapter(chess_network)
    play(adapter, "f2f3", "e7e5", "g2g4", "d8h4")
    outcome = adapter.outcome()
    assert outcome == (1, "Black wins (checkmate)", "")
    text = adapter.text(adapter.moves, outcome, ("You", "azero"))
    game = chess.pgn.read_game(io.StringIO(text))
    assert game.headers["White"] == "You" and game.headers["Result"] == "0-1"
    assert [move.uci() for move in game.mainline_moves()][-1] == "d8h4"
    record = read_record("game.pgn", text.encode())
    opened = open_record(chess_network, record)
    assert record.players == ("You", "azero")
    assert opened.session.position.actions == adapter.session.position.actions


def test_an_unfinished_game_from_another_position_keeps_it(chess_network) -> None:
    start = "8/P6k/8/8/8/8/8/K7 w - - 0 1"
    adapter = SquaresAdapter(chess_network, start)
    play(adapter, "a7a8q", "h7g7")
    text = adapter.text(adapter.moves, None, ("", ""))
    assert '[Result "*"]' in text and f'[FEN "{start}"]' in text
    opened = open_record(chess_network, read_record("x.pgn", text.encode()))
    assert opened.diagram()["pieces"] == adapter.diagram()["pieces"]


def test_a_record_of_chess_keeps_its_tags_and_goes_on_after_a_draw_nobody_claimed(
    chess_network,
) -> None:
    back_and_forth = "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 5. e4"
    text = f'[Event "Club"]\n[Date "1999.12.31"]\n[ECO "A04"]\n\n{back_and_forth} 1-0\n'
    record = read_record("x.pgn", text.encode())
    adapter = open_record(chess_network, record)
    assert len(adapter.moves) == 9 and adapter.outcome() is None
    adapter.undo()
    assert adapter.outcome() == (None, "The game is a draw (threefold repetition)", "")
    saved = chess.pgn.read_game(
        io.StringIO(adapter.text(adapter.moves, adapter.outcome(), ("A", "B"), record.result))
    )
    assert dict(saved.headers) == {
        "Event": "Club", "Site": "?", "Date": "1999.12.31", "Round": "?",
        "White": "A", "Black": "B", "Result": "1-0",
    }  # fmt: skip


def test_a_record_of_chess_without_a_date_is_not_saved_as_one_of_today(chess_network) -> None:
    adapter = open_record(chess_network, read_record("x.pgn", b"1. e4 e5 *"))
    saved = adapter.text(adapter.moves, None, ("A", "B"))
    assert '[Event "?"]' in saved and '[Date "????.??.??"]' in saved
    assert '[White "?"]' in adapter.text(adapter.moves, None, ("", ""))


def test_comments_of_moves_of_chess_are_kept(chess_network) -> None:
    text = "{before} 1. e4 {best by\ntest} e5 ; and [%clk 1]\n(1... c5 {no}) 2. Nf3 {a} {b} *\n"
    record = read_record("x.pgn", text.encode())
    assert record.comments == ("best by test", "and [%clk 1]", "a b")
    adapter = open_record(chess_network, record)
    saved = adapter.text(adapter.moves, None, ("A", "B"), "", record.comments)
    assert read_record("y.pgn", saved.encode()).comments == record.comments


def test_facts_and_comments_of_records_of_shogi_are_kept() -> None:
    facts = {"EVENT": "名人戦", "SITE": "東京", "START_TIME": "2024/04/10 09:00"}
    header = "開始日時：2024/04/10 09:00\n棋戦：名人戦\n場所：東京\n手合割：平手\n*before\n"
    kif = read_record(
        "x.kif", (header + KIF[8:].replace("\n   2", "\n*good\n*move\n   2") + "投了").encode()
    )
    assert dict(kif.tags) == facts and kif.comments == ("good move", "")
    text = format_csa(kif.actions, comments=kif.comments, facts=tuple(kif.tags.items()))
    csa = read_record("x.csa", text.encode())
    assert (csa.tags, csa.comments, csa.actions) == (kif.tags, kif.comments, kif.actions)


def test_ratings_of_records_of_shogi_are_kept() -> None:
    text = "V2.2\nN+A\nN-B\n'black_rate:A:3001.5\n'white_rate:B:2950\nPI\n+\n+7776FU\n%CHUDAN\n"
    opened = open_record(network_of("shogi"), read_record("x.csa", text.encode()))
    saved = opened.text(opened.moves, None, ("A", "B"))
    assert read_record("y.csa", saved.encode()).ratings == (3001.5, 2950.0)


CSA = "V2.2\nPI\n+\n+7776FU\n-3334FU\n"
KIF = "手合割：平手\n   1 ７六歩(77)\n   2 ３四歩(33)\n   3 "


@pytest.mark.parametrize(
    ("name", "text", "ending", "said"),
    [
        ("x.csa", CSA + "%TIME_UP\n", "%TIME_UP", "White wins (%TIME_UP)"),
        ("x.csa", CSA + "%CHUDAN\n", "%CHUDAN", "%CHUDAN"),
        ("x.csa", CSA, "", ""),
        ("x.kif", KIF + "投了\n", "%TORYO", "White wins (投了)"),
        ("x.kif", KIF + "反則勝ち\n", "%-ILLEGAL_ACTION", "Black wins (反則勝ち)"),
        ("x.kif", KIF + "千日手\n", "%SENNICHITE", "a draw (千日手)"),
        ("x.ki2", "▲７六歩 △３四歩\nまで2手で後手の勝ち\n", "%TORYO", "White wins"),
        ("x.ki2", "▲７六歩 △３四歩\nまで2手で先手の勝ち\n", "%-ILLEGAL_ACTION", "Black wins"),
    ],
)
def test_the_result_of_a_record_of_shogi_is_a_special_move(name, text, ending, said) -> None:
    record = read_record(name, text.encode())
    assert (record.result, record.said) == (ending, said)


def test_the_result_of_a_record_is_shown(monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)
    service = Service(["random-net:chess?blocks=1&filters=4"])
    game = service.open(NewGame("0"), read_record("x.pgn", b'[Result "1-0"]\n\n1-0\n'))
    assert game.describe()["note"] == "The record's result: 1-0."


@pytest.mark.slow
def test_a_game_of_shogi_is_saved_and_opened_again(monkeypatch) -> None:
    monkeypatch.setattr(ServedNetwork, "begin", lambda network: None)  # nobody thinks here
    network = network_of("shogi", max_moves=LIMITS.moves)
    adapter = SquaresAdapter(network)
    play(adapter, "7g7f", "3c3d", "8h2b+", "3a2b", "B*5e")
    assert adapter.diagram()["hands"] == [{}, {"B": 1}]
    text = adapter.text(adapter.moves, None, ("sente", "gote"))
    assert text.startswith("V2.2\nN+sente\nN-gote") and text.rstrip().endswith("%CHUDAN")
    record = read_record("x.csa", text.encode())
    opened = open_record(network, record)
    service = Service(["random-net:shogi?blocks=1&filters=4"], LIMITS)
    game = service.open(NewGame("0"), record)
    assert opened.session.position.actions == adapter.session.position.actions
    assert [turn.name for turn in game.line][-1] == "B*5e" and game.players == ("sente", "gote")
    game = service.open(NewGame("0"), read_record("x.csa", f"{CSA}%TIME_UP\n".encode()))
    assert game.text(("", "")).endswith("-3334FU\n%TIME_UP\n")
    game.play(game.adapter.parse("2g2f"))
    assert game.text(("", "")).endswith("+2726FU\n%CHUDAN\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.sgf", "(;SZ[5]PB[1];B[cc])(;SZ[x]PB[2])(;SZ[5]PB[3];B[cc])"),
        ("x.pgn", '[White "1"]\n\n1. e4 *\n\n[White "2"]\n\n1. {\n\n[White "3"]\n\n1. d4 *\n'),
        ("x.csa", "N+1\nPI\n+\n+7776FU\n/\nN+2\nPI\n+\nx\n/\nN+3\nPI\n+\n+2726FU\n"),
    ],
)
def test_any_game_of_a_file_is_read_and_counted(name: str, text: str) -> None:
    for number in (1, 3):
        record = read_record(name, text.encode(), number)
        assert record.players[0] == str(number) and record.place == (number, 3)
    with pytest.raises(ValueError, match=rf"{name} game 2"):
        read_record(name, text.encode(), 2)
    with pytest.raises(ValueError, match="there is no game 4 in x"):
        read_record(name, text.encode(), 4)


def test_a_record_goes_to_a_network_that_plays_its_game() -> None:
    with running(["random-net:go5?blocks=1&filters=4", TICTACTOE], LIMITS) as server:
        _ = server.service
        answer = httpx.post(
            f"{server.url}/api/records",
            params={"name": "x.sgf", "network": "1"},
            content=b"(;SZ[5];B[cc])",
        )
        assert answer.json()["network"] == "0" and answer.json()["ply"] == 1
