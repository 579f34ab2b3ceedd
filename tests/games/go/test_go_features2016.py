"""The planes of AlphaGo (2016): drawn boards, drawn ladders, and agreement with a plain Python
version on random and human positions."""

from pathlib import Path

import jax
import numpy as np
import pytest
from diagrams import parse_diagram
from slow_features import LAYERS, assert_equal

from azero.games.go.alphago2016.features import PLANE_COUNTS
from azero.games.go.rules import Go
from azero.games.table import make

DATA = Path(__file__).parent / "data"
SMALL = Go(size=9, num_planes=49)
FIRST = {layer.name: layer.first for layer in LAYERS}


@pytest.fixture(scope="session")
def observe():
    """Return planes bool[B, 9, 9, 49] of 32 games' frames and sides to move; compiled once."""
    compiled = jax.jit(jax.vmap(SMALL.observe_frames))

    def planes(frames, to_play):
        room = np.zeros((32, *frames.shape[1:]), np.uint32)
        sides = np.zeros(32, np.int32)
        room[: len(frames)], sides[: len(frames)] = frames, to_play
        return np.asarray(compiled(room, sides))[: len(frames)]

    return planes


def drawn(diagram, to_play=0):
    """Return the state of a diagram."""
    board = parse_diagram(diagram.strip().split("\n")).reshape(-1)
    return SMALL.setup(
        np.flatnonzero(board == 1).tolist(), np.flatnonzero(board == -1).tolist(), to_play
    )


def see(observe, *states):
    return observe(
        np.stack([state.frames for state in states]), np.stack([state.to_play for state in states])
    )


def numbers(planes, name, first=1):
    """Return the numbers of a feature of eight planes as text: '.' where none is set, then first,
    first + 1, ..."""
    layer = planes[:, :, FIRST[name] : FIRST[name] + 8]
    assert (layer.sum(axis=-1) <= 1).all()
    values = np.where(layer.any(axis=-1), layer.argmax(axis=-1) + first, -1)
    return "\n".join(" ".join("." if value < 0 else str(value) for value in row) for row in values)


def points(planes, name):
    return "\n".join(
        " ".join("x" if value else "." for value in row) for row in planes[:, :, FIRST[name]]
    )


BOARD = """
. X . O . . . . .
X X O . . . . O X
. O O . . . O X X
. . . . . . O X .
. . . . . . . O O
X . X X . . . . .
O X . O X . . . .
. O X X . . . . O
X O . . . . . O ."""


LIBERTIES = """
. 3 . 3 . . . . .
3 3 6 . . . . 2 2
. 6 6 . . . 4 2 2
. . . . . . 4 2 .
. . . . . . . 4 4
2 . 5 5 . . . . .
1 2 . 1 3 . . . .
. 2 4 4 . . . . 3
1 2 . . . . . 3 ."""

CAPTURES = """
0 . 0 . 0 0 0 0 0
. . . 0 0 0 0 . .
0 . . 0 0 0 . . .
0 0 0 0 0 0 . . 0
0 0 0 0 0 0 0 . .
. 0 . . 0 0 0 0 0
. . 1 . . 0 0 0 0
1 . . . 0 0 0 0 .
. . 0 0 0 0 0 . ."""

SELF_ATARI = """
. . . . . . . . .
. . . . . . . . .
. . . . . . . . .
. . . . . . . . 5
. . . . . . . . .
. . . . . . . . .
. . . . . . . . .
2 . . . . . . . .
. . . . . . . . ."""

AFTER = """
2 . 2 . 2 3 3 2 2
. . . 2 4 4 2 . .
3 . . 3 4 3 . . .
3 3 3 4 4 3 . . 1
3 4 6 6 4 4 2 . .
. 6 . . 8 4 4 3 2
. . 8 . . 5 4 4 2
1 . . . 7 4 4 2 .
. . 3 4 3 3 2 . ."""

SENSIBLE = """
. . x . x x x x x
. . . x x x x . .
x . . x x x . . .
x x x x x x . . x
x x x x x x x . .
. x . . x x x x x
. . x . . x x x x
x . . . x x x x .
. . x x x x x . ."""


def test_stones_liberties_ones_zeros_and_colour(observe):
    black, white = see(observe, drawn(BOARD), drawn(BOARD, to_play=1))
    board = parse_diagram(BOARD.strip().split("\n"))
    for planes, own in ((black, 1), (white, -1)):
        assert (planes[:, :, 0] == (board == own)).all()
        assert (planes[:, :, 1] == (board == -own)).all()
        assert (planes[:, :, 2] == (board == 0)).all()
        assert planes[:, :, 3].all() and not planes[:, :, 47].any()
        assert (planes[:, :, 48] == (own == 1)).all()
        assert numbers(planes, "liberties") == LIBERTIES.strip()


