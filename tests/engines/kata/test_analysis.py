"""KataGo's analysis protocol: queries, results, errors in its form, priorities, and termination in
the middle of a search."""

import io
import json
import os
import threading
import time
from typing import Any

import numpy as np
import pytest
from analysis_in_process import Client
from uniform_thinker import UniformThinker

from azero.engines.go_game import GoGame
from azero.engines.kata.engine import AnalysisEngine, serve
from azero.engines.kata.result import hashes, score_lead

QUERY: dict[str, Any] = {
    "id": "q",
    "moves": [["B", "C3"], ["W", "D4"]],
    "rules": "tromp-taylor",
    "komi": 6.5,
    "boardXSize": 5,
    "boardYSize": 5,
}


def test_a_query_is_answered_with_moves_and_root() -> None:
    (answer,) = Client(value=0.5).answers({**QUERY, "maxVisits": 30, "includePolicy": True})
    assert set(answer) == {"id", "isDuringSearch", "turnNumber", "moveInfos", "rootInfo", "policy"}
    assert (answer["id"], answer["isDuringSearch"], answer["turnNumber"]) == ("q", False, 2)
    root = answer["rootInfo"]
    assert (
        root["currentPlayer"] == "B"
        and root["visits"] == 31
        and root["winrate"] == 0.75
        and root["utility"] == 0.5
    )
    estimates = {"rawLead", "scoreLead", "scoreSelfplay"}
    assert (
        set(root)
        == {
            "currentPlayer",
            "rawWinrate",
            "symHash",
            "thisHash",
            "utility",
            "visits",
            "winrate",
            *estimates,
        }
        and len(root["thisHash"]) == 32
    )
    first = answer["moveInfos"][0]
    assert set(first) == {
        "move",
        "visits",
        "winrate",
        "lcb",
        "utility",
        "utilityLcb",
        "prior",
        "order",
        "pv",
        "scoreLead",
        "scoreMean",
        "scoreSelfplay",
    }
    assert (
        first["move"] == "A5"
        and first["pv"] == ["A5", "pass"]
        and first["winrate"] == 0.75
        and first["lcb"] == pytest.approx(0.7)
        and first["visits"] == 2
    )
    assert [info["order"] for info in answer["moveInfos"]] == list(range(24))
    policy = np.array(answer["policy"])
    assert (
        policy.shape == (26,)
        and (policy == -1).sum() == 2
        and policy[policy > 0].sum() == pytest.approx(1, abs=1e-5)
    )
    assert policy[5 * 1 + 3] == -1 and policy[5 * 2 + 2] == -1, "rows from the top, D4 and C3 taken"


def test_the_visits_along_the_lines_are_answered_where_they_are_asked_for() -> None:
    query = {**QUERY, "maxVisits": 50}
    (answer,) = Client().answers({**query, "includePVVisits": True})
    first, *_, last = answer["moveInfos"]
    assert first["pv"] == ["A5", "pass"] and first["pvVisits"] == first["pvEdgeVisits"] == [
        first["visits"],
        first["visits"] - 1,
    ] == [3, 2]
    assert last["pvVisits"] == [2, 1]
    (answer,) = Client().answers({**query, "includePVVisits": True, "analysisPVLen": 1})
    assert answer["moveInfos"][0]["pvVisits"] == [3]
    (answer,) = Client().answers({**query, "includePVVisits": False})
    assert "pvVisits" not in answer["moveInfos"][0]


