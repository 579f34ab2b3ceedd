"""Go over the web server: moves, searches, records, limits, as a page sees them."""

import dataclasses
import itertools
import logging
import socket
import threading
import time
from collections.abc import Callable

import httpx
import numpy as np
import pytest
from web_server import GO5, Visitor, running

from azero.engines.web.go_adapter import GoAdapter
from azero.engines.web.limits import WebLimits
from azero.engines.web.searches import think
from azero.games.go.sgf import parse_games
from azero.players.thinking import Limits

LIMITS = WebLimits(visits=50_000, seconds=30.0, upload_bytes=4_000, moves=60)
OFF = ("plays", "wants_owners")


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def server():
    with running([GO5], LIMITS) as server:
        server.wait_until_ready()
        yield server


@pytest.fixture
def visitor(server):
    with Visitor(server.url) as visitor:
        yield visitor


def test_the_page_and_its_parts_are_served_and_closed_to_other_sites(server) -> None:
    page = httpx.get(server.url)
    assert page.status_code == 200 and "<title>azero</title>" in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for name in ("main.js", "board.js", "style.css"):
        assert httpx.get(f"{server.url}/static/{name}").status_code == 200
    assert httpx.get(f"{server.url}/static/../app.py").status_code == 404


def test_what_is_offered_is_described(server) -> None:
    answer = httpx.get(f"{server.url}/api/server").json()
    (network,) = answer["networks"]
    assert answer["state"] == "ready" and network["state"] == "ready"
    assert (network["game"], network["board"]) == ("go", [5, 5])
    assert answer["limits"] == {
        "visits": 50_000, "seconds": 30.0, "review_visits": 2000, "upload_bytes": 4000,
    }  # fmt: skip


def test_moves_are_played_taken_back_and_played_again(visitor) -> None:
    visitor.play("C3", "C4")
    assert visitor.game["stones"][12] == "X" and visitor.game["stones"][7] == "O"
    assert visitor.game["last"] == [7] and visitor.game["to_play"] == 0
    visitor.post("goto", ply=0).raise_for_status()
    assert visitor.game["stones"] == "." * 25 and len(visitor.game["line"]) == 2
    visitor.play("C3")
    assert [label for _, _, label in visitor.game["line"]] == ["C3", "C4"]
    visitor.play("B2")
    assert [label for _, _, label in visitor.game["line"]] == ["C3", "B2"]


def test_a_capture_takes_the_stone_and_the_ko_is_not_legal(visitor) -> None:
    visitor.play("B3", "C3", "A2", "D2", "B1", "C1", "C2", "B2")
    assert visitor.game["stones"][3 * 5 + 2] == "."
    assert visitor.game["legal"][3 * 5 + 2] == "0"
    answer = visitor.post("play", move="C2", ply=8)
    assert answer.status_code == 400 and answer.json() == {"error": "illegal move"}


def test_a_visitor_who_goes_during_a_request_leaves_no_traceback(server, caplog) -> None:
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(caplog.handler)
    head = "POST /api/games HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as visitor:
        visitor.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
        assert b"100 Continue" in visitor.recv(100)
    time.sleep(0.3)
    logger.removeHandler(caplog.handler)
    assert not caplog.records


def test_a_second_click_does_nothing(visitor) -> None:
    visitor.play("C3")
    answer = visitor.post("play", move="C4", ply=0)
    assert answer.status_code == 409
    assert visitor.http.get(f"/api/games/{visitor.game['id']}").json()["ply"] == 1


def test_after_two_passes_dead_stones_are_removed_and_the_result_is_there(visitor) -> None:
    # Black walls off the board with C1 to C5, White's stone at A1 is alone.
    visitor.play("C1", "A1", "C2", "pass", "C3", "pass", "C4", "pass", "C5", "pass")
    visitor.play("B3", "pass", "D3", "pass", "pass")
    assert visitor.game["over"] and visitor.game["winner"] == 0
    assert visitor.game["result"] == "Black wins by 24.5 points (1 dead stone removed)"
    assert visitor.game["dead"] == [20]
    assert visitor.post("play", move="D4", ply=visitor.game["ply"]).status_code == 400
    visitor.post("goto", ply=visitor.game["ply"] - 1).raise_for_status()
    assert not visitor.game["over"]


