"""`azero match` and `azero elo`: programs on both sides, openings, tests that stop, directories
that go on, ratings of what they hold."""

import dataclasses
import io
import itertools
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.sharding import Mesh
from rich.console import Console
from untrained import save_last

from azero.checkpoint import CheckpointError
from azero.checkpoint.exported import write_exported
from azero.console import progress
from azero.data.directory_lock import LOCK, hold
from azero.data.rows import RowFile, read_rows
from azero.experiment import load
from azero.games.go.sgf import read_games
from azero.games.position import Position
from azero.games.table import make
from azero.match import batched, compiled, matches
from azero.match.arena import evaluation_row, pair_results
from azero.match.directory import (
    MatchDirectory,
    read_match,
    read_match_games,
    read_match_result,
    read_players,
    with_relative_paths,
)
from azero.match.elo import fit_elo
from azero.match.games import MatchGame
from azero.match.matches import play_match
from azero.match.openings import read_openings
from azero.match.request import MatchRequest
from azero.match.results import disambiguate_names, read_results
from azero.match.score import MatchResult, Tally
from azero.match.sides import match_rules, player_maker, read_sides, restore_side
from azero.players.clock import Clock, TimeControl
from azero.players.specs import CheckpointSpec, RandomNetSpec
from azero.report.ratings import rate
from azero.search.single.selection import ENGINE

SCRIPT = Path(__file__).parents[1] / "players" / "scripted_go.py"


def program(mode: str, score: str = "") -> str:
    return f"gtp:{sys.executable} {SCRIPT} {mode} {score}".strip()


def request(first: str, second: str, games: int = 4, **settings: object) -> MatchRequest:
    return MatchRequest(
        program(first),
        program(second),
        games,
        **{
            "temperature_moves": 0,
            "size": 3,
            "komi": 0.5,
            "first_name": first,
            "second_name": second,
        }
        | settings,
    )  # type: ignore[arg-type]


def play(wanted: MatchRequest) -> tuple[MatchResult, str]:
    console = Console(file=io.StringIO(), width=300)
    result = play_match(wanted, console).result
    return result, console.file.getvalue()  # type: ignore[attr-defined]


def test_further_games_compile_nothing() -> None:
    """A process that compiles at every game runs out of memory maps after some hundreds."""
    play(request("corner", "pass", games=2))
    events: list[str] = []

    def listen(event: str, seconds: float, **_: str | int) -> None:
        events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)  # JAX 0.7 cannot take it back
    play(request("corner", "pass", games=4))
    assert not [event for event in events if event.endswith("backend_compile_duration")]


def test_games_with_the_same_moves_and_other_colours_are_different() -> None:
    _, text = play(request("pass", "pass", games=4))
    assert "2 repeated games" in text and "Without repeats, 2 games:" in text


def test_one_game_is_not_1_games(tmp_path: Path) -> None:
    _, text = play(request("corner", "illegal", 2, size=5, out=tmp_path))
    assert "game 1: corner won as Black, 1 move, illegal: " in text
    rows = (tmp_path / "games.jsonl").read_text().splitlines(keepends=True)
    one = rows[0] + rows[1].replace('"failed": "illegal"', '"failed": ""')
    (tmp_path / "games.jsonl").write_text(one)
    _, text = play(request("corner", "illegal", 2, size=5, out=tmp_path))
    assert "\n1 game lost by a failure of illegal\n" in text


def test_two_programs_play_and_every_game_is_written(tmp_path: Path) -> None:
    # Whoever has Black wins if it is "corner", which puts a stone on the board; else White wins by
    # the komi.
    result, text = play(request("corner", "pass", workers=2, out=tmp_path / "match"))
    assert result == MatchResult(first=Tally(wins=2), second=Tally(wins=2))
    assert text.startswith(
        "corner against pass: go on 3x3, area scoring, komi 0.5, positional superko, no "
        "suicide, at most 18 moves\n"
    )
    assert (
        "corner against pass: 4 wins, 0 draws, 0 losses: 100.0% (no interval: all games "
        "are of one group)" in text
    )
    assert (
        "2 repeated games" in text
        and "Without repeats, 2 games: 2 wins, 0 draws, 0 losses: 100.0%" in text
    )
    facts = read_match(tmp_path / "match")
    assert facts["result"]["score"] == 1.0 and facts["result"]["as_first_mover"] == {
        "wins": 2,
        "draws": 0,
        "losses": 0,
    }
    assert [side["name"] for side in facts["players"]] == ["corner", "pass"]
    records = [next(read_games(path)) for path in sorted((tmp_path / "match").glob("*.sgf"))]
    assert [(record.players, record.result, record.komi) for record in records[:2]] == [
        (("corner", "pass"), "B+8.5", 0.5),
        (("pass", "corner"), "W+0.5", 0.5),
    ]
    assert records[0].moves[0] == (0, 6) and records[0].rules == "Chinese"


@pytest.mark.parametrize(("suicide", "rules"), [(True, "Tromp-Taylor"), (False, "Chinese")])
def test_whether_suicide_is_legal_may_be_said(tmp_path: Path, suicide: bool, rules: str) -> None:
    """White's second stone in a black corner takes the liberty of the first."""
    (tmp_path / "openings.txt").write_text("B3 A3 B2 C1 A1 A2\n")
    wanted = request(
        "pass",
        "pass",
        2,
        suicide=suicide,
        openings=tmp_path / "openings.txt",
        out=tmp_path / "match",
    )
    if not suicide:
        with pytest.raises(ValueError, match="'A2' is not a legal move here"):
            play(wanted)
        wanted = dataclasses.replace(wanted, openings=None)
    play(wanted)
    record = next(read_games(tmp_path / "match" / "game0001.sgf"))
    assert record.rules == rules and len(record.moves) == (8 if suicide else 2)