def test_every_turn_is_answered_and_values_are_blacks() -> None:
    answers = Client(value=0.5).answers({**QUERY, "analyzeTurns": [2, 0, 1, 1]})
    assert [
        (a["turnNumber"], a["rootInfo"]["currentPlayer"], a["rootInfo"]["winrate"]) for a in answers
    ] == [(0, "B", 0.75), (1, "W", 0.25), (2, "B", 0.75)]
    for side, winrate in (("SIDETOMOVE", 0.75), ("white", 0.75), ("BLACK", 0.25)):
        (answer,) = Client(value=0.5).answers(
            {**QUERY, "analyzeTurns": [1], "overrideSettings": {"reportAnalysisWinratesAs": side}}
        )
        assert answer["rootInfo"]["winrate"] == winrate
    (answer,) = Client(value=0.5).answers({**QUERY, "analyzeTurns": [1]})
    assert answer["moveInfos"][0]["lcb"] == pytest.approx(0.3), (
        "a bound for White is one from above for Black"
    )


def test_stones_players_and_coordinates() -> None:
    fields = {
        **QUERY,
        "initialStones": [["b", "A1"], ["W", "(4,0)"]],
        "moves": [],
        "includePolicy": True,
        "analysisPVLen": 1,
    }
    (answer,) = Client().answers({**fields, "initialPlayer": "W"})
    assert (
        answer["rootInfo"]["currentPlayer"] == "W"
        and answer["policy"][20] == -1
        and answer["policy"][4] == -1
    )
    assert answer["moveInfos"][0]["pv"] == ["A5"]
    (answer,) = Client().answers({**fields, "initialStones": [["B", "A1"], ["B", "E5"]]})
    assert answer["rootInfo"]["currentPlayer"] == "W", "handicap stones alone: White begins"
    client = Client()
    client.answers({**fields, "initialStones": [["B", "A1"], ["B", "E5"]], "rules": "chinese"})
    assert client.game.effective_komi == 8.5
    client = Client()
    client.answers(
        {
            **fields,
            "initialStones": [["B", "A1"], ["B", "E5"]],
            "rules": "chinese",
            "whiteHandicapBonus": "N-1",
        }
    )
    assert client.game.effective_komi == 7.5


@pytest.mark.parametrize(
    ("fields", "turn", "player", "bonus"),
    [
        ({"initialStones": [["B", "C3"]]}, 0, "B", 0),
        ({"initialStones": [["B", "C3"], ["B", "D4"]]}, 0, "W", 2),
        ({"initialStones": [["B", "C3"], ["B", "D4"]], "initialPlayer": "B"}, 0, "B", 2),
        ({"moves": [["B", "C3"], ["B", "D4"], ["W", "B2"]]}, 3, "B", 2),
        ({"moves": [["B", "C3"], ["B", "D4"], ["W", "B2"]]}, 1, "W", 0),
        ({"moves": [["B", "C3"], ["W", "pass"], ["B", "D4"], ["W", "B2"]]}, 4, "B", 2),
        ({"moves": [["B", "C3"], ["B", "D4"], ["W", "B2"], ["W", "A1"]]}, 4, "B", 0),
        ({"moves": [["B", "C3"], ["W", "B2"]], "initialPlayer": "W"}, 0, "W", 0),
        ({"moves": [["B", "C3"], ["W", "B2"], ["B", "D4"]]}, 3, "W", 0),
    ],
)
def test_sides_and_handicaps_are_those_of_katago(
    fields: dict[str, Any], turn: int, player: str, bonus: int
) -> None:
    """KataGo, analysis.cpp and boardhistory.cpp: two or more black stones without a white one are a
    handicap, set up or played, also with passes of White between them, unless White then moves
    twice; the other side than that of the last move is to move."""
    client = Client()
    query = {**QUERY, "moves": [], "komi": 6, "rules": "chinese", "analyzeTurns": [turn], **fields}
    (answer,) = client.answers(query)
    assert answer["rootInfo"]["currentPlayer"] == player
    assert client.game.effective_komi == 6 + bonus


