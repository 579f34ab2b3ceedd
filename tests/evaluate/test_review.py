"""Reviews with a player whose opinions are written down: losses, set-ups, moves that cannot be,
leads and ownership, the SGF and the page."""

import dataclasses
import gzip
import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from untrained import draw_variables

from azero.checkpoint.exported import write_exported
from azero.commands.review import analyze
from azero.engines.source import Source
from azero.evaluate.annotated import annotated_record
from azero.evaluate.recorded import recorded_game
from azero.evaluate.review import Review, review_game, review_rows
from azero.games.go.rules import Go
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import GameRecord, parse_games
from azero.games.position import Position
from azero.learn.settings import LearnerConfig
from azero.networks.settings import PooledConfig
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, MoveInfo
from azero.report.review_page import write_review
from azero.settings import Config

GAME = Go(size=3, komi=0.5)
CENTRE, CORNER, EDGE, PASS = 4, 0, 1, 9


class Oracle:
    """Says what it was told of each position, by the number of moves so far: (value for the mover,
    best move); of points, the lead and the owners for the mover after so many moves, or nothing."""

    name = "oracle"

    def __init__(
        self, opinions: Sequence[tuple[float, int]], points: Sequence[PointsEstimate] | None = None
    ) -> None:
        self.opinions, self.points = opinions, points
        self.seen: list[Position] = []

    def think(self, position: Position, limits: Limits, **_: object) -> Analysis:
        self.seen.append(position)
        value, best = self.opinions[len(position.actions)]
        policy = np.full(10, 0.1, np.float32)
        if position.is_over:
            return Analysis((), position.rewards[position.to_play], 0, 0, 0.0, policy)
        return Analysis(
            (MoveInfo(best, 5, value, 0.1, value, (best, PASS), (5, 4)),),
            value,
            limits.visits or 0,
            0,
            value,
            policy,
        )

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        return np.full(10, 0.1, np.float32), 0.0

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        return None if self.points is None else [self.points[len(position.actions)]]

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        return None


def game(moves: Sequence[tuple[int, int]], **facts: object) -> GameRecord:
    return GameRecord("game", (3, 3), 0.5, tuple(moves), players=("Ann", "Bob <b>"), **facts)  # type: ignore[arg-type]


def review(record: GameRecord, opinions: Sequence[tuple[float, int]]) -> Review:
    return review_game(Oracle(opinions), recorded_game(record, GAME), Limits(visits=7))


def sgf_of(found: Review) -> str:
    suffix, text = annotated_record(found)
    assert suffix == ".sgf"
    return text


ONE_MISTAKE = ((0, CORNER), (1, CENTRE), (0, PASS), (1, PASS))
OPINIONS = [(0.8, CENTRE), (0.4, CENTRE), (-0.5, EDGE), (0.6, PASS), (0.0, PASS)]


def test_losses_are_what_the_move_gave_away() -> None:
    found = review(game(ONE_MISTAKE), OPINIONS)
    # Black's corner turns +0.8 into -0.4; White's centre is the best move, so nothing is lost by
    # it, whatever the search says later.
    assert [round(move.loss, 3) for move in found.moves] == [1.2, 0.0, 0.1, 0.0]
    assert (
        [move.action for move in found.mistakes(1)] == [CORNER]
        and len(found.mistakes(9)) == 2
        and found.mistakes(9, 0.5)[0].number == 1
    )
    assert [round(move.first_value, 2) for move in found.moves] == [0.8, -0.4, -0.5, -0.6]
    assert found.stopped == "" and found.final_value == -1.0, (
        "one stone each, and White has the komi"
    )
    assert GAME.board(found.moves[2].position.state).reshape(-1).tolist() == [
        1,
        0,
        0,
        0,
        -1,
        0,
        0,
        0,
        0,
    ]


def test_the_end_is_counted_without_dead_stones_where_the_players_have_passed() -> None:
    boards: list[np.ndarray] = []

    def count(board: np.ndarray) -> float:
        boards.append(board)
        return 9.0  # White's stone is dead

    found = review_game(
        Oracle(OPINIONS),
        recorded_game(game(ONE_MISTAKE), GAME),
        Limits(visits=7),
        count_points=count,
    )
    assert (
        found.final_value == 1.0
        and found.moves[-1].value_after == -1.0
        and found.moves[-2].value_after == review(game(ONE_MISTAKE), OPINIONS).moves[-2].value_after
    )
    assert [board.reshape(-1).tolist() for board in boards] == [[1, 0, 0, 0, -1, 0, 0, 0, 0]]
    review_game(
        Oracle(OPINIONS),
        recorded_game(game(ONE_MISTAKE[:3]), GAME),
        Limits(visits=7),
        count_points=count,
    )
    assert len(boards) == 1, "after one pass the game goes on"