def test_the_same_match_twice_at_once_is_refused(tmp_path: Path) -> None:
    with hold(tmp_path), pytest.raises(ValueError, match=rf"is in use by process {os.getpid()}"):
        play(request("corner", "pass", out=tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_a_match_goes_on_where_it_stopped_and_no_other_may(tmp_path: Path) -> None:
    wanted = request("corner", "pass", out=tmp_path)
    play(wanted)
    rows = read_rows(tmp_path / "games.jsonl")
    (tmp_path / "games.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows if row["number"] != 3)
        + '{"number": 9, "torn'
    )
    result, text = play(wanted)
    assert "3 of 4 games are in" in text and "game 3:" in text and "game 2:" not in text
    assert result.total == Tally(wins=4) and sorted(
        game.number for game in read_match_games(tmp_path)
    ) == [1, 2, 3, 4]
    assert "game 1:" not in play(request("corner", "pass", out=tmp_path, workers=3))[1], (
        "how many at once may differ"
    )
    for different, games in (
        ("there komi: 0.5; here komi: 5.5", 6),
        ("there games: 4, komi: 0.5; here games: 2, komi: 5.5", 2),
    ):
        with pytest.raises(ValueError, match=rf"another match \({different}\)"):
            play(request("corner", "pass", games, komi=5.5, out=tmp_path))
    longer, text = play(request("corner", "pass", 6, out=tmp_path))
    assert "4 of 6 games are in" in text and longer.total == Tally(wins=6)
    assert read_match(tmp_path)["command"]["games"] == 6
    with pytest.raises(ValueError, match=r"another match \(there games: 6; here games: 4\)"):
        play(wanted)
    command = read_match(tmp_path)["command"] | {"games": 8}
    extended = MatchDirectory(tmp_path, command, [])
    lost = dataclasses.replace(read_match_games(tmp_path)[0], number=7, reward=-1.0)
    extended.add(lost, None)
    extended.close()  # stopped before the end
    result = read_match_result(tmp_path)
    assert (result["wins"], result["losses"]) == (6, 1)
    (tmp_path / "match.json").write_text("[1]")
    with pytest.raises(ValueError, match="does not hold a match"):
        play(request("corner", "pass", 6, out=tmp_path))
    (tmp_path / "match.json").unlink()
    with pytest.raises(ValueError, match=r"the games of a match without its settings \(match"):
        play(request("corner", "pass", 2, out=tmp_path))


def test_a_longer_match_that_fails_at_once_is_as_it_was(tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "match"
    save_last(run, 1)
    play(MatchRequest(f"checkpoint:{run}?visits=0", "random:tictactoe", 2, out=out))
    before = (out / "match.json").read_text()
    save_last(run, 2)
    shutil.rmtree(out / "first")
    with pytest.raises(CheckpointError, match="no checkpoint 1"):
        play(MatchRequest(f"checkpoint:{run}?visits=0", "random:tictactoe", 4, out=out))
    assert (out / "match.json").read_text() == before


@pytest.mark.parametrize(
    ("there", "instead", "problem"),
    [
        ('"number": 2', '"number": 1', "row 2 holds game 1 again"),
        ('"number": 2', '"number": 4', "row 2 holds game 4, and match.json a match of 2 games"),
        ('"number": 2', '"number": -2', "row 2 holds game -2, and match.json a match of"),
        ('is_black": false', 'is_black": true', "row 2 holds game 2 with first_is_black True"),
        ('is_black": false', 'is_black": 0', "row 2 does not hold the colours, the opening and"),
        ('"failed": ""', '"failed": {}', "row 2 does not hold the colours, the opening and"),
        ('"reward": -1.0', '"reward": 7', "row 2 does not hold the moves and the result of a game"),
        ('"reward": -1.0', '"reward": "x"', "row 2 does not hold the moves and the result of"),
        ('"actions": [', '"actions": ["A1", ', "row 2 does not hold the moves and the result of"),
        ('"actions": [', '"actions": 5, "decisions": [', "row 2 does not hold a game of a match: "),
        ('"reward"', '"rewards"', "row 2 does not hold a game of a match: "),
        ('{"number"', '{number"', "line 2 is not a JSON object"),
    ],
)
def test_a_damaged_game_is_named(tmp_path: Path, there: str, instead: str, problem: str) -> None:
    play(request("pass", "corner", 2, out=tmp_path))
    file = tmp_path / "games.jsonl"
    first, second = file.read_text().splitlines()
    file.write_text(f"{first}\n{second.replace(there, instead)}\n")
    with pytest.raises(ValueError, match=problem) as raised:
        read_match_games(tmp_path)
    assert str(raised.value).count(str(file)) == 1


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("command", [], "command is []"),
        ("command.games", "4", "command.games is of type int, not '4'"),
        ("command.games", -4, "command.games is -4"),
        ("command.clock", 5, "command.clock is of type dict, not 5"),
        ("command.clock", {"main_time": "x"}, "command.clock is of type float, not 'x'"),
        ("command.rules", 1, "command.rules is of type str, not 1"),
        ("players", [{}], "does not hold a match"),
        ("players.0", "go9", "players[0] is 'go9'"),
        ("players.1", {"name": "a"}, "players[1] has no player"),
        ("players.1.iteration", "new", "players[1].iteration is of type int, not 'new'"),
        ("result", [1], "result is [1]"),
        ("result", {"wins": 1}, "result has no draws"),
        ("result.score", float("nan"), "result.score is nan"),
        ("result.wins", 10**400, "result.wins is 1000"),
        ("result.interval", [0.5], "result.interval is of type [float, float], not [0.5]"),
        ("result.as_first_mover", {"wins": "1"}, "result.as_first_mover is of type float, not"),
        ("result.failures", {"a": -1}, "result.failures is -1"),
    ],
)
def test_what_is_damaged_in_the_file_of_a_match_is_named(
    tmp_path: Path, place: str, value: Any, problem: str
) -> None:
    wanted = request("corner", "pass", 2, out=tmp_path)
    play(wanted)
    facts = part = read_match(tmp_path)
    *parents, name = place.split(".")
    for parent in parents:
        part = part[int(parent) if parent.isdecimal() else parent]
    part[int(name) if name.isdecimal() else name] = value  # type: ignore[index]
    (tmp_path / "match.json").write_text(json.dumps(facts))
    for read in (lambda: play(wanted), lambda: rate([tmp_path], {})):
        with pytest.raises(ValueError, match=re.escape(problem)) as raised:
            read()
        assert str(raised.value).count(str(tmp_path / "match.json")) == 1


def test_a_stopped_match_counts_the_games_that_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = MatchDirectory.add

    def stop_at_the_second(directory: MatchDirectory, game: MatchGame, record: Any) -> None:
        if game.number == 2:
            raise KeyboardInterrupt
        keep(directory, game, record)

    monkeypatch.setattr(MatchDirectory, "add", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt, match="has 1 finished game, and the same"):
        play(request("corner", "pass", out=tmp_path))


def test_a_match_that_continues_does_not_repeat_its_first_games(tmp_path: Path) -> None:
    """A network began again with the same random numbers."""
    for games in (2, 4):
        play(
            MatchRequest(
                "random:go5", program("pass"), games, size=5, temperature_moves=4, out=tmp_path
            )
        )
    games = read_match_games(tmp_path)
    assert len({game.actions for game in games}) == len(games) == 4


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("late-crash", "crashed at 'genmove"),
        ("illegal", "illegal move: 'Z9' is not a legal move"),
        ("late-silent", "no answer in time to 'genmove"),
    ],
)
def test_failures_lose_and_are_named(tmp_path: Path, mode: str, ending: str) -> None:
    result, text = play(request("pass", mode, 2, timeout=1.0, workers=2, out=tmp_path))
    assert result.total == Tally(wins=2) and f"2 games lost by a failure of {mode}" in text
    games = read_match_games(tmp_path)
    assert all(game.failed == mode and ending in game.ending for game in games)
    assert next(read_games(tmp_path / "game0002.sgf")).result == "W+F"