def test_allowed_and_avoided_moves() -> None:
    (answer,) = Client().answers(
        {**QUERY, "allowMoves": [{"player": "B", "moves": ["A1", "pass"], "untilDepth": 1}]}
    )
    assert {info["move"] for info in answer["moveInfos"]} == {"A1", "pass"}
    (answer,) = Client().answers(
        {
            **QUERY,
            "maxVisits": 50,
            "avoidMoves": [{"player": "B", "moves": ["A1"], "untilDepth": 1}],
        }
    )
    assert len(answer["moveInfos"]) == 23 and "A1" not in {
        info["move"] for info in answer["moveInfos"]
    }
    (answer,) = Client().answers(
        {**QUERY, "allowMoves": [{"player": "W", "moves": ["A1"], "untilDepth": 1}]}
    )
    assert len(answer["moveInfos"]) == 12
    (answer,) = Client().answers(
        {**QUERY, "allowMoves": [{"player": "B", "moves": ["C3"], "untilDepth": 1}]}
    )
    assert len(answer["moveInfos"]) == 12, "where no legal move is left there is no restriction"


@pytest.mark.parametrize(("depth", "line"), [(1, ["A1", "pass"]), (2, ["A1"])])
def test_moves_are_avoided_until_their_depth(depth: int, line: list[str]) -> None:
    restrictions = [
        {"player": "B", "moves": ["A5", "B5", "C5"], "untilDepth": 3},
        {"player": "W", "moves": ["E5", "pass"], "untilDepth": depth},
    ]
    (answer,) = Client().answers({**QUERY, "maxVisits": 50, "avoidMoves": restrictions})
    infos = {info["move"]: info["pv"] for info in answer["moveInfos"]}
    assert infos["A1"] == line and not {"A5", "B5", "C5"} & set(infos) and "E5" in infos


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"boardXSize": None}, "boardXSize"),
        ({"boardXSize": 19, "boardYSize": 19}, "boardXSize"),
        ({"boardXSize": "5"}, "boardXSize"),
        ({"moves": None}, "moves"),
        ({"moves": "C3"}, "moves"),
        ({"moves": [["B"]]}, "moves"),
        ({"moves": [["X", "C3"]]}, "moves"),
        ({"moves": [["B", "Z9"]]}, "moves"),
        ({"moves": [["B", "(5,0)"]]}, "moves"),
        ({"moves": [["B", "C3"], ["W", "C3"]]}, "moves"),
        ({"rules": None}, "rules"),
        ({"rules": "nonsense"}, "rules"),
        ({"rules": {"ko": "NEVER"}}, "rules"),
        ({"komi": 7.25}, "komi"),
        ({"komi": 151}, "komi"),
        ({"komi": "7"}, "komi"),
        ({"komi": 10**400}, "komi"),
        ({"rules": '{"ko":' + "[" * 100_000}, "rules"),
        ({"whiteHandicapBonus": "M"}, "whiteHandicapBonus"),
        ({"initialStones": [["B", "pass"]]}, "initialStones"),
        ({"initialStones": [["B", "A1"], ["W", "A1"]]}, "initialStones"),
        ({"initialStones": [["B", "A1"], ["W", "A2"], ["W", "B1"]], "moves": []}, "initialStones"),
        ({"initialPlayer": 1}, "initialPlayer"),
        ({"analyzeTurns": [3]}, "analyzeTurns"),
        ({"analyzeTurns": 0}, "analyzeTurns"),
        ({"analyzeTurns": [True]}, "analyzeTurns"),
        ({"maxVisits": 0}, "maxVisits"),
        ({"maxVisits": 1.5}, "maxVisits"),
        ({"priority": "high"}, "priority"),
        ({"priority": -(10**400)}, "priority"),
        ({"priorities": [1, 2]}, "priorities"),
        ({"priorities": [1], "priority": 1}, "priorities"),
        ({"includePolicy": 1}, "includePolicy"),
        ({"includePVVisits": "yes"}, "includePVVisits"),
        ({"reportDuringSearchEvery": -1}, "reportDuringSearchEvery"),
        ({"allowMoves": [{"player": "B"}]}, "allowMoves"),
        ({"avoidMoves": [{"player": "B", "moves": ["Q16"], "untilDepth": 1}]}, "avoidMoves"),
        ({"avoidMoves": [{"player": "B", "moves": ["A1"], "untilDepth": 0}]}, "avoidMoves"),
        (
            {
                "allowMoves": [
                    {"player": "B", "moves": ["A1"], "untilDepth": 1},
                    {"player": "W", "moves": ["A1"], "untilDepth": 1},
                ]
            },
            "allowMoves",
        ),
        ({"overrideSettings": []}, "overrideSettings"),
        ({"overrideSettings": {"maxVisits": "many"}}, "overrideSettings"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], field: str) -> None:
    client = Client()
    query = {name: value for name, value in {**QUERY, **change}.items() if value is not None}
    (error,) = client.answers(query)
    assert (
        error["field"] == field
        and error["id"] == "q"
        and error["error"]
        and set(error) == {"error", "field", "id"}
    )


