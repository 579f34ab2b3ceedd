"""Each rule by a position made for it."""

from __future__ import annotations

import functools

import chess
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.chess import text
from azero.games.chess.rules import ENDINGS, Chess
from azero.games.table import make

GAME = Chess()


@functools.cache
def step():
    return jax.jit(GAME.step)


def legal(fen: str) -> set[str]:
    """The legal moves by their names in UCI, of the compiled mask."""
    state = GAME.from_fen(fen)
    board = text.board_of_state(state)
    actions = (
        np.flatnonzero(np.asarray(GAME.legal_action_mask(state))) if not int(state.ending) else []
    )
    return {text.format_uci(board, int(action)) for action in actions}


def play(fen: str, moves: str):
    """The state after moves in SAN."""
    state = GAME.from_fen(fen)
    for move in moves.split():
        state = step()(state, jnp.int32(text.parse_san(text.board_of_state(state), move)))
    return state


def ending(state) -> str:
    return ENDINGS[int(state.ending)]


def from_square(fen: str, square: str) -> set[str]:
    return {move[2:] for move in legal(fen) if move.startswith(square)}


@pytest.mark.parametrize(
    ("rule", "fen", "allowed"),
    [
        ("free", "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", {"g1", "c1"}),
        ("the mirror image", "r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", {"g8", "c8"}),
        ("no right", "r3k2r/8/8/8/8/8/8/R3K2R w Qkq - 0 1", {"c1"}),
        ("a piece between king and rook", "4k3/8/8/8/8/8/8/RN2K2R w KQ - 0 1", {"g1"}),
        ("an enemy between king and rook", "4k3/8/8/8/8/8/8/Rn2K2R w KQ - 0 1", {"g1"}),
        ("out of check", "4k3/8/8/8/8/4r3/8/R3K2R w KQ - 0 1", set()),
        ("through check", "4k3/8/8/8/8/5r2/8/R3K2R w KQ - 0 1", {"c1"}),
        ("into check", "4k3/8/8/8/8/6r1/8/R3K2R w KQ - 0 1", {"c1"}),
        ("through a pawn's check", "4k3/8/8/8/8/8/6p1/R3K2R w KQ - 0 1", {"c1"}),
        ("the king's rook is attacked", "4k3/8/8/8/8/7r/8/R3K2R w KQ - 0 1", {"g1", "c1"}),
        ("the rook crosses an attacked square", "4k3/8/8/8/8/1r6/8/R3K2R w KQ - 0 1", {"g1", "c1"}),
        ("next to the enemy's king", "8/8/8/8/8/8/6k1/R3K2R w KQ - 0 1", {"c1"}),
    ],
)
def test_castling(rule: str, fen: str, allowed: set[str]) -> None:
    king = "e8" if " b " in fen else "e1"
    assert from_square(fen, king) & {"g1", "c1", "g8", "c8"} == allowed, rule


@pytest.mark.parametrize(
    ("moves", "left"),
    [
        ("Kf1 Rh7 Ke1", "q"),
        ("Ke2 Kd8", "-"),
        ("Rb1 Rb8 Ra1 Ra8", "Kk"),
        ("Rg1 Rg8 Rh1 Rh8", "Qq"),
        ("Rxa8+", "Kk"),
        ("Rxh8+", "Qq"),
        ("O-O", "kq"),
        ("O-O-O Kf7", "-"),
    ],
)
def test_what_ends_the_right_to_castle(moves: str, left: str) -> None:
    fen = text.format_fen(text.board_of_state(play("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", moves)))
    assert fen.split()[2] == left


def test_castling_moves_the_rook() -> None:
    start = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
    assert text.format_fen(text.board_of_state(play(start, "O-O O-O-O"))).startswith(
        "2kr3r/8/8/8/8/8/8/R4RK1 w - -"
    )
    assert text.format_fen(text.board_of_state(play(start, "O-O-O O-O"))).startswith(
        "r4rk1/8/8/8/8/8/8/2KR3R w - -"
    )


