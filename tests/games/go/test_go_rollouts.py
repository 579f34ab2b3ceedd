"""The features of the rollout and tree policies on drawn boards, and the games that they play to
the end."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from needs import require_module

from azero.bench.rules import check_rollouts, compare_rollouts
from azero.games import bits
from azero.games.go import setup
from azero.games.go.alphago2016.patterns import AROUND
from azero.games.go.rollouts.playouts import (
    choose,
    make_play_out,
    play_move,
    policy_logits,
    start_from,
)
from azero.games.go.rules import Go
from azero.games.go.sgf import read_games
from azero.games.go.text import parse_diagram
from azero.networks.rollout import GROUPS, sum_weights
from azero.search.leaf import policy_rollout_leaf

RECORDS = Path(__file__).parents[2] / "data" / "records" / "expert9.sgf"
SHARED = Path(__file__).parents[4] / "shared" / "data" / "go"
SHAPE = (9, 9)
GAME = Go(size=9, komi=7.5, num_planes=10)


@pytest.fixture(scope="session")
def observe():
    """Return the numbers [9, 9, 10] of a state as a list of boards by name."""
    compiled = jax.jit(GAME.observe)
    names = (
        "response",
        "save",
        "neighbour",
        "nakade",
        "response pattern",
        "pattern",
        "self-atari",
        "distance",
        "distance before",
        "diamond",
    )
    return lambda state: dict(
        zip(names, np.moveaxis(np.asarray(compiled(state)), -1, 0), strict=True)
    )


def drawn(diagram, *moves, to_play=0):
    board = parse_diagram(diagram.strip().split("\n")).reshape(-1)
    state = GAME.setup(
        np.flatnonzero(board == 1).tolist(), np.flatnonzero(board == -1).tolist(), to_play
    )
    step = jax.jit(GAME.step)
    for move in moves:
        state = step(state, move)
    return state


def points_of(numbers):
    return {(int(row), int(column)) for row, column in zip(*np.nonzero(numbers), strict=True)}


EMPTY = "\n".join([". . . . . . . . ."] * 9)


def test_what_lies_near_the_last_moves(observe):
    numbers = observe(drawn(EMPTY, 20, 40))  # C7 and E5
    near = {(4 + row, 4 + column) for row, column in AROUND}
    assert points_of(numbers["neighbour"]) == near
    assert [int(numbers["neighbour"][4 + row, 4 + column]) for row, column in AROUND] == list(
        range(1, 9)
    )
    assert (
        points_of(numbers["response"])
        == points_of(numbers["response pattern"])
        == near | {(2, 4), (6, 4), (4, 2), (4, 6)}
    )
    assert numbers["distance"][0, 0] == 8 and numbers["distance"][4, 4] == 0
    assert numbers["distance before"][0, 0] == 4 and numbers["distance before"][8, 8] == 12
    first = observe(drawn(EMPTY))
    assert not any(
        first[name].any()
        for name in ("response", "neighbour", "response pattern", "distance", "distance before")
    )


def test_a_pattern_knows_colours_liberties_and_edges_and_nothing_further_away(observe):
    base = ". . . . . . . . .\n. . O . . . . . .\n. X O . . . O . .\n" + ". . . . . . . . .\n" * 6
    base_numbers = observe(drawn(base))
    far = observe(drawn(base.replace(". . O . . . . . .", ". . O . . . . . X", 1)))
    colours = observe(drawn(base.translate(str.maketrans("XO", "OX")), to_play=1))
    atari = observe(drawn(base.replace(". X O . . . O . .", "O X O . . . O . .", 1)))
    assert (
        far["pattern"][3, 2] == base_numbers["pattern"][3, 2]
        and far["diamond"][3, 2] == base_numbers["diamond"][3, 2]
    )
    np.testing.assert_array_equal(colours["pattern"], base_numbers["pattern"])
    assert (
        atari["pattern"][3, 2] != base_numbers["pattern"][3, 2]
    )  # the black stone has a liberty less
    assert base_numbers["pattern"][8, 8] != base_numbers["pattern"][7, 7]  # the corner
    assert base_numbers["pattern"][7, 7] == base_numbers["pattern"][6, 3]  # nothing near
    assert len(np.unique(base_numbers["pattern"])) > 15


def test_moves_that_save_stones_and_moves_into_atari(observe):
    board = """
