"""The features of the rollout and tree policies on drawn boards, and the games that they play to
the end."""

import operator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from diagrams import parse_diagram
from needs import require_module
from scipy import stats

from azero.bench.rules import check_rollouts, compare_rollouts, random_games
from azero.games.go.alphago2016.patterns import AROUND
from azero.games.go.rollouts.board import BOARD, clear, place, set_up
from azero.games.go.rollouts.compiled import raise_weights, refresh, restore_weights
from azero.games.go.rollouts.rollouts import Rollouts, Starts, odds_of
from azero.games.go.rules import Go
from azero.games.go.sensible import sensible_moves
from azero.games.go.sgf import read_games
from azero.networks.rollout import GROUPS, sum_weights

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
    # the black stone has a liberty less
    assert atari["pattern"][3, 2] != base_numbers["pattern"][3, 2]
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
    # left end, middle, right end
    assert len({int(numbers["nakade"][point]) for point in taken}) == 3
    assert all(1 + 256 * 2 <= numbers["nakade"][point] < 1 + 256 * 3 for point in taken)
    assert not observe(drawn(BENT, to_play=1))["nakade"].any()


BENT = "X X X . . . . . .\nO O O . . . . . .\n" + ". . . . . . . . .\n" * 7


PARAMS = {
    group.name: np.random.default_rng(index).normal(size=group.size or 2**10).astype(np.float32)
    for index, group in enumerate(GROUPS[:6])
}
EVEN = {name: np.zeros_like(group) for name, group in PARAMS.items()}


def empty_board(shape):
    board = np.zeros(1, BOARD)[0]
    clear(board, shape)
    return board


def shares_of(board, colour, last, ko):
    """Return the probabilities float[N] of the compiled rollouts' next move."""
    raise_weights(board, odds_of(PARAMS), colour, last, ko)
    height, width = board["height"], board["width"]
    weights = board["weights"][colour, : (height + 4) * (width + 2)].copy()
    restore_weights(board, colour)
    weights = weights.reshape(height + 4, -1)[2:-2, :width].reshape(-1)
    return weights / max(weights.sum(), 1e-9)


def check_shares(game, actions):
    """Compare the compiled rollouts' probabilities in every position of games int[T, G] (N a pass)
    with those of the policy, on boards that play along and on boards that are set up."""

    def policy(states):
        numbers = jax.vmap(game.observe)(states)
        logits = sum_weights(
            jax.tree.map(jnp.asarray, PARAMS), [numbers[..., index] for index in range(6)]
        )
        allowed = sensible_moves(game, states)[:, :-1]
        logits = logits.reshape(allowed.shape)
        return jax.nn.softmax(logits, where=allowed) * allowed.any(axis=1, keepdims=True)

    def move(states, chosen):
        return jax.vmap(game.step)(states, chosen), (states, policy(states))

    num_games, num_points, compared = actions.shape[1], game.num_points, 0
    odds = odds_of(PARAMS)
    first = jax.tree.map(lambda leaf: jnp.stack([leaf] * num_games), game.init())
    states, expected = jax.device_get(
        jax.jit(lambda actions: jax.lax.scan(move, first, actions)[1])(jnp.asarray(actions))
    )
    for column in range(num_games):
        starts = Starts.of(jax.tree.map(operator.itemgetter(np.s_[:, column]), states), num_points)
        board = None
        for ply, action in enumerate(actions[:, column].tolist()):
            if starts.num_passes[ply] == 2:
                break
            colour = int(starts.to_play[ply])
            fresh = empty_board(game.board_shape)
            last, ko = set_up(fresh, *starts.boards[ply], colour)
            refresh(fresh, odds)
            board = fresh if board is None else board
            for one in (fresh, board):
                found = shares_of(one, colour, last, ko)
                np.testing.assert_allclose(found, expected[ply, column], atol=1e-5)
            if starts.num_passes[ply] or action == num_points:
                board = None
                continue
            row, width = divmod(action, game.board_shape[1])[0], game.board_shape[1]
            place(board, colour, (row + 2) * (width + 2) + action % width)
            refresh(board, odds)
            compared += 1
    return compared