def test_a_wrong_setting_is_named() -> None:
    settings = {"maxTime": 2, "maxVisits": "many"}
    (error,) = Client().answers({**QUERY, "overrideSettings": settings})
    assert error["error"] == "maxVisits: Must be a number from 1 to 1e+09"


def test_settings_may_be_written_as_text() -> None:
    query = {**QUERY, "maxVisits": 20, "includePVVisits": True}
    as_number, as_text = Client().answers(
        {**query, "overrideSettings": {"analysisPVLen": 1}},
        {**query, "overrideSettings": {"analysisPVLen": "1", "maxTime": "1e3"}},
    )
    assert as_number["moveInfos"] == as_text["moveInfos"]


def test_an_illegal_move_refuses_the_whole_query_once() -> None:
    moves = [["B", "C3"], ["W", "D4"], ["B", "D4"], ["W", "A1"]]
    error, answer = Client().answers(
        {**QUERY, "moves": moves, "analyzeTurns": [0, 1, 2, 3, 4]}, {**QUERY, "id": "other"}
    )
    assert (
        error == {"error": "Illegal move 2: B D4", "field": "moves", "id": "q"}
        and answer["id"] == "other"
    )
    (error,) = Client().answers({**QUERY, "moves": moves, "analyzeTurns": [1]})
    assert error["field"] == "moves", "the illegal move comes after the position that is asked for"


def test_a_query_that_is_refused_as_it_is_terminated_has_one_answer() -> None:
    client = Client()
    write = client.engine._write

    def write_and_terminate(text: str) -> None:
        write(text)
        if "error" in json.loads(text):
            client.send({"id": "t", "action": "terminate", "terminateId": "q"})

    client.engine._write = write_and_terminate
    moves = [["B", "C3"], ["W", "C3"]]
    answers = client.answers({**QUERY, "moves": moves, "analyzeTurns": [0, 1, 2]})
    assert [answer["id"] for answer in answers] == ["q", "t"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "7",
        "nonsense",
        '{"id": 3}',
        "{}",
        '{"id": NaN}',
        '"\\ud800"',
        "[" * 5000,
        "\x00\x01",
        '{"id":"a","komi":1e999',
    ],
)
def test_what_is_no_query_is_an_error_and_the_engine_lives(line: str) -> None:
    error, answer = Client().answers(line, QUERY)
    assert "error" in error and answer["turnNumber"] == 2


def test_what_is_not_supported_is_a_warning_and_the_query_is_answered() -> None:
    extras = {
        "includeOwnershipStdev": True,
        "includeMovesOwnershipStdev": False,
        "rootPolicyTemperature": 1.5,
        "colour": 3,
    }
    *warnings, answer = Client().answers(
        {**QUERY, **extras, "rules": "japanese", "overrideSettings": {"cpuct": 2, "maxPlayouts": 3}}
    )
    fields = sorted(warning["field"] for warning in warnings)
    assert fields == [
        "colour",
        "includeOwnershipStdev",
        "overrideSettings",
        "rootPolicyTemperature",
        "rules",
    ]
    assert all(set(warning) == {"warning", "field", "id"} for warning in warnings)
    (stdev,) = (found for found in warnings if found["field"] == "includeOwnershipStdev")
    assert stdev["warning"] == "Not supported by this engine; ignored", "whatever the network has"
    assert answer["rootInfo"]["visits"] == 4 and "ownership" not in answer


