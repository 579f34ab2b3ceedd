"""A game in the terminal, line by line."""

import io
import signal

import numpy as np
import pytest
from rich.console import Console
from uniform_thinker import UniformThinker

from azero.engines import serve
from azero.engines.serve import human_rules, load_human_game, side_of
from azero.engines.session import Session
from azero.engines.source import Source
from azero.engines.terminal.terminal import Terminal, draw_board
from azero.games.go.settings import GoConfig
from azero.games.go.sgf import parse_games
from azero.games.minichess.settings import MinichessConfig
from azero.games.position import Position
from azero.games.table import make
from azero.games.tictactoe.rules import TicTacToe
from azero.players.thinking import Limits, ThinkOptions

GO = {"size": 5, "komi": 6.5}


def _play(
    lines: list[str],
    game: str = "go",
    human: int = 0,
    value: float = 0.0,
    start: Position | None = None,
) -> tuple[str, Session]:
    """Return what is said, and the session at the end."""
    rules = make(game, **(GO if game == "go" else {})) if start is None else start.game
    session = Session(
        rules,
        lambda game: UniformThinker(game, value, expects_pass=game.name == "go"),
        position=start,
    )
    out = io.StringIO()
    waiting = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    Terminal(session, Limits(visits=3), Console(file=out, width=120), human=human).run(read)
    return out.getvalue(), session


def test_moves_are_answered_and_the_board_is_drawn() -> None:
    output, session = _play(["c3", "C3", "z9", "hint", "board", "quit", "D4"])
    assert session.num_moves == 2 and "I play A5 (50% for me" in output and "Goodbye." in output
    assert "5(O). . . . 5" in output and "3 . .(X). . 3" in output and "1 . . . . . 1" in output
    assert (
        "'C3' is not a legal move here (move 3 of the game); type help for the commands" in output
        and "'z9' is not a legal move" in output
    )
    assert "your chances: 50.0%" in output and "B5 pass" in output


def test_ctrl_c_ends_the_thinking_and_not_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(UniformThinker):
        def think(self, position, limits, options=ThinkOptions()):  # noqa: B008
            signal.raise_signal(signal.SIGINT)
            return super().think(position, limits, options)

    monkeypatch.setattr(f"{__name__}.UniformThinker", Interrupted)
    output, session = _play(["C3", "hint"])
    assert "I play A5 (50% for me after 2 visits)" in output and session.num_moves == 2
    assert "your chances: 50.0% (2 visits)" in output and "Goodbye." in output


def test_a_board_that_is_wider_than_the_terminal_is_not_wrapped() -> None:
    out = io.StringIO()
    session = Session(make("go", size=9, komi=0.5), UniformThinker)
    terminal = Terminal(session, Limits(visits=3), Console(file=out, width=20))
    terminal.handle_line("board")
    assert " 9 . . . . . . . . . 9\n" in out.getvalue()
    assert "the board needs 22 columns; the terminal has 20" in " ".join(out.getvalue().split())


def test_undo_takes_back_a_move_and_its_answer() -> None:
    output, session = _play(["undo", "C3", "D4", "undo", "undo", "undo"])
    assert session.num_moves == 0 and output.count("no move to take back") == 2


def test_a_resignation_before_the_first_move_can_be_taken_back() -> None:
    output, _ = _play(["resign", "undo", "C3", "undo", "undo"])
    assert "You resign" in output and output.count("no move to take back") == 1
    assert "the game is over" not in output and "I play A5" in output


@pytest.mark.parametrize("human", [0, 1])
def test_a_resignation_is_taken_back_without_the_moves_before_it(human: int) -> None:
    output, session = _play(["C3", "resign", "undo"], human=human)
    assert "You resign" in output and session.num_moves == 2 + human
    assert output.count("I play") == 1 + human and session.position.to_play == human


def test_the_second_player_waits_and_undo_stops_before_the_first_move_is_answered() -> None:
    output, session = _play(["C3", "undo", "undo"], human=1)
    assert (
        "You play White (O)" in output and output.index("I play A5") > 0 and session.num_moves == 1
    )
    assert session.position.to_play == 1
    assert "you have no move to take back" in output and output.count("I play") == 2


def test_passes_end_a_game_which_is_scored_and_saved(tmp_path) -> None:
    path = tmp_path / "game.sgf"
    output, _ = _play(
        [
            "C3",
            "pass",
            "score",
            "save",
            f"save {path}",
            "save /nowhere/at/all.sgf",
            "save ~nosuchuser/all.sgf",
            "score",
            "resign",
            "D4",
            "help",
        ]
    )
    assert (
        "save FILE: the file name is missing" in output
        and f"saved: {path}" in output.replace("\n", "")
        and "/nowhere/at/all.sgf: No such file" in output
        and "~nosuchuser/all.sgf: No such file" in output
        and "Errno" not in output
    )
    assert (
        "by area, komi 6.5" in output
        and "You resign: White wins" in output
        and "the game is over: undo, save FILE or quit" in output
        and "take back" in output
    )
    (record,) = parse_games(path.read_bytes(), "game")
    assert [colour for colour, _ in record.moves] == [0, 1, 0, 1] and record.komi == 6.5
    assert record.rules == "Chinese"