def test_rows_are_plain_and_complete() -> None:
    rows = [json.loads(json.dumps(row)) for row in review_rows(review(game(ONE_MISTAKE), OPINIONS))]
    assert rows[0] == {
        "move": 1, "colour": "B", "played": "A3", "win_rate": 90.0, "win_rate_after": 30.0, "loss": 60.0, "best": "B2", "line": ["B2", "pass"],
        "prior": 0.1, "visits": 7,
    }  # fmt: skip
    assert [row["move"] for row in rows] == [1, 2, 3, 4]


def test_the_record_keeps_its_moves_and_gets_better_lines() -> None:
    record = game(ONE_MISTAKE, result="W+0.5")
    text = sgf_of(review(record, OPINIONS))
    (again,) = parse_games(text.encode(), "game")
    assert (
        again.moves == record.moves and again.players == record.players and again.result == "W+0.5"
    )
    assert (
        again.comments[0]
        == "Black wins 90.0% before this move; 7 visits\nbest B2; this one loses 60.0%\nline "
        "B2 pass"
    )
    assert "B2 is the best move" in again.comments[1]
    assert text.count("(;") == 5 and "\n(;B[bb];W[])" in text and "\n(;B[ba];W[])" in text


OWNERS = np.array([1, 1, 1, 0.5, 0, -0.25, -1, -1, -1], np.float32)
POINTS = [
    PointsEstimate(lead, 2.0, owners)
    for lead, owners in ((9.0, OWNERS), (1.25, -OWNERS), (-2.0, OWNERS), (3.0, -OWNERS))
]
"""Before the first move, and after each."""


def with_points(record: GameRecord) -> Review:
    return review_game(Oracle(OPINIONS, POINTS), recorded_game(record, GAME), Limits(visits=7))


def test_leads_and_ownership_are_blacks() -> None:
    found = with_points(game(ONE_MISTAKE[:3]))
    assert [move.black_lead for move in found.moves] == [-1.25, -2.0, -3.0]
    assert found.final_ownership is not None
    assert found.final_ownership.tolist() == OWNERS.reshape(3, 3).tolist(), "White is to move"
    assert GAME.board(found.final_position.state).reshape(-1).tolist() == [
        1,
        0,
        0,
        0,
        -1,
        0,
        0,
        0,
        0,
    ]
    assert [row["black_lead"] for row in review_rows(found)] == [-1.25, -2.0, -3.0]
    assert "line B2 pass" in sgf_of(found)
    (again,) = parse_games(sgf_of(found).encode(), "game")
    assert "\nWhite leads by 2.0 points after this move\n" in again.comments[1]
    without = review(game(ONE_MISTAKE), OPINIONS)
    assert without.final_ownership is None and "leads" not in sgf_of(without)


def test_after_two_passes_the_lead_is_counted() -> None:
    points = [*POINTS, PointsEstimate(8.0, 2.0, OWNERS)]
    found = review_game(
        Oracle(OPINIONS, points),
        recorded_game(game(ONE_MISTAKE), GAME),
        Limits(visits=7),
        count_points=lambda _: 4.0,
    )
    assert [move.black_lead for move in found.moves] == [-1.25, -2.0, -3.0, 3.5], "komi is 0.5"
    assert found.final_ownership is not None and found.final_ownership[0, 0] == 1.0


def test_handicap_stones_and_set_ups_begin_the_game() -> None:
    placed = review(game([(0, CORNER), (0, 8), (1, CENTRE)]), [(0.0, CENTRE)] * 3)
    assert [move.number for move in placed.moves] == [3] and GAME.board(
        placed.moves[0].position.state
    ).sum() == 2, "two stones of Black before White's first move"
    assert len(list(parse_games(sgf_of(placed).encode(), "x"))) == 1
    set_up = review(game([(1, CENTRE)], black_points=(CORNER, 8), to_play=1), [(0.2, CENTRE)] * 2)
    assert set_up.moves[0].colour == 1 and set_up.moves[0].first_value == -0.2
    white_first = review(game([(1, CENTRE), (0, CORNER)]), [(0.0, CENTRE)] * 3)
    assert [move.colour for move in white_first.moves] == [1, 0]


