"""Each rule by a position made for it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from perft import part, stack
from shogi_positions import BATCH, padded, programs, turn_sfen
from shogi_positions import play as play_from

from azero.games.shogi import rules, text
from azero.games.shogi.rules import ENDINGS, Shogi
from azero.games.table import make

GAME = Shogi()


def legal(sfen: str) -> set[str]:
    """The legal moves by their names in USI, of the compiled mask, which has to be the same from
    the other side of the board."""
    state, turned = GAME.from_sfen(sfen), GAME.from_sfen(turn_sfen(sfen))
    masks = np.asarray(programs(GAME)[1](padded(stack([state, turned])))[0])
    np.testing.assert_array_equal(masks[0], masks[1])
    board = text.board_of_state(state)
    return {text.format_usi(board, int(action)) for action in np.flatnonzero(masks[0])}


def play(start, moves: str):
    """The state after moves in USI, from an SFEN or a state; every one of them is legal."""
    return play_from(GAME, GAME.from_sfen(start) if isinstance(start, str) else start, moves)


def ending(state) -> tuple[str, list[float]]:
    """Why the game is over, and the rewards of Black and White."""
    return ENDINGS[int(state.ending)], np.asarray(GAME.rewards(state)).tolist()


def to(sfen: str, square: str) -> set[str]:
    """Where the piece on a square may go."""
    return {move[2:] for move in legal(sfen) if move.startswith(square)}


@pytest.mark.parametrize(
    ("piece", "goals"),
    [
        ("P", {"5d"}),
        ("L", {"5d", "5c", "5c+", "5b", "5b+", "5a+"}),
        ("N", {"4c", "4c+", "6c", "6c+"}),
        ("S", {"5d", "4d", "6d", "4f", "6f"}),
        ("G", {"5d", "4d", "6d", "4e", "6e", "5f"}),
        ("+P", {"5d", "4d", "6d", "4e", "6e", "5f"}),
        ("+L", {"5d", "4d", "6d", "4e", "6e", "5f"}),
        ("+N", {"5d", "4d", "6d", "4e", "6e", "5f"}),
        ("+S", {"5d", "4d", "6d", "4e", "6e", "5f"}),
    ],
)
def test_how_pieces_move(piece: str, goals: set[str]) -> None:
    assert to(f"8k/9/9/9/4{piece}4/9/9/9/K8 b - 1", "5e") == goals


def test_how_bishop_and_rook_and_their_promoted_forms_move() -> None:
    bishop = {"6d", "4d", "4f", "3g", "2h", "1i", "6f", "7g", "8h", "9i"}
    far = {"7c", "8b", "9a", "3c", "2b", "1a"}
    assert to("9/8k/9/9/4B4/9/9/K8/9 b - 1", "5e") == bishop | far | {
        f"{square}+" for square in far
    }
    assert to("9/8k/9/9/4+B4/9/9/K8/9 b - 1", "5e") == bishop | far | {"5d", "5f", "4e", "6e"}
    rook = {"5d", "5f", "5g", "5h", "5i", *(f"{file}e" for file in "12346789")}
    straight = {"5c", "5b", "5a"}
    assert to("8k/9/9/9/4R4/9/9/9/K8 b - 1", "5e") == rook | straight | {
        f"{square}+" for square in straight
    }
    assert to("8k/9/9/9/4+R4/9/9/9/K8 b - 1", "5e") == rook | straight | {"4d", "6d", "4f", "6f"}


def test_promotion_where_a_piece_could_not_move_again_is_forced() -> None:
    assert to("8k/4P4/9/9/9/9/9/9/K8 b - 1", "5b") == {"5a+"}
    assert to("8k/9/4L4/9/9/9/9/9/K8 b - 1", "5c") == {"5b", "5b+", "5a+"}
    assert to("8k/9/9/4N4/9/9/9/9/K8 b - 1", "5d") == {"4b+", "6b+"}
    assert to("8k/9/4N4/9/9/9/9/9/K8 b - 1", "5c") == {"4a+", "6a+"}


def test_promotion_on_entering_inside_and_leaving_the_zone() -> None:
    silver = to("8k/9/4S4/9/9/9/9/9/K8 b - 1", "5c")
    assert silver == {
        square + sign for square in ("5b", "4b", "6b", "4d", "6d") for sign in ("", "+")
    }
    assert to("8k/9/9/4S4/9/9/9/9/K8 b - 1", "5d") == {
        "5c",
        "5c+",
        "4c",
        "4c+",
        "6c",
        "6c+",
        "4e",
        "6e",
    }
    assert to("8k/9/4G4/9/9/9/9/9/K8 b - 1", "5c") == {"5b", "4b", "6b", "4c", "6c", "5d"}
    assert to("8k/9/9/9/9/9/9/9/K3R4 b - 1", "5i") >= {"5d", "5c", "5c+", "5a+"}


def drops(sfen: str, letter: str) -> set[str]:
    return {move[2:] for move in legal(sfen) if move[:2] == f"{letter}*"}


def test_drops_go_where_the_piece_can_move_on() -> None:
    sfen = "k8/9/9/9/9/9/9/9/8K b RBGSNLP 1"
    empty = {f"{file}{rank}" for file in range(1, 10) for rank in "abcdefghi"} - {"9a", "1i"}
    last, two = (
        {f"{file}a" for file in range(1, 10)},
        {f"{file}{rank}" for file in range(1, 10) for rank in "ab"},
    )
    for letter in "RBGS":
        assert drops(sfen, letter) == empty
    assert drops(sfen, "L") == drops(sfen, "P") == empty - last
    assert drops(sfen, "N") == empty - two
    assert not drops("k8/9/9/9/9/9/9/9/8K w R 1", "R")


def test_two_pawns_on_a_file() -> None:
    on_five = {f"5{rank}" for rank in "bcdefghi"}
    assert not drops("k8/9/9/9/9/9/4P4/9/8K b P 1", "P") & on_five
    assert drops("k8/9/9/9/9/9/4P4/9/8K b P 1", "P") >= {"6b", "4b", "4i"}
    assert drops("k8/9/9/9/9/9/4+P4/9/8K b P 1", "P") & on_five == on_five - {"5g"}
    assert drops("k8/9/9/9/9/9/4p4/9/8K b P 1", "P") & on_five == on_five - {"5g"}
    assert drops("k8/9/9/9/9/9/4P4/9/8K b LP 1", "L") & on_five == on_five - {"5g"}


@pytest.mark.parametrize(
    ("why", "sfen", "is_legal"),
    [
        ("mate", "3lkl3/9/4G4/9/9/9/9/9/4K4 b P 1", False),
        ("the king can take the pawn", "3lkl3/9/9/2N3N2/9/9/9/9/4K4 b P 1", True),
        ("the king has another square", "3lk4/9/4G4/9/9/9/9/9/4K4 b P 1", True),
        ("the king can take an unguarded piece", "3lkS3/9/4G4/9/9/9/9/9/4K4 b P 1", True),
        ("a silver next to the king can take it", "3skl3/9/4G4/9/9/9/9/9/4K4 b P 1", True),
        ("a rook from afar can take it", "3lkl3/r8/4G4/9/9/9/9/9/4K4 b P 1", True),
        ("a bishop from afar can take it", "3lkl3/9/4G4/6b2/9/9/9/9/K8 b P 1", True),
        ("the silver is pinned", "R2skl3/9/4G4/9/9/9/9/9/4K4 b P 1", False),
        ("the rook is pinned on the pawn's file", "3lkl3/9/3GrG3/4L4/9/9/9/9/4K4 b P 1", True),
        ("the pawn shuts off its own rook", "3lkl3/R8/9/9/9/9/9/9/4K4 b P 1", True),
        ("the rook stands on the other side too", "3lkl3/R7R/9/9/9/9/9/9/4K4 b P 1", False),
        ("a pinned piece of the attacker still guards", "3lkl3/9/K3G3r/9/9/9/9/9/9 b P 1", False),
    ],
)
def test_mate_by_a_dropped_pawn(why: str, sfen: str, is_legal: bool) -> None:
    assert ("P*5b" in legal(sfen)) == is_legal, why


def test_mate_by_a_pawn_that_moves_or_by_another_piece_is_legal() -> None:
    sfen = "3lkl3/9/3GPG3/9/9/9/9/9/4K4 b - 1"
    assert "5c5b" in legal(sfen)
    assert ending(play(sfen, "5c5b")) == ("checkmate", [1.0, -1.0])
    assert ending(play("3lkl3/9/4G4/9/9/9/9/9/4K4 b G 1", "G*5b")) == ("checkmate", [1.0, -1.0])
    assert ending(play(turn_sfen(sfen), "5g5h")) == ("checkmate", [-1.0, 1.0])


def test_pinned_pieces_keep_to_their_line() -> None:
    assert to("4r3k/9/9/9/4S4/9/9/9/4K4 b - 1", "5e") == {"5d"}
    assert to("4r3k/9/9/9/4N4/9/9/9/4K4 b - 1", "5e") == set()
    assert to("8k/9/9/9/b8/9/2G6/9/4K4 b - 1", "7g") == {"8f"}
    assert to("4l3k/9/9/9/4R4/9/9/9/4K4 b - 1", "5e") == {
        "5a",
        "5a+",
        "5b",
        "5b+",
        "5c",
        "5c+",
        "5d",
        "5f",
        "5g",
        "5h",
    }
    assert len(to("8k/9/9/9/9/9/9/4G4/4K4 b - 1", "5h")) == 5


def test_check_is_answered_by_going_away_stepping_between_dropping_or_taking() -> None:
    king = {"5i4i", "5i4h", "5i6i", "5i6h"}
    assert legal("4r3k/9/9/9/9/9/9/9/4K4 b G 1") == king | {f"G*5{rank}" for rank in "bcdefgh"}
    assert legal("4r3k/9/9/9/9/9/9/9/4K4 b P 1") == king | {f"P*5{rank}" for rank in "bcdefgh"}
    assert legal("4r3k/4G4/9/9/9/9/9/9/4K4 b - 1") >= {"5b5a"}
    assert legal("G3r4/8k/9/9/9/9/9/1B7/4K4 b - 1") == king | {"8h5e"}
    assert legal("8k/9/9/9/9/9/5n3/9/4K4 b G 1") == king | {"5i5h"}
    assert legal("8k/9/9/9/9/9/5n3/5G3/4K4 b - 1") >= {"4h4g"}


def test_only_the_king_answers_a_double_check() -> None:
    assert legal("4r3k/9/9/9/9/9/5n3/5G3/4K4 b G 1") == {"5i4i", "5i6i", "5i6h"}


def test_the_king_does_not_hide_behind_itself() -> None:
    assert to("8k/9/9/9/4K3r/9/9/9/9 b - 1", "5e") == {"4d", "5d", "6d", "4f", "5f", "6f"}


def test_who_cannot_move_has_lost() -> None:
    state = GAME.from_sfen("8k/9/9/9/9/1n7/9/2g6/K8 b - 1")
    assert ending(state) == ("no legal move", [-1.0, 1.0])
    assert np.asarray(programs(GAME)[1](padded(stack([state])))[0]).all(), (
        "a finished game's mask is all True"
    )
    assert ending(GAME.from_sfen(turn_sfen("8k/9/9/9/9/1n7/9/2g6/K8 b - 1"))) == (
        "no legal move",
        [1.0, -1.0],
    )


AROUND = "2h3h 8b7b 3h2h 7b8b "


def test_the_fourth_occurrence_ends_the_game() -> None:
    state = play("startpos", AROUND * 2 + "2h3h 8b7b 3h2h")
    assert ending(state) == ("", [0.0, 0.0])
    assert ending(play(state, "7b8b")) == ("fourfold repetition", [0.0, 0.0])


def test_repetitions_count_as_far_back_as_the_option_says() -> None:
    game = make("shogi", repetition_moves=11)
    states = game.init()
    for name in (AROUND * 3).split():
        states = game.step(states, jax.numpy.int32(text.board_of_state(states).names[name]))
    assert ENDINGS[int(states.ending)] == "", "the first time is twelve moves ago"


def test_a_finished_game_stays_as_it_is() -> None:
    over = play("startpos", AROUND * 3)
    again = part(programs(GAME)[0](padded(stack([over])), np.zeros(BATCH, np.int32)), 0)
    jax.tree.map(np.testing.assert_array_equal, again, over)


def turn_moves(moves: str) -> str:
    """The same moves on the board turned half round."""
    return moves.translate(str.maketrans("123456789abcdefghi", "987654321ihgfedcba"))


CHASE = "4k4/9/9/9/5R3/9/9/9/8K b - 1"
CHECKS, QUIET = "4e5e 5a4a 5e4e 4a5a ", "4e3e 5a6a 3e4e 6a5a "


@pytest.mark.parametrize(
    ("why", "sfen", "moves", "expected"),
    [
        ("the other side's move closes the circle", CHASE, CHECKS * 3, "perpetual check"),
        (
            "the check closes the circle",
            "4k4/9/9/9/4R4/9/9/9/8K w - 1",
            "5a4a 5e4e 4a5a 4e5e " * 3,
            "perpetual check",
        ),
        (
            "quiet moves before the first time",
            "4k4/9/9/9/6R2/9/9/9/8K b - 1",
            "3e4e 5a6a 4e6e 6a5a 6e5e 5a6a " + "5e6e 6a5a 6e5e 5a6a " * 2 + "5e6e",
            "perpetual check",
        ),
        ("a quiet move at the beginning", CHASE, QUIET + CHECKS * 2, "fourfold repetition"),
        ("a quiet move in the middle", CHASE, CHECKS + QUIET + CHECKS, "fourfold repetition"),
        ("a quiet move at the end", CHASE, CHECKS * 2 + QUIET, "fourfold repetition"),
    ],
)
def test_perpetual_check_loses(why: str, sfen: str, moves: str, expected: str) -> None:
    loss = [-1.0, 1.0] if expected == "perpetual check" else [0.0, 0.0]
    assert ending(play(sfen, moves)) == (expected, loss), why
    assert ending(play(turn_sfen(sfen), turn_moves(moves))) == (expected, loss[::-1]), why


def test_what_makes_a_position_the_same() -> None:
    """Pieces on the board, pieces in hand and the side to move; not the number of the move."""

    def code(sfen: str) -> int:
        return int(GAME.from_sfen(sfen).codes[0])

    board = "4k4/9/9/9/9/9/9/9/4K4"
    others = ["b L 1", "b p 1", "b 2P 1", "w P 1", "b - 1"]
    assert len({code(f"{board} {rest}") for rest in ["b P 1", *others]}) == 6
    assert code(f"{board} b P 1") == code(f"{board} b P 77")


def test_what_a_search_tree_remembers() -> None:
    slim = GAME.search_state(GAME.init())
    assert slim.codes.shape == (64,)
    np.testing.assert_array_equal(slim.codes, GAME.init().codes[:64])
    past = np.arange(100, 164, dtype=np.uint32)
    past[[3, 7, 62]] = 5
    past[4] = 5  # an odd number of moves ago, so with the other side to move
    recall = [
        tuple(map(int, rules._recall(past, np.uint32(5), np.int32(count))))
        for count in (3, 4, 8, 70)
    ]
    assert recall == [(1, 0), (2, 4), (3, 8), (3, 8)]


TEN = "3+P+P+P3/+P+P+PK+P+P+P+P1/9/9/9/9/4k4/9/9 b"


@pytest.mark.parametrize(
    ("why", "sfen", "is_won"),
    [
        ("28 points", f"{TEN} RB8P 1", True),
        ("27 points are enough for White alone", f"{TEN} RB7P 1", False),
        ("nine pieces", "3+P+P4/+P+P+PK+P+P+P+P1/9/9/9/9/4k4/9/9 b 2R2B8P 1", False),
        ("in check", "3l+P+P+P2/+P+P+PK+P+P+P+P1/9/9/9/9/4k4/9/9 b RB8P 1", False),
        ("the king outside", "3+P+P+P3/+P+P+P1+P+P+P+P1/9/3K5/9/9/4k4/9/9 b 2R2B8P 1", False),
        ("great pieces in the zone", "1+R+B+P+P+P3/+P+P+PK+P+P+P2/9/9/9/9/4k4/9/9 b 9P 1", True),
    ],
)
def test_an_entering_king_wins(why: str, sfen: str, is_won: bool) -> None:
    assert ending(GAME.from_sfen(sfen)) == (
        ("entering king", [1.0, -1.0]) if is_won else ("", [0.0, 0.0])
    ), why
    assert ending(Shogi(entering_king=False).from_sfen(sfen)) == ("", [0.0, 0.0])
    is_won_by_white = is_won or "White alone" in why
    assert ending(GAME.from_sfen(turn_sfen(sfen))) == (
        ("entering king", [-1.0, 1.0]) if is_won_by_white else ("", [0.0, 0.0])
    ), why


def test_an_entering_king_wins_when_it_is_its_turn() -> None:
    state = play("3+P+P4/+P+P+PK+P+P+P+P1/9/9/9/9/4k4/9/9 b 2R2BG8P 1", "G*1a")
    assert ending(state) == ("", [0.0, 0.0])
    assert ending(play(state, "5g5h")) == ("entering king", [1.0, -1.0])


def test_games_begin_where_the_option_says() -> None:
    sfen = "lnsgkgsn1/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
    game = make("shogi", sfen=sfen)
    assert text.format_sfen(text.board_of_state(game.init())) == sfen
    assert int(game.to_play(game.init())) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_moves": 0}, "max-moves is from 1 to 4096, not 0"),
        ({"repetition_moves": 5000}, "repetition-moves is from 1 to 4096, not 5000"),
        ({"sfen": "9/9/9/9/9/9/9/9/9 b - 1"}, "Black has 0 kings, not one"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make("shogi", **options)


def test_sizes_of_states() -> None:
    state = GAME.init()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    assert (size, size - state.frames[1:].nbytes) == (1508, 1004), (
        "with and without the seven older frames"
    )
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(GAME.search_state(state))) == 996
