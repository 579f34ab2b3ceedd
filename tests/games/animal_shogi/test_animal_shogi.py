"""Animal shogi: perft, whole games against a plain referee and against Pgx, positions for each
rule, text and planes."""

from __future__ import annotations

import numpy as np
import pytest
from animal_referee import Referee
from perft import make_perft, part, programs
from small_boards import compare_with_pgx, play_beside_referees, play_names

from azero.games.animal_shogi import text
from azero.games.animal_shogi.rules import ENDINGS, AnimalShogi
from azero.games.table import make

PERFT = [4, 13, 67, 398, 2179, 12636, 80828, 503419]
"""Fairy-Stockfish 11.1, `go perft` in the variant dobutsu with mandatoryPiecePromotion = true."""
BATCH = 64


def played(sfen: str, *names: str):
    """The state after moves by name."""
    game = AnimalShogi()
    return play_names(
        programs(game),
        game.from_sfen(sfen),
        names,
        lambda state, name: text.board_of_state(state).names[name],
        BATCH,
    )


@pytest.mark.parametrize("depth", [5, 7])
def test_number_of_lines(depth: int) -> None:
    game = AnimalShogi()
    assert make_perft(game, game.from_sfen, BATCH)(text.START, depth) == PERFT[depth - 1]


def test_games_against_the_referee(seed: int) -> None:
    rng, referees = np.random.default_rng(4 + seed), [Referee() for _ in range(BATCH)]

    def pick(number: int, referee: Referee, moves: dict) -> int:
        quiet = [
            action
            for action, move in moves.items()
            if not move[2] and referee.pieces[move[1]] == "."
        ]
        return rng.choice(quiet if number % 2 and quiet and rng.random() < 0.8 else list(moves))

    game = AnimalShogi()
    states, reasons = play_beside_referees(
        programs(game), game.init(), referees, ENDINGS, pick, BATCH
    )
    for number, referee in enumerate(referees):
        board = text.board_of_state(part(states, number))
        assert list(board.pieces) == referee.pieces
        assert [sum(hand.values()) for hand in board.hands] == [
            len(referee.hands[True]),
            len(referee.hands[False]),
        ]
    # of so few games, those of other seeds may lack one
    assert seed or {"catch", "try", "threefold repetition"} <= set(reasons), reasons