. X O . . . . . .
. O . . . . . . .
. . . . X O . . .
. . . O X X O . .
. . . . O O . . .
X . . . . . . . .
O . . . . . . . .
X O . . . . . . .
. . . . . . . . ."""
    numbers = observe(drawn(board))
    # A9 leaves the stone on B9 with one liberty; the chain on E6 has two; the stone on A2 cannot
    # run, but B3 takes the one above it.
    assert points_of(numbers["save"]) == {(6, 1)}
    assert (0, 0) in points_of(numbers["self-atari"]) and (4, 3) not in points_of(numbers["save"])


def test_the_shape_that_was_taken(observe):
    numbers = observe(drawn(BENT, 3, to_play=1))
    taken = points_of(numbers["nakade"])
    assert taken == {(0, 0), (0, 1), (0, 2)}
    assert (
        len({int(numbers["nakade"][point]) for point in taken}) == 3
    )  # left end, middle, right end
    assert all(1 + 256 * 2 <= numbers["nakade"][point] < 1 + 256 * 3 for point in taken)
    assert not observe(drawn(BENT, to_play=1))["nakade"].any()


BENT = "X X X . . . . . .\nO O O . . . . . .\n" + ". . . . . . . . .\n" * 7


def test_rollouts_and_the_learner_see_the_same_moves(observe):
    state = drawn(BENT, 3, to_play=1)
    params = {
        group.name: jax.random.normal(jax.random.key(index), (group.size or 2**10,))
        for index, group in enumerate(GROUPS)
    }
    numbers = observe(state)
    learner = sum_weights(params, [jnp.asarray(board) for board in list(numbers.values())[:6]])
    playout = start_from(jax.tree.map(lambda leaf: leaf[None], state), SHAPE)
    logits = policy_logits(lambda seen: sum_weights(params, seen), playout.now, SHAPE)
    np.testing.assert_allclose(logits[:, :, 0], learner, atol=1e-5)


def even(params, numbers):
    return jnp.zeros(next(number.shape for number in numbers if number is not None), jnp.float32)


def test_the_sets_of_chains_with_few_liberties_stay_exact():
    batch = 16

    @jax.jit
    def play(key):
        playout = start_from(
            jax.tree.map(lambda leaf: jnp.stack([leaf] * batch), GAME.init()), SHAPE
        )

        def move(playout, words):
            playout = play_move(
                playout, choose(lambda numbers: even(None, numbers), words, playout, SHAPE), SHAPE
            )
            return playout, (playout.now, playout.num_passes)

        return jax.lax.scan(move, playout, jax.random.bits(key, (110, batch)))[1]

    situations, num_passes = play(jax.random.key(0))
    own, other, one, two, last, captured = (
        np.asarray(
            bits.unpack(
                jnp.moveaxis(bits.words_from_rows(jnp.moveaxis(rows, 1, 0), SHAPE), 0, -1), 81
            )
        ).reshape(110, batch, *SHAPE)
        for rows in situations
    )
    assert not (own & other).any() and captured.sum() > 100 and np.asarray(num_passes).max() >= 2
    for ply in range(0, 110, 3):
        for game in range(batch):
            board = own[ply, game].astype(np.int8) - other[ply, game]
            for chain, liberties in setup.chains(board):
                assert liberties
                point = next(iter(chain))
                assert (one[ply, game][point], two[ply, game][point]) == (
                    len(liberties) == 1,
                    len(liberties) == 2,
                )
    assert (last.sum(axis=(-2, -1)) <= 1).all()


def test_a_finished_game_is_only_counted_and_both_colours_win_at_a_fair_komi():
    play_out = jax.jit(make_play_out(GAME, even))
    wall = ". . . X O . . . .\n" * 9
    states = jax.tree.map(
        lambda *leaves: jnp.stack(leaves),
        drawn(wall, 81, 81),
        drawn(wall, 81, 81, to_play=1),
        *[drawn(EMPTY)] * 62,
    )
    points = np.asarray(play_out(None, jax.random.key(0), states))
    assert points[:2].tolist() == [36.0 - 45.0] * 2
    assert 10 < (points[2:] > 0.5).sum() < 55


def test_the_leaf_gives_the_points_for_the_side_to_move():
    def infer(params, planes):
        return jnp.zeros((planes.shape[0], 82)), jnp.zeros(planes.shape[0])

    leaf = jax.jit(policy_rollout_leaf(GAME, infer, make_play_out(GAME, even)))
    wall = ". . X O . . . . .\n" * 9
    states = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), drawn(wall, 81, 81), drawn(wall, 81, 81, to_play=1)
    )
    logits, value = leaf(None, jax.random.key(0), states)
    assert logits.shape == (2, 82) and np.asarray(value).tolist() == [27.0 - 54.0, 54.0 - 27.0]


def test_rollouts_from_real_positions_play_by_the_rules_of_sgfmill():
    """All moves; most rollouts begin right after a ko was taken."""
    require_module("sgfmill")
    games = [[action for _, action in record.moves] for record in read_games(RECORDS)]
    found = compare_rollouts(9, games, 256, after_ko=0.9)
    assert (
        (found.rollouts, found.illegal) == (256, [])
        and found.after_ko >= 230
        and found.moves > 10_000
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [None, *sorted(SHARED.glob("*9*.sgf.gz"))],
    ids=lambda path: path.name if path else "random",
)
def test_ten_thousand_rollouts_after_ko_captures(path):
    require_module("sgfmill")
    lines = list(check_rollouts([path] if path else [], 10_000))
    assert lines and all(
        "rollouts with a forbidden move: 0, as their first one: 0" in line for line in lines
    ), lines