@pytest.mark.parametrize(
    ("moves", "reason"),
    [
        ([(0, CENTRE), (1, CENTRE)], "move 2, B2, is on an occupied point"),
        ([(0, EDGE), (1, CORNER), (0, 3), (1, CORNER)], "move 4, A3, is forbidden under"),
        ([(0, CENTRE), (1, EDGE), (1, CORNER)], "move 3 is played out of turn"),
        ([(0, PASS), (1, PASS), (0, EDGE)], "the game is over before move 3"),
    ],
)
def test_a_review_ends_where_the_rules_do(moves: list[tuple[int, int]], reason: str) -> None:
    found = review(game(moves), [(0.0, CENTRE)] * 4)
    assert found.stopped.startswith(reason) and len(found.moves) == len(moves) - 1
    assert "the review ends here: " + reason in sgf_of(found)


def test_a_game_without_moves_is_refused() -> None:
    with pytest.raises(ValueError, match="game: there is no move to review"):
        review(game([]), [(0.0, CENTRE)])


def test_the_page_shows_the_mistakes_on_boards(tmp_path: Path) -> None:
    found = review(game(ONE_MISTAKE, result="W+0.5", date="2026-01-02"), OPINIONS)
    write_review(tmp_path / "page.html", found, "oracle", "a remark")
    page = (tmp_path / "page.html").read_text()
    assert (
        "Ann (Black) against Bob &lt;b&gt; (White)" in page
        and "<b>" not in page.split("<main>")[1].replace("</b>", "")[:300]
    )
    assert page.count('<svg class="board"') == 2 and page.count('class="cross"') == 1, (
        "a pass has no cross"
    )
    assert (
        "Move 1: Black A3" in page
        and "loses 60.0%" in page
        and "better B2 pass" in page
        and "a remark" in page
    )
    assert ">75%</text>" in page and "var(--series-0)" in page, "Black's win rate over the game"
    assert re.findall(r'xlink:href="(#move-\d+)"', page) == ["#move-1", "#move-3"], (
        "its dots lead to the mistakes"
    )
    assert not re.search(r'(?:src|href)="(?!#)', page), "it needs no other file"


def test_the_page_shows_leads_and_ownership(tmp_path: Path) -> None:
    write_review(tmp_path / "page.html", with_points(game(ONE_MISTAKE[:3])), "oracle")
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Black's win rate and lead</h2>" in page and "lead in points</text>" in page
    assert all(f'data-label="Black\'s lead">{lead}</td>' in page for lead in ("-1.2", "-3.0"))
    assert page.count('aria-label="expected owners of the points"') == 1
    write_review(tmp_path / "page.html", review(game(ONE_MISTAKE), OPINIONS), "oracle")
    page = (tmp_path / "page.html").read_text().split("<main>")[1]
    assert "lead" not in page and "wner" not in page


@pytest.mark.parametrize(
    ("players", "ranks", "title"),
    [
        (("", ""), ("5d", ""), "game: Black against White"),
        (("Ann", ""), ("", "3k"), "Ann (Black) against White"),
        (("Ann", "Bob"), ("9p", ""), "Ann 9p (Black) against Bob (White)"),
    ],
)
def test_the_title_names_the_players_that_the_record_names(
    players: tuple[str, str], ranks: tuple[str, str], title: str, tmp_path: Path
) -> None:
    played = dataclasses.replace(game([(0, CENTRE)]), players=players, ranks=ranks)
    write_review(tmp_path / "page.html", review(played, [(0.5, CENTRE), (-0.5, CORNER)]), "oracle")
    assert f"<h1>{title}</h1>" in (tmp_path / "page.html").read_text()


def test_a_page_without_mistakes(tmp_path: Path) -> None:
    found = review(game([(0, CENTRE)]), [(0.5, CENTRE), (-0.5, CORNER)])
    write_review(tmp_path / "page.html", found, "oracle")
    assert "No move lost more than 1%" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("player", "number", "message"),
    [
        ("random-net:go7", 1, "the network plays on 7x7, .*game.sgf is a game on 5x5"),
        ("random-net:tictactoe", 1, "the network plays tictactoe"),
        ("nowhere", 1, "there is no directory 'nowhere'"),
        ("gtp:gnugo", 1, "is a program with its own protocol"),
        ("random-net:go5", 2, "there is no game 2 in"),
    ],
)
def test_what_cannot_be_reviewed_is_named(
    tmp_path: Path, player: str, number: int, message: str
) -> None:
    record = tmp_path / "game.sgf"
    record.write_text("(;SZ[5];B[aa])")
    with pytest.raises(ValueError, match=message):
        analyze(record, Source(player), game=number)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (2, r"games\.sgf game 2: SZ is .*, not '0'"),
        (3, "the network plays tictactoe"),
        (4, "there is no game 4"),
    ],
)
def test_a_game_that_cannot_be_read_counts(tmp_path: Path, number: int, message: str) -> None:
    record = tmp_path / "games.sgf"
    record.write_text("(;SZ[5];B[aa]) (;SZ[0];B[aa]) (;SZ[5];B[bb])")
    with pytest.raises(ValueError, match=message):
        analyze(record, Source("random-net:tictactoe"), game=number)


