"""`azero match` and `azero elo` for chess and shogi: programs by name, openings from collections
and at random, records that other programs read."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from azero.games.chess import pgn
from azero.games.position import Position
from azero.games.shogi import csa, record_files
from azero.games.table import make
from azero.match.directory import read_match_games
from azero.match.external import Pairing
from azero.match.games import MatchGame
from azero.match.matches import play_match
from azero.match.openings import draw_openings, read_openings, read_starts, stronger_side
from azero.match.records import RECORDS, Occasion, csa_ending, match_csa, match_pgn
from azero.match.request import MatchRequest
from azero.match.score import MatchResult, Tally
from azero.match.sides import describe_rules, match_rules, read_sides
from azero.players.player import Decision
from azero.players.program_specs import GnuShogiSpec, UciSpec, parse_program
from azero.players.specs import RandomNetSpec, parse_player
from azero.report.ratings import rate

SCRIPT = Path(__file__).parents[1] / "players" / "scripted_uci.py"
KINDS = {"chess": "uci", "shogi": "usi"}


MATE = """PI
+
+5756FU,-8242HI,+2818HI,-3132GI,+7776FU,-5354FU,+4958KI,-6364FU,+5968OU,-4344FU,+1828HI,-1314FU,+5655FU,-5162OU,+5554FU,-2213KA,+6878OU
-7172GI,+8877KA,-3243GI,+7755KA,-1379KA,+6979KI,-4222HI,+0053KA,-6263OU,+5364UM,-6352OU,+5453TO,-5251OU,+5343TO,-0063GI,+0052FU,-2252HI
+4352TO,-4152KI,+0031HI,-5162OU,+6486UM,-6364GI,+8664UM,-9394FU,+5544KA,-5253KI,+4453UM
"""
"""A game between GNU Shogi and Fairy-Stockfish that ended with mate."""


def request(kind: str, first: str, second: str, games: int = 2, **settings: object) -> MatchRequest:
    players = [
        f"{KINDS[kind]}:{sys.executable} {SCRIPT} {mode}?nodes=1&option.skill level=0"
        for mode in (first, second)
    ]
    return MatchRequest(
        *players,
        games,
        **{"temperature_moves": 0, "first_name": first, "second_name": second} | settings,
    )  # type: ignore[arg-type]


def play(wanted: MatchRequest) -> tuple[MatchResult, str]:
    console = Console(file=io.StringIO(), width=300)
    result = play_match(wanted, console).result
    return result, console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("game", KINDS)
def test_programs_play_and_every_game_is_written(tmp_path: Path, game: str) -> None:
    wanted = request(game, "good", "resign", out=tmp_path, game=game)
    result, text = play(wanted)
    assert result == MatchResult(first=Tally(wins=1), second=Tally(wins=1))
    assert (
        f"game 1: good won as {'White' if game == 'chess' else 'Black'}, 1 move, resign resigns"
        in text
    )
    assert (
        "good against resign: shogi on 9x9, with an entering-king rule (27 points), at "
        "most 512 moves\n" in text
    ) == (game == "shogi")
    assert play(wanted)[1].startswith("2 of 2 games are in"), (
        "a match that is over goes on with nothing"
    )
    files = sorted(tmp_path.glob("game0*"))
    if game == "chess":
        read = [next(pgn.read_games(path)) for path in files]
        assert [
            (record.tags["White"], record.tags["Black"], record.result, record.tags["Termination"])
            for record in read
        ] == [("good", "resign", "1-0", "normal"), ("resign", "good", "0-1", "normal")]
    else:
        read = [next(record_files.read_games(path)) for path in files]
        assert [(record.black, record.white, record.winner, record.ending) for record in read] == [
            ("good", "resign", "black", "%TORYO"),
            ("resign", "good", "white", "%TORYO"),
        ]
    assert [record.actions for record in read] == [
        played.actions for played in read_match_games(tmp_path)
    ]
    fit = rate([tmp_path], {}, console=Console(file=io.StringIO()))
    assert {rating.name for rating in fit.ratings} == {"good", "resign"} and fit.ratings[
        0
    ].name == "good"


@pytest.mark.parametrize("game", KINDS)
def test_failures_lose_and_records_say_so(tmp_path: Path, game: str) -> None:
    result, text = play(request(game, "illegal", "good", out=tmp_path))
    assert (
        result == MatchResult(first=Tally(losses=1), second=Tally(losses=1))
        and "illegal move" in text
        and "2 games lost by a failure of illegal" in text
    )
    content = (tmp_path / f"game0001.{'pgn' if game == 'chess' else 'csa'}").read_text()
    assert (
        ('[Termination "rules infraction"]' in content and "0-1" in content)
        if game == "chess"
        else content.endswith("%+ILLEGAL_ACTION\n")
    )


def test_what_a_program_says_is_not_how_it_failed() -> None:
    said = "a: crashed at 'go' (exit status 132); it said: illegal instruction, loses on time"
    game = MatchGame(1, None, True, -1.0, (), 0, said, "a")
    assert '[Termination "abandoned"]' in match_pgn(game, make("chess"), ("a", "b"), Occasion())
    assert csa_ending(game, make("shogi")) == "%+ILLEGAL_ACTION"


def test_a_draw_by_the_limit_of_moves_is_an_adjudication() -> None:
    for limit, reason in ((4, "adjudication"), (5, "normal")):
        game, end = make("chess", max_moves=limit), Position.start(make("chess"))
        for name in ("g1f3", "g8f6", "f3g1", "f6g8"):
            end = end.play(end.parse_action(name))
        played = MatchGame(1, None, True, 0.0, end.actions, 0, "played out")
        assert f'[Termination "{reason}"]' in match_pgn(played, game, ("a", "b"), Occasion())


def test_endings_of_shogi_in_csa() -> None:
    game = make("shogi")

    def ending(
        actions: tuple[int, ...], reward: float, how: str = "played out", failed: str = ""
    ) -> str:
        played = MatchGame(1, None, True, reward, actions, 0, how, failed)
        return match_csa(played, game, ("a", "b"), Occasion()).split()[-1]

    (mate,) = csa.parse_games(MATE, "mate")
    around = Position.start(game)
    for name in ["5i5h", "5a5b", "5h5i", "5b5a"] * 3:
        around = around.play(around.parse_action(name))
    assert (
        ending(mate.actions, 1.0) == "%TSUMI"
        and around.is_over
        and ending(around.actions, 0.0) == "%SENNICHITE"
    )
    assert ending(mate.actions[:4], 1.0) == "%-ILLEGAL_ACTION", "perpetual check"
    assert ending(mate.actions[:4], -1.0, "a: crashed", "a") == "%+ILLEGAL_ACTION"
    given_up = (
        ending(mate.actions[:4], 1.0, "b resigns"),
        ending(mate.actions[:3], 1.0, "b resigns"),
    )
    assert given_up == ("%-ILLEGAL_ACTION", "%TORYO"), "%TORYO is of the side to move"


@pytest.mark.parametrize(
    ("first", "wanted", "rule"),
    [
        ("usi", None, "with an entering-king rule (27 points)"),
        ("usi", False, "without an entering-king rule"),
        # as AlphaZero's matches
        ("random-net:shogi?blocks=1&filters=8", None, "without an entering-king rule"),
        ("random-net:shogi?blocks=1&filters=8", True, "with an entering-king rule (27 points)"),
    ],
)
def test_a_match_says_whether_an_entering_king_wins(
    first: str, wanted: bool | None, rule: str
) -> None:
    good = f"usi:{sys.executable} {SCRIPT} good"
    match = MatchRequest(good if first == "usi" else first, good, 2, entering_king=wanted)
    rules = match_rules(match, read_sides(match))
    assert describe_rules(
        rules
    ) == f"shogi on 9x9, {rule}, at most 512 moves" and rules.entering_king == rule.startswith(
        "with "
    )
    assert make("shogi", **rules.options()).entering_king == rules.entering_king  # type: ignore[attr-defined]


def test_a_match_may_name_its_longest_game(tmp_path: Path) -> None:
    match = MatchRequest("random:shogi", "random:shogi", 4, max_moves=7, out=tmp_path / "match")
    result, text = play(match)
    assert "at most 7 moves" in text and result.total.draws == 4
    assert [len(game.actions) for game in read_match_games(tmp_path / "match")] == [7] * 4


def test_openings_come_from_collections_and_from_lines(tmp_path: Path) -> None:
    chess, shogi = make("chess"), make("shogi")
    games = tmp_path / "some.pgn"
    games.write_text(
        '[Result "*"]\n\n1. e4 e5 2. Nf3 Nc6 *\n\n[Result "*"]\n\n1. e4 e5 2. Nf3 Nc6 3. Bb5 *\n'
    )
    lines = tmp_path / "some.txt"
    lines.write_text("e2e4 e7e5 g1f3 b8c6 # open\n", encoding="utf-8-sig")  # as Windows writes
    assert read_openings(games, chess, 4) == read_openings(lines, chess) and [
        len(opening) for opening in read_openings(games, chess)
    ] == [4, 5]
    record = tmp_path / "some.csa"
    record.write_text("V2.2\nPI\n+\n+7776FU\n-3334FU\n%TORYO\n")
    lines.write_text("7g7f, 3c3d\n")
    assert read_openings(record, shogi) == read_openings(lines, shogi)
    games.write_text('[SetUp "1"]\n[FEN "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"]\n\n1. e4 *\n')
    with pytest.raises(
        ValueError, match=r"some.pgn game 1 does not start from the game's own start position"
    ):
        read_openings(games, chess)
    lines.write_text("f2f3 e7e5 g2g4 d8h4\n")
    with pytest.raises(ValueError, match=r"some.txt, line 1: the game is over after move 4"):
        read_openings(lines, chess)


def test_random_openings_are_legal_different_and_the_seeds() -> None:
    game = make("chess")
    drawn = draw_openings(game, 6, 3, seed=1)
    assert drawn == draw_openings(game, 6, 3, seed=1) != draw_openings(game, 6, 3, seed=2)
    assert len(set(drawn)) == 6 and {len(opening) for opening in drawn} == {3}
    for opening in drawn:
        position = Position.start(game)
        for action in opening:
            position = position.play(action)
    assert (
        len(draw_openings(game, 25, 1, seed=0))
        == np.count_nonzero(Position.start(game).legal)
        == 20
    ), "no more than there are"


def test_both_colours_play_the_opening_that_was_drawn(tmp_path: Path) -> None:
    play(request("chess", "resign", "resign", 4, random_plies=3, out=tmp_path))
    games = read_match_games(tmp_path)
    assert [game.num_opening_moves for game in games] == [3] * 4 and games[0].actions == games[
        1
    ].actions != games[2].actions


MATES = [
    "k7/8/1K6/8/8/8/8/7R w - - 0 1",
    "K7/8/1k6/8/8/8/8/7r b - - 0 1",
    "k7/8/1K6/8/8/8/8/7R b - - 0 1",
]
"""The side with the rook mates on h8; in the last one after the other king's only move."""


