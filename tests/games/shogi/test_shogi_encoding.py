"""The 362 planes of Table S1 and the 9 x 9 x 139 code of Table S2, worked out by hand; the two
sides as images of each other, turned half round."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from perft import part, stack
from shogi_positions import BATCH, padded, programs, turn_sfen
from shogi_positions import play as play_from

from azero.games.shogi import moves, text
from azero.games.shogi.rules import Shogi
from azero.games.shogi.sfen import START

GAME = Shogi()
NUM_KINDS = 14


@functools.cache
def observe():
    return jax.jit(GAME.observe)


def play(sfen: str, usi: str = ""):
    return play_from(GAME, GAME.from_sfen(sfen), usi)


def planes_of(state) -> np.ndarray:
    return np.asarray(observe()(state))


def squares(plane: np.ndarray) -> set[str]:
    """The squares of a plane as Black would call them: row 0 is rank i, column 0 file 9."""
    assert set(np.unique(plane)) <= {0.0, 1.0}
    return {f"{9 - file}{'ihgfedcba'[rank]}" for rank, file in zip(*np.nonzero(plane), strict=True)}


def pieces(planes: np.ndarray, frame: int) -> list[set[str]]:
    return [squares(planes[:, :, 45 * frame + index]) for index in range(2 * NUM_KINDS)]


def on(rank: str, files: str) -> set[str]:
    return {file + rank for file in files}


NONE: list[set[str]] = [set()] * 6
OWN = [
    on("g", "123456789"),
    on("i", "19"),
    on("i", "28"),
    on("i", "37"),
    {"8h"},
    {"2h"},
    on("i", "46"),
    {"5i"},
    *NONE,
]
OTHER = [
    on("c", "123456789"),
    on("a", "19"),
    on("a", "28"),
    on("a", "37"),
    {"2b"},
    {"8b"},
    on("a", "46"),
    {"5a"},
    *NONE,
]


def test_the_start() -> None:
    planes = planes_of(GAME.init())
    assert planes.shape == (9, 9, 362) and planes.dtype == np.float32
    assert pieces(planes, 0) == OWN + OTHER
    assert planes[4, 4, 28:45].tolist() == [1, 0, 0] + [0] * 14
    assert (planes[:, :, 28:45] == planes[4, 4, 28:45]).all()
    assert (planes[:, :, 45:360] == 0).all(), "there is nothing before the start"
    assert (planes[:, :, 360] == 1).all() and (planes[:, :, 361] == 0).all()


def test_an_exchange_of_bishops_seen_by_both() -> None:
    """7g7f 3c3d 8h2b+: White sees a horse on its 8h and, the board being turned, Black's pawns
    beyond; then it takes the horse."""
    white = planes_of(play(START, "7g7f 3c3d 8h2b+"))
    # White's own pieces stand where Black's would: its pawn 3c3d is Black's 7g7f, its bishop is
    # gone.
    own = [(OWN[0] - {"7g"}) | {"7f"}, *OWN[1:4], set(), *OWN[5:]]
    other = [(OTHER[0] - {"3c"}) | {"3d"}, *OTHER[1:4], set(), *OTHER[5:12], {"8h"}, set()]
    assert pieces(white, 0) == own + other
    assert white[0, 0, 31:45].tolist() == [0] * 7 + [0, 0, 0, 0, 0.5, 0, 0], (
        "Black holds one of two bishops"
    )
    assert pieces(white, 1) == [
        *own[:4],
        {"8h"},
        *own[5:],
        *other[:4],
        {"2b"},
        *other[5:12],
        set(),
        set(),
    ]
    assert pieces(white, 3) == OWN + OTHER and pieces(white, 4) == [set()] * 28
    assert (white[:, :, 360] == 0).all()
    np.testing.assert_allclose(white[:, :, 361], 3 / 512)
    black = planes_of(play(START, "7g7f 3c3d 8h2b+ 3a2b"))
    assert black[0, 0, 31:45].tolist() == [0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0, 0.5, 0, 0]
    assert (
        pieces(black, 0)[NUM_KINDS + 3] == {"7a", "2b"} and pieces(black, 0)[NUM_KINDS + 4] == set()
    )
    assert pieces(black, 1)[12] == {"2b"}, "one move ago Black's horse stood there"


def test_promoted_pieces_and_hands() -> None:
    sfen = "k8/9/+P+L+N+S+B+R3/9/9/9/3+p+l+n+s2/9/8K b 6PL2N2SBR2G6pl2g 100"
    planes = planes_of(play(sfen))
    expected = [set()] * 28
    expected[7], expected[21] = {"1i"}, {"9a"}
    expected[8:14] = [{"9c"}, {"8c"}, {"7c"}, {"6c"}, {"5c"}, {"4c"}]
    expected[22:26] = [{"6g"}, {"5g"}, {"4g"}, {"3g"}]
    assert pieces(planes, 0) == expected
    own, other = (
        [6 / 18, 1 / 4, 2 / 4, 2 / 4, 1 / 2, 1 / 2, 2 / 4],
        [6 / 18, 1 / 4, 0, 0, 0, 0, 2 / 4],
    )
    np.testing.assert_allclose(planes[8, 8, 31:45], own + other, rtol=1e-6)
    np.testing.assert_allclose(planes[8, 8, 361], 99 / 512)


def test_occurrences() -> None:
    """The start comes back after four moves and after eight."""
    planes = planes_of(play(START, "2h3h 8b7b 3h2h 7b8b " * 2))
    assert planes[0, 0, 28:360:45].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert planes[0, 0, 29:360:45].tolist() == [0, 1, 1, 1, 1, 0, 0, 0]
    assert planes[0, 0, 30:360:45].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


# The number of the square is 9 * rank + file from the mover's near left corner; planes are as in
# the head of azero/games/shogi/moves.py.
QUEEN = "8k/9/9/9/4+R4/9/9/9/K8 b - 1"
BISHOP = "9/8k/9/9/4+B4/9/9/K8/9 b - 1"
ACTIONS = [
    # Black: 7g is square 9 * 2 + 2, 7f one step north: plane 0; 2h is 9 * 1 + 7, to 6h four west:
    # plane 8 * 6 + 3
    (START, "7g7f", 139 * 20 + 0),
    (START, "2h6h", 139 * 16 + 51),
    # White: its 3c is Black's 7g
    (START.replace(" b ", " w "), "3c3d", 139 * 20 + 0),
    (START.replace(" b ", " w "), "8b4b", 139 * 16 + 51),
    # from 5e, square 40, in all directions: 8 * direction + distance - 1
    (QUEEN, "5e5a", 139 * 40 + 3),
    (BISHOP, "5e1a", 139 * 40 + 8 + 3),
    (QUEEN, "5e1e", 139 * 40 + 16 + 3),
    (BISHOP, "5e1i", 139 * 40 + 24 + 3),
    (QUEEN, "5e5i", 139 * 40 + 32 + 3),
    (BISHOP, "5e9i", 139 * 40 + 40 + 3),
    (QUEEN, "5e9e", 139 * 40 + 48 + 3),
    (BISHOP, "5e9a", 139 * 40 + 56 + 3),
    # eight squares, with promotion: 66 + 7
    ("7k1/9/9/9/9/9/9/9/K7L b - 1", "1i1a+", 139 * 8 + 66 + 7),
    # a knight on 5d, square 9 * 5 + 4: to the right 64, to the left 65, and promoting 66 more
    ("8k/9/9/9/4N4/9/9/9/K8 b - 1", "5e4c", 139 * 40 + 64),
    ("8k/9/9/9/4N4/9/9/9/K8 b - 1", "5e6c", 139 * 40 + 65),
    ("8k/9/9/9/4N4/9/9/9/K8 b - 1", "5e4c+", 139 * 40 + 130),
    ("8k/9/9/9/4N4/9/9/9/K8 b - 1", "5e6c+", 139 * 40 + 131),
    # White's knight on 5e: 6g lies to White's right
    ("8k/9/9/9/4n4/9/9/9/K8 w - 1", "5e6g+", 139 * 40 + 130),
    # drops of pawn, lance, knight, silver, bishop, rook, gold on 5e, then White's on its 1a
    *(
        ("8k/9/9/9/9/9/9/9/K8 b RBGSNLP 1", f"{letter}*5e", 139 * 40 + 132 + index)
        for index, letter in enumerate("PLNSBRG")
    ),
    ("8k/9/9/9/9/9/9/9/K8 w g 1", "G*9a", 139 * 8 + 138),
]


@pytest.mark.parametrize(("sfen", "move", "action"), ACTIONS)
def test_actions(sfen: str, move: str, action: int) -> None:
    state = GAME.from_sfen(sfen)
    assert GAME.format_action(state, action) == move
    assert text.board_of_state(state).names[move] == action


def test_actions_off_the_board_have_names() -> None:
    board = text.board_of_sfen(START)
    assert text.format_usi(board, 66) == "9i9h+"
    assert text.format_usi(board, 139 * 80) == "1a by +0+1"
    with pytest.raises(ValueError, match="action 11259 is not one of shogi: 0 to 11258"):
        text.format_usi(board, moves.NUM_ACTIONS)


TURNED = [
    START,
    "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w RGgsn5p 1",
    "l2kg2+R1/4n3+L/p1gpps3/4np3/6P1N/PP+rP2pS1/1pG2P3/4P1G2/LN3KB1+p b SPbslpppp 1",
]


@pytest.mark.parametrize("sfen", TURNED)
def test_the_two_sides_are_images_of_each_other(sfen: str) -> None:
    """The same actions in play: equal legal moves, and planes that differ in the colour alone."""
    step, look = programs(GAME)
    states = padded(stack([GAME.from_sfen(sfen), GAME.from_sfen(turn_sfen(sfen))]))
    rng = np.random.default_rng(3)
    for _ in range(12):
        masks = np.asarray(look(states)[0])
        np.testing.assert_array_equal(masks[0], masks[1])
        first, second = (planes_of(part(states, index)) for index in range(2))
        assert (first[:, :, 360] == 1 - second[:, :, 360]).all()
        same = [plane for plane in range(362) if plane != 360]
        np.testing.assert_array_equal(first[:, :, same], second[:, :, same])
        states = step(states, np.full(BATCH, rng.choice(np.flatnonzero(masks[0])), np.int32))