def test_resignation_ends_the_game_until_it_is_taken_back(visitor) -> None:
    visitor.play("C3")
    visitor.post("resign", colour=1).raise_for_status()
    assert visitor.game["result"] == "Black wins: White resigns"
    assert visitor.events("think", visits=1)[0][0] == "error"
    visitor.post("goto", ply=0).raise_for_status()
    assert not visitor.game["over"]


def test_a_resigned_game_stays_over_after_a_review_until_it_goes_on(visitor) -> None:
    visitor.play("C3", "C4")
    visitor.post("resign", colour=1).raise_for_status()
    moves = [data for kind, data in visitor.events("review", visits=5) if kind == "move"]
    assert [move["ply"] for move in moves] == [1, 2] and 0 < moves[-1]["firstWinrate"] < 1
    loaded = visitor.http.get(f"/api/games/{visitor.game['id']}").json()
    assert loaded["ply"] == 2 and loaded["result"] == "Black wins: White resigns"
    visitor.post("goto", ply=1).raise_for_status()
    assert not visitor.game["over"] and len(visitor.game["line"]) == 2
    visitor.post("goto", ply=2).raise_for_status()
    assert visitor.game["over"]
    visitor.post("goto", ply=1).raise_for_status()
    visitor.play("C4")
    assert not visitor.game["over"] and visitor.game["ply"] == 2


def test_a_resignation_alone_is_taken_back(visitor) -> None:
    visitor.post("resign", colour=0).raise_for_status()
    assert visitor.game["over"] and visitor.game["resigned"]
    visitor.post("unresign").raise_for_status()
    assert not visitor.game["over"] and not visitor.game["resigned"]
    visitor.play("C3", "C4")
    visitor.post("resign", colour=1).raise_for_status()
    visitor.post("goto", ply=1).raise_for_status()
    visitor.post("unresign").raise_for_status()  # not where the game was resigned
    visitor.post("goto", ply=2).raise_for_status()
    assert visitor.game["resigned"]
    visitor.post("unresign").raise_for_status()
    assert visitor.game["ply"] == 2 and not visitor.game["over"]
    assert "RE[" not in visitor.http.get(f"/api/games/{visitor.game['id']}/record").text
    visitor.play("B3")
    assert len(visitor.game["line"]) == 3


def test_moves_that_were_taken_back_do_not_count_towards_resigning(server, visitor) -> None:
    server.service.game(visitor.game["id"]).settings.resign_threshold = 1.0  # all is hopeless

    def resigns() -> bool:
        visitor.game |= dict(visitor.events("think", visits=2, plays=True))["game"]
        return visitor.game["resigned"]

    for _ in range(4):
        assert not resigns()
        visitor.post("goto", ply=0).raise_for_status()
    for _ in range(2):
        assert not resigns()
        visitor.play("pass")
    assert resigns()
    visitor.post("unresign").raise_for_status()
    assert not resigns()


def test_a_page_that_is_loaded_during_a_review_gets_the_current_position(visitor) -> None:
    visitor.play("C3", "C4", "B3", "B4")
    events = visitor.stream("review", visits=2_000)
    while next(events)[0] != "move":
        pass
    assert visitor.http.get(f"/api/games/{visitor.game['id']}").json()["ply"] == 4
    events.close()


def test_a_search_reports_what_it_finds_and_the_network_plays_its_best_move(visitor) -> None:
    visitor.play("C3")
    events = visitor.events("think", visits=60, plays=True, ownership=True)
    kinds = [kind for kind, _ in events]
    assert kinds[-2:] == ["game", "end"] and set(kinds) <= {"status", "analysis", "game", "end"}
    analysis = [data for kind, data in events if kind == "analysis"][-1]
    assert analysis["ply"] == 1 and analysis["toPlay"] == 1
    assert 60 <= analysis["visits"] < 70
    assert sum(analysis["policy"]) == pytest.approx(1, abs=0.01) and len(analysis["policy"]) == 26
    assert analysis["policy"][12] == 0
    assert len(analysis["ownership"]) == 25 and all("lead" in move for move in analysis["moves"])
    best = analysis["moves"][0]
    assert 0 <= best["winrate"] <= 1 and best["visits"] > 0
    game = dict(events)["game"]
    assert game["ply"] == 2 and game["line"][1][1] == best["pv"][0]