def test_the_stronger_side_of_positions_is_played_by_the_first_player(tmp_path: Path) -> None:
    (tmp_path / "mates.txt").write_text("\n".join(["# mates", *MATES]))
    wanted = request(
        "chess",
        "mate",
        "wait",
        4,
        start_positions=tmp_path / "mates.txt",
        first_side="stronger",
        out=tmp_path / "match",
    )
    result, text = play(wanted)
    assert (
        result == MatchResult(first=Tally(wins=3), second=Tally(wins=1))
        and "as White 3-0-0, as Black 1-0-0" in text
    )
    games = sorted(read_match_games(tmp_path / "match"), key=lambda game: game.number)
    assert [(game.start, game.opening, len(game.actions)) for game in games] == [
        (MATES[0], 1, 1),
        (MATES[1], 2, 1),
        (MATES[2], 3, 2),
        (MATES[0], 1, 1),
    ]
    read = [next(pgn.read_games(path)) for path in sorted((tmp_path / "match").glob("*.pgn"))]
    assert [record.fen for record in read] == [*MATES, MATES[0]] and [
        record.result for record in read
    ] == ["1-0", "0-1", "1-0", "1-0"]
    rows = (tmp_path / "match" / "games.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "match" / "games.jsonl").write_text("".join(rows[:2] + rows[3:]))
    again, text = play(wanted)
    assert (
        again == result
        and "3 of 4 games are in" in text
        and "game 3:" in text
        and "game 4:" not in text
    )
    with pytest.raises(ValueError, match="one player always had the stronger side"):
        rate([tmp_path / "match"], {})


def test_positions_are_played_with_both_colours(tmp_path: Path) -> None:
    (tmp_path / "mate.txt").write_text(MATES[0])
    result, _ = play(request("chess", "mate", "mate", start_positions=tmp_path / "mate.txt"))
    assert result == MatchResult(first=Tally(wins=1), second=Tally(losses=1))


def test_positions_that_have_no_stronger_side_are_named(tmp_path: Path) -> None:
    (tmp_path / "even.txt").write_text("\n".join([MATES[0], "k6r/8/1K6/8/8/8/8/7R w - - 0 1"]))
    with pytest.raises(ValueError, match=r"even.txt: in 'k6r/.*' neither side has more material"):
        read_starts(tmp_path / "even.txt", make("chess"), need_stronger=True)
    assert [start.stronger for start in read_starts(tmp_path / "even.txt", make("chess"))] == [
        0,
        None,
    ]
    assert [stronger_side(fen) for fen in MATES] == [0, 1, 0]
    with pytest.raises(ValueError, match="is for chess positions, not shogi"):
        read_starts(tmp_path / "even.txt", make("shogi"), need_stronger=True)


@pytest.mark.parametrize(
    ("name", "start", "moves", "ending", "expected"),
    [
        (
            "chess",
            MATES[2],
            ("a8b8", "h1h8"),
            "played out",
            "1... Kb8 {value -0.250, visits 64, line Kb8 Rh8#} 2. Rh8# {value +1.000} 1-0",
        ),
        (
            "shogi",
            "",
            ("7g7f", "3c3d"),
            "a resigns",
            "+7776FU 'value -0.250, visits 64, line +7776FU -3334FU -3334FU 'value "
            "+1.000, a resigns %TORYO",
        ),
    ],
)
def test_records_say_what_players_thought(
    name: str, start: str, moves: tuple[str, str], ending: str, expected: str
) -> None:
    game = make(name)
    position = Pairing(1, start=start).first_position(game)
    first = position.parse_action(moves[0])
    second = position.play(first).parse_action(moves[1])
    decisions = (Decision(first, -0.25, 64, (first, second)), Decision(second, 1.0))
    reward = -1.0 if ending == "a resigns" else 1.0
    played = MatchGame(
        1, None, True, reward, (first, second), 0, ending, start=start, decisions=decisions
    )
    suffix, write = RECORDS[name]
    text = write(played, game, ("a", "b"), Occasion())
    assert expected in " ".join(text.split())
    (back,) = (pgn.parse_games if suffix == ".pgn" else csa.parse_games)(text, "back")
    assert back.actions == played.actions


def test_programs_by_name() -> None:
    assert parse_program("uci:stockfish?skill=0&nodes=1000&option.Threads=1") == UciSpec(
        ("stockfish",), "chess", (("Skill Level", "0"), ("Threads", "1")), "nodes 1000"
    )
    fairy = parse_program("usi:fairy-stockfish --quiet?elo=1350&movetime=50&depth=3")
    assert fairy == UciSpec(
        ("fairy-stockfish", "--quiet"),
        "shogi",
        (("UCI_LimitStrength", "true"), ("UCI_Elo", "1350")),
        "movetime 50 depth 3",
    )
    usual, limited = parse_program("uci:a"), parse_program("uci:a?movetime=1000")
    assert usual.name == limited.name == "a, movetime 1000"
    minichess = parse_program("uci:fairy-stockfish?option.UCI_Variant=gardner&nodes=5")
    assert (minichess.game, minichess.options) == ("minichess", (("UCI_Variant", "gardner"),))
    spaced = parse_program("uci:a?option.Move Overhead=100")
    assert spaced == UciSpec(("a",), "chess", (("Move Overhead", "100"),))
    path = parse_program("uci:a?option.SyzygyPath=/c++/a b")
    assert path.options == (("SyzygyPath", "/c++/a b"),)
    asked = parse_program("uci:a what?b=1 --c?option.Path=a?b=c&nodes=4")
    assert asked == UciSpec(("a", "what?b=1", "--c"), "chess", (("Path", "a?b=c"),), "nodes 4")
    assert parse_program("gtp:a --x what?").command == ("a", "--x", "what?")
    with pytest.raises(ValueError, match="node=5 in"):
        parse_program("uci:a?node=5")
    assert (usual.by_clock().go, limited.by_clock().go) == ("", "movetime 1000")
    assert fairy.name == "fairy-stockfish, UCI_Elo 1350, movetime 50 depth 3"
    ours = parse_program("uci:azero uci --random-net chess?blocks=2&filters=8?nodes=4")
    assert ours == UciSpec(
        ("azero", "uci", "--random-net", "chess?blocks=2&filters=8"), "chess", (), "nodes 4"
    )
    assert parse_program("gnushogi:gnushogi?depth=2") == GnuShogiSpec(
        ("gnushogi",), 2
    ) and parse_program("gnushogi:gnushogi") == GnuShogiSpec(("gnushogi",))
    assert parse_program("checkpoint:runs/chess?visits=1") is None
    assert parse_player("random-net:chess?blocks=2&filters=8") == RandomNetSpec(
        "chess", blocks=2, filters=8
    )
    small = RandomNetSpec("chess", blocks=2, filters=8).config
    assert (
        small.game.name,
        small.network.blocks,
        small.network.filters,
        small.network.policy_filters,
    ) == ("chess", 2, 8, 256)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"first": "uci:stockfish?skil=3"},
            "skil=3 in 'uci:stockfish.skil=3' is not understood; there are skill, elo, "
            "nodes, movetime, depth",
        ),
        (
            {"first": "uci:fairy-stockfish?option.UCI_Variant=atomic"},
            "the variants of chess here are chess, gardner, not atomic in",
        ),
        ({"first": "uci:stockfish?nodes=0"}, "nodes=0 in 'uci:stockfish.nodes=0': at least 1"),
        ({"first": "usi:stockfish?movetime=-5"}, "movetime=-5 in .*: at least 1"),
        ({"first": "gnushogi:x?nodes=3"}, "gnushogi takes depth=NUMBER"),
        ({"first": "uci:"}, "'uci:' is not a player: it is of none of the forms"),
        ({"game": "shogi"}, "plays chess, not shogi on 9x9"),
        ({"komi": 0.5}, "^komi is a setting of Go, not chess"),
        ({"entering_king": True}, "entering-king is a setting of shogi, not chess"),
        ({"max_moves": 0}, "game.max-moves is at least 1, not 0"),
        ({"max_moves": 10**9}, "max-moves is from 1 to 100000, not 1000000000"),
        ({"random_plies": 0}, "random-plies is at least 1"),
        (
            {"random_plies": 1, "start_positions": Path("x.txt")},
            "start-positions excludes openings",
        ),
        ({"first_side": "stronger"}, "first-side needs start-positions"),
        (
            {"start_positions": Path("nowhere.txt")},
            "cannot read the start positions in nowhere.txt",
        ),
        ({"second": f"usi:{sys.executable} {SCRIPT} good"}, "plays shogi, not chess on 8x8"),
        ({"second": "random-net:go5"}, "plays chess, not go on 5x5"),
    ],
)
def test_mistakes_are_named(settings: dict[str, object], message: str) -> None:
    good = f"uci:{sys.executable} {SCRIPT} good"
    with pytest.raises(ValueError, match=message):
        play(MatchRequest(**{"first": good, "second": good, "games": 2} | settings))  # type: ignore[arg-type]