def test_a_program_that_is_silent_until_its_time_is_up_loses_on_time(tmp_path: Path) -> None:
    clock = TimeControl(seconds_per_move=1.0)
    play(request("pass", "late-silent", 2, clock=clock, out=tmp_path))
    ending = "late-silent: loses on time: no answer in time to 'genmove"
    assert all(ending in game.ending for game in read_match_games(tmp_path))
    assert next(read_games(tmp_path / "game0001.sgf")).result == "B+T"


@pytest.mark.parametrize(
    ("mode", "how", "games"),
    [
        (
            "deaf",
            "no answer in time to 'boardsize 3'; it said: loading weights / no such file: "
            "weights.bin",
            0,
        ),
        ("crash", "crashed at 'genmove", 1),
        ("silent", "no answer in time to 'genmove", 1),
    ],
)
def test_a_side_that_never_plays_makes_no_match(
    tmp_path: Path, mode: str, how: str, games: int
) -> None:
    """It was once "2 wins, 100%" against a program that never answered boardsize."""
    with pytest.raises(
        ValueError, match=f"no match: {mode} \\(gtp:.* {mode}\\) never played a move: {mode}: {how}"
    ):
        play(request("pass", mode, 2, timeout=0.5, out=tmp_path))
    assert len(read_match_games(tmp_path)) == games and not list(tmp_path.glob("*result*"))


def test_a_match_in_which_a_side_never_played_does_not_count_when_it_is_complete(
    tmp_path: Path,
) -> None:
    """Where the other side moves first in all games, as with start positions, all are kept."""
    wanted = request("pass", "crash", 2, out=tmp_path)
    with pytest.raises(ValueError, match="no match: crash"):
        play(wanted)
    (row,) = read_rows(tmp_path / "games.jsonl")
    with RowFile(tmp_path / "games.jsonl") as file:
        file.append({**row, "number": 2, "first_is_black": False})
    with pytest.raises(ValueError, match="no match: crash"):
        play(wanted)
    with pytest.raises(ValueError, match=r"nothing to rate: .*: crash never played a move"):
        rate([tmp_path], {})


def test_a_program_that_counts_otherwise_is_counted(tmp_path: Path) -> None:
    wanted = MatchRequest(
        program("pass", "W+0.5"),
        program("pass", "B+3"),
        2,
        size=3,
        komi=0.5,
        first_name="right",
        second_name="wrong",
        out=tmp_path,
    )
    _, text = play(wanted)
    assert "2 games whose score a program counts differently" in text
    assert {game.disagreement for game in read_match_games(tmp_path)} == {"wrong says B+3"}


@pytest.mark.parametrize(("komi", "is_agreed"), [(10.5, True), (0.5, False)])
def test_dead_stones_left_on_the_board_are_no_disagreement_unless_they_decide(
    tmp_path: Path, komi: float, is_agreed: bool
) -> None:
    """Black's stone at E3 is dead: Black leads by 6 points as it stands, White by 5 without it."""
    (tmp_path / "openings.txt").write_text("B1 C1 B2 C2 B3 C3 B4 C4 B5 C5 E3\n")
    claim = f"W+{komi + 5}"
    players = (program("pass", claim), program("pass", claim))
    wanted = MatchRequest(
        *players,
        2,
        size=5,
        komi=komi,
        first_name="one",
        second_name="two",
        openings=tmp_path / "openings.txt",
        out=tmp_path / "match",
    )
    _, text = play(wanted)
    games = read_match_games(tmp_path / "match")
    assert {game.margin for game in games} == {6 - komi}
    assert ("counts differently" in text) != is_agreed
    expected = (-15.5, "") if is_agreed else (None, f"one says {claim}; two says {claim}")
    assert {
        (game.cleared_margin, "; ".join(sorted(game.disagreement.split("; ")))) for game in games
    } == {expected}