def test_a_search_in_seconds_takes_them(visitor) -> None:
    began = time.perf_counter()
    events = visitor.events("think", seconds=0.5)
    assert 0.3 < time.perf_counter() - began < 10
    assert dict(events)["analysis"]["visits"] <= LIMITS.visits


def test_a_closed_tab_ends_its_search(server, visitor) -> None:
    stream = visitor.stream("think")
    assert next(stream)[0] in ("analysis", "status")
    stream.close()
    deadline = time.monotonic() + 10
    while server.network().search_lock.is_locked:
        assert time.monotonic() < deadline, "the search goes on without its page"
        time.sleep(0.02)
    visitor.play("C3")
    assert visitor.events("think", visits=8, plays=True)[-2][0] == "game"


def test_a_move_during_a_search_ends_it_and_the_network_does_not_answer(server) -> None:
    with Visitor(server.url) as thinker, Visitor(server.url) as other:
        stream = thinker.stream("think", plays=True)
        next(stream)
        other.game = thinker.game
        other.play("C3")
        assert "game" not in [kind for kind, _ in stream]
        assert other.http.get(f"/api/games/{other.game['id']}").json()["ply"] == 1


def test_a_change_does_not_wait_for_a_search_that_was_asked_for_later(server, visitor) -> None:
    game, later, has_begun = server.service.game(visitor.game["id"]), threading.Event(), []
    limits = Limits(visits=10**9, seconds=4.0)

    def search(stop: threading.Event) -> threading.Thread:
        push = lambda *event: has_begun.append(stop)  # noqa: E731
        thread = threading.Thread(
            target=think, args=(game, push, stop, limits), kwargs=dict.fromkeys(OFF, False)
        )
        thread.start()
        return thread

    class Earlier(threading.Event):
        """While the change stops it, the later search begins if it can."""

        def set(self) -> None:
            if not self.is_set():
                super().set()
                threads.append(search(later))
                wait_for(lambda: later in has_begun, 1.0)

    threads = [search(earlier := Earlier())]
    wait_for(lambda: earlier in has_begun, 5.0)
    visitor.post("goto", ply=0).raise_for_status()
    assert threads[1].is_alive(), "the change came after the later search"
    later.set()
    for thread in threads:
        thread.join(10)


def test_a_game_is_saved_and_opened_again(server, visitor) -> None:
    visitor.play("C3", "pass", "B2")
    visitor.post("goto", ply=1).raise_for_status()
    answer = visitor.http.get(
        f"/api/games/{visitor.game['id']}/record", params={"first": "You", "second": "azero"}
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="azero-go.sgf"'
    (record,) = parse_games(answer.content, "saved")
    assert record.players == ("You", "azero") and len(record.moves) == 3
    opened = visitor.http.post("/api/records", params={"name": "x.SGF"}, content=answer.content)
    assert opened.status_code == 201
    game = opened.json()
    assert game["players"] == ["You", "azero"] and game["ply"] == 3
    assert game["line"] == visitor.game["line"] and game["komi"] == visitor.game["komi"]


def test_a_saved_game_has_its_result_and_that_of_a_record_is_kept(visitor) -> None:
    def result(game: str) -> str:
        (record,) = parse_games(visitor.http.get(f"/api/games/{game}/record").content, "saved")
        return record.result

    visitor.play("C3")
    assert result(visitor.game["id"]) == ""
    visitor.post("resign", colour=1).raise_for_status()
    visitor.post("goto", ply=0).raise_for_status()
    assert result(visitor.game["id"]) == "B+R"
    visitor.play("B2")
    assert result(visitor.game["id"]) == ""
    text = b"(;SZ[5]RE[W+T];B[cc])"
    opened = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text).json()
    assert result(opened["id"]) == "W+T"


def test_a_record_keeps_its_rules_and_its_result(visitor) -> None:
    """A count by territory, and Black's suicide under the rules of New Zealand."""
    texts = [
        b"(;SZ[5]KM[0.5]RU[Japanese]RE[B+24.5];B[cc];W[];B[])",
        b"(;SZ[5]KM[0.5]RU[NZ]RE[W+R];B[aa];W[ab];B[ea];W[bb];B[eb];W[ca];B[ba])",
    ]
    notes = []
    for text in texts:
        answer = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text)
        game = answer.raise_for_status().json()
        (record,) = parse_games(visitor.http.get(f"/api/games/{game['id']}/record").content, "x")
        (original,) = parse_games(text, "x")
        assert (record.rules, record.result) == (original.rules, original.result)
        assert record.moves == original.moves
        notes.append(game["note"].partition(" The network")[0])
    assert notes[0].startswith(
        "The record's result: B+24.5. The record's rules, 'Japanese', have scoring TERRITORY"
    )
    assert notes[1] == "The record's result: W+R."