@pytest.mark.parametrize(
    ("rule", "fen", "takes"),
    [
        ("right after the double step", "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", True),
        ("never later", "4k3/8/8/3pP3/8/8/8/4K3 w - - 0 1", False),
        ("on the other side too", "4k3/8/8/4Pp2/8/8/8/4K3 w - f6 0 1", True),
        ("not round the edge of the board", "4k3/8/8/7p/P7/8/8/4K3 w - h6 0 1", False),
        ("both pawns leave the king's rank", "4k3/8/8/K2pP2r/8/8/8/8 w - d6 0 1", False),
        ("the same with the pawns the other way round", "4k3/8/8/K2Pp2q/8/8/8/8 w - e6 0 1", False),
        ("the same from the other side", "4k3/8/8/r2Pp2K/8/8/8/8 w - e6 0 1", False),
        ("another piece still stands between", "4k3/8/8/K1NpP2r/8/8/8/8 w - d6 0 1", True),
        ("a bishop on the rank does not matter", "4k3/8/8/K2pP2b/8/8/8/8 w - d6 0 1", True),
        ("the taker is pinned on the file", "4r1k1/8/8/3pP3/8/8/8/4K3 w - d6 0 1", False),
        ("the taker is pinned across its way", "4k3/6b1/8/3pP3/8/2K5/8/8 w - d6 0 1", False),
        ("the taker stays on the diagonal of its pin", "4k3/2b5/8/3pP3/5K2/8/8/8 w - d6 0 1", True),
        (
            "the taken pawn gives check and hides a bishop",
            "4k1b1/8/8/3pP3/2K5/8/8/8 w - d6 0 1",
            False,
        ),
        (
            "the taken pawn is all that shields the king",
            "4k3/8/b7/1pP5/8/3K4/8/8 w - b6 0 1",
            False,
        ),
        ("it takes the pawn that gives check", "4k3/8/8/3pP3/4K3/8/8/8 w - d6 0 1", True),
        ("it does not end another check", "4k3/8/8/3pP3/8/8/4r3/4K3 w - d6 0 1", False),
        ("it steps between", "3rk3/8/8/3pP3/8/8/8/3K4 w - d6 0 1", True),
    ],
)
def test_taking_in_passing(rule: str, fen: str, takes: bool) -> None:
    assert any(move[2:] == fen.split()[3] for move in legal(fen) if move[0] != move[2]) == takes, (
        rule
    )


def test_both_pawns_may_take_in_passing_and_the_taken_one_disappears() -> None:
    state = play("4k3/3p4/8/2P1P3/8/8/8/4K3 b - - 0 1", "d5")
    assert {move for move in text.board_of_state(state).names if move.endswith("d6")} == {
        "c5d6",
        "e5d6",
    }
    state = step()(state, jnp.int32(text.parse_san(text.board_of_state(state), "exd6")))
    assert text.format_fen(text.board_of_state(state)) == "4k3/8/3P4/2P5/8/8/8/4K3 b - - 0 2"


def test_pawns() -> None:
    fen = "4k3/8/8/8/2n1p3/3P4/P6p/R3K3 w Q - 0 1"
    assert from_square(fen, "d3") == {"c4", "d4", "e4"}
    assert from_square(fen, "a2") == {"a3", "a4"}
    assert from_square(fen.replace(" w ", " b "), "h2") == {"h1q", "h1r", "h1b", "h1n"}
    assert from_square("4k3/8/8/8/8/n7/P6P/R3K3 w Q - 0 1", "a2") == set()
    assert from_square("4k3/8/8/8/n7/8/P6P/R3K3 w Q - 0 1", "a2") == {"a3"}


def test_promotion_straight_and_by_taking() -> None:
    fen = "n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1"
    assert from_square(fen, "b7") == {
        f"{square}{kind}" for square in ("a8", "b8", "c8") for kind in "qrbn"
    }
    assert text.format_fen(text.board_of_state(play(fen, "bxa8=N"))).startswith(
        "N1b1k3/8/8/8/8/8/8/4K3 b"
    )
    assert text.format_fen(text.board_of_state(play(fen, "bxc8=Q+"))).startswith(
        "n1Q1k3/8/8/8/8/8/8/4K3 b"
    )
    assert text.format_fen(
        text.board_of_state(play("4k3/8/8/8/8/8/1p6/N1B1K3 b - - 0 1", "bxc1=R+"))
    ).startswith("4k3/8/8/8/8/8/8/N1r1K3 w")


