"""Reviews of chess and shogi: names, losses and results, and the records as other programs read
them."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from needs import require_module

from azero.commands.review import _stem, analyze, show_search
from azero.engines.source import Source
from azero.evaluate.annotated import annotated_record
from azero.evaluate.recorded import Record, recorded_game
from azero.evaluate.review import Review, review_game, review_rows
from azero.games.chess import pgn
from azero.games.position import Position
from azero.games.shogi import csa, kif
from azero.games.table import make
from azero.players.points import PointsEstimate
from azero.players.thinking import Analysis, Limits, MoveInfo
from azero.report.review_page import write_review

CHESS, SHOGI = make("chess"), make("shogi")
FOOLS_MATE = """[White "Ann"]
[Black "Bob"]
[WhiteElo "1500"]
[Date "????.??.??"]
[Event "Match"]

1. f3! {[%eval 0.3]} e5 {solid} (1... c5??) 2. g4 $13 $4 {[%clk 0:01:00] [%eval -9.5,20] %}
2... Qh4# 0-1
"""
SHOGI_GAME = (
    "V2.2\nN+ann\nN-bob\n'black_rate:ann:1500.5\nPI\n+\n"
    "+7776FU\n'** 9\n'** 8 mine\n-3334FU\n+8822UM\n-3122GI\n%TORYO\n"
)


class Oracle:
    """Says what it was told of each position: (value for the mover, best line by its names)."""

    name = "oracle"

    def __init__(self, opinions: Sequence[tuple[float, str]]) -> None:
        self.opinions = opinions

    def think(self, position: Position, limits: Limits, **_: object) -> Analysis:
        policy = np.full(position.game.num_actions, 0.1, np.float32)
        if position.is_over:
            return Analysis((), position.rewards[position.to_play], 0, 0, 0.0, policy)
        value, names = self.opinions[len(position.actions)]
        line, following = [], position
        for name in names.split():
            line.append(following.parse_action(name))
            following = following.play(line[-1])
        moves = (MoveInfo(line[0], 5, value, 0.1, value, tuple(line), (5,) * len(line)),)
        return Analysis(moves, value, limits.visits or 0, 0, value, policy)

    def evaluate(self, position: Position, symmetry: int | None = None) -> tuple[np.ndarray, float]:
        raise NotImplementedError

    def estimate_points(
        self, position: Position, actions: Sequence[int] = ()
    ) -> list[PointsEstimate] | None:
        raise AssertionError("only Go has points")

    def estimate_draws(self, position: Position, actions: Sequence[int]) -> list[float] | None:
        return None


def chess_review(text: str, opinions: Sequence[tuple[float, str]]) -> Review:
    (record,) = pgn.parse_games(text, "x.pgn")
    return review_game(Oracle(opinions), recorded_game(record, CHESS), Limits(visits=7))


def shogi_review(record: Record, opinions: Sequence[tuple[float, str]]) -> Review:
    return review_game(Oracle(opinions), recorded_game(record, SHOGI), Limits(visits=7))


OPINIONS = [(0.1, "e2e4 e7e5 g1f3"), (0.2, "e7e5"), (0.0, "b1c3 b8c6"), (0.9, "d8h4")]
SHOGI_OPINIONS = [(0.0, "7g7f"), (0.0, "8c8d 2g2f"), (0.1, "2g2f"), (0.6, "3a2b"), (-0.5, "B*5e")]


def test_moves_of_chess_have_their_names_and_losses() -> None:
    found = chess_review(FOOLS_MATE, OPINIONS)
    rows = [json.loads(json.dumps(row)) for row in review_rows(found)]
    assert rows[0] == {
        "move": 1, "colour": "W", "played": "f3", "win_rate": 55.0, "win_rate_after": 40.0, "loss": 15.0, "best": "e4",
        "line": ["e4", "e5", "Nf3"], "prior": 0.1, "visits": 7,
    }  # fmt: skip
    assert [row["played"] for row in rows] == ["f3", "e5", "g4", "Qh4#"]
    assert [row["colour"] for row in rows] == list("WBWB")
    assert [row["loss"] for row in rows] == [15.0, 0.0, 45.0, 0.0]
    assert found.final_value == -1.0 and found.moves[-1].value_after == 1.0, "mate"
    assert [round(move.first_value, 2) for move in found.moves] == [0.1, -0.2, 0.0, -0.9]


def test_python_chess_reads_the_review() -> None:
    chess_pgn = require_module("chess.pgn")
    suffix, text = annotated_record(chess_review(FOOLS_MATE, OPINIONS))
    game = chess_pgn.read_game(io.StringIO(text))
    assert suffix == ".pgn" and not game.errors
    assert game.headers["WhiteElo"] == "1500" and game.headers["Result"] == "0-1"
    nodes = list(game.mainline())
    assert [node.san() for node in nodes] == ["f3", "e5", "g4", "Qh4#"]
    # value -0.2 for White is 90 tan(1.5638 x -0.2) centipawns (Leela Chess Zero)
    scores = [node.eval().white().score() for node in nodes]
    assert scores == [-29, 0, -546, -12780]
    assert [sorted(node.nags) for node in nodes] == [[1, 4], [], [4, 13], []], "own marks stay"
    assert game.variations[1].san() == "e4"
    assert [node.san() for node in game.variations[1].mainline()] == ["e5", "Nf3"]
    assert nodes[1].variations[0] is nodes[2] and nodes[1].variations[1].san() == "Nc3"
    assert nodes[2].clock() == 60 and nodes[2].comment.count("%eval") == 1
    assert "solid" in nodes[1].comment and "White scores 40.0% before" in nodes[1].comment
    assert "best e4; this one loses 15.0%" in " ".join(nodes[0].comment.split())


def test_our_reader_reads_it_back() -> None:
    _, text = annotated_record(chess_review(FOOLS_MATE, OPINIONS))
    (again,) = pgn.parse_games(text, "x")
    assert again.moves == ("f3", "e5", "g4", "Qh4#") and "solid" in again.comments[1]


def test_a_game_of_chess_from_a_position_with_black_to_move_and_past_a_draw() -> None:
    fen = "8/8/4k3/8/8/4K3/4R3/8 b - - 99 80"
    found = chess_review(
        f'[FEN "{fen}"]\n[SetUp "1"]\n\n80... Kd5 81. Rd2+ Ke5 *',
        [(-0.5, "e6d6"), (0.6, "e2d2"), (-0.6, "d5e5"), (0.6, "d2e2")],
    )
    assert [move.colour for move in found.moves] == [1, 0, 1] and not found.stopped
    assert [move.name for move in found.moves] == ["Kd5", "Rd2+", "Ke5"]
    assert found.moves[0].value_after == 0.0, "by our rules a draw after fifty moves"
    assert found.moves[1].value == 0.6, "which nobody claimed"
    (again,) = pgn.parse_games(annotated_record(found)[1], "x")
    assert again.fen == fen and again.result == "*"


def test_moves_of_shogi_and_their_record() -> None:
    (record,) = csa.parse_games(SHOGI_GAME, "x.csa")
    found = shogi_review(record, SHOGI_OPINIONS)
    assert [move.name for move in found.moves] == ["7g7f", "3c3d", "8h2b+", "3a2b"]
    assert [row["colour"] for row in review_rows(found)] == list("BWBW")
    assert [round(move.loss, 2) for move in found.moves] == [0.0, 0.1, 0.7, 0.0]
    assert dict(found.game.facts) == {"result": "White wins (%TORYO)"}
    suffix, text = annotated_record(found)
    (again,) = csa.parse_games(text, "x")
    assert suffix == ".csa" and again.actions == record.actions and again.ending == "%TORYO"
    assert again.comments[0].startswith("** 0 mine Black wins 50.0% before this move; 7 visits")
    assert again.ratings == (1500.5, None)
    theirs = require_module("cshogi.CSA").Parser.parse_str(text)[0]
    # 756.09 ln(p / (1 - p)) for Black's win rate p (dlshogi): 55%, 20%, and what follows
    assert theirs.scores == [0, 152, -1048, -831]


def test_kif_is_reviewed_as_csa_and_an_illegal_move_ends_it() -> None:
    kif_text = "手合割：平手\n1 ７六歩(77)\n2 ３四歩(33)\n3 ２四歩(27)\n4 投了\n"
    (record,) = kif.parse_games(kif_text, "x.kif", [])
    found = shogi_review(record, SHOGI_OPINIONS)
    assert found.stopped == "move 3 is not legal" and len(found.moves) == 2
    (again,) = csa.parse_games(annotated_record(found)[1], "x")
    assert again.actions == record.actions[:2] and again.ending == "", "Black won by the record"
    assert "the review ends here: move 3 is not legal" in again.comments[1]
    (record,) = kif.parse_games(kif_text.replace("投了", "反則勝ち"), "x.kif", [])
    (again,) = csa.parse_games(annotated_record(shogi_review(record, SHOGI_OPINIONS))[1], "x")
    assert (again.ending, again.winner) == ("%ILLEGAL_MOVE", "white")


def test_the_page_has_boards_with_arrows(tmp_path: Path) -> None:
    write_review(tmp_path / "page.html", chess_review(FOOLS_MATE, OPINIONS), "oracle", "a remark")
    page = (tmp_path / "page.html").read_text()
    assert "Ann 1500 (White) against Bob (Black)" in page and "<dd>0-1</dd>" in page
    assert "<h2>White's expected score</h2>" in page and "????" not in page
    assert page.count('<svg class="board"') == 2 and page.count('class="arrow played"') == 2
    assert 'data-label="move">2...</td>' in page, "numbers in the table, too"
    assert "1. f3 <span" in page and "better e4 e5 Nf3" in page and "win rate" not in page
    assert 'aria-label="position with a better move"' in page
    unknown = FOOLS_MATE.replace("Ann", "?").replace("Bob", "?")
    write_review(tmp_path / "page.html", chess_review(unknown, OPINIONS), "oracle")
    assert "<h1>x.pgn game 1: White against Black</h1>" in (tmp_path / "page.html").read_text()
    (record,) = csa.parse_games(SHOGI_GAME, "x.csa")
    dropped = dataclasses.replace(record, actions=(*record.actions, _drop()))
    write_review(
        tmp_path / "page.html", shogi_review(dropped, [*SHOGI_OPINIONS, (0.9, "8c8d")]), "oracle"
    )
    page = (tmp_path / "page.html").read_text()
    assert page.count('card turned"') == 3 and "Black has B1 in hand" in page
    assert page.count('<circle class="arrow') == 2, "a drop played and a better one"


def _drop() -> int:
    position = Position.from_moves(SHOGI, "7g7f 3c3d 8h2b+ 3a2b")
    return position.parse_action("B*4e")


@pytest.mark.parametrize(
    ("name", "text", "player", "message"),
    [
        ("x.pgn", FOOLS_MATE, "random-net:go5", "the network plays go, the record is a game of ch"),
        ("x.pgn", "1. e4 e4 *", "random-net:chess", "x.pgn game 1, move 1: 'e4' is not a legal"),
        ("x.pgn", '[FEN "4k3/8/8/8/8/8 w"]\n1. e4 *', "random-net:chess", "x.pgn game 1: '4k3/8"),
        ("x.csa", SHOGI_GAME, "random-net:chess", "the record is a game of shogi"),
        ("x.txt", "1. e4", "random-net:chess", r"x.txt is not a game record; .* .pgn, "),
    ],
)
def test_what_cannot_be_reviewed_is_named(
    tmp_path: Path, name: str, text: str, player: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        analyze(tmp_path / name, Source(player))


def test_reviews_of_records_beside_each_other_have_files_of_their_own(tmp_path: Path) -> None:
    """`game.pgn` and `game.csa` once shared a page, and `game.pgn --game 2` was `game-2.pgn`."""

    def stems(*names: str) -> list[str]:
        (tmp_path / names[-1]).touch()
        return [_stem(tmp_path / name, number) for name in names for number in (1, 2)]

    assert stems("game.pgn") == ["game", "game-2"]
    assert stems("game.pgn", "game-2.pgn") == ["game", "game.pgn-2", "game-2", "game-2-2"]
    found = stems("game.pgn", "game-2.pgn", "game.csa")
    assert found[0] == "game.pgn" and len(set(found)) == len(found)
    assert stems("game.zip")[0] == "game.zip"


def test_the_command_reviews_a_game_of_a_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("azero.commands.review.load_thinker", lambda *_: Oracle(OPINIONS))
    path = tmp_path / "games.pgn"
    path.write_text("1. e4 e5 *\n\n" + FOOLS_MATE)
    with zipfile.ZipFile(tmp_path / "games.zip", "w") as archive:
        archive.write(path, "games.pgn")
    analyze(tmp_path / "games.zip", Source(), game=2, as_json=True)
    assert '"played": "Qh4#"' in capsys.readouterr().out
    analyze(path, Source("random-net:chess?blocks=1&filters=4"), game=2)
    written = capsys.readouterr().out
    assert "games-2.review.pgn" in written and "2. g4 loses 45.00% (better Nc3)" in written
    assert (tmp_path / "games-2.review.html").exists()
    path.write_text(f'1. e4 *\n\n[White "x"]\n1. e4 & *\n\n{FOOLS_MATE}')
    with pytest.raises(ValueError, match=r"games.pgn game 2, line 4: '& .* is not PGN"):
        analyze(path, Source(), game=2)
    with pytest.raises(ValueError, match=r"--panels draws games of Go, and .* is a game of chess"):
        show_search(path, Source("random-net:chess?blocks=1&filters=4"), 1)
