"""The 119 planes of Table S1 and the 8 x 8 x 73 code of Table S2, worked out by hand; the two sides
as mirror images of each other."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.chess import text
from azero.games.chess.rules import Chess

GAME = Chess()


@functools.cache
def compiled(verb: str):
    return jax.jit(getattr(GAME, verb))


def play(fen: str, moves: str = ""):
    state = GAME.from_fen(fen)
    for move in moves.split():
        state = compiled("step")(state, jnp.int32(text.parse_san(text.board_of_state(state), move)))
    return state


def planes_of(state) -> np.ndarray:
    return np.asarray(compiled("observe")(state))


def squares(plane: np.ndarray) -> set[str]:
    """The names of the squares of a plane, whose row 0 is called rank 1."""
    assert set(np.unique(plane)) <= {0.0, 1.0}
    return {"abcdefgh"[file] + str(rank + 1) for rank, file in zip(*np.nonzero(plane), strict=True)}


def pieces(planes: np.ndarray, frame: int) -> list[set[str]]:
    return [squares(planes[:, :, 14 * frame + index]) for index in range(12)]


def row(files: str, rank: int) -> set[str]:
    return {f"{file}{rank}" for file in files}


START_OWN = [row("abcdefgh", 2), row("bg", 1), row("cf", 1), row("ah", 1), {"d1"}, {"e1"}]
START_OTHER = [row("abcdefgh", 7), row("bg", 8), row("cf", 8), row("ah", 8), {"d8"}, {"e8"}]


def test_the_start() -> None:
    planes = planes_of(GAME.init())
    assert planes.shape == (8, 8, 119) and planes.dtype == np.float32
    assert pieces(planes, 0) == START_OWN + START_OTHER
    assert (planes[:, :, 12] == 1).all() and (planes[:, :, 13] == 0).all()
    assert (planes[:, :, 14:112] == 0).all(), "there is nothing before the start"
    # White to move, no move yet, four castling rights, no-progress count 0
    assert planes[3, 3, 112:].tolist() == [1, 0, 1, 1, 1, 1, 0]
    assert (planes[:, :, 112:] == planes[3, 3, 112:]).all()


def test_after_two_moves_white_sees_its_own_history() -> None:
    """1. e4 Nf6: White sees today's position, the one after 1. e4 and the start, all from its own
    side."""
    planes = planes_of(play(text.START, "e4 Nf6"))
    moved = [(START_OWN[0] - {"e2"}) | {"e4"}, *START_OWN[1:]]
    jumped = [START_OTHER[0], {"b8", "f6"}, *START_OTHER[2:]]
    assert pieces(planes, 0) == moved + jumped
    assert pieces(planes, 1) == moved + START_OTHER
    assert pieces(planes, 2) == START_OWN + START_OTHER
    assert (planes[:, :, 42:112] == 0).all()
    np.testing.assert_allclose(planes[0, 0, 112:], [1, 2 / 512, 1, 1, 1, 1, 1 / 100], rtol=1e-6)


def test_black_sees_the_board_from_its_side() -> None:
    """1. e4: Black's pieces stand on its first two ranks, White's pawn on e5; files stay."""
    planes = planes_of(play(text.START, "e4"))
    assert pieces(planes, 0) == [*START_OWN, (START_OTHER[0] - {"e7"}) | {"e5"}, *START_OTHER[1:]]
    assert pieces(planes, 1) == START_OWN + START_OTHER
    np.testing.assert_allclose(planes[7, 0, 112:], [0, 1 / 512, 1, 1, 1, 1, 0], rtol=1e-6)


def test_castling_rights_belong_to_the_mover_first() -> None:
    assert planes_of(play("r3k2r/8/8/8/8/8/8/R3K2R w Kq - 7 30"))[0, 0, 114:118].tolist() == [
        1,
        0,
        0,
        1,
    ]
    assert planes_of(play("r3k2r/8/8/8/8/8/8/R3K2R b Kq - 7 30"))[0, 0, 114:118].tolist() == [
        0,
        1,
        1,
        0,
    ]
    counts = planes_of(play("r3k2r/8/8/8/8/8/8/R3K2R b Kq - 7 30"))[5, 5]
    np.testing.assert_allclose(counts[[112, 113, 118]], [0, 59 / 512, 7 / 100], rtol=1e-6)


def test_occurrences() -> None:
    """The start comes back after four moves: the second occurrence; the positions before it were
    the first of theirs."""
    planes = planes_of(play(text.START, "Nf3 Nf6 Ng1 Ng8"))
    first, second = planes[0, 0, 12:112:14], planes[0, 0, 13:112:14]
    assert first.tolist() == [0, 1, 1, 1, 1, 0, 0, 0]
    assert second.tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_eight_positions_and_no_more() -> None:
    planes = planes_of(play(text.START, "a3 a6 b3 b6 c3 c6 d3 d6"))
    assert (
        pieces(planes, 7)[0] == (START_OWN[0] - {"a2"}) | {"a3"}
        and pieces(planes, 7)[6] == START_OTHER[0]
    )
    assert pieces(planes, 0)[0] == row("abcd", 3) | row("efgh", 2)


# The number of the square is 8 * rank + file from the mover's first rank; planes are as in the head
# of azero/games/chess/moves.py.
ACTIONS = [
    # White: e2 is square 12; e3 is one step north: plane 0, e4 two: plane 1
    (text.START, "e2e3", 73 * 12 + 0),
    (text.START, "e2e4", 73 * 12 + 1),
    # g1 is square 6; to f3 one file left, two ranks up: the last of the knight's planes; to h3 the
    # first
    (text.START, "g1f3", 73 * 6 + 63),
    (text.START, "g1h3", 73 * 6 + 56),
    # Black: e7 is e2 from its side, g8 is g1
    ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", "e7e5", 73 * 12 + 1),
    ("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", "g8f6", 73 * 6 + 63),
    # a queen on d4 (square 27) in all eight directions: 7 * direction + distance - 1
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4d8", 73 * 27 + 3),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4g7", 73 * 27 + 9),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4h4", 73 * 27 + 17),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4g1", 73 * 27 + 23),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4d1", 73 * 27 + 30),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4a1", 73 * 27 + 37),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4a4", 73 * 27 + 44),
    ("6k1/8/8/8/3Q4/8/8/1K6 w - - 0 1", "d4a7", 73 * 27 + 51),
    # a knight on d4, clockwise
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4e6", 73 * 27 + 56),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4f5", 73 * 27 + 57),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4f3", 73 * 27 + 58),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4e2", 73 * 27 + 59),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4c2", 73 * 27 + 60),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4b3", 73 * 27 + 61),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4b5", 73 * 27 + 62),
    ("6k1/8/8/8/3N4/8/7P/1K6 w - - 0 1", "d4c6", 73 * 27 + 63),
    # a pawn on b7 (square 49): a queen by the queen's planes N, NW; the rest by 64 + 3 * (NW, N,
    # NE) + (knight, bishop, rook)
    ("n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7b8q", 73 * 49 + 0),
    ("n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7a8q", 73 * 49 + 49),
    ("n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7a8n", 73 * 49 + 64),
    ("n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7b8b", 73 * 49 + 68),
    ("n1b1k3/1P6/8/8/8/8/8/4K3 w - - 0 1", "b7c8r", 73 * 49 + 72),
    # the same for Black's pawn on b2, which is b7 from its side
    ("4k3/8/8/8/8/8/1p6/N1B1K3 b - - 0 1", "b2a1n", 73 * 49 + 64),
    ("4k3/8/8/8/8/8/1p6/N1B1K3 b - - 0 1", "b2c1r", 73 * 49 + 72),
    # castling: the king from e1 (square 4) two to the east, two to the west
    ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", "e1g1", 73 * 4 + 15),
    ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", "e8c8", 73 * 4 + 43),
]


@pytest.mark.parametrize(("fen", "move", "action"), ACTIONS)
def test_actions(fen: str, move: str, action: int) -> None:
    state = GAME.from_fen(fen)
    assert bool(compiled("legal_action_mask")(state)[action])
    assert GAME.format_action(state, action) == move
    assert text.board_of_state(state).names[move] == action


MIRRORED = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
]


def mirror_fen(fen: str) -> str:
    """The same position with the colours exchanged and the board turned upside down."""
    pieces, side, castling, passing, clock, number = fen.split()
    passing = passing.translate(str.maketrans("36", "63"))
    rights = "".join(sorted(castling.swapcase(), key="KQkq-".index))
    return " ".join(
        [
            "/".join(reversed(pieces.swapcase().split("/"))),
            "b" if side == "w" else "w",
            rights,
            passing,
            clock,
            number,
        ]
    )


@pytest.mark.parametrize("fen", MIRRORED)
def test_the_two_sides_are_mirror_images(fen: str) -> None:
    """The same actions in play: equal legal moves, and planes that differ in the colour and in the
    one move that White is ahead."""
    white, black = GAME.from_fen(fen), GAME.from_fen(mirror_fen(fen))
    rng = np.random.default_rng(3)
    for _ in range(12):
        masks = [np.asarray(compiled("legal_action_mask")(state)) for state in (white, black)]
        np.testing.assert_array_equal(*masks)
        planes = [planes_of(state) for state in (white, black)]
        same = [plane for plane in range(119) if plane not in (112, 113)]
        np.testing.assert_array_equal(planes[0][:, :, same], planes[1][:, :, same])
        assert (planes[0][:, :, 112] == 1 - planes[1][:, :, 112]).all()
        action = jnp.int32(rng.choice(np.flatnonzero(masks[0])))
        white, black = compiled("step")(white, action), compiled("step")(black, action)