def test_pinned_pieces_keep_to_their_line() -> None:
    assert from_square("4r1k1/8/8/8/8/8/4R3/4K3 w - - 0 1", "e2") == {
        "e3",
        "e4",
        "e5",
        "e6",
        "e7",
        "e8",
    }
    assert from_square("4r1k1/8/8/8/8/8/4N3/4K3 w - - 0 1", "e2") == set()
    assert from_square("6k1/p7/8/8/7b/8/5B2/4K3 w - - 0 1", "f2") == {"g3", "h4"}
    assert from_square("6k1/8/8/8/7b/6P1/8/4K3 w - - 0 1", "g3") == {"h4"}


def test_check_is_answered_by_going_away_stepping_between_or_taking() -> None:
    assert legal("4r1k1/8/8/8/8/8/3N1P2/3QKB2 w - - 0 1") == {"d2e4", "f1e2", "d1e2"}
    assert legal("6k1/8/8/8/8/5n2/P4P1P/R3K2R w KQ - 0 1") == {"e1d1", "e1e2", "e1f1"}


def test_only_the_king_answers_a_double_check() -> None:
    assert legal("6k1/8/8/8/4r3/5n2/PP1Q1PPP/R3KB1R w KQ - 0 1") == {"e1d1"}


def test_the_king_does_not_hide_behind_itself() -> None:
    assert from_square("6k1/8/8/8/r3K3/8/8/8 w - - 0 1", "e4") == {
        "d3",
        "e3",
        "f3",
        "d5",
        "e5",
        "f5",
    }


def test_checkmate_stalemate_and_their_rewards() -> None:
    fool = play(text.START, "f3 e5 g4 Qh4#")
    assert ending(fool) == "checkmate" and GAME.rewards(fool).tolist() == [-1.0, 1.0]
    back_rank = play("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1", "Ra8#")
    assert ending(back_rank) == "checkmate" and GAME.rewards(back_rank).tolist() == [1.0, -1.0]
    stuck = play("7k/8/5KQ1/8/8/8/8/8 w - - 0 1", "Qf7")
    assert ending(stuck) == "stalemate" and GAME.rewards(stuck).tolist() == [0.0, 0.0]
    assert np.asarray(GAME.legal_action_mask(stuck)).all()
    assert ending(GAME.from_fen("7k/5Q2/5K2/8/8/8/8/8 b - - 0 1")) == "stalemate"


def test_a_finished_game_stays_as_it_is() -> None:
    over = play(text.START, "f3 e5 g4 Qh4#")
    jax.tree.map(np.testing.assert_array_equal, step()(over, jnp.int32(0)), over)


@pytest.mark.parametrize(
    ("pieces", "is_insufficient"),
    [
        ("4k3/8/8/8/8/8/8/4K3", True),
        ("4k3/8/8/8/8/8/8/4KN2", True),
        ("4k3/8/8/8/8/8/8/4KB2", True),
        ("4kb2/8/8/8/8/8/8/2B1K3", True),  # f8 and c1 are both dark
        ("4kb2/8/8/8/8/8/8/4KB2", False),  # f8 is dark, f1 light
        ("4k3/8/8/8/8/8/8/2B1KB2", False),
        ("2b1kb2/8/8/8/8/8/8/4K3", False),
        ("4kn2/8/8/8/8/8/8/4KN2", False),
        ("4k3/8/8/8/8/8/8/3NKN2", False),
        ("4kn2/8/8/8/8/8/8/4KB2", False),
        ("4k3/8/8/8/8/8/P7/4K3", False),
        ("4k3/8/8/8/8/8/8/R3K3", False),
        ("4k3/8/8/8/8/8/8/3QK3", False),
        ("4k3/8/1B6/8/3B4/8/5B2/4K3", True),  # three bishops on dark squares
    ],
)
def test_insufficient_material(pieces: str, is_insufficient: bool) -> None:
    assert (
        ending(GAME.from_fen(f"{pieces} w - - 0 1")) == "insufficient material"
    ) == is_insufficient