def pgx_labels() -> np.ndarray:
    """For each action of Pgx ours: its squares go down the files from the mover's right, its
    directions are NE E SE N S NW W SW."""
    square = [3 * (3 - index % 4) + 2 - index // 4 for index in range(12)]
    directions = [1, 2, 3, 0, 4, 7, 6, 5]
    return np.array(
        [
            11 * square[label % 12] + (directions[label // 12] if label < 96 else label // 12)
            for label in range(132)
        ]
    )


def test_legal_moves_against_pgx(seed: int) -> None:
    # Pgx compares positions by a hash that lets some repetitions go by and takes other positions
    # for one: a game in which either draws is not followed.
    compare_with_pgx(
        AnimalShogi(),
        "animal_shogi",
        pgx_labels(),
        BATCH,
        seed,
        lambda endings, terminated: (endings == 4) | (terminated & (endings == 0)),
    )


RULES = {
    "an elephant goes diagonally": ("1l1/3/1E1/1L1 b - 1", "b2a3", True),
    "and not straight": ("1l1/3/1E1/1L1 b - 1", "b2b3", False),
    "a giraffe goes straight": ("l2/3/1G1/1L1 b - 1", "b2c2", True),
    "and not diagonally": ("l2/3/1G1/1L1 b - 1", "b2c3", False),
    "a chick goes forward only": ("l2/3/1C1/1L1 b - 1", "b2c2", False),
    "a hen goes back straight": ("l2/3/1H1/L2 b - 1", "b2b1", True),
    "and not diagonally back": ("l2/3/1H1/L2 b - 1", "b2c1", False),
    "a chick that walks to the far rank becomes a hen": ("l2/2C/3/1L1 b - 1", "c3c4+", True),
    "there is no choice": ("l2/2C/3/1L1 b - 1", "c3c4", False),
    "a chick may be dropped on the far rank": ("l2/3/3/1L1 b C 1", "C@c4", True),
    "two chicks may stand on a file": ("l2/1C1/3/1L1 b C 1", "C@b2", True),
    "a dropped chick may mate": ("lg1/g2/1H1/1L1 b C 1", "C@a2", True),
    "the lion does not go where it can be taken": ("1l1/3/L2/3 b - 1", "a2a3", False),
    "and may not try there": ("2l/Le1/3/3 b - 1", "a3a4", False),
    "check must be answered": ("l2/3/1g1/1L1 b C 1", "C@c3", False),
}


@pytest.mark.parametrize(("sfen", "move", "is_legal"), RULES.values(), ids=RULES)
def test_rules(sfen: str, move: str, is_legal: bool) -> None:
    assert (move in text.board_of_sfen(sfen).names) == is_legal


def test_a_try_wins() -> None:
    state = played("2l/L2/3/3 b - 1", "a3a4")
    assert ENDINGS[int(state.ending)] == "try"
    assert np.asarray(AnimalShogi().rewards(state)).tolist() == [1, -1]
    assert np.asarray(AnimalShogi().legal_action_mask(state)).all()


def test_a_lion_that_cannot_get_away_is_caught() -> None:
    state = played("l2/2E/1H1/1L1 b G 1", "G@a3")
    assert ENDINGS[int(state.ending)] == "catch", text.format_diagram(text.board_of_state(state))
    assert np.asarray(AnimalShogi().rewards(state)).tolist() == [1, -1]


def test_who_has_no_safe_move_has_lost() -> None:
    state = played("l2/2E/1H1/1L1 b - 1", "b1c1")
    assert ENDINGS[int(state.ending)] == "no safe move", text.format_diagram(
        text.board_of_state(state)
    )
    assert np.asarray(AnimalShogi().rewards(state)).tolist() == [1, -1]


def test_a_position_that_occurs_three_times_is_a_draw() -> None:
    names = ["c1c2", "a4a3", "c2c1", "a3a4"]
    assert int(played("l2/3/3/2L b - 1", *names, *names[:3]).ending) == 0
    state = played("l2/3/3/2L b - 1", *names, *names)
    assert ENDINGS[int(state.ending)] == "threefold repetition"
    assert np.asarray(AnimalShogi().rewards(state)).tolist() == [0, 0]


def test_a_taken_hen_is_a_chick_in_hand() -> None:
    board = text.board_of_state(played("1lh/3/2G/1L1 w - 2", "c4c3", "c2c3"))
    assert board.hands[0] == {"C": 1, "E": 0, "G": 0}


def test_planes_of_both_sides() -> None:
    """After the chicks meet: 1.b2xb3, worked out by hand."""
    game, state = AnimalShogi(), played(text.START, "b2b3")
    planes = np.asarray(game.observe(state))
    assert planes.shape == (4, 3, 146)
    squares = {
        plane: [tuple(place) for place in np.argwhere(planes[..., plane] != 0).tolist()]
        for plane in range(12)
    }
    assert squares[0] == [], "the mover's chick is gone"
    assert squares[1] == [(0, 0)], "its elephant stands at its left hand"
    assert squares[2] == [(0, 2)], "its giraffe at its right"
    assert squares[3] == [(0, 1)]
    assert squares[5] == [(1, 1)], "the other's chick before its lion"
    assert (len(squares[10]), len(squares[11])) == (12, 0), "for the first time"
    assert planes[0, 0, 12:18].tolist() == [0, 0, 0, 0.5, 0, 0], "the other has one chick in hand"
    assert (planes[..., 18 + 0] != 0).sum() == 1, "before the move each had a chick"
    np.testing.assert_allclose(planes[0, 0, 144:], [0, 1 / 256])


def test_text() -> None:
    board = text.board_of_sfen(text.START)
    assert text.format_sfen(board) == text.START
    assert sorted(board.names) == ["b1a2", "b1c2", "b2b3", "c1c2"]
    after = board.after(board.names["b2b3"])
    assert text.format_diagram(after).splitlines() == [
        "second player in hand: -",
        "4 g l e",
        "3 . C .",
        "2 . . .",
        "1 E L G",
        "  a b c",
        "first player in hand: C1",
        "gle/1C1/3/ELG w C 2",
    ]
    for sfen in ("1l1/+C2/3/1L1 w 2Ge 2", "gl1/3/3/1L1 b 2c2eG 3"):
        assert text.board_of_sfen(text.format_sfen(text.board_of_sfen(sfen))) == text.board_of_sfen(
            sfen
        )


@pytest.mark.parametrize(
    ("sfen", "reason"),
    {
        "gle/1c1/1C1 b - 1": "there are 3 ranks, not 4",
        "gle/1c1/4/ELG b - 1": "rank 2 has '4'; pieces are CEGLH and ceglh, numbers 1 to 3",
        "gle/1c1/1C1/EEG b - 1": "the first player has 0 lions, not one",
        "gle/1c1/1C1/ELG b 3C 1": "pieces in hand are '-' or some of CEG",
        "gle/1c1/1C1/ELG b C 1": "there are 3 pieces of the kind C; a set has 2",
        "gle/1c1/1C1/ELG w - 1": "b is to move at odd move numbers",
        "gl1/1L1/3/3 b - 1": "the side that is not to move is in check",
        "L2/3/3/2l b - 1": "the lion of the side to move is on its far rank",
        "garbage": "it has 1 field;",
    }.items(),
)
def test_bad_sfen(sfen: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        make("animal_shogi", sfen=sfen)
    assert repr(sfen) in str(caught.value)


def test_bad_options() -> None:
    with pytest.raises(ValueError, match="max-moves is from 1 to 4096, not 0"):
        make("animal_shogi", max_moves=0)