def test_the_lead_is_estimated_from_the_value_and_ownership_by_random_games() -> None:
    """KaTrain reads scoreLead of the root and of every move, and 25 owners."""
    (answer,) = Client(value=0.5).answers({**QUERY, "includeOwnership": True})
    lead = answer["rootInfo"]["scoreLead"]
    assert lead == pytest.approx(0.25 * 5 * np.log(3)) and all(
        info["scoreLead"] == lead for info in answer["moveInfos"]
    )
    assert len(answer["ownership"]) == 25 and all(-1 <= owner <= 1 for owner in answer["ownership"])
    (moves,) = Client(value=0.5).answers({**QUERY, "includeMovesOwnership": True})
    first = moves["moveInfos"][0]
    assert (
        "ownership" not in moves
        and first["move"] == "A5"
        and first["ownership"] == [1, *answer["ownership"][1:]]
    )
    (white,) = Client(value=0.5).answers(
        {
            **QUERY,
            "includeOwnership": True,
            "overrideSettings": {"reportAnalysisWinratesAs": "WHITE"},
        }
    )
    assert white["rootInfo"]["scoreLead"] == -lead and white["ownership"] == [
        -owner for owner in answer["ownership"]
    ]
    assert [score_lead(value, 25) for value in (-1.0, 0.0, 1.0)] == [-25.0, 0.0, 25.0]


@pytest.mark.parametrize(
    "rules",
    [
        "japanese",
        "stone_scoring",
        "ancient area",
        "aga-button",
        {"ko": "SIMPLE", "tax": "ALL"},
        {"ko": "SPIGHT"},
    ],
)
def test_rules_that_cannot_be_played_are_replaced_with_a_warning(rules: Any) -> None:
    warning, answer = Client().answers({**QUERY, "rules": rules})
    assert (
        warning["field"] == "rules"
        and '"scoring":"AREA"' in warning["warning"]
        and answer["moveInfos"]
    )


def test_actions_are_echoed() -> None:
    messages = Client().answers(
        {"id": "1", "action": "query_version"},
        {"id": "2", "action": "clear_cache"},
        {"id": "3", "action": "query_models"},
        {"id": "4", "action": "terminate", "terminateId": "none", "turnNumbers": [1]},
        {"id": "5", "action": "terminate_all", "extra": True},
        {"id": "6", "action": "sing"},
        {"id": "7", "action": "terminate"},
        {"id": "8", "action": "terminate_all", "turnNumbers": 3},
    )
    version, cleared, models, ended, all_ended, unknown, unnamed, wrong = messages
    assert (
        version["action"] == "query_version"
        and version["version"]
        and version["git_hash"] == "<omitted>"
    )
    assert cleared == {"id": "2", "action": "clear_cache"} and models["models"][0]["name"] == "net"
    assert (
        ended == {"id": "4", "action": "terminate", "terminateId": "none", "turnNumbers": [1]}
        and all_ended["extra"] is True
    )
    assert (unknown["field"], unnamed["field"], wrong["field"]) == (
        "action",
        "terminateId",
        "turnNumbers",
    )


def test_priorities_come_first_and_equals_in_order() -> None:
    messages = Client().answers(
        {**QUERY, "id": "a", "analyzeTurns": [0, 1], "priorities": [1, 9]},
        {**QUERY, "id": "b", "priority": 5},
        {**QUERY, "id": "c", "priority": 5},
        {**QUERY, "id": "d"},
    )
    assert [(answer["id"], answer["turnNumber"]) for answer in messages] == [
        ("a", 1),
        ("b", 2),
        ("c", 2),
        ("a", 0),
        ("d", 2),
    ]


