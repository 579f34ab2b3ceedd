"""The engines as other programs meet them: processes behind pipes, with a client that knows the
protocol's pages only."""

import io
import os
import sys
import time

import pytest
from gtp_client import AnalysisClient, GtpClient, ProtocolError, Refused, parse_kata, parse_lz

from azero.commands.main import main
from azero.engines import lines

COMMAND = [sys.executable, "-m", "azero"]
NETWORK = ["--random-net", "go5?blocks=1&filters=8"]


def _environment() -> dict[str, str]:
    return {**os.environ, "JAX_NUM_CPU_DEVICES": "2"}


@pytest.fixture(scope="module")
def client():
    client = GtpClient([*COMMAND, "gtp", *NETWORK, "--visits", "20"], _environment())
    yield client
    client.process.kill()
    client.close()


def test_the_engine_says_at_once_that_it_starts_and_answers_before_it_is_ready(client) -> None:
    assert client.ask("protocol_version", timeout=240.0) == "2" and client.ask("name") == "azero"
    assert client.ask("boardsize 5") == "" and client.ask("kata-set-rules chinese") == ""
    assert "starting" in client.complaints[0][1] and not any(
        "ready after" in text for _, text in client.complaints
    )
    assert {"lz-analyze", "kata-analyze", "genmove", "final_score", "loadsgf", "undo"} <= set(
        client.ask("list_commands").split("\n")
    )
    with pytest.raises(Refused, match="unacceptable size: the network plays 5x5 only"):
        client.ask("boardsize 19")


def test_a_game_is_played_with_undo(client) -> None:
    for command in ("boardsize 5", "komi 0.5", "clear_board", "play B C3"):
        assert client.ask(command) == ""
    move = client.ask("genmove W", timeout=240.0)
    assert move != "C3" and (move == "resign" or client.ask("last_move") == f"white {move}")
    assert client.ask("undo") == "" and client.ask("last_move") == "black C3"
    with pytest.raises(Refused, match="illegal move"):
        client.ask("play W C3")


def test_analysis_has_the_forms_that_programs_read(client) -> None:
    reports, took = client.analyze("lz-analyze B 10", 3, "name")
    assert took < 2.0 and any("ready after" in text for _, text in client.complaints)
    moves = parse_lz(reports[-1])
    assert [move["order"] for move in moves] == list(range(len(moves))) and all(
        0 <= move["winrate"] <= 10_000 for move in moves
    )
    assert all(move["pv"][0] == move["move"] and move["visits"] > 0 for move in moves)
    # of the moves visited so far: on a busy machine not all
    priors = sum(move["prior"] for move in moves)
    assert 0 < priors < 10_500 and (priors > 9_500 or len(moves) < 26)
    totals = [sum(move["visits"] for move in parse_lz(report)) for report in reports]
    assert totals == sorted(totals) and totals[-1] > totals[0]

    reports, took = client.analyze(
        "kata-analyze W interval 10 maxmoves 3 rootInfo true", 2, "play W D4"
    )
    moves, root = parse_kata(reports[-1])
    assert (
        took < 2.0
        and 1 <= len(moves) <= 3
        and 0 <= root["winrate"] <= 1
        and root["visits"] >= sum(move["visits"] for move in moves)
    )
    assert {"move", "visits", "winrate", "utility", "prior", "lcb", "order", "pv"} <= set(moves[0])
    assert client.ask("last_move") == "white D4", "what ends an analysis is carried out"
    *lines, last = client.ask("lz-genmove_analyze B 10").split("\n")
    assert last.startswith("play ") and (not lines or parse_lz(lines[-1]))


def test_a_flood_of_commands_is_answered_in_order(client) -> None:
    client.write(
        b"".join(f"{number} known_command name\n".encode() for number in range(9000, 9500))
    )
    assert all(client.answer(number) == "true" for number in range(9000, 9500))
    client.write(b"7777 lz-analyze 1\n7778 kata-analyze 1\n7779 name\n")
    for number in (7777, 7778):
        assert client.line(10.0) == f"={number}"
        while client.line(10.0):
            pass
    assert client.answer(7779) == "azero"