def test_what_moves_do(observe):
    planes = see(observe, drawn(BOARD))[0]
    assert numbers(planes, "capture size", first=0) == CAPTURES.strip()
    assert numbers(planes, "self-atari size") == SELF_ATARI.strip()
    assert numbers(planes, "liberties after move") == AFTER.strip()
    assert points(planes, "sensibleness") == SENSIBLE.strip()


def test_turns_since_a_stone_was_played(observe):
    moves = [0, 40, 1, 41, 2, 42, 3, 43, 4, 44]
    state, states = SMALL.init(), []
    step = jax.jit(SMALL.step)
    for move in moves:
        state = step(state, move)
        states.append(state)
    planes = see(observe, states[0], states[-1])
    assert numbers(planes[0], "turns since").replace("\n", " ").split() == ["1"] + ["."] * 80
    ages = numbers(planes[1], "turns since").replace("\n", " ").split()
    assert [ages[move] for move in moves] == ["8", "8", "8", "7", "6", "5", "4", "3", "2", "1"]
    assert sum(age != "." for age in ages) == 10


def test_a_stone_that_is_taken_and_played_again_is_new(observe):
    state = drawn(KO)
    step = jax.jit(SMALL.step)
    for move in (11, 80, 78, 10):  # the ko is taken, and taken back
        assert bool(SMALL.legal_action_mask(state)[move])
        state = step(state, move)
    planes = see(observe, state)[0]
    assert planes[1, 1, FIRST["turns since"]] and planes[0, 1, FIRST["turns since"] + 4]
    assert not planes[
        1, 2, FIRST["capture size"] : FIRST["capture size"] + 8
    ].any()  # Black may not take at once


KO = (
    """
. X O . . . . . .
X O . O . . . . .
. X O . . . . . ."""
    + "\n. . . . . . . . ." * 6
)


def ladder_problems():
    texts = (DATA / "ladders.txt").read_text().strip().split("\n\n")
    return [
        (lines[0].removeprefix("# "), lines[1:]) for lines in (text.split("\n") for text in texts)
    ]


def test_ladders(observe):
    """C: the move catches. E: it saves. *: both. Every other point is neither, the liberties of the
    other preys among them."""
    problems = ladder_problems()
    states = [
        drawn("\n".join(lines).translate(str.maketrans("CE*", "..."))) for _, lines in problems
    ]
    for (name, lines), planes in zip(problems, see(observe, *states), strict=True):
        marks = np.array([line.split() for line in lines])
        np.testing.assert_array_equal(
            planes[:, :, FIRST["ladder capture"]], np.isin(marks, ["C", "*"]), err_msg=name
        )
        np.testing.assert_array_equal(
            planes[:, :, FIRST["ladder escape"]], np.isin(marks, ["E", "*"]), err_msg=name
        )
    assert len(problems) >= 30


def test_agreement_with_the_plain_version_at_19x19():
    """100 positions of games between people, 50 of random games (10,000 in the slow tests)."""
    stored = np.load(DATA / "go_positions.npz")
    frames, to_play = stored["frames"][::2], stored["to_play"][::2]
    game = Go(num_planes=49)
    planes = np.asarray(jax.jit(jax.vmap(game.observe_frames))(frames, to_play.astype(np.int32)))
    assert_equal(planes, frames, to_play, game)


@pytest.mark.parametrize("count", [4, 20])
def test_fewer_planes_are_the_first_of_all(observe, count):
    state = drawn(BOARD)
    fewer = jax.jit(Go(size=9, num_planes=count).observe)(state)
    np.testing.assert_array_equal(np.asarray(fewer), see(observe, state)[0][:, :, :count])


def test_planes_turn_with_the_board(observe):
    states = [
        drawn("\n".join(lines).translate(str.maketrans("CE*", "...")))
        for _, lines in ladder_problems()[:8]
    ]
    turned = [
        drawn("\n".join(line[::-1] for line in lines).translate(str.maketrans("CE*", "...")))
        for _, lines in ladder_problems()[:8]
    ]
    np.testing.assert_array_equal(see(observe, *states)[:, :, ::-1], see(observe, *turned))


def test_an_unknown_number_of_planes_is_refused():
    allowed = "17, 18, 19, 4, 12, 20, 48, 49, 6, 10"
    with pytest.raises(ValueError, match=f"num_planes is one of {allowed}, not 50"):
        make("go", size=9, num_planes=50)
    assert PLANE_COUNTS[-1] == 49
