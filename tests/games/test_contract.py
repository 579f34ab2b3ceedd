"""The Game contract, over the whole table of games: joining the table brings these tests."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azero.games.contract import check_contract, check_games
from azero.games.game import NamesEndings, SeenOnHost
from azero.games.settings import GameConfig
from azero.games.table import make
from azero.games.tictactoe.rules import TicTacToe

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "go": [
        {"size": 4, "komi": 0.5},
        {"size": (2, 5), "komi": 1.0, "superko": "situational", "suicide": True},
        {"size": 1, "komi": 0.0, "superko": "simple"},
    ],
    "minichess": [{"max_moves": 60}],
    "pgx": [{"id": "connect_four"}, {"id": "othello", "max_moves": 40}],
    "shogi": [{"max_moves": 40}],
}
COUNTING = ("animal_shogi", "chess", "minichess", "shogi")
"""Games with counts among their planes."""
CASES = [(name, options) for name in GameConfig.KINDS for options in OPTIONS.get(name, [{}])]
NUM_GAMES = 4


class Run(NamedTuple):
    """Random games side by side."""

    game: Any
    states: Any
    """the states [T + 1, B, ...] before the first and after every move"""
    actions: np.ndarray
    """int32[T, B]"""

    def at(self, index: int) -> Any:
        """The states [B, ...] after `index` moves."""
        return jax.tree.map(lambda a: a[index], self.states)

    def every(self, verb: str) -> np.ndarray:
        """A verb of all states [T + 1, B, ...]."""
        return np.asarray(_verb(self.game, verb)(self.states))


@functools.cache
def _verb(game: Any, verb: str) -> Any:
    return jax.jit(jax.vmap(jax.vmap(getattr(game, verb))))


@functools.cache
def _run(index: int, seed: int) -> Run:
    name, options = CASES[index]
    game = make(name, **options)

    @jax.jit
    @jax.vmap
    def move(state: Any, word: jax.Array) -> tuple[Any, jax.Array]:
        legal = game.legal_action_mask(state)
        action = jnp.argmax(
            jnp.where(legal, jax.random.uniform(jax.random.key(word), legal.shape), -1.0)
        ).astype(jnp.int32)
        return game.step(state, action), action

    rng = np.random.default_rng(index + seed)
    state = jax.tree.map(lambda a: jnp.broadcast_to(a[None], (NUM_GAMES, *a.shape)), game.init())
    states, actions = [state], []
    for _ in range(game.max_moves + 2):
        state, action = move(state, rng.integers(1 << 31, size=NUM_GAMES))
        states.append(state)
        actions.append(np.asarray(action))
    return Run(game, jax.tree.map(lambda *leaves: np.stack(leaves), *states), np.stack(actions))


@pytest.fixture(
    params=range(len(CASES)),
    ids=[f"{name}-{'-'.join(map(str, options.values()))}" for name, options in CASES],
)
def run(request: pytest.FixtureRequest, seed: int) -> Run:
    return _run(request.param, seed)


def test_shapes_and_dtypes(run: Run) -> None:
    check_contract(run.game)
    planes = jax.eval_shape(run.game.observe, run.game.init())
    if run.game.name in (*COUNTING, "go", "pgx", "tictactoe"):
        assert planes.dtype == ("float32" if run.game.name in COUNTING else "bool")


@pytest.mark.parametrize(
    ("method", "found", "message"),
    [
        ("legal_action_mask", jnp.ones(5, bool), r"returns bool\[5\], not bool\[9\]"),
        ("rewards", jnp.zeros((), jnp.int32), r"returns int32\[\], not float32\[2\]"),
        ("observe", jnp.zeros((3, 3)), r"returns float32\[3, 3\], not bool\[3, 3, 3\]"),
        ("step", None, "returns None, not TicTacToeState"),
    ],
)
def test_a_method_that_breaks_the_contract_is_named(
    method: str, found: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = make("tictactoe")
    monkeypatch.setattr(type(game), method, lambda *arguments: found)
    with pytest.raises(ValueError, match=f"{method} of the game tictactoe {message}"):
        check_contract(game)


@pytest.mark.parametrize(
    ("method", "found", "message"),
    [
        ("is_terminal", jnp.bool_(True), "tictactoe is over at its first position"),
        ("to_play", jnp.int32(1), "to_play of the game tictactoe is 1 at its first position"),
        (
            "format_action",
            "take 1",
            "'take 1' for the action 0; the name of a move must be text with",
        ),
        ("format_action", 3, "returns 3 for the action 0; the name of a move must be text without"),
        ("format_action", "a1", "returns 'a1' for the actions 0 and 1; names of legal moves"),
    ],
)
def test_a_wrong_first_position_is_an_error(
    method: str, found: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = make("tictactoe")
    monkeypatch.setattr(type(game), method, lambda *arguments: found)
    with pytest.raises(ValueError, match=message):
        check_contract(game)


def test_more_first_moves_than_the_game_says_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TicTacToe, "max_legal_actions", 8)
    with pytest.raises(ValueError, match="has 9 legal moves; max_legal_actions is 8"):
        check_contract(make("tictactoe"))


def test_a_method_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(TicTacToe, "format_board")
    with pytest.raises(ValueError, match="the rules TicTacToe lack format_board"):
        check_contract(make("tictactoe"))


def test_rules_that_are_not_hashable_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TicTacToe, "__hash__", None)
    with pytest.raises(ValueError, match=r"the rules TicTacToe are not hashable: .* frozen"):
        check_contract(make("tictactoe"))


def test_played_games_follow_the_contract(run: Run) -> None:
    """Random games, one after the other, as self-play stores them."""
    length = (~run.every("is_terminal")).sum(axis=0)
    sides = run.every("to_play")
    to_play = np.concatenate([sides[:count, game] for game, count in enumerate(length)])
    check_games(run.game, to_play, length, run.every("rewards")[-1])


@pytest.mark.parametrize(
    ("to_play", "length", "result", "message"),
    [
        ([0, 1, 1, 0], [3, 1], [[1, -1], [0, 0]], "a side of the game tictactoe moved twice"),
        ([0, 1, 0, 0], [3, 1], [[1, 0], [0, 0]], r"rewards of the game tictactoe are \[1.0, 0.0\]"),
        ([0, 1, 0], [3], [[5, -5]], r"are \[5.0, -5.0\] at the end of a game"),
        ([0, 1, 0], [3], [[np.nan, np.nan]], r"are \[nan, nan\] at the end of a game"),
        ([0, 1] * 5, [10], [[0, 0]], "a game of tictactoe has 10 moves; max_moves is 9"),
    ],
)
def test_a_played_game_that_breaks_the_contract_is_an_error(
    to_play: list[int], length: list[int], result: list[list[float]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_games(
            make("tictactoe"), np.asarray(to_play), np.asarray(length), np.asarray(result, float)
        )


def test_numbers_of_python_are_allowed_with_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make("tictactoe")
    monkeypatch.setattr(type(game), "rewards", lambda *_: jnp.where(jnp.arange(2) == 0, 1.0, -1.0))
    jax.config.update("jax_enable_x64", True)
    try:
        check_contract(game)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_no_axis_is_added_to_an_array_by_itself(run: Run) -> None:
    state = run.game.init()
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(run.game.step, state, jnp.int32(0))
        for verb in ("legal_action_mask", "to_play", "is_terminal", "rewards", "observe"):
            jax.eval_shape(getattr(run.game, verb), state)


def test_a_game_is_hashable_and_equal_to_its_like(run: Run) -> None:
    name, options = next(case for case in CASES if make(case[0], **case[1]) == run.game)
    assert hash(make(name, **options)) == hash(run.game)


def test_the_batch_equals_single_eager_positions(run: Run) -> None:
    game, index = run.game, len(run.actions) // 2
    single = jax.tree.map(lambda a: jnp.asarray(a[0]), run.at(index))
    stepped = game.step(single, jnp.int32(run.actions[index, 0]))
    jax.tree.map(
        np.testing.assert_array_equal, stepped, jax.tree.map(lambda a: a[0], run.at(index + 1))
    )
    np.testing.assert_array_equal(
        game.legal_action_mask(single), run.every("legal_action_mask")[index, 0]
    )


def test_nested_vmap_equals_the_flat_one(run: Run) -> None:
    flat = jax.jit(jax.vmap(run.game.legal_action_mask))(
        jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), run.states)
    )
    nested = run.every("legal_action_mask")
    np.testing.assert_array_equal(nested.reshape(flat.shape), flat)


def test_one_state_with_many_actions(run: Run) -> None:
    game, state = run.game, run.game.init()
    step = jax.jit(game.step)
    actions = jnp.arange(game.num_actions, dtype=jnp.int32)
    together = jax.jit(jax.vmap(game.step, in_axes=(None, 0)))(state, actions)
    together = jax.tree.map(np.asarray, together)
    for action in range(0, game.num_actions, 1 + game.num_actions // 500):
        jax.tree.map(
            np.testing.assert_array_equal,
            step(state, jnp.int32(action)),
            jax.tree.map(lambda a, n=action: a[n], together),
        )


def test_games_end_in_time_and_stay_as_they_are(run: Run) -> None:
    game = run.game
    over = run.every("is_terminal")
    assert over[game.max_moves].all()
    assert not over[0].any()
    jax.tree.map(np.testing.assert_array_equal, run.at(game.max_moves), run.at(-1))
    assert run.every("legal_action_mask")[over].all()


def test_players_alternate_and_somebody_may_always_move(run: Run) -> None:
    over, to_play, masks = (
        run.every(verb) for verb in ("is_terminal", "to_play", "legal_action_mask")
    )
    assert (to_play[0] == 0).all()
    assert (to_play[1:] == 1 - to_play[:-1])[~over[:-1]].all()
    assert masks.any(axis=-1).all()
    assert masks[~over].sum(axis=-1).max() <= run.game.max_legal_actions <= run.game.num_actions


def test_every_finished_game_has_a_named_ending(run: Run) -> None:
    if not isinstance(run.game, NamesEndings):
        pytest.skip("its games end in one way")
    states = run.at(run.game.max_moves)
    for number in range(NUM_GAMES):
        assert run.game.ending(jax.tree.map(lambda a, n=number: a[n], states))


def test_the_host_sees_what_the_compiled_programs_see(run: Run) -> None:
    if not isinstance(run.game, SeenOnHost):
        pytest.skip("its positions are looked at by a compiled program")
    verbs = ("to_play", "is_terminal", "rewards", "legal_action_mask")
    every = [run.every(verb)[:, 0] for verb in verbs]
    over = int(np.argmax(every[1]))
    for ply in {*range(0, over, 1 + over // 40), over}:
        found = run.game.host_facts(jax.tree.map(lambda a, n=ply: a[n, 0], run.states))
        for known, fact in zip(every, found, strict=True):
            np.testing.assert_array_equal(fact, known[ply])


def test_rewards_are_zero_sum_and_come_at_the_end(run: Run) -> None:
    over, rewards = run.every("is_terminal"), run.every("rewards")
    assert (rewards[~over] == 0).all()
    assert (rewards.sum(axis=-1) == 0).all()
    assert np.isin(rewards, (-1, 0, 1)).all()


def test_planes_come_from_frames(run: Run) -> None:
    game = run.game
    frames, to_play, planes, over = (
        run.every(verb) for verb in ("pack_frame", "to_play", "observe", "is_terminal")
    )
    before_the_start = np.zeros((game.num_frames - 1, *frames.shape[1:]), np.uint32)
    padded = np.concatenate([before_the_start, frames])
    # [T + 1, B, num_frames, F], newest first
    recent = np.stack(
        [padded[game.num_frames - 1 - age : len(padded) - age] for age in range(game.num_frames)],
        axis=2,
    )
    observed = np.asarray(jax.jit(jax.vmap(jax.vmap(game.observe_frames)))(recent, to_play))
    # A finished game stands still, so its frames are no longer those of the moves before.
    moved = np.concatenate([np.zeros_like(over[:1]), over[:-1]]) == 0
    np.testing.assert_array_equal(observed[moved], planes[moved])


def test_a_shorter_history_leaves_out_the_older_positions(run: Run) -> None:
    has_history = hasattr(run.game, "history")
    assert has_history == (run.game.name in COUNTING)
    if not has_history:
        return
    short = dataclasses.replace(run.game, history=2)
    shown = np.asarray(_verb(short, "observe")(run.states))
    of_newest = run.game.num_planes - run.game.history * short.ENCODING.PLANES_PER_FRAME
    whole = run.every("observe")
    expected = np.concatenate(
        [whole[..., : 2 * short.ENCODING.PLANES_PER_FRAME], whole[..., -of_newest:]], axis=-1
    )
    assert shown.shape[-1] == short.num_planes < run.game.num_planes
    np.testing.assert_array_equal(shown, expected)
    with pytest.raises(ValueError, match="history is from 1 to 8, not 9"):
        dataclasses.replace(run.game, history=9)


def test_search_states_play_the_same_game(run: Run) -> None:
    game = run.game
    slim = jax.jit(jax.vmap(jax.vmap(game.search_state)))(run.states)
    before, after = jax.tree.map(lambda a: a[:-1], slim), jax.tree.map(lambda a: a[1:], slim)
    stepped = jax.jit(jax.vmap(jax.vmap(game.step)))(before, run.actions)
    jax.tree.map(np.testing.assert_array_equal, stepped, after)
    for verb in ("observe", "is_terminal", "rewards", "to_play", "pack_frame"):
        np.testing.assert_array_equal(_verb(game, verb)(slim), run.every(verb))
    weak, exact = np.asarray(_verb(game, "legal_action_mask")(slim)), run.every("legal_action_mask")
    assert (weak | ~exact).all(), "the search's rule may only allow more"


def test_symmetries_form_a_group(run: Run) -> None:
    game = run.game
    height, width = game.board_shape
    planes = jnp.arange(height * width * 2, dtype=jnp.float32).reshape(height, width, 2)
    policy = jnp.arange(game.num_actions, dtype=jnp.float32)
    everything = jnp.arange(game.num_symmetries, dtype=jnp.int32)
    all_images = jax.jit(jax.vmap(game.transform_planes, in_axes=(None, 0)))
    images = np.asarray(all_images(planes, everything))
    np.testing.assert_array_equal(images[0], planes)
    distinct = {image.tobytes() for image in images}
    assert len(distinct) == (game.num_symmetries if height > 1 and width > 1 else 1)
    assert {
        again.tobytes() for image in images for again in np.asarray(all_images(image, everything))
    } == distinct
    moved = jax.jit(jax.vmap(game.transform_policy, in_axes=(None, 0)))(policy, everything)
    back = jax.jit(jax.vmap(game.inverse_transform_policy))(moved, everything)
    np.testing.assert_array_equal(back, np.broadcast_to(policy, moved.shape))


def test_the_image_of_a_game_has_the_images_of_its_planes_and_moves(run: Run) -> None:
    """A random game is played again with the image of every move: policies, planes and rules turn
    the same way."""
    game = run.game
    symmetries = jnp.arange(game.num_symmetries, dtype=jnp.int32)

    def images_of(verb: str, arrays: Any) -> jax.Array:  # [T, ...] -> [S, T, ...]
        of_all = jax.vmap(getattr(game, verb), in_axes=(0, None))
        return jax.vmap(of_all, in_axes=(None, 0))(arrays, symmetries)

    played = jax.nn.one_hot(run.actions[:, 0], game.num_actions)
    actions = jnp.argmax(images_of("transform_policy", played), axis=-1).astype(jnp.int32)

    @jax.jit
    @jax.vmap
    def play(actions: jax.Array) -> Any:
        def step(state: Any, action: jax.Array) -> tuple[Any, Any]:
            after = game.step(state, action)
            return after, after

        return jax.lax.scan(step, game.init(), actions)[1]

    images = play(actions)  # the states [S, T, ...] after every move
    planes, legal, rewards = (
        run.every(verb)[1:, 0] for verb in ("observe", "legal_action_mask", "rewards")
    )
    np.testing.assert_array_equal(
        images_of("transform_planes", planes), _verb(game, "observe")(images)
    )
    np.testing.assert_array_equal(
        images_of("transform_policy", legal.astype(np.float32)),
        _verb(game, "legal_action_mask")(images),
    )
    for image in np.asarray(_verb(game, "rewards")(images)):
        np.testing.assert_array_equal(image, rewards)


def test_text_of_moves_and_boards(run: Run) -> None:
    over, masks = run.every("is_terminal")[:, 0], run.every("legal_action_mask")[:, 0]
    for index in np.flatnonzero(~over)[::5]:
        state = jax.tree.map(lambda a: a[0], run.at(index))
        legal = np.flatnonzero(masks[index])
        names = [run.game.format_action(state, int(action)) for action in legal]
        assert len({name.lower() for name in names}) == len(legal)
        assert not [name for name in names if name.split() != [name]]
    assert len(run.game.format_board(state).splitlines()) >= run.game.board_shape[0]


def test_a_game_may_stand_in_a_condition_of_each_position() -> None:
    """A finished game begins again, the other one goes on: `cond` below `vmap`, as in the
    auto-reset of other libraries."""
    game = make("go", size=2, max_moves=1)

    def step_or_begin(state: Any, action: jax.Array) -> Any:
        return jax.lax.cond(
            game.is_terminal(state), lambda: game.init(), lambda: game.step(state, action)
        )

    begun = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), game.init())
    actions = jnp.arange(2, dtype=jnp.int32)
    played = jax.jit(jax.vmap(game.step))(begun, actions)
    mixed, expected = (
        jax.tree.map(lambda one, other: jnp.stack([one[0], other[1]]), *pair)
        for pair in ((begun, played), (played, begun))
    )
    jax.tree.map(
        np.testing.assert_array_equal, jax.jit(jax.vmap(step_or_begin))(mixed, actions), expected
    )


def test_a_name_is_spelled_with_either_line() -> None:
    assert make("animal-shogi") == make("animal_shogi")
    assert GameConfig.default("animal-shogi") == GameConfig.default("animal_shogi")


def test_an_unknown_game_names_the_known_ones() -> None:
    known = ", ".join(sorted(GameConfig.KINDS))
    with pytest.raises(ValueError, match=f"unknown game 'checkers'; the games are: {known}"):
        make("checkers")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("chess", {"max_moves": 2.5}, r"make\('chess'\): max_moves is of type int, not 2.5"),
        ("chess", {"fen": None}, "fen is of type str, not None"),
        ("go", {"suicide": "no"}, "suicide is of type bool, not 'no'"),
        ("go", {"komi": "7"}, "komi is of type float, not '7'"),
        ("go", {"size": 9.0}, r"size is of type int or \[int, int\], not 9.0"),
        ("shogi", {"repetition_moves": True}, "repetition_moves is of type int, not True"),
    ],
)
def test_options_of_another_type_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, **options)