def test_openings_are_played_with_both_colours(tmp_path: Path) -> None:
    (tmp_path / "openings.txt").write_text("B2 A1 # centre\n\nb2,a1\nC3 C2 C1\n")
    _, text = play(
        request("pass", "corner", 6, openings=tmp_path / "openings.txt", out=tmp_path / "match")
    )
    assert "from 2 independent groups of games" in text
    games = sorted(read_match_games(tmp_path / "match"), key=lambda game: game.number)
    assert [game.opening for game in games] == [1, 1, 2, 2, 1, 1] and [
        game.num_opening_moves for game in games
    ] == [2, 2, 3, 3, 2, 2]
    assert games[0].actions[:2] == games[1].actions[:2] == (4, 6) and games[2].actions[:3] == (
        2,
        5,
        8,
    )


def test_a_test_stops_a_match(tmp_path: Path) -> None:
    result, text = play(request("corner", "pass", 400, sprt=(0.0, 200.0), out=tmp_path))
    assert (
        result.total.games < 60
        and "the test is decided: corner is stronger by at least 200 Elo" in text
    )
    assert "at least 200" in read_match(tmp_path)["result"]["sprt"]
    assert (
        "game 1:" not in play(request("corner", "pass", 400, sprt=(0.0, 200.0), out=tmp_path))[1]
    ), "and it stays stopped"


def test_a_test_that_is_not_decided_says_its_ratio(tmp_path: Path) -> None:
    said = (
        "undecided: log-likelihood ratio -0.65 after 4 games, where -2.94 means at most 0 Elo and "
        "+2.94 at least 100"
    )
    _, text = play(request("corner", "corner", sprt=(0.0, 100.0), out=tmp_path))
    assert f"the test is {said}" in text
    assert read_match(tmp_path)["result"]["sprt"] == said


def test_two_networks_play_in_rounds_and_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meshes: list[Mesh] = []

    def make_match(*arguments: Any, mesh: Mesh, **others: Any) -> Any:
        meshes.append(mesh)
        return compiled.make_match(*arguments, mesh=mesh, **others)

    monkeypatch.setattr(batched, "make_match", make_match)
    monkeypatch.setattr(matches, "PAIRS_PER_ROUND", 2)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    (tmp_path / "openings.txt").write_text("a1 b2 c3\nb2\n")
    settings = {
        "games": 8,
        "temperature_moves": 9,
        "openings": tmp_path / "openings.txt",
        "out": tmp_path / "match",
    }
    wanted = MatchRequest(
        "random-net:tictactoe?visits=0", "random-net:tictactoe?visits=0&seed=3", **settings
    )  # type: ignore[arg-type]
    first, output = play(wanted)
    assert re.findall(r"^\[(./8)\]", output, re.M) == ["4/8", "8/8"], "how far it is"
    assert [mesh.size for mesh in meshes] == [len(jax.local_devices())]
    games = sorted(read_match_games(tmp_path / "match"), key=lambda game: game.number)
    assert [game.number for game in games] == list(range(1, 9)) and [
        game.num_opening_moves for game in games
    ] == [3, 3, 1, 1] * 2
    board = make("tictactoe")
    for game in games:
        state = board.init()
        for action in game.actions:
            state = board.step(state, action)
        assert board.is_terminal(state) and tuple(board.rewards(state).tolist()) == game.rewards
    assert play(wanted)[0] == first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"games": 3}, "an even number of games"),
        ({"workers": 0}, "workers is at least 1"),
        ({"timeout": float("nan")}, "timeout is above 0, not nan"),
        ({"temperature_moves": -1}, "temperature-moves is at least 0, not -1"),
        ({"seed": -1}, "seed is at least 0, not -1"),
        ({"opening_moves": 3}, "needs a file of openings"),
        ({"sprt": (5.0, 5.0)}, "must be below the second"),
        ({"size": 26}, "size 26: sides are 1 to 25"),
        ({"komi": 1e9}, r"komi is a multiple of 0.5 from -10,000 to 10,000, not 1e\+09"),
        ({"openings": Path("nowhere.txt")}, "cannot read nowhere.txt: No such file or directory"),
    ],
)
def test_mistakes_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play(request("pass", "pass", **settings))  # type: ignore[arg-type]