def test_fifty_moves_and_a_mate_with_the_last_of_them() -> None:
    assert ending(play("7k/8/8/8/8/8/R7/K7 w - - 98 80", "Ra3")) == ""
    assert ending(play("7k/8/8/8/8/8/R7/K7 w - - 99 80", "Ra3")) == "fifty moves"
    assert ending(play("7k/8/6K1/8/8/8/R7/8 w - - 99 80", "Ra8#")) == "checkmate"
    assert ending(play("7k/p7/8/8/8/8/R7/K7 w - - 99 80", "Rxa7")) == ""
    assert ending(play("7k/p7/8/8/8/8/R7/K7 b - - 99 80", "a5")) == ""
    for clock in (100, 127, 128, 150, 255, 4096):
        fen = f"7k/8/8/8/8/8/R7/K7 w - - {clock} 200"
        assert ending(GAME.from_fen(fen)) == "fifty moves"
        assert chess.Board(fen).outcome(claim_draw=True) is not None


def test_the_third_occurrence_ends_the_game() -> None:
    around = "Nf3 Nf6 Ng1 Ng8 "
    assert ending(play(text.START, around + "Nf3 Nf6 Ng1")) == ""
    assert ending(play(text.START, around * 2)) == "threefold repetition"
    # The start counts as an occurrence; after 1. e4 e5 the position before them does not come back.
    assert ending(play(text.START, "e4 e5 " + around + "Nf3 Nf6 Ng1")) == ""
    assert ending(play(text.START, "e4 e5 " + around * 2)) == "threefold repetition"


def test_a_repetition_far_back_counts_in_the_search_as_well() -> None:
    """The king goes the long way round between occurrences: 14 moves apart."""
    walk = "Kb1 Kh7 Kc1 Kg7 Kd1 Kf7 Ke1 Ke7 Kd1 Kf7 Kc1 Kg7 Kb1 Kh7 Ka1 Kh8 "
    start = "7k/8/8/8/8/8/R7/K7 w - - 0 1"
    moves = (walk * 3).split()
    state, slim = GAME.from_fen(start), GAME.search_state(GAME.from_fen(start))
    for move in moves:
        if ending(state):
            break
        action = jnp.int32(text.parse_san(text.board_of_state(state), move))
        state, slim = step()(state, action), jax.jit(GAME.step)(slim, action)
        assert int(state.ending) == int(slim.ending)
    assert ending(state) == "threefold repetition"


def test_positions_with_other_rights_are_not_the_same() -> None:
    fen = "r3k3/8/8/8/8/8/8/4K2R w K - 0 1"
    shuffle = "Rg1 Rb8 Rh1 Ra8 "
    # The first time White may still castle; so it takes one round more than usual.
    assert ending(play(fen, shuffle * 2)) == ""
    assert ending(play(fen.replace(" K ", " - "), shuffle * 2)) == "threefold repetition"
    passing = "4k3/3p4/8/4P3/8/8/8/4K3 b - - 0 1"
    around = "Kd1 Kd8 Ke1 Ke8 "
    assert ending(play(passing, "d5 " + around * 2)) == ""
    assert ending(play(passing, "d5 " + around * 2 + "Kd1")) == "threefold repetition"
    useless = "4k3/3p4/8/8/8/8/8/4K3 b - - 0 1"
    assert ending(play(useless, "d5 " + around * 2)) == "threefold repetition"


def test_a_limit_of_moves() -> None:
    game = make("chess", max_moves=3)
    state = game.init()
    for move in ("e4", "e5", "Nf3"):
        assert not game.is_terminal(state)
        state = game.step(state, jnp.int32(text.parse_san(text.board_of_state(state), move)))
    assert ENDINGS[int(state.ending)] == "move limit" and game.rewards(state).tolist() == [0.0, 0.0]


def test_games_begin_where_the_option_says() -> None:
    fen = "4k3/8/8/8/8/8/4P3/4K3 b - - 0 5"
    game = make("chess", fen=fen)
    assert text.format_fen(text.board_of_state(game.init())) == fen
    assert int(game.to_play(game.init())) == 1


def test_sizes_of_states() -> None:
    """At most 1 KB without the eight positions of the planes, 3 KB with them."""
    state = GAME.init()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    assert size - state.frames.nbytes <= 1024 and size <= 3072
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(GAME.search_state(state))) == 828