def test_a_record_that_is_played_to_another_end_has_the_rules_that_count(visitor) -> None:
    text = b"(;SZ[5]KM[0.5]RU[Japanese]RE[B+R];B[cc];W[bb];B[bc])"
    game = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text).json()
    saved = []
    for move in ("A1", "pass", "pass"):
        fields = {"move": move, "ply": 3 + len(saved)}
        visitor.http.post(f"/api/games/{game['id']}/play", json=fields).raise_for_status()
        (record,) = parse_games(visitor.http.get(f"/api/games/{game['id']}/record").content, "x")
        saved.append((record.rules, record.result))
    assert saved == [("Japanese", ""), ("Japanese", ""), ("Chinese", "B+24.5")]


def test_a_record_keeps_its_date_ranks_event_and_the_comments_of_its_moves(visitor) -> None:
    text = (
        b"(;SZ[5]KM[0.5]DT[1846-09-11]BR[4p]WR[8p]PB[Shusaku]PW[Inseki]EV[Castle]RO[2]PC[Osaka]"
        b"C[Ear-reddening];B[cc]C[best\\] move];W[];B[bb]C[why?])"
    )
    game = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text).json()
    (original,) = parse_games(text, "x")

    def saved():
        (record,) = parse_games(visitor.http.get(f"/api/games/{game['id']}/record").content, "x")
        return record

    assert saved() == dataclasses.replace(original, rules="Chinese", others=saved().others)
    assert sorted(saved().others) == sorted(original.others) and len(original.others) == 4
    visitor.http.post(f"/api/games/{game['id']}/goto", json={"ply": 2}).raise_for_status()
    fields = {"move": "B3", "ply": 2}
    visitor.http.post(f"/api/games/{game['id']}/play", json=fields).raise_for_status()
    assert saved().comments == ("best] move", "", "") and saved().date == "1846-09-11"


def test_a_game_that_does_not_alternate_is_opened_as_it_is(visitor) -> None:
    text = b"(;SZ[5]KM[2.5]AB[cc][bb]PL[W];W[dd];W[dc];B[aa])"
    answer = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text).json()
    assert [(colour, label) for colour, _, label in answer["line"]] == [
        (1, "D2"),
        (1, "D3"),
        (0, "A5"),
    ]
    assert answer["handicap"] == 2 and answer["komi"] == 2.5
    assert answer["note"].startswith("The network was trained with komi")


@pytest.mark.parametrize(
    ("name", "text", "status", "problem"),
    [
        ("x.sgf", b"no game", 400, "no SGF data"),
        ("x.sgf", b"(;SZ[9];B[ee])", 400, "no network here plays go on 9x9"),
        ("x.sgf", b"(;SZ[5];B[cc];W[cc])", 400, "move 2 is illegal"),
        ("x.sgf", b"(;SZ[5]" + b";B[cc];W[]" * 40 + b")", 400, "60 are the most here"),
        ("x.sgf", b"(;SZ[5]C[" + b"x" * 5_000 + b"])", 413, "4,000 bytes are allowed"),
        ("x.pgn", b"1. e4 *", 400, "no network here plays chess on 8x8"),
        ("x.doc", b"1. e4 *", 400, "'x.doc' is not a game record"),
        ("x.kif", b"\x81", 400, "cannot be read"),
        ("x.kif", b"", 400, "'x.kif' is empty"),
    ],
)
def test_records_that_cannot_be_opened_are_refused_with_a_reason(
    visitor, name, text, status, problem
) -> None:
    answer = visitor.http.post("/api/records", params={"name": name}, content=text)
    assert answer.status_code == status and problem in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_a_review_looks_at_every_position_and_leaves_the_current_one(visitor) -> None:
    visitor.play("C3", "A1", "pass", "pass")
    visitor.post("goto", ply=1).raise_for_status()
    events = visitor.events("review", visits=20)
    plies = [data["ply"] for kind, data in events if kind == "analysis"]
    moves = [data for kind, data in events if kind == "move"]
    assert plies == [0, 1, 2, 3] and [move["ply"] for move in moves] == [1, 2, 3, 4]
    assert [move["played"] for move in moves] == ["C3", "A1", "pass", "pass"]
    assert all(0 <= move["loss"] <= 1 for move in moves)
    analyses = {data["ply"]: data for kind, data in events if kind == "analysis"}
    for move in moves:
        before, after = analyses[move["ply"] - 1], analyses.get(move["ply"])
        played = visitor.game["line"][move["ply"] - 1][1]
        if played == before["moves"][0]["pv"][0]:
            assert move["loss"] == 0
        elif after is not None:
            expected = max(0.0, before["winrate"] - (1 - after["winrate"]))
            assert move["loss"] == pytest.approx(expected, abs=2e-4)
    # The last pass ends the game, which is counted: Black has C3, White's A1 is dead.
    assert moves[-1]["firstWinrate"] == 1
    assert visitor.http.get(f"/api/games/{visitor.game['id']}").json()["ply"] == 1
    assert visitor.events("review", visits=5)[-1][0] == "end"