def test_boards_that_do_not_fit_are_named_before_anything_is_written(tmp_path: Path) -> None:
    for first, second, settings, message in [
        (
            "random-net:go5",
            "random-net:go7",
            {},
            "random go7, 32 visits, gumbel plays go on 7x7, not go on 5x5",
        ),
        (
            "random-net:go5",
            program("pass"),
            {"size": 9},
            "random go5, 16 visits, gumbel plays go on 5x5, not go on 9x9",
        ),
        (
            "random-net:tictactoe",
            program("pass"),
            {},
            "plays Go on a square board, not tictactoe on 3x3",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            play(MatchRequest(first, second, 2, out=tmp_path / "match", **settings))  # type: ignore[arg-type]
    assert not (tmp_path / "match").exists()


def test_openings_that_cannot_be_are_named(tmp_path: Path) -> None:
    game = make("go", size=3, komi=0.5)
    for text, message in [
        ("B2 B2", "openings.txt, line 1: 'B2' is not a legal move"),
        ("B2\npass pass", "line 2: the game is over after move 2"),
        ("# nothing", "no opening"),
    ]:
        (tmp_path / "openings.txt").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_openings(tmp_path / "openings.txt", game)
    (tmp_path / "games.sgf").write_text("(;SZ[3];B[bb];W[aa];B[])\n(;SZ[3];B[bb];W[aa];B[cc])")
    assert read_openings(tmp_path / "games.sgf", game, 2) == [(4, 0)], "equal ones once"
    for sgf, message in [
        ("(;SZ[5];B[bb])", "a game on 5x5"),
        ("(;SZ[3]AB[aa];W[bb])", "empty board"),
        ("(;SZ[3];B[aa];B[bb])", "do not take turns"),
    ]:
        (tmp_path / "games.sgf").write_text(sgf)
        with pytest.raises(ValueError, match=message):
            read_openings(tmp_path / "games.sgf", game)


def test_ratings_of_matches_and_runs(tmp_path: Path) -> None:
    play(request("corner", "pass", 4, out=tmp_path / "all" / "one"))
    play(
        request(
            "pass", "pass", 4, first_name="pass", second_name="twin", out=tmp_path / "all" / "two"
        )
    )
    console = Console(file=io.StringIO(), width=200)
    fit = rate([tmp_path / "all"], {"pass": 1000.0}, plot=tmp_path / "elo.png", console=console)
    elo = {rating.name: rating.elo for rating in fit.ratings}
    assert (
        fit.ratings[0].name == "corner"
        and elo["corner"] > elo["pass"] == 1000
        and (tmp_path / "elo.png").stat().st_size > 5000
    )
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "corner" in text and "4 games" in text, (
        "of each match, which drew nothing at random, two are different: one for each colour"
    )
    assert "moving first is worth" in text
    console = Console(file=io.StringIO(), width=60)
    rate([tmp_path / "all" / "one"], {}, "half", as_json=True, console=console)
    assert json.loads(console.file.getvalue())["ratings"][0]["name"] == "corner"  # type: ignore[attr-defined]
    with RowFile(tmp_path / "run" / "events.jsonl") as events:
        events.append(evaluation_row(10, 0, MatchResult(Tally(8, 0, 2), Tally(6, 0, 4))))
    (outcome,) = read_results([tmp_path / "run"])
    assert outcome.names == (
        "run, iteration 10",
        "run, iteration 0",
    ) and outcome.result.total == Tally(14, 0, 6)
    with pytest.raises(ValueError, match="no games connect 'run, iteration"):
        rate([tmp_path / "all", tmp_path / "run"], {})
    with pytest.raises(ValueError, match="cannot write"):
        rate([tmp_path / "all"], {}, plot=tmp_path / "elo.nothing")


def test_a_run_in_the_present_directory_has_the_directorys_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    with RowFile(Path("events.jsonl")) as events:
        events.append(evaluation_row(2, 0, MatchResult(Tally(1, 0, 0), Tally(0, 0, 1))))
    assert read_results([Path(".")])[0].names == ("run, iteration 2", "run, iteration 0")
    assert CheckpointSpec(Path("."), visits=8).name == "run, 8 visits"


def test_names_in_brackets_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    play_match(
        request(
            "corner", "pass", 2, first_name="[/x]", second_name="[red]", out=tmp_path / "[match]"
        )
    )
    rate([tmp_path / "[match]"], {})
    output = capsys.readouterr().out
    assert (
        "[/x] against [red]: " in output
        and len([line for line in output.splitlines() if "│" in line and "[/x]" in line]) == 2
    )


def test_one_name_for_two_players_is_taken_apart(tmp_path: Path) -> None:
    play(request("corner", "pass", 2, second_name="same", out=tmp_path / "one"))
    play(
        request(
            "corner", "corner", 2, first_name="corner", second_name="same", out=tmp_path / "two"
        )
    )
    names = {
        rating.name for rating in rate([tmp_path], {}, console=Console(file=io.StringIO())).ratings
    }
    assert names == {"corner", program("pass"), program("corner")}


def test_a_name_says_the_search_and_is_played_against_everybody() -> None:
    request = MatchRequest("random-net:go9?visits=8", program("pass"), 2)
    names = {}
    for first in (
        "random-net:go9?visits=8",
        "random-net:go9?visits=8&search=trained",
        "random-net:go9?search=engine",
        "random-net:go9?visits=0",
    ):
        side, _ = read_sides(dataclasses.replace(request, first=first))
        assert (
            side.name
            == read_sides(
                dataclasses.replace(request, first=first, second="random-net:go9?seed=1")
            )[0].name
        )
        names[first] = side.name
    assert list(names.values()) == ["random go9, 8 visits, alphazero"] * 2 + [
        "random go9, 64 visits, engine",
        "random go9, 0 visits",
    ]
    assert side.facts == {
        "name": "random go9, 0 visits",
        "player": "random-net:go9?visits=0",
        "iteration": None,
        "visits": 0,
        "search": None,
    }
    with pytest.raises(
        ValueError, match=r"search=best in .* takes .*search=trained.engine.alphago_zero"
    ):
        read_sides(dataclasses.replace(request, first="random-net:go9?search=best"))


def test_resignation_that_no_player_has_is_refused():
    network, program = "random-net:go5", f"gtp:{sys.executable}"
    with pytest.raises(ValueError, match="resign-score is for programs that speak UCI or USI"):
        read_sides(MatchRequest(network, program, resign_score=900))
    with pytest.raises(ValueError, match="resign is for networks"):
        read_sides(MatchRequest(program, program, resign=0.05))
    assert len(read_sides(MatchRequest(network, program, resign=0.05))) == 2


def small_checkpoint(path: Path, seed: int) -> Path:
    """A network that looks at every position as it is, so that a match without temperature is
    always the same."""
    config = load("tictactoe").config
    config = dataclasses.replace(
        config, search=dataclasses.replace(config.search, random_symmetry=False, max_considered=5)
    )
    game = make("tictactoe")
    network = config.network.build(game)
    write_exported(path, network.init(jax.random.key(seed)), 1, config)
    return path


def test_a_match_goes_on_where_the_run_has_deleted_its_checkpoint(tmp_path: Path) -> None:
    run = tmp_path / "run"
    save_last(run, 1)
    out = tmp_path / "ladder" / "a"
    wanted = MatchRequest(f"checkpoint:{run}?visits=0", "random:tictactoe", 2, out=out)
    play(wanted)
    save_last(run, 2)
    _, text = play(dataclasses.replace(wanted, games=4))
    assert "2 of 4 games are in" in text and "run, iteration 1, 0 visits against" in text
    other = dataclasses.replace(wanted, out=tmp_path / "ladder" / "b")
    console = Console(file=io.StringIO(), width=300)
    play_match(other, console, read_players([out]))
    assert "run, iteration 1, 0 visits against" in console.file.getvalue()  # type: ignore[attr-defined]
    shutil.rmtree(out / "first")
    assert play(dataclasses.replace(wanted, games=4))[0].total.games == 4, "nothing is missing"
    with pytest.raises(CheckpointError, match=r"no checkpoint 1; it has 2 .*keep-every"):
        play(dataclasses.replace(wanted, games=6))


@pytest.mark.parametrize("is_there", [True, False])
def test_a_match_goes_on_where_the_checkpoint_that_it_names_is_gone(
    is_there: bool, tmp_path: Path
) -> None:
    run, out = tmp_path / "run", tmp_path / "match"
    save_last(run, 1)
    wanted = MatchRequest(f"checkpoint:{run}?visits=0&iteration=1", "random:tictactoe", 2, out=out)
    play(wanted)
    if is_there:
        save_last(run, 2)
    else:
        shutil.rmtree(run)
    _, text = play(dataclasses.replace(wanted, games=4))
    assert "2 of 4 games are in" in text and "run, iteration 1, 0 visits against" in text
    with pytest.raises(ValueError, match=r"no checkpoint 1|no directory"):
        play(dataclasses.replace(wanted, out=tmp_path / "other"))


@pytest.mark.parametrize("symmetries", ["none", "average"])
def test_one_tree_for_each_game_plays_the_games_of_many_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, symmetries: str
) -> None:
    first, second = (small_checkpoint(tmp_path / name, seed) for seed, name in enumerate("ab"))
    (tmp_path / "openings.txt").write_text("a1 b2\nb2 a3 c1\n")
    settings = {"games": 4, "temperature_moves": 0, "openings": tmp_path / "openings.txt"}
    options = f"visits=12&search=alphago_zero&symmetries={symmetries}"
    players = [f"checkpoint:{path}?{options}" for path in (first, second)]
    played = []
    for at_once in (True, False):
        monkeypatch.setattr(
            "azero.match.matches.plays_at_once", lambda *_, at_once=at_once: at_once
        )
        play(MatchRequest(*players, out=tmp_path / str(at_once), **settings))  # type: ignore[arg-type]
        games = sorted(read_match_games(tmp_path / str(at_once)), key=lambda game: game.number)
        played.append(
            [
                (game.actions, game.rewards, [decision.visits for decision in game.decisions])
                for game in games
            ]
        )
    assert played[0] == played[1] and len(played[0]) == 4


def test_a_match_goes_on_where_its_directory_moved_with_the_players(tmp_path: Path) -> None:
    def match(here: Path, first: str, games: int) -> MatchRequest:
        players = [f"checkpoint:{here / name}?visits=0" for name in (first, "b")]
        return MatchRequest(*players, games, out=here / "match")

    old, new = tmp_path / "old", tmp_path / "new"
    for seed, name in enumerate("abc"):
        small_checkpoint(old / name, seed)
    play(match(old, "a", 2))
    shutil.copytree(old, new)
    _, text = play(match(new, "a", 4))
    assert "2 of 4 games are in" in text and "continues" not in text
    facts = read_match(new / "match")
    assert [side["player"] for side in facts["players"]] == [
        facts["command"][side] for side in ("first", "second")
    ]
    assert facts["command"]["first"] == f"checkpoint:{new / 'a'}?visits=0"
    old.rename(tmp_path / "renamed")
    with pytest.raises(ValueError, match="holds another match"):
        play(match(tmp_path / "renamed", "c", 4))


def test_matches_of_former_versions_are_not_merged_with_new_ones(tmp_path: Path) -> None:
    first, second = (small_checkpoint(tmp_path / name, seed) for seed, name in enumerate("ab"))
    new, old, tree = (tmp_path / "matches" / name for name in ("new", "old", "tree"))
    play(
        MatchRequest(
            f"checkpoint:{first}?visits=4",
            f"checkpoint:{second}?visits=4",
            2,
            first_name="a",
            second_name="b",
            out=new,
        )
    )
    for path in (old, tree):
        shutil.copytree(new, path)
        facts = json.loads((path / "match.json").read_text())
        facts["players"] = [
            {name: side[name] for name in ("name", "player", "iteration")}
            for side in facts["players"]
        ]
        if path == tree:
            facts["players"][1] |= {"name": "c", "player": "gtp:somebody"}
        (path / "match.json").write_text(json.dumps(facts))
    identity = f"checkpoint:{first}?visits=4 1"
    assert {outcome.players[0] for outcome in read_results([tmp_path / "matches"])} == {
        f"{identity} 4 visits gumbel",
        f"{identity} (search not recorded: many games at once)",
        f"{identity} (search not recorded: one tree for each game)",
    }
    assert [outcome.names for outcome in read_results([old])] == [("a", "b")], (
        "alone they are shown as they are"
    )
    with pytest.raises(ValueError, match="no games connect"):
        rate([tmp_path / "matches"], {}, console=Console(file=io.StringIO()))


def test_workers_share_no_random_numbers_with_those_of_another_seed() -> None:
    wanted = MatchRequest("random:tictactoe", "random:tictactoe")
    sides = read_sides(wanted)
    rules = match_rules(wanted, sides)
    start = Position.start(rules.build())

    def moves(seed: int, worker: int, num_known: int = 0) -> tuple[int, ...]:
        seeded = dataclasses.replace(wanted, seed=seed)
        player = player_maker(sides[0], seeded, rules, worker, num_known)(1)
        return tuple(player.choose(start, Clock()).action for _ in range(12))

    everyone = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (0, 0, 3), (0, 1, 3), (1, 0, 3)]
    assert len({moves(*one) for one in everyone}) == len(everyone)


