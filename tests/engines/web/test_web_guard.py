"""Who may use the web server, and what hostile visitors get."""

import contextlib
import dataclasses
import json
import math
import random
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import pytest
from web_server import GO5, Visitor, running

from azero.commands.engines import web
from azero.engines.web import serve as serving
from azero.engines.web.limits import WebLimits

TOKEN = "a-token-of-24-characters"
LIMITS = WebLimits(visits=5_000, seconds=20.0, upload_bytes=20_000, games=20, moves=100)
NUM_REQUESTS = 1_000
VISITORS = 50


@pytest.fixture(scope="module")
def server():
    with running([GO5], LIMITS) as server:
        server.wait_until_ready()
        yield server


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "", "[::1", "2130706433"]
)
def test_other_host_names_are_refused(server, host) -> None:
    answer = httpx.get(f"{server.url}/api/server", headers={"host": host})
    assert answer.status_code in (400, 421) and "networks" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1234", "[::1]:80", "LOCALHOST:8361"])
def test_names_of_this_machine_are_answered(server, host) -> None:
    assert httpx.get(f"{server.url}/api/server", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "http://[::"]
)
def test_pages_of_other_sites_are_refused(server, origin) -> None:
    answer = httpx.post(
        f"{server.url}/api/games", json={"network": "0"}, headers={"origin": origin}
    )
    assert answer.status_code == 403 and "other sites" in answer.json()["error"]


def test_requests_that_a_browser_marks_as_cross_site_are_refused(server) -> None:
    headers = {"sec-fetch-site": "cross-site"}
    answer = httpx.post(f"{server.url}/api/games", json={"network": "0"}, headers=headers)
    assert answer.status_code == 403


def test_connections_without_a_whole_head_are_closed_and_make_room_for_others() -> None:
    limits = dataclasses.replace(LIMITS, request_seconds=1.0, connections=4)
    heads = [
        b"",
        b"GET /api/server HTTP/1.1\r\nhost: localhost\r\n",
        b"GET /api/server HTTP/1.1\r\nhost: localhost\r\n\r\nGET /",
    ]
    with running([GO5], limits) as server, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        open_ones = [
            stack.enter_context(socket.create_connection(address, 20))
            for _ in range(2)
            for _ in heads
        ]
        for connection, head in zip(open_ones, heads * 2, strict=True):
            connection.sendall(head)
        time.sleep(0.2)
        assert httpx.get(f"{server.url}/api/server").status_code == 503
        for connection in open_ones:
            while connection.recv(1 << 16):
                pass
        assert httpx.get(f"{server.url}/api/server").status_code == 200


def test_whoever_sends_far_too_much_reads_why_it_is_refused() -> None:
    """More than fits between the two, so that the server cannot answer before it has read."""
    with running([GO5]) as server:
        answer = httpx.post(
            f"{server.url}/api/records", params={"name": "x.sgf"}, content=b"x" * (15 << 20)
        )
    assert answer.status_code == 413 and "1,048,576 bytes are allowed" in answer.json()["error"]


def test_with_a_token_nobody_gets_in_without_it() -> None:
    with running([GO5], LIMITS, TOKEN) as server:
        for path in ("/", "/api/server", "/static/main.js", "/?token=wrong", "/?token="):
            answer = httpx.get(server.url + path, headers={"host": "any.example"})
            assert answer.status_code == 401 and "token" in answer.json()["error"]
        cookies = {f"azero_token_{server.port}": "wrong"}
        assert httpx.get(server.url, cookies=cookies).status_code == 401
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.get(f"{server.url}/api/server", headers=bearer).status_code == 200
        with httpx.Client(base_url=server.url) as browser:
            answer = browser.get("/", params={"token": TOKEN})
            assert answer.status_code == 303 and answer.headers["location"] == "/"
            assert "HttpOnly" in answer.headers["set-cookie"]
            assert "SameSite=Strict" in answer.headers["set-cookie"]
            assert browser.get("/").status_code == 200
            elsewhere = browser.get(f"{server.url}//evil.example/", params={"token": TOKEN})
            assert elsewhere.headers["location"] == "/evil.example/"


def test_servers_on_one_machine_do_not_lock_out_each_others_visitors() -> None:
    tokens = (TOKEN, TOKEN[::-1])
    with (
        running([GO5], LIMITS, tokens[0]) as one,
        running([GO5], LIMITS, tokens[1]) as two,
        httpx.Client() as browser,  # whose cookies are of the machine, whatever the port
    ):
        for server, token in zip((one, two), tokens, strict=True):
            browser.get(server.url, params={"token": token})
        assert [browser.get(server.url).status_code for server in (one, two)] == [200, 200]