def test_a_network_without_hope_resigns() -> None:
    output, session = _play(["C3", "score", "undo", "D4"], value=-0.99)
    assert (
        output.count("I resign: Black wins") == 2
        and "Black wins by resignation" in output
        and session.num_moves == 1
    )


def test_tic_tac_toe_works_too() -> None:
    output, session = _play(["b2", "b2", "score", "save x.sgf", "c3", "a1"], game="tictactoe")
    assert (
        " 2 . X ." in output.replace("2 .", " 2 .", 1)
        and "a b c" in output
        and "the game is not over" in output
    )
    assert (
        "only games of Go can be saved" in output
        and session.position.is_over
        and "the game is over: X wins (three in a row)" in output
    )


class Joined(TicTacToe):
    """Draws its squares without blanks between them."""

    def format_board(self, state) -> str:
        return super().format_board(state).replace(" ", "")


def test_only_a_diagram_with_one_sign_a_square_gets_coordinates() -> None:
    assert str(draw_board(Position.start(Joined()))) == "...\n...\n..."
    assert str(draw_board(Position.start(TicTacToe()))).endswith("a b c")


@pytest.mark.parametrize(
    ("game", "colours"),
    [
        ("go", "black WHITE"),
        ("chess", "White black"),
        ("tictactoe", "x o"),
        ("animal_shogi", "black white"),
    ],
)
def test_a_side_is_chosen_by_its_colour(game: str, colours: str) -> None:
    for words in (colours, "first second"):
        assert [side_of(word, make(game)) for word in words.split()] == [0, 1]


def test_a_game_with_a_person_does_not_end_after_as_many_moves_as_self_play() -> None:
    go = GoConfig(size=(5,), komi=0.5)
    assert human_rules(go).build().max_moves == 2 * go.build().max_moves == 100
    assert human_rules(go, 2.5) == go.replace(size=(5, 5), max_moves=100, komi=2.5)
    assert human_rules(MinichessConfig(max_moves=100)).build().max_moves == 4096
    with pytest.raises(ValueError, match=r"--komi 2\.5 is for Go, not minichess"):
        human_rules(MinichessConfig(), 2.5)


def test_white_begins_a_handicap_game_and_does_not_resign_it(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "load_thinker", lambda *_: UniformThinker(None))
    monkeypatch.setattr(Session, "prepare", lambda *_, **__: None)
    loaded = load_human_game(Source(random_net="go9_efficient"), 3, "black", 0.5, 7, 3)
    start = loaded.session.position
    assert start.game.board_shape == (7, 7)
    assert start.to_play == 1 and start.game.komi == 0.5
    path = tmp_path / "game.sgf"
    output, _ = _play(["D4", "resign", f"save {path}"], value=-1.0, start=start)
    assert "I resign" not in output and output.count("I play") == 2
    (record,) = parse_games(path.read_bytes(), "saved")
    assert record.board_shape == (7, 7) and len(record.black_points) == 3
    assert [colour for colour, _ in record.moves] == [1, 0, 1]


def test_a_board_or_a_handicap_that_cannot_be_is_refused() -> None:
    for source, size, handicap, message in (
        (Source(random_net="go9"), 7, None, "go9 plays .*9x9, not .*7x7"),
        (Source(random_net="go9"), None, 10, "10 fixed handicap stones on 9x9: 2 to 9 are allowed"),
        (Source(random_net="tictactoe"), None, 2, "--handicap 2 is for Go, not tictactoe"),
        (Source(random_net="tictactoe"), 4, None, "--size 4 is for Go, not tictactoe"),
    ):
        with pytest.raises(ValueError, match=message):
            load_human_game(source, 3, "first", None, size, handicap)


def test_chess_is_drawn_as_chess_and_its_sides_have_their_names() -> None:
    output, session = _play(["help", "e2e4", "resign", "d2d4"], game="chess", human=0)
    assert (
        "You play White against" in output
        and "You resign: Black wins" in output
        and session.num_moves == 2
    )
    assert "\n4 . . . . P . . .\n" in output and output.count("a b c d e f g h") == 3
    assert "b1c3, b1a3 ...   a move" in output and "save FILE" not in output
    assert "the game is over: undo or quit" in output


@pytest.mark.parametrize(
    "line",
    [
        "",
        "   ",
        "\x00",
        "undo undo",
        "saveme",
        "hint hint hint",
        "\N{SNOWMAN}",
        "[red]pass",
        "9" * 5000,
    ],
)
def test_noise_is_survived(line: str) -> None:
    output, session = _play([line, "C3"])
    assert (
        session.num_moves == 2
        and np.count_nonzero(session.game.board(session.position.state)) == 2
        and "Traceback" not in output
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [(TypeError("shapes (3, 4)"), r"^TypeError: shapes \(3, 4\)$"), (ValueError("no"), "^no$")],
)
def test_a_network_that_cannot_be_compiled_is_an_error_in_one_line(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(serve, "load_thinker", fail)
    with pytest.raises(ValueError, match=message):
        load_human_game(Source(random_net="tictactoe"), 10, "first")