def test_the_clock_is_part_of_what_a_player_of_a_tournament_is(tmp_path: Path) -> None:
    players = [
        {"name": "a", "player": "go9", "iteration": None, "visits": None, "search": None},
        {"name": "b", "player": "go7", "iteration": None, "visits": None, "search": None},
        {"name": "program", "player": "gtp:program", "iteration": None},
    ]
    for first, second in itertools.combinations(players, 2):
        wanted = MatchRequest(
            first["player"], second["player"], 2, clock=TimeControl(main_time=10.0)
        )
        out = tmp_path / f"{first['name']}-{second['name']}"
        directory = MatchDirectory(out, wanted.command, [first, second])
        for number, reward in ((1, 1.0), (2, -1.0)):
            directory.add(
                MatchGame(number, None, number == 1, reward, (number,), 0, "played out"), None
            )
        directory.close()
    fit = rate([tmp_path], {"a": 0.0}, console=Console(file=io.StringIO()))
    assert {rating.name for rating in fit.ratings} == {"a", "b", "program"}
    assert read_results([tmp_path])[0].players == ("go9 main_time 10", "go7 main_time 10")


def test_a_player_given_in_two_spellings_is_rated_as_one(tmp_path: Path) -> None:
    for number, text in enumerate(
        ("go9?visits=4&c_visit=20", "model:go9?c-visit=20&visits=4", "go9?visits=4&c-visit=30")
    ):
        facts = [
            {"name": "a", "player": text, "iteration": 1, "visits": 4, "search": "gumbel"},
            {"name": f"b{number}", "player": "gtp:program", "iteration": None},
        ]
        path = tmp_path / str(number)
        path.mkdir()
        (path / "match.json").write_text(json.dumps({"command": {}, "players": facts}))
        row = MatchGame(1, None, True, 1.0, (1,), 0, "played out").row()
        (path / "games.jsonl").write_text(json.dumps(row) + "\n")
    first, second, other = (match.players[0] for match in read_results([tmp_path]))
    assert first == second == "go9?c-visit=20&visits=4 1 4 visits gumbel" != other