def test_times_in_nanoseconds_are_priorities() -> None:
    now = 1_700_000_000_000_000_000
    messages = Client().answers(
        {**QUERY, "id": "a", "priority": now}, {**QUERY, "id": "b", "priority": now + 1}
    )
    assert [answer["id"] for answer in messages] == ["b", "a"]


def test_queries_that_wait_are_terminated_without_results() -> None:
    client = Client()
    client.send(
        {**QUERY, "analyzeTurns": [0, 1, 2]},
        {**QUERY, "id": "other"},
        {"id": "t", "action": "terminate", "terminateId": "q", "turnNumbers": [0, 2]},
    )
    messages = client.finish()
    assert (
        messages[0] == {"id": "q", "isDuringSearch": False, "noResults": True, "turnNumber": 0}
        and messages[1]["turnNumber"] == 2
    )
    assert messages[2]["action"] == "terminate" and [
        (answer["id"], answer["turnNumber"]) for answer in messages[3:]
    ] == [("q", 1), ("other", 2)]


def test_a_search_is_reported_on_and_terminated_in_its_middle() -> None:
    client = Client(seconds_per_visit=0.01)
    worker = threading.Thread(target=client.engine.run, daemon=True)
    worker.start()
    client.send({**QUERY, "maxVisits": 10_000, "reportDuringSearchEvery": 0.05})
    deadline = time.monotonic() + 20
    while len(client.messages) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    began = time.monotonic()
    client.send({"id": "t", "action": "terminate", "terminateId": "q"})
    client.engine.close()
    worker.join(5.0)
    assert time.monotonic() - began < 2.0 and not worker.is_alive()
    *reports, last = [answer for answer in client.messages if answer["id"] == "q"]
    assert (
        len(reports) >= 3
        and all(report["isDuringSearch"] for report in reports)
        and not last["isDuringSearch"]
    )
    visits = [report["rootInfo"]["visits"] for report in reports]
    assert (
        visits == sorted(set(visits))
        and visits[-1] <= last["rootInfo"]["visits"] < 10_000
        and last["moveInfos"]
    )


def test_a_stream_is_answered_to_its_end() -> None:
    lines = [
        json.dumps(QUERY).encode(),
        b"",
        b"\xff\xfe",
        b"x" * 17_000_000,
        json.dumps({**QUERY, "id": "last"}).encode(),
    ]
    sink = io.BytesIO()
    game = GoGame(UniformThinker, (5, 5))
    serve(lambda write: AnalysisEngine(game, write, visits=3), io.BytesIO(b"\n".join(lines)), sink)
    messages = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert sorted(answer.get("id", "error") for answer in messages) == [
        "error",
        "error",
        "last",
        "q",
    ]
    assert b"\n\n" not in sink.getvalue()


def test_queries_are_dropped_once_nobody_reads_the_answers() -> None:
    drain, sink = os.pipe()
    os.close(drain)
    thinkers: list[UniformThinker] = []
    game = GoGame(lambda go: thinkers.append(UniformThinker(go)) or thinkers[-1], (5, 5))
    serve(
        lambda write: AnalysisEngine(game, write, visits=3),
        io.BytesIO(b"\n".join([json.dumps(QUERY).encode()] * 100)),
        io.FileIO(sink, "wb"),
    )
    assert thinkers[0].num_thoughts == 1


def test_hashes_tell_positions_apart_and_mirror_images_together() -> None:
    board = np.zeros((5, 5), np.int8)
    board[1, 2], board[3, 3] = 1, -1
    this, symmetric = hashes(board, 0, None)
    for image in (board[::-1], board.T, np.rot90(board)):
        other, other_symmetric = hashes(np.ascontiguousarray(image), 0, None)
        assert other != this and other_symmetric == symmetric
    assert (
        hashes(board, 1, None)[0] != this
        and hashes(board, 0, 0)[0] != this
        and hashes(-board, 0, None)[1] != symmetric
    )