def test_a_token_of_any_characters_opens_the_printed_address() -> None:
    token = "q+Zr/8mN2x9&Yc=W0a; ü≥"
    with running([GO5], LIMITS, token) as server, httpx.Client() as browser:
        address = serving._address("127.0.0.1", server.port, token)
        assert browser.get(address, follow_redirects=True).status_code == 200


def test_an_address_that_others_can_reach_gets_a_token(monkeypatch, capsys) -> None:
    made = []
    monkeypatch.setattr(serving.uvicorn.Server, "run", lambda self, sockets: made.append(self))
    monkeypatch.setattr(serving, "exit_at_once", lambda status: None)
    serving.serve([GO5], host="0.0.0.0", port=0, opens_browser=False)
    address = capsys.readouterr().out.split()[2]
    assert len(address.partition("?token=")[2]) >= 24
    assert made[0].config.app._token == address.partition("?token=")[2]
    serving.serve([GO5], port=0, opens_browser=False)
    assert "token" not in capsys.readouterr().out
    for port in (-1, 65_536):
        with pytest.raises(ValueError, match=f"--port is from 0 to 65535, not {port}"):
            web(("go5",), port=port)
    for limits in ({"visits_limit": 0}, {"seconds_limit": math.nan}, {"seconds_limit": math.inf}):
        with pytest.raises(ValueError, match="--seconds-limit a number above 0"):
            web(("go5",), **limits)
    with pytest.raises(ValueError, match="--token must have at least 16 characters"):
        serving.serve([GO5], token="short")


def test_a_player_that_does_not_exist_and_a_port_that_is_taken_are_said_in_a_line(tmp_path) -> None:
    with pytest.raises(ValueError, match="there is no directory 'no-such', and the networks"):
        serving.serve(["no-such"], port=0, opens_browser=False)
    with running([GO5]) as server, pytest.raises(ValueError, match="choose another with --port"):
        serving.serve([GO5], port=server.port, opens_browser=False)


def test_whoever_connects_as_soon_as_the_address_is_known_is_not_refused() -> None:
    with serving._bind("127.0.0.1", 0) as bound:
        socket.create_connection(bound.getsockname(), timeout=5).close()


@pytest.mark.parametrize("port", [None, 9000])
def test_an_address_of_another_machine_is_not_taken_for_a_port_in_use(port) -> None:
    problem = r"cannot listen on 192\.0\.2\.1: .*; choose another with --host"
    with pytest.raises(ValueError, match=problem):
        serving.serve([GO5], host="192.0.2.1", port=port, opens_browser=False)


def test_the_page_is_there_before_jax_is_loaded() -> None:
    check = "import sys, azero.engines.web.serve; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


@pytest.mark.parametrize("seconds", [0.0, 4.0])
def test_ctrl_c_ends_the_server_quietly_whatever_it_does(seconds) -> None:
    with _serving() as (server, _):
        time.sleep(seconds)  # it is loading JAX, compiling, or done
        _end_quietly(server)


def test_ctrl_c_ends_the_server_quietly_while_visitors_think() -> None:
    with _serving() as (server, url):
        while httpx.get(f"{url}/api/server").json()["state"] != "ready":
            time.sleep(0.1)
        with Visitor(url) as one, Visitor(url) as two:
            streams = [visitor.stream("think", ownership=True) for visitor in (one, two)]
            for events in streams:
                while next(events)[0] != "analysis":
                    pass
            _end_quietly(server)