def test_raw_network_output_is_a_distribution(client) -> None:
    client.ask("clear_board")
    words = client.ask("kata-raw-nn 0").split()
    values = dict(zip(words[:8:2], words[1:8:2], strict=True))
    policy = [
        float(word) for word in words[words.index("policy") + 1 : words.index("policyPass")]
    ] + [float(words[-1])]
    assert (
        float(values["whiteWin"]) + float(values["whiteLoss"]) == pytest.approx(1)
        and len(policy) == 26
        and sum(policy) == pytest.approx(1, abs=1e-4)
    )


def test_nothing_but_the_protocol_is_printed_and_quit_ends_it(client) -> None:
    assert client.ask("quit") == "" and client.process.wait(60.0) == 0 and client.nothing_more()
    with pytest.raises((OSError, ProtocolError)):
        client.ask("name")


def test_the_analysis_engine_behind_pipes() -> None:
    client = AnalysisClient([*COMMAND, "analysis", *NETWORK, "--visits", "16"], _environment())
    try:
        query = {
            "moves": [["B", "C3"]],
            "rules": "tromp-taylor",
            "komi": 0.5,
            "boardXSize": 5,
            "boardYSize": 5,
        }
        client.send(id="v", action="query_version")
        client.send(id="a", **query, analyzeTurns=[0, 1])
        client.send(id="b", **{**query, "boardXSize": 19})
        output = [client.receive(240.0) for _ in range(4)]
        assert {answer["id"] for answer in output} == {"v", "a", "b"}
        errors = [answer for answer in output if "error" in answer]
        assert len(errors) == 1 and errors[0]["field"] == "boardXSize"
        turns = {answer["turnNumber"]: answer for answer in output if "moveInfos" in answer}
        assert set(turns) == {0, 1} and all(
            answer["rootInfo"]["visits"] >= 16 for answer in turns.values()
        )
        assert turns[1]["rootInfo"]["currentPlayer"] == "W" and "C3" not in {
            info["move"] for info in turns[1]["moveInfos"]
        }
        client.send(id="long", **query, maxVisits=1_000_000)
        time.sleep(0.2)
        began = time.monotonic()
        client.send(id="t", action="terminate", terminateId="long")
        assert {client.receive()["id"], client.receive()["id"]} == {
            "t",
            "long",
        } and time.monotonic() - began < 20.0
        client.send(id="last", **query)
        client.process.stdin.close()
        assert (
            client.receive()["id"] == "last"
            and client.process.wait(60.0) == 0
            and client.nothing_more()
        )
    finally:
        client.process.kill()
        client.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["gtp", "go9", "--random-net", "go9"],
            "azero: give one player, not 2: go9, random-net:go9",
        ),
        (
            ["gtp", "go99"],
            "azero: 'go99' is not a player: there is no directory 'go99', and the networks ",
        ),
        (["gtp", "--checkpoint", "no-such-place"], "azero: there is no directory no-such-place"),
        (
            ["analysis", "--random-net", "go5", "--iteration", "3"],
            "azero: --iteration is for the checkpoints of a run; 'random-net:go5' has none",
        ),
        (
            ["gtp", "--random-net", "go5", "--visits", "0"],
            "azero: --visits 0; an engine needs at least 1",
        ),
        (["gtp", "random:go5"], "azero: random moves: an engine needs a player that searches"),
        (
            ["uci", "--random-net", "go5"],
            "azero: random go5 plays go on 5x5; uci is for chess (azero gtp plays go)",
        ),
        (
            ["gtp", "tictactoe"],
            "azero: tictactoe plays tictactoe on 3x3; this protocol is for Go "
            "(azero play plays tictactoe)",
        ),
        (
            ["usi", "--random-net", "chess", "--visits", "3"],
            "azero: random chess plays chess on 8x8; usi is for shogi",
        ),
        (
            ["uci", "--random-net", "chess?block=3"],
            "azero: block=3 in 'random-net:chess?block=3' is not understood",
        ),
        (
            ["play", "--random-net", "go5", "--colour", "green"],
            "azero: --colour green: choose first, second, black or white",
        ),
        (
            ["play", "--random-net", "chess", "--komi", "6.5"],
            "azero: --komi 6.5 is for Go, not chess",
        ),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["azero", *arguments])
    monkeypatch.setattr(lines, "standard_streams", lambda: (io.BytesIO(), io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main()
    output = capsys.readouterr()
    *before, last = output.err.splitlines()
    assert (
        ended.value.code == 2
        and output.out == ""
        and last.startswith(message)
        and before in ([], ["azero: starting ..."])
    )