def test_a_review_judges_moves_out_of_turn_for_the_side_that_made_them(visitor) -> None:
    text = b"(;SZ[5]KM[2.5];B[cc];B[bb];W[dd];W[aa];B[dc])"
    game = visitor.http.post("/api/records", params={"name": "x.sgf"}, content=text).json()
    visitor.game = game
    events = visitor.events("review", visits=20)
    rates = [  # of the first player
        data["winrate"] if data["toPlay"] == 0 else 1 - data["winrate"]
        for kind, data in events
        if kind == "analysis"
    ]
    moves = [data for kind, data in events if kind == "move"]
    assert len(rates) == 6 and len(moves) == 5
    for move, before, after in zip(moves, rates, rates[1:], strict=False):
        gained = after - before if move["colour"] == 0 else before - after
        assert move["firstWinrate"] == pytest.approx(after, abs=2e-4)
        if move["ply"] in (2, 4):  # the search before it was the other side's
            assert move["loss"] == pytest.approx(max(0.0, -gained), abs=2e-4)


def test_handicap_and_komi_are_as_asked_for(server) -> None:
    with Visitor(server.url, komi=-3.5) as visitor:
        assert visitor.game["komi"] == -3.5
    answer = httpx.post(f"{server.url}/api/games", json={"network": "0", "handicap": 3})
    assert (
        answer.status_code == 400 and "no fixed handicap on a 5x5 board" in answer.json()["error"]
    )
    answer = httpx.post(f"{server.url}/api/games", json={"network": "0", "komi": 0.3})
    assert answer.json()["error"].endswith("is a multiple of 0.5 from -10,000 to 10,000, not 0.3")
    answer = httpx.post(f"{server.url}/api/games", json={"network": "0", "columns": 9})
    assert answer.json() == {"error": "random go5 plays on 5x5 only"}
    answer = httpx.post(f"{server.url}/api/games", json={"network": "0", "size": 5})
    assert answer.status_code == 400 and "Unknown; a new game has network" in answer.json()["error"]


def test_a_draw_says_why(server) -> None:
    with Visitor(server.url, komi=0) as visitor:
        visitor.play("pass", "pass")
        assert visitor.game["result"] == "The game is a draw (equal points)"


@pytest.mark.parametrize("komi", [-30.0, 30.0])
def test_a_game_that_reaches_its_length_is_counted_with_its_komi(server, komi) -> None:
    board = GoAdapter(server.network(), komi)
    random = np.random.default_rng(0)
    while not (position := board.game.position).is_over:
        points = np.flatnonzero(position.legal[:-1])
        board.play(position.to_play, int(random.choice(points)) if len(points) else 25)
    outcome = board.outcome()
    assert len(board.moves) == 100, "nobody ended it by passing"
    assert outcome is not None and outcome.winner == int(komi > 0)


def test_a_game_ends_at_its_limit_of_moves(visitor) -> None:
    free = (f"{column}{row}" for row, column in itertools.product((1, 3, 5), "ABCDE"))
    for number in range(LIMITS.moves):
        visitor.play(next(free, "pass") if number % 2 == 0 else "pass")
        if visitor.game["over"]:
            break
    answer = visitor.post("play", move="B2", ply=visitor.game["ply"])
    assert answer.status_code == 400
