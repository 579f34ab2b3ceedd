"""Games with pieces on the page: positions, names and drawings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from azero.data.run_files import StoredGame
from azero.games.animal_shogi import text as animal_text
from azero.games.chess import text as chess_text
from azero.games.shogi import text as shogi_text
from azero.games.table import make
from azero.report.boards import first_mover_begins, positions
from azero.report.pieces import draw_pieces, follow, start_of


def actions_of(board, parse, names: str) -> tuple[int, ...]:
    actions = []
    for name in names.split():
        actions.append(parse(board, name))
        board = board.after(actions[-1])
    return tuple(actions)


def test_chess_from_a_given_position_with_black_to_move() -> None:
    fen = "8/8/8/8/k7/2K5/8/1R6 b - - 12 40"
    game = StoredGame(
        "chess",
        (8, 8),
        actions_of(
            chess_text.board_of_fen(fen), lambda board, name: board.names[name], "a4a3 b1a1"
        ),
        (1.0, -1.0),
        start=fen,
    )
    drawn = follow(game)
    assert drawn.names == ["Ka3", "Ra1#"]
    assert drawn.boards[0] == "." * 32 + "k" + "." * 9 + "K" + "." * 14 + "R" + "." * 6
    assert not first_mover_begins(game)
    svg = draw_pieces(game, drawn.boards)
    assert svg.count('<text class="piece') == 3
    assert '<text class="piece first moved" x="32" y="200" dy=".35em">♜</text>' in svg, (
        "the rook on a1"
    )


def test_shogi_has_pieces_in_hand_and_turned_ones() -> None:
    board = shogi_text.board_of_sfen(
        "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
    )
    game = StoredGame(
        "shogi",
        (9, 9),
        actions_of(board, lambda board, name: board.names[name], "7g7f 3c3d 8h2b+"),
        (0.0, 0.0),
    )
    drawn = follow(game)
    assert drawn.names == ["7g7f", "3c3d", "8h2b+"]
    assert drawn.hands == ["", "", "", "Black has B1 in hand"]
    assert first_mover_begins(game)
    svg = draw_pieces(game, drawn.boards)
    assert svg.count("馬") == 1
    assert svg.count("歩") == 18
    assert svg.count('transform="rotate(180') == 19, "White's twenty pieces without the bishop"


def test_animal_shogi() -> None:
    board = animal_text.board_of_sfen(animal_text.START)
    drawn = follow(
        StoredGame(
            "animal_shogi",
            (4, 3),
            actions_of(board, lambda board, name: board.names[name], "b2b3"),
            (0.0, 0.0),
        )
    )
    assert drawn.boards == ["gle.c..C.ELG", "gle.C....ELG"]


@pytest.mark.parametrize(
    ("name", "option", "start"),
    [
        ("chess", "fen", "8/8/8/8/k7/2K5/8/1R6 b - - 12 40"),
        ("minichess", "fen", "3k1/P4/5/4p/K4 b - - 7 20"),
        ("shogi", "sfen", "4k4/9/4P4/9/9/9/9/9/4K4 w G2r 34"),
        ("animal_shogi", "sfen", "gl1/3/3/1L1 b 2E2c 3"),
    ],
)
def test_the_start_of_a_game_is_read_from_its_frame(name: str, option: str, start: str) -> None:
    game = make(name, **{option: start})
    frame = np.asarray(game.init().frames)[0]
    text = start_of(name, game.board_shape, frame.tolist(), int(game.to_play(game.init())))
    np.testing.assert_array_equal(np.asarray(make(name, **{option: text}).init().frames)[0], frame)


@pytest.mark.parametrize(
    ("name", "options", "moves"),
    [
        ("go", {"size": (3, 13), "komi": 1.0, "num_planes": 19}, (38, 4, 39, 5)),
        ("go", {"size": 2, "komi": 0.5}, (0, 1, 3)),  # captures a stone
        ("tictactoe", {}, (4, 0, 8)),
    ],
)
def test_the_start_of_a_game_of_stones_is_read_from_its_frame(
    name: str, options: dict[str, Any], moves: tuple[int, ...]
) -> None:
    game = make(name, **options)
    state, to_play = game.init(), 0
    for count in range(len(moves) + 1):
        frame = np.asarray(game.pack_frame(state)).tolist()
        start = start_of(name, game.board_shape, frame, to_play)
        played, rest = (
            StoredGame(name, game.board_shape, actions, (0.0, 0.0), start=begin)
            for actions, begin in ((moves, ""), (moves[count:], start))
        )
        assert bool(start) == (count > 0)
        assert positions(rest) == positions(played)[count:]
        assert first_mover_begins(rest) == (count % 2 == 0)
        if count < len(moves):
            state, to_play = game.step(state, np.int32(moves[count])), 1 - to_play


@pytest.mark.parametrize("name", ["chess", "minichess", "shogi", "animal_shogi"])
def test_the_usual_start_is_not_written(name: str) -> None:
    game = make(name)
    frame = np.asarray(game.pack_frame(game.init())).tolist()
    assert start_of(name, game.board_shape, frame, 0) == ""


def test_a_game_that_is_not_drawn_has_no_start() -> None:
    assert start_of("pgx", (6, 7), [3], 1) == ""