def test_files_that_cannot_be_written_are_named_before_the_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("azero.commands.review.review_game", None)
    record = tmp_path / "game.sgf"
    record.write_text("(;SZ[5];B[aa])")
    with pytest.raises(FileExistsError):
        analyze(record, Source("random-net:go5"), out=record)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(ValueError, match="cannot be written to; name another directory with --out"):
        analyze(record, Source("random-net:go5"))


def test_the_command_writes_its_files_and_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "azero.commands.review.load_thinker", lambda *_: Oracle([(0.0, CENTRE)] * 3)
    )
    record = tmp_path / "games.sgf.gz"
    record.write_bytes(gzip.compress(b"(;SZ[5];B[aa]) (;SZ[5]KM[6.5];B[aa];W[bb])"))
    analyze(record, Source("random-net:go5"), game=2)
    written = capsys.readouterr().out
    assert "games-2.review.sgf" in written and (tmp_path / "games-2.review.sgf").exists()
    assert "further games" not in written
    assert "does not know the game's komi of 6.5" in html.unescape(
        (tmp_path / "games-2.review.html").read_text()
    )
    analyze(record, Source("random-net:go5"), as_json=True, out=tmp_path / "elsewhere")
    written = capsys.readouterr()
    rows = [json.loads(line) for line in written.out.splitlines()]
    page = tmp_path / "elsewhere" / "games.review.html"
    assert [row["played"] for row in rows] == ["A5"] and page.exists()
    assert "has further games; --game 2 takes the second." in written.err
    assert "further games" not in page.read_text()


@pytest.mark.parametrize(
    ("rules", "moves", "note"),
    [
        ("", 6, ""),
        ("RU[Chinese]", 6, ""),
        ("RU[Tromp-Taylor]", 7, ""),
        ("RU[my own]", 6, "The record's rules, 'my own', are unknown; those of the network are"),
        ("RU[Japanese]", 6, "The record's rules, 'Japanese', have scoring TERRITORY, tax SEKI"),
    ],
)
def test_the_rules_of_the_record_hold(
    rules: str,
    moves: int,
    note: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        "azero.commands.review.load_thinker", lambda *_: Oracle([(0.0, CENTRE)] * 8)
    )
    record = tmp_path / "game.sgf"  # Black's last move takes two own stones
    record.write_text(f"(;SZ[5]KM[0.5]{rules};B[aa];W[ab];B[ea];W[bb];B[eb];W[ca];B[ba])")
    analyze(record, Source("random-net:go5"), as_json=True)
    written = capsys.readouterr()
    assert len(written.out.splitlines()) == moves
    early = "the review ends early: move 7, B5, is forbidden under"
    assert (early in written.err) == (moves == 6)
    assert written.err.count("The record's rules") == bool(note) and note in written.err


@pytest.mark.parametrize("size", ["4", "5:4"])
def test_a_network_for_any_board_reviews_another_board_than_its_own(
    size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config(
        game=GoConfig(size=(5,), komi=0.5, planes=19, selfplay_komis=(0.5, 24.5)),
        network=PooledConfig(
            blocks=2, filters=8, value_hidden=8, head_filters=4, convolution="winograd"
        ),
        learner=LearnerConfig(ownership_weight=1.5, score_weight=0.02),
    )
    network = config.network.build(config.game.build())
    write_exported(tmp_path, draw_variables(network), 3, config)
    record = tmp_path / "game.sgf"
    record.write_text(f"(;SZ[{size}]KM[3.5];B[aa];W[bb];B[cc])")
    analyze(record, Source(str(tmp_path)), visits=2, as_json=True, out=tmp_path)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 3 and all(abs(row["black_lead"]) < 25 for row in rows)
    page = html.unescape((tmp_path / "game.review.html").read_text())
    assert page.count('class="owner') == (16 if size == "4" else 20)
    assert "does not know the game's komi" not in page, "it sees the komi"
    record.write_text("(;SZ[40];B[aa])")
    with pytest.raises(ValueError, match="sides are 1 to 25"):
        analyze(record, Source(str(tmp_path)), visits=2)


def test_the_comments_of_the_record_stay() -> None:
    record = dataclasses.replace(
        game([(0, CENTRE), (1, EDGE), (1, CORNER)]), comments=("a shape", "", "after the review")
    )
    (again,) = parse_games(sgf_of(review(record, [(0.0, CENTRE)] * 4)).encode(), "game")
    assert again.comments[0].startswith("a shape\nBlack wins 50.0%")
    assert again.comments[1].startswith("Black wins") and again.comments[2] == "after the review"