def columns_of(games, num_points):
    """Return games as int[T, G], passes after their ends."""
    actions = np.full((max(map(len, games)), len(games)), num_points, np.int32)
    for column, moves in enumerate(games):
        actions[: len(moves), column] = moves
    return actions


def test_rollouts_draw_from_the_policy_that_learned_in_every_position_of_real_games():
    games = [[action for _, action in record.moves] for record in read_games(RECORDS)][:12]
    game = Go(size=9, superko="simple", num_planes=6)
    assert check_shares(game, columns_of(games, 81)) > 500


def test_and_on_a_board_that_is_not_square():
    game = Go(size=(4, 7), superko="simple", num_planes=6)
    games = random_games((4, 7), 6, seed=0)
    assert check_shares(game, columns_of(games, 28)) > 150


def test_moves_are_drawn_with_the_probabilities_of_the_policy():
    """A chi-square test of 4,000 first moves, after a capture of two stones."""
    one = starts_of([drawn(BENT, 3, to_play=1)])
    starts = Starts(*(np.repeat(array, 4_000, axis=0) for array in one))
    moves = Rollouts(SHAPE, PARAMS).begin(starts)().moves[:, 1]
    board = empty_board(SHAPE)
    last, ko = set_up(board, *starts.boards[0], 0)
    refresh(board, odds_of(PARAMS))
    expected = 4_000 * shares_of(board, 0, last, ko)
    counts = np.bincount(moves, minlength=81)[:81]
    assert not counts[expected == 0].any() and counts.sum() == 4_000
    common = expected > 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert common.sum() > 20 and stats.chi2.sf(statistic, common.sum() - 1) > 0.001


def starts_of(states):
    return Starts.of(jax.device_get(jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)), 81)


def test_a_finished_game_is_only_counted_and_both_colours_win_at_a_fair_komi():
    wall = ". . . X O . . . .\n" * 9
    states = [drawn(wall, 81, 81), drawn(wall, 81, 81, to_play=1), *[drawn(EMPTY)] * 62]
    leads = Rollouts(SHAPE, EVEN).begin(starts_of(states))().leads
    assert leads[:2].tolist() == [36 - 45] * 2
    assert 10 < (leads[2:] > 0.5).sum() < 55


def test_the_seed_decides_whatever_the_number_of_threads():
    starts = starts_of([drawn(EMPTY)] * 7)
    one, three = (Rollouts(SHAPE, PARAMS, seed=5, num_threads=count) for count in (1, 3))
    first, second = one.begin(starts)(), one.begin(starts)()
    np.testing.assert_array_equal(first.moves, three.begin(starts)().moves)
    np.testing.assert_array_equal(second.moves, three.begin(starts)().moves)
    assert (first.moves != second.moves).any()
    other = Rollouts(SHAPE, PARAMS, seed=6).begin(starts)()
    assert (first.moves != other.moves).any()


def test_weights_without_an_exponential_are_an_error():
    for wrong in (1e3, np.nan):
        with pytest.raises(ValueError, match="the weights of the rollout policy add up to"):
            Rollouts(SHAPE, {**EVEN, "save_atari": np.array([wrong])})


def test_rollouts_from_real_positions_play_by_the_rules_of_sgfmill():
    """All moves; every rollout begins right after a ko was taken."""
    require_module("sgfmill")
    games = [[action for _, action in record.moves] for record in read_games(RECORDS)]
    found = compare_rollouts(9, games, 256)
    assert (found.rollouts, found.illegal) == (256, []) and found.moves > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [None, *sorted(SHARED.glob("*9*.sgf.gz"))],
    ids=lambda path: path.name if path else "random",
)
def test_ten_thousand_rollouts_after_ko_captures(path):
    require_module("sgfmill")
    lines = list(check_rollouts((path,) if path else (), 10_000))
    assert lines and all(
        "rollouts with a forbidden move: 0, as their first one: 0" in line for line in lines
    ), lines