@contextlib.contextmanager
def _serving():
    """Serve in a process of its own; the process and the address."""
    command = [sys.executable, "-m", "azero", "web", GO5, "--port", "0", "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as server:
        line = server.stdout.readline()
        assert "http://127.0.0.1:" in line
        try:
            yield server, line.split()[2].rstrip("/")
        finally:
            server.kill()  # or the test would wait for ever


def _end_quietly(server: subprocess.Popen) -> None:
    server.send_signal(signal.SIGINT)
    _, errors = server.communicate(timeout=60)
    assert server.returncode == 0
    assert "terminate" not in errors and "Traceback" not in errors and "ERROR" not in errors


def _hostile(seed: int, game: str) -> tuple[str, str, bytes, dict[str, str]]:
    """Return a request that is wrong in some way: method, path, body, headers."""
    draw = random.Random(seed)
    junk = draw.choice([
        b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 5_000, b'{"a":' * 3_000, b"1" * 9_000, b"x" * 30_000,
        json.dumps({"move": "C3", "ply": draw.choice([-1, 2**70, "0", None, 0.5, True, [], {}])}).encode(),
        json.dumps({"move": draw.choice(["", "Z99", "\x00", "C3" * 9, 3, None, "résigné"]), "ply": 0}).encode(),
        json.dumps({"ply": draw.choice([-1, 1e300, 10**6, "x", None])}).encode(),
        json.dumps({"visits": draw.choice([0, -1, 10**9, "all", 1.5]), "seconds": 1}).encode(),
        b'{"visits": 10, "seconds": NaN}', b'{"visits": 10, "seconds": -Infinity}',
        json.dumps({"network": draw.choice(["9", 0, None, "../..", "x" * 500]), "komi": 1e99}).encode(),
        json.dumps({"network": "0", "columns": draw.choice([0, -1, 19, 10**9]), "handicap": 9}).encode(),
        json.dumps({"network": "0", "start": "rnbqkbnr/8/8/8 w - - 0 1", "iteration": 7}).encode(),
        json.dumps({"colour": draw.choice([2, -1, "black", None])}).encode(),
        b"(;SZ[99]", b"(;SZ[5];B[zz])", b"(;SZ[5]" + b"(" * 4_000, b"(;SZ[5]AB[aa:ee])", b"(;GM[2])",
    ])  # fmt: skip
    path = draw.choice([
        f"/api/games/{game}/play", f"/api/games/{game}/goto", f"/api/games/{game}/resign",
        f"/api/games/{game}/think", f"/api/games/{game}/review", "/api/games", "/api/games/nobody/play",
        "/api/records?name=x.sgf", "/api/records?name=x.pgn", "/api/records", "/api/records?name=" + "x" * 900,
        "/api/runs/0", "/api/runs/0/games", "/api/runs/..%2f..", "/api/../../etc/passwd", "/static/%2e%2e/app.py", "/nothing",
    ])  # fmt: skip
    method = draw.choice(["POST"] * 6 + ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
    headers = draw.choice(
        [
            {},
            {},
            {"content-type": "text/x"},
            {"x-forwarded-host": "evil"},
            {"cookie": 'azero_token="\\'},
        ]
    )
    return method, path, junk, headers


def test_a_thousand_malformed_requests_harm_nobody(server) -> None:
    with Visitor(server.url) as victim, httpx.Client(base_url=server.url, timeout=60) as attacker:
        victim.play("C3")
        target = Visitor(server.url).game["id"]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seed in range(NUM_REQUESTS):
            method, path, body, headers = _hostile(seed, target)
            answer = attacker.request(method, path, content=body, headers=headers)
            assert answer.status_code < 500, (seed, method, path, answer.text)
            if answer.status_code >= 400:
                message = answer.json()["error"]
                assert "Traceback" not in message and "\n" not in message and len(message) < 500
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KiB on Linux
        assert grown < 100_000
        assert len(server.service._games) <= LIMITS.games
        victim.play("B2")
        assert victim.events("think", visits=10, plays=True)[-2][0] == "game"


def test_games_beyond_the_limit_replace_those_left_longest(server) -> None:
    with Visitor(server.url) as first, Visitor(server.url) as second:
        for _ in range(LIMITS.games - 1):
            first.http.get(f"/api/games/{first.game['id']}").raise_for_status()
            httpx.post(f"{server.url}/api/games", json={"network": "0"}).raise_for_status()
        assert len(server.service._games) == LIMITS.games
        first.play("C3")
        answer = second.post("play", move="C3", ply=0)
        assert answer.status_code == 404
        assert answer.json() == {"error": "this game is no longer in memory; begin a new one"}


def test_fifty_visitors_at_once_all_get_their_games() -> None:
    limits = WebLimits(searches=VISITORS, trees=4)
    with running([GO5], limits) as server:
        server.wait_until_ready()
        games: dict[int, dict] = {}

        def visit(number: int) -> None:
            with Visitor(server.url, komi=number / 2) as visitor:
                for _ in range(3):
                    free = visitor.game["legal"].index("1")
                    visitor.play("ABCDE"[free % 5] + "54321"[free // 5])
                    *_, (kind, _) = (
                        e for e in visitor.events("think", visits=12, plays=True) if e[0] != "end"
                    )
                    assert kind == "game"
                    visitor.game = visitor.http.get(f"/api/games/{visitor.game['id']}").json()
                games[number] = visitor.game

        threads = [threading.Thread(target=visit, args=(number,)) for number in range(VISITORS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert len(games) == VISITORS
        for number, game in games.items():
            assert game["ply"] == 6 and game["komi"] == number / 2
        network = server.network()
        assert len(network._players) <= limits.trees


def test_more_searches_than_allowed_are_refused_and_the_others_end() -> None:
    with running([GO5], WebLimits(searches=2)) as server:
        server.wait_until_ready()
        with Visitor(server.url) as one, Visitor(server.url) as two, Visitor(server.url) as three:
            streams = [one.stream("think", seconds=20.0), two.stream("think", seconds=20.0)]
            for stream in streams:
                next(stream)
            answer = three.post("think", visits=1)
            assert answer.status_code == 503 and "too many searches" in answer.json()["error"]
            for stream in streams:
                stream.close()