@pytest.mark.parametrize("has_name", [True, False])  # in tournaments they have none
@pytest.mark.parametrize("knows_place", [True, False])  # former versions did not
def test_a_path_given_in_several_spellings_is_one_player(
    has_name: bool, knows_place: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c" / "b").mkdir(parents=True)
    spellings = ("checkpoint:a/b", "checkpoint:./a/b", "a/b/", f"{tmp_path}/a/b", "c/b")
    for number, text in enumerate(spellings):
        name = "b" if has_name else text
        facts = [
            {"name": name, "player": text, "iteration": 1, "visits": 4, "search": "gumbel"},
            {"name": "other", "player": "gtp:program", "iteration": None},
        ]
        path = tmp_path / "matches" / str(number)
        path.mkdir(parents=True)
        for side in facts if knows_place else ():
            side["from_here"] = with_relative_paths(path, side["player"])
        (path / "match.json").write_text(json.dumps({"command": {}, "players": facts}))
        row = MatchGame(1, None, True, 1.0, (1,), 0, "played out").row()
        (path / "games.jsonl").write_text(json.dumps(row) + "\n")
    unnamed = {"checkpoint:a/b", "c/b"}
    # whatever directory the ratings are asked for in
    for place in [tmp_path, tmp_path / "matches"][: 1 + knows_place]:
        monkeypatch.chdir(place)
        prefix = "" if place == tmp_path else f"{tmp_path}/"
        named = {f"checkpoint:{prefix}{run}/b 1 4 visits gumbel" for run in "ac"}
        outcomes = disambiguate_names(read_results([tmp_path / "matches"]))
        assert {outcome.names[0] for outcome in outcomes} == (named if has_name else unnamed)


def test_a_player_of_a_match_and_of_a_tournament_is_one_player(tmp_path: Path) -> None:
    names = (("described", None), ("random:go5", "random:go5"), ("chosen", "chosen"))
    for number, (name, wanted) in enumerate(names):
        facts = [
            {"name": name, "player": "random:go5", "iteration": None},
            {"name": "other", "player": "gtp:program", "iteration": None},
        ]
        path = tmp_path / str(number)
        path.mkdir()
        command = {"first_name": wanted, "second_name": "other"}
        (path / "match.json").write_text(json.dumps({"command": command, "players": facts}))
        row = MatchGame(1, None, True, 1.0, (1,), 0, "played out").row()
        (path / "games.jsonl").write_text(json.dumps(row) + "\n")
    outcomes = disambiguate_names(read_results([tmp_path]))
    assert [match.names[0] for match in outcomes] == ["described", "described", "chosen"]


def test_a_player_with_free_moves_is_another_one_whatever_its_name(tmp_path: Path) -> None:
    for name in ("other", None):
        play(request("corner", "pass", 2, second_name=name, out=tmp_path / f"{name} even"))
        play(request("corner", "pass", 2, second_name=name, handicap=2, out=tmp_path / f"{name}"))
    names = {match.names[1] for match in read_results([tmp_path])}
    assert names == {"python", "other", "python, 2 free moves", "other, 2 free moves"}


def test_ratings_show_the_interval_of_the_match(tmp_path: Path) -> None:
    """Games of one opening are one group, and few openings a wide interval."""
    openings = tmp_path / "openings.txt"
    openings.write_text("B2\nA1\n")
    wanted = request("corner", "pass", 12, openings=openings, temperature_moves=1)
    _, text = play(dataclasses.replace(wanted, out=tmp_path / "match"))
    low, high = read_match(tmp_path / "match")["result"]["interval"]
    assert f"{100 * low:.1f} to {100 * high:.1f}, from 2 independent groups" in text
    console = Console(file=io.StringIO(), width=200)
    rate([tmp_path / "match"], {}, console=console)
    (tmp_path / "match" / "games.jsonl").unlink()
    rate([tmp_path / "match"], {}, console=console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert shown.count(f" {100 * low:.0f} to {100 * high:.0f}% ") == 2, shown


def test_games_that_repeat_do_not_make_a_rating_certain(tmp_path: Path) -> None:
    """Programs draw no moves, whatever `temperature_moves` says."""
    wanted = request("corner", "pass", 12, temperature_moves=4, out=tmp_path)
    _, text = play(wanted)
    assert "no interval: all games are of one group" in text
    (match,) = read_results([tmp_path])
    independent = fit_elo(pair_results(*match.names, match.result)).ratings[1]
    rating = rate([tmp_path], {}, console=Console(file=io.StringIO())).ratings[1]
    assert (rating.elo, rating.games) == (independent.elo, 12)
    assert rating.deviation > 2 * independent.deviation


def test_ratings_keep_boards_and_komis_apart(tmp_path: Path) -> None:
    for name, settings in (("a", {}), ("b", {"size": 5}), ("c", {"komi": 2.5})):
        play(request("corner", "pass", 2, out=tmp_path / name, **settings))
    assert [outcome.board for outcome in read_results([tmp_path])] == [
        "go on 3x3, komi 0.5",
        "go on 5x5, komi 0.5",
        "go on 3x3, komi 2.5",
    ]
    quiet = Console(file=io.StringIO())
    with pytest.raises(ValueError, match=r"no games connect 'corner \(go on 5x5, komi 0.5\)"):
        rate([tmp_path], {}, console=quiet)
    shutil.rmtree(tmp_path / "b")
    # former versions did not record the rules
    facts = read_match(tmp_path / "c")
    del facts["command"]["rules"]
    (tmp_path / "c" / "match.json").write_text(json.dumps(facts))
    assert [rating.name for rating in rate([tmp_path], {}, console=quiet).ratings] == [
        "corner",
        "pass",
    ]


def test_a_match_of_a_former_version_goes_on_as_it_was_played() -> None:
    request = MatchRequest("random-net:go9?visits=8", program("pass"), 2)
    side, other = read_sides(request)
    old = {"name": "net", "player": request.first, "iteration": None}
    went_on = restore_side(side, old, was_at_once=False)
    assert isinstance(went_on.spec, RandomNetSpec) and (went_on.spec.search, went_on.name) == (
        "engine",
        "net",
    )
    # The engine search had AlphaZero's exploration.
    assert went_on.spec.constants == (("pb_c_init", 1.25),)
    engine, _ = read_sides(dataclasses.replace(request, first="random-net:go9?search=engine"))
    assert engine.facts["pb_c_init"] == ENGINE.c_init == 0.6
    assert restore_side(engine, engine.facts, was_at_once=False) == engine
    assert (
        restore_side(side, old, was_at_once=True).spec
        == side.spec
        == restore_side(side, side.facts, was_at_once=False).spec
    )
    assert restore_side(other, other.facts, was_at_once=False) == other


def test_results_are_rated_where_the_games_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = Console(file=io.StringIO())
    play(request("corner", "pass", 6, out=tmp_path / "counted"))
    fit = rate([tmp_path], {}, console=quiet)
    twice = [tmp_path / "counted", tmp_path, tmp_path]
    assert rate(twice, {}, console=quiet) == fit, "a match that is named twice counts once"
    (tmp_path / "counted" / "games.jsonl").unlink()
    again = rate([tmp_path], {}, console=quiet)
    assert [(r.elo, r.games) for r in again.ratings] == [(r.elo, r.games) for r in fit.ratings], (
        "repeated games count once, as before"
    )
    # Former versions did not count different games by colour.
    (tmp_path / "former").mkdir()
    facts = read_match(tmp_path / "counted")
    facts["result"] = {
        name: value for name, value in facts["result"].items() if "different" not in name
    }
    (tmp_path / "former" / "match.json").write_text(json.dumps(facts))
    assert len(read_results([tmp_path], [])) == 1
    rate([tmp_path], {}, console=quiet)
    assert "former: 4 of its games repeat others and do not count" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"nothing to rate: .*games.jsonl, which says whose"):
        rate([tmp_path / "former"], {})
    facts["command"]["temperature_moves"] = 4
    (tmp_path / "former" / "match.json").write_text(json.dumps(facts))
    assert read_results([tmp_path / "former"])[0].result.total == Tally(wins=6)
    (tmp_path / "former" / "match.json").write_text(json.dumps({**facts, "result": {"wins": 1}}))
    with pytest.raises(ValueError, match=r"match.json: result has no draws"):
        rate([tmp_path / "former"], {})


def test_a_directory_without_games_becomes_another_match(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="never played a move"):
        play(request("deaf", "pass", 2, timeout=0.5, out=tmp_path))
    play(request("corner", "pass", 2, out=tmp_path))
    with pytest.raises(ValueError, match=r"holds another match .* or move this one away"):
        play(request("pass", "pass", 2, out=tmp_path))
    (tmp_path / "games.jsonl").unlink()
    with pytest.raises(ValueError, match=r"without its games \(games.jsonl\)"):
        play(request("corner", "pass", 2, out=tmp_path))


def test_directories_without_games_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is neither a match"):
        read_results([tmp_path])
    with pytest.raises(ValueError, match="there is no directory"):
        read_results([tmp_path / "nowhere"])
